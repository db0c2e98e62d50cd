# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# Files that jobs wrote: rows under two labels, of which a reader may have one key; a file that grows while it is open.
. "$SRC/tests/python/common.sh"

cluster_up 2
keys lab other
mkdir -m 700 one
cp -a keys/lab.* one/
convert=$(mpi_program io convert) named=$(mpi_program io named)
head -c 300001 /dev/urandom > plain

echo "--- two labels"
must vcluster mpirun -n 4 "$convert" write "$CASE_DIR/plain" "$CASE_DIR/rows"
must python - <<'END'
import shutil

import ompi_crypt
from damage import File
plain = open("plain", "rb").read()
with ompi_crypt.open("rows") as file:
    assert file.read() == plain
    assert [region["label"] for region in file.info()["regions"]] == ["lab", "other"], file.info()
    assert all(region["readable"] for region in file.info()["regions"])
with ompi_crypt.open("rows", keystore="one") as file:
    region = file.info()["regions"][1]
    assert [region["readable"] for region in file.info()["regions"]] == [True, False]
    for row in range(0, len(plain) // 1000, 2):         # the next row is not readable, and is within the buffer
        file.seek(1000 * row)
        assert file.read(1000) == plain[1000 * row:1000 * row + 1000], row
        try:
            file.read(1)
            raise SystemExit(f"row {row + 1} was read")
        except ompi_crypt.NoKey as error:
            assert error.offset == 1000 * (row + 1), error.offset

# A block of the other label has the end of row 1 and the beginning of row 3, and does not open.
block = region["block_bytes"]
first = 1000 + 1000 // block * block
assert first < 2000
shutil.copy("rows", "damaged")
damaged = File("damaged")
damaged.flip(damaged.data(first))
with ompi_crypt.open("damaged") as file:
    file.seek(2000)
    assert file.read(1000) == plain[2000:3000]
    for read in (lambda: file.read(1), lambda: file.read_at(2999, 2), lambda: file.read_at(first, 1)):
        try:
            read()
            raise SystemExit("a damaged block was read")
        except ompi_crypt.Forged as error:
            assert error.offset == first, error.offset
try:
    ompi_crypt.open("rows", label="lab")
    raise SystemExit("another label was accepted")
except ompi_crypt.Unexpected as error:
    print(error)
END

echo "--- a file grows"
must vcluster mpirun -n 2 --mca fs_crypt_key_label lab "$named" make "$CASE_DIR/plain" "$CASE_DIR/log" 0
must python - vcluster mpirun -n 2 "$named" append "$CASE_DIR/plain" "$CASE_DIR/log" 0 <<'END'
import os
import subprocess
import sys

import ompi_crypt
plain = open("plain", "rb").read()
with ompi_crypt.open("log") as file:
    assert file.read() == plain and file.read() == b"" and file.size == len(plain)
    subprocess.run([os.environ["SRC"] + "/tests/" + sys.argv[1], *sys.argv[2:]], check=True)
    assert file.size == 2 * len(plain), file.size
    assert file.read() == plain and file.tell() == file.seek(0, 2) == 2 * len(plain)
    assert file.read_at(0) == 2 * plain
END
