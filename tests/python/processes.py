# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""processes.sh has made the files."""
import copy
import ctypes
import hashlib
import multiprocessing
import os
import pathlib
import pickle
import random
import re
import signal
import threading
import unittest
import weakref

import ompi_crypt
from ompi_crypt import _file, _library

PLAIN = pathlib.Path("plain").read_bytes()


def in_threads(count, work):
    """work(number) in each; what one raises is raised."""
    raised = []

    def run(number):
        try:
            work(number)
        except BaseException as exception:
            raised.append(exception)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def in_child(work):
    """The status of a forked child: 0 if work() returned.  SIGALRM ends one that waits for a lock that nobody releases."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            work()
            os._exit(0)
        except BaseException as exception:
            print("in the child:", repr(exception), flush=True)
            os._exit(1)
    return os.waitpid(child, 0)[1]


def digest(file):
    return file.tell(), hashlib.sha256(file.read()).hexdigest()


class Threads(unittest.TestCase):
    def test_read_at(self):
        with ompi_crypt.open("file", cache_bytes=1 << 20, threads=2) as file:
            def work(number):
                choose = random.Random(number)
                for _ in range(150):
                    offset, size = choose.randrange(len(PLAIN)), choose.choice((5, 4096, 70000))
                    memory = bytearray(size)
                    got = file.readinto_at(offset, memory)
                    self.assertEqual(memory[:got], PLAIN[offset:offset + size])
            in_threads(8, work)

    def test_position(self):
        """Readers of one position get each byte once."""
        for buffered in (True, False):
            with ompi_crypt.open("file") as file:
                parts = [[] for _ in range(8)]

                def work(number):
                    while part := (file if buffered else file.raw).read(1009):
                        parts[number].append(part)
                in_threads(8, work)
                # All parts but the last are found in PLAIN at a multiple of their size.
                wanted = [PLAIN[at:at + 1009] for at in range(0, len(PLAIN), 1009)]
                self.assertEqual(sorted(sum(parts, [])), sorted(wanted))

    def test_close(self):
        """A file may be closed while threads read it: they get right bytes, or ValueError."""
        for _ in range(20):
            file = ompi_crypt.open("file")
            begun = threading.Barrier(5)

            def work(number):
                begun.wait()
                if number == 0:
                    file.close()
                    return
                try:
                    while True:
                        self.assertEqual(file.read_at(100, 1000000), PLAIN[100:1000100])
                except ValueError as exception:
                    self.assertRegex(str(exception), "closed file")
            in_threads(5, work)

    def test_handle(self):
        """Closed means freed, whatever exception somebody keeps; a call that runs keeps the handle."""
        file = ompi_crypt.open("file")
        handle = weakref.ref(file.raw._handle)
        kept = None
        try:
            file.read_at(-1)
        except ValueError as exception:
            kept = exception
        with self.assertRaises(TypeError):
            file.readinto_at(0, b"read-only")
        file.verify(lambda done, of: file.close() or self.assertIsNotNone(handle()))
        self.assertIsNone(handle())
        self.assertIsNotNone(kept)
        self.assertNotIsInstance(_library._lib, ctypes.PyDLL)       # which would keep the GIL


class Fork(unittest.TestCase):
    def test_child(self):
        with ompi_crypt.open("file") as file:
            file.read(10)                               # more is buffered

            def work():
                for call in (lambda: file.read(10), file.peek, file.verify, lambda: file.read_at(0, 10), lambda: file.size,
                             file.info):
                    self.assertRaises(ompi_crypt.Forked, call)
                with ompi_crypt.open("file") as own:
                    self.assertEqual(own.read(), PLAIN)
                copied = copy.copy(own_before)
                self.assertEqual(copied.read(7), PLAIN[10:17])
                file.close()
            own_before = pickle.loads(pickle.dumps(file))
            self.assertEqual(in_child(work), 0)
            own_before.close()
            self.assertEqual(file.read(), PLAIN[10:])

    def test_busy(self):
        """Another thread reads, and so has locks, while this one forks."""
        with ompi_crypt.open("file") as file:
            end = threading.Event()

            def read():
                while not end.is_set():
                    file.seek(0)
                    file.read(500000)
                    file.raw.seek(0)

            def work():
                self.assertRaises(ompi_crypt.Forked, file.read, 10)
                self.assertRaises(ompi_crypt.Forked, file.raw.readinto, bytearray(10))
            thread = threading.Thread(target=read)
            thread.start()
            try:
                for _ in range(30):
                    self.assertEqual(in_child(work), 0)
            finally:
                end.set()
                thread.join()

    def test_multiprocessing(self):
        with ompi_crypt.open("file", label="lab") as file:
            file.seek(1000)
            wanted = 1000, hashlib.sha256(PLAIN[1000:]).hexdigest()
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(2) as pool:
                    self.assertEqual(pool.map(digest, [file] * 4, chunksize=1), [wanted] * 4)
            self.assertEqual(file.tell(), 1000)

    def test_pickle(self):
        key = re.search(r"^key plain (\w+)", pathlib.Path("keys/lab.1").read_text(), re.M)[1]
        with ompi_crypt.open("file", label="lab", keystore="keys", threads=2) as file:
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                pickled = pickle.dumps(file, protocol)
                self.assertFalse(key.encode() in pickled or bytes.fromhex(key) in pickled or PLAIN[:16] in pickled)
            here = os.getcwd()
            os.chdir("/")                               # the path in it is absolute
            try:
                with pickle.loads(pickled) as again:
                    self.assertEqual(again.raw.options["label"], "lab")
                    self.assertEqual(again.read(), PLAIN)
            finally:
                os.chdir(here)
        self.assertRaises(ValueError, pickle.dumps, file)

    def test_forgotten(self):
        """The list of open files keeps none of them open."""
        file = ompi_crypt.open("file")
        handle = weakref.ref(file.raw._handle)
        self.assertIn(file, _file._files)
        del file
        self.assertIsNone(handle())


if __name__ == "__main__":
    unittest.main(verbosity=2)
