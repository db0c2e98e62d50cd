# Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
"""An exception for each status of libmpicrypt_file."""
import errno


class EncryptedFileError(OSError):
    """Reading an encrypted file failed.  `errno` is the system's, or EIO.

    status    the library's number, MPICRYPT_FILE_ERR_...
    offset    where the first block that could not be read begins, or None
    filename  as it was given to open()
    """

    status = None
    offset = None

    def __str__(self):
        return self.strerror or super().__str__()


class NotEncrypted(EncryptedFileError):
    """A plain file is where an encrypted one was expected."""


class Forged(EncryptedFileError):
    """Bytes were changed, moved or cut, by an attacker or a broken disk."""


class Torn(EncryptedFileError):
    """A first write was cut short: these bytes were never complete."""


class NoKey(EncryptedFileError):
    """The keystore has no key for these bytes, or refuses its use."""


class Unexpected(EncryptedFileError):
    """The file has another label or seal than the caller expects."""


class Unfinished(EncryptedFileError):
    """The program that made this file was stopped before it was complete."""


class UnsupportedFormat(EncryptedFileError):
    """The file is of a later version, or of one before the first release."""


class Unusable(EncryptedFileError):
    """The keystore, a parameter or the cryptographic library cannot be used."""


class Forked(EncryptedFileError):
    """The file was opened before fork(), and the child has no keys.  Open it again."""


class BadArgument(EncryptedFileError, ValueError):
    """An option or an offset is invalid."""


class FileMissing(EncryptedFileError, FileNotFoundError):
    """There is no such file."""


class AccessDenied(EncryptedFileError, PermissionError):
    """The operating system denies access."""


_STATUS = {1: NotEncrypted, 2: Forged, 3: Torn, 4: NoKey, 5: Unexpected, 6: Unfinished, 7: UnsupportedFormat, 8: Unusable,
           11: Forked, 12: BadArgument}
_ERRNO = {errno.ENOENT: FileMissing, errno.EACCES: AccessDenied, errno.EPERM: AccessDenied}
_IO, _MEMORY = 9, 10
_NOWHERE = 2**64 - 1


def from_library(error, filename):
    """The exception for a call's mpicrypt_file_error_t."""
    kind = _ERRNO.get(error.os_error, EncryptedFileError) if error.status == _IO else _STATUS.get(error.status, EncryptedFileError)
    number = error.os_error or (errno.ENOMEM if error.status == _MEMORY else errno.EIO)
    exception = kind(number, error.text.decode("utf-8", "replace"), filename)
    exception.status = error.status
    exception.offset = None if error.offset == _NOWHERE else error.offset
    return exception
