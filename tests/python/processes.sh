# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Threads share a file, one of them may close it, a forked child reads nothing through it, and a pickled one is opened again.
. "$SRC/tests/python/common.sh"

keys lab
head -c 3000001 /dev/urandom > plain
encrypt plain file --block-size 4K
must python -X dev -W error "$SRC/tests/python/processes.py"
