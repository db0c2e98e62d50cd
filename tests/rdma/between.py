#!/usr/bin/env python3
# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""between.py FROM0 TO1 FROM1 TO0 - stands on the wire of two machines, and changes packets of RDMA.

Frames that come to the socket FROM0 go on to TO1, and FROM1's to TO0.  A UDP packet to port 9 says what
shall happen (it passes, too):

    change N   one bit of the next packet of RDMA from 0 with at least N bytes of payload
    forge N    the same, and its checksum (ICRC) is made right again, as whoever stands there can
    pass       nothing
"""
import select
import signal
import socket
import struct
import sys
import zlib

ETHERNET, UDP, BTH, ICRC = 14, 8, 12, 4


def ip_bytes(frame):
    """Of the IP header of a packet of UDP; 0: it is none."""
    if frame[12:15] == b"\x08\x00\x45" and frame[23:24] == b"\x11":
        return 20
    return 40 if frame[12:14] == b"\x86\xdd" and frame[20:21] == b"\x11" else 0


def port(frame):
    at = ETHERNET + ip_bytes(frame) + 2
    return int.from_bytes(frame[at:at + 2], "big") if ip_bytes(frame) else None


def icrc(frame):
    """Of RoCE v2: what routers change counts as ones."""
    packet, ip = bytearray(frame[ETHERNET:-ICRC]), ip_bytes(frame)
    for at in (1, 8, 10, 11) if ip == 20 else (1, 2, 3, 7):
        packet[at] = 0xff
    if ip == 40:
        packet[0] |= 0x0f
    for at in (ip + 6, ip + 7, ip + UDP + 4):
        packet[at] = 0xff
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + packet))


def end_of(frame):
    """Small frames are padded on an Ethernet."""
    v4 = ip_bytes(frame) == 20
    return ETHERNET + int.from_bytes(frame[16:18] if v4 else frame[18:20], "big") + (0 if v4 else 40)


class Attacker:
    def __init__(self):
        self.word, self.least = "pass", 0
        self.right = self.wrong = 0

    def told(self, frame):
        if port(frame) == 9:
            self.word, least = frame[ETHERNET + 20 + UDP:end_of(frame)].decode().split()
            self.least = int(least)

    def changed(self, frame):
        self.told(frame)
        if port(frame) != 4791:
            return frame
        frame, rest = frame[:end_of(frame)], frame[end_of(frame):]
        fits = icrc(frame) == frame[-ICRC:]
        self.right, self.wrong = self.right + fits, self.wrong + (not fits)
        if self.word != "pass" and len(frame) - ETHERNET - ip_bytes(frame) - UDP - BTH - ICRC >= self.least:
            at = len(frame) - ICRC - 100
            frame = frame[:at] + bytes([frame[at] ^ 4]) + frame[at + 1:]
            if self.word == "forge":
                frame = frame[:-ICRC] + icrc(frame)
            print(f"{self.word}: a packet of {len(frame)} bytes, opcode {frame[ETHERNET + ip_bytes(frame) + UDP]}", flush=True)
            self.word = "pass"
        return frame + rest


def bound(path):
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.bind(path)
    return end


def main(from0, to1, from1, to0):
    ends = {bound(from0): (to1, Attacker()), bound(from1): (to0, None)}
    one = ends[next(iter(ends))][1]

    def end_of_all(*_):
        print(f"checksums of packets of RDMA: {one.right} as computed here, {one.wrong} others", flush=True)
        sys.exit()

    signal.signal(signal.SIGTERM, end_of_all)
    while True:
        for end in select.select(list(ends), [], [])[0]:
            to, attacker = ends[end]
            frame = end.recv(1 << 17)
            try:
                end.sendto(attacker.changed(frame) if attacker else frame, to)
            except (FileNotFoundError, ConnectionRefusedError):
                pass                            # that machine is not there yet, or no more


if __name__ == "__main__":
    main(*sys.argv[1:])
