# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt bench nas: programs of the NAS Parallel Benchmarks in every column; the times of CryptMPI's Table III: between
nodes, of all communication and of the run.  mpicrypt-times.so, loaded before the unchanged programs, takes them."""
from __future__ import annotations

import math
import os
import re
from statistics import mean
from types import SimpleNamespace
from typing import NamedTuple

from . import report, table
from .jobs import LIBEXEC, Column, Plan, Site, Variant, failed
from .launch import launch
from .rounds import Progress, Spread
from .table import Row
from .verb import FAILED, MISSING, Refusal, data, require


class Times(NamedTuple):
    inter: float
    comm: float
    run: float
    own: float                  # "Time in seconds", which the program prints


def _program(options: SimpleNamespace, name: str) -> str:
    """bin/cg.C.64 (NPB 3.3) or bin/cg.C.x (3.4)."""
    letter, ranks = getattr(options, "class"), options.ranks[0]
    found = [f"{options.npb}/bin/{name}.{letter}.{ending}" for ending in (ranks, "x")]
    for path in found:
        if os.access(path, os.X_OK):
            return path
    raise Refusal(MISSING, f"there is neither {found[0]} nor {found[1]}; build it there (make {name} CLASS={letter}, and for "
                  f"NPB 3.3 NPROCS={ranks})")


def check(options: SimpleNamespace) -> None:
    require(options.npb is not None, "nas needs --npb DIR")
    require(len(options.ranks) == 1, "nas takes one number of --ranks: its programs are built for it")
    for name in options.kernels:
        _program(options, name)


def _start(site: Site, column: Column, path: str) -> Times:
    """The times of one run, whose result the program has verified."""
    command = [*site.launcher(), "env", f"LD_PRELOAD={LIBEXEC / 'mpicrypt-times.so'}", path]
    result = launch(command, site.environment(column))
    if result.code != 0:
        raise failed(command, column.label, result)
    timed = result.said("times", 3)
    own = re.findall(r"Time in seconds.*?=\s*([-+.0-9eE]+)", result.out)
    if not timed or not re.search("Verification.* SUCCESSFUL", result.out):
        raise Refusal(FAILED, f"column {column.label}: {path} did not say that its verification was successful, or its times "
                      "are missing (it has to use MPI through C, mpif.h or `use mpi`)", result.err)
    return Times(*map(float, timed[-1]), float(own[-1]) if own else math.nan)


def _row(name: str, programs: list[list[list[Times]]], number: int, column: Column, ranks: int) -> Row:
    """The sums over these programs, and the overheads of the sums."""
    mine, plain = (Times(*(sum(mean(getattr(one, what) for one in program[place]) for program in programs)
                           for what in Times._fields)) for place in (number, 0))
    run = Spread.of([one.run for one in programs[0][number]]) if len(programs) == 1 else Spread.of([])
    overheads = {f"{what}_overhead_percent": 100 * (getattr(mine, what) / of - 1) if (of := getattr(plain, what)) else math.nan
                 for what in ("inter", "comm", "run")}
    return {"program": name, "ranks": ranks, "column": column.label, "bits": column.bits, "rounds": len(programs[0][number]),
            "inter_s": mine.inter, "comm_s": mine.comm, "run_s": mine.run,
            "run_iqr_percent": 100 * (run.high - run.low) / run.median, "own_s": mine.own, **overheads}


def _table_iii(programs: list[str]) -> str:
    lines = ["", "CryptMPI's Table III (class D, 784 ranks on 112 nodes of PSC Bridges, CG 512 on 128): seconds, and overhead"]
    for program, rows in data("papers")["table_iii"].items():
        for name, times in rows.items() if program in programs else ():
            parts = [f"{what} {time:6.2f} {100 * (time / plain - 1):+6.1f}%"
                     for what, time, plain in zip(("inter-node", "comm", "run"), times, rows["plain"])]
            lines.append(f"{program:<8} {name:<8}  {'   '.join(parts)}")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def run(options: SimpleNamespace, plan: Plan, columns: list[Column]) -> report.Report:
    ranks, kernels, count = options.ranks[0], options.kernels, len(columns)
    site = Site.find(plan, Variant(ranks))
    times: list[list[list[Times]]] = [[[] for _ in columns] for _ in kernels]      # [program][column][round]
    try:
        for turn in range(options.fast):
            for number, name in enumerate(kernels):
                for step in range(count):
                    column = (turn + step) % count
                    Progress.show(f"{name}: {columns[column].label}", (turn * len(kernels) + number) * count + step,
                                  options.fast * len(kernels) * count)
                    times[number][column].append(_start(site, columns[column], _program(options, name)))
    finally:
        Progress.end()
    groups = [(name, [one]) for name, one in zip(kernels, times)] + ([("sum", times)] if len(kernels) > 1 else [])
    rows = [_row(name, programs, number, column, ranks) for name, programs in groups for number, column in enumerate(columns)]
    head, text = report.conditions([site], [], columns, "nas", report.rule_of(options))
    text += table.text("nas", rows) + (_table_iii(kernels) if options.published else "")
    return report.Report(head, text, rows)
