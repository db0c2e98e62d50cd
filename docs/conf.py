# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Sphinx: `make docs` in a build tree.
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

man_pages = [
    ("mpicrypt", "mpicrypt", "encrypted MPI: keys, checks, measurements, files", [author], 1),
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


def setup(app):
    app.add_directive("messages", Messages)
    return {"parallel_read_safe": True}
