"""Exceptions: one class for each group of errors that callers handle in the same way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._result import Result


class SluiceError(Exception):
    """
    An error of libsluice.

    `status` is the name of its status code ("input", "budget", ..). `file`, `line`, `column`,
    `block`, `offset` and `errno` locate the error, and `field` names the argument to change.
    Attributes that do not apply have the value None.
    """

    def __init__(self, text: str, status: str = "usage", file: Optional[str] = None, line: Optional[int] = None,
                 column: Optional[int] = None, block: Optional[int] = None, offset: Optional[int] = None,
                 errno: Optional[int] = None, field: Optional[str] = None) -> None:
        super().__init__(text)
        self.status = status
        self.file = file
        self.line = line
        self.column = column
        self.block = block
        self.offset = offset
        self.errno = errno
        self.field = field


class UsageError(SluiceError, ValueError):
    """An argument is invalid or contradicts another argument, or a checkpoint belongs to another run."""


class InputError(SluiceError, ValueError):
    """The data is malformed or in a format that this version does not support."""


class BudgetError(SluiceError):
    """The memory or disk budget is too small; the message states a sufficient budget."""


class StorageError(SluiceError):
    """A file operation failed, the disk is full, or a store is damaged."""


class Interrupted(KeyboardInterrupt):
    """
    Ctrl-C interrupted a decomposition.

    `result` is the partial result, or None. `checkpoint` is the folder from which the same call or
    `sluice cpd` can resume, or None if there is no checkpoint.
    """

    def __init__(self, result: Optional["Result"], checkpoint: Optional[str]) -> None:
        super().__init__(f"interrupted; the same call resumes from the checkpoint in {checkpoint}" if checkpoint else "interrupted")
        self.result = result
        self.checkpoint = checkpoint
