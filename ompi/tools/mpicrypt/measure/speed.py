# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Plots of what `mpicrypt speed`, which is C, has measured."""
from __future__ import annotations

import json
import sys
from types import SimpleNamespace

from . import figure
from .figure import Panel
from .table import Row
from .verb import Tool, Verb

VERB = Verb("speed", {})


def panels(rows: list[Row]) -> list[Panel]:
    """One for each key size and number of threads, a curve for each provider."""
    found: dict[tuple[int, int], Panel] = {}
    for row in rows:
        bits, threads, size = (int(row[name]) for name in ("bits", "threads", "bytes"))
        panel = found.setdefault((bits, threads), Panel(f"{bits} bits, {threads} thread{'s' * (threads > 1)}",
                                                        "message size (bytes)", "GB/s", True, False, linear=True))
        if size > 0:
            low, middle, high = (size * threads / float(row[f"seal_ns{name}"]) for name in ("_q3", "", "_q1"))
            panel.add(str(row["provider"]), size, middle, low, high)
    return list(found.values())


def main(options: SimpleNamespace, _tool: Tool) -> None:
    figure.draw("AES-GCM sealing", panels(json.load(sys.stdin)["results"]), options.plot)
