# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# The Python package reads what mpicrypt encrypted, as any file is read; each kind of damage has its exception, and no byte
# of a damaged block is returned.  Its structures are those of the C header.
. "$SRC/tests/python/common.sh"

echo "--- the structures of the header"
python "$SRC/tests/python/layout.py" > layout.c
must cc -std=c11 -Wall -Werror -fsyntax-only -I"$PREFIX/include" layout.c
sed 's/== 1,/== 2,/' layout.c > other.c                # the comparison can fail
must_fail cc -std=c11 -fsyntax-only -I"$PREFIX/include" other.c 2> other.out

echo "--- files"
keys lab other
head -c 300001 /dev/urandom > plain
head -c 300001 /dev/urandom > plain2
: > nothing
seq 1 20000 > lines
encrypt plain file --block-size 4K
encrypt plain2 file2 --block-size 4K
encrypt nothing empty
encrypt lines text
encrypt plain sealed --block-size 4K
mpicrypt file seal sealed > seal.out
sed -n 's/^root //p' seal.out > root
must mpicrypt key new else --keystore-dir elsewhere
must python "$SRC/tests/python/basics.py"
