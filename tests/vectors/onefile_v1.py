#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Encrypted files that are one file, version 1, a second time: written from
docs/file-format.rst alone, with PyPI cryptography, to check what C code does.

    onefile_v1.py info FILE KEY...             verify the map, print it
    onefile_v1.py read FILE KEY... > PLAIN     open every block
    onefile_v1.py write PLAIN FILE KEY SPEC... encrypt PLAIN into FILE
    onefile_v1.py compare PLAIN FILE KEY...    read, and compare
    onefile_v1.py root FILE KEY...             check the seal, print its hash

KEY is LABEL=HEX (32 bytes, the label's key).  SPEC is
ALGORITHM:LABEL:BLOCK:DISPLACEMENT:EXTENT:ONCE:OFFSET+LENGTH,...

onefile_geometry.py has the arithmetic, onefile_map.py keys and maps, and
make_onefile_v1.py makes the vectors.
"""
import hashlib
import hmac
import os
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from onefile_geometry import Bad, choose, need, up
from onefile_map import ALGORITHMS, Refused, Region, choose_map, crc32c, expand, header_of, make_map, place_bytes

OPEN, SEALED = 1, 2
NONE = bytes(48)                # a slot that is not used


class Image:
    """Sparse bytes: a dict of pages."""

    def __init__(self, data=b""):
        self.pages, self.size = {}, 0
        for at in range(0, len(data), 4096):
            if any(data[at:at + 4096]):
                self.put(at, data[at:at + 4096])
        self.size = len(data)

    def get(self, at, length):
        out = bytearray()
        while length:
            page, within = at // 4096 * 4096, at % 4096
            part = min(length, 4096 - within)
            out += self.pages.get(page, bytes(4096))[within:within + part]
            at, length = at + part, length - part
        return bytes(out)

    def put(self, at, data):
        self.size = max(self.size, at + len(data))
        while data:
            page, within = at // 4096 * 4096, at % 4096
            part = data[:4096 - within]
            self.pages.setdefault(page, bytearray(4096))[within:within + len(part)] = part
            at, data = at + len(part), data[len(part):]

    def truncate(self, size):
        for page in [page for page in self.pages if page + 4096 > size]:
            self.pages[page][max(0, size - page):] = bytes(4096 - max(0, size - page))
        self.size = size

    def copy(self):
        other = Image()
        other.pages, other.size = {at: bytearray(page) for at, page in self.pages.items()}, self.size
        return other

    def bytes(self):
        out = bytearray(self.size)
        for at, page in self.pages.items():
            out[at:at + 4096] = page[:max(0, self.size - at)]
        return bytes(out)


# ---- slots and blocks ----

def slot_fields(slot):
    return struct.unpack("<IIQ16s16s", slot)


def version(slot):
    """The version alone, without what stands in flags."""
    return struct.pack("<I", 1) + slot[4:] if slot[0] & 1 else NONE


def slot_is_good(slot, capacity, rooms):
    """One that somebody could have written; an unused one has nothing but, perhaps, a mark."""
    flags, length = struct.unpack("<II", slot[:8])
    if flags & 0xf8 or flags >> 8 > rooms:
        return False
    return 1 <= length <= capacity if flags & 1 else not any(slot[4:]) and not flags & 2


def newer_of(slots):
    """0 or 1; None: no slot is used."""
    used = [slot[0] & 1 for slot in slots]
    if used == [1, 1]:
        return int((slots[0][0] ^ slots[1][0]) & 2 == 0)
    return used.index(1) if any(used) else None


def next_of(slots):
    """Which slot is written next, and its generation bit."""
    newer = newer_of(slots)
    if newer is None:
        return 0, 1
    other = slots[newer][0] >> 1 & 1
    return 1 - newer, other if newer == 0 else 1 - other


class Sealer:
    """S and its counter: what no storage ever gives."""

    def __init__(self, map_, data_keys, salts):
        self.map, self.data_keys, self.salts, self.counters = map_, data_keys, salts, {}

    def cipher(self, number, salt):
        region = self.map.regions[number]
        context = self.map.uuid + struct.pack("<IB", number, region.algorithm) + salt
        key = expand(self.data_keys[number], b"file block", context, ALGORITHMS[region.algorithm][1])
        return (ChaCha20Poly1305 if region.algorithm == 4 else AESGCM)(key)

    def aad(self, number, block, length):
        return self.map.uuid + struct.pack("<IIQI", number, self.map.regions[number].block, block, length)

    def seal(self, number, block, plain):
        """Ciphertext, and the version's slot (flags 1)."""
        counter = self.counters[number] = self.counters.get(number, -1) + 1
        salt = self.salts[number]
        sealed = self.cipher(number, salt).encrypt(bytes(4) + struct.pack("<Q", counter), plain, self.aad(number, block, len(plain)))
        return sealed[:-16], struct.pack("<IIQ16s16s", 1, len(plain), counter, salt, sealed[-16:])

    def open(self, number, block, slot, text):
        """None: this is not it."""
        _, length, counter, salt, tag = slot_fields(slot)
        try:
            return self.cipher(number, salt).decrypt(bytes(4) + struct.pack("<Q", counter), text[:length] + tag,
                                                     self.aad(number, block, length))
        except InvalidTag:
            return None


# ---- a file ----

class OneFile:
    def __init__(self, image, map_, sealer):
        self.image, self.map, self.sealer = image, map_, sealer
        self.geometry, self.layout = map_.geometry, map_.layout()

    @property
    def size(self):
        return self.geometry.size(self.image.size)

    def create(self):
        """As a maker leaves it: an empty file."""
        geometry = self.geometry
        self.image.put(0, self.map.header())
        for which in (0, 1):
            self.image.put(geometry.map_place(which), place_bytes(self.map))
        self.image.put(geometry.seal_at, struct.pack("<I", OPEN))
        self.image.size = geometry.end(0)

    def entry(self, r, g, k):
        entry = self.image.get(self.geometry.entry_at(g, self.layout.entry(r, g, k)), 128)
        return [entry[:48], entry[48:96]], entry[96:]

    def put_entry(self, r, g, k, slots, sealed=None):
        at = self.geometry.entry_at(g, self.layout.entry(r, g, k))
        self.image.put(at, slots[0] + slots[1] + (self.image.get(at + 96, 32) if sealed is None else sealed))

    def stored(self, r, g, k):
        return b"".join(self.image.get(self.geometry.place(o), n) for o, n in self.layout.pieces(r, g, k))

    def put_data(self, r, g, k, text):
        for o, n in self.layout.pieces(r, g, k, len(text)):
            self.image.put(self.geometry.place(o), text[:n])
            text = text[n:]

    # ---- writing ----

    def write(self, r, g, k, plain, room=0, reached="all"):
        """A first write, or an overwrite by way of a room as far as the writer came: "mark", "room", half of
        the data ("half"), "data", or "all"."""
        slots, _ = self.entry(r, g, k)
        text, fresh = self.sealer.seal(r, self.layout.number(r, g, k), plain)
        which, generation = next_of(slots)
        done = struct.pack("<I", 1 | 2 * generation | room << 8) + fresh[4:]
        newer = newer_of(slots)
        if newer is None:
            self.put_data(r, g, k, text)
            self.put_entry(r, g, k, [done, NONE])
            return
        flags, = struct.unpack("<I", slots[which][:4])
        marked = list(slots)
        marked[which] = struct.pack("<I", flags & 3 | 4 | room << 8) + slots[which][4:]
        self.put_entry(r, g, k, marked)
        if reached != "mark":
            self.put_room(g, room, r, self.layout.number(r, g, k), fresh, version(slots[newer]), text)
        if reached in ("half", "data", "all"):
            self.put_data(r, g, k, text[:len(text) // 2] if reached == "half" else text)
        if reached == "all":
            slots[which] = done
            self.put_entry(r, g, k, slots)

    def put_room(self, g, room, r, number, slot, before, text):
        head = struct.pack("<IIQ", r, 0, number) + slot + before + bytes(16)
        head = head[:4] + struct.pack("<I", crc32c(head + text)) + head[8:]
        self.image.put(self.geometry.room_at(g, room), text)
        self.image.put(self.geometry.head_at(g, room), head)

    # ---- reading ----

    def room(self, g, room, r, number, capacity):
        """Slot, slot before and text, if the room is of this block."""
        head = self.image.get(self.geometry.head_at(g, room), 128) if 1 <= room <= self.geometry.W else bytes(128)
        region, _, block = struct.unpack("<IIQ", head[:16])
        slot, before = head[16:64], head[64:112]
        ours = (region, block) == (r, number) and slot[:4] == before[:4] == b"\1\0\0\0"
        if ours and slot_is_good(slot, capacity, 0) and slot_is_good(before, capacity, 0):
            return slot, before, self.image.get(self.geometry.room_at(g, room), self.geometry.b)
        return None

    def was_cut(self, r, g, k, lengths, stored):
        """The data of the block was cut by a program that knows nothing of rooms."""
        n = min(lengths)
        last = list(self.layout.pieces(r, g, k, n))[-1]
        return sum(last) > self.size or (n >= 8 and not any(stored[n - 8:n]))

    def candidates(self, r, g, k, slots, newer, stored):
        """(how, slot, ciphertext), in the reader's order."""
        yield "good", slots[newer], stored
        number, capacity = self.layout.number(r, g, k), self.layout.capacity(r, g, k)
        marks, = struct.unpack("<I", slots[1 - newer][:4])
        last, = struct.unpack("<I", slots[newer][:4])
        for room, base in ((marks >> 8 if marks & 4 else 0, slots[newer]), (last >> 8, slots[1 - newer])):
            found = self.room(g, room, r, number, capacity)
            if found and base[0] & 1 and found[1][4:] == base[4:]:
                yield "ahead", found[0], stored
                if not self.was_cut(r, g, k, [slot_fields(one)[1] for one in found[:2]], stored):
                    yield "room", found[0], found[2]
        if slots[1 - newer][0] & 1:
            yield "older", slots[1 - newer], stored

    def block(self, r, g, k, sealed=False):
        """How a block stands, and its text."""
        capacity = self.layout.capacity(r, g, k)
        if self.layout.begin(r, g, k) >= self.size:
            return "behind the end", b""
        slots, seal = self.entry(r, g, k)
        stored = self.stored(r, g, k)
        good = [slot_is_good(slot, capacity, self.geometry.W) for slot in slots]
        slots = [slot if one else NONE for slot, one in zip(slots, good)]
        newer = newer_of(slots)
        if sealed and seal != (bytes(32) if newer is None else hashlib.sha256(version(slots[newer])).digest()):
            return "forged", b""
        if newer is None:
            return ("forged" if not all(good) else "torn" if any(stored) else "hole"), b""
        number = self.layout.number(r, g, k)
        for how, slot, text in self.candidates(r, g, k, slots, newer, stored):
            plain = self.sealer.open(r, number, slot, text)
            if plain is not None:
                return how, plain
            if sealed:
                break
        return "forged", b""

    def read(self, sealed=False):
        """The bytes of all regions whose key is known, and {block: how} of those that do not read."""
        plain, wrong, cut = Image(), {}, {}
        for r, g, k in self.layout.below(self.size):
            if r not in self.sealer.data_keys:
                continue
            how, text = self.block(r, g, k, sealed)
            if how in ("torn", "forged"):
                wrong[r, g, k] = how
            cut.setdefault(r, self.layout.used(r, self.size))
            text = text[:cut[r](g, k)]
            for o, n in self.layout.pieces(r, g, k, len(text)):
                plain.put(o, text[:n])
                text = text[n:]
        for region in self.map.regions:
            if not region.encrypted and region.runs:
                at, end = 0, region.before(self.size)
                while at < end:
                    o, n = region.locate(at)
                    n = min(n, end - at, self.geometry.D - o % self.geometry.D)
                    plain.put(o, self.image.get(self.geometry.place(o), n))
                    at += n
        plain.size = self.size
        return plain, wrong

    # ---- the seal ----

    def pages(self, fill):
        """The hash of each group; `fill` writes the sealed fields first."""
        groups = -(-self.size // self.geometry.D)
        texts = [b""] * groups
        for r, g, k in self.layout.below(self.size):
            slots, sealed = self.entry(r, g, k)
            if fill:
                newer = newer_of(slots)
                sealed = bytes(32) if newer is None else hashlib.sha256(version(slots[newer])).digest()
                self.put_entry(r, g, k, slots, sealed)
            texts[g] += sealed
        return [hashlib.sha256(b"page" + struct.pack("<Q", g) + text).digest() for g, text in enumerate(texts)]

    def tree(self, pages):
        """The tables, {(level, j): 4,096 bytes}, and the top."""
        tables, level, hashes = {}, 0, pages
        while hashes and (level == 0 or len(hashes) > 1):
            level, nodes = level + 1, []
            for j in range(-(-len(hashes) // 128)):
                table = b"".join(hashes[128 * j:128 * j + 128]).ljust(4096, b"\0")
                tables[level, j] = table
                nodes.append(hashlib.sha256(b"node" + struct.pack("<IQ", level, j) + table).digest())
            hashes = nodes
        need(level <= 4, "too large for a seal")
        return tables, hashes[0] if hashes else bytes(32)

    def root(self, r, seal_id, top):
        key = expand(self.sealer.data_keys[r], b"file seal", self.map.uuid, 32)
        groups = -(-self.size // self.geometry.D)
        text = struct.pack("<IQQQ", r, self.map.generation, self.size, groups) + seal_id + self.map.hash() + top
        return hmac.digest(key, b"root" + text, "sha256")

    def seal(self, seal_id):
        tables, top = self.tree(self.pages(True))
        for (level, j), table in tables.items():
            self.image.put(self.geometry.table_at(level, j), table)
        roots = b"".join(self.root(r, seal_id, top) for r in self.layout.regions)
        self.image.put(self.geometry.seal_at, struct.pack("<IIQ16s32s16x", SEALED, 0, self.size, seal_id, top) + roots)
        return hashlib.sha256(roots).digest()

    def check_seal(self):
        """Of each region whose key is known; the hash that a user keeps."""
        count = len(self.layout.regions)
        state, zero, size, seal_id, top, rest = struct.unpack("<IIQ16s32s16s", self.image.get(self.geometry.seal_at, 80))
        roots = self.image.get(self.geometry.seal_at + 80, 32 * count)
        need(state == SEALED and zero == 0 and not any(rest), "not sealed")
        need(size == self.size, "sealed with another size")
        for i, r in enumerate(self.layout.regions):
            if r in self.sealer.data_keys:
                need(roots[32 * i:32 * i + 32] == self.root(r, seal_id, top), "root of region %d" % r)
        tables, found = self.tree(self.pages(False))
        need(found == top, "top")
        for (level, j), table in tables.items():
            need(self.image.get(self.geometry.table_at(level, j), 4096) == table, "table %d of level %d" % (j, level))
        for r, g, k in self.layout.below(self.size):
            slots, sealed = self.entry(r, g, k)
            newer = newer_of(slots)
            need(sealed == (bytes(32) if newer is None else hashlib.sha256(version(slots[newer])).digest()), "a slot of group %d" % g)
        return hashlib.sha256(roots).digest()


def open_file(image, keys, attribute=b""):
    """Refused, with what became of it, or the file."""
    try:
        header = header_of(image.get(0, 512))
    except Refused:
        raise
    except Bad as bad:
        raise Refused("forged", str(bad)) from None
    if header is None:
        raise Refused("no magic", "no magic")
    uuid, geometry = header
    state, = struct.unpack("<I", image.get(geometry.seal_at, 4))
    if state == 0 and image.size <= max(8192, geometry.H):
        raise Refused("unfinished", "being made, or its maker was killed")
    if state not in (OPEN, SEALED):
        raise Refused("forged", "state")
    places = [image.get(geometry.map_place(which), geometry.m) for which in (0, 1)]
    map_, opened, _ = choose_map(uuid, geometry, places, attribute, keys)
    return OneFile(image, map_, Sealer(map_, opened, {}))


# ---- command line ----

def load(path):
    with open(path, "rb") as file:
        return file.read()


def key_arguments(arguments):
    return {label: bytes.fromhex(value) for label, value in (argument.split("=") for argument in arguments)}


def parse_spec(spec):
    algorithm, label, block, displacement, extent, once, runs = spec.split(":")
    number = next(key for key, value in ALGORITHMS.items() if value[0] == algorithm)
    pairs = [tuple(int(n) for n in run.split("+")) for run in runs.split(",")]
    return Region(1, number, label.encode(), int(block), int(displacement), int(extent), int(once), pairs)


def encrypt(plain, regions, keys):
    data_keys = {n: os.urandom(32) for n, region in enumerate(regions) if region.encrypted}
    tilings = {n: (regions[n], regions[n].block) for n in data_keys}
    guess = 200 + sum(len(region.bytes()) + 90 for region in regions)
    map_ = make_map(os.urandom(16), 1, choose(tilings, map_bytes=guess), regions, keys, data_keys)
    file = OneFile(Image(), map_, Sealer(map_, data_keys, {n: os.urandom(16) for n in data_keys}))
    file.create()
    file.image.size = max(file.image.size, map_.geometry.end(len(plain)))
    used = {r: file.layout.used(r, len(plain)) for r in file.layout.regions}
    for r, g, k in file.layout.below(len(plain)):
        text = b"".join(plain[o:o + n] for o, n in file.layout.pieces(r, g, k, used[r](g, k)))
        if any(text):
            file.write(r, g, k, text)
    return file


def main(arguments):
    verb = arguments[0] if arguments else "help"
    if verb == "write":
        regions = [parse_spec(spec) for spec in arguments[4:]]
        file = encrypt(load(arguments[1]), regions, key_arguments(arguments[3:4]))
        with open(arguments[2], "wb") as out:
            for at, page in sorted(file.image.pages.items()):
                out.seek(at)
                out.write(page)
            out.truncate(file.image.size)
        return 0
    if verb not in ("info", "read", "compare", "root"):
        print(__doc__)
        return 2
    path = 2 if verb == "compare" else 1
    file = open_file(Image(load(arguments[path])), key_arguments(arguments[path + 1:]))
    if verb == "info":
        print("uuid %s generation %d" % (file.map.uuid.hex(), file.map.generation), file.geometry)
        for number, region in enumerate(file.map.regions):
            print(number, region.encrypted, region.algorithm, region.label.decode(), region.block, region.displacement,
                  region.extent, region.once, region.runs)
        return 0
    if verb == "root":
        print(file.check_seal().hex())
        return 0
    plain, wrong = file.read()
    need(not wrong, "blocks that do not read: %s" % wrong)
    if verb == "read":
        sys.stdout.buffer.write(plain.bytes())
    else:
        need(plain.bytes() == load(arguments[1]), "the plaintexts differ")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Bad as bad:
        sys.exit("onefile_v1.py: %s" % bad)
