# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# What the Python of bench, tune and model computes is what their C did: measure/NAME.expected has its output for what is
# recorded in measure/NAME.cases, from the commit before each went.  The axes of plots are tried, too.
set -eu
. "$SRC/tests/lib.sh"
cd "$CASE_DIR"
# For the algorithms of then: a new one is no change of what is computed.
cp -RL "$SRC/ompi/tools/mpicrypt" tool
cp "$SRC/tests/tool/measure/algorithms.h" tool/measure/
python=/usr/bin/python3; [ -x $python ] || python=python3
$python -I -B "$SRC/tests/tool/measure/check.py" "$PWD/tool" "$SRC/tests/tool/measure" "$1"
