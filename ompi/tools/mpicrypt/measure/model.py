# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt model: predictions for given parameters, and for machines that you do not have.  Nothing is measured."""
from __future__ import annotations

import math
import pathlib
from dataclasses import replace
from itertools import product
from types import SimpleNamespace
from typing import Any, Callable

from . import figure, formulas, table
from .predict import PATTERNS, Case, Setting, predict
from .table import Column, Row
from .verb import FAILED, MISSING, Refusal, Tool, Verb, between, choice, choices, require, size, sizes, writable

RANKS_MAX = 1 << 22
ROWS_MAX = 100000

COLUMNS = [
    Column("pattern", "pattern"), Column("nodes", "nodes"), Column("ranks_per_node", "ranks"), Column("gbps", "Gb/s"),
    Column("compute_percent", "comp %"), Column("bytes", "size"), Column("messages", "msgs"), Column("threads", "t"),
    Column("k", "k"), Column("plain_us", "plain us", 2), Column("naive_us", "naive us", 2), Column("crypt_us", "crypt us", 2),
    Column("naive_ratio", "naive/plain", 3), Column("crypt_ratio", "crypt/plain", 3), Column("bound", "bound")]

VERB = Verb("model", {
    "comm": formulas.parse_comm, "enc": formulas.parse_enc, "pattern": choices(*PATTERNS), "size": between(0, 1 << 50, sizes),
    "nodes": between(2, RANKS_MAX, sizes), "ranks": between(1, 4096, sizes), "gbps": between(0, 1000000, sizes),
    "latency": between(0, 1e9, float), "oversubscription": between(1e-9, 1e9, float), "hwthreads": between(1, 65536, size),
    "threads": between(0, 4096, sizes), "k": between(0, 1 << 20, sizes), "window": between(1, RANKS_MAX, size),
    "opening": choice("after", "while"), "compute": between(0, 99, sizes),
})


# ---- the setting ----

def _profile(name: str, directory: str) -> Setting:
    """A file of MCA parameters: `name` is one of those in `directory`, or a path (with a slash in it)."""
    path = name if "/" in name else f"{directory}/{name}.conf"
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        there = sorted(found.stem for found in pathlib.Path(directory).glob("*.conf"))
        known = "; there are: " + ", ".join(there) if there else ""
        raise Refusal(MISSING, f"cannot read the profile {path}: {error.strerror}{known}") from error
    values: dict[str, Any] = {}
    parsers: dict[str, Callable[[str], Any]] = {
        "mpicrypt_model_comm": formulas.parse_comm, "mpicrypt_model_enc": formulas.parse_enc,
        "pml_crypt_chop_min": size, "mpicrypt_comm_threads": size, "pml_crypt_chunk_size": size,
        "pml_crypt_t": lambda value: formulas.check_rule(value) if ":" in value else None}
    for line in text.split("\n"):
        if line := line.partition("#")[0].strip():
            name, equals, value = (part.strip() for part in line.partition("="))
            if not equals:
                raise Refusal(FAILED, f"{path}: '{line}' is not 'name = value'")
            try:
                values[name] = parsers[name](value) if name in parsers else None
            except ValueError as error:
                raise Refusal(FAILED, f"{path}: {name}: {error}") from error
    model = formulas.Model(values.get("mpicrypt_model_comm", ()), values.get("mpicrypt_model_enc", ()))
    return Setting(model, values.get("pml_crypt_chop_min", 64 << 10), values.get("mpicrypt_comm_threads", 1))


def _setting(options: SimpleNamespace, profiles: str) -> Setting:
    setting = _profile(options.profile, profiles)
    comm, enc = options.comm or setting.model.comm, options.enc or setting.model.enc
    if not comm or not enc:
        raise Refusal(FAILED, f"the profile {options.profile} has no model, only a table; give --comm and --enc")
    if options.latency is not None:
        comm = tuple(replace(piece, alpha=options.latency) for piece in comm)
    return replace(setting, model=formulas.Model(comm, enc), hwthreads=options.hwthreads, window=options.window,
                   oversubscription=options.oversubscription, open_after=options.opening == "after")


def _check(options: SimpleNamespace) -> None:
    threads, ranks = max(1, *options.threads), max(options.ranks)
    require(threads * ranks <= options.hwthreads,
            f"--threads: {threads} for each of {ranks} ranks are more than the {options.hwthreads} hardware threads of "
            "a node (--hwthreads)")
    require(max(options.nodes) * ranks <= RANKS_MAX, f"--nodes and --ranks: more than {RANKS_MAX} ranks")
    require(not options.json or options.csv != "-", "--json and --csv - both want standard output")
    figure.check(options.plot)
    writable(options.csv, options.plot)


# ---- the plot: the first that varies is the x axis, what else varies names the curves ----

KEYS = {"bytes": ("message size (bytes)", ""), "nodes": ("nodes", " nodes"), "ranks": ("ranks of a node", " ranks"),
        "gbps": ("link (Gb/s)", " Gb/s"), "threads": ("threads", " threads"), "k": ("k", " chunks"),
        "compute": ("computation (%)", "% comp.")}
CHOSEN = {"gbps": "own link", "threads": "t chosen", "k": "k chosen"}


def _panels(cases: list[Case], rows: list[Row]) -> list[figure.Panel]:
    x, *named = [key for key in KEYS if len({getattr(case, key) for case in cases}) > 1] or ["bytes"]
    plain = [key for key in named if key not in ("threads", "k")]       # these change the encrypted time only
    panels: dict[str, tuple[figure.Panel, figure.Panel]] = {}
    for case, row in zip(cases, rows):
        time, ratio = panels.setdefault(case.pattern, (
            figure.Panel(f"{case.pattern}: time", KEYS[x][0], "us", x == "bytes", False),
            figure.Panel(f"{case.pattern}: over plain", KEYS[x][0], "ratio", x == "bytes", True)))
        for kind, column, keys in (("encrypted", "crypt", named), ("naive", "naive", plain), ("plain", "plain", plain)):
            values = [(key, getattr(case, key)) for key in keys]
            curve = " ".join([kind, *(CHOSEN[key] if value == 0 and key in CHOSEN else f"{value}{KEYS[key][1]}"
                                      for key, value in values)])
            time.add(curve, getattr(case, x), row[f"{column}_us"])
            if kind != "plain":
                ratio.add(curve, getattr(case, x), row[f"{column}_ratio"])
    return [panel for pair in panels.values() for panel in pair]


# ---- the verb ----

def main(options: SimpleNamespace, tool: Tool) -> None:
    _check(options)
    lists = [getattr(options, name) for name in ("pattern", "gbps", "nodes", "ranks", "compute", "threads", "k", "size")]
    combinations = math.prod(map(len, lists))
    require(combinations <= ROWS_MAX, f"{combinations} predictions are more than {ROWS_MAX}")
    setting = _setting(options, tool.profiles)
    cases = [Case(*values) for values in product(*lists)]           # the size changes fastest
    rows = [predict(setting, case) for case in cases]
    comm, enc = formulas.to_text(setting.model.comm), formulas.to_text(setting.model.enc)
    if options.json:
        print(table.document("model", {"model": {"comm": comm, "enc": enc}}, rows), end="")
    elif options.csv != "-":
        print(f"Predicted, not measured.  Model: comm {comm}\n{'':32}enc  {enc}\n\n{table.text(COLUMNS, rows)}", end="")
    table.to_csv(rows, options.csv)
    figure.draw("Predicted by the model", _panels(cases, rows), options.plot)
