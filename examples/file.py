#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
#
# file.py FILE: write and read an encrypted file with mpi4py, as info keys of MPI_File_open say.
#
#     mpicrypt key new results
#     mpirun -n 4 --mca pml crypt python3 file.py FILE
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
info = MPI.Info.Create()
info.Set("crypt_key_label", "results")
info.Set("crypt_block_size", "4096")

line = f"secret of rank {rank}".ljust(1024).encode()
file = MPI.File.Open(comm, sys.argv[1], MPI.MODE_CREATE | MPI.MODE_RDWR, info)
file.Write_at_all(rank * len(line), line)
again = bytearray(len(line))
file.Read_at_all(rank * len(line), again)
file.Close()

good = comm.allreduce(again == line, MPI.LAND)
if rank == 0:
    print(f"{ranks} ranks: each read {'what it had written' if good else 'SOMETHING ELSE'}")
sys.exit(not good)
