# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What `mpicrypt` drives, fits, prints and draws: docs/design/013-measuring.rst."""
import sys

if sys.version_info < (3, 9):
    print("mpicrypt: this needs Python 3.9 or later, and %s is older" % sys.executable, file=sys.stderr)
    sys.exit(3)
