# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""Encrypted files as Python's file objects."""
import errno
import io
import operator
import os
import threading
import weakref
from ctypes import c_char

from . import _library, errors

_BUFFER = 65536
_MOST = 2**63 - 1


def open(path, *, label=None, seal_root=None, keystore=None, plain=False, cache_bytes=0, threads=0):
    """Open an encrypted file for reading; a File is returned.

    label        every encrypted region must be under this label
    seal_root    the file must be sealed with this root, 64 hexadecimal digits
    keystore     a directory instead of the one that parameters name
    plain        True: a plain file is no error, and its bytes are not verified
    cache_bytes  plaintext of opened blocks to keep; 0: 16 MiB
    threads      that open the blocks of a large read; 0: 1
    """
    if keystore is not None:
        keystore = os.path.abspath(os.fsdecode(keystore))
    return File(_RawFile(path, dict(label=label, seal_root=seal_root, keystore=keystore, plain=plain, cache_bytes=cache_bytes,
                                    threads=threads)))


def _number(name, value, most):
    value = operator.index(value)           # ctypes would cut it off
    if not 0 <= value <= most:
        raise ValueError(f"{name} is {value}, and can be 0 to {most}")
    return value


def _text(name, value):
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name} is a {type(value).__name__}, and can be a str")
    if "\0" in value:                       # C would see what is before it
        raise ValueError(f"{name} has a null character")
    return os.fsencode(value)


class _RawFile(io.RawIOBase):
    """Reads and seeks without a buffer.  The position has a lock; reads at an offset need none."""

    mode = "rb"
    _handle = None

    def __init__(self, path, options):
        self.name = os.fspath(path)
        self.options = options
        self.path = os.path.abspath(self.name)
        _text("path", os.fsdecode(self.name))
        given = _library.Options(
            bytes=_library.sizeof(_library.Options), label=_text("label", options["label"]),
            seal_root=_text("seal_root", options["seal_root"]), keystore=_text("keystore", options["keystore"]),
            cache_bytes=_number("cache_bytes", options["cache_bytes"], _MOST), flags=_library.PLAIN if options["plain"] else 0,
            threads=_number("threads", options["threads"], 2**32 - 1))
        self.unlock()
        self._position = 0
        self._handle = _library.Handle()
        self._check(self._handle.open(self.name, given))

    def unlock(self):
        self._lock = threading.Lock()

    def _check(self, error):
        if error.status:
            raise errors.from_library(error, self.name)

    def _open_handle(self):
        handle = self._handle               # another thread may close the file
        if handle is None:
            raise ValueError("I/O operation on closed file.")
        return handle

    def close(self):
        self._handle = None
        super().close()

    def readable(self):
        return True

    def seekable(self):
        return True

    @property
    def size(self):
        size, error = self._open_handle().size()
        self._check(error)
        return size

    def readinto_at(self, offset, buffer):
        with memoryview(buffer) as view:
            got, error = self._read(_number("offset", offset, _MOST), view, view.nbytes)
        self._check(error)
        return got

    def _read(self, offset, view, size):
        if not size:
            self._open_handle()
            return 0, _library.Error()
        # Both are temporary: neither is in a frame that raises an exception.
        return self._open_handle().read(offset, c_char.from_buffer(view), size)

    def read_at(self, offset, size=-1):
        left = max(0, self.size - _number("offset", offset, _MOST))
        memory = bytearray(left if size == -1 else min(left, _number("size", size, _MOST)))
        del memory[self.readinto_at(offset, memory):]
        return bytes(memory)

    def readinto(self, buffer):
        with self._lock:
            with memoryview(buffer) as view:
                size = view.nbytes
                got, error = self._read(self._position, view, size)
                # A buffered read asks for more than its caller did.  What is readable before the fault is returned, as for
                # any file; the next read fails at its first byte.  A block of a region with holes may begin further ahead.
                while error.status and (size := self._before(error, size)):
                    got, error = self._read(self._position, view, size)
            self._check(error)
            self._position += got
            return got

    def _before(self, error, size):
        """How much of a read that failed may be readable; 0: nothing of it, or it is not certain."""
        ahead = error.offset - self._position
        return ahead if 0 < ahead < size else size // 2 if ahead < 0 and not error.os_error else 0

    def readall(self):
        with self._lock:
            memory = self.read_at(self._position)
            self._position += len(memory)
            return memory

    def seek(self, offset, whence=os.SEEK_SET):
        with self._lock:
            starts = {os.SEEK_SET: lambda: 0, os.SEEK_CUR: lambda: self._position, os.SEEK_END: lambda: self.size}
            if whence not in starts:
                raise ValueError(f"whence is {whence}, and can be 0, 1 or 2")
            self._open_handle()
            position = starts[whence]() + operator.index(offset)
            if not 0 <= position <= _MOST:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), self.name)
            self._position = position
            return position

    def tell(self):
        self._open_handle()
        return self._position

    def info(self):
        info, error = self._open_handle().info()
        self._check(error)
        regions = []
        for number in range(info.regions):
            region, error = self._open_handle().region(number)
            self._check(error)
            regions.append(dict(
                encrypted=bool(region.encrypted), readable=bool(region.readable), cipher=region.cipher.decode(),
                label=region.label.decode(), block_bytes=region.block_bytes, key_version=region.key_version,
                displacement=region.displacement, extent=region.extent, runs=region.run_count, once=bool(region.once)))
        return dict(size=self.size, encrypted=bool(regions), uuid=bytes(info.uuid).hex(), generation=info.generation,
                    seal_root=info.seal_root.decode() or None, regions=regions)

    def verify(self, progress):
        raised = []

        def step(_, done, of):              # an exception cannot pass through C; ^C arrives here, too
            try:
                return 1 if progress and progress(done, of) else 0
            except BaseException as exception:
                raised.append(exception)
                return 1

        stopped, error = self._open_handle().verify(step)
        if raised:
            raise raised.pop()
        self._check(error)
        return not stopped


class File(io.BufferedReader):
    """An encrypted file, open for reading.  Threads may share it."""

    def __init__(self, raw):
        super().__init__(raw, _BUFFER)
        _files.add(self)

    @property
    def size(self):
        """The size of the plaintext, which changes while a job writes."""
        return self.raw.size

    def read_at(self, offset, size=-1):
        """Read at an offset, without the position: any number of threads at a time.  Shorter only where the file ends."""
        return self.raw.read_at(offset, size)

    def readinto_at(self, offset, buffer):
        """Read into a buffer, as read_at does; return how many bytes."""
        return self.raw.readinto_at(offset, buffer)

    def info(self):
        """A dict: size, encrypted, uuid, generation, seal_root, regions."""
        return self.raw.info()

    def verify(self, progress=None):
        """Open every block.  False if progress(done, of), called now and then, returned something true and so ended it."""
        return self.raw.verify(progress)

    def __reduce_ex__(self, protocol):
        """Pickled, it is opened again: no key is in the pickle."""
        return _reopen, (self.raw.path, self.raw.options, self.tell())

    def _forked(self):
        if not self.closed:
            self.raw.unlock()               # a thread that the child does not have may hold this lock or BufferedReader's
            super().__init__(self.raw, _BUFFER)


def _reopen(path, options, position):
    file = open(path, **options)
    file.seek(position)
    return file


_files = weakref.WeakSet()


def _after_fork():
    for file in list(_files):
        file._forked()


os.register_at_fork(after_in_child=_after_fork)
