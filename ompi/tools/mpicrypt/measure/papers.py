# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""How the papers measured (--paper), and the figures that they print (--published).

Messages follow CryptMPI, section V: its sizes, iterations, pairs, shares of computation and stopping rule.  What cannot be as
there is scaled down, and said.  Points that the papers only draw are not here.
"""
from __future__ import annotations

import math
from statistics import mean, stdev
from typing import NamedTuple

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


MESSAGES = {
    "pingpong": Paper("64K,128K,256K,512K,1M,2M,4M", 1000, 10000),
    "pairs": Paper("64K,4M", 100, 100),
    "stencil": Paper("64K,256K,2M", 1250, 1250),
}


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


def rule(least: int, most: int) -> str:
    return (f"As in the CryptMPI paper: in every round each column runs once, in rotating order; {least} rounds at least, and\n"
            f"on until the standard deviation of every time is within 5% of its mean, or, from {MOST} rounds on, its 99%\n"
            f"confidence interval within 1%; here at most {most} rounds (--rounds). Medians and quartiles are those of the\n"
            "rounds; a ratio is taken within a round.")


def scaling(pattern: str, percent: int, per_cpu: int, processors: float, site: Site) -> str:
    """What was not as in the paper.  `processors`: of a rank of one pair."""
    paper = MESSAGES[pattern]
    text = f"{paper.iterations(1 << 20, percent)} iterations a round from 1M on, else {paper.iterations(1, percent)}: "
    text += "as in the paper.\n" if percent == 100 else \
        f"{percent}% of the paper's {paper.large} and {paper.small} (--percent).\n"
    if pattern == "pairs" and per_cpu * processors < 16:
        text += (f"Fewer pairs than the paper's 16 where there would be more: a rank of one pair has {processors:.3g} "
                 f"processors,\nand with more than {per_cpu} ranks on each (--per-cpu) the scheduler would be measured.\n")
    if pattern == "stencil" and site.variant.ranks != 784:
        text += f"{site.variant.ranks} ranks on {site.nodes} nodes (--ranks) instead of the paper's 784 on 112.\n"
    return text


def shape_scaling(nodes: int, width: int, of_paper: int, processors: float, per_cpu: int) -> str:
    if width == of_paper:
        return f"{nodes} nodes with {width} ranks each, as in the paper.\n"
    return (f"{nodes} nodes with {width} ranks each instead of the paper's {of_paper} ({nodes * width} ranks instead of "
            f"{nodes * of_paper}): a node has {processors:.3g}\nprocessors, and with more than {per_cpu} ranks on each "
            "(--per-cpu) the scheduler would be measured.\n")


# ---- what the papers print: time over that of their plain MPI, 1 + the overhead that they give ----

NOLELAND = "CryptMPI (arXiv:2010.06471), Noleland, 100 Gb/s InfiniBand"
BRIDGES = "CryptMPI, PSC Bridges, 100 Gb/s Omni-Path"
LARGE = f"{BRIDGES}, 784 ranks on 112 nodes"
ETHERNET = "Naser et al. (IEEE CLUSTER 2019), 10 Gb/s Ethernet, AES-256"
INFINIBAND = "Naser et al. (IEEE CLUSTER 2019), 40 Gb/s InfiniBand, AES-256"
# Tables II and III there: 37.15 over 31.15 us, and so on.
SIXTY_FOUR = f"{ETHERNET}, 64 ranks on 8 nodes"
ALLGATHER = "Encrypted All-gather, Table III: Noleland, 128 ranks on 8 nodes, block order"
K, M = 1 << 10, 1 << 20

RATIOS = (
    ("pingpong", "naive, CryptMPI", NOLELAND, {64 * K: 3.021, 4 * M: 5.124}),
    ("pingpong", "CryptMPI", NOLELAND, {64 * K: 2.874, 4 * M: 1.133}),
    ("pingpong", "naive, Ethernet", f"{ETHERNET}, BoringSSL", {256: 1.059, 2 * M: 1.783}),
    ("pingpong", "naive, InfiniBand", f"{INFINIBAND}, BoringSSL", {256: 1.8093, 2 * M: 3.152}),
    ("pairs", "naive, 2 pairs", NOLELAND, {4 * M: 1.3487}),
    ("pairs", "CryptMPI, 2 pairs", NOLELAND, {4 * M: 1.0031}),
    ("pairs", "naive, 2 pairs, Bridges", BRIDGES, {4 * M: 2.7848}),
    ("pairs", "CryptMPI, 2 pairs, Bridges", BRIDGES, {4 * M: 1.0503}),
    ("stencil", "naive, 2D 60%", LARGE, {2 * M: 4.31}),
    ("stencil", "CryptMPI, 2D 60%", LARGE, {2 * M: 3.06}),
    ("stencil", "naive, 2D 80%", LARGE, {256 * K: 5.50}),
    ("stencil", "CryptMPI, 2D 80%", LARGE, {256 * K: 4.84}),
    ("allgather", "naive", ALLGATHER, {1: 3.932, 64: 3.6533, K: 2.1157, 4 * K: 1.7593, 16 * K: 1.5935, 32 * K: 1.8722,
                                       256 * K: 2.3651, 2 * M: 2.375}),
    ("allgather", "best", ALLGATHER, {1: 1.3149, 64: 1.3914, K: 1.0991, 4 * K: 0.8398, 16 * K: 0.5411, 32 * K: 0.6646,
                                      256 * K: 0.8758, 2 * M: 0.8603}),
    ("bcast", "BoringSSL", SIXTY_FOUR, {1: 1.193, 16 * K: 1.062, 4 * M: 1.448}),
    ("alltoall", "BoringSSL", SIXTY_FOUR, {1: 2.071, 16 * K: 1.172, 4 * M: 1.124}),
)


def ratios(pattern: str) -> list[Row]:
    return [{"curve": f"paper: {curve}", "bytes": size, "ratio": ratio, "source": source}
            for of, curve, source, values in RATIOS if of == pattern for size, ratio in values.items()]


# Seconds between nodes, of all communication, and of the run.
TABLE_III = {
    "cg": {"plain": (7.77, 13.17, 27.09), "naive": (13.91, 20.93, 37.84), "CryptMPI": (8.73, 14.80, 32.56)},
    "lu": {"plain": (6.30, 32.11, 52.17), "naive": (9.71, 36.06, 57.87), "CryptMPI": (8.80, 34.26, 56.24)},
    "sp": {"plain": (24.67, 35.94, 62.40), "naive": (31.62, 40.11, 68.18), "CryptMPI": (30.01, 39.54, 67.64)},
    "bt": {"plain": (26.49, 40.54, 69.89), "naive": (29.03, 42.67, 73.49), "CryptMPI": (28.54, 42.25, 73.06)},
}


def nas_table(programs: list[str]) -> str:
    lines = ["", "CryptMPI's Table III (class D, 784 ranks on 112 nodes of PSC Bridges, CG 512 on 128): seconds, and overhead"]
    for program, rows in TABLE_III.items():
        for name, times in rows.items() if program in programs else ():
            parts = [f"{what} {time:6.2f} {100 * (time / plain - 1):+6.1f}%"
                     for what, time, plain in zip(("inter-node", "comm", "run"), times, rows["plain"])]
            lines.append(f"{program:<8} {name:<8}  {'   '.join(parts)}")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""
