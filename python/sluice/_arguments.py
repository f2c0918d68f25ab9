"""Checks of arguments. Their errors name the argument, its value and what is expected."""

from __future__ import annotations

import os
from operator import index
from reprlib import repr as short_repr
from typing import Any, List, Optional

from ._errors import UsageError


def wrong(name: str, value: Any, expected: str) -> UsageError:
    """Returns the error of an argument with a value of a wrong type."""
    return UsageError(f"{name} {short_repr(value)}: expected {expected}", field=name)


def is_bool(value: Any) -> bool:
    """Returns whether a value is True or False, also as NumPy has them."""
    return type(value).__name__ in ("bool", "bool_")


def whole(name: str, value: Any, low: int = 0, high: int = 2**64 - 1) -> int:
    """Returns an integer from `low` to `high`."""
    try:
        number = None if is_bool(value) else index(value)
    except TypeError:
        number = None
    if number is None:
        raise wrong(name, value, "an integer")
    if not low <= number <= high:
        raise UsageError(f"{name} {number} is not between {low} and {high}", field=name)
    return number


def real(name: str, value: Any, low: Optional[float] = None) -> float:
    """Returns a real number of at least `low`."""
    if is_bool(value) or isinstance(value, (str, bytes)) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise wrong(name, value, "a number")
    try:
        number = float(value)
    except (TypeError, OverflowError):
        raise wrong(name, value, "a number") from None
    if low is not None and number < low:
        raise wrong(name, value, f"a number of at least {low:g}")
    return number


def flag(name: str, value: Any) -> bool:
    """Returns True or False, which may be given as 1 or 0."""
    if is_bool(value) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    raise wrong(name, value, "True or False")


def text(name: str, value: Any) -> str:
    """Returns a string."""
    if not isinstance(value, str):
        raise wrong(name, value, "a string")
    return value


def encoded(name: str, value: Optional[str]) -> Optional[bytes]:
    """Returns a string as bytes; None remains None."""
    return None if value is None else text(name, value).encode(errors="surrogateescape")


def items(name: str, value: Any, expected: str) -> List[Any]:
    """Returns the elements of a list or another sequence, but not the letters of a string."""
    if isinstance(value, (str, bytes, os.PathLike, dict)) or not hasattr(value, "__iter__"):
        raise wrong(name, value, expected)
    return list(value)


def wholes(name: str, value: Any, low: int = 0, high: int = 2**64 - 1) -> List[int]:
    """Returns a list of integers from `low` to `high`."""
    return [whole(name, one, low, high) for one in items(name, value, "a list of integers")]


def path_bytes(path: Any, name: str = "path") -> bytes:
    """Returns a path as bytes."""
    if isinstance(path, bool) or not isinstance(path, (str, bytes, os.PathLike)):
        raise wrong(name, path, "a path")
    found = os.fsencode(path)
    if b"\0" in found:
        raise UsageError(f"the path {path!r} contains a zero character", field=name)
    return found


def path_text(path: Any, name: str = "path") -> str:
    """Returns a path as a string."""
    return os.fsdecode(path_bytes(path, name))


def function(name: str, value: Any) -> Any:
    """Returns a function, or None."""
    if value is not None and not callable(value):
        raise wrong(name, value, "a function")
    return value
