#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Look for payload in captures of virtual nodes.

  leakscan.py scan CANARY TRAIN OUT.json CAPTURE...
  leakscan.py table CONTROL.json... -- SEALED.json...

A capture holds what one node sent (tcpdump -Q out), in time order.  TCP
streams are put together again, retransmissions and disorder included; a byte
that is missing in a stream is an error, because it could not be looked at.
What stands between two marker packets (leak.h) belongs to one operation.

`scan` counts canaries, short ones (leak.h) where payload is, and looks for the train: bytes that come up one after
the other at equal distances, as payload of one byte does in equal messages.
`table` prints one line per operation.  The control must show every operation
that has payload, at every size, and none of the others; the other run nothing
at all, nor anywhere between the operations.
"""
import json
import struct
import sys

WINDOW, DISTANCE, LOOK_FOR_TRAIN, CANARY_LEAST = 8, 4096, 1 << 18, 7
OTHER = "outside of any operation|||"


class Stream:
    """One direction of one TCP connection."""

    def __init__(self):
        self.expected = None
        self.early = {}         # sequence number -> bytes that came before their turn
        self.phase = bytearray()

    def begin(self, sequence):
        self.expected = (sequence + 1) & 0xFFFFFFFF
        self.early.clear()

    def add(self, sequence, payload):
        if self.expected is None:
            self.expected = sequence
        ahead = (sequence - self.expected) & 0xFFFFFFFF
        if ahead >= 1 << 31:                            # (partly) seen before
            seen = (1 << 32) - ahead
            if seen >= len(payload):
                return
            payload = payload[seen:]
        elif ahead:
            if len(payload) > len(self.early.get(sequence, b"")):
                self.early[sequence] = payload
            return
        self.phase += payload
        self.expected = (self.expected + len(payload)) & 0xFFFFFFFF
        while self.early:
            for start in list(self.early):
                if ((start - self.expected) & 0xFFFFFFFF) >= 1 << 31 or start == self.expected:
                    self.add(start, self.early.pop(start))
                    break
            else:
                return


def packets(path):
    """Ethernet frames of a pcap file, whole."""
    with open(path, "rb") as capture:
        head = capture.read(24)
        order = {b"\xd4\xc3\xb2\xa1": "<", b"\xa1\xb2\xc3\xd4": ">"}.get(head[:4])
        if order is None or struct.unpack(order + "I", head[20:24])[0] != 1:
            sys.exit(f"leakscan: {path} is not a capture of Ethernet frames")
        record = struct.Struct(order + "IIII")
        while True:
            head = capture.read(16)
            if len(head) < 16:
                return
            _, _, captured, original = record.unpack(head)
            frame = capture.read(captured)
            if len(frame) < captured:
                return                                  # tcpdump was ended here
            if captured < original:
                sys.exit(f"leakscan: {path}: a packet of {original} bytes was cut to {captured}")
            yield frame


def train_in(data, train):
    """WINDOW bytes of the train, in order, at equal distances."""
    data = data[:LOOK_FOR_TRAIN]
    for k in range(len(train) - WINDOW + 1):
        at = data.find(train[k])
        while at >= 0:
            end = at + 1 + DISTANCE
            second = data.find(train[k + 1], at + 1, end)
            while second >= 0:
                step = second - at
                if data[at:at + step * WINDOW:step] == train[k:k + WINDOW]:
                    return True
                second = data.find(train[k + 1], second + 1, end)
            at = data.find(train[k], at + 1)
    return False


class Scanner:
    def __init__(self, canary, train):
        self.canary, self.train = canary, train
        self.found = {}         # phase -> [bytes, canaries, train seen]
        self.missing = 0

    def scan(self, path):
        self.streams = {}
        self.name = OTHER
        self.loose = bytearray()        # what is neither TCP nor a marker
        for frame in packets(path):
            self.packet(frame)
        self.end_phase()
        for key, stream in self.streams.items():
            self.ended(key, stream)

    def packet(self, frame):
        if len(frame) < 34 or frame[12:14] != b"\x08\x00":
            self.loose += frame
            return
        ip = 14
        header = (frame[ip] & 15) * 4
        total, fragment, protocol = struct.unpack_from(">H2xHxB", frame, ip + 2)
        end, at = ip + total, ip + header
        if fragment & 0x3FFF or total == 0 or protocol not in (6, 17):
            self.loose += frame[ip:]
        elif protocol == 17:
            text = frame[at + 8:end]
            if frame[at + 2:at + 4] == b"\x00\x09" and text.startswith(b"leakscan "):
                self.end_phase()
                name = text[9:].decode()
                self.name = OTHER if name == "end" else name
            else:
                self.loose += text
        else:
            sequence, offset, flags = struct.unpack_from(">4xI4xBB", frame, at)[0:3]
            key = bytes(frame[ip + 12:ip + 20] + frame[at:at + 4])
            if flags & 2 or key not in self.streams:
                self.close(key)
                self.streams[key] = Stream()
            if flags & 2:
                self.streams[key].begin(sequence)
            payload = frame[at + (offset >> 4) * 4:end]
            if payload:
                self.streams[key].add(sequence, payload)

    def close(self, key):
        """The same ports again: a new connection."""
        stream = self.streams.pop(key, None)
        if stream:
            self.ended(key, stream)
            self.take(stream.phase)

    def ended(self, key, stream):
        if stream.early:
            self.missing += 1
            print(f"leakscan: bytes are missing in the stream {key}", file=sys.stderr)

    def take(self, data):
        entry = self.found.setdefault(self.name, [0, 0, False])
        entry[0] += len(data)
        size = self.size()
        entry[1] += data.count(self.canary[:size] if size >= CANARY_LEAST else self.canary)
        if not entry[2] and size < len(self.canary):
            entry[2] = train_in(data, self.train)

    def size(self):
        """Bytes of the operation's blocks; outside of operations, as of the smallest."""
        return int(self.name.split("|")[3] or 0)

    def end_phase(self):
        keep = len(self.canary) - 1
        for stream in self.streams.values():
            if len(stream.phase) > keep:
                self.take(stream.phase)
                del stream.phase[:-keep]
        self.take(self.loose)
        self.loose.clear()


def scan(canary, train, out, paths):
    scanner = Scanner(bytes.fromhex(canary), bytes.fromhex(train))
    for path in paths:
        scanner.scan(path)
    with open(out, "w") as file:
        json.dump({"phases": scanner.found, "missing": scanner.missing}, file)
    return 1 if scanner.missing else 0


# ---- the table ----

def load(paths):
    """(label, group, operation, bare) -> size -> [bytes, canaries, train]; what lies outside."""
    rows, outside = {}, [0, 0, False]
    for path in paths:
        with open(path) as file:
            phases = json.load(file)["phases"]
        for name, found in phases.items():
            label, group, operation, size, bare = (name.split("|") + [""])[:5]
            if name == OTHER:
                outside = [outside[0] + found[0], outside[1] + found[1], outside[2] or found[2]]
            else:
                rows.setdefault((label, group, operation, bare == "bare"), {})[int(size)] = found
    return rows, outside


def shown(found):
    return found[1] > 0 or found[2]


def sizes_text(sizes):
    return ", ".join(map(str, sizes)) or "-"


def table(control_paths, sealed_paths):
    control, control_outside = load(control_paths)
    sealed, outside = load(sealed_paths)
    wrong = []
    line = "{:<19}{:<19}{:<27}{:>6}{:>9}{:>11}  {}"
    print(line.format("components", "group", "operation", "sizes", "control", "pml/crypt", "bytes on the wire: control, pml/crypt"))
    for key in list(control) + [key for key in sealed if key not in control]:
        label, group, operation, bare = key
        plain, cipher = control.get(key, {}), sealed.get(key, {})
        seen = sorted(size for size, found in plain.items() if shown(found))
        leaked = sorted(size for size, found in cipher.items() if shown(found))
        where = f"{label}, {group}, {operation}"
        print(line.format(label, group, operation, len(plain),
                          "none" if bare and not seen else f"{len(seen)}/{len(plain)}",
                          f"LEAK {len(leaked)}" if leaked else "0",
                          f"{sum(found[0] for found in plain.values())}, {sum(found[0] for found in cipher.values())}"))
        if leaked:
            wrong.append(f"PLAINTEXT: {where}: bytes {sizes_text(leaked)}")
        if sorted(plain) != sorted(cipher):
            wrong.append(f"not the same sizes in both runs: {where}")
        if bare and seen:
            wrong.append(f"the control shows payload where none is expected: {where}: bytes {sizes_text(seen)}")
        if not bare and len(seen) < len(plain):
            wrong.append(f"the control does not show: {where}: bytes {sizes_text(sorted(set(plain) - set(seen)))}")
    if shown(outside):
        wrong.append(f"PLAINTEXT outside of any operation: {outside[1]} canaries")
    print(f"{len(control)} operations; without payload on the wire (\"none\"): "
          + ", ".join(sorted({key[2] for key in control if key[3]})))
    for text in wrong:
        print(text)
    return 1 if wrong or not control else 0


def main(arguments):
    if len(arguments) > 4 and arguments[0] == "scan":
        return scan(arguments[1], arguments[2], arguments[3], arguments[4:])
    if len(arguments) > 3 and arguments[0] == "table" and "--" in arguments:
        middle = arguments.index("--")
        return table(arguments[1:middle], arguments[middle + 1:])
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
