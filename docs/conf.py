# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Sphinx: `make docs` in a build tree.
import math
import pathlib
import re

from docutils import nodes
from docutils.parsers.rst import Directive

project = "ompi-crypt"
author = "The ompi-crypt authors"
copyright = "2026 " + author
release = pathlib.Path(__file__).parent.parent.joinpath("VERSION").read_text().strip()
version = release

extensions = []
exclude_patterns = []
nitpicky = True
highlight_language = "none"

html_theme = "alabaster"
html_theme_options = {"description": "Encrypted MPI for an installed Open MPI", "page_width": "70em"}
html_show_sourcelink = False

man_pages = [       # those of section 1 are what --help prints (ompi/tools/mpicrypt/pages)
    ("mpicrypt", "ompi-crypt-mpicrypt", "encrypted MPI: keys, checks, measurements, files", [author], 7),
    ("parameters", "ompi-crypt-parameters", "parameters of ompi-crypt", [author], 7),
    ("mpi-io", "ompi-crypt-files", "encrypted files of MPI programs", [author], 7),
    ("security", "ompi-crypt-security", "what ompi-crypt promises, and what not", [author], 7),
]
man_show_urls = True


class Messages(Directive):
    """`.. messages:: PATH`: the texts of a help file, by topic, as they stand in it."""

    required_arguments = 1

    def run(self):
        path = pathlib.Path(__file__).parent.parent / self.arguments[0]
        self.state.document.settings.env.note_dependency(str(path))
        words = re.split(r"^\[(.+)\]$", path.read_text(), flags=re.M)
        listed = nodes.definition_list()
        for topic, text in zip(words[1::2], words[2::2]):
            text = "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip("\n")
            text = re.sub(r"%(l*u|zu|[dps])", "...", text)
            listed += nodes.definition_list_item("", nodes.term("", "", nodes.literal("", topic)),
                                                 nodes.definition("", nodes.literal_block(text, text)))
        return [listed]


class Ratios(Directive):
    """`.. ratios:: COLUMN ...`: draws these columns of the table before it."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self):
        return [nodes.raw("", "", format="html", columns=self.arguments[0].split())]


COLORS = ["#777777", "#d55e00", "#0072b2", "#009e73", "#cc79a7"]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 640, 300, 50, 40, 30


def drawing(rows, columns):
    """Ratios to plain on a logarithmic scale, a line for each column."""
    head, body = rows[0], rows[1:]
    values = {name: [float(row[head.index(name)]) for row in body] for name in columns}
    scale = [0.25, 0.5, 1, 2, 4, 8]
    low = max(v for v in scale if v <= min(map(min, values.values())))
    high = min(v for v in scale if v >= max(map(max, values.values())))
    x = [LEFT + 20 + i * (WIDTH - LEFT - 40) / max(len(body) - 1, 1) for i in range(len(body))]

    def y(value):
        return TOP + (HEIGHT - TOP - BOTTOM) * (math.log(high) - math.log(value)) / (math.log(high) - math.log(low))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" role="img" '
           f'aria-label="time over plain: {", ".join(columns)}" font-family="sans-serif" font-size="12">']
    for value in scale:
        if low <= value <= high:
            out.append(f'<line x1="{LEFT}" x2="{WIDTH}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="#ccc" '
                       f'stroke-width="{2 if value == 1 else 1}"/><text x="{LEFT - 6}" y="{y(value) + 4:.1f}" '
                       f'text-anchor="end">{value:g}</text>')
    for place, row in zip(x, body):
        out.append(f'<text x="{place:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{row[0]}</text>')
    for i, (name, color) in enumerate(zip(columns, COLORS)):
        points = " ".join(f"{a:.1f},{y(v):.1f}" for a, v in zip(x, values[name]))
        out.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        out += [f'<circle cx="{a:.1f}" cy="{y(v):.1f}" r="3" fill="{color}"/>' for a, v in zip(x, values[name])]
        out.append(f'<text x="{LEFT + 20 + 110 * i}" y="16" fill="{color}">{name}</text>')
    return "\n".join(out + ["</svg>"])


def draw(app, doctree):
    for place in doctree.findall(nodes.raw):
        if place.get("columns"):
            before = [node for node in doctree.findall() if isinstance(node, nodes.table) or node is place]
            table = before[before.index(place) - 1]
            rows = [[entry.astext() for entry in row.children] for row in table.findall(nodes.row)]
            place += nodes.Text(drawing(rows, place["columns"]))


def setup(app):
    app.add_directive("messages", Messages)
    app.add_directive("ratios", Ratios)
    app.connect("doctree-read", draw)
    return {"parallel_read_safe": True}
