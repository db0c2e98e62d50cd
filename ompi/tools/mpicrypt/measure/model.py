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
from .verb import FAILED, MISSING, Option, Refusal, Tool, Verb, between, choice, choices, require, size, sizes, writable

RANKS_MAX = 1 << 22
ROWS_MAX = 100000

COLUMNS = [
    Column("pattern", "pattern"), Column("nodes", "nodes"), Column("ranks_per_node", "ranks"), Column("gbps", "Gb/s"),
    Column("compute_percent", "comp %"), Column("bytes", "size"), Column("messages", "msgs"), Column("threads", "t"),
    Column("k", "k"), Column("plain_us", "plain us", 2), Column("naive_us", "naive us", 2), Column("crypt_us", "crypt us", 2),
    Column("naive_ratio", "naive/plain", 3), Column("crypt_ratio", "crypt/plain", 3), Column("bound", "bound")]

VERB = Verb(
    name="model",
    summary="predict times for machines that you do not have",
    synopsis="[--profile NAME] [--pattern LIST] [--size LIST] [--nodes LIST] [OPTION]...",
    description=
    "Predicts how long communication takes plain, naively encrypted (encrypt, send, decrypt) and with (k,t)-chopping, by the "
    "models of the papers on encrypted MPI. Nothing is measured or sent, so it works for machines that you do not have.\n\n"
    "Each combination of the lists gives one line. 'pingpong' is one message, one way. 'pairs' is the multiple-pair "
    "benchmark: every rank of a node sends --window messages without waiting. A stencil is one step: every rank sends one "
    "message to each neighbor in a periodic grid, and neighbors on other nodes count. 'alltoall' is one message to every rank "
    "of another node. 'msgs' is how many messages a rank sends to other nodes; 'bound' is what limits the encrypted run, the "
    "link or the cipher.\n\n"
    "More threads or another link speed than were measured are extrapolations.",
    options=(
        Option("profile", str, "NAME", "noleland", "Parameters of the model: an installed profile (bridges, noleland), or a "
               "file of MCA parameters with a slash in its name, for example from 'mpicrypt tune'."),
        Option("comm", formulas.parse_comm, "MODEL", None, "Replaces the profile's communication: FROM:ALPHA:BETA,... as in a "
               "profile (bytes, microseconds, microseconds a byte)."),
        Option("enc", formulas.parse_enc, "MODEL", None, "Replaces the profile's encryption: FROM:ALPHA:A:B,... as in a "
               "profile (bytes, microseconds, bytes a microsecond of the first and of each further thread)."),
        Option("pattern", choices(*PATTERNS), "LIST", "pingpong", "What is sent: pingpong, pairs, stencil2d, stencil3d, "
               "stencil4d, alltoall."),
        Option("size", between(0, 1 << 50, sizes), "LIST", "64K,256K,1M,4M", "Message sizes in bytes; K, M and G are powers "
               "of 1024."),
        Option("nodes", between(2, RANKS_MAX, sizes), "LIST", "2", "Numbers of nodes."),
        Option("ranks", between(1, 4096, sizes), "LIST", "1", "Ranks of a node. They share its link and its hardware "
               "threads."),
        Option("gbps", between(0, 1000000, sizes), "LIST", "0", "Link speeds in 10^9 bits a second. 0 is the speed that was "
               "measured for the profile."),
        Option("latency", between(0, 1e9, float), "US", None, "Latency in microseconds. Default: the profile's."),
        Option("oversubscription", between(1e-9, 1e9, float), "FACTOR", "1", "How much slower a link is when all nodes use "
               "the network."),
        Option("hwthreads", between(1, 65536, size), "N", "64", "Hardware threads of a node."),
        Option("threads", between(0, 4096, sizes), "LIST", "0", "Encrypting threads of a rank. 0 is the model's choice, "
               "within the rank's share of hardware threads less those for communication."),
        Option("k", between(0, 1 << 20, sizes), "LIST", "0", "Chunks of a message in the ping-pong. 0 is the model's choice. "
               "In the other patterns k is 1."),
        Option("window", between(1, RANKS_MAX, size), "N", "64", "For pairs: messages in flight for each rank."),
        Option("opening", choice("after", "while"), "WHEN", "after", "When a rank decrypts: 'after' all messages have "
               "arrived, or 'while' they arrive."),
        Option("compute", between(0, 99, sizes), "LIST", "0", "Computation in percent of the plain time. Not for pingpong."),
        Option("csv", str, "FILE", None, "Also write the predictions as CSV. '-' is standard output, instead of the table."),
        Option("json", None, None, None, "Print JSON instead of the table."),
        Option("plot", str, "FILE", None, "Also plot the predictions. FILE ends in .svg or .png. It needs matplotlib (Debian: "
               "python3-matplotlib)."),
    ),
    examples="mpicrypt model --size 64K,512K,4M --threads 1,2,4,8,16,32,64\n"
             "mpicrypt model --gbps 100,400 --size 1M,4M,16M --plot link.svg\n"
             "mpicrypt model --pattern stencil3d --nodes 64,1024,8192 --ranks 16 --compute 60")

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
