#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The vectors of encrypted files that are one file, by onefile_v1.py:

    make_onefile_v1.py [DIR]        write onefile-v1.txt

`kind = file` is a file that reads; its `piece`s are all of it that is not zeros, and its
`text`s all that it reads as.  `kind = changed` is the same file with other pieces and,
perhaps, another size: `open` is what becomes of it, `blocks` those that do not read, and
`seal` what becomes of a seal that is demanded.  `kind = look` is a row of the table "Plain or
encrypted": what asks for it, and what it gets.
"""
import hashlib
import os
import struct
import sys

from onefile_changed import CHANGES
from onefile_geometry import MIB, Bad, Geometry, Layout, Tiling, choose, need
from onefile_map import FILE_MAGIC, Refused, Region, make_map
from onefile_open import every_way, look
from onefile_v1 import Image, OneFile, Sealer, open_file

SECTOR = 512


def stream(name, length):
    """Bytes that are the same in every run."""
    out = b""
    while len(out) < length:
        out += hashlib.sha256(b"%s %d" % (name.encode(), len(out))).digest()
    return out[:length]


# ---- files ----

def empty_file(name, regions, geometry=None, group=MIB, rooms=4, map_bytes=0):
    keys, data_keys = {}, {}
    for number, region in enumerate(regions):
        if region.encrypted:
            keys[region.label.decode()] = stream("key " + region.label.decode(), 32)
            data_keys[number] = stream("data key %s %d" % (name, number), 32)
    geometry = geometry or choose({n: (regions[n], regions[n].block) for n in data_keys}, group, rooms, map_bytes)
    map_ = make_map(stream("uuid " + name, 16), 1, geometry, regions, keys, data_keys)
    file = OneFile(Image(), map_, Sealer(map_, data_keys, {n: stream("S %s %d" % (name, n), 16) for n in data_keys}))
    file.create()
    return file, keys


def fill(file, name, size, spans, over=()):
    """Text in `spans` (offset, length), below `size`; `over`: {block: (room, how far the overwrite came)}."""
    text = Image()
    for at, length in spans:
        text.put(at, stream("text %s %d" % (name, at), length))
    text.truncate(size)
    file.image.size = max(file.image.size, file.geometry.end(size))
    used = {r: file.layout.used(r, size) for r in file.layout.regions}
    for r, g, k in file.layout.below(size):
        plain = b"".join(text.get(o, n) for o, n in file.layout.pieces(r, g, k, used[r](g, k)))
        if any(plain):
            room, reached = dict(over).get((r, g, k), (0, ""))
            if room:
                file.write(r, g, k, plain[::-1])
            file.write(r, g, k, plain, room, reached or "all")
    for region in file.map.regions:
        if not region.encrypted:
            at, end = 0, region.before(size)
            while at < end:
                o, n = region.locate(at)
                n = min(n, end - at, file.geometry.D - o % file.geometry.D)
                file.image.put(file.geometry.place(o), text.get(o, n))
                at += n
    return file


def samples():
    """Name, file, label keys."""
    whole = [Region(1, 1, b"lab", 4096, 0, 1, 0, [(0, 1)])]
    rows = [Region(1, 3, b"rows.even", 4096, 4096, 2048, 0, [(0, 1024)]), Region(1, 4, b"rows.odd", 512, 5120, 2048, 0, [(0, 1024)]),
            Region(0, displacement=0, extent=4096, once=1, runs=[(0, 4096)])]
    many = [Region(1, 2, b"part.%d" % i, 512, 3000 * i, 3000, 1, [(0, 1000), (2000, 1000)]) for i in range(15)]

    file, keys = empty_file("empty", whole)
    yield "empty", file, keys
    # 9,000 bytes with a hole, and one block that was overwritten.
    file, keys = empty_file("simple", whole)
    yield "simple", fill(file, "simple", 9000, [(0, 4096), (8192, 808)], {(0, 0, 0): (2, "all")}), keys
    # Through the end of a group: the last block there is short.
    file, keys = empty_file("groups", rows, Geometry(MIB, 278528, 0, 3072, 1888, 1, 4096))
    D = file.geometry.D
    need(file.layout.fits() and D % 2048 == 0, "groups")
    yield "groups", fill(file, "groups", 2 * D + 3000, [(0, 6000), (D - 3000, 6000), (2 * D - 700, 3700)],
                         {(1, 0, 1): (1, "all"), (0, 1, 0): (1, "all")}), keys
    # Overwrites that were cut short, each by way of a room of its own.
    file, keys = empty_file("rooms", whole)
    yield "rooms", fill(file, "rooms", 20000, [(0, 20000)], {(0, 0, 0): (1, "mark"), (0, 0, 1): (2, "room"), (0, 0, 2): (3, "half"),
                                                            (0, 0, 3): (4, "data")}), keys
    # A map that is too large for the first page.
    file, keys = empty_file("large", many, map_bytes=2800)
    need(file.geometry.H == MIB, "large")
    yield "large", fill(file, "large", 45000, [(0, 2500), (40000, 2000)]), keys
    for name, of in (("sealed", "simple"), ("sealed groups", "groups")):
        file, keys = next((file, keys) for sample, file, keys in samples_of(of))
        file.seal(stream("seal id " + name, 16))
        yield name, file, keys


def samples_of(name):
    return (sample for sample in samples() if sample[0] == name)


# ---- what becomes of one ----

def verdict(image, keys, attribute=b""):
    """open, blocks, seal."""
    try:
        file = open_file(image, keys, attribute)
    except Refused as refused:
        return refused.how.replace("-", " "), "", ""
    _, wrong = file.read()
    try:
        file.check_seal()
        seal = "fits"
    except Bad as bad:
        seal = "none" if str(bad) == "not sealed" else "forged"
    blocks = " ".join("%d:%d:%d=%s" % (*block, how) for block, how in sorted(wrong.items()))
    return "encrypted", blocks, seal


class Out:
    def __init__(self, path):
        self.file = open(path, "w")
        print("# Made by onefile_v1.py with PyPI cryptography.  Do not edit.", file=self.file)

    def section(self, section, **fields):
        print("\nkind = %s" % section, file=self.file)
        for field, value in fields.items():
            print("%s = %s" % (field, value.hex() if isinstance(value, bytes) else value), file=self.file)

    def pieces(self, kind, image, without=None):
        for page in sorted(set(image.pages) | set(without.pages if without else ())):
            for at in range(page, min(page + 4096, image.size), SECTOR):
                sector = image.get(at, min(SECTOR, image.size - at))
                before = bytes(len(sector)) if without is None else without.get(at, len(sector))
                differ = [i for i in range(len(sector)) if sector[i] != before[i]]
                if differ:
                    self.section(kind, at=at + differ[0], bytes=sector[differ[0]:differ[-1] + 1])


def geometries(out):
    """What is chosen, and where things lie then."""
    def interleaved(n, length, B):
        return {i: (Tiling(i * length, n * length, 0, [(0, length)]), B) for i in range(n)}

    for name, regions, group, rooms in (
            ("64 KiB", interleaved(1, 1, 65536), 0, 0), ("1 MiB", interleaved(1, 1, MIB), 0, 0), ("4 KiB", interleaved(1, 1, 4096), 0, 0),
            ("4 KiB in 1 MiB", interleaved(1, 1, 4096), MIB, 4), ("512", interleaved(1, 1, 512), 0, 0),
            ("16 MiB", interleaved(1, 1, 1 << 24), 0, 0), ("4,096 regions", interleaved(4096, 4096, 65536), 0, 0),
            ("rows", interleaved(3, 4096, 65536), 0, 0), ("rows and columns", interleaved(4, 4096, 65536), 0, 0)):
        geometry = choose(regions, group, rooms)
        geometry.check()
        out.section("geometry", name=name, regions=len(regions), run=regions[0][0].tile, block=regions[0][1], group=group, rooms=rooms,
                    G=geometry.G, T=geometry.T, H=geometry.H, m=geometry.m, N=geometry.N, W=geometry.W, b=geometry.b, bytes=geometry.bytes())
        layout = Layout(geometry, regions)
        for o in (0, 1, geometry.D - 1, geometry.D, 10 ** 7, 10 ** 12 + 7):
            r, (tiling, _) = next((r, of) for r, of in regions.items() if of[0].before(o + 1) > of[0].before(o))
            g, k, within = layout.block_of(r, o)
            e = layout.entry(r, g, k)
            out.section("place", of=name, offset=o, place=geometry.place(o), end=geometry.end(o + 1), region=r, group=g, block=layout.number(r, g, k),
                        within=within, capacity=layout.capacity(r, g, k), entry=e, entry_at=geometry.entry_at(g, e))


def looks(out, file, keys):
    """Each row of the table, and each way to ask."""
    made, attribute = file.image, file.map.bytes()
    zeros, plain, marked, unmade, short = Image(bytes(512)), Image(b"plain text"), Image(FILE_MAGIC + b"of something else"), made.copy(), Image(made.get(0, 512))
    unmade.put(file.geometry.seal_at, bytes(4))
    unmade.truncate(8192)
    filled = made.copy()
    filled.put(file.geometry.seal_at, bytes(4))
    longer = Image(bytes(513))
    for name, image, attr, have in (
            ("encrypted", made, attribute, keys), ("no attribute", made, None, keys), ("no key", made, attribute, {}), ("being made", unmade, None, keys),
            ("header alone", short, None, keys), ("state 0 and data", filled, None, keys), ("magic of something else", marked, None, keys),
            ("nothing", Image(), None, keys), ("emptied", Image(), attribute, keys), ("overwritten", plain, attribute, keys),
            ("plain", plain, None, keys), ("zeros", zeros, None, keys), ("more zeros", longer, None, keys), ("zeros, attribute", zeros, attribute, keys)):
        results = {}
        for asks in every_way():
            results.setdefault(look(image, attr, have, asks), []).append("".join("lrpw"[i] if asks[i] else "-" for i in range(4)))
        out.section("look", name=name, size=image.size, attribute=int(attr is not None), keys=len(have),
                    **{outcome.replace(" ", "_"): " ".join(ways) for outcome, ways in sorted(results.items())})
        if image not in (made, filled):
            out.pieces("piece", image)


def vectors(path):
    out = Out(path)
    geometries(out)
    for name, file, keys in samples():
        image, attribute = file.image, file.map.bytes()
        need(verdict(image, keys)[:2] == ("encrypted", ""), name)
        again = open_file(image, keys, attribute)
        plain, _ = again.read()
        more = {"root": again.check_seal()} if name.startswith("sealed") else {}
        out.section("file", name=name, size=image.size, bytes=again.size, keys=len(keys), **more)
        for label, key in keys.items():
            out.section("key", label=label, key=key)
        out.pieces("piece", image)
        out.pieces("text", plain)
        seen = set()
        for change, of, make, expected in CHANGES:
            if name not in of.split("|"):
                continue
            changed = OneFile(image.copy(), file.map, file.sealer)
            attr = make(changed) or b""
            got = verdict(changed.image, keys, attr)
            need(got == expected, "%s, %s: %s" % (name, change, got))
            need(change not in seen, change)
            seen.add(change)
            out.section("changed", file=name, name=change, size=changed.image.size, open=got[0], blocks=got[1], seal=got[2],
                        **({"attribute": attr} if attr else {}))
            out.pieces("piece", changed.image, image)
        if name == "simple":
            looks(out, file, keys)


if __name__ == "__main__":
    vectors(os.path.join(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)), "onefile-v1.txt"))
