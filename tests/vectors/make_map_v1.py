#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The vectors of maps and blocks of encrypted files, by onefile_map.py and onefile_v1.py:

    make_map_v1.py [DIR]        write map-v1.txt, block-v1.txt
"""
import os
import struct
import sys

from make_onefile_v1 import Out, stream
from onefile_geometry import choose
from onefile_map import Region, make_map
from onefile_v1 import Sealer


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
        keys = {region.label.decode(): stream("key " + region.label.decode(), 32) for region in regions if region.encrypted}
        data_keys = {number: stream("data key %s %d" % (name, number), 32) for number, region in enumerate(regions) if region.encrypted}
        geometry = choose({number: (region, region.block) for number, region in enumerate(regions) if region.encrypted})
        yield name, make_map(stream("uuid " + name, 16), {"simple": 1, "mixed": 7}.get(name, 2 ** 40), geometry, regions, keys, data_keys,
                             more.get(name, ())), keys, data_keys


def maps(out):
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


def blocks(out):
    for name, map_, _, data_keys in sample_maps():
        if map_.extensions:             # a map's matter alone
            continue
        for number, data_key in data_keys.items():
            size = map_.regions[number].block
            for block, length, counter in ((0, 1, 0), (1, 16, 1), (63, 511, 2 ** 30 - 1), (2 ** 33, min(size, 1500), 77)):
                plain, sealer = stream("plain %d" % length, length), Sealer(map_, data_keys, {number: stream("salt %d" % block, 16)})
                sealer.counters[number] = counter - 1
                cipher, slot = sealer.seal(number, block, plain)
                slot = struct.pack("<I", 1 | 2 * (block & 1)) + slot[4:]
                out.section("block", map=name, uuid=map_.uuid, region=number, algorithm=map_.regions[number].algorithm,
                            block_bytes=size, data_key=data_key, block=block, plain=plain, cipher=cipher, slot=slot)


if __name__ == "__main__":
    directory = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))
    maps(Out(os.path.join(directory, "map-v1.txt")))
    blocks(Out(os.path.join(directory, "block-v1.txt")))
