#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# ring.py FILE: like ring.c, with mpi4py (Debian: python3-mpi4py).  A Python object and a
# large buffer travel through all ranks.
#
#     mpirun -n 4 --mca pml crypt python3 ring.py secret.txt
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
left, right = (rank - 1) % ranks, (rank + 1) % ranks


def read_text():
    # An exception would let this rank alone go to MPI_Finalize, and the others wait for its message.
    try:
        with open(sys.argv[1]) as file:
            text = file.read()
        if text:
            return text
        error = "it is empty"
    except IndexError:
        error = "usage: ring.py FILE"
    except (OSError, UnicodeDecodeError) as reason:
        error = reason
    print(f"ring.py: cannot read a text: {error}", file=sys.stderr, flush=True)
    comm.Abort(1)


if rank == 0:
    text = read_text()
    large = bytearray((text * (1 + 2**20 // len(text))).encode()[: 2**20])
    sent = {"text": text, "bytes": len(large)}
    received = comm.sendrecv(sent, dest=right, source=left)
    buffer = bytearray(len(large))
    comm.Sendrecv([large, MPI.BYTE], dest=right, recvbuf=[buffer, MPI.BYTE], source=left)
    good = received == sent and buffer == large
    print(f"{ranks} ranks: the messages came back {'as they were sent' if good else 'CHANGED'}")
    sys.exit(not good)

received = comm.recv(source=left)
comm.send(received, dest=right)
buffer = bytearray(received["bytes"])
comm.Recv([buffer, MPI.BYTE], source=left)
comm.Send([buffer, MPI.BYTE], dest=right)
