# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Where everything lies in an encrypted file that is one file: written from
docs/file-format.rst alone.  Arithmetic only.

    F     = | header area H | group 0 | group 1 | ...      group g starts at H + g G
    group = | control T | data D |                         D = G - T
"""
import math
import struct
from collections import namedtuple

MIB = 1 << 20
SMALL_MAP = 3072
HEADS = 24576                   # of the rooms, in a control area
FREE = 28672                    # ends with these
FIRST = 8192                    # bytes of group 0 before which no control record lies, if H is 0
ENTRY = 128
END_MAX = 1 << 61               # no file is longer: locks lie behind


class Bad(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Bad(text)


def up(n, multiple):
    return -(-n // multiple) * multiple


class Geometry(namedtuple("Geometry", "G T H m N W b")):
    BYTES = 40

    @property
    def D(self):
        return self.G - self.T

    def bytes(self):
        return struct.pack("<QQQIIII", *self)

    @staticmethod
    def parse(data):
        geometry = Geometry(*struct.unpack("<QQQIIII", data[:40]))
        geometry.check()
        return geometry

    def check(self):
        """Whatever the storage says: without this no arithmetic is done with it."""
        G, T, H, m, N, W, b = self
        need(MIB <= G <= 1 << 36 and G & (G - 1) == 0, "G")
        need(512 <= b <= 1 << 24 and b & (b - 1) == 0, "b")
        need(1 <= W <= 32 and 32 <= N < 1 << 31 and N % 32 == 0, "W, N")
        need(0 < T < G and T % 4096 == 0 and T % b == 0, "T")
        need(FREE + W * b + ENTRY * N <= T, "control area")
        if H == 0:
            need(m == SMALL_MAP, "m")
        else:
            need(H % MIB == 0 and H <= 1 << 32 and m % 4096 == 0 and 4096 <= m <= 1 << 26, "H, m")
            need(4096 + 2 * m + 80 + 32 <= H, "header area")

    # ---- offsets ----

    def place(self, o):
        return self.H + o // self.D * self.G + self.T + o % self.D

    def end(self, n):
        """How long F is at least if it has n bytes."""
        return self.place(n - 1) + 1 if n else max(FIRST, self.H)

    def size(self, p):
        if p <= self.H:
            return 0
        group, within = divmod(p - self.H, self.G)
        return group * self.D + max(0, within - self.T)

    def control(self, g):
        return self.H + g * self.G

    def last_group(self, p):
        """The group that F ends in, in its control area or its data; None: before group 0."""
        return (p - self.H - 1) // self.G if p > self.H else None

    # ---- the header area ----

    def map_place(self, which):
        return (1024, 4096)[which] if self.H == 0 else 4096 + which * self.m

    @property
    def seal_at(self):
        return 512 if self.H == 0 else 4096 + 2 * self.m

    @property
    def roots(self):
        """For so many there is room in the seal record."""
        return (512 - 80) // 32 if self.H == 0 else min(4096, (self.H - self.seal_at - 80) // 32)

    # ---- a control area ----

    def entry_at(self, g, e):
        need(0 <= e < self.N, "entry")
        return self.control(g) + self.T - ENTRY * (self.N - e)

    def head_at(self, g, room):
        return self.control(g) + HEADS + ENTRY * (room - 1)

    def room_at(self, g, room):
        return self.control(g) + self.T - ENTRY * self.N - (self.W - room + 1) * self.b

    def table_at(self, level, j):
        return self.control(j * 128 ** level) + 8192 + 4096 * (level - 1)


# ---- regions ----

class Tiling:
    """Runs (offset, length), which repeat with `extent` or are there once."""

    def __init__(self, displacement, extent, once, runs):
        self.displacement, self.extent, self.once, self.runs = displacement, extent, once, list(runs)
        self.tile = sum(length for _, length in self.runs)

    def before(self, o):
        """Bytes of the region below logical offset o."""
        if o <= self.displacement or not self.runs:
            return 0
        tiles, rest = divmod(o - self.displacement, self.extent)
        if self.once and tiles:
            return self.tile
        return tiles * self.tile + sum(min(length, rest - at) for at, length in self.runs if at < rest)

    def locate(self, p):
        """Where packed byte p lies, and how many bytes from there on lie together."""
        tiles, rest = divmod(p, self.tile)
        need(not (self.once and tiles), "no such byte")
        if self.tile == self.extent:    # one run without gaps
            return self.displacement + p, self.tile - rest if self.once else END_MAX
        for at, length in self.runs:
            if rest < length:
                return self.displacement + tiles * self.extent + at + rest, length - rest
            rest -= length
        raise AssertionError

    def first(self):
        return self.displacement

    def last(self):
        return self.displacement + self.extent - 1 if self.once else None


class Layout:
    """A geometry and the tilings of a map's encrypted regions: {number: (tiling, B)}."""

    def __init__(self, geometry, regions):
        self.geometry, self.regions = geometry, dict(sorted(regions.items()))

    def bytes(self, r, g):
        tiling, D = self.regions[r][0], self.geometry.D
        return tiling.before((g + 1) * D) - tiling.before(g * D)

    def blocks(self, r, g):
        return -(-self.bytes(r, g) // self.regions[r][1])

    def number(self, r, g, k):
        return g * (self.geometry.D // self.regions[r][1]) + k

    def group_of(self, r, b):
        return divmod(b, self.geometry.D // self.regions[r][1])

    def entry(self, r, g, k):
        need(0 <= k < self.blocks(r, g), "block")
        return sum(self.blocks(other, g) for other in self.regions if other < r) + k

    def block_of(self, r, o):
        """Group, k and place within the block of logical byte o, which is one of region r."""
        tiling, B = self.regions[r]
        g = o // self.geometry.D
        within = tiling.before(o) - tiling.before(g * self.geometry.D)
        return g, within // B, within % B

    def capacity(self, r, g, k):
        return min(self.regions[r][1], self.bytes(r, g) - k * self.regions[r][1])

    def pieces(self, r, g, k, length=None):
        """(logical offset, bytes) of a block's first `length` bytes, all in group g."""
        tiling, B = self.regions[r]
        at = tiling.before(g * self.geometry.D) + k * B
        left = self.capacity(r, g, k) if length is None else length
        while left:
            o, together = tiling.locate(at)
            part = min(left, together)
            yield o, part
            at, left = at + part, left - part

    def begin(self, r, g, k):
        return next(self.pieces(r, g, k))[0]

    def below(self, size):
        """(region, group, k) of every block that begins below `size`, by group and entry."""
        for g in range(-(-size // self.geometry.D)):
            for r, (tiling, B) in self.regions.items():
                start = tiling.before(g * self.geometry.D)
                stop = tiling.before(min(size, (g + 1) * self.geometry.D))
                for k in range(-(-(stop - start) // B)):
                    yield r, g, k

    def used(self, r, size):
        """Bytes of each block of r that lie below size: a function of (g, k)."""
        tiling, B = self.regions[r]
        return lambda g, k: max(0, min(B, tiling.before(min(size, (g + 1) * self.geometry.D)) -
                                       tiling.before(g * self.geometry.D) - k * B))

    def fits(self, map_bytes=0):
        """Does the geometry suit these regions?  Sufficient for `blocks of a group <= N`."""
        geometry = self.geometry
        if not self.regions:
            return False
        smallest = min(B for _, B in self.regions.values())
        return (geometry.D // smallest + active(self.regions, geometry.D) <= geometry.N and
                all(B <= geometry.b for _, B in self.regions.values()) and
                len(self.regions) <= geometry.roots and map_bytes + 4 <= geometry.m)


def active(regions, D):
    """A: the most regions whose first-to-last-byte interval touches one and the same group."""
    events = []
    for tiling, _ in regions.values():
        events.append((tiling.first() // D, 0, 1))
        if tiling.once:
            events.append((tiling.last() // D, 1, -1))
    most = now = 0
    for _, _, change in sorted(events):
        now += change
        most = max(most, now)
    return most


# ---- choosing a geometry: readers take any that passes `check` and `fits` ----

def period(regions):
    """Bytes of F after which every region has had a whole number of its blocks; 0: there are none such."""
    extents = {tiling.extent for tiling, _ in regions.values()}
    if len(extents) != 1 or any(tiling.once for tiling, _ in regions.values()):
        return 0
    q = max(tiling.extent * B // math.gcd(B, tiling.tile) for tiling, B in regions.values())
    return q if q <= 1 << 26 and q & (q - 1) == 0 else 0


def choose(regions, group=0, rooms=0, map_bytes=0, stripe=0):
    sizes = [B for _, B in regions.values()]
    s, b = min(sizes), max(sizes)
    W = rooms or (3 if b >= 65536 else min(32, 196608 // b))
    q, G = period(regions), group or max(1 << 24, 256 * b)
    while True:
        unit = max(b, min(262144, G // 64), q, 4096)
        T = unit
        while T < G:
            more = up(FREE + W * b + ENTRY * up((G - T) // s + active(regions, G - T) + 32, 32), unit)
            if more <= T:
                break
            T = more
        limit = G // 3 if s < 4096 else G // 8 if G < 1 << 24 else G // 16
        if T <= limit:
            break
        G *= 2
    N = (T - FREE - W * b) // ENTRY // 32 * 32
    H, m = 0, SMALL_MAP
    if map_bytes + 4 > SMALL_MAP or len(regions) > 13:
        m = up(2 * (map_bytes + 4), 4096)
        H = up(4096 + 2 * m + 80 + 32 * min(4096, 2 * len(regions)), max(MIB, stripe))
    return Geometry(G, T, H, m, N, W, b)
