# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Sphinx: `make docs` in a build tree.
import pathlib

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
