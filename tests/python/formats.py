# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""formats.py make|read|damaged|listed|examples DOCUMENT: plain files are in plain/, encrypted ones in encrypted/."""
import os
import re
import shutil
import sys

import dask.dataframe
import fsspec
import h5py
import numpy
import ompi_crypt
import pandas
import pyarrow.parquet
import xarray
from damage import File

BLOCK = 512
HERE = "mpicrypt://" + os.getcwd() + "/"
OPTIONS = {"label": "results"}


def make():
    numbers = numpy.random.default_rng(7)
    values = numbers.random((60, 40))
    values.tofile("plain/numbers")
    with h5py.File("plain/result.h5", "w") as file:
        file.create_dataset("rows", data=values, chunks=(7, 9), compression="gzip")
        file["more"] = values * 2
    xarray.Dataset({"rows": (("x", "y"), values)}).to_netcdf("plain/result.nc", engine="h5netcdf")
    table = pandas.DataFrame({"value": numbers.integers(0, 10**9, 2000), "name": [f"name {i}" for i in range(2000)]})
    table.to_csv("plain/result.csv", index=False)
    table.to_parquet("plain/result.parquet", row_group_size=500)


# ---- readers, by the end of the name: each returns something that == compares ----

def of_h5py(open_file, url):
    with open_file() as file, h5py.File(file, "r") as data:
        return {name: data[name][...].tolist() for name in data}


def of_xarray(open_file, url):
    with open_file() as file:
        return xarray.open_dataset(file, engine="h5netcdf").load()["rows"].values.tolist()


def of_xarray_url(open_file, url):
    with xarray.open_dataset(url, engine="h5netcdf", storage_options=OPTIONS) as data:
        return data["rows"].values.tolist()


def of_xarray_dask(open_file, url):
    with open_file() as file:
        return xarray.open_dataset(file, engine="h5netcdf", chunks={"x": 7})["rows"].compute(scheduler="threads").values.tolist()


def of_csv(open_file, url):
    with open_file() as file:
        return pandas.read_csv(file).to_dict("list")


def of_csv_url(open_file, url):
    return pandas.read_csv(url, storage_options=OPTIONS).to_dict("list")


def of_csv_dask(open_file, url, scheduler="threads"):
    return dask.dataframe.read_csv(url, storage_options=OPTIONS, blocksize=9000).compute(scheduler=scheduler).to_dict("list")


def of_parquet(open_file, url):
    with open_file() as file:
        return pandas.read_parquet(file).to_dict("list")


def of_parquet_url(open_file, url):
    return pandas.read_parquet(url, storage_options=OPTIONS).to_dict("list")


def of_parquet_dask(open_file, url):
    return dask.dataframe.read_parquet(url, storage_options=OPTIONS).compute(scheduler="threads").to_dict("list")


def of_pyarrow(open_file, url):
    with open_file() as file:
        return pyarrow.parquet.read_table(file).to_pydict()


def of_pyarrow_url(open_file, url):
    return pyarrow.parquet.read_table(url.removeprefix("mpicrypt://"), filesystem=fsspec.filesystem("mpicrypt", **OPTIONS)).to_pydict()


def of_numbers(open_file, url):
    with open_file() as file:
        array = numpy.empty((60, 40))
        assert file.readinto(array) == array.nbytes
        return array.tolist()


READERS = {".h5": [of_h5py], ".nc": [of_xarray, of_xarray_url, of_xarray_dask, of_h5py], ".csv": [of_csv, of_csv_url, of_csv_dask],
           ".parquet": [of_parquet, of_parquet_url, of_parquet_dask, of_pyarrow, of_pyarrow_url], "": [of_numbers]}


def readers():
    """(file, reader, what it reads in the plain file)"""
    for name in sorted(os.listdir("plain")):
        for reader in READERS[os.path.splitext(name)[1]]:
            if "url" not in reader.__name__ and "dask" not in reader.__name__:
                wanted = reader(lambda: open("plain/" + name, "rb"), None)
            yield name, reader, wanted


def read():
    for name, reader, wanted in readers():
        assert reader(lambda: ompi_crypt.open("encrypted/" + name, **OPTIONS), HERE + "encrypted/" + name) == wanted, (name, reader)
        print("the same:", name, reader.__name__)
    wanted = pandas.read_csv("plain/result.csv").to_dict("list")
    assert of_csv_dask(None, HERE + "encrypted/result.csv", "processes") == wanted


def damages(name):
    """(what, must it be an exception); the file `damaged` has the damage meanwhile."""
    yield "plain", True, lambda: shutil.copy("plain/" + name, "damaged")
    source, size = "encrypted/" + name, os.path.getsize("plain/" + name)
    blocks = (size + BLOCK - 1) // BLOCK

    def fresh(change):
        shutil.copy(source, "damaged")
        change(File("damaged"))

    def swap(file, one, other):
        file.swap(file.data(one * BLOCK), file.data(other * BLOCK), BLOCK)
        file.swap(file.entry(one), file.entry(other), 128)
    yield "first block", True, lambda: fresh(lambda file: file.flip(file.data(9)))
    yield "all blocks", True, lambda: fresh(lambda file: [file.flip(file.data(block * BLOCK + 9)) for block in range(blocks)])
    yield "swapped with the first", True, lambda: fresh(lambda file: swap(file, 0, blocks // 2))
    # Within a block: only a seal shows that a file was cut at the border of one.
    yield "cut", True, lambda: fresh(lambda file: file.cut(file.data((size // BLOCK - 1) * BLOCK + BLOCK // 2)))
    for block in range(0, blocks, max(1, blocks // 12)):        # not each is read by each
        yield f"block {block}", False, lambda: fresh(lambda file: file.flip(file.data(block * BLOCK)))
        yield f"{block} swapped", False, lambda: fresh(lambda file: swap(file, block, (block + 1) % (blocks - 1)))


def refused(exception):
    """By us, though a library may have put an exception of its own around it."""
    while exception is not None and not isinstance(exception, ompi_crypt.EncryptedFileError):
        exception = exception.__cause__ or exception.__context__
    return exception is not None


def damaged():
    for name, reader, wanted in readers():
        if name == "job.h5":                            # has another geometry
            continue
        raised = 0
        for what, must, apply in damages(name):
            apply()
            try:
                got = reader(lambda: ompi_crypt.open("damaged", **OPTIONS), HERE + "damaged")
            except Exception as exception:
                # A library may see by itself that a file is shorter than it says.
                assert refused(exception) or what == "cut", (name, reader, what, exception)
                raised += 1
            else:
                assert not must and got == wanted, (name, reader, what)
        print(f"{name}, {reader.__name__}: {raised} exceptions, and no other value")
        try:
            os.environ["OMPI_MCA_crypt_keystore_dir"], before = "elsewhere", os.environ["OMPI_MCA_crypt_keystore_dir"]
            reader(lambda: ompi_crypt.open("encrypted/" + name, **OPTIONS), HERE + "encrypted/" + name)
            raise SystemExit(f"{name} was read without a key")
        except ompi_crypt.NoKey:
            pass
        finally:
            os.environ["OMPI_MCA_crypt_keystore_dir"] = before


def listed():
    files, here = fsspec.filesystem("mpicrypt", **OPTIONS), os.getcwd()
    names = sorted(os.listdir("encrypted"))
    plain = {name: open("plain/" + name, "rb").read() for name in names}
    assert files.ls("encrypted", detail=False) == [f"{here}/encrypted/{name}" for name in names]
    assert {entry["name"]: entry["size"] for entry in files.ls(HERE + "encrypted")} == {
        f"{here}/encrypted/{name}": len(plain[name]) for name in names}
    assert {entry["size"] for entry in files.ls("plain")} == {None}
    assert files.glob(HERE + "encrypted/*.nc") == [here + "/encrypted/result.nc"]
    assert files.find("encrypted") == files.ls("encrypted", detail=False)
    text, path = plain["result.csv"], "encrypted/result.csv"
    for start, end in ((None, None), (0, 5), (7, 9), (-9, None), (3, -3), (-9, -4), (5, 2), (10**9, None), (0, 10**9)):
        assert files.cat_file(path, start, end) == text[start:end], (start, end)
    assert files.cat_ranges([path] * 2, [0, 5], [5, 9]) == [text[:5], text[5:9]]
    assert files.info(path)["size"] == len(text) and files.info("encrypted")["type"] == "directory"
    assert files.isfile(path) and files.isfile("plain/result.csv") and files.isdir("plain") and not files.exists("nothing")
    with files.open(path, "r") as file:
        assert file.read().encode() == text
    assert fsspec.get_fs_token_paths(HERE + path)[2] == [f"{here}/{path}"]
    for exception, call in ((ompi_crypt.NotEncrypted, lambda: files.info("plain/result.csv")),
                            (ompi_crypt.NotEncrypted, lambda: files.open("plain/result.csv")),
                            (FileNotFoundError, lambda: files.info("nothing")), (FileNotFoundError, lambda: files.ls("nothing")),
                            (ompi_crypt.Unexpected, lambda: files.open(path, label="another")),
                            (ValueError, lambda: files.open(path, "wb")), (TypeError, lambda: files.open(path, labels="results")),
                            (TypeError, lambda: fsspec.filesystem("mpicrypt", labels="results"))):
        try:
            call()
        except exception:
            continue
        raise SystemExit(f"no {exception.__name__}")
    assert fsspec.filesystem("mpicrypt", plain=True).cat_file("plain/result.csv") == text


def examples(document):
    """Each literal block that is Python runs by itself."""
    count = 0
    for block in re.findall(r"::\n\n((?:    .*\n|\n)+)", open(document, encoding="utf-8").read()):
        if block.startswith("    import "):
            count += 1
            exec(compile(re.sub("^    ", "", block, flags=re.M), f"example {count}", "exec"), {})
    assert count == 6, count


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
    # Twice of 22 runs C++ aborted the process when Python ended.  Probably pyarrow's threads were still reading ahead: CPython
    # before 3.14 ends a thread that wants the interpreter then by pthread_exit().
    sys.stdout.flush()
    os._exit(0)
