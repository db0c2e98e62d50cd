# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""
    gate.py MPI.H > CALLS.H

An MPI_NAME for each PMPI_NAME that returns an error code, with the macro GATE of gate.c around it.
"""
import re
import sys

text = re.sub(r"/\*.*?\*/|^#.*?(?<!\\)$", "", open(sys.argv[1]).read(), flags=re.S | re.M)
calls = re.findall(r"\bint\s+PMPI_(\w+)\s*\(([^;]*?)\)\s*(__\w+[^;]*)?;", text)
for name, parameters in {name: parameters for name, parameters, attributes in calls if "removed" not in attributes}.items():
    parameters = " ".join(parameters.split())
    if "..." not in parameters:
        named = [] if parameters == "void" else parameters.split(",")
        names = ", ".join(re.search(r"(\w+)\s*(?:\[\w*\]\s*)*$", one)[1] for one in named)
        print(f"int MPI_{name}({parameters}) {{ GATE(PMPI_{name}({names})); }}")
