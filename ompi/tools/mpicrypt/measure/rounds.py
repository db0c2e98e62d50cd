# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Rounds: in each, every column has one job, in rotating order, until the one stopping rule is satisfied.

A machine may flip between speeds.  A round in which plain was slow is kept, but not counted: ratios are of FAST rounds.
"""
from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field
from statistics import quantiles
from typing import NamedTuple

from .jobs import WINDOW, Column, Site
from .table import Row

NEAR_BEST = 1.10
NEWS_AFTER = 20                 # seconds between lines about progress, where that is no terminal


class Spread(NamedTuple):
    low: float                  # quartiles
    median: float
    high: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        if len(values) < 2:
            return cls(*(values or [math.nan]) * 3)
        return cls(*quantiles(values, n=4, method="inclusive"))


class Progress:
    """On stderr: a bar on a terminal, else a line from time to time."""
    last = time.monotonic()

    @classmethod
    def show(cls, label: str, done: int, total: int) -> None:
        percent = done * 100 // total
        if sys.stderr.isatty():
            print(f"\r[{'#' * (done * 40 // total):40}] {percent:3}% {label:24.24}", end="", file=sys.stderr, flush=True)
        elif time.monotonic() - cls.last >= NEWS_AFTER:
            cls.last = time.monotonic()
            print(f"mpicrypt: {percent}% of the most that this step takes, {label}", file=sys.stderr)

    @staticmethod
    def end() -> None:
        if sys.stderr.isatty():
            print(f"\r{'':74}\r", end="", file=sys.stderr, flush=True)


@dataclass
class Series:
    """Every value of a pattern, at several sizes.  `together`: one job measures all columns, and all rounds count as FAST."""
    site: Site
    pattern: str
    columns: list[Column]
    sizes: list[int]
    together: bool = False
    rounds: list[list[list[float]]] = field(default_factory=list)      # [round][column][size]: seconds

    def measure(self, rounds: int, most: int) -> Series:
        """Until `rounds` of them are FAST at every size, or `most` have been run."""
        count = len(self.columns)
        while len(self.rounds) < most and (fast := self.fewest_fast()) < rounds:
            turn = len(self.rounds)
            times: dict[int, list[float]] = {}
            for step in range(1 if self.together else count):
                first = 0 if self.together else (turn + step) % count
                columns = self.columns if self.together else [self.columns[first]]
                Progress.show(f"{fast} {'done' if self.together else 'FAST'}: {columns[0].label}", turn * count + step,
                              most * count)
                times.update(enumerate(self.site.times(self.pattern, columns, self.sizes), first))
            self.rounds.append([times[number] for number in range(count)])
        Progress.end()
        return self

    def fast(self, size: int) -> list[list[list[float]]]:
        """The rounds in which plain (column 0) took at most 1.1 times the first quartile of its times."""
        limit = NEAR_BEST * Spread.of([one[0][size] for one in self.rounds]).low
        return [one for one in self.rounds if self.together or one[0][size] <= limit]

    def fewest_fast(self) -> int:
        return min(len(self.fast(size)) for size in range(len(self.sizes)))

    def us(self, column: int, size: int) -> Spread:
        return Spread.of([1e6 * one[column][size] for one in self.fast(size)])

    def ratio(self, column: int, to: int, size: int) -> Spread:
        """Of the time of a column to that of another, within a round."""
        return Spread.of([one[column][size] / one[to][size] for one in self.fast(size)])

    # ---- results ----

    @property
    def variant(self) -> str:
        variant = self.site.variant
        if self.pattern == "pairs":
            return f"1 pair x {WINDOW}"
        return f"{variant.nodes}x{variant.width} {variant.order}" if variant.nodes else self.pattern

    def results(self) -> list[Row]:
        return [self._result(size, column) for size in range(len(self.sizes)) for column in range(len(self.columns))]

    def _result(self, size: int, column: int) -> Row:
        fast, ranks = self.fast(size), self.site.variant.ranks
        slow = [one for one in self.rounds if one not in fast]
        us, ratio = self.us(column, size), self.ratio(column, 0, size)
        # Bytes in that time: in a window, or those that a rank gets from others.
        moved = {"pairs": WINDOW, "allgather": ranks - 1, "alltoall": ranks - 1}.get(self.pattern, 1)
        return {"pattern": self.pattern, "variant": self.variant, "ranks": ranks, "bytes": self.sizes[size],
                "column": self.columns[column].label, "bits": self.columns[column].bits,
                "fast_rounds": len(fast), "rounds": len(self.rounds), "us": us.median, "us_q1": us.low, "us_q3": us.high,
                "iqr_percent": 100 * (us.high - us.low) / us.median, "MBps": moved * self.sizes[size] / us.median,
                "ratio": ratio.median, "ratio_q1": ratio.low, "ratio_q3": ratio.high, "slow_rounds": len(slow),
                "slow_ratio": Spread.of([one[column][size] / one[0][size] for one in slow]).median,
                "work_percent": 0, "comm_ratio": ratio.median}          # no pattern of ours computes
