# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt tune: measure these nodes and write what suits them.

Where btl/crypt encrypts: its parameters that matter for speed, one after another, each together with what was taken before.
All values of one are measured in the same rounds, beside the default and the default once more (A/A).  What counts is the time
relative to the default's, as the geometric mean of all sizes of a ping-pong and of a stream.  A value is taken if its median is
below what WORTH allows and below the quartiles of the default relative to itself, and if it was faster in three of four rounds.
The quartiles of a few rounds mean nothing, so then nothing is taken.

--coll: the algorithms of coll/cryptag beside each other; the fastest at each size goes into a rule.  The last rule that applies
counts, so shapes go from small to large, and so do sizes within a shape; coll/cryptag's built-in rules come before all of them.
"""
from __future__ import annotations

import sys
from itertools import product
from statistics import geometric_mean
from types import SimpleNamespace

from . import figure, fit, table
from .columns import COLLECTIVES
from .jobs import OF_JOBS, Plan, Site, Variant, program
from .rounds import Series, Spread
from .tune_pml import Tuning
from .verb import Tool, Verb, between, choice, count, require, say, size, words, writing

WORTH = 0.02
SIZES = [1, 4096, 16384, 65536, 131072, 262144, 524288, 1 << 20, 4 << 20]
QUICK_SIZES = [1, 16384, 131072, 1 << 20]
PATTERNS = ("pingpong", "pairs")
DEFAULT, AGAIN, FIRST = 1, 2, 3         # columns; the first is plain
ENOUGH = 5
COLL_WORTH = 0.03               # faster by less is noise
COLL_SIZES = [1, 256, *(1024 << shift for shift in range(11))]
COLL_QUICK_SIZES = [1, 4096, 65536, 1 << 20]

VERB = Verb("tune", {**OF_JOBS, "rounds": between(0, 1000, size), "bits": choice("128", "192", "256"),
                     "cpus-per-rank": between(0, 1024, size)})


def _variants(of_shapes: list[tuple[int, int]], orders: list[str]) -> list[Variant]:
    """From small to large.  With one rank a node both orders are the same."""
    found = [Variant(nodes * width, nodes, width, order == "cyclic") for nodes, width in of_shapes for order in orders]
    found.sort(key=lambda variant: (variant.ranks, variant.cyclic))
    return [variant for number, variant in enumerate(found)
            if variant.width != 1 or number == 0 or found[number - 1].ranks != variant.ranks]


def _rules(series: Series) -> list[str]:
    """Keeps the algorithm of the size before unless another is faster by WORTH."""
    variant = series.site.variant
    mapping = "any" if variant.width == 1 else variant.order
    lines, last = [""], 0
    for size, count in enumerate(series.sizes):
        best = series.best(0, size)
        best = last if last and series.ratio(last, best, size).median <= 1 + COLL_WORTH else best
        name, ratio = series.columns[best].label, series.ratio(best, 0, size)
        lines.append(f"# {count}: {name} {series.us(best, size).median:.1f} us, {ratio.median:.2f} of the automatic choice "
                     f"({ratio.low:.2f} to {ratio.high:.2f})")
        if best != last:
            lines.append(f"{series.pattern:<9}  {mapping:<6}  {variant.nodes}  {variant.width}  {count if size else 0}  {name}")
        last = best
    return lines


def _coll(options: SimpleNamespace, plan: Plan) -> None:
    plan.host, plan.cpus_per_rank = plan.host or "ob1", plan.cpus_per_rank or 1
    rounds, out = options.rounds or (2 if options.quick else 5), options.out
    of_sizes = sorted(options.size or (COLL_QUICK_SIZES if options.quick else COLL_SIZES))
    lines, rows = [], []
    for operation, variant in product(COLLECTIVES, _variants(options.shape, options.order)):
        site = Site.find(plan, variant)
        names = ["auto", *(name for name in COLLECTIVES[operation].split(",") if name not in ("auto", "ring"))]
        series = Series(site, operation, [plan.crypt(name, algorithm=name) for name in names], of_sizes, every=True)
        report = sys.stderr if out == "-" else sys.stdout
        print(f"{operation} {series.variant}: measuring, {rounds} jobs ...", file=report, flush=True)
        series.measure(rounds, rounds)
        lines = lines or words("collectives", library=site.library, host=plan.host, bits=plan.bits, rounds=rounds,
                               shared="; nodes that share one machine" * site.shared).splitlines()
        lines += _rules(series)
        rows += series.results()
        print(series.matrix(), end="", file=report, flush=True)
    with writing(out) as file:
        file.writelines(f"{line}\n" for line in lines)
    table.to_csv(rows, options.csv)
    if out != "-":
        say(f"Written to {out}.  Jobs read it by\n    mpirun --mca pml crypt --mca coll_cryptag_rules_file {out} ./app")


def _head(site: Site, provider: str, processors: int, what: str) -> list[str]:
    hosts = ", ".join(place.host for place in site.places)
    return words("tuned", hosts=hosts, processor=site.processor, host=site.plan.host, bits=site.plan.bits,
                 provider=provider, processors=count(processors, "processor"), tcp=site.tcp, what=what).splitlines()


def _pml(options: SimpleNamespace, site: Site) -> list[str]:
    if not fit.available():             # said before the measurement, not only after it
        say(f"There will be no model: {fit.LACKING}.")
    tuning = Tuning(site, options.rounds or (1 if options.quick else 3))
    tuning.run(not options.no_search)
    say(tuning.report())
    table.to_csv(tuning.cells, options.csv)
    figure.draw("measured and predicted", tuning.panels(), options.plot)
    return _head(site, tuning.provider, tuning.processors, "pml/crypt encrypts: over TCP only those with crypt_transport=pml, "
                 "which this does not set") + tuning.file_lines()


def _parameters(site: Site) -> list[tuple[str, list[str], str]]:
    """Of each the values to try, or why there are none."""
    threads = [str(threads) for threads in (2, 4, 8, 16) if threads <= site.each]
    return [("btl_crypt_eager_limit", ["66560", "135168", "528384"], ""),
            ("btl_crypt_rndv_eager_limit", ["65536", "262144"], ""),
            ("crypt_threads", threads, "a rank has one processor"),
            ("btl_crypt_ktls", ["auto"] if site.kernel else [], "not every node has the kernel's module tls")]


def _score(measured: list[Series], column: int) -> Spread:
    """Time over the default's."""
    ratios = [series.ratio(column, DEFAULT, size) for series in measured for size in range(len(series.sizes))]
    return Spread(*map(geometric_mean, zip(*ratios)))


def _choose(tried: list[str], measured: list[Series]) -> str | None:
    """The value to take; None: the default.  Says why."""
    again, rounds = _score(measured, AGAIN), len(measured[0].rounds)
    limit = least = min(1 - WORTH, again.low, 1 / again.high) if rounds >= ENOUGH else 0
    best = None
    for value, column in zip(["default", *tried], range(AGAIN, FIRST + len(tried))):
        mine = _score(measured, column)
        say(f"    {value:<10} {mine.median:.3f} (quartiles {mine.low:.3f}, {mine.high:.3f})")
        if column >= FIRST and mine.median < least and mine.high < 1:
            least, best = mine.median, value
    say(f"    {best or 'The default'} is taken (less than {limit:.3f} would be better)." if limit else
        f"    The default stays, as it would after any {rounds} rounds.")
    return best


def _btl(options: SimpleNamespace, site: Site) -> list[str]:
    require(options.plot is None and not options.no_search,
            "--plot and --no-search are about the model of pml/crypt, and btl/crypt encrypts these jobs")
    plan, of_sizes = site.plan, QUICK_SIZES if options.quick else SIZES
    rounds = options.rounds or (ENOUGH if options.quick else 7)
    taken, rows = [], []            # PARAMETER=VALUE, and results
    for name, tried, lacking in _parameters(site):
        if not tried:
            say(f"{name}: not tried, as {lacking}")
            continue
        say(f"{name}: time over that of the default, {rounds} to {2 * rounds} rounds of "
            f"{len(PATTERNS) * (FIRST + len(tried))} jobs")
        measured = []
        for pattern in PATTERNS:
            columns = [plan.plain(), plan.crypt(name, *taken), plan.crypt(f"{name} again", *taken),
                       *(plan.crypt(f"{name}={value}", *taken, f"{name}={value}") for value in tried)]
            measured.append(Series(site, pattern, columns, of_sizes).measure(rounds, 2 * rounds))
            rows += measured[-1].results()
        if best := _choose(tried, measured):
            taken.append(f"{name}={best}")
    table.to_csv(rows, options.csv)
    lines = [setting.replace("=", " = ", 1) for setting in taken]
    return _head(site, site.provider, site.each, "btl/crypt encrypts") + (lines or ["# Every default was best."])


def _messages(options: SimpleNamespace, plan: Plan) -> None:
    """The first job says what all of them use."""
    site = Site.find(plan, Variant(2), encrypted=True)
    say(f"{site.protection}\n{site.library}\n{site.where}\nTCP congestion control: {site.tcp}\n")
    lines = (_btl if site.protection.startswith("btl/") else _pml)(options, site)
    out = options.out
    with writing(out) as file:
        file.writelines(f"{line}\n" for line in lines)
    best = "" if lines[-1][0] != "#" else "Every default is best; the file has only a comment.  "
    say(f"\n{best}Written to {out}.  Jobs read it by\n    mpirun --mca pml crypt --mca mca_base_param_files {out} ./app")


def main(options: SimpleNamespace, _tool: Tool) -> None:
    options.out = options.out or ("coll-cryptag.rules" if options.coll else "ompi-crypt-tuned.conf")
    figure.check_outputs(options)
    plan = Plan(options.mpirun, options.mapping, program(options.program), options.host, int(options.bits),
                options.laps or (3 if options.quick else 5), options.lap_ms, not options.no_pin, options.cpus_per_rank)
    (_coll if options.coll else _messages)(options, plan)
