# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""What an attacker, a program without ompi-crypt or a power cut may make of the files of
make_onefile_v1.py, and what has to become of it.  Expectations are written by hand, from
docs/design/012-one-file.rst.

CHANGES: (name, files, change, (open, blocks that do not read, seal)).  A change may return
the attribute that the file has.
"""
import struct

from onefile_map import Map, crc32c, make_map, place_bytes

FINE = ("encrypted", "", "none")
SEALED = ("encrypted", "", "forged")
CHANGES = []


def change(name, files, expected):
    def take(function):
        CHANGES.append((name, files, function, expected))
        return function
    return take


def add(name, files, expected, function):
    CHANGES.append((name, files, function, expected))


def wrong(*blocks):
    return "encrypted", " ".join("%s=forged" % block for block in blocks), "none"


def flip(file, at, mask=1):
    file.image.put(at, bytes([file.image.get(at, 1)[0] ^ mask]))


# ---- the header ----

def header(at, value):
    """Other bytes, and a CRC that fits."""
    def make(file):
        head = bytearray(file.image.get(0, 80))
        head[at:at + len(value)] = value
        file.image.put(0, bytes(head) + struct.pack("<I", crc32c(head)))
    return make


ANY = "simple|large"
for at in (16, 24, 40, 60, 79, 80, 83):
    add("bit of the header at %d" % at, ANY, ("forged", "", ""), lambda file, at=at: flip(file, at))
for at in (84, 300, 511):
    add("byte of the header at %d" % at, ANY, ("forged", "", ""), lambda file, at=at: flip(file, at))
add("header of version 2", ANY, ("version", "", ""), header(16, b"\2\0"))
add("header of kind 2", ANY, ("version", "", ""), header(18, b"\2\0"))
add("reserved bytes of the header", ANY, ("forged", "", ""), header(20, b"\1"))
add("another UUID in the header", ANY, ("forged", "", ""), header(24, b"another's UUID.."))
for field, at, value in (("G", 40, 1 << 21), ("G of no power of two", 40, (1 << 20) + (1 << 19)), ("G too small", 40, 1 << 19),
                         ("T", 48, 1 << 17), ("T of 0", 48, 0), ("T as large as G", 48, 1 << 20), ("H", 56, 2 << 20), ("odd H", 56, 4096),
                         ("H too large", 56, 1 << 33)):
    add("header, " + field, ANY, ("forged", "", ""), header(at, struct.pack("<Q", value)))
for field, at, value in (("m", 64, 4096 * 5), ("odd m", 64, 3073), ("N", 68, 64), ("odd N", 68, 33), ("N of 0", 68, 0), ("N too large", 68, 1 << 20),
                         ("W", 72, 2), ("W of 0", 72, 0), ("W too large", 72, 33), ("b", 76, 8192), ("odd b", 76, 4097), ("b too small", 76, 256)):
    add("header, " + field, ANY, ("forged", "", ""), header(at, struct.pack("<I", value)))
for value in (3, 1 << 31):
    add("state %d" % value, ANY, ("forged", "", ""), lambda file, value=value: file.image.put(file.geometry.seal_at, struct.pack("<I", value)))
add("state 0, and data", ANY, ("forged", "", ""), lambda file: file.image.put(file.geometry.seal_at, bytes(4)))


@change("state 0, and no data", "simple|large", ("unfinished", "", ""))
def _(file):
    file.image.put(file.geometry.seal_at, bytes(4))
    file.image.truncate(max(8192, file.geometry.H))


# ---- maps ----


def torn(*places):
    def make(file):
        for place in places:
            at, data = file.geometry.map_place(place), place_bytes(file.map)
            file.image.put(at + len(data) // 2, bytes(file.geometry.m - len(data) // 2))
    return make


def patched(offset, value, *places, fix=True):
    """Bytes of the map, with a CRC that fits."""
    def make(file):
        data = bytearray(file.map.bytes())
        at = offset % len(data)
        data[at:at + len(value)] = value
        for place in places:
            file.image.put(file.geometry.map_place(place), bytes(data) + struct.pack("<I", crc32c(data) if fix else 0))
    return make


def another(file, generation, geometry=None, label_of=None, extensions=()):
    """A map that a holder of the keys made."""
    label_keys = {region.label.decode(): label_key(region.label.decode()) for region in file.map.regions if region.encrypted}
    return make_map(file.map.uuid, generation, geometry or file.geometry, file.map.regions, label_keys, file.sealer.data_keys, extensions)


def label_key(label):
    from make_onefile_v1 import stream
    return stream("key " + label, 32)


def restored(make):
    """`another` changes the regions' MACs in place: put back what they were."""
    def run(file):
        kept = [(region.wrapped, region.mac) for region in file.map.regions]
        attribute = make(file)
        for region, (wrapped, mac) in zip(file.map.regions, kept):
            region.wrapped, region.mac = wrapped, mac
        return attribute
    return run


def put_map(file, map_, *places):
    for place in places:
        file.image.put(file.geometry.map_place(place), place_bytes(map_))


add("place 0 torn", ANY, FINE, torn(0))
add("place 1 torn", ANY, FINE, torn(1))
add("both places torn", ANY, ("forged", "", ""), torn(0, 1))
add("both places empty", ANY, ("forged", "", ""), lambda file: [file.image.put(file.geometry.map_place(i), bytes(file.geometry.m)) for i in (0, 1)] and None)
add("place 0 with another MAC", ANY, FINE, patched(-1, b"?", 0))
add("both places with another MAC", ANY, ("forged", "", ""), patched(-1, b"?", 0, 1))
add("a CRC that does not fit", ANY, FINE, patched(0, b"", 1, fix=False))
add("no CRC that fits", ANY, ("forged", "", ""), patched(0, b"", 0, 1, fix=False))
for field, offset, value in (("version", 8, b"\2"), ("kind of a development version", 10, b"\1"), ("number of regions", 12, b"\0"), ("UUID", 16, b"?"),
                             ("generation", 32, b"\2"), ("body", 40, b"\0"), ("total", 44, b"\xff\xff"), ("G", 50, b"\x20"), ("T", 49, b"\x50"),
                             ("N", 68, b"\x40"), ("W", 72, b"\3"), ("kind of a region", 88, b"\2"), ("algorithm", 89, b"\7"), ("block", 93, b"\7"),
                             ("displacement", 96, b"\1"), ("extent", 104, b"\0"), ("once", 116, b"\2"), ("run", 120, b"\1")):
    add("map, " + field, ANY, ("forged", "", ""), patched(offset, value, 0, 1))
add("a newer map in place 1", ANY, FINE, restored(lambda file: put_map(file, another(file, 2), 1)))
add("a newer map in both, the older attribute", ANY, FINE, restored(lambda file: (put_map(file, another(file, 2), 0, 1), Map.digest(file.map))[1]))
add("a critical extension", ANY, ("version", "", ""), restored(lambda file: put_map(file, another(file, 2, extensions=[(9, 1, b"?")]), 0, 1)))
add("an extension", ANY, FINE, restored(lambda file: put_map(file, another(file, 2, extensions=[(9, 0, b"?")]), 0, 1)))
add("two maps of one generation", ANY, ("forged", "", ""), restored(lambda file: put_map(file, another(file, 1, extensions=[(9, 0, b"?")]), 1)))
add("another geometry in place 1", ANY, ("forged", "", ""),
    restored(lambda file: put_map(file, another(file, 2, file.geometry._replace(W=2)), 1)))


@change("another geometry in both, and in the header", "simple", ("encrypted", "0:0:0=forged", "none"))
@restored
def _(file):
    # A holder of the keys may do this, and nobody else can: room 2 is out of reach then.
    map_ = another(file, 2, file.geometry._replace(W=1))
    put_map(file, map_, 0, 1)
    file.image.put(0, map_.header())


@change("too few entries for the regions", ANY, ("forged", "", ""))
@restored
def _(file):
    map_ = another(file, 2, file.geometry._replace(N=32))
    put_map(file, map_, 0, 1)
    file.image.put(0, map_.header())


add("attribute: the map", ANY, FINE, lambda file: file.map.bytes())
add("attribute: digest", ANY, FINE, lambda file: file.map.digest())
add("attribute: a newer digest", ANY, ("forged", "", ""), restored(lambda file: another(file, 2).digest()))
add("attribute: another digest", ANY, ("forged", "", ""), lambda file: file.map.digest()[:-1] + b"?")
add("attribute: a newer map", ANY, FINE, restored(lambda file: another(file, 2).bytes()))
add("attribute: a newer map that does not verify", ANY, FINE, restored(lambda file: another(file, 2).bytes()[:-1] + b"?"))
add("attribute: another file's", ANY, FINE, lambda file: file.map.bytes()[:16] + b"another's UUID.." + file.map.bytes()[32:])
add("attribute: anything", ANY, FINE, lambda file: b"anything")


# ---- blocks: of "simple", 0 was overwritten by way of room 2, 1 is a hole, 2 has 808 bytes ----

def slot_at(file, k, slot, offset=0, r=0, g=0):
    return file.geometry.entry_at(g, file.layout.entry(r, g, k)) + 48 * slot + offset


def put_slot(k, slot, offset, value, r=0, g=0):
    return lambda file: file.image.put(slot_at(file, k, slot, offset, r, g), value)


def data_at(file, r, g, k, offset=0):
    return file.geometry.place(file.layout.begin(r, g, k)) + offset


add("a bit of data", "simple", wrong("0:0:2"), lambda file: flip(file, data_at(file, 0, 0, 2, 100)))
add("a bit of data of the block of a room", "simple", FINE, lambda file: flip(file, data_at(file, 0, 0, 0, 100)))
add("data of zeros", "simple", wrong("0:0:2"), lambda file: file.image.put(data_at(file, 0, 0, 2), bytes(808)))
for field, offset, value in (("tag", 47, b"?"), ("a tag of zeros", 32, bytes(16)), ("S", 16, b"?"), ("counter", 8, b"\x99"), ("length", 4, b"\x29\3"),
                             ("length of 0", 4, bytes(4)), ("length beyond B", 4, b"\1\x10"), ("flags", 0, b"\x0b"), ("room beyond W", 1, b"\5")):
    add("slot: " + field, "simple", wrong("0:0:2"), put_slot(2, 0, offset, value))
add("an unused slot that is not empty", "simple", wrong("0:0:1"), put_slot(1, 0, 20, b"?"))
add("a mark of a block without version", "simple", FINE, put_slot(1, 1, 0, b"\4\1"))
add("a mark that leads to another block", "simple", FINE, put_slot(2, 1, 0, b"\4\2"))
add("the other generation", "simple", FINE, lambda file: flip(file, slot_at(file, 0, 0), 2))
add("no entry", "simple", ("encrypted", "0:0:2=torn", "none"), put_slot(2, 0, 0, bytes(96)))
add("data without an entry", "simple", ("encrypted", "0:0:1=torn", "none"), lambda file: file.image.put(data_at(file, 0, 0, 1), b"?"))


@change("a hole in the place of a block", "simple", FINE)
def hole(file):
    file.image.put(slot_at(file, 2, 0), bytes(96))
    file.image.put(data_at(file, 0, 0, 2), bytes(808))


@change("two blocks exchanged", "groups", wrong("0:1:0", "0:2:0"))
def _(file):
    # The same region and place in their groups: only the number of the group differs.
    file.image.put(slot_at(file, 0, 0, g=2), file.image.get(slot_at(file, 0, 0, g=1), 128))
    for i in range(0, 1024):
        file.image.put(data_at(file, 0, 2, 0, i), file.image.get(data_at(file, 0, 1, 0, i), 1))
    flip(file, slot_at(file, 0, 0, 40, g=1))
    flip(file, slot_at(file, 0, 1, 40, g=1))
    flip(file, file.geometry.head_at(1, 1) + 20)


add("an entry of the other region", "groups", wrong("0:1:0", "1:1:0"),
    lambda file: (lambda a, b, x, y: (file.image.put(a, y), file.image.put(b, x)) and None)(
        slot_at(file, 0, 0, g=1), slot_at(file, 0, 0, r=1, g=1), file.image.get(slot_at(file, 0, 0, g=1), 96),
        file.image.get(slot_at(file, 0, 0, r=1, g=1), 96)))
add("a plain byte", "groups", FINE, lambda file: flip(file, file.geometry.place(100)))

# ---- sizes ----

add("cut within a block", "simple", wrong("0:0:2"), lambda file: file.image.truncate(file.geometry.end(8500)))
add("cut between blocks", "simple", FINE, lambda file: file.image.truncate(file.geometry.end(8192)))
add("cut to nothing but the header", "simple", FINE, lambda file: file.image.truncate(8192))
add("lengthened", "simple|groups", FINE, lambda file: setattr(file.image, "size", file.image.size + 10000))
add("lengthened into the next control area", "groups", FINE, lambda file: setattr(file.image, "size", 3 * (1 << 20) + 20))
add("the next group's control area alone", "simple", FINE, lambda file: setattr(file.image, "size", (1 << 20) + 5))
add("an entry behind the end", "simple", FINE, put_slot(3, 0, 0, b"\3\0\0\0\1" + bytes(11) + b"S" * 32))
add("an entry behind the end, and the file lengthened", "simple", wrong("0:0:3"),
    lambda file: (file.image.put(slot_at(file, 3, 0), b"\3\0\0\0\1" + bytes(11) + b"S" * 32), setattr(file.image, "size", file.image.size + 10000))[1])

# ---- rooms: of "rooms", block 0 has a mark, 1 a room, 2 half of its data, 3 all of it ----

HEAD = (("region", 0, b"\1"), ("block", 8, b"\7"), ("flags", 16, b"\3"), ("length", 20, b"\7"), ("tag", 63, b"?"), ("version before", 100, b"?"))
for field, offset, value in HEAD:
    add("head of a room that counts: " + field, "rooms", wrong("0:0:2"),
        lambda file, offset=offset, value=value: file.image.put(file.geometry.head_at(0, 3) + offset, value))
    add("head of a room that does not: " + field, "rooms", FINE,
        lambda file, offset=offset, value=value: file.image.put(file.geometry.head_at(0, 2) + offset, value))
add("check of a head, which readers need not", "rooms", FINE, lambda file: flip(file, file.geometry.head_at(0, 3) + 4))
add("a room's ciphertext", "rooms", wrong("0:0:2"), lambda file: flip(file, file.geometry.room_at(0, 3)))
add("a room's ciphertext, of a block whose data is there", "rooms", FINE, lambda file: flip(file, file.geometry.room_at(0, 4)))
add("a block with half of its data, cut and lengthened", "rooms", wrong("0:0:2", "0:0:3", "0:0:4"),
    lambda file: (lambda size: (file.image.truncate(file.geometry.end(8192 + 100)), setattr(file.image, "size", size))[1])(file.image.size))

# ---- a seal ----


def seal_byte(offset):
    return lambda file: flip(file, file.geometry.seal_at + offset)


for field, offset in (("zeros", 4), ("size", 8), ("id", 16), ("top", 32), ("more zeros", 64), ("root", 80)):
    result = ("encrypted", "", "none") if field in ("zeros", "more zeros") else SEALED
    add("seal: " + field, "sealed|sealed groups", result, seal_byte(offset))
add("seal: the state", "sealed|sealed groups", FINE, lambda file: file.image.put(file.geometry.seal_at, b"\1"))
add("seal: the second root", "sealed groups", SEALED, seal_byte(80 + 32))
add("seal: a table", "sealed|sealed groups", SEALED, lambda file: flip(file, file.geometry.table_at(1, 0)))
add("seal: a table behind its hashes", "sealed|sealed groups", SEALED, lambda file: flip(file, file.geometry.table_at(1, 0) + 4095))
add("seal: a sealed field", "sealed|sealed groups", SEALED, lambda file: flip(file, slot_at(file, 0, 2)))
add("seal: the size of the file", "sealed", SEALED, lambda file: file.image.truncate(file.geometry.end(8192)))
add("seal: a longer file", "sealed|sealed groups", SEALED, lambda file: setattr(file.image, "size", file.image.size + 1))
add("seal: up to the next control area", "sealed groups", SEALED,
    lambda file: setattr(file.image, "size", 3 * (1 << 20) + 20))
add("seal: a hole", "sealed", SEALED, hole)


@change("seal: a hole, and the field says so", "sealed", SEALED)
def _(file):
    hole(file)
    file.image.put(slot_at(file, 2, 2), bytes(32))


@change("seal: the version before", "sealed", SEALED)
def older(file):
    # With the key of no region: both slots are there, and the data that the room's writer had replaced.
    text, slot = file.sealer.seal(0, 0, b"an earlier version")
    file.put_data(0, 0, 0, text)
    file.image.put(slot_at(file, 0, 1, 4), slot[4:])


add("seal: no change", "sealed|sealed groups", ("encrypted", "", "fits"), lambda file: None)
add("seal: the slot that is not the newer one", "sealed", ("encrypted", "", "fits"), lambda file: flip(file, slot_at(file, 0, 0, 40)))
add("seal: the number of a room", "sealed", ("encrypted", "", "fits"), put_slot(0, 1, 1, b"\1"))
add("seal: a plain byte", "sealed groups", ("encrypted", "", "fits"), lambda file: flip(file, file.geometry.place(100)))

