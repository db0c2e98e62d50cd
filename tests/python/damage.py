# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Where things lie in a file of one group and one region (docs/file-format.rst), and ways to damage it."""
import os
import struct


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


class File:
    def __init__(self, name):
        self.name = name
        _, self.t, self.h, _, self.n = struct.unpack("<QQQII", self.get(40, 32))

    def data(self, offset):
        return self.h + self.t + offset

    def entry(self, block):
        return self.h + self.t - 128 * self.n + 128 * block

    def get(self, offset, size):
        with open(self.name, "rb") as file:
            return os.pread(file.fileno(), size, offset)

    def put(self, offset, data):
        with open(self.name, "r+b") as file:
            os.pwrite(file.fileno(), data, offset)

    def flip(self, offset):
        self.put(offset, bytes([self.get(offset, 1)[0] ^ 0x40]))

    def swap(self, one, other, size):
        first, second = self.get(one, size), self.get(other, size)
        self.put(one, second)
        self.put(other, first)

    def cut(self, size):
        os.truncate(self.name, size)
