# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Prints C that compiles only if mpicrypt_file.h has the numbers, structures and functions of ompi_crypt._library."""
import ctypes

from ompi_crypt import _library, errors

NAMES = {1: "PLAIN", 2: "FORGED", 3: "TORN", 4: "KEY", 5: "UNEXPECTED", 6: "UNFINISHED", 7: "FORMAT", 8: "SETUP", 11: "FORKED",
         12: "ARGUMENT"}


def check(what, number):
    print(f'_Static_assert({what} == {number}, "{what}");')


print("#include <stddef.h>\n#include <mpicrypt_file.h>")
assert set(NAMES) == set(errors._STATUS)
for number, name in {**NAMES, errors._IO: "IO", errors._MEMORY: "MEMORY"}.items():
    check(f"MPICRYPT_FILE_ERR_{name}", number)
check("MPICRYPT_FILE_PLAIN", _library.PLAIN)
check("MPICRYPT_FILE_NOWHERE", f"{errors._NOWHERE}u")
for structure in (_library.Error, _library.Options, _library.Info, _library.Region):
    name = f"mpicrypt_file_{structure.__name__.lower()}_t"
    check(f"sizeof({name})", ctypes.sizeof(structure))
    for field, kind in structure._fields_:
        check(f"offsetof({name}, {field})", getattr(structure, field).offset)
        check(f"sizeof((({name} *) 0)->{field})", ctypes.sizeof(kind))
