# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# leakscan.py puts TCP streams together: captures made by hand, in which the
# canary and the train are cut, repeated, in disorder, across the end of the
# sequence numbers; and one in which a byte is missing.
set -eu
. "$SRC/tests/lib.sh"
cd "$CASE_DIR"
must python3 "$SRC/tests/attack/leakscan/streams.py" "$SRC/tests/attack/leakscan/leakscan.py"
