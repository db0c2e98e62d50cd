# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""write.py FILE: a program of parallel HDF5 that knows nothing of encryption.  Its file can be read as HDF5, as netCDF-4
(scales, and a variable over them), as a table of PyTables, and as an image of VTK."""
import sys

import h5py
import numpy
from mpi4py import MPI

ROWS, COLUMNS, LAYERS, STEPS = 96, 256, 24, 4096


def mine(count):
    """The share of this process."""
    return slice(count * MPI.COMM_WORLD.rank // MPI.COMM_WORLD.size, count * (MPI.COMM_WORLD.rank + 1) // MPI.COMM_WORLD.size)


with h5py.File(sys.argv[1], "w", driver="mpio", comm=MPI.COMM_WORLD) as file:
    for name, count in (("y", ROWS), ("x", COLUMNS)):
        file.create_dataset(name, (count,), "f8")[mine(count)] = numpy.arange(count)[mine(count)] / 8
        file[name].make_scale(name)
    field = file.create_dataset("field", (ROWS, COLUMNS), "f8")
    for axis, name in enumerate(("y", "x")):
        field.dims[axis].attach_scale(file[name])
    with field.collective:
        field[mine(ROWS)] = numpy.arange(ROWS * COLUMNS).reshape(ROWS, COLUMNS)[mine(ROWS)] + 0.5
    field.attrs["canary"] = "the-canary-sings-in-clear-text"
    # Rows that pandas reads.
    table = file.create_dataset("tables/steps", (STEPS,), [("step", "i8"), ("value", "f8")], chunks=(512,))
    steps = numpy.empty(STEPS, table.dtype)
    steps["step"], steps["value"] = numpy.arange(STEPS), numpy.sqrt(numpy.arange(STEPS))
    with table.collective:
        table[mine(STEPS)] = steps[mine(STEPS)]
    image = file.create_group("VTKHDF")
    image.attrs["Version"], image.attrs["Type"] = (1, 0), numpy.bytes_("ImageData")
    image.attrs["WholeExtent"] = (0, 31, 0, 31, 0, LAYERS - 1)
    image.attrs["Origin"], image.attrs["Spacing"], image.attrs["Direction"] = (0.0,) * 3, (1.0,) * 3, numpy.eye(3).ravel()
    level = image.create_dataset("PointData/level", (LAYERS, 32, 32), "f4")
    level[mine(LAYERS)] = numpy.arange(LAYERS * 1024, dtype="f4").reshape(LAYERS, 32, 32)[mine(LAYERS)] / 4
