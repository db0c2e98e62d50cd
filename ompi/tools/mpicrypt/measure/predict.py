# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""One prediction of `mpicrypt model`.

pingpong is one message between two nodes, (k,t)-chopped.  In the other patterns every rank of a node sends some messages
without waiting and receives as many: the window formula, unchopped.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from operator import add, ne
from typing import NamedTuple

from .formulas import Model, choose, powers
from .table import Row

DIMENSIONS = {"stencil2d": 2, "stencil3d": 3, "stencil4d": 4}
PATTERNS = ("pingpong", "pairs", *DIMENSIONS, "alltoall")


@dataclass(frozen=True)
class Setting:
    """What is the same for all cases of a run."""
    model: Model
    chop_min: int
    comm_threads: int
    hwthreads: int = 64         # of a node
    window: int = 64
    oversubscription: float = 1
    open_after: bool = True


class Case(NamedTuple):
    pattern: str
    gbps: int                   # 0: as in the model
    nodes: int
    ranks: int                  # of a node
    compute: int                # percent of the plain time; not for pingpong
    threads: int                # 0: chosen by the model, as k
    k: int
    bytes: int


# ---- the neighbors of a stencil that are on other nodes ----

def grid(ranks: int, dimensions: int) -> list[int]:
    """The most even factors, as MPI_Dims_create is meant to choose them: each time the largest factor that is not above
    the root of what is left."""
    extent = []
    for left in range(dimensions, 1, -1):
        factor, best = 1, 1
        while factor**left <= ranks:
            best = best if ranks % factor else factor
            factor += 1
        extent.append(best)
        ranks //= best
    return extent + [ranks]


@lru_cache(maxsize=None)
def traffic(nodes: int, ranks: int, dimensions: int) -> tuple[int, int]:
    """Of a periodic grid of ranks, row by row, `ranks` consecutive ones on a node: the messages of a step that leave the
    node, for the rank with most of them, and for the busiest node."""
    home = [rank // ranks for rank in range(nodes * ranks)]
    leaving, stride = [0] * len(home), 1
    for extent in reversed(grid(len(home), dimensions)):
        block = stride * extent         # closed to a ring
        for shift in (stride, block - stride):
            for start in range(0, len(home), block):
                ring = home[start:start + block]
                elsewhere = map(ne, ring, ring[shift:] + ring[:shift])
                leaving[start:start + block] = map(add, leaving[start:start + block], elsewhere)
        stride = block
    return max(leaving), max(sum(leaving[start:start + ranks]) for start in range(0, len(home), ranks))


# ---- times ----

def _times(messages: int, threads: int, k: int, plain: float, naive: float, crypt: float, cipher: float, link: float) -> Row:
    return {"messages": messages, "threads": threads, "k": k, "plain_us": plain, "naive_us": naive, "crypt_us": crypt,
            "naive_ratio": naive / plain if plain else math.nan, "crypt_ratio": crypt / plain if plain else math.nan,
            "bound": "cipher" if cipher > link else "link"}


def _pingpong(model: Model, most: int, chop_min: int, case: Case) -> Row:
    chopped = case.bytes >= chop_min
    ks = [case.k] if case.k else powers(case.bytes) if chopped else [1]
    threads = [case.threads] if case.threads else [most] if case.k else range(1, most + 1) if chopped else [1]
    k, t = choose(model, case.bytes, ks, threads)
    chunk = case.bytes / k
    return _times(1, t, k, model.comm_us(case.bytes), model.chopped_us(case.bytes, 1, 1), model.chopped_us(case.bytes, k, t),
                  model.enc_us(chunk, 1, t), model.comm_us(chunk) - model.comm_us(0))


def _window(setting: Setting, model: Model, most: int, case: Case) -> Row:
    if case.pattern in DIMENSIONS:
        messages, of_node = traffic(case.nodes, case.ranks, DIMENSIONS[case.pattern])
    else:
        messages = (case.nodes - 1) * case.ranks if case.pattern == "alltoall" else setting.window
        of_node = messages * case.ranks
    flows = of_node / messages          # that share the link at any time
    threads = case.threads or (most if case.bytes >= setting.chop_min else 1)
    comm = model.comm_us(case.bytes, flows)
    naive, crypt = (model.window_us(case.bytes, messages, case.ranks, flows, t, setting.open_after) for t in (1, threads))
    computation = messages * comm * case.compute / (100 - case.compute)       # encryption does not make it slower
    return _times(messages, threads, 1, messages * comm + computation, naive + computation, crypt + computation,
                  model.enc_us(case.bytes, case.ranks, threads), comm)


def predict(setting: Setting, case: Case) -> Row:
    """A result of the JSON document."""
    model = setting.model.with_link(8 / (1000.0 * case.gbps) if case.gbps else None, setting.oversubscription)
    most = max(1, setting.hwthreads // case.ranks - setting.comm_threads)       # threads
    row = _pingpong(model, most, setting.chop_min, case) if case.pattern == "pingpong" else _window(setting, model, most, case)
    return {"pattern": case.pattern, "nodes": case.nodes, "ranks_per_node": case.ranks, "gbps": case.gbps,
            "compute_percent": case.compute, "bytes": case.bytes, **row}
