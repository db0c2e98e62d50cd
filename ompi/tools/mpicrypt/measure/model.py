# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt model: predictions, also for machines that you do not have.  pingpong is one message between two nodes,
(k,t)-chopped; in the other patterns every rank of a node sends and receives several, unchopped: the window formula."""
from __future__ import annotations

import math
import pathlib
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from operator import add, ne
from types import SimpleNamespace
from typing import Any, Callable, NamedTuple

from . import figure, formulas, table
from .formulas import Model, choose, powers
from .table import Row
from .verb import FAILED, MISSING, Refusal, Tool, Verb, between, choice, choices, data, require, size, sizes

DIMENSIONS = {"stencil2d": 2, "stencil3d": 3, "stencil4d": 4}
PATTERNS = ("pingpong", "pairs", *DIMENSIONS, "alltoall")
RANKS_MAX = 1 << 22
ROWS_MAX = 100000

VERB = Verb("model", {
    "comm": formulas.parse_comm, "enc": formulas.parse_enc, "pattern": choices(*PATTERNS), "size": between(0, 1 << 50, sizes),
    "nodes": between(2, RANKS_MAX, sizes), "ranks": between(1, 4096, sizes), "gbps": between(0, 1000000, sizes),
    "latency": between(0, 1e9, float), "oversubscription": between(1e-9, 1e9, float), "hwthreads": between(1, 65536, size),
    "threads": between(0, 4096, sizes), "k": between(0, 1 << 20, sizes), "window": between(1, RANKS_MAX, size),
    "opening": choice("after", "while"), "compute": between(0, 99, sizes),
})


@dataclass(frozen=True)
class Setting:
    """What all cases of a run have in common."""
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


def grid(ranks: int, dimensions: int) -> list[int]:
    """The most even factors, like those of MPI_Dims_create: each the largest that is not above the root of what is left."""
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
    """Messages of a step that leave a node, from the rank and from the node with the most of them.  Ranks are numbered row by
    row in a periodic grid, and `ranks` consecutive ones share a node."""
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


def _profile(name: str, directory: str) -> dict[str, Any]:
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
    return values


def _setting(options: SimpleNamespace, profiles: str) -> Setting:
    values = _profile(options.profile, profiles)
    comm, enc = options.comm or values.get("mpicrypt_model_comm"), options.enc or values.get("mpicrypt_model_enc")
    if not comm or not enc:
        raise Refusal(FAILED, f"the profile {options.profile} has no model, only a table; give --comm and --enc")
    if options.latency is not None:
        comm = tuple(replace(piece, alpha=options.latency) for piece in comm)
    return Setting(Model(comm, enc), values.get("pml_crypt_chop_min", 64 << 10), values.get("mpicrypt_comm_threads", 1),
                   options.hwthreads, options.window, options.oversubscription, options.opening == "after")


AXES = data("tables")["axes"]           # by what varies: the axis's label, the unit in a curve's name, and what 0 is called


def _panels(cases: list[Case], rows: list[Row]) -> list[figure.Panel]:
    x, *named = [key for key in AXES if len({getattr(case, key) for case in cases}) > 1] or ["bytes"]
    plain = [key for key in named if key not in ("threads", "k")]       # these change the encrypted time only
    panels: dict[str, tuple[figure.Panel, figure.Panel]] = {}
    for case, row in zip(cases, rows):
        time, ratio = panels.setdefault(case.pattern, (
            figure.Panel(f"{case.pattern}: time", AXES[x][0], "us", x == "bytes", False),
            figure.Panel(f"{case.pattern}: over plain", AXES[x][0], "ratio", x == "bytes", True)))
        for kind, column, keys in (("encrypted", "crypt", named), ("naive", "naive", plain), ("plain", "plain", plain)):
            values = [(key, getattr(case, key)) for key in keys]
            curve = " ".join([kind, *(f"{value}{AXES[key][1]}" if value else AXES[key][2] for key, value in values)])
            time.add(curve, getattr(case, x), row[f"{column}_us"])
            if kind != "plain":
                ratio.add(curve, getattr(case, x), row[f"{column}_ratio"])
    return [panel for pair in panels.values() for panel in pair]


def main(options: SimpleNamespace, tool: Tool) -> None:
    threads, ranks = max(1, *options.threads), max(options.ranks)
    require(threads * ranks <= options.hwthreads,
            f"--threads: {threads} for each of {ranks} ranks are more than the {options.hwthreads} hardware threads of "
            "a node (--hwthreads)")
    require(max(options.nodes) * ranks <= RANKS_MAX, f"--nodes and --ranks: more than {RANKS_MAX} ranks")
    figure.check_outputs(options)
    lists = [getattr(options, name) for name in ("pattern", "gbps", "nodes", "ranks", "compute", "threads", "k", "size")]
    combinations = math.prod(map(len, lists))
    require(combinations <= ROWS_MAX, f"{combinations} predictions are more than {ROWS_MAX}")
    setting = _setting(options, tool.profiles)
    cases = [Case(*values) for values in product(*lists)]           # the size changes fastest
    rows = [predict(setting, case) for case in cases]
    comm, enc = formulas.to_text(setting.model.comm), formulas.to_text(setting.model.enc)
    table.show(options, "model", {"model": {"comm": comm, "enc": enc}},
               f"Predicted, not measured.  Model: comm {comm}\n{'':32}enc  {enc}\n\n{table.text('model', rows)}", rows)
    figure.draw("Predicted by the model", _panels(cases, rows), options.plot)
