# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""`mpicrypt tune` where btl/crypt encrypts: its parameters about speed, one after another, each with what was taken before.

All values of one are measured in the same rounds, beside the default and the default once more (A/A).  What counts is the time
over the default's, as the geometric mean of all sizes of a ping-pong and of a stream.  A value is taken if its median is less
than WORTH allows and less than the quartiles of the default's time over itself, and if three of four rounds say that it is
faster at all.  Quartiles of a few rounds say nothing, and nothing is taken then.
"""
from __future__ import annotations

from statistics import geometric_mean

from .jobs import Site
from .rounds import Series, Spread
from .table import Row
from .verb import say

WORTH = 0.02
SIZES = [1, 4096, 16384, 65536, 131072, 262144, 524288, 1 << 20, 4 << 20]
QUICK_SIZES = [1, 16384, 131072, 1 << 20]
PATTERNS = ("pingpong", "pairs")
DEFAULT, AGAIN, FIRST = 1, 2, 3         # columns; the first is plain
ENOUGH = 5


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


def tune(site: Site, rounds: int, quick: bool) -> tuple[list[str], list[Row]]:
    """PARAMETER=VALUE of what was taken, and the results."""
    plan = site.plan
    taken: list[str] = []
    rows: list[Row] = []
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
            measured.append(Series(site, pattern, columns, QUICK_SIZES if quick else SIZES).measure(rounds, 2 * rounds))
            rows += measured[-1].results()
        if best := _choose(tried, measured):
            taken.append(f"{name}={best}")
    return taken, rows
