# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Read files that ompi-crypt has encrypted.

    with ompi_crypt.open("result", label="results") as file:
        file.readinto(array)

Every byte that is returned was authenticated first.
"""
from ._file import File, open
from .errors import (AccessDenied, BadArgument, EncryptedFileError, FileMissing, Forged, Forked, NoKey, NotEncrypted, Torn,
                     Unexpected, Unfinished, UnsupportedFormat, Unusable)

__all__ = ["AccessDenied", "BadArgument", "EncryptedFileError", "File", "FileMissing", "Forged", "Forked", "NoKey",
           "NotEncrypted", "Torn", "Unexpected", "Unfinished", "UnsupportedFormat", "Unusable", "open"]
