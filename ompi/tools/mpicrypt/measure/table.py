# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Results: a list of flat objects, as JSON has them.  Printed tables and CSV are views of it."""
from __future__ import annotations

import csv
import json
import math
from types import SimpleNamespace
from typing import Any, NamedTuple

from .verb import data, harmless, size_text, writing

Row = dict[str, Any]


class Column(NamedTuple):
    """Of a printed table."""
    name: str
    heading: str
    decimals: int = 0


def _printed(column: Column, value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{column.decimals}f}" if math.isfinite(value) else "-"
    return size_text(value) if column.name == "bytes" else str(value)


def text(columns: str | list[Column], rows: list[Row]) -> str:
    """Aligned: text to the left, numbers to the right.  Columns by name are those in tables.json."""
    if isinstance(columns, str):
        columns = [Column(*column) for column in data("tables")[columns]]
    lines = [""] * (1 + len(rows))
    for column in columns:
        cells = [column.heading, *(_printed(column, row[column.name]) for row in rows)]
        width = max(map(len, cells))
        align = str.ljust if isinstance(rows[0][column.name], str) else str.rjust
        lines = [f"{line}  {align(cell, width)}" for line, cell in zip(lines, cells)]
    return "".join(f"{line[2:]}\n" for line in lines)


def _rounded(row: Row) -> Row:
    """Six digits; None for what cannot be given."""
    return {name: value if not isinstance(value, float) else float(f"{value:.6g}") if math.isfinite(value) else None
            for name, value in row.items()}


def to_csv(rows: list[Row], path: str | None) -> None:
    """To a file, if there is to be one; "-" is standard output."""
    if path is not None:
        with writing(path) as out:
            writer = csv.DictWriter(out, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows({name: f"{value:.6g}" if isinstance(value, float) else value
                              for name, value in _rounded(row).items()} for row in rows)


def document(verb: str, head: Row, rows: list[Row]) -> str:
    """The JSON that docs/mpicrypt.rst describes: a line for each result."""
    members = json.dumps({"format": 1, "verb": verb, **head}, indent=2)[:-2]
    return f'{members},\n  "results": [\n    ' + ",\n    ".join(json.dumps(_rounded(row)) for row in rows) + "\n  ]\n}\n"


def show(options: SimpleNamespace, verb: str, head: Row, printed: str, rows: list[Row]) -> None:
    """What the options ask for: JSON or text, unless CSV takes the place of it; CSV in a file."""
    if options.json:
        print(document(verb, head, rows), end="")
    elif options.csv != "-":
        print(harmless(printed), end="")
    to_csv(rows, options.csv)
