"""Loads libsluice, calls its functions, and converts its errors to exceptions."""

from __future__ import annotations

import ctypes
import os
import queue
import threading
import time
import warnings
from ctypes import byref, c_int
from typing import Any, Callable, Optional, Sequence

from ._arguments import function, is_bool, whole, wrong
from ._errors import BudgetError, InputError, SluiceError, StorageError, UsageError
from ._numpy import np
from ._structs import KEYWORDS, ON_PROGRESS, Error

# Arguments: phase, units done, units in total (None: unknown). Returning True stops the call.
Progress = Callable[[str, int, Optional[int]], Any]
NOWHERE = 2**64 - 1
CLASSES = {"usage": UsageError, "input": InputError, "format": InputError, "unsupported": InputError,
           "budget": BudgetError, "io": StorageError, "no-space": StorageError, "damaged": StorageError}
VERSION = "0.1."


def _load() -> ctypes.CDLL:
    asked = os.environ.get("SLUICE_LIBRARY")
    # meson-python installs the library of a wheel here.
    site = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    bundled = os.path.join(site, ".sluice.mesonpy.libs", "libsluice.so.0")
    path = asked or (bundled if os.path.exists(bundled) else "libsluice.so.0")
    try:
        found = ctypes.CDLL(path)
    except OSError as fault:
        raise ImportError(f"cannot load libsluice: {fault}; install it, or set SLUICE_LIBRARY to its path") from None
    found.sluice_version.restype = ctypes.c_char_p
    number = found.sluice_version().decode()
    if not number.startswith(VERSION):
        raise ImportError(f"{path} is libsluice {number}; this package needs {VERSION}x")
    found.sluice_status_name.restype = ctypes.c_char_p
    found.sluice_model_record.restype = ctypes.c_char_p
    found.sluice_store_title.restype = ctypes.c_char_p
    found.sluice_store_name_count.restype = ctypes.c_uint64
    found.sluice_log_to.restype = None
    for name in ("sluice_store_close", "sluice_model_destroy", "sluice_sweep_destroy", "sluice_builder_abandon",
                 "sluice_ttv_destroy"):
        getattr(found, name).restype = None
    return found


LIB = _load()
ON_LOG = ctypes.CFUNCTYPE(None, ctypes.c_void_p, c_int, ctypes.c_char_p)
_warned: queue.SimpleQueue = queue.SimpleQueue()  # messages come from any thread


def _log(_: Any, level: int, message: bytes) -> None:
    if level == 0:
        _warned.put(message.decode(errors="replace"))


_ON_LOG = ON_LOG(_log)
LIB.sluice_log_to(_ON_LOG, None)


def warn() -> None:
    """Passes the library's warnings to the caller's thread."""
    while not _warned.empty():
        warnings.warn(_warned.get(), RuntimeWarning, stacklevel=4)


def version() -> str:
    """
    Returns the version of libsluice, such as "0.1.0".

    >>> sluice.version() == sluice.__version__
    True
    """
    return LIB.sluice_version().decode()


def options(kind: Any) -> Any:
    """Returns default options, or an empty report: a struct with its size and zeros otherwise."""
    return kind(struct_bytes=ctypes.sizeof(kind))


def pointer(array: Optional[np.ndarray]) -> Any:
    return array.ctypes.data_as(ctypes.c_void_p) if array is not None else ctypes.c_void_p()


def size(name: str, value: Any) -> int:
    """Converts a number, or text such as "2GiB" or "50%", to bytes; None to 0."""
    if value is None:
        return 0
    if not isinstance(value, str):
        if is_bool(value) or not (hasattr(value, "__index__") or isinstance(value, float) and value.is_integer()):
            raise wrong(name, value, 'a number of bytes, or text such as "2GiB"')
        return whole(name, int(value), 1)
    out = ctypes.c_uint64()
    try:
        call("sluice_parse_size", value.encode(errors="surrogateescape"), byref(out))
    except UsageError as fault:
        raise UsageError(f"{fault} ({name})", field=name) from None
    return whole(name, out.value, 1)


def fault(status: int, err: Error, columns: Sequence[int] = ()) -> SluiceError:
    """Returns the error. `columns` has the number in the table of each column of the stream."""
    if err.column != NOWHERE and err.column <= len(columns):
        err.column = columns[err.column - 1]
    fields = [KEYWORDS.get(member.decode(), member.decode()) for member in (err.field, err.other_field) if member]
    err.field = err.other_field = None  # the text below adds the Python names instead
    text = ctypes.create_string_buffer(2048)
    LIB.sluice_error_format(byref(err), text, ctypes.c_uint64(len(text)))
    name = LIB.sluice_status_name(status).decode()

    def place(number: int) -> Optional[int]:
        return None if number == NOWHERE else number

    return CLASSES.get(name, SluiceError)(
        text.value.decode(errors="replace") + (f" ({', '.join(fields)})" if fields else ""), status=name,
        file=os.fsdecode(err.file) or None, line=place(err.line), column=place(err.column), block=place(err.block),
        offset=place(err.offset), errno=err.system_errno or None, field=fields[0] if fields else None)


def call(name: str, *args: Any) -> None:
    """Calls a function that returns a status; raises SluiceError if it fails."""
    try:
        call_silently(name, *args)
    finally:
        warn()


def call_silently(name: str, *args: Any, columns: Sequence[int] = ()) -> None:
    """Does the same as call, but does not pass on warnings of the library; the caller does."""
    err = Error(line=NOWHERE, column=NOWHERE, block=NOWHERE, offset=NOWHERE)
    status = getattr(LIB, name)(*args, byref(err))
    if status != 0:
        raise fault(status, err, columns)


class Run:
    """
    Runs a long call of the library in a separate thread, while the caller's thread waits.

    Therefore Ctrl-C has an immediate effect: it sets `stop`, which the library polls, and the call
    returns. Callbacks run in the caller's thread.
    """

    def __init__(self) -> None:
        self.stop = c_int(0)
        self.fault: Optional[BaseException] = None
        self._tasks: queue.SimpleQueue = queue.SimpleQueue()
        self._held: list = []  # keeps callbacks alive while the library uses them
        self._reported = 0.0
        self.columns: Sequence[int] = ()  # numbers of the columns of a table, for errors

    def watch(self, known: Any, progress: Optional["Progress"] = None) -> None:
        """Sets `stop` and `progress` in options; calls progress at most ten times a second."""
        known.run.stop = ctypes.pointer(self.stop)
        if function("progress", progress) is None:
            return
        callback: Progress = progress  # type: ignore[assignment]

        def report(_: Any, given: Any) -> int:
            now, at = time.monotonic(), given.contents
            if now - self._reported < 0.1:
                return 0
            self._reported = now
            phase = f"iteration {at.iteration}, mode {at.mode}" if at.iteration > 0 else at.phase.decode()
            return int(self.ask(callback, phase, at.done, at.total or None))

        known.run.progress = ON_PROGRESS(report)
        self._held.append(known.run.progress)

    def ask(self, function: Callable[..., Any], *args: Any) -> bool:
        """Runs a function in the caller's thread, for the library's thread; returns whether to stop."""
        answer: list = []
        done = threading.Event()
        self._tasks.put((function, args, answer, done))
        while not done.wait(0.1):
            if self.fault is not None:
                return True
        return self.fault is not None or bool(answer and answer[0])

    def _work(self, name: str, args: tuple, end: list) -> None:
        try:
            call_silently(name, *args, columns=self.columns)
        except BaseException as raised:  # raised again in the caller's thread
            end.append(raised)
        finally:
            self._tasks.put(None)

    def _serve(self, thread: threading.Thread) -> bool:
        """Runs one pending callback; returns False when there will be no more callbacks."""
        try:
            task = self._tasks.get(timeout=1)
        except queue.Empty:
            return thread.is_alive()
        if task is None:
            return False
        function, args, answer, done = task
        try:
            answer.append(function(*args))
        except BaseException:  # stop the library before it continues
            self.stop.value = 1
            raise
        finally:
            done.set()
        return True

    def call(self, name: str, *args: Any) -> None:
        """Calls a function; then raises its error, the exception of a callback, or KeyboardInterrupt."""
        end: list = []
        thread = threading.Thread(target=self._work, args=(name, args, end), name=name, daemon=True)
        thread.start()
        going = True
        while going or thread.is_alive():
            try:
                if going:
                    going = self._serve(thread)
                else:
                    thread.join()
            except BaseException as raised:  # by a callback, or by Ctrl-C, which may occur twice
                self.stop.value = 1
                self.fault = self.fault or raised
        warn()
        if self.fault is not None:
            raise self.fault
        if end:
            raise end[0]
