# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Plots, by matplotlib, which is loaded only if one is asked for.  Every measured x is labeled.  The axis of a ratio ends at
twice what three of four points need; a point above it is drawn at the edge, with its value."""
from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, TextIO

from .verb import MISSING, Refusal, Tool, Verb, cannot_write, harmless, require, size_text, writable

VERB = Verb("speed", {})


@dataclass
class Panel:
    title: str
    x_label: str
    y_label: str
    sized: bool                     # x in bytes
    ratio: bool                     # y is a ratio, on a linear axis
    linear: bool = False
    curves: dict[str, dict[float, float]] = field(default_factory=dict)      # [name][x]: y
    spreads: dict[str, dict[float, tuple[float, float]]] = field(default_factory=dict)

    def add(self, curve: str, x: float, y: float, low: float = math.nan, high: float = math.nan) -> None:
        curve = harmless(curve).replace("$", "\\$")         # not a formula
        if math.isfinite(y):
            self.curves.setdefault(curve, {})[x] = y
            if math.isfinite(low + high):
                self.spreads.setdefault(curve, {})[x] = (low, high)

    def limit(self) -> float:
        """Where the axis ends."""
        values = sorted(y for curve in self.curves.values() for y in curve.values())
        if not self.ratio or not values:
            return math.inf
        top = max([values[-1], *(high for curve in self.spreads.values() for _, high in curve.values())])
        return min(top * 1.05, 2 * max(1.0, values[3 * (len(values) - 1) // 4]))


def check_outputs(options: SimpleNamespace) -> None:
    """Before a long measurement: can everything be written that is asked for?"""
    files = {name: getattr(options, name, None) for name in ("plot", "csv", "raw", "out", "json")}
    require(not files.pop("json") or files["csv"] != "-", "--json and --csv - both want standard output")
    require(not files["plot"] or files["plot"].lower().endswith((".svg", ".png")),
            f"--plot: {files['plot']} ends in neither .svg nor .png")
    writable(*files.values())


def _draw(axes: Any, panel: Panel, colors: dict[str, str]) -> None:
    limit = panel.limit()
    for name, points in panel.curves.items():
        at = sorted(points)
        axes.plot(at, [min(points[x], limit) for x in at], color=colors[name], marker="o", markersize=3, label=name)
        for x, (low, high) in panel.spreads.get(name, {}).items():
            axes.plot([x, x], [min(low, limit), min(high, limit)], color=colors[name], linewidth=3, alpha=0.4)
        for x in at:
            if points[x] > limit:
                axes.annotate(f"{points[x]:.3g}", (x, limit), color=colors[name], fontsize="x-small", ha="center")
    axes.set(title=panel.title, xlabel=panel.x_label, ylabel=panel.y_label)
    places = sorted({x for curve in panel.curves.values() for x in curve})
    if len(places) > 1 and places[0] > 0:
        axes.set_xscale("log", base=2)
    axes.set_xticks(places, [size_text(int(x)) if panel.sized else f"{x:g}" for x in places],
                    rotation=45 if len(places) > 8 else 0)
    axes.set_xticks([], minor=True)
    if panel.ratio:
        axes.axhline(1, color="gray", linewidth=0.8)
        axes.set_ylim(0, None if math.isinf(limit) else limit)
    elif panel.linear:
        axes.set_ylim(bottom=0)
    elif all(y > 0 for curve in panel.curves.values() for y in curve.values()):
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.01, 1))


def draw(title: str, panels: list[Panel], path: str | None | TextIO) -> None:
    """Two panels in a row.  A curve has the same color in all of them.  An open file gets SVG, without references."""
    if path is None:
        return
    try:
        import matplotlib
    except ImportError as error:
        raise Refusal(MISSING, "there is no plot: it needs matplotlib (Debian: python3-matplotlib)") from error
    matplotlib.rcdefaults()             # no matplotlibrc of the current directory
    matplotlib.use("agg")
    matplotlib.rcParams["svg.fonttype"] = "none"        # text stays text
    from matplotlib import pyplot
    names = dict.fromkeys(name for panel in panels for name in panel.curves)
    colors = {name: f"C{number % 10}" for number, name in enumerate(names)}
    columns = min(2, len(panels))
    rows = (len(panels) + columns - 1) // columns
    height = max(4.5, 0.22 * max(len(panel.curves) for panel in panels))
    figure, grid = pyplot.subplots(rows, columns, squeeze=False, layout="constrained", figsize=(7.5 * columns, rows * height))
    figure.suptitle(title)
    for axes in grid.flat[len(panels):]:
        axes.set_axis_off()
    for axes, panel in zip(grid.flat, panels):
        _draw(axes, panel, colors)
    try:
        if isinstance(path, str):
            figure.savefig(path)
        else:
            figure.savefig(path, format="svg", metadata={name: None for name in ("Creator", "Date", "Format", "Type")})
    except OSError as error:
        raise cannot_write(path, error) from error


def speed_panels(rows: list[dict[str, Any]]) -> list[Panel]:
    """Of mpicrypt speed, which is C: one for each key size and number of threads, a curve for each provider."""
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
    """`mpicrypt speed --plot`: its JSON is standard input."""
    draw("AES-GCM sealing", speed_panels(json.load(sys.stdin)["results"]), options.plot)
