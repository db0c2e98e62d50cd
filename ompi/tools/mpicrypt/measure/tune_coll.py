# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""`mpicrypt tune --coll`: the algorithms of coll/cryptag beside each other, and the fastest of each size goes into a rule:

    # operation  mapping  nodes  ranks-a-node  bytes  algorithm
      allgather  block    4      2             2048   hs2

Of the rules that apply the last one counts, so shapes go from small to large, and sizes within a shape; coll/cryptag's
built-in rules are before them all.
"""
from __future__ import annotations

from typing import TextIO

from .jobs import Plan, Site, Variant
from .rounds import Series
from .table import Row
from .verb import today, words

WORTH = 0.03                    # faster by less is noise
SIZES = [1, 256, *(1024 << shift for shift in range(11))]
QUICK_SIZES = [1, 4096, 65536, 1 << 20]
ALGORITHMS = {                  # the first is the automatic choice
    "allgather": "auto,hop,naive,o-ring,o-rd,o-rd2,c-ring,c-rd,hs1,hs2,hs3",
    "bcast": "auto,hop,binomial,chain",
    "alltoall": "auto,hop,node,rows,pairs",
}


def variants(of_shapes: list[tuple[int, int]], orders: list[str]) -> list[Variant]:
    """From small to large.  With one rank a node both orders are the same."""
    found = [Variant(nodes * width, nodes, width, order == "cyclic") for nodes, width in of_shapes for order in orders]
    found.sort(key=lambda variant: (variant.ranks, variant.cyclic))
    return [variant for number, variant in enumerate(found)
            if variant.width != 1 or number == 0 or found[number - 1].ranks != variant.ranks]


def _rules(series: Series) -> list[str]:
    """The algorithm of the size before unless another is worth it."""
    variant = series.site.variant
    mapping = "any" if variant.width == 1 else variant.order
    lines, last = [""], 0
    for size, count in enumerate(series.sizes):
        best = series.best(0, size)
        best = last if last and series.ratio(last, best, size).median <= 1 + WORTH else best
        name, ratio = series.columns[best].label, series.ratio(best, 0, size)
        lines.append(f"# {count}: {name} {series.us(best, size).median:.1f} us, {ratio.median:.2f} of the automatic choice "
                     f"({ratio.low:.2f} to {ratio.high:.2f})")
        if best != last:
            lines.append(f"{series.pattern:<9}  {mapping:<6}  {variant.nodes}  {variant.width}  {count if size else 0}  {name}")
        last = best
    return lines


def tune(plan: Plan, of_variants: list[Variant], sizes: list[int], rounds: int, report: TextIO) -> tuple[list[str], list[Row]]:
    """The lines of the file, and the results."""
    lines: list[str] = []
    rows: list[Row] = []
    for operation, names in ALGORITHMS.items():
        for variant in of_variants:
            site = Site.find(plan, variant)
            columns = [plan.crypt(name, algorithm=name) for name in names.split(",")]
            series = Series(site, operation, columns, sorted(sizes), every=True)
            print(f"{operation} {series.variant}: measuring, {rounds} jobs ...", file=report, flush=True)
            series.measure(rounds, rounds)
            lines = lines or words("collectives", date=today(), library=site.library, host=plan.host, bits=plan.bits, rounds=rounds,
                                   shared="; nodes that share one machine" * site.shared).splitlines()
            lines += _rules(series)
            rows += series.results()
            print(series.matrix(), end="", file=report, flush=True)
    return lines, rows
