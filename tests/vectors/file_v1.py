#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Encrypted files, version 1, a second time: written from docs/file-format.rst
alone, with PyPI cryptography, to check what the C code does.

    file_v1.py info FILE KEY...           verify the map, print it
    file_v1.py read FILE KEY... > PLAIN   open every block
    file_v1.py write PLAIN FILE KEY SPEC... encrypt PLAIN into FILE; SPEC as for `regions`
    file_v1.py compare PLAIN FILE KEY...  read, and compare
    file_v1.py root FILE KEY...           check the seal, print its hash

KEY is LABEL=HEX (32 bytes, the label's key).  SPEC is
ALGORITHM:LABEL:BLOCK:DISPLACEMENT:EXTENT:ONCE:OFFSET+LENGTH,...

make_file_v1.py makes the vectors with it.
"""
import hashlib
import hmac
import os
import struct
import sys

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap, aes_key_wrap

MAGIC = b"MPICRYPT"
ALGORITHMS = {1: ("aes-128-gcm", 16, AESGCM), 2: ("aes-192-gcm", 24, AESGCM), 3: ("aes-256-gcm", 32, AESGCM),
              4: ("chacha20-poly1305", 32, ChaCha20Poly1305)}
NUMBERS = {value[0]: key for key, value in ALGORITHMS.items()}
FREE = 2101248


class Bad(Exception):
    pass


def need(condition, text):
    if not condition:
        raise Bad(text)


def expand(secret, label, context, length):
    text = b"ompi-crypt v1 " + label
    info = struct.pack(">H", length) + bytes([len(text)]) + text + context
    return HKDFExpand(algorithm=hashes.SHA256(), length=length, info=info).derive(secret)


class Region:
    def __init__(self, encrypted, algorithm=0, label=b"", block=0, displacement=0, extent=0, once=0, runs=()):
        self.encrypted, self.algorithm, self.label, self.block = encrypted, algorithm, label, block
        self.displacement, self.extent, self.once, self.runs = displacement, extent, once, list(runs)
        self.wrapped, self.mac = b"", b""

    def bytes(self):
        head = struct.pack("<BBHIQQII", self.encrypted, self.algorithm, len(self.label), self.block,
                           self.displacement, self.extent, len(self.runs), self.once)
        return head + b"".join(struct.pack("<QQ", *run) for run in self.runs) + self.label

    def members(self, size):
        """The file offsets of the region below size, in packed order."""
        tile = 0
        while self.runs:
            start = self.displacement + tile * self.extent
            if start >= size or (self.once and tile):
                return
            for offset, length in self.runs:
                yield from range(start + offset, min(start + offset + length, size))
            tile += 1


class Map:
    """`extensions`: (type, critical, value), which rise by type."""

    def __init__(self, uuid, generation, regions, extensions=()):
        self.uuid, self.generation, self.regions, self.extensions = uuid, generation, regions, list(extensions)

    def body(self, total=0):
        records = b"".join(region.bytes() for region in self.regions)
        records += b"".join(struct.pack("<HHI", type_, critical, len(value)) + value for type_, critical, value in self.extensions)
        head = MAGIC + struct.pack("<HHI16sQII", 1, 1, len(self.regions), self.uuid, self.generation,
                                   48 + len(records), total)
        return head + records

    def bytes(self):
        trailers = b"".join(struct.pack("<H", len(r.wrapped)) + r.wrapped + r.mac for r in self.regions if r.encrypted)
        return self.body(len(self.body()) + len(trailers)) + trailers

    def mac(self, number, data_key):
        key = expand(data_key, b"file map", self.uuid, 32)
        return hmac.new(key, struct.pack("<I", number) + self.body(), hashlib.sha256).digest()

    def digest(self):
        return MAGIC + struct.pack("<HHI16sQQ", 1, 2, 0, self.uuid, self.generation, 0) + \
            hashlib.sha256(self.body()).digest()

    @staticmethod
    def parse(data):
        need(len(data) >= 48 and data[:8] == MAGIC, "magic")
        version, kind, count, uuid, generation, body, total = struct.unpack("<HHI16sQII", data[8:48])
        need((version, kind) == (1, 1) and total == len(data) and 48 <= body <= total, "head")
        at, regions = 48, []
        for _ in range(count):
            need(at + 32 <= body, "region")
            encrypted, algorithm, label, block, displacement, extent, runs, once = \
                struct.unpack("<BBHIQQII", data[at:at + 32])
            need(encrypted in (0, 1) and once in (0, 1) and at + 32 + 16 * runs + label <= body, "region fields")
            need(not encrypted or (algorithm in ALGORITHMS and runs), "algorithm")
            at += 32
            pairs = [struct.unpack("<QQ", data[at + 16 * i:at + 16 * i + 16]) for i in range(runs)]
            at += 16 * runs
            regions.append(Region(encrypted, algorithm, data[at:at + label], block, displacement, extent, once, pairs))
            at += label
        extensions = []
        while at < body:
            need(at + 8 <= body, "extension")
            type_, critical, length = struct.unpack("<HHI", data[at:at + 8])
            need(critical in (0, 1) and at + 8 + length <= body and (not extensions or type_ > extensions[-1][0]), "extension")
            extensions.append((type_, critical, data[at + 8:at + 8 + length]))
            at += 8 + length
        need(at == body and sum(8 + len(extension[2]) for extension in extensions) <= 65536, "body")
        for region in regions:
            if region.encrypted:
                length, = struct.unpack("<H", data[at:at + 2])
                region.wrapped = data[at + 2:at + 2 + length]
                region.mac = data[at + 2 + length:at + 34 + length]
                need(len(region.mac) == 32, "trailer")
                at += 34 + length
        need(at == total, "total")
        return Map(uuid, generation, regions, extensions)

    def unlock(self, keys):
        """Data keys by region number; the map must verify."""
        opened = {}
        for number, region in enumerate(self.regions):
            if region.encrypted and region.label.decode() in keys:
                data_key = unwrap(keys[region.label.decode()], region.wrapped)
                need(hmac.compare_digest(self.mac(number, data_key), region.mac), "MAC of region %d" % number)
                opened[number] = data_key
        need(opened, "no label at hand verifies this map")
        return opened

    def unknown(self):
        """The first critical extension that nobody here knows: none is assigned yet."""
        return next((type_ for type_, critical, _ in self.extensions if critical), None)


def wrap(key, data_key, version=1, backend=1):
    return struct.pack("<BBHH", 1, backend, version, 40) + aes_key_wrap(key, data_key) + struct.pack("<H", 0)


def unwrap(key, blob):
    form, _, _, length = struct.unpack("<BBHH", blob[:6])
    need(form == 1 and length == 40, "wrapped key")
    return aes_key_unwrap(key, blob[6:46])


def block_cipher(data_key, map_, number, salt):
    region = map_.regions[number]
    _, length, cipher = ALGORITHMS[region.algorithm]
    return cipher(expand(data_key, b"file block", map_.uuid + struct.pack("<IB", number, region.algorithm) + salt, length))


def block_aad(map_, number, block, length):
    return map_.uuid + struct.pack("<IIQI", number, map_.regions[number].block, block, length)


def seal_block(data_key, map_, number, block, salt, counter, plain, generation=1):
    """Ciphertext and slot."""
    nonce = bytes(4) + struct.pack("<Q", counter)
    sealed = block_cipher(data_key, map_, number, salt).encrypt(nonce, plain, block_aad(map_, number, block, len(plain)))
    slot = struct.pack("<IIQ16s16s", 1 | 2 * generation, len(plain), counter, salt, sealed[-16:])
    return sealed[:-16], slot


def open_block(data_key, map_, number, block, slot, cipher):
    flags, length, counter, salt, tag = struct.unpack("<IIQ16s16s", slot)
    need(flags & 0xf9 == 1 and 0 < length <= map_.regions[number].block, "slot")
    nonce = bytes(4) + struct.pack("<Q", counter)
    return block_cipher(data_key, map_, number, salt).decrypt(nonce, cipher[:length] + tag,
                                                              block_aad(map_, number, block, length))


def newer_first(entry):
    """The used slots of an entry, the newer one first."""
    slots = [entry[:48], entry[48:]]
    used = [slot for slot in slots if slot[0] & 1]
    if len(used) == 2 and (slots[0][0] & 2) == (slots[1][0] & 2):
        used.reverse()
    return used


def set_of(room, size):
    """Rooms of a set, and of a room the set, its segment, the set's place there and the room's in the set."""
    rooms = min(64, max(1, 262144 // size))
    number, within = divmod(room - 1, rooms)
    k = (number + 1).bit_length() - 1
    return rooms, number, k, number + 1 - 2 ** k, within


def set_bytes(size):
    return grain(min(64, max(1, 262144 // size)) * (128 + size))


def room_head(number, block, slot, before):
    """`before`: the slot that this version follows."""
    plain = [struct.pack("<I", 1) + one[4:] for one in (slot, before)]
    return struct.pack("<IIQ", number, 0, block) + b"".join(plain) + bytes(16)


def segment_of(block):
    k = (block // 64 + 1).bit_length() - 1
    return k, block - 64 * (2 ** k - 1)


def grain(n):
    return (n + 4095) // 4096 * 4096


class Sidecar:
    """Sparse: a dict of pages, so that a sidecar stays small in memory."""

    def __init__(self, data=None):
        self.pages, self.end = {}, FREE
        if data is not None:
            self.end = max(FREE, len(data))
            for at in range(0, len(data), 4096):
                page = data[at:at + 4096]
                if any(page):
                    self.pages[at] = bytearray(page.ljust(4096, b"\0"))

    def get(self, at, length):
        out = bytearray()
        while length:
            page, within = at // 4096 * 4096, at % 4096
            part = min(length, 4096 - within)
            out += self.pages.get(page, bytes(4096))[within:within + part]
            at, length = at + part, length - part
        return bytes(out)

    def put(self, at, data):
        while data:
            page, within = at // 4096 * 4096, at % 4096
            part = data[:4096 - within]
            self.pages.setdefault(page, bytearray(4096))[within:within + len(part)] = part
            at, data = at + len(part), data[len(part):]

    def allocate(self, length):
        at, self.end = self.end, self.end + grain(length)
        return at

    def header(self, uuid, map_at, map_bytes, state=0, size=0):
        self.put(0, MAGIC + struct.pack("<HHI16sQQQQQ", 1, 3, state, uuid, map_at, map_bytes, 0, 0, size))

    def segment(self, number, kind, k, length):
        at = 4096 + 512 * number + 224 * kind + 8 * k       # kind 0: entries, 1: rooms
        start, = struct.unpack("<Q", self.get(at, 8))
        if not start and length:
            start = self.allocate(length)
            self.put(at, struct.pack("<Q", start))
        return start

    def entry(self, number, block, make=False):
        k, within = segment_of(block)
        start = self.segment(number, 0, k, grain(96 * 64 * 2 ** k) if make else 0)
        return start and start + 96 * within

    def room(self, number, room, size, make=False):
        _, _, k, place, within = set_of(room, size)
        need(k < 18, "number of a room")
        start = self.segment(number, 1, k, set_bytes(size) * 2 ** k if make else 0)
        return start and start + set_bytes(size) * place + (128 + size) * within

    def bytes(self):
        out = bytearray(self.end)
        for at, page in self.pages.items():
            out[at:at + 4096] = page
        return bytes(out)

    def maps(self):
        fields = struct.unpack("<HHI16sQQQQQ", self.get(8, 64))
        need(self.get(0, 8) == MAGIC and fields[0:2] == (1, 3), "sidecar header")
        return [self.get(at, length) for at, length in (fields[4:6], fields[6:8]) if length]


def write_file(plain, map_, data_keys, salts, over=None):
    """The data file and the sidecar of `plain`; blocks of zeros become holes.
    `over`: blocks that were overwritten, by way of which room and how far the writer came: it wrote
    the "mark", "half" of the data or all "data", the beginning of the "entry", or "all"."""
    data, sidecar = bytearray(len(plain)), Sidecar()
    encoded = map_.bytes()
    map_at = sidecar.allocate(len(encoded))
    sidecar.header(map_.uuid, map_at, len(encoded))
    sidecar.put(map_at, encoded)
    for number, region in enumerate(map_.regions):
        members = list(region.members(len(plain)))
        if not region.encrypted:
            for at in members:
                data[at] = plain[at]
            continue
        counter = 0
        for block in range((len(members) + region.block - 1) // region.block):
            places = members[block * region.block:(block + 1) * region.block]
            text = bytes(plain[at] for at in places)
            if not any(text):
                continue
            room, reached = (over or {}).get((number, block), (0, ""))
            entry, ciphers, slots = bytearray(96), [], []
            for version in [text[::-1], text] if room and reached != "mark" else [text]:
                cipher, slot = seal_block(data_keys[number], map_, number, block, salts[number], counter, version)
                ciphers.append(cipher)
                slots.append(slot)
                counter += 1
            entry[:48] = slots[0]
            stored = ciphers[0]
            if room and reached != "all":
                entry[48:52] = struct.pack("<I", 4 | room << 8)
            if room and reached != "mark":
                sidecar.put(sidecar.room(number, room, region.block, True), room_head(number, block, slots[1], slots[0]) + ciphers[1])
                flags, = struct.unpack("<I", slots[1][:4])
                done = struct.pack("<I", flags | room << 8) + slots[1][4:]
                half = len(text) // 2
                stored = ciphers[1][:half] + ciphers[0][half:] if reached == "half" else ciphers[1]
                entry[48:] = {"entry": done[:16] + bytes(32), "all": done}.get(reached, entry[48:])
            sidecar.put(sidecar.entry(number, block, True), bytes(entry))
            for at, byte in zip(places, stored):
                data[at] = byte
    return bytes(data), sidecar


def read_block(data, sidecar, map_, number, block, places, data_key):
    size = map_.regions[number].block
    cipher = bytes(data[at] for at in places)
    at = sidecar.entry(number, block)
    slots = newer_first(sidecar.get(at, 96)) if at else []
    if not slots:
        need(not any(cipher), "region %d block %d is torn" % (number, block))
        return bytes(len(places))
    tries = [(slots[0], cipher)]
    other = sidecar.get(at, 48) if slots[0] == sidecar.get(at + 48, 48) else sidecar.get(at + 48, 48)
    for holder, base in ((other, slots[0]), (slots[0], other)):
        flags, = struct.unpack("<I", holder[:4])
        if flags >> 8 and (flags & 4 or holder is slots[0]):
            room_at = sidecar.room(number, flags >> 8, size)
            room = sidecar.get(room_at, 128 + size) if room_at else bytes(128)
            if room[:16] == struct.pack("<IIQ", number, 0, block) and room[68:112] == base[4:] and base[0] & 1:
                tries += [(room[16:64], cipher), (room[16:64], room[128:])]
    tries += [(slot, cipher) for slot in slots[1:]]
    for slot, text in tries:
        try:
            plain = open_block(data_key, map_, number, block, slot, text)
            return plain[:len(places)].ljust(len(places), b"\0")
        except (InvalidTag, Bad):
            pass
    raise Bad("region %d block %d is forged or damaged" % (number, block))


def read_file(data, sidecar, keys):
    problems, found = [], None
    for encoded in sidecar.maps():
        try:
            map_ = Map.parse(encoded)
            opened = map_.unlock(keys)
            if found is None or map_.generation > found[0].generation:
                found = map_, opened
        except Bad as bad:
            problems.append(str(bad))
    need(found, "no map verifies: " + "; ".join(problems))
    map_, opened = found
    need(map_.unknown() is None, "critical extension %s is unknown" % map_.unknown())
    plain = bytearray(len(data))
    for number, region in enumerate(map_.regions):
        members = list(region.members(len(data)))
        if not region.encrypted:
            for at in members if region.runs else ():
                plain[at] = data[at]
            continue
        if number not in opened:
            continue
        for block in range((len(members) + region.block - 1) // region.block):
            places = members[block * region.block:(block + 1) * region.block]
            text = read_block(data, sidecar, map_, number, block, places, opened[number])
            for at, byte in zip(places, text):
                plain[at] = byte
    return map_, bytes(plain)


# ---- the seal ----

def pages(sidecar, number, blocks, key):
    """The slots of each page and its hash, from the entries that are there."""
    texts, out = [], []
    for first in range(0, blocks, 128):
        slots = b""
        for block in range(first, min(first + 128, blocks)):
            at = sidecar.entry(number, block)
            used = newer_first(sidecar.get(at, 96)) if at else []
            slots += struct.pack("<I", 1) + used[0][4:] if used else bytes(48)
        texts.append(slots)
        out.append(hmac.digest(key, b"page" + struct.pack("<IQ", number, first // 128) + slots, "sha256"))
    return texts, out


def region_root(map_, number, size, blocks, seal_id, hashes, key):
    head = struct.pack("<IQQQ", number, map_.generation, size, blocks) + seal_id
    return hmac.digest(key, b"root" + head + hashlib.sha256(map_.body()).digest() + b"".join(hashes), "sha256")


def sealing(map_, sidecar, size, opened, seal_id):
    """(number, blocks, pages, hashes, root) of each region whose data key is known."""
    for number, region in enumerate(map_.regions):
        if region.encrypted and number in opened:
            key = expand(opened[number], b"file seal", map_.uuid, 32)
            blocks = (len(list(region.members(size))) + region.block - 1) // region.block
            texts, hashes = pages(sidecar, number, blocks, key)
            yield number, blocks, texts, hashes, region_root(map_, number, size, blocks, seal_id, hashes, key)


def seal_file(map_, sidecar, size, data_keys, seal_id):
    roots = b""
    for number, blocks, texts, hashes, root in sealing(map_, sidecar, size, data_keys, seal_id):
        at = sidecar.allocate(32 * len(hashes)) if blocks else 0
        slots_at = sidecar.allocate(48 * blocks) if blocks else 0
        sidecar.put(at, b"".join(hashes))
        sidecar.put(slots_at, b"".join(texts))
        sidecar.put(4096 + 512 * number + 448, struct.pack("<QQ", at, blocks) + root + struct.pack("<Q", slots_at))
        roots += root
    sidecar.put(64, struct.pack("<Q", size) + seal_id)
    sidecar.put(12, struct.pack("<I", 1))
    return hashlib.sha256(roots).digest()


def check_seal(map_, sidecar, size, opened):
    need(sidecar.get(12, 4) == struct.pack("<I", 1) and sidecar.get(64, 8) == struct.pack("<Q", size), "not sealed, or another size")
    roots, seal_id = b"", sidecar.get(72, 16)
    for number, blocks, texts, hashes, root in sealing(map_, sidecar, size, opened, seal_id):
        at, count, stored, slots_at = struct.unpack("<QQ32sQ", sidecar.get(4096 + 512 * number + 448, 56))
        need((count, stored) == (blocks, root), "root of region %d" % number)
        need(sidecar.get(at, 32 * len(hashes)) == b"".join(hashes), "list of region %d" % number)
        need(sidecar.get(slots_at, 48 * blocks) == b"".join(texts), "sealed slots of region %d" % number)
        roots += root
    return hashlib.sha256(roots).digest()


# ---- command line ----

def load(path):
    with open(path, "rb") as file:
        return file.read()


def key_arguments(arguments):
    return {label: bytes.fromhex(value) for label, value in (argument.split("=") for argument in arguments)}


def parse_spec(spec):
    algorithm, label, block, displacement, extent, once, runs = spec.split(":")
    pairs = [tuple(int(n) for n in run.split("+")) for run in runs.split(",")]
    return Region(1, NUMBERS[algorithm], label.encode(), int(block), int(displacement), int(extent), int(once), pairs)


def main(arguments):
    verb = arguments[0] if arguments else "help"
    if verb in ("info", "read"):
        map_, plain = read_file(load(arguments[1]), Sidecar(load(arguments[1] + ".mpicrypt")), key_arguments(arguments[2:]))
        if verb == "read":
            sys.stdout.buffer.write(plain)
        else:
            print("uuid %s generation %d" % (map_.uuid.hex(), map_.generation))
            for number, region in enumerate(map_.regions):
                print(number, region.encrypted, region.algorithm, region.label.decode(), region.block, region.displacement,
                      region.extent, region.once, region.runs)
    elif verb == "root":
        data, sidecar, keys = load(arguments[1]), Sidecar(load(arguments[1] + ".mpicrypt")), key_arguments(arguments[2:])
        map_ = read_file(data, sidecar, keys)[0]
        print(check_seal(map_, sidecar, len(data), map_.unlock(keys)).hex())
    elif verb == "compare":
        plain = read_file(load(arguments[2]), Sidecar(load(arguments[2] + ".mpicrypt")), key_arguments(arguments[3:]))[1]
        need(plain == load(arguments[1]), "the plaintexts differ")
    elif verb == "write":
        keys = key_arguments(arguments[3:4])
        regions = [parse_spec(spec) for spec in arguments[4:]]
        map_, data_keys = Map(os.urandom(16), 1, regions), {}
        for number, region in enumerate(regions):
            data_keys[number] = os.urandom(32)
            region.wrapped = wrap(keys[region.label.decode()], data_keys[number])
        for number, region in enumerate(regions):
            region.mac = map_.mac(number, data_keys[number])
        data, sidecar = write_file(load(arguments[1]), map_, data_keys, {n: os.urandom(16) for n in data_keys})
        for path, content in ((arguments[2], data), (arguments[2] + ".mpicrypt", sidecar.bytes())):
            with open(path, "wb") as file:
                file.write(content)
    else:
        print(__doc__)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Bad as bad:
        sys.exit("file_v1.py: %s" % bad)
