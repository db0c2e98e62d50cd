# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""read.py READER [NAME FILE KEYSTORE]...: what READER finds in each file is written to NAME.out, a line a variable; an exception
leaves none, and is written to NAME.err."""
import hashlib
import os
import sys


def line(name, values):
    import numpy
    values = numpy.asarray(values)
    return f"{name} {values.dtype} {values.shape} {hashlib.sha256(values.tobytes()).hexdigest()}\n"


def of_h5py(path):
    import h5py
    lines = []

    def look(name, thing):
        lines.extend(line(f"{name}@{key}", value) for key, value in sorted(thing.attrs.items()) if key not in ("DIMENSION_LIST", "REFERENCE_LIST"))
        if isinstance(thing, h5py.Dataset):
            lines.append(line(name, thing[()]))
    with h5py.File(path, "r") as file:
        file.visititems(look)
    return "".join(lines)


def of_xarray(path):
    import xarray
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        return "".join(line(name, data[name].values) for name in ("x", "y", "field"))


def of_pandas(path):
    import pandas
    table = pandas.read_hdf(path, "tables/steps")
    return "".join(line(name, table[name].values) for name in table)


def of_netcdf4(path):
    import netCDF4
    with netCDF4.Dataset(path + "#mode=netcdf-4" * ("://" in path)) as data:
        return "".join(line(name, data[name][...].filled()) for name in ("x", "y", "field"))


def of_vtk(path):
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkCommonCore import vtkCommand
    from vtkmodules.vtkIOHDF import vtkHDFReader
    reader, errors = vtkHDFReader(), []
    reader.AddObserver(vtkCommand.ErrorEvent, lambda *said: errors.append(said))
    reader.SetFileName(path)
    reader.Update()
    values = reader.GetOutputDataObject(0).GetPointData().GetArray("level")
    if errors or values is None:
        raise OSError("vtkHDFReader fails")
    return line("level", vtk_to_numpy(values))


def of_ompi_crypt(path):
    import ompi_crypt
    with ompi_crypt.open(path) as file:
        return file.read().hex()


if __name__ == "__main__":
    reader, of = globals()["of_" + sys.argv[1]], iter(sys.argv[2:])
    for name, path, os.environ["OMPI_MCA_crypt_keystore_dir"] in zip(of, of, of):
        try:
            text = reader(path)
        except Exception as error:
            text, end = f"{type(error).__name__}: {error}\n", ".err"
        else:
            end = ".out"
        with open(name + end, "w", encoding="utf-8") as file:
            file.write(text)
