# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""streams.py LEAKSCAN.PY: does leakscan find what it should in captures made here?"""
import json
import random
import struct
import subprocess
import sys

CANARY, TRAIN = bytes(range(100, 116)), bytes(range(1, 64, 2))
random.seed(7)


def frame(protocol, rest):
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(rest), 0, 0, 64, protocol, 0, b"\x0a\0\0\1", b"\x0a\0\0\2")
    return bytes(12) + b"\x08\x00" + ip + rest


def tcp(sequence, payload, flags=0x10, port=1000):
    return frame(6, struct.pack(">HHIIBBHHH", port, 2000, sequence & 0xFFFFFFFF, 0, 8 << 4, flags, 0, 0, 0) + bytes(12) + payload)


def mark(text):
    return frame(17, struct.pack(">HHHH", 5, 9, 8 + len(text), 0) + text.encode())


def scan(frames, size):
    """What leakscan says of the phase `x`, and its exit status."""
    with open("capture", "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for one in frames:
            file.write(struct.pack("<IIII", 0, 0, len(one), len(one)) + one)
    rc = subprocess.run([sys.argv[1], "scan", CANARY.hex(), TRAIN.hex(), "out", "capture"], stderr=subprocess.DEVNULL).returncode
    with open("out") as file:
        return json.load(file)["phases"].get(f"l|g|x|{size}|payload", [0, 0, False]), rc


def pieces(text, start, cuts):
    at = [0] + sorted(random.sample(range(1, len(text)), cuts)) + [len(text)]
    return [tcp(start + a, text[a:b]) for a, b in zip(at, at[1:])]


def expect(what, frames, canaries, train, rc, size=1):
    got, status = scan([tcp(start - 1, b"", 2), mark(f"leakscan l|g|x|{size}|payload")] + frames + [mark("leakscan end")], size)
    if got[1:] != [canaries, train] or status != rc:
        sys.exit(f"{what}: found {got[1:]}, status {status}; expected {[canaries, train]}, {rc}")
    print("ok", what)


noise = bytes(random.randrange(128, 256) for _ in range(300))
text = noise + CANARY + noise[:77] + CANARY + noise
for start in (1, 0xFFFFFF00, 0xFFFFFE60):
    expect("whole", [tcp(start, text)], 2, False, 0)
    expect("cut", pieces(text, start, 100), 2, False, 0)
    mixed = pieces(text, start, 60)
    random.shuffle(mixed)
    expect("in disorder", mixed, 2, False, 0)
    again = pieces(text, start, 60) + pieces(text, start, 5)[:3] + pieces(text, start, 40)
    random.shuffle(again)
    expect("repeated, overlapping, in disorder", again, 2, False, 0)
    expect("a byte is missing", [tcp(start, text[:310]), tcp(start + 311, text[311:])], 0, False, 1)
    expect("a connection after another with the same ports",
           [tcp(start, text), tcp(start + 70000, b"", 2), tcp(start + 70001, text)], 4, False, 0)
    expect("two connections", [tcp(start, text[:305]), tcp(5, text[:305], port=7), tcp(start + 305, text[305:])], 2, False, 0)
    train = b"".join(noise[:40] + TRAIN[i:i + 1] for i in range(12))
    expect("the train", pieces(noise + train, start, 50), 0, True, 0)
    expect("a train that is too short", pieces(noise + train[:41 * 7], start, 50), 0, False, 0)
    expect("an uneven train", [tcp(start, train[:200] + b"\xff" + train[200:400])], 0, False, 0)
expect("in a packet that is not TCP", [frame(17, struct.pack(">HHHH", 5, 6, 0, 0) + CANARY)], 1, False, 0)
start = 1
for size, canaries in ((7, 2), (9, 1), (15, 1), (16, 0), (1, 0)):
    expect(f"short canaries, {size} bytes",
           [tcp(start, noise + CANARY[:8] + noise[:50] + CANARY[:15] + noise)], canaries, False, 0, size)
split, rc = scan([tcp(0, b"", 2), tcp(1, text[:308]), mark("leakscan l|g|x|1|payload"), tcp(309, text[308:]), mark("leakscan end")], 1)
if split[1] != 2:
    sys.exit("a canary across a marker was not seen")
