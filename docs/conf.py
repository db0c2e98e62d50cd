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

man_pages = [
    ("mpicrypt", "mpicrypt", "encrypted MPI: keys, checks, measurements, files", [author], 1),
    ("parameters", "ompi-crypt-parameters", "parameters of ompi-crypt", [author], 7),
    ("mpi-io", "ompi-crypt-files", "encrypted files of MPI programs", [author], 7),
    ("security", "ompi-crypt-security", "what ompi-crypt promises, and what not", [author], 7),
]
man_show_urls = True
