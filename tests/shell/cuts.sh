# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What kills and losses of power leave of a file, in a model of the order of writes: with the
# rules kept nothing is lost, and each rule that is left out is missed.  With "deep": longer.
set -eu
. "$SRC/tests/lib.sh"

must python3 -B "$SRC/tests/cuts/model.py" ${1:+"--$1"}
