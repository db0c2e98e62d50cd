# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""mpicrypt:// for fsspec: encrypted files of local and mounted file systems, for reading."""
import os
import stat
from datetime import datetime, timezone

from fsspec import AbstractFileSystem
from fsspec.utils import stringify_path

from ._file import open as open_encrypted


class EncryptedFileSystem(AbstractFileSystem):
    """Sizes and bytes are those of the plaintext.  The options are those of ompi_crypt.open(); others are refused."""

    protocol = "mpicrypt"
    root_marker = "/"

    def __init__(self, label=None, seal_root=None, keystore=None, plain=False, threads=0):
        super().__init__()
        self._options = dict(label=label, seal_root=seal_root, keystore=keystore, plain=plain, threads=threads)

    @classmethod
    def _strip_protocol(cls, path):
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return os.path.abspath(stringify_path(path).removeprefix("mpicrypt://"))

    def _open(self, path, mode="rb", block_size=None, autocommit=True, cache_type=None, cache_options=None, **options):
        # The library has a cache of its own, for which block_size and cache_type mean nothing.
        if mode != "rb":
            raise ValueError(f"an encrypted file can be opened with mode rb, not {mode}")
        return open_encrypted(path, **{**self._options, **options})

    def info(self, path, **options):
        path = self._strip_protocol(path)
        status = os.stat(path)
        kind = "directory" if stat.S_ISDIR(status.st_mode) else "file" if stat.S_ISREG(status.st_mode) else "other"
        found = dict(name=path, type=kind, size=0, mtime=status.st_mtime, mode=status.st_mode, uid=status.st_uid,
                     gid=status.st_gid, ino=status.st_ino)
        if kind == "file":
            with self._open(path, **options) as file:
                found["size"] = file.size
        return found

    def ls(self, path, detail=True, **options):
        """A file that cannot be opened has the size None; info() and open() say why."""
        path = self._strip_protocol(path)
        if not os.path.isdir(path):
            found = self.info(path, **options)
            return [found] if detail else [path]
        names = [os.path.join(path, name) for name in sorted(os.listdir(path))]
        return [self._listed(name, options) for name in names] if detail else names

    def _listed(self, name, options):
        try:
            return self.info(name, **options)
        except OSError:
            return dict(name=name, type="file" if os.path.isfile(name) else "other", size=None)

    def exists(self, path, **_):
        return os.path.exists(self._strip_protocol(path))

    def isfile(self, path):
        return os.path.isfile(self._strip_protocol(path))

    def isdir(self, path):
        return os.path.isdir(self._strip_protocol(path))

    def modified(self, path):
        return datetime.fromtimestamp(os.stat(self._strip_protocol(path)).st_mtime, tz=timezone.utc)

    def cat_file(self, path, start=None, end=None, **options):
        with self._open(self._strip_protocol(path), **options) as file:
            first, last, _ = slice(start, end).indices(file.size)
            return file.read_at(first, max(0, last - first))
