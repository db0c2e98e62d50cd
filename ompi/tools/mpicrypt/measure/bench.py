# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt bench PATTERN: the papers' benchmarks of communication, plain and encrypted compared within one run.

    for each variant (pairs, dimensions, computation, ranks on nodes):
        round 1: A B C ...   round 2: B C ... A   until the rule is satisfied

A letter is a job.  Most columns have a job of their own; those that are algorithms of a collective share one and take turns.
"""
from __future__ import annotations

import copy
import math
import sys
from itertools import product
from types import SimpleNamespace
from typing import NamedTuple

from . import figure, nas, page, report, table
from .columns import COLLECTIVES, Columns
from .jobs import OF_JOBS, RANKS_MAX, Column, Plan, Site, Variant, program
from .rounds import LEAST, MESSAGES, MOST, Series, paper_complete
from .verb import Refusal, Tool, Verb, between, choices, complain, names, require, size, sizes, words

MESSAGE_SIZES = "1,1K,4K,16K,64K,256K,1M,8M"
WORKLOADS, ACCESSES, OPS = ("tile", "noncontig", "rows", "matmul"), ("row", "column", "block"), ("write", "read", "overwrite")
ROOM = 1e-9                     # for rounding, where processors are counted


class Pattern(NamedTuple):
    sizes: str = MESSAGE_SIZES
    schemes: str = "tuned,naive,crypt"
    collective: bool = False


PATTERNS = {
    **dict.fromkeys(("pingpong", "pairs", "stencil"), Pattern()),
    "allgather": Pattern("1,1K,4K,16K,64K,256K,1M", COLLECTIVES["allgather"], True),
    "bcast": Pattern("1,1K,4K,16K,64K,128K,256K,1M", COLLECTIVES["bcast"], True),
    "alltoall": Pattern("1,1K,4K,16K,32K,64K,256K", COLLECTIVES["alltoall"], True),
    "io": Pattern(),
    "nas": Pattern(schemes="naive,crypt"),
}

VERB = Verb("bench", {
    **OF_JOBS, "schemes": names, "bits": choices("128", "192", "256"), "pairs": between(1, 1 << 16, sizes),
    "window": between(1, 1 << 16, size), "dims": between(2, 4, sizes), "compute": between(0, 95, sizes),
    "ranks": between(2, RANKS_MAX, sizes), "percent": between(1, 100, size), "per-cpu": between(1, 1024, size),
    "workload": choices(*WORKLOADS), "access": choices(*ACCESSES), "op": choices(*OPS), "data": between(1, 1 << 30, size),
    "row": between(1, 1 << 30, size), "block-size": between(512, 16 << 20, sizes), "kernels": names,
    "fast": between(1, 10000, size), "rounds": between(1, 10000, size), "cpus-per-rank": between(1, 1024, size),
}, operands=True)


def _rounds(options: SimpleNamespace, messages_of_paper: bool) -> None:
    """--fast and --rounds: the one that is not given follows the other."""
    least, most = (LEAST, MOST) if messages_of_paper else (9, 36)
    options.fast = options.fast or min(options.rounds or least, least)
    options.rounds = options.rounds or max(options.fast, most)
    if options.quick:
        options.fast, options.rounds, options.laps = min(options.fast, 3), min(options.rounds, 6), min(options.laps, 3)
    require(options.rounds >= options.fast, f"--rounds: {options.rounds} is not between {options.fast} and 10000")


def _as_in_paper(options: SimpleNamespace, name: str) -> None:
    if PATTERNS[name].collective:
        options.bits, options.shape = ["128", "256"], [(8, 16), (7, 13)]
        return
    require(name in MESSAGES, "--paper is for messages (pingpong, pairs, stencil) and collectives")
    options.bits, options.pairs, options.compute = ["128"], [1, 2, 4, 8, 16], [30, 60, 80]
    options.size = options.size or sizes(MESSAGES[name].sizes)
    options.window, options.laps, options.schemes = 64, 1, options.schemes or ["naive", "crypt"]


def _files(options: SimpleNamespace) -> None:
    """A file of whole rows for every rank, and rows of whole pieces."""
    require(not options.schemes, "--schemes: the columns of io are always plain, plain-cycles, messages and file")
    require(options.label is not None, "io needs --label")
    require(options.data % options.row == 0 and all(options.row % (16 * ranks) == 0 for ranks in options.ranks),
            "--row is a multiple of 16 x --ranks, --data one of --row")
    options.size = options.block_size
    for name, known, count in (("workload", WORKLOADS, 2), ("access", ACCESSES, 2), ("op", OPS, 2)):
        default = known[:count] if options.quick else known
        setattr(options, name, getattr(options, name) or list(default))


def settle(options: SimpleNamespace, name: str) -> None:
    """Everything that depends on the pattern."""
    pattern = PATTERNS[name]
    options.pattern, options.collective = name, pattern.collective
    options.paper_messages = options.paper and not pattern.collective
    require(not (pattern.collective and options.local), "--local is not for collectives, which are over all ranks")
    if options.paper:
        _as_in_paper(options, name)
    if name == "io":
        _files(options)
    _rounds(options, options.paper_messages)
    if name == "nas":
        require(options.raw is None and options.plot is None, "nas has no --raw and --plot")
    options.every = pattern.collective or name == "io" or options.paper_messages
    options.lap_ms = options.lap_ms or (50 if pattern.collective else 10)
    options.bits = [int(bits) for bits in options.bits]
    options.schemes = options.schemes or names(pattern.schemes)
    options.size = options.size or sizes(pattern.sizes)


def plan_of(options: SimpleNamespace) -> Plan:
    words = ["--both"] * options.both + ["--local"] * options.local
    if options.pattern == "io":
        words += [f"--io-dir={options.dir}", f"--data={options.data}", f"--row={options.row}"]
    paper = MESSAGES[options.pattern] if options.paper_messages else None
    return Plan(options.mpirun, options.mapping, "", options.host, options.bits[0], options.laps, options.lap_ms,
                not options.no_pin and options.pattern != "nas", options.cpus_per_rank, options.local, options.window,
                tuple(words), paper and (lambda size: paper.iterations(size, options.percent)))


def columns_of(options: SimpleNamespace, plan: Plan) -> list[Column]:
    columns = Columns(plan, options.pattern, options.bits, options.size, [])
    columns.named("plain")
    if options.collective:
        columns.collective(options.schemes, PATTERNS[options.pattern].schemes)
    elif options.pattern == "io":
        columns.files(options.label)
    else:
        for name in options.schemes:
            if name != "plain":
                columns.named(name)
    for text in options.operands:
        columns.custom(text)
    return columns.found


def _pairs(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    factor, both, where = options.window * (2 if options.both else 1), " both ways" * options.both, ", one node" * options.local
    return [Variant(2 * pairs, name=f"{pairs} pair{'s' * (pairs > 1)} x {options.window}{both}{where}",
                    words=(f"--pairs={pairs}", "--dims=2"), moved=lambda size, _, pairs=pairs: factor * pairs * size)
            for pairs in options.pairs]


def _stencils(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    many, where = len(options.ranks) > 1, ", one node" * options.local
    return [Variant(ranks, name=f"{dims}D {compute}%{f' {ranks} ranks' * many}{where}", words=("--pairs=1", f"--dims={dims}"),
                    moved=lambda size, messages: messages * size, compute=compute)
            for dims, ranks, compute in product(options.dims, options.ranks, options.compute)]


def _accesses(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    """In matmul a rank reads matrix B more than once, and computes: bytes in its time say nothing."""
    found = []
    for ranks, workload in product(options.ranks, options.workload):
        matmul = workload == "matmul"
        for access, op in [("row", "run")] if matmul else product(options.access, options.op):
            ending = f" {ranks} ranks" * (len(options.ranks) > 1) + ", one node" * options.local
            bytes_moved = math.nan if matmul else options.data * ranks
            found.append(Variant(ranks, name=f"{workload} {access} {op}{ending}", words=(
                "--pairs=1", "--dims=2", f"--workload={workload}", f"--access={access}", f"--op={op}"),
                moved=lambda _size, _messages, moved=bytes_moved: moved))
    return found


def _shapes(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    found, site = [], None
    for (nodes, width), order in product(options.shape, options.order):
        cyclic, of_paper, name = order == "cyclic", width, ""
        if options.paper:       # fewer ranks on a node, rather than more than --per-cpu on a processor
            if site is None or site.variant.nodes != nodes:
                site = Site.find(plan, Variant(nodes, nodes, 1, cyclic))
            width = min(max(1, int(options.per_cpu * site.processors + ROOM)), width)
            name = f"{nodes}x{width} {order} (paper: {nodes}x{of_paper})"
            options.scaling[name] = words(
                "shape" if width == of_paper else "smaller", nodes=nodes, width=width, of_paper=of_paper, ranks=nodes * width,
                ranks_of_paper=nodes * of_paper, processors=site.processors, per_cpu=options.per_cpu)
        found.append(Variant(nodes * width, nodes, width, cyclic, name))
    return found


def variants_of(options: SimpleNamespace, plan: Plan) -> list[Variant]:
    options.scaling, options.processors = {}, 0
    if options.pattern == "pingpong":
        return [Variant(2, name="pingpong" + ", one node" * options.local)]
    make = {"pairs": _pairs, "stencil": _stencils, "io": _accesses}.get(options.pattern, _shapes)
    found = make(options, plan)
    if options.paper and options.pattern == "pairs":        # as many as --per-cpu allows
        options.processors = Site.find(plan, found[0]).processors
        found = [one for number, one in enumerate(found)
                 if number == 0 or one.ranks / 2 <= options.per_cpu * options.processors + ROOM]
    return found


def _measure(options: SimpleNamespace, plan: Plan, columns: list[Column], variant: Variant) -> Series:
    """A stopping rule that was not satisfied is not a failure."""
    series = Series(Site.find(plan, variant), options.pattern, columns, options.size, options.every)
    if options.paper_messages:
        series.measure(options.fast, options.rounds, lambda series: paper_complete(series, options.fast))
        lacking = "" if paper_complete(series, options.fast) else \
            f"after {len(series.rounds)} rounds the paper's rule was not satisfied"
    else:
        series.measure(options.fast, options.rounds)
        lacking = "" if series.fewest_fast() >= options.fast else \
            f"{len(series.rounds)} rounds did not give {options.fast} FAST ones at every size"
    if lacking:
        print(f"mpicrypt bench: {series.variant}: {lacking}", file=sys.stderr)
    return series


def run(options: SimpleNamespace, name: str) -> report.Report:
    """What was measured; an error if nothing was."""
    settle(options, name)
    if name == "nas":
        nas.check(options)
    plan = plan_of(options)
    columns = columns_of(options, plan)
    plan.program = program(options.program)
    if name == "nas":
        return nas.run(options, plan, columns)
    done: list[Series] = []
    variants = variants_of(options, plan)
    for variant in variants:
        try:
            done.append(_measure(options, plan, columns, variant))
        except Refusal as refusal:          # keep what has been measured
            if not done:
                raise
            complain("bench", refusal)
            print(f"mpicrypt bench: only {len(done)} of {len(variants)} parts have been measured; these are shown",
                  file=sys.stderr)
            return report.of_series(options, columns, done, refusal.code)
    return report.of_series(options, columns, done)


def main(options: SimpleNamespace, tool: Tool) -> int:
    known = ", ".join(PATTERNS)
    require(bool(options.operands), f"which benchmark: {known} or all?")
    name = options.operands.pop(0)
    require(name in PATTERNS or name == "all", f"there is no benchmark '{name}', only {known}, all")
    if name == "all" or options.html is not None:
        page.check(options, name)
        counted = copy.copy(options)
        _rounds(counted, options.paper and not (name in PATTERNS and PATTERNS[name].collective))
        return page.run(options, name, counted.fast, tool, run)
    figure.check_outputs(options)
    found = run(options, name)
    table.show(options, "bench", found.head, found.text, found.rows)
    table.to_csv(found.raw, options.raw)
    figure.draw(name, found.panels, options.plot)
    return found.code
