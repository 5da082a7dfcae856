"""Exceptions: one for each kind of remedy, all with the library's own sentence."""

from __future__ import annotations

from typing import Any

from . import _native


class Error(Exception):
    """What went wrong. `code` is the short name of the protocol ("not_found"), `field` what of the request is meant, or "".
    `status` is the SLABKV_E_* number, `message` the library's sentence."""

    def __init__(self, message: str, code: str = "invalid_argument", field: str = "", status: int = -1) -> None:
        super().__init__(f"{field}: {message}" if field and not message.startswith(field) else message)
        self.message = message
        self.code = code
        self.field = field
        self.status = status


class InvalidError(Error, ValueError):
    """An argument or an option is not valid, or too large."""


class NotFoundError(Error, LookupError):
    """No such instance, storage or group."""


class ConflictError(Error):
    """The object exists with other content."""


class DeniedError(Error, PermissionError):
    """No valid token, or its role does not allow it."""


class UnreachableError(Error, ConnectionError):
    """No manager could be reached, or none is ready."""


class TimedOutError(Error, TimeoutError):
    """No answer within the client's timeout."""


class FullError(Error):
    """No space, or over a quota or a limit: stores are refused, what is stored can be read."""


class StorageError(Error, OSError):
    """A storage cannot be read or written from this machine."""


class DeviceMemoryError(InvalidError, TypeError):
    """The memory is an accelerator's: copy it to host memory first."""


class ClosedError(Error, ValueError):
    """The client was closed, or belongs to the process that this one was forked from."""


# SLABKV_E_* of slabkv.h
_KINDS: dict[int, type[Error]] = {
    -1: InvalidError, -2: DeniedError, -3: DeniedError, -4: NotFoundError, -6: ConflictError, -7: ConflictError, -10: InvalidError,
    -11: FullError, -14: UnreachableError, -15: UnreachableError, -16: FullError, -17: FullError, -20: StorageError, -21: FullError,
    -22: FullError, -24: StorageError, -25: StorageError, -26: StorageError, -27: TimedOutError, -29: UnreachableError,
}


def of(status: int, message: str = "", field: str = "") -> Error:
    """The exception of a status; without a message that of the status itself."""
    lib = _native.library()
    text = message or lib.text(status).decode()
    kind = ClosedError if status == -1 and field == "handle" else _KINDS.get(status, Error)
    return kind(text, lib.code(status).decode(), field, status)


def check(status: int, err: Any) -> None:
    """Raises what the library said, if it did."""
    if status != 0:
        raise of(status, err.message.decode("utf-8", "replace"), err.field.decode("utf-8", "replace"))
