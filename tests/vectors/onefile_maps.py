#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""The arithmetic of encrypted files that are one file, on random maps:

    onefile_maps.py [MAPS [SEED]]

Of each map twice: with the geometry that is chosen for it, at random places, and with a
group of a few bytes, where every byte of some groups is counted by hand.  place and size
are inverse; a byte has one block and one entry; no two blocks share either; a block lies in
one group; and a group never has more blocks than entries."""
import itertools
import random
import sys

from onefile_geometry import ENTRY, FIRST, FREE, Bad, Geometry, Layout, Tiling, active, choose

FAR = 1 << 45


def cut(rng, length, regions):
    """[0, length) cut into runs: {region: runs}, region None being bytes of none."""
    points = sorted({0, length} | {rng.randrange(1, max(2, length)) for _ in range(rng.choice([0, 1, 2, 5, 12]))} - {length}) + [length]
    points = sorted(set(points))
    of, last = {}, None
    for at, end in zip(points, points[1:]):
        who = rng.choice(regions + [None])
        if who is not None and who == last:
            start, n = of[who][-1]
            of[who][-1] = start, n + end - at
        elif who is not None:
            of.setdefault(who, []).append((at, end - at))
        last = who
    return of


def make(rng, small):
    """Regions that share no byte: some that are there once, one behind the other, then tiles of several."""
    tilings, at = [], rng.choice([0, 0, 1, 7, 100 if small else 512])
    for _ in range(rng.choice([0, 0, 1, 3])):
        extent = rng.randrange(1, 40 if small else rng.choice([100, 1 << 20, 1 << 26]))
        for runs in cut(rng, extent, [0, 1][:rng.choice([1, 2])]).values():
            shift = runs[0][0]
            runs = [(o - shift, n) for o, n in runs]
            tilings.append(Tiling(at + shift, runs[-1][0] + runs[-1][1], True, runs))
        at += extent
    kind = rng.randrange(4)
    if kind == 0 or not tilings:
        tilings.append(Tiling(at, 1, False, [(0, 1)]))
    elif kind == 1:
        n, length = rng.choice([2, 3, 16]), rng.choice([1, 3, 5] if small else [1, 7, 4096, 100000])
        tilings += [Tiling(at + i * length, n * length, False, [(0, length)]) for i in range(n)]
    elif kind == 2:
        extent = rng.randrange(2, 30 if small else rng.choice([1000, 1 << 17]))
        for runs in cut(rng, extent, [0, 1, 2]).values():
            shift = runs[0][0]
            tilings.append(Tiling(at + shift, extent, False, [(o - shift, n) for o, n in runs]))
    rng.shuffle(tilings)
    sizes = [1, 2, 4, 8] if small else [512, 512, 4096, 65536, 1 << 20]
    # A map may have plain regions between: their numbers have no blocks.
    numbers = sorted(rng.sample(range(2 * len(tilings)), len(tilings)))
    return {number: (tiling, rng.choice(sizes)) for number, tiling in zip(numbers, tilings)}


def members(tiling, limit):
    """Its bytes below limit, one by one."""
    tile = 0
    while tiling.displacement + tile * tiling.extent < limit and not (tiling.once and tile):
        for o, n in tiling.runs:
            for at in range(n):
                if tiling.displacement + tile * tiling.extent + o + at < limit:
                    yield tiling.displacement + tile * tiling.extent + o + at
        tile += 1


def by_hand(rng, regions):
    b = max(B for _, B in regions.values())
    D = b * rng.randrange(1, 7)
    T = b * rng.randrange(1, 4)
    H = rng.choice([0, b])
    N = D // min(B for _, B in regions.values()) + active(regions, D)
    geometry = Geometry(D + T, T, H, 0, N, 1, b)
    layout, groups = Layout(geometry, regions), 4
    blocks, entries, numbers = {}, {}, {}
    for r, (tiling, B) in regions.items():
        counts = [0] * groups
        for o in members(tiling, groups * D):
            g = o // D
            place = g, counts[g] // B, counts[g] % B
            assert layout.block_of(r, o) == place, (r, o, place)
            blocks.setdefault((r, g, place[1]), []).append(o)
            counts[g] += 1
    for (r, g, k), offsets in blocks.items():
        assert [o + i for o, n in layout.pieces(r, g, k) for i in range(n)] == offsets
        assert layout.capacity(r, g, k) == len(offsets) and layout.begin(r, g, k) == offsets[0]
        number = layout.number(r, g, k)
        assert layout.group_of(r, number) == (g, k) and numbers.setdefault((r, number), (g, k)) == (g, k)
        assert entries.setdefault((g, layout.entry(r, g, k)), (r, k)) == (r, k)
        for o in offsets:
            assert H + g * (D + T) + T <= geometry.place(o) < H + (g + 1) * (D + T)
    for g in range(groups):
        assert sorted(e for group, e in entries if group == g) == list(range(sum(1 for _, group, _ in blocks if group == g)))
        assert sum(1 for _, group, _ in blocks if group == g) <= N
    size = rng.randrange(groups * D)
    assert sorted(layout.below(size)) == sorted(block for block, offsets in blocks.items() if offsets[0] < size)
    used = {r: layout.used(r, size) for r in regions}
    for (r, g, k), offsets in blocks.items():
        assert used[r](g, k) == sum(1 for o in offsets if o < size)
    places = {geometry.place(o) for o in range(groups * D)}
    assert len(places) == groups * D
    bytes_below = 0
    for p in range(H + groups * (D + T)):
        assert geometry.size(p) == bytes_below
        bytes_below += p in places
    return len(blocks)


def at_random(rng, regions):
    geometry = choose(regions, rng.choice([0, 0, 1 << 20]), rng.choice([0, 1, 2, 4]), rng.choice([200, 3000, 4000, 100000]))
    geometry.check()
    layout = Layout(geometry, regions)
    assert layout.fits()
    # Nothing of a control area meets anything else.
    assert FREE <= geometry.T - ENTRY * geometry.N - geometry.W * geometry.b
    assert geometry.head_at(0, geometry.W) + ENTRY <= geometry.control(0) + FREE
    assert geometry.entry_at(0, geometry.N - 1) + ENTRY == geometry.place(0)
    assert geometry.room_at(1, geometry.W) + geometry.b == geometry.entry_at(1, 0)
    if geometry.H == 0:
        assert geometry.map_place(1) + geometry.m <= FIRST and geometry.seal_at + 80 + 32 * geometry.roots <= geometry.map_place(0)
    assert geometry.map_place(0) + geometry.m <= geometry.map_place(1)
    fullest = 0
    for g in (0, 1, 2, rng.randrange(1000), rng.randrange(1 << 20)):
        total = sum(layout.blocks(r, g) for r in regions)
        assert total <= geometry.N
        fullest = max(fullest, total / geometry.N)
    seen = {}
    for _ in range(12):
        r = rng.choice(list(regions))
        tiling, B = regions[r]
        packed = rng.randrange(tiling.tile if tiling.once else FAR)
        o, _ = tiling.locate(packed)
        assert tiling.before(o) == packed and tiling.before(o + 1) == packed + 1
        g, k, within = layout.block_of(r, o)
        entry = geometry.entry_at(g, layout.entry(r, g, k))
        assert seen.setdefault(entry, (r, g, k)) == (r, g, k)
        assert layout.group_of(r, layout.number(r, g, k)) == (g, k)
        pieces = list(itertools.islice(layout.pieces(r, g, k), 200))
        assert any(start <= o < start + n for start, n in pieces) or len(pieces) == 200
        assert within < layout.capacity(r, g, k) and all(start // geometry.D == (start + n - 1) // geometry.D == g for start, n in pieces)
    for n in (0, 1, geometry.D - 1, geometry.D, geometry.D + 1, rng.randrange(FAR)):
        assert geometry.size(geometry.end(n)) == n
    p = rng.randrange(FAR)
    assert geometry.end(geometry.size(p)) <= max(p, FIRST, geometry.H) and geometry.size(p) <= geometry.size(p + 1)
    return fullest


def planted(name, of, error):
    """The same maps with an error in one formula, which has to be seen."""
    right = getattr(of, name)
    setattr(of, name, error(right))
    try:
        rng = random.Random(1)
        for _ in range(200):
            by_hand(rng, make(rng, True))
            at_random(rng, make(rng, False))
    except (AssertionError, IndexError, Bad):
        return
    finally:
        setattr(of, name, right)
    raise SystemExit("an error in %s was not seen" % name)


ERRORS = [
    ("place", Geometry, lambda right: lambda self, o: self.H + o // self.D * self.G + o % self.D),
    ("place", Geometry, lambda right: lambda self, o: o // self.D * self.G + self.T + o % self.D),
    ("size", Geometry, lambda right: lambda self, p: max(0, right(self, p) - (p > self.H + self.G))),
    ("size", Geometry, lambda right: lambda self, p: p - p // self.G * self.T),
    ("blocks", Layout, lambda right: lambda self, r, g: self.bytes(r, g) // self.regions[r][1] + 1),
    ("number", Layout, lambda right: lambda self, r, g, k: g * self.blocks(r, g) + k),
    ("entry", Layout, lambda right: lambda self, r, g, k: k),
    ("entry", Layout, lambda right: lambda self, r, g, k: sum(self.blocks(x, 0) for x in self.regions if x < r) + k),
    ("capacity", Layout, lambda right: lambda self, r, g, k: self.regions[r][1]),
    ("before", Tiling, lambda right: lambda self, o: right(self, o) + (self.once and o > self.last())),
]


def main(maps, seed):
    for error in ERRORS:
        planted(*error)
    rng, blocks, fullest = random.Random(seed), 0, 0.0
    for _ in range(maps):
        blocks += by_hand(rng, make(rng, True))
        fullest = max(fullest, at_random(rng, make(rng, False)))
    print("%d planted errors seen" % len(ERRORS))
    print("%d maps: %d blocks counted by hand; the fullest group has %.3f of its entries in use" % (maps, blocks, fullest))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
