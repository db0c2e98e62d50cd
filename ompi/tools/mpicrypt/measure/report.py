# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What `mpicrypt bench` prints: the conditions, the rule of rounds, and the results.  Each variant is placed on its own, and
conditions that differ are printed for each."""
from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from . import table
from .columns import describe
from .figure import Panel
from .jobs import Column, Site
from .rounds import MESSAGES, MOST, NEAR_BEST, Series
from .table import Row
from .verb import words

@dataclass
class Report:
    head: Row                   # of the JSON
    text: str
    rows: list[Row]
    raw: list[Row] = field(default_factory=list)
    panels: list[Panel] = field(default_factory=list)
    code: int = 0               # not 0: some of it could not be measured


def _same(values: list[Any], differs: Any) -> Any:
    return values[0] if all(value == values[0] for value in values) else differs


def conditions(sites: list[Site], names: list[str], columns: list[Column], pattern: str, rule: str) -> tuple[Row, str]:
    """Members of the JSON document, and the head of the text.  `names` are those of the variants."""
    places = [{"library": site.library, "nodes": site.nodes, "one_machine": site.shared, "ranks": site.pinning,
               "more_ranks_than_processors": site.crowded, "tcp": site.tcp} for site in sites]
    settings = {column.label: column.settings + ([f"coll_cryptag_{pattern}_algorithm={column.algorithm}"]
                                                 if column.algorithm else []) for column in columns}
    head = {"benchmark": pattern, **{name: _same([place[name] for place in places], None) for name in places[0]},
            "variants": [{"variant": name, **place} for name, place in zip(names, places)], "rule": rule, "columns": settings}
    lines = [_same([site.library for site in sites], "the library differs by variant"),
             _same([site.where for site in sites], "nodes and ranks: differs by variant")]
    if lines[1] != sites[0].where:
        lines += [f"    {name}: {site.where}" for name, site in zip(names, sites)]
    lines += [f"TCP congestion control: {_same([site.tcp for site in sites], 'differs by variant')}", ""]
    lines += [describe(column, before, pattern) for before, column in zip([None, *columns], columns)]
    return head, "\n".join([*lines, "", rule, "", ""])


def scaling(pattern: str, percent: int, per_cpu: int, processors: float, site: Site) -> str:
    """What differs from the paper.  `processors`: of a rank of one pair."""
    paper = MESSAGES[pattern]
    text = f"{paper.iterations(1 << 20, percent)} iterations a round from 1M on, else {paper.iterations(1, percent)}: "
    text += "as in the paper.\n" if percent == 100 else \
        f"{percent}% of the paper's {paper.large} and {paper.small} (--percent).\n"
    if pattern == "pairs" and per_cpu * processors < 16:
        text += words("pairs", processors=processors, per_cpu=per_cpu)
    if pattern == "stencil" and site.variant.ranks != 784:
        text += words("stencil", ranks=site.variant.ranks, nodes=site.nodes)
    return text


def rule_of(options: SimpleNamespace) -> str:
    """Of rounds, in words."""
    kind = "nas" if options.pattern == "nas" else "paper" if options.paper_messages else "every" if options.every else "fast"
    return words(kind, fast=options.fast, rounds=options.rounds, near=NEAR_BEST, most=MOST).rstrip()


def _panels(done: list[Series]) -> list[Panel]:
    """For each variant the times, and the ratios to plain, with quartiles."""
    panels = []
    for series in done:
        times = Panel(f"{series.variant}: time", "message size (bytes)", "time (us)", True, False)
        ratios = Panel(f"{series.variant}: relative to plain", "message size (bytes)", "time / plain", True, True)
        for row in series.results():
            if row["bytes"] > 0:
                times.add(row["column"], row["bytes"], row["us"], row["us_q1"], row["us_q3"])
                ratios.add(row["column"], row["bytes"], row["ratio"], row["ratio_q1"], row["ratio_q3"])
        panels += [times, ratios]
    return panels


def of_series(options: SimpleNamespace, columns: list[Column], done: list[Series], code: int = 0) -> Report:
    rows = [row for series in done for row in series.results()]
    head, text = conditions([series.site for series in done], [series.variant for series in done], columns, options.pattern,
                            rule_of(options))
    if options.paper_messages:
        text += scaling(options.pattern, options.percent, options.per_cpu, options.processors, done[0].site) + "\n"
    if options.collective:
        text += "".join(options.scaling.get(series.variant, "") + series.matrix() for series in done)
    return Report(head, text + table.text("bench", rows), rows, [row for series in done for row in series.raw()], _panels(done),
                  code)
