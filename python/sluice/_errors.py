"""Exceptions: one class for each thing that a caller may do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Optional

if TYPE_CHECKING:
    from ._result import Result


class SluiceError(Exception):
    """
    What libsluice says is wrong. `status` is its name ("input", "budget", ..); `file`, `line`, `column`, `block`,
    `offset` and `errno` say where, and `field` names the argument to change; None where they do not apply.
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
    """An argument is out of range or contradicts another, or a checkpoint is of another run."""


class InputError(SluiceError, ValueError):
    """The data is malformed, or none that this version reads."""


class BudgetError(SluiceError):
    """The memory or disk budget is too small; the text names what is enough."""


class StorageError(SluiceError):
    """A file operation failed, the disk is full, or a store is damaged."""


class Interrupted(KeyboardInterrupt):
    """
    Ctrl-C in the midst of a decomposition. `result` is what there was of it, or None; where `checkpoint` names a
    folder, the same call goes on from there, and so does the command.
    """

    def __init__(self, result: Optional["Result"], checkpoint: Optional[str]) -> None:
        super().__init__(f"the same call goes on from the checkpoint in {checkpoint}" if checkpoint else "interrupted")
        self.result = result
        self.checkpoint = checkpoint
