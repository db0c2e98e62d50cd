# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""libmpicrypt_file by ctypes: what mpicrypt_file.h declares, in its order.

Nothing here raises an exception for a call that failed: it returns the error, so that no traceback refers to a handle, which
has keys, or to the caller's memory.  ctypes releases the GIL during a call.
"""
import ctypes
import os
from ctypes import byref, c_char, c_char_p, c_int, c_size_t, c_uint8, c_uint32, c_uint64, c_void_p, sizeof

from ._where import LIBRARY

PLAIN = 1


class Error(ctypes.Structure):
    _fields_ = [("status", c_int), ("os_error", c_int), ("offset", c_uint64), ("text", c_char * 1008)]


class Options(ctypes.Structure):
    _fields_ = [("bytes", c_size_t), ("label", c_char_p), ("seal_root", c_char_p), ("keystore", c_char_p),
                ("cache_bytes", c_uint64), ("flags", c_uint32), ("threads", c_uint32)]


class Info(ctypes.Structure):
    _fields_ = [("bytes", c_size_t), ("uuid", c_uint8 * 16), ("generation", c_uint64), ("regions", c_uint32),
                ("sealed", c_uint32), ("seal_root", c_char * 65)]


class Region(ctypes.Structure):
    _fields_ = [("bytes", c_size_t), ("encrypted", c_uint32), ("readable", c_uint32), ("cipher", c_char * 24),
                ("label", c_char * 65), ("block_bytes", c_uint32), ("key_version", c_uint32), ("displacement", c_uint64),
                ("extent", c_uint64), ("run_count", c_uint64), ("once", c_uint32)]


Progress = ctypes.CFUNCTYPE(c_int, c_void_p, c_uint64, c_uint64)


def _load():
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise ImportError(f"ompi_crypt cannot load the library of ompi-crypt: {error}") from None
    address, failure = c_void_p, ctypes.POINTER(Error)
    for name, result, arguments in (
            ("open", c_int, [c_char_p, ctypes.POINTER(Options), address, failure]),
            ("close", None, [address]),
            ("read", c_int, [address, c_uint64, address, c_size_t, ctypes.POINTER(c_size_t), failure]),
            ("size", c_int, [address, ctypes.POINTER(c_uint64), failure]),
            ("info", c_int, [address, ctypes.POINTER(Info), failure]),
            ("region", c_int, [address, c_uint32, ctypes.POINTER(Region), failure]),
            ("verify", c_int, [address, Progress, address, ctypes.POINTER(c_int), failure])):
        function = getattr(library, "mpicrypt_file_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_lib = _load()


class Handle:
    """An open mpicrypt_file_t, closed when nothing refers to it.  A call that runs in another thread does."""

    def __init__(self):
        self._file = c_void_p()

    def __del__(self, close=_lib.mpicrypt_file_close):
        close(self._file)

    def open(self, path, options):
        error = Error()
        _lib.mpicrypt_file_open(os.fsencode(path), byref(options), byref(self._file), byref(error))
        return error

    def read(self, offset, memory, size):
        """Return how many bytes were read.  `memory` is the first byte of at least `size`."""
        got, error = c_size_t(), Error()
        _lib.mpicrypt_file_read(self._file, offset, byref(memory), size, byref(got), byref(error))
        return got.value, error

    def size(self):
        size, error = c_uint64(), Error()
        _lib.mpicrypt_file_size(self._file, byref(size), byref(error))
        return size.value, error

    def info(self):
        info, error = Info(bytes=sizeof(Info)), Error()
        _lib.mpicrypt_file_info(self._file, byref(info), byref(error))
        return info, error

    def region(self, number):
        region, error = Region(bytes=sizeof(Region)), Error()
        _lib.mpicrypt_file_region(self._file, number, byref(region), byref(error))
        return region, error

    def verify(self, progress):
        stopped, error = c_int(), Error()
        _lib.mpicrypt_file_verify(self._file, Progress(progress), None, byref(stopped), byref(error))
        return stopped.value, error
