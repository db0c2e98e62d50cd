# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt tune: measure these nodes and write what suits them."""
from __future__ import annotations

import pathlib
import sys
import time
from types import SimpleNamespace

from . import figure, fit, table, tune_btl, tune_coll
from .jobs import Plan, Site, Variant, program
from .tune_pml import Tuning
from .verb import Tool, Verb, between, cannot_write, choice, choices, require, say, size, sizes, writable

VERB = Verb("tune", {
    "shape": tune_coll.shapes, "order": choices("block", "cyclic"), "size": between(0, 1 << 30, sizes),
    "rounds": between(0, 1000, size), "laps": between(1, 1000, size), "lap-ms": between(0.001, 60000, float),
    "bits": choice("128", "192", "256"), "mpirun": str.split, "mapping": str.split, "host": choice("ob1", "ucx", "cm"),
    "cpus-per-rank": between(0, 1024, size),
})


def _write(path: str, lines: list[str]) -> None:
    text = "".join(line + "\n" for line in lines)
    if path == "-":
        print(text, end="")
        return
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise cannot_write(path, error) from error


def _coll(options: SimpleNamespace, plan: Plan) -> None:
    plan.host, plan.cpus_per_rank = plan.host or "ob1", plan.cpus_per_rank or 1
    out = options.out
    of_sizes = options.size or (tune_coll.QUICK_SIZES if options.quick else tune_coll.SIZES)
    lines, rows = tune_coll.tune(plan, tune_coll.variants(options.shape, options.order), of_sizes,
                                 options.rounds or (2 if options.quick else 5), sys.stderr if out == "-" else sys.stdout)
    _write(out, lines)
    table.to_csv(rows, options.csv)
    if out != "-":
        say(f"Written to {out}.  Jobs read it by\n    mpirun --mca pml crypt --mca coll_cryptag_rules_file {out} ./app")


def _head(site: Site, provider: str, processors: int, what: str) -> list[str]:
    hosts = ", ".join(place.host for place in site.places)
    return [f"# Written by mpicrypt tune on {time.strftime('%Y-%m-%d', time.gmtime())}, on {hosts} ({site.processor}),",
            f"# for {site.plan.host}, {site.plan.bits}-bit keys ({provider}),",
            f"# ranks with {processors} processor{'s' if processors != 1 else ''}, TCP congestion control {site.tcp}.", "#",
            "# mpirun --mca mca_base_param_files FILE reads it (instead of the files that Open MPI",
            "# reads by default), or copy it into one of those.  It is for jobs in which", f"# {what}."]


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


def _btl(options: SimpleNamespace, site: Site) -> list[str]:
    require(options.plot is None and not options.no_search,
            "--plot and --no-search are about the model of pml/crypt, and btl/crypt encrypts these jobs")
    rounds = options.rounds or (tune_btl.ENOUGH if options.quick else 7)
    taken, rows = tune_btl.tune(site, rounds, options.quick)
    table.to_csv(rows, options.csv)
    lines = [setting.replace("=", " = ", 1) for setting in taken]
    return _head(site, site.provider, site.each, "btl/crypt encrypts") + (lines or ["# Every default was best."])


def _messages(options: SimpleNamespace, plan: Plan) -> None:
    """The first job says what all of them use."""
    site = Site.find(plan, Variant(2), encrypted=True)
    say(f"{site.protection}\n{site.describe()}")
    lines = (_btl if site.protection.startswith("btl/") else _pml)(options, site)
    out = options.out
    _write(out, lines)
    best = "" if lines[-1][0] != "#" else "Every default is best; the file has only a comment.  "
    say(f"\n{best}Written to {out}.  Jobs read it by\n    mpirun --mca pml crypt --mca mca_base_param_files {out} ./app")


def main(options: SimpleNamespace, _tool: Tool) -> None:
    options.out = options.out or ("coll-cryptag.rules" if options.coll else "ompi-crypt-tuned.conf")
    figure.check(options.plot)
    writable(options.plot, options.csv, options.out)
    plan = Plan(options.mpirun, options.mapping, program(options.program), options.host, int(options.bits),
                options.laps or (3 if options.quick else 5), options.lap_ms, not options.no_pin, options.cpus_per_rank)
    (_coll if options.coll else _messages)(options, plan)
