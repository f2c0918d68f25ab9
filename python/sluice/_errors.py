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

    >>> try:
    ...     sluice.open("none.slc")
    ... except sluice.SluiceError as fault:
    ...     print(fault.status, fault.errno)
    io 2
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
    """
    An argument is invalid or contradicts another argument, or a checkpoint belongs to another run.

    >>> sluice.generate("demo.slc", (4, 3), 5, codec="zip")
    Traceback (most recent call last):
        ...
    sluice._errors.UsageError: codec 'zip' is not one of packed, lz4, blco
    """


class InputError(SluiceError, ValueError):
    r"""
    The data is malformed or in a format that this version does not support.

    >>> with open("bad.tns", "w") as file:
    ...     lines = file.write("1 1 1 1\n1 x 1 2\n")
    >>> try:
    ...     sluice.convert("bad.tns", "bad.slc")
    ... except sluice.InputError as fault:
    ...     print(fault.file, fault.line, fault.column)
    bad.tns 2 3
    """


class BudgetError(SluiceError):
    """
    The memory or disk budget is too small; the message states a sufficient budget.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000)
    >>> try:
    ...     t.cpd(3, memory="1MiB")
    ... except sluice.BudgetError as fault:
    ...     print(fault.field)
    memory
    """


class StorageError(SluiceError):
    """
    A file operation failed, the disk is full, or a store is damaged.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000)
    >>> t.export("demo.tns")
    4000
    >>> try:
    ...     t.export("demo.tns")
    ... except sluice.StorageError as fault:
    ...     print(fault.file)
    demo.tns
    """


class Interrupted(KeyboardInterrupt):
    """
    Ctrl-C interrupted a decomposition.

    `result` is the partial result, or None. `checkpoint` is the folder from which the same call or
    `sluice cpd` can resume, or None if there is no checkpoint.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000)
    >>> try:
    ...     r = t.cpd(3, 10, checkpoint="kept")
    ... except sluice.Interrupted as stopped:
    ...     r = stopped.result
    >>> r.complete
    True
    """

    def __init__(self, result: Optional["Result"], checkpoint: Optional[str]) -> None:
        super().__init__(f"interrupted; the same call resumes from the checkpoint in {checkpoint}" if checkpoint else "interrupted")
        self.result = result
        self.checkpoint = checkpoint
