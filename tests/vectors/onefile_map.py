# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Keys, maps and their copies in an encrypted file that is one file: written from
docs/file-format.rst alone, with PyPI cryptography."""
import hashlib
import hmac
import struct

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.keywrap import InvalidUnwrap, aes_key_unwrap, aes_key_wrap
from onefile_geometry import Bad, Geometry, Layout, Tiling, need

MAGIC = b"MPICRYPT"
FILE_MAGIC = b"\x89MPICRYPT\r\n\x1a\n\0\0\0"
ALGORITHMS = {1: ("aes-128-gcm", 16), 2: ("aes-192-gcm", 24), 3: ("aes-256-gcm", 32), 4: ("chacha20-poly1305", 32)}
KIND_MAP, KIND_DIGEST = 4, 5    # 1 to 3 belonged to files of development versions
HEAD = 88
HEADER = 84                     # and zeros up to 512
CREATED = 1772323200            # 2026-03-01: when the labels' keys were made


def crc32c(data, table=[]):
    if not table:
        for byte in range(256):
            for _ in range(8):
                byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
            table.append(byte)
    crc = 0xffffffff
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xffffffff


def expand(secret, label, context, length):
    text = b"ompi-crypt v1 " + label
    info = struct.pack(">H", length) + bytes([len(text)]) + text + context
    return HKDFExpand(algorithm=hashes.SHA256(), length=length, info=info).derive(secret)


def fingerprint(key):
    return hashlib.sha256(b"ompi-crypt v1 key fingerprint" + aes_key_wrap(key, b"ompi-crypt fingerprint 1")).digest()[:16]


def wrap(key, data_key, version=1, backend=1, created=CREATED):
    head = struct.pack("<BBH16sQH", 1, backend, version, fingerprint(key), created, 40)
    return head + aes_key_wrap(key, data_key) + struct.pack("<H", 0)


def unwrap(key, blob):
    """Fingerprint and created decide nothing."""
    need(len(blob) >= 72 and blob[0] == 1 and struct.unpack("<QH", blob[20:30])[0] < 2 ** 63, "wrapped key")
    need(struct.unpack("<HH", blob[28:30] + blob[70:72]) == (40, len(blob) - 72), "wrapped key")
    try:
        return aes_key_unwrap(key, blob[30:70])
    except InvalidUnwrap:
        raise Bad("wrapped key") from None


class Region(Tiling):
    def __init__(self, encrypted, algorithm=0, label=b"", block=0, displacement=0, extent=0, once=0, runs=()):
        super().__init__(displacement, extent, once, runs)
        self.encrypted, self.algorithm, self.label, self.block = encrypted, algorithm, label, block
        self.wrapped, self.mac = b"", b""

    def bytes(self):
        head = struct.pack("<BBHIQQII", self.encrypted, self.algorithm, len(self.label), self.block,
                           self.displacement, self.extent, len(self.runs), self.once)
        return head + b"".join(struct.pack("<QQ", *run) for run in self.runs) + self.label

    @staticmethod
    def parse(data, at, body):
        need(at + 32 <= body, "region")
        encrypted, algorithm, label, block, displacement, extent, runs, once = struct.unpack("<BBHIQQII", data[at:at + 32])
        need(encrypted in (0, 1) and once in (0, 1) and at + 32 + 16 * runs + label <= body, "region fields")
        pairs = [struct.unpack("<QQ", data[at + 32 + 16 * i:at + 48 + 16 * i]) for i in range(runs)]
        at += 32 + 16 * runs
        if encrypted:
            need(algorithm in ALGORITHMS and runs and 0 < label <= 64, "algorithm, label")
            need(512 <= block <= 1 << 24 and block & (block - 1) == 0, "block")
        if runs:
            ends = [offset + length for offset, length in pairs]
            need(pairs[0][0] == 0 and all(length for _, length in pairs) and ends[-1] <= extent, "runs")
            need(all(offset > end for (offset, _), end in zip(pairs[1:], ends)), "order of runs")
            need(not once or ends[-1] == extent, "extent")
        return at + label, Region(encrypted, algorithm, data[at:at + label], block, displacement, extent, once, pairs)


class Map:
    """`extensions`: (type, critical, value), which rise by type."""

    def __init__(self, uuid, generation, geometry, regions, extensions=()):
        self.uuid, self.generation, self.geometry = uuid, generation, geometry
        self.regions, self.extensions = regions, list(extensions)

    def body(self, total=0):
        records = b"".join(region.bytes() for region in self.regions)
        records += b"".join(struct.pack("<HHI", type_, critical, len(value)) + value for type_, critical, value in self.extensions)
        head = MAGIC + struct.pack("<HHI16sQII", 1, KIND_MAP, len(self.regions), self.uuid, self.generation,
                                   HEAD + len(records), total)
        return head + self.geometry.bytes() + records

    def bytes(self):
        trailers = b"".join(struct.pack("<H", len(r.wrapped)) + r.wrapped + r.mac for r in self.regions if r.encrypted)
        return self.body(len(self.body()) + len(trailers)) + trailers

    def digest(self):
        return MAGIC + struct.pack("<HHI16sQQ", 1, KIND_DIGEST, 0, self.uuid, self.generation, 0) + self.hash()

    def hash(self):
        return hashlib.sha256(self.body()).digest()

    def mac(self, number, data_key):
        key = expand(data_key, b"file map", self.uuid, 32)
        return hmac.new(key, struct.pack("<I", number) + self.body(), hashlib.sha256).digest()

    def layout(self):
        return Layout(self.geometry, {n: (r, r.block) for n, r in enumerate(self.regions) if r.encrypted})

    def header(self):
        head = FILE_MAGIC + struct.pack("<HHI16s", 1, 1, 0, self.uuid) + self.geometry.bytes()
        return (head + struct.pack("<I", crc32c(head))).ljust(512, b"\0")

    @staticmethod
    def parse(data):
        need(len(data) >= HEAD and data[:8] == MAGIC, "magic")
        version, kind, count, uuid, generation, body, total = struct.unpack("<HHI16sQII", data[8:48])
        need((version, kind) == (1, KIND_MAP) and total == len(data) and HEAD <= body <= total, "head")
        need(0 < count <= 4096 and generation > 0, "regions, generation")
        map_ = Map(uuid, generation, Geometry.parse(data[48:HEAD]), [])
        at = HEAD
        for _ in range(count):
            at, region = Region.parse(data, at, body)
            map_.regions.append(region)
        start = at
        while at < body:
            need(at + 8 <= body, "extension")
            type_, critical, length = struct.unpack("<HHI", data[at:at + 8])
            need(critical in (0, 1) and at + 8 + length <= body and
                 (not map_.extensions or type_ > map_.extensions[-1][0]), "extension")
            map_.extensions.append((type_, critical, data[at + 8:at + 8 + length]))
            at += 8 + length
        need(at == body and at - start <= 65536, "body")
        for region in map_.regions:
            if region.encrypted:
                need(at + 2 <= total, "trailer")
                length, = struct.unpack("<H", data[at:at + 2])
                region.wrapped, region.mac = data[at + 2:at + 2 + length], data[at + 2 + length:at + 34 + length]
                need(len(region.mac) == 32, "trailer")
                at += 34 + length
        need(at == total, "total")
        need(map_.layout().fits(total), "the geometry does not suit the regions")
        return map_

    def unlock(self, keys):
        """Data keys by region number; none: there is no key to check with.  Bad: a MAC does not fit."""
        opened = {}
        for number, region in enumerate(self.regions):
            if region.encrypted and region.label.decode() in keys:
                data_key = unwrap(keys[region.label.decode()], region.wrapped)
                need(hmac.compare_digest(self.mac(number, data_key), region.mac), "MAC of region %d" % number)
                opened[number] = data_key
        return opened

    def unknown(self):
        """The first critical extension that nobody here knows: none is assigned yet."""
        return next((type_ for type_, critical, _ in self.extensions if critical), None)


def make_map(uuid, generation, geometry, regions, keys, data_keys, extensions=()):
    """Wrapped keys and MACs filled in."""
    map_ = Map(uuid, generation, geometry, regions, extensions)
    for number, region in enumerate(regions):
        if region.encrypted:
            region.wrapped = wrap(keys[region.label.decode()], data_keys[number])
    for number, region in enumerate(regions):
        if region.encrypted:
            region.mac = map_.mac(number, data_keys[number])
    return map_


# ---- the header, and which copy of the map counts ----

class Refused(Bad):
    """`how`: as in the table of docs/design/012-one-file.rst, "Plain or encrypted"."""

    def __init__(self, how, text):
        super().__init__(text)
        self.how = how


def header_of(sector):
    """UUID and geometry, which locate the maps and are not believed for anything else."""
    if sector[:16] != FILE_MAGIC:
        return None
    need(struct.unpack("<I", sector[80:84])[0] == crc32c(sector[:80]), "CRC of the header")
    version, kind, zero, uuid = struct.unpack("<HHI16s", sector[16:40])
    if (version, kind) != (1, 1):
        raise Refused("version", "made by another version")
    need(zero == 0 and not any(sector[HEADER:512]), "header")
    return uuid, Geometry.parse(sector[40:80])


def whole_map(place, uuid):
    """The map in a place, if it is whole: | map total | CRC-32C 4 |."""
    need(place[:8] == MAGIC, "no map")
    total, = struct.unpack("<I", place[44:48])
    need(HEAD <= total <= len(place) - 4, "total")
    need(struct.unpack("<I", place[total:total + 4])[0] == crc32c(place[:total]), "CRC of the map")
    map_ = Map.parse(place[:total])
    need(map_.uuid == uuid, "UUID")
    return map_


def place_bytes(map_):
    data = map_.bytes()
    return data + struct.pack("<I", crc32c(data))


def judge(copies, keys):
    """(verified maps with their keys, was a whole one without a key of ours)"""
    verified, strange = [], False
    for map_ in copies:
        try:
            opened = map_.unlock(keys)
        except Bad:
            continue
        if opened:
            verified.append((map_, opened))
        else:
            strange = True
    return verified, strange


def choose_map(uuid, geometry, places, attribute, keys):
    """Map, keys, and whether a copy has to be repaired.  `places`: 0 and 1, as stored."""
    copies, differ = [], False
    for place in places[::-1]:          # 1 first: of equal bodies it has the newer wrapped keys
        try:
            copies.append(whole_map(place, uuid))
        except Bad:
            differ = True
    if not copies:
        raise Refused("forged", "no place has a map of this file")
    digest = None
    if attribute and attribute[:8] == MAGIC and len(attribute) >= 40:
        kind, of = struct.unpack("<H", attribute[10:12])[0], attribute[16:32]
        if of != uuid:
            differ = True               # of another file: said, and replaced by the next writer
        elif kind == KIND_MAP:
            try:
                copies.append(Map.parse(attribute))
            except Bad:
                differ = True
        elif kind == KIND_DIGEST and len(attribute) == 80:
            digest = struct.unpack("<Q", attribute[32:40])[0], attribute[48:]
    verified, strange = judge(copies, keys)
    if not verified:
        raise Refused("no-key" if strange else "forged", "no copy of the map verifies")
    best = verified[0]
    for one in verified[1:]:
        if one[0].geometry != best[0].geometry:
            raise Refused("forged", "two geometries")
        if one[0].generation == best[0].generation and one[0].body() != best[0].body():
            raise Refused("forged", "two maps of one generation")
        if one[0].generation > best[0].generation:
            best = one
    map_, opened = best
    if map_.geometry != geometry:
        raise Refused("forged", "the header is not the map's")
    if digest and (digest[0] > map_.generation or (digest[0] == map_.generation and digest[1] != map_.hash())):
        raise Refused("forged", "the attribute has seen a newer map")
    if map_.unknown() is not None:
        raise Refused("version", "critical extension %d" % map_.unknown())
    differ = differ or any(copy.bytes() != map_.bytes() for copy in copies) or (digest and digest[0] != map_.generation)
    return map_, opened, bool(differ)
