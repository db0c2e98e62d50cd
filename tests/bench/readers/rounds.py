# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""rounds.py ROUNDS DRIVER MOUNT: in each round every way of reading takes its turn, in another order.  DRIVER is the directory
of HDF5's driver, MOUNT a mountpoint of encrypted/; either may be empty.  rounds.py h5py FILE BYTES: that way.

Ways are compared in a round with `decrypt`: reading a plain file and decrypting its bytes with the provider."""
import os
import platform
import random
import statistics
import subprocess
import sys
import time

MIB = 1 << 20


def of_h5py(path, piece):
    import h5py
    import numpy
    with h5py.File(path, "r") as file:
        data, memory = file["bytes"], numpy.empty(piece, "u1")
        start = time.monotonic()
        for at in range(0, len(data), piece):
            data.read_direct(memory, numpy.s_[at:at + piece])
        print(time.monotonic() - start)


def of_python(path, piece, threads, encrypted):
    import threading
    if encrypted:
        import ompi_crypt
        file = ompi_crypt.open(path)
        size, read = file.size, file.readinto_at
    else:
        file = open(path, "rb", buffering=0)
        size, read = os.stat(path).st_size, lambda at, memory: os.preadv(file.fileno(), [memory], at)

    def part(first, last):
        memory = bytearray(piece)
        for at in range(first, last, piece):
            read(at, memory)
    each = size // threads
    work = [threading.Thread(target=part, args=(number * each, (number + 1) * each)) for number in range(threads)]
    start = time.monotonic()
    for thread in work:
        thread.start()
    for thread in work:
        thread.join()
    print(time.monotonic() - start)


def seconds(command, environment):
    """What the command prints; of cat, which prints the file, the time that it takes."""
    start = time.monotonic()
    if command[0] in ("cat", "mpicrypt"):
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - start
    return float(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


def drop(path):
    """What the kernel has of the file."""
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)


def fill(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(MIB):
            pass


def ways(driver, mount):
    """name, file, command, variables; (bytes, threads), by which it is compared."""
    me = [sys.executable, "-B", os.path.abspath(__file__)]
    for piece in (MIB, 16 * MIB):
        for threads in (1, 2):
            size = [str(piece), str(threads)]
            for way, path in (("plain", "plain/file"), ("decrypt", "plain/file"), ("library", "encrypted/file")):
                yield way, path, ["./rate", way, path, *size], {}, (piece, threads)
            yield "python, plain", "plain/file", [*me, "python", "plain/file", *size, ""], {}, (piece, threads)
            yield "python", "encrypted/file", [*me, "python", "encrypted/file", *size, "encrypted"], {}, (piece, threads)
            if mount:
                yield "mount", mount + "/file", ["./rate", "plain", mount + "/file", *size], {}, (piece, threads)
        if driver:
            size = [str(piece)]
            yield "h5py, plain", "plain/h5", [*me, "h5py", "plain/h5", *size], {}, (piece, 1)
            yield "h5py, driver", "encrypted/h5", [*me, "h5py", "encrypted/h5", *size], {"HDF5_DRIVER": "mpicrypt", "HDF5_PLUGIN_PATH": driver}, (piece, 1)
    yield "cat, plain", "plain/file", ["cat", "plain/file"], {}, (MIB, 1)
    yield "mpicrypt file cat", "encrypted/file", ["mpicrypt", "file", "cat", "encrypted/file"], {}, (MIB, 1)


def conditions():
    with open("/proc/cpuinfo", encoding="ascii") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), platform.machine())
    system = subprocess.run(["stat", "-f", "-c", "%T", "plain"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    print(f"{model}, {len(os.sched_getaffinity(0))} processors, load {os.getloadavg()[0]:.1f}, Linux {platform.release()}, {system}, "
          f"{os.stat('plain/file').st_size // MIB} MiB")


def rounds(count, driver, mount):
    taken, all_ways = {}, list(ways(driver, mount))
    conditions()
    for number in range(int(count)):
        for state in ("cached", "cold"):
            for way, path, command, variables, group in random.Random(number).sample(all_ways, len(all_ways)):
                below = "encrypted/file" if path.startswith("mounted/") else path
                if below != path:
                    drop(path)          # the mount's own pages would be those of a plain file
                drop(below) if state == "cold" else fill(below)
                taken.setdefault((state, group), {}).setdefault(way, []).append(seconds(command, {**os.environ, **variables}))
    size = os.stat("plain/file").st_size / 1e6
    for (state, (piece, threads)), of in sorted(taken.items()):
        print(f"\n{state}, {piece // MIB} MiB at a time, {threads} thread{'s' * (threads > 1)}: MB/s, median (quartiles); time beside decrypt's")
        for way, times in ((way, of[way]) for way, _, _, _, group in all_ways if group == (piece, threads)):
            low, middle, high = statistics.quantiles([size / t for t in times], n=4)
            beside = statistics.quantiles([t / other for t, other in zip(times, of["decrypt"])], n=4)
            print(f"    {way:18} {middle:8.0f} ({low:.0f} to {high:.0f})   {beside[1]:5.2f} ({beside[0]:.2f} to {beside[2]:.2f})")


if __name__ == "__main__":
    if sys.argv[1] == "h5py":
        of_h5py(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "python":
        of_python(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
    else:
        rounds(*sys.argv[1:])
