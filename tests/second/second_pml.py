# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Frames of pml/crypt over ob1 and btl/tcp (docs/wire-format.rst), for second.py.

btl/tcp, with flags that leave it nothing but sends: two handshakes of 24 bytes, then | tag 1 | type 1 | count 2 | size 4 |
and size bytes.  ob1 of Open MPI 4.1, in the byte order of the machine: a match of 14 bytes, or a rendezvous of 32 with
fragments; acknowledgments have no payload.
"""
import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from make_frame_v1 import SHIFT, aead, envelope, epoch_nonce, expand
from second import refuse

MAGIC = b"OPAL-TCP-BTL"
MATCH, RNDV, ACK, FRAG = 65, 66, 68, 70
GENERATIONS = 64                # looked through, from the last one of the same communicator
HALF = 1 << 30                  # N/2 of "Tags", with 32 bits
SEGMENTS = -HALF - HALF // 4 - 1


class Chop:
    """A chopped message whose first part has opened."""

    def __init__(self, key, prefix, count):
        self.key, self.prefix, self.count, self.missing = key, prefix, count, set(range(1, count + 1))

    def nonce(self, segment):
        return self.prefix + bytes([segment == self.count]) + struct.pack(">I", segment)


class Direction:
    """What one process sends to one other."""

    def __init__(self, reader):
        self.reader, self.pair, self.generation, self.chops = reader, None, {}, {}
        self.ours, self.long_ones = None, {}

    def feed(self, buffer):
        at = 0
        if self.ours is None and len(buffer) >= 24:
            self.ours, at = MAGIC in buffer[:24], 24
            self.reader.counts["directions"] += self.ours
        while self.ours and at + 8 <= len(buffer):
            tag, kind, size = struct.unpack(">BBxxI", buffer[at:at + 8])
            if kind == 1 and size > 1 << 24:
                size, = struct.unpack("<I", buffer[at + 4:at + 8])
            refuse(kind != 1 or size > 1 << 24, "btl/tcp: type %d, %d bytes" % (kind, size))
            if at + 8 + size > len(buffer):
                break
            self.host(tag, bytes(buffer[at + 8:at + 8 + size]))
            at += 8 + size
        del buffer[:len(buffer) if self.ours is False else at]

    def host(self, tag, text):
        if tag == ACK:
            return
        refuse(tag not in (MATCH, RNDV, FRAG), "ob1: a header of type %d" % tag)
        if tag == FRAG:
            offset, request = struct.unpack("<8xQQ", text[:24])
            refuse(offset != len(self.long_ones[request][3]), "ob1: fragments out of order")
            self.long_ones[request][3].extend(text[32:])
        else:
            context, _, told = struct.unpack("<2xHii", text[:12])
            if tag == MATCH:
                self.message(context, told, text[14:])
                return
            length, request = struct.unpack("<16xQQ", text[:32])
            self.long_ones[request] = context, told, length, bytearray(text[32:])
        context, told, length, whole = self.long_ones[request]
        if len(whole) >= length:
            del self.long_ones[request]
            self.message(context, told, bytes(whole))

    def message(self, context, tag, frame):
        counts = self.reader.counts
        counts["messages"] = counts.get("messages", 0) + 1
        if SEGMENTS - HALF // 2 < tag <= SEGMENTS:
            return self.segment(context, tag, frame)
        refuse(len(frame) < 24, "a message of %d bytes is no frame" % len(frame))
        kind, counter = frame[0] & 15, int.from_bytes(frame[2:8], "big")
        refuse(frame[0] >> 4 != 1 or frame[1] or kind not in (1, 2, 5), "a frame begins with %s" % frame[:2].hex())
        for pair in [self.pair] if self.pair else self.reader.pairs:
            last = self.generation.get(context, 1)
            for generation in [last, *range(1, GENERATIONS)]:
                for told in tags(tag):
                    try:
                        plain = self.open(pair, kind, counter, envelope(bytes(8) + struct.pack(">Q", context), generation, told), frame, tag, context)
                    except InvalidTag:
                        continue
                    self.pair, self.generation[context] = pair, generation
                    name = {1: "direct", 2: "first parts", 5: "final"}[kind]
                    counts[name] = counts.get(name, 0) + 1
                    counts["bytes"] += len(plain)
                    return
        refuse(True, "a frame of type %d, tag %d, does not open" % (kind, tag))

    def keys(self, pair, kind, epoch):
        """Of direct frames: a cipher and an IV; of chopped messages: the pseudo-random function."""
        known = self.reader.known.get((pair, kind == 2, epoch))
        if known is None:
            (source, target), (prk, th) = pair
            what = "chop" if kind == 2 else "epoch"
            parent = expand(prk, "ompi-crypt v1 " + ("chop" if kind == 2 else "direction"), source + target + th, 32)
            key = expand(parent, "ompi-crypt v1 %s key" % what, struct.pack(">Q", epoch), self.reader.key_bytes)
            if kind == 2:
                known = Cipher(algorithms.AES(key), modes.ECB())
            else:
                iv = expand(parent, "ompi-crypt v1 epoch iv", struct.pack(">Q", epoch), 12)
                known = aead(self.reader.cipher, key), iv
            self.reader.known[pair, kind == 2, epoch] = known
        return known

    def open(self, pair, kind, counter, described, frame, tag, context):
        known = self.keys(pair, kind, counter >> SHIFT)
        if kind != 2:
            return known[0].decrypt(epoch_nonce(known[1], counter), frame[8:], frame[:8] + described)
        ecb = known.encryptor()
        derived = b"".join(ecb.update(bytes([j]) + bytes(9) + frame[2:8]) for j in range(3))
        total, chunk, count = struct.unpack(">QII", frame[8:24])
        chop = Chop(aead(self.reader.cipher, derived[:self.reader.key_bytes]), derived[self.reader.key_bytes:self.reader.key_bytes + 7], count)
        plain = chop.key.decrypt(chop.nonce(0), frame[24:], frame[:24] + described)
        rest = total - len(plain)
        refuse(rest < 0 or total > 1 << 42 or not 1 <= chunk <= 64 << 20 or count not in ({-(-rest // chunk)} if rest else {0, 1}),
               "the shape of a chopped message")
        if count:
            self.chops.setdefault((context, SEGMENTS - counter % (HALF // 2)), []).append(chop)
        return plain

    def segment(self, context, tag, sealed):
        pending = self.chops.get((context, tag), [])
        for chop in pending:
            for segment in sorted(chop.missing):
                try:
                    plain = chop.key.decrypt(chop.nonce(segment), sealed, None)
                except InvalidTag:
                    continue
                chop.missing.discard(segment)
                if not chop.missing:
                    pending.remove(chop)
                self.reader.counts["segments"] = self.reader.counts.get("segments", 0) + 1
                self.reader.counts["bytes"] += len(plain)
                return
        refuse(True, "a segment does not open")

    def end(self, buffer):
        refuse(self.ours and len(buffer), "btl/tcp's message is cut")
        refuse(self.long_ones, "a message of ob1 is not complete")
        refuse(any(chop.missing for chops in self.chops.values() for chop in chops), "a chopped message has too few segments")


def tags(tag):
    """Those of Open MPI that ob1's may stand for."""
    if -HALF - HALF // 4 <= tag < -HALF:
        return [tag - n * (HALF // 4) for n in range(4)]
    return [tag]


class Reader:
    cipher, key_bytes = "AES-128-GCM", 16

    def __init__(self, keys):
        self.pairs = [(ends, how) for ends, hows in keys.pairs.items() for how in hows]
        self.known, self.counts = {}, {"directions": 0, "bytes": 0}

    def begin(self, key, client):
        return Direction(self)
