# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""basics.sh has made the files."""
import io
import os
import pathlib
import pickle
import random
import shutil
import struct
import unittest

import ompi_crypt
from damage import File, crc32c

plain = pathlib.Path("plain").read_bytes()
plain2 = pathlib.Path("plain2").read_bytes()
root = pathlib.Path("root").read_text().strip()
random.seed(7)


class Reading(unittest.TestCase):
    def test_ranges(self):
        with ompi_crypt.open("file") as file:
            for _ in range(300):
                offset, size = random.randrange(len(plain) + 9000), random.choice((0, 1, 7, 4096, 100000, len(plain)))
                part = plain[offset:offset + size]
                self.assertEqual(file.read_at(offset, size), part)
                file.seek(offset)
                self.assertEqual(file.read(size), part)
                self.assertEqual(file.tell(), offset + len(part))
                memory = bytearray(b"x" * size)
                self.assertEqual(file.readinto_at(offset, memory), len(part))
                self.assertEqual(memory, part + b"x" * (size - len(part)))
                file.seek(offset)
                self.assertEqual(file.readinto(memory), len(part))
            self.assertEqual(file.read_at(5), plain[5:])
            file.raw.seek(9)
            self.assertEqual(file.raw.readall(), plain[9:])

    def test_seek(self):
        with ompi_crypt.open("file") as file:
            self.assertTrue(file.readable() and file.seekable() and not file.writable())
            self.assertEqual(file.size, len(plain))
            self.assertEqual(file.seek(-10, os.SEEK_END), len(plain) - 10)
            self.assertEqual(file.read(), plain[-10:])
            self.assertEqual(file.seek(-20, os.SEEK_CUR), len(plain) - 20)
            self.assertEqual(file.seek(2**40), 2**40)
            self.assertEqual((file.read(1), file.read(), file.readline()), (b"", b"", b""))
            for offset, whence in ((-1, 0), (-len(plain) - 1, 2), (2**63, 0)):
                self.assertRaises((OSError, ValueError, OverflowError), file.raw.seek, offset, whence)
            self.assertRaises(ValueError, file.raw.seek, 0, 9)
            for offset, size in ((-1, 1), (2**63, 1), (2**64, 1), (0, -2)):
                self.assertRaises(ValueError, file.read_at, offset, size)
            self.assertRaises(io.UnsupportedOperation, file.fileno)         # nobody finds the ciphertext
            self.assertRaises(io.UnsupportedOperation, file.write, b"x")

    def test_lines(self):
        with ompi_crypt.open("text") as file, open("lines", "rb") as lines:
            self.assertEqual(file.readline(), b"1\n")
            file.seek(0)
            self.assertEqual(list(file), list(lines))
            file.seek(0)
            self.assertEqual(sum(int(line) for line in io.TextIOWrapper(file)), 20000 * 20001 // 2)

    def test_empty(self):
        with ompi_crypt.open("empty") as file:
            self.assertEqual((file.size, file.read(), file.read_at(0, 5), list(file), file.seek(0, 2)), (0, b"", b"", [], 0))
            self.assertTrue(file.verify())

    def test_buffers(self):
        with ompi_crypt.open("file") as file:
            for wrong in (b"read-only", memoryview(bytearray(100))[::2]):
                self.assertRaises((TypeError, BufferError, ValueError), file.readinto_at, 0, wrong)
                self.assertRaises((TypeError, BufferError, ValueError), file.raw.readinto, wrong)
            memory = bytearray(200)
            self.assertEqual(file.readinto_at(3, memoryview(memory)[50:60]), 10)
            self.assertEqual(memory, bytes(50) + plain[3:13] + bytes(140))
            memory.clear()                              # BufferError, if something still refers to it

    def test_closed(self):
        file = ompi_crypt.open("file")
        raw = file.raw
        file.close()
        file.close()
        for call in (file.read, file.tell, file.info, file.verify, lambda: file.read_at(0, 1), lambda: file.size,
                     lambda: raw.readinto(bytearray(1)), lambda: raw.readinto(bytearray()), lambda: raw.seek(0)):
            self.assertRaisesRegex(ValueError, "closed file", call)

    def test_info(self):
        with ompi_crypt.open(pathlib.Path("sealed"), seal_root=root, label="lab") as file:
            info = file.info()
            region, = info.pop("regions")
            self.assertEqual(info, dict(size=len(plain), encrypted=True, uuid=info["uuid"], generation=1, seal_root=root))
            self.assertEqual((region["label"], region["block_bytes"], region["readable"], region["encrypted"]),
                             ("lab", 4096, True, True))
            self.assertEqual(os.fspath(file.name), "sealed")
        with ompi_crypt.open(b"file") as file:
            self.assertIsNone(file.info()["seal_root"])

    def test_verify(self):
        with ompi_crypt.open("file") as file:
            steps = []
            self.assertIs(file.verify(lambda done, of: steps.append((done, of))), True)
            self.assertTrue(steps)
            self.assertIs(file.verify(lambda done, of: True), False)

            def interrupted(done, of):
                raise KeyboardInterrupt
            self.assertRaises(KeyboardInterrupt, file.verify, interrupted)

    def test_arguments(self):
        for options in (dict(label="a\0b"), dict(keystore="a\0b"), dict(threads=-1), dict(threads=2**32), dict(cache_bytes=2**64)):
            self.assertRaises(ValueError, ompi_crypt.open, "file", **options)
        self.assertRaises(ValueError, ompi_crypt.open, "fi\0le")
        self.assertRaises(TypeError, ompi_crypt.open, "file", labels="lab")
        self.assertRaises(TypeError, ompi_crypt.open, "file", label=b"lab")
        self.assertEqual(ompi_crypt.open("file", threads=2, cache_bytes=1 << 20).read(), plain)


class Damage(unittest.TestCase):
    """Every damage is an exception, and what can be read is right."""

    def refused(self, exception, name, **options):
        with self.assertRaises(exception) as caught:
            with ompi_crypt.open(name, **options) as file:
                file.read()
        self.assertIs(type(caught.exception), exception)
        self.assertEqual(os.fspath(caught.exception.filename), name)
        self.assertNotIn("\n", str(caught.exception))
        print(exception.__name__ + ":", caught.exception)
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(copy), str(copy), copy.status, copy.offset, copy.errno, copy.filename),
                         (exception, str(caught.exception), caught.exception.status, caught.exception.offset,
                          caught.exception.errno, caught.exception.filename))
        return caught.exception

    def damaged(self, of="file"):
        shutil.copy(of, "damaged")                      # without attributes
        return File("damaged")

    def test_forged(self):
        for what in ("data", "entry", "swapped", "moved", "cut"):
            file = self.damaged()
            if what == "data":
                file.flip(file.data(5 * 4096 + 77))
            elif what == "entry":
                file.flip(file.entry(5) + 4)
            elif what == "swapped":
                file.swap(file.data(5 * 4096), file.data(9 * 4096), 4096)
                file.swap(file.entry(5), file.entry(9), 128)
            elif what == "moved":
                other = File("file2")
                file.put(file.data(5 * 4096), other.get(other.data(5 * 4096), 4096))
                file.put(file.entry(5), other.get(other.entry(5), 128))
            else:
                file.cut(file.data(5 * 4096 + 2000))
            with self.subTest(what):
                error = self.refused(ompi_crypt.Forged, "damaged")
                self.assertEqual((error.status, error.offset), (2, 5 * 4096))
                self.assertRaises(ompi_crypt.Forged, self.verify, "damaged")
                with ompi_crypt.open("damaged") as file:
                    # What is before the fault, though the buffer asks for more.
                    self.assertEqual(file.read(100), plain[:100])
                    file.seek(4 * 4096)
                    self.assertEqual(file.read(4096), plain[4 * 4096:5 * 4096])
                    memory = bytearray(b"x" * 5000)
                    self.assertRaises(ompi_crypt.Forged, file.readinto_at, 5 * 4096 - 5, memory)
                    self.assertEqual(memory, bytes(5000))
                    memory.clear()
                    self.assertRaises(ompi_crypt.Forged, file.read_at, 5 * 4096, 1)

    def verify(self, name):
        with ompi_crypt.open(name) as file:
            file.verify()

    def test_anywhere(self):
        """A byte changed anywhere: an exception, or the right bytes, where the byte means nothing or there is a second copy."""
        file, raised = self.damaged(), 0
        size = os.path.getsize("damaged")
        for _ in range(250):
            offset = random.choice((random.randrange(size), random.randrange(8192), file.data(random.randrange(len(plain)))))
            file.flip(offset)
            try:
                with ompi_crypt.open("damaged", label="lab") as damaged:
                    self.assertEqual(damaged.read(), plain)
            except ompi_crypt.EncryptedFileError:
                raised += 1
            file.flip(offset)
        self.assertGreater(raised, 80)

    def test_torn(self):
        file = self.damaged()
        file.put(file.entry(5), bytes(128))
        self.assertEqual(self.refused(ompi_crypt.Torn, "damaged").offset, 5 * 4096)

    def test_hole(self):
        """As docs/life.rst says, only a seal shows that a whole block is missing."""
        for name in ("file", "sealed"):
            file = self.damaged(name)
            file.put(file.entry(5), bytes(128))
            file.put(file.data(5 * 4096), bytes(4096))
            if name == "file":
                with ompi_crypt.open("damaged") as hole:
                    self.assertEqual(hole.read(), plain[:5 * 4096] + bytes(4096) + plain[6 * 4096:])
        self.refused(ompi_crypt.Forged, "damaged")
        self.refused(ompi_crypt.Forged, "damaged", seal_root=root)

    def test_key(self):
        self.refused(ompi_crypt.NoKey, "file", keystore="elsewhere")

    def test_plain(self):
        self.refused(ompi_crypt.NotEncrypted, "plain")
        self.refused(ompi_crypt.NotEncrypted, "plain", label="lab")
        with ompi_crypt.open("plain", plain=True) as file:
            self.assertEqual(file.read(), plain)
            self.assertEqual((file.info()["encrypted"], file.info()["regions"]), (False, []))

    def test_unexpected(self):
        self.refused(ompi_crypt.Unexpected, "file", label="other")
        self.refused(ompi_crypt.Unexpected, "file", seal_root=root)
        self.refused(ompi_crypt.Unexpected, "sealed", seal_root="0" * 64)
        with ompi_crypt.open("sealed", seal_root=root) as file:
            self.assertEqual(file.read(), plain)

    def test_unfinished(self):
        file = self.damaged()
        file.put(512, bytes(4))
        file.cut(max(8192, file.h))
        self.refused(ompi_crypt.Unfinished, "damaged")

    def test_format(self):
        file = self.damaged()
        file.put(16, struct.pack("<H", 2))
        file.put(80, struct.pack("<I", crc32c(file.get(0, 80))))
        self.refused(ompi_crypt.UnsupportedFormat, "damaged")

    def test_setup(self):
        os.mkdir("open-to-all")
        os.chmod("open-to-all", 0o777)
        self.refused(ompi_crypt.Unusable, "file", keystore="open-to-all")

    def test_system(self):
        error = self.refused(ompi_crypt.FileMissing, "nothing here")
        self.assertIsInstance(error, FileNotFoundError)
        self.assertRaises(ompi_crypt.EncryptedFileError, ompi_crypt.open, ".")
        if os.geteuid() == 0:
            os.mkdir("closed", 0o700)
            shutil.copy("file", "closed/file")
            os.seteuid(65534)
            try:
                self.assertRaises(PermissionError, ompi_crypt.open, "closed/file")
            finally:
                os.seteuid(0)

    def test_argument(self):
        for options in (dict(seal_root="xyz"), dict(label="")):
            self.assertIsInstance(self.refused(ompi_crypt.BadArgument, "file", **options), ValueError)


unittest.main(verbosity=2)
