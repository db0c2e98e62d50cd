#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The vectors of encrypted files, version 1, by file_v1.py:

    make_file_v1.py [DIR]       write map-v1.txt, block-v1.txt, sidecar-v1.txt, file-v1.txt
"""
import hashlib
import os
import struct
import sys

from file_v1 import (Map, Region, check_seal, grain, need, newer_first, read_file, room_head, seal_block, seal_file, segment_of,
                     set_bytes, set_of, wrap, write_file)


def stream(name, length):
    """Bytes that are the same in every run."""
    out = b""
    while len(out) < length:
        out += hashlib.sha256(b"%s %d" % (name.encode(), len(out))).digest()
    return out[:length]


def sample_maps():
    """Name, map, label keys, data keys."""
    simple = [Region(1, 1, b"lab", 65536, 0, 1, 0, [(0, 1)])]
    mixed = [Region(1, 1, b"rows.even", 4096, 4096, 2048, 0, [(0, 1024)]),
             Region(1, 3, b"rows.odd", 512, 5120, 2048, 0, [(0, 1024)]),
             Region(0, displacement=0, extent=4096, once=1, runs=[(0, 4096)])]
    runs = [Region(1, 2, b"a", 512, 3, 100, 0, [(0, 5), (10, 1), (40, 60)]),
            Region(1, 4, b"b_-.9", 1 << 24, 9, 100, 0, [(0, 3), (10, 10)]), Region(0)]
    once = [Region(1, 3, b"L" * 64, 1024, 1 << 40, 3000, 1, [(0, 1000), (2000, 1000)])]
    extended = [Region(1, 1, b"lab", 4096, 0, 1, 0, [(0, 1)])]
    critical = [Region(1, 1, b"lab", 4096, 0, 1, 0, [(0, 1)])]
    more = {"extended": [(1, 0, b""), (2, 0, b"text"), (65535, 0, stream("value", 100))],
            "critical": [(1, 0, b"text"), (9, 1, b"?")]}
    for name, regions in (("simple", simple), ("mixed", mixed), ("runs", runs), ("once", once), ("extended", extended),
                          ("critical", critical)):
        map_ = Map(stream("uuid " + name, 16), {"simple": 1, "mixed": 7}.get(name, 2 ** 40), regions, more.get(name, ()))
        keys, data_keys = {}, {}
        for number, region in enumerate(regions):
            if region.encrypted:
                keys[region.label.decode()] = stream("key " + region.label.decode(), 32)
                data_keys[number] = stream("data key %s %d" % (name, number), 32)
                region.wrapped = wrap(keys[region.label.decode()], data_keys[number])
        for number in data_keys:
            regions[number].mac = map_.mac(number, data_keys[number])
        yield name, map_, keys, data_keys


class Out:
    def __init__(self, directory, name):
        self.file = open(os.path.join(directory, name), "w")
        print("# Made by file_v1.py with PyPI cryptography.  Do not edit.", file=self.file)

    def section(self, section, **fields):
        print("\nkind = %s" % section, file=self.file)
        for field, value in fields.items():
            print("%s = %s" % (field, value.hex() if isinstance(value, bytes) else value), file=self.file)


def vectors(directory):
    out = Out(directory, "map-v1.txt")
    for name, map_, keys, data_keys in sample_maps():
        out.section("map", name=name, uuid=map_.uuid, generation=map_.generation, regions=len(map_.regions),
                    unknown=map_.unknown() or 0, map=map_.bytes(), digest=map_.digest())
        for number, region in enumerate(map_.regions):
            fields = dict(number=number, encrypted=region.encrypted, algorithm=region.algorithm, label=region.label.decode(),
                          block=region.block, displacement=region.displacement, extent=region.extent, once=region.once,
                          runs=" ".join("%d+%d" % run for run in region.runs))
            if region.encrypted:
                fields.update(key=keys[region.label.decode()], data_key=data_keys[number], mac=region.mac)
            out.section("region", **fields)

    out = Out(directory, "block-v1.txt")
    for name, map_, keys, data_keys in sample_maps():
        if map_.extensions:             # a map's matter alone
            continue
        for number, data_key in data_keys.items():
            size = map_.regions[number].block
            for block, length, counter in ((0, 1, 0), (1, 16, 1), (63, 511, 2 ** 30 - 1), (2 ** 33, min(size, 1500), 77)):
                plain, salt = stream("plain %d" % length, length), stream("salt %d" % block, 16)
                cipher, slot = seal_block(data_key, map_, number, block, salt, counter, plain, block & 1)
                out.section("block", map=name, uuid=map_.uuid, region=number, algorithm=map_.regions[number].algorithm,
                            block_bytes=size, data_key=data_key, block=block, plain=plain, cipher=cipher, slot=slot)

    out = Out(directory, "sidecar-v1.txt")
    for block in (0, 63, 64, 65, 191, 192, 447, 448, 10 ** 6, 64 * (2 ** 28 - 1) - 1):
        k, within = segment_of(block)
        out.section("index", block=block, segment=k, within=within, entries_bytes=grain(96 * 64 * 2 ** k))
    for size, room in ((512, 1), (512, 64), (512, 65), (4096, 64 * 3 + 1), (65536, 4), (65536, 5), (65536, 13), (1 << 24, 1),
                       (1 << 24, 2 ** 18 - 1), (512, 64 * (2 ** 18 - 1))):
        rooms, number, k, place, within = set_of(room, size)
        out.section("place", block_bytes=size, room=room, rooms=rooms, set=number, segment=k, place=place, within=within,
                    set_bytes=set_bytes(size), offset=set_bytes(size) * place + (128 + size) * within)
    salt = stream("salt", 16)
    slot = [struct.pack("<IIQ16s16s", flags, 100, 5, salt, stream("tag %d" % flags, 16)) for flags in (1, 3)]
    for name, entry in (("none", bytes(96)), ("first", slot[1] + bytes(48)), ("second", slot[1] + slot[1]),
                        ("third", slot[0] + slot[1]), ("fourth", slot[0] + slot[0]), ("only slot 1", bytes(48) + slot[0]),
                        ("first mark", slot[1] + struct.pack("<I", 4 | 7 << 8) + bytes(44)),
                        ("second mark", struct.pack("<I", 7 | 0xffffc0 << 8) + slot[1][4:] + struct.pack("<I", 3 | 9 << 8) + slot[1][4:])):
        used = newer_first(entry)
        newer = -1 if not used else 1 if len(used) == 2 and (entry[0] ^ entry[48]) & 2 == 0 or not entry[0] & 1 else 0
        flags = struct.unpack("<I", entry[:4]) + struct.unpack("<I", entry[48:52])
        out.section("entry", name=name, entry=entry, newer=newer, pending=" ".join(str(f >> 2 & 1) for f in flags),
                    rooms=" ".join(str(f >> 8) for f in flags))
    out.section("room", region=4095, block=2 ** 33, slot=slot[1], before=slot[0], head=room_head(4095, 2 ** 33, slot[1], slot[0]))

    out = Out(directory, "file-v1.txt")
    samples = {sample[0]: sample for sample in sample_maps()}
    for name, sealed in (("mixed", False), ("runs", False), ("mixed", True), ("runs", True)):
        name, map_, keys, data_keys = samples[name]
        size = 30001 if name == "mixed" else 20000
        plain = bytearray(stream("plain " + name, size))
        plain[12288:16384] = bytes(4096)
        covered = bytearray(size)
        for region in map_.regions:
            for at in region.members(size):
                covered[at] = 1
        if any(not region.runs for region in map_.regions):
            # the rest is plain, and not checked here
            covered = bytearray(covered)
        plain = bytes(p if c else 0 for p, c in zip(plain, covered))
        salts = {number: stream("S %s %d" % (name, number), 16) for number in data_keys}
        over = {(0, 0): (1, "all"), (1, 2): (2, "all")}
        if not sealed:                  # overwrites that were cut short; such a block reads as the new version, once it is in the room
            over.update({(1, 0): (1, "mark"), (1, 3): (3, "half"), (1, 4): (70, "data"), (1, 5): (4, "entry"),
                         (0, 1): (2, "half"), (0, 2): (200, "data")})
        data, sidecar = write_file(plain, map_, data_keys, salts, over)
        need(read_file(data, sidecar, keys)[1] == plain, "own reading")
        more = {"seal": seal_file(map_, sidecar, size, data_keys, stream("seal id " + name, 16))} if sealed else {}
        need(not sealed or check_seal(map_, sidecar, size, data_keys) == more["seal"], "own seal")
        out.section("file", name=name, size=size, sidecar_size=sidecar.end, keys=len(keys), **more)
        for label, key in keys.items():
            out.section("key", label=label, key=key)
        for at in range(0, size, 2048):
            out.section("data", at=at, cipher=data[at:at + 2048], plain=plain[at:at + 2048])
        for at in sorted(sidecar.pages):
            for part in (0, 2048):
                piece = bytes(sidecar.pages[at][part:part + 2048])
                if any(piece):
                    out.section("sidecar", at=at + part, bytes=piece)


if __name__ == "__main__":
    vectors(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__)))
