# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""How the papers measured (--paper), and the figures that they print (--published).

Messages follow CryptMPI, section V: its sizes, iterations, pairs, shares of computation and stopping rule.  What cannot be as
there is scaled down, and said.  Points that the papers only draw are not here.
"""
from __future__ import annotations

import math
from statistics import mean, stdev
from typing import NamedTuple

from . import verb
from .jobs import Site
from .rounds import Series
from .table import Row

LEAST, MOST = 10, 100           # rounds: before the deviation counts, and before the interval does
DEVIATION = 0.05                # of the mean
INTERVAL = 0.01                 # half of the 99% confidence interval, of the mean
NORMAL_99 = 2.576
SHAPES = [(8, 16), (7, 13)]     # of collectives
ROOM = 1e-9                     # for rounding, where processors are counted


class Paper(NamedTuple):
    sizes: str
    large: int                  # iterations: of messages from 1 MiB on, and of others
    small: int

    def iterations(self, size: int, percent: int) -> int:
        return max(1, (self.small if size < 1 << 20 else self.large) * percent // 100)


MESSAGES = {name: Paper(*values) for name, values in verb.data("papers")["messages"].items()}


def complete(series: Series, least: int) -> bool:
    """The stopping rule."""
    count = len(series.rounds)
    if count < max(2, least):
        return False
    worst = 0.0
    for column in range(len(series.columns)):
        for size in range(len(series.sizes)):
            values = [one[column][size] for one in series.rounds]
            worst = max(worst, stdev(values) / mean(values))
    return worst <= DEVIATION or (count >= MOST and NORMAL_99 * worst / math.sqrt(count) <= INTERVAL)


def scaling(pattern: str, percent: int, per_cpu: int, processors: float, site: Site) -> str:
    """What was not as in the paper.  `processors`: of a rank of one pair."""
    paper = MESSAGES[pattern]
    text = f"{paper.iterations(1 << 20, percent)} iterations a round from 1M on, else {paper.iterations(1, percent)}: "
    text += "as in the paper.\n" if percent == 100 else \
        f"{percent}% of the paper's {paper.large} and {paper.small} (--percent).\n"
    if pattern == "pairs" and per_cpu * processors < 16:
        text += verb.words("pairs", processors=processors, per_cpu=per_cpu)
    if pattern == "stencil" and site.variant.ranks != 784:
        text += verb.words("stencil", ranks=site.variant.ranks, nodes=site.nodes)
    return text


def shape_scaling(nodes: int, width: int, of_paper: int, processors: float, per_cpu: int) -> str:
    return verb.words("shape" if width == of_paper else "smaller", nodes=nodes, width=width, of_paper=of_paper,
                      ranks=nodes * width, ranks_of_paper=nodes * of_paper, processors=processors, per_cpu=per_cpu)


def ratios(pattern: str) -> list[Row]:
    return [{"curve": f"paper: {paper['curve']}", "bytes": verb.size(text), "ratio": ratio, "source": paper["source"]}
            for paper in verb.data("papers")["ratios"] if paper["pattern"] == pattern for text, ratio in paper["ratios"].items()]


def nas_table(programs: list[str]) -> str:
    lines = ["", "CryptMPI's Table III (class D, 784 ranks on 112 nodes of PSC Bridges, CG 512 on 128): seconds, and overhead"]
    for program, rows in verb.data("papers")["table_iii"].items():
        for name, times in rows.items() if program in programs else ():
            parts = [f"{what} {time:6.2f} {100 * (time / plain - 1):+6.1f}%"
                     for what, time, plain in zip(("inter-node", "comm", "run"), times, rows["plain"])]
            lines.append(f"{program:<8} {name:<8}  {'   '.join(parts)}")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""
