# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""`mpicrypt bench all` and `--html`: one benchmark after another, on a self-contained page.  If one fails, the others go on."""
from __future__ import annotations

import copy
import csv
import html
import io
import os
import pathlib
import shlex
import socket
import time
from string import Template
from types import SimpleNamespace
from typing import Callable

from . import figure
from .columns import COLLECTIVES
from .figure import Panel
from .launch import launch
from .report import Report
from .table import Row
from .verb import (FAILED, OK, Refusal, Tool, cannot_write, complain, data, described, harmless, require, size, size_text,
                   words, writable)

ABOUT = {"speed": "How fast this machine seals and opens, by provider; no message is sent.", **described("bench", "patterns")}
del ABOUT["nas"]
# Single algorithms, and plain with other settings, are not compared with the papers.
PARTS = {"plain", "tuned", "raised", "socket", *",".join(COLLECTIVES.values()).split(",")} - {"auto"}


def _escaped(text: str) -> str:
    return html.escape(harmless(text))


def _begin(tool: Tool) -> str:
    version = launch([tool.path, "--version"], {}).out.split()
    with open("/proc/cpuinfo", errors="replace") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    values = {"version": " ".join(version[-1:]), "time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
              "host": socket.gethostname(), "processors": str(os.cpu_count()), "processor": " ".join(names[:1]),
              "command": shlex.join(["mpicrypt", "bench", *tool.words])}
    page = Template(pathlib.Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    return page.substitute({name: _escaped(value) for name, value in values.items()})


def _speed(rounds: int, lap_ms: float, tool: Tool) -> Report:
    """Runs mpicrypt speed; its CSV goes into a file in memory."""
    with open(os.memfd_create("results"), "r+", encoding="utf-8") as results:
        command = [tool.path, "speed", f"--rounds={rounds}", f"--batch-ms={0.3 * lap_ms:g}",
                   f"--csv=/proc/{os.getpid()}/fd/{results.fileno()}"]
        result = launch(command, {})
        if result.code != 0:
            raise Refusal(result.code, "mpicrypt speed failed", result.err)
        rows = list(csv.DictReader(results))
    return Report({}, result.out, rows, [], figure.speed_panels(rows))


def _picture(title: str, panels: list[Panel], lacking: list[Refusal]) -> str:
    """SVG, or nothing; `lacking` says why."""
    out = io.StringIO()
    try:
        figure.draw(title, panels, out)
    except Refusal as refusal:
        lacking.append(refusal)
        return ""
    return out.getvalue()[out.getvalue().index("<svg"):]


def _published(pattern: str) -> list[Row]:
    of_pattern = [paper for paper in data("papers")["ratios"] if paper["pattern"] == pattern]
    return [{"curve": f"paper: {paper['curve']}", "bytes": size(text), "ratio": ratio, "source": paper["source"]}
            for paper in of_pattern for text, ratio in paper["ratios"].items()]


def _beside_papers(name: str, rows: list[Row], lacking: list[Refusal]) -> str:
    """Our ratios beside theirs, and a table with their sources."""
    published = _published(name)
    if not published:
        return ""
    panel = Panel("time / plain: this run, and what the papers print", "message size (bytes)", "time / plain", True, True)
    for row in rows:
        label = str(row["column"])
        if row["bytes"] > 0 and (label[:-4] if label.endswith(("-128", "-192", "-256")) else label) not in PARTS:
            panel.add(f"{label}, {row['variant']}", row["bytes"], row["ratio"], row["ratio_q1"], row["ratio_q3"])
    for row in published:
        panel.add(row["curve"], row["bytes"], row["ratio"])
    cells = "".join(f"<tr><td>{_escaped(row['curve'])}</td><td>{size_text(row['bytes'])}</td><td>{row['ratio']:.3f}</td>"
                    f"<td>{_escaped(row['source'])}</td></tr>\n" for row in published)
    return words("published", picture=_picture("beside the papers", [panel], lacking), cells=cells)


def _section(name: str, found: Report | None, said: str, published: bool, lacking: list[Refusal]) -> str:
    pictures = _picture(name, found.panels, lacking) if found else ""
    pictures += _beside_papers(name, found.rows, lacking) if found and published else ""
    return words("section", name=name, about=_escaped(ABOUT[name]), pictures=pictures, open="" if pictures else " open",
                 said=_escaped(said))


def _one(options: SimpleNamespace, name: str, rounds: int, tool: Tool,
         run: Callable[..., Report]) -> tuple[Report | None, str, int]:
    """The report, its text, and the exit code."""
    if name == "io" and options.label is None:
        return None, "not measured: it needs a key of files (mpicrypt key new LABEL, then --label LABEL), and --dir", OK
    try:
        found = _speed(rounds, options.lap_ms or 10, tool) if name == "speed" else run(copy.copy(options), name)
        return found, found.text, found.code
    except Refusal as refusal:
        complain("bench", refusal)
        complain("bench", Refusal(FAILED, f"{name} failed (status {refusal.code}); its messages are above"))
        return None, f"{refusal.before}{refusal}", FAILED


def check(options: SimpleNamespace, pattern: str) -> None:
    require(pattern != "nas", "nas has no --html")
    require(not any((options.csv, options.raw, options.plot, options.json)),
            "all and --html have no --csv, --raw, --plot and --json")
    require(pattern != "all" or not (options.schemes or options.local),
            "--schemes and --local are for one benchmark, not for all")
    writable(options.html)


def run(options: SimpleNamespace, pattern: str, rounds: int, tool: Tool, measure: Callable[..., Report]) -> int:
    """Each benchmark takes the options that are its own; `rounds` are those of mpicrypt speed."""
    code, lacking = OK, []
    try:
        with open(options.html or os.devnull, "w", encoding="utf-8") as out:
            print(_begin(tool), end="", file=out, flush=True)
            for name in ABOUT if pattern == "all" else [pattern]:
                found, said, failed = _one(options, name, rounds, tool, measure)
                code = code or failed
                if options.html:
                    print(_section(name, found, said, options.published, lacking), end="", file=out, flush=True)
                else:
                    print(f"== {name}\n\n{harmless(said)}\n", flush=True)
            print("</body>\n</html>", file=out)
    except OSError as error:
        raise cannot_write(options.html or "standard output", error) from error
    if lacking:
        raise lacking[0]
    return code
