# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Plain or encrypted: the table of docs/design/012-one-file.rst, row by row."""
from collections import namedtuple

from onefile_geometry import Bad
from onefile_map import FILE_MAGIC, Refused
from onefile_v1 import open_file

# What a process asks for: a label; fs_crypt_require; whether fs_crypt_plain_paths names the file; whether it writes.
Asks = namedtuple("Asks", "label require plain_path writes")

OUTCOMES = {
    "encrypted":   "the map decides",
    "no key":      "MPIX_ERR_CRYPT_NO_KEY",
    "forged":      "MPIX_ERR_CRYPT_FORGED",
    "version":     "refused: made by another version",
    "unfinished":  "refused: its maker was killed, or is at it",
    "make":        "made anew, under the maker's lock",
    "plain":       "a plain file",
    "empty":       "an empty file, to read",
    "emptied":     "refused: was encrypted and has been emptied",
    "overwritten": "refused: overwritten by a program without ompi-crypt",
    "not encrypted": "refused: it holds plain data",
}


def look(image, attribute, keys, asks):
    makes = asks.label and asks.writes
    plain_allowed = asks.plain_path and not asks.writes
    wants = asks.label or asks.require
    if image.size >= 16 and image.get(0, 16) == FILE_MAGIC:
        try:
            open_file(image, keys, attribute or b"")
            return "encrypted"
        except Refused as refused:
            how = refused.how.replace("-", " ")
            return "make" if how == "unfinished" and makes else how
    if image.size == 0:
        if attribute is None:
            return "make" if makes else "not encrypted" if asks.require and asks.writes else "plain"
        if makes:
            return "make"
        if asks.writes or asks.require:
            return "emptied"
        return "empty"
    if image.size == 512 and not any(image.get(0, 512)):    # its maker may have lost power before the header was there
        if makes:
            return "make"
        if attribute is not None:
            return "unfinished"
    if plain_allowed:
        return "plain"
    if attribute is not None:
        return "overwritten"
    return "not encrypted" if wants else "plain"


def every_way():
    for label in (False, True):
        for require in (False, True):
            for plain_path in (False, True):
                for writes in (False, True):
                    yield Asks(label, require, plain_path, writes)


__all__ = ["Asks", "Bad", "OUTCOMES", "every_way", "look"]
