#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Files of random maps for two readers that share no code: this one, and the engine (tests/unit/test_file_both.c).

    onefile_both.py write DIR COUNT [SEED]   DIR/0.one, DIR/0.plain, DIR/0.root (empty: not sealed) and so on
    onefile_both.py read DIR COUNT           what the engine left of them"""
import random
import struct
import sys

from onefile_geometry import MIB, choose, need
from onefile_map import Region, make_map
from onefile_maps import make
from onefile_v1 import Image, OneFile, Sealer, load, open_file

KEYS = {"lab": b"the key of a label, of 32 bytes\0", "other": b"the key of others, of 32 bytes.\0"}
ROOM = 4 * MIB - 1              # of the C program, for F
PIECES = 6000                   # of a file, so that it does not take long


def is_repetition(tiling):
    """Would a shorter tile describe the same bytes?"""
    runs = [list(run) for run in tiling.runs]
    if len(runs) > 1 and sum(runs[-1]) == tiling.extent:        # the last one goes on in the next tile's first
        first = runs.pop(0)
        runs[-1][1] += first[1]
    shifts = [p for p in range(2, len(runs) + 1) if len(runs) % p == 0 and tiling.extent % p == 0]
    return any(sorted([(o + tiling.extent // p) % tiling.extent, n] for o, n in runs) == sorted(runs) for p in shifts)


def canonical(tiling):
    if not tiling.once and tiling.tile == tiling.extent:
        tiling.extent, tiling.runs, tiling.tile = 1, [(0, 1)], 1
    return tiling.once or not is_repetition(tiling)


def regions_of(rng):
    while True:
        tilings = [tiling for tiling, _ in make(rng, False).values()]
        if not all(canonical(tiling) for tiling in tilings) or len(tilings) > 13:
            continue
        regions = []
        for tiling in tilings:
            fields = tiling.displacement, tiling.extent, int(tiling.once), tiling.runs
            label = rng.choice(sorted(KEYS)).encode()
            encrypted = rng.random() < 0.8
            regions.append(Region(1, rng.randrange(1, 5), label, rng.choice([512, 512, 1024, 4096, 65536]), *fields) if encrypted
                           else Region(0, 0, b"", 0, *fields))
        if any(region.encrypted for region in regions):
            return regions


def pieces_below(regions, size):
    return sum(len(region.runs) * min(1, size) if region.once else
               1 if region.tile == region.extent else len(region.runs) * (size // region.extent + 1) for region in regions)


def size_for(rng, regions, geometry):
    """Often near a border of groups, or of a region."""
    edges = [0, geometry.D, 2 * geometry.D] + [region.displacement for region in regions] + \
        [region.displacement + region.extent for region in regions if region.once]
    for _ in range(30):
        size = max(0, rng.choice(edges) + rng.randrange(-3000, 3000)) if rng.random() < 0.6 else rng.randrange(rng.choice([10, 10000, MIB]))
        if geometry.end(size + size // 4 + 3000) <= ROOM and pieces_below(regions, size + size // 4 + 3000) < PIECES:
            return size
    return rng.randrange(10)


def write_some(rng, file, plain, r, g, k):
    """A version of a block, or several; what it reads as goes to `plain`."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        free = [room for room in range(1, file.geometry.W + 1) if (g, room) not in file.busy]
        first = not file.entry(r, g, k)[0][0][0] & 1
        if not first and not free:
            return
        room, reached = rng.choice(free or [0]), "all" if first else rng.choice(["all", "all", "room", "half", "data"])
        text = rng.randbytes(file.layout.used(r, plain.size)(g, k))
        reached = "room" if reached == "half" and len(text) < 100 else reached
        file.write(r, g, k, text, room, reached)
        at = 0
        for o, n in file.layout.pieces(r, g, k, len(text)):
            if reached != "room":       # then the data is the old version's
                plain.put(o, text[at:at + n])
            at += n
        if reached != "all":
            file.busy.add((g, room))
            return                      # nobody comes by way of another room before it is finished


def write_one(rng, name):
    regions = regions_of(rng)
    tilings = {n: (region, region.block) for n, region in enumerate(regions) if region.encrypted}
    geometry = choose(tilings, rng.choice([0, MIB, MIB]), rng.choice([0, 1, 2, 4]), rng.choice([200, 3000, 4000]))
    if geometry.end(20000) > ROOM or geometry.H:
        geometry = choose(tilings, MIB, 1, 200)
    data_keys = {n: rng.randbytes(32) for n in tilings}
    map_ = make_map(rng.randbytes(16), rng.randrange(1, 5), geometry, regions, KEYS, data_keys)
    file = OneFile(Image(), map_, Sealer(map_, data_keys, {n: rng.randbytes(16) for n in tilings}))
    file.busy = set()
    file.create()
    size = size_for(rng, regions, geometry)
    file.image.size = geometry.end(size)
    plain = Image()
    plain.size = size
    for r, g, k in file.layout.below(size):
        if rng.random() < 0.7:          # the others are holes
            write_some(rng, file, plain, r, g, k)
    for region in regions:
        if not region.encrypted:
            at, end = 0, region.before(size)
            while at < end:
                o, n = region.locate(at)
                n = min(n, end - at, geometry.D - o % geometry.D)
                text = rng.randbytes(n)
                file.image.put(geometry.place(o), text)
                plain.put(o, text)
                at += n
    root = b""
    if not file.busy and rng.random() < 0.5:
        root = file.seal(rng.randbytes(16)).hex().encode()
    for what, data in (("one", file.image.bytes()), ("plain", plain.bytes()), ("root", root)):
        with open("%s.%s" % (name, what), "wb") as out:
            out.write(data)
    return len(regions), size, len(file.busy), bool(root)


def read_one(name):
    plain, root = load(name + ".plain"), load(name + ".root")
    file = open_file(Image(load(name + ".one")), KEYS)
    text, wrong = file.read(bool(root))
    need(not wrong, "%s: blocks that do not read: %s" % (name, wrong))
    need(text.bytes() == plain, "%s: the plaintexts differ" % name)
    if root:
        need(file.check_seal().hex().encode() == root.strip(), "%s: another root" % name)
    return bool(root), struct.unpack("<I", file.image.get(file.geometry.seal_at, 4))[0]


def main(verb, directory, count, seed=1):
    if verb == "write":
        made = [write_one(random.Random("%s %d" % (seed, i)), "%s/%d" % (directory, i)) for i in range(int(count))]
        print("%d regions, %d bytes, %d overwrites that were cut short, %d seals" % tuple(sum(column) for column in zip(*made)))
    else:
        read = [read_one("%s/%d" % (directory, i)) for i in range(int(count))]
        print("%d files read, of which %d are sealed" % (len(read), sum(sealed for sealed, _ in read)))


if __name__ == "__main__":
    main(*sys.argv[1:])
