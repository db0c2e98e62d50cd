# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Rounds: in each, every column has one job, in rotating order, until the stopping rule is satisfied.  As a machine may change
its speed, ratios are those of FAST rounds; rounds in which plain was slow are kept, but not counted."""
from __future__ import annotations

import math
import sys
import time
from dataclasses import dataclass, field
from statistics import mean, median, quantiles, stdev
from typing import Callable, NamedTuple

from . import table
from .jobs import WINDOW, Column, Site
from .table import Column as Heading, Row
from .verb import data

NEAR_BEST = 1.10
# CryptMPI's rule, in section V.
LEAST, MOST = 10, 100           # rounds: before the deviation counts, and before the interval does
DEVIATION, INTERVAL = 0.05, 0.01        # of the mean: standard deviation, and half of the 99% confidence interval
NORMAL_99 = 2.576
CALIBRATING = 3                 # jobs
NEWS_AFTER = 20                 # seconds between lines about progress, where that is no terminal


class Paper(NamedTuple):
    sizes: str
    large: int                  # iterations: of messages from 1 MiB on, and of others
    small: int

    def iterations(self, size: int, percent: int) -> int:
        return max(1, (self.small if size < 1 << 20 else self.large) * percent // 100)


MESSAGES = {name: Paper(*values) for name, values in data("papers")["messages"].items()}


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
    """On stderr: a bar on a terminal, otherwise a line from time to time."""
    last = time.monotonic()

    @classmethod
    def show(cls, label: str, done: int, total: int) -> None:
        percent, now = done * 100 // total, time.monotonic()
        if sys.stderr.isatty():
            print(f"\r[{'#' * (done * 40 // total):40}] {percent:3}% {label:24.24}", end="", file=sys.stderr, flush=True)
        elif now - cls.last >= NEWS_AFTER:
            cls.last = now
            print(f"mpicrypt: {percent}% of the most that this step takes, {label}", file=sys.stderr)

    @staticmethod
    def end() -> None:
        if sys.stderr.isatty():
            print(f"\r{'':74}\r", end="", file=sys.stderr, flush=True)


def _over(value: float, of: float) -> float:
    return value / of if of else math.nan


@dataclass
class Series:
    """Every value of a pattern, at several sizes.  `every`: all rounds count as FAST."""
    site: Site
    pattern: str
    columns: list[Column]
    sizes: list[int]
    every: bool = False
    rounds: list[list[list[float]]] = field(default_factory=list)      # [round][column][size]: seconds
    work: list[list[list[float]]] = field(default_factory=list)        # computation in that time
    messages: int = 0           # of a rank in a step

    def measure(self, rounds: int, most: int, complete: Callable[[Series], bool] | None = None) -> Series:
        """Until `rounds` of them are FAST at every size, or something else is complete; or until `most` have been run."""
        complete = complete or (lambda series: series.fewest_fast() >= rounds)
        try:
            units = self._calibrate()
            while len(self.rounds) < most and not complete(self):
                self._round(units, most)
        finally:
            Progress.end()
        return self

    def _calibrate(self) -> list[int]:
        """The units of work, by size, that take the wanted share of plain's time, from plain jobs without work."""
        share = self.site.variant.compute / 100
        if not share:
            return []
        jobs = [self.site.times(self.pattern, self.columns[:1], self.sizes, []) for _ in range(CALIBRATING)]
        unit = median(job.unit for job in jobs)
        return [int(median(job.seconds[0][size] for job in jobs) * share / (1 - share) / unit + 0.5)
                for size in range(len(self.sizes))]

    def together(self, column: int) -> list[int]:
        """The columns that one job measures with this one: algorithms in the same settings."""
        mine = self.columns[column]
        return [number for number, one in enumerate(self.columns)
                if number == column or (one.algorithm and mine.algorithm and one.settings == mine.settings)]

    def _round(self, units: list[int], most: int) -> None:
        count, turn, fast = len(self.columns), len(self.rounds), self.fewest_fast()
        found: dict[int, tuple[list[float], list[float]]] = {}          # seconds and work by column
        for step in range(count):
            numbers = self.together((turn + step) % count)
            if numbers[0] != (turn + step) % count:
                continue
            columns = [self.columns[number] for number in numbers]
            Progress.show(f"{fast} {'done' if self.every else 'FAST'}: {columns[0].label}", turn * count + step, most * count)
            job = self.site.times(self.pattern, columns, self.sizes, units)
            found.update(zip(numbers, zip(job.seconds, job.work)))
            self.messages = job.messages
        for part, values in enumerate((self.rounds, self.work)):
            values.append([found[number][part] for number in range(count)])

    def fast(self, size: int) -> list[int]:
        """The rounds in which plain (column 0) took at most 1.1 times the first quartile of its times."""
        limit = NEAR_BEST * Spread.of([one[0][size] for one in self.rounds]).low
        return [number for number, one in enumerate(self.rounds) if self.every or one[0][size] <= limit]

    def fewest_fast(self) -> int:
        return min(len(self.fast(size)) for size in range(len(self.sizes)))

    def us(self, column: int, size: int) -> Spread:
        return Spread.of([1e6 * self.rounds[number][column][size] for number in self.fast(size)])

    def ratio(self, column: int, to: int, size: int, numbers: list[int] | None = None) -> Spread:
        """The time of a column relative to that of another, within a round."""
        numbers = self.fast(size) if numbers is None else numbers
        return Spread.of([_over(self.rounds[number][column][size], self.rounds[number][to][size]) for number in numbers])

    @property
    def variant(self) -> str:
        variant = self.site.variant
        if self.pattern == "pairs" and not variant.name:
            return f"1 pair x {WINDOW}"
        return variant.name or (f"{variant.nodes}x{variant.width} {variant.order}" if variant.nodes else self.pattern)

    def results(self) -> list[Row]:
        return [self._result(size, column) for size in range(len(self.sizes)) for column in range(len(self.columns))]

    def _result(self, size: int, column: int) -> Row:
        variant, count, fast = self.site.variant, self.sizes[size], self.fast(size)
        slow = [number for number in range(len(self.rounds)) if number not in fast]
        us, ratio = self.us(column, size), self.ratio(column, 0, size)
        # Bytes in that time: of a window, or those that a rank receives.
        factor = {"pairs": WINDOW, "allgather": variant.ranks - 1, "alltoall": variant.ranks - 1}.get(self.pattern, 1)
        moved = variant.moved(count, self.messages) if variant.moved else factor * count
        pairs = [(self.rounds[number], self.work[number]) for number in fast]
        share = Spread.of([_over(work[column][size], mine[column][size]) for mine, work in pairs])
        comm = Spread.of([_over(mine[column][size] - work[column][size], mine[0][size] - work[0][size])
                          for mine, work in pairs])
        return {"pattern": self.pattern, "variant": self.variant, "ranks": variant.ranks, "bytes": count,
                "column": self.columns[column].label, "bits": self.columns[column].bits,
                "fast_rounds": len(fast), "rounds": len(self.rounds), "us": us.median, "us_q1": us.low, "us_q3": us.high,
                "iqr_percent": _over(100 * (us.high - us.low), us.median), "MBps": _over(moved, us.median),
                "ratio": ratio.median, "ratio_q1": ratio.low, "ratio_q3": ratio.high, "slow_rounds": len(slow),
                "slow_ratio": self.ratio(column, 0, size, slow).median, "work_percent": 100 * share.median,
                "comm_ratio": comm.median}

    def raw(self) -> list[Row]:
        """Every value."""
        return [{"pattern": self.pattern, "variant": self.variant, "bytes": count, "column": self.columns[column].label,
                 "round": number + 1, "fast": int(number in self.fast(size)), "us": 1e6 * one[column][size],
                 "work_us": 1e6 * self.work[number][column][size], "ratio": _over(one[column][size], one[0][size])}
                for size, count in enumerate(self.sizes) for column in range(len(self.columns))
                for number, one in enumerate(self.rounds)]

    def best(self, auto: int, size: int) -> int | None:
        """The fastest algorithm that shares the job of this column."""
        others = [column for column in self.together(auto) if column != auto]
        return min(others, key=lambda column: self.ratio(column, auto, size).median, default=None)

    def matrix(self) -> str:
        """A line for each size: times over those of the first column; the best algorithm, and auto's time over it."""
        first, *labels = [column.label for column in self.columns]
        autos = [number for number, column in enumerate(self.columns)
                 if column.algorithm == "auto" and self.best(number, 0) is not None]
        headings = [Heading("bytes", "size"), Heading("us", f"{first} us", 1), *(Heading(label, label, 2) for label in labels)]
        rows = [{"bytes": count, "us": self.us(0, size).median,
                 **{label: self.ratio(column, 0, size).median for column, label in enumerate(labels, 1)}}
                for size, count in enumerate(self.sizes)]
        for auto in autos:
            headings += [Heading(f"best {auto}", "best"), Heading(f"over {auto}", "auto/best", 2)]
            for size, row in enumerate(rows):
                best = self.best(auto, size)
                row.update({f"best {auto}": self.columns[best].label, f"over {auto}": self.ratio(auto, best, size).median})
        return f"{self.pattern} {self.variant}: times over those of {first}\n\n{table.text(headings, rows)}\n"


def paper_complete(series: Series, least: int) -> bool:
    """CryptMPI's stopping rule."""
    count = len(series.rounds)
    if count < max(2, least):
        return False
    worst = max(stdev(values) / mean(values) for column in range(len(series.columns)) for size in range(len(series.sizes))
                for values in [[one[column][size] for one in series.rounds]])
    return worst <= DEVIATION or (count >= MOST and NORMAL_99 * worst / math.sqrt(count) <= INTERVAL)
