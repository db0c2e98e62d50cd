# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Which library to load.  `make install` writes its path here; the loader searches for a name as it does for any program."""

LIBRARY = "libmpicrypt_file.so.0"
