"""Makes Arrow streams of tables: objects with __arrow_c_stream__, and NumPy arrays as columns."""

from __future__ import annotations

import ctypes
import glob
import importlib.util
import os
import re
import warnings
from ctypes import CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int64, c_void_p
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from ._arguments import items
from ._errors import InputError, UsageError
from ._numpy import np

ROWS = 1 << 16  # number of rows of a batch of columns
FILE_FORMATS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather", ".ipc": "feather", ".orc": "orc"}


class Schema(Structure):
    pass


class Array(Structure):
    pass


class Stream(Structure):
    pass


RELEASE = CFUNCTYPE(None, c_void_p)
Schema._fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_char_p), ("flags", c_int64),
                   ("n_children", c_int64), ("children", POINTER(POINTER(Schema))), ("dictionary", POINTER(Schema)),
                   ("release", RELEASE), ("private_data", c_void_p)]
Array._fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                  ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(Array))),
                  ("dictionary", POINTER(Array)), ("release", RELEASE), ("private_data", c_void_p)]
NEXT = CFUNCTYPE(c_int, c_void_p, c_void_p)
LAST_ERROR = CFUNCTYPE(c_void_p, c_void_p)
Stream._fields_ = [("get_schema", NEXT), ("get_next", NEXT), ("get_last_error", LAST_ERROR), ("release", RELEASE),
                   ("private_data", c_void_p)]

INTEGERS = {"i1": b"c", "i2": b"s", "i4": b"i", "i8": b"l", "u1": b"C", "u2": b"S", "u4": b"I", "u8": b"L"}
FLOATS = {"f2": b"e", "f4": b"f", "f8": b"g"}
UNITS = {"s": b"tss:", "ms": b"tsm:", "us": b"tsu:", "ns": b"tsn:"}


def _is_null(one: Any) -> bool:
    try:
        return one is None or bool(one != one)
    except TypeError:  # pandas.NA is neither equal nor unequal
        return True
    except ValueError:
        raise UsageError("an element of a column is an array; expected numbers, strings or times") from None


def _text(one: Any) -> bytes:
    if isinstance(one, bytes):
        return one
    return (str(one).lower() if isinstance(one, (bool, np.bool_)) else str(one)).encode(errors="surrogateescape")


class Column:
    """A column of a NumPy array: the format of its type, and the buffers of a range of rows."""

    def __init__(self, name: str, values: Any) -> None:
        self.name = name.encode(errors="surrogateescape")
        self.mask = np.ma.getmaskarray(values) if np.ma.is_masked(values) else None
        array = np.asarray(values)
        if array.dtype.kind == "T":
            array = array.astype(object)  # keeps the marks of missing strings, which `buffers` detects
        if array.ndim != 1:
            raise UsageError(f"column {name!r} has {array.ndim} dimensions; expected one")
        if array.dtype.kind == "M":
            array, self.format = self._times(array)
        elif array.dtype.kind == "b":
            self.format = b"b"
        elif array.dtype.kind in "OSU":
            self.format = b"Z"
        else:
            kind = array.dtype.kind + str(array.dtype.itemsize)
            # The library rejects other types, unless the column is not used.
            self.format = {**INTEGERS, **FLOATS}.get(kind, f"NumPy {array.dtype}".encode())
            array = array.astype(array.dtype.newbyteorder("="), copy=False)
        self.values = array

    def _times(self, array: np.ndarray) -> Tuple[np.ndarray, bytes]:
        """Returns times as days, or in a unit of Arrow that holds them exactly, and their format."""
        unit, _ = np.datetime_data(array.dtype)
        if unit in ("Y", "M", "W", "D"):
            found, form, least, most = array.astype("datetime64[D]"), b"tdD", -1 << 31, (1 << 31) - 1
        else:
            unit = "s" if unit in ("h", "m") else unit if unit in UNITS else "ns"
            found, form, least, most = array.astype(f"datetime64[{unit}]"), UNITS[unit], -1 << 63, (1 << 63) - 1
        counts = found.astype(np.int64)
        wrong = ~np.isnat(array) & ((found.astype(array.dtype) != array) | (counts < least) | (counts > most))
        if wrong.any():
            raise UsageError(f"column {self.name.decode(errors='replace')!r}: the time in row {int(wrong.argmax()) + 1} has no exact "
                             f"{'date' if form == b'tdD' else 'time in the unit ' + unit}")
        return found, form

    def __len__(self) -> int:
        return len(self.values)

    def buffers(self, begin: int, end: int) -> Tuple[List[Optional[np.ndarray]], int]:
        """Returns the buffers of the rows from `begin` to `end`, and the number of nulls."""
        values = self.values[begin:end]
        if values.dtype.kind == "O":
            null = np.fromiter((_is_null(one) for one in values), bool, len(values))
        elif values.dtype.kind == "f":
            null = np.isnan(values)
        elif values.dtype.kind == "M":
            null = np.isnat(values)
        else:
            null = np.zeros(len(values), bool)
        if self.mask is not None:
            null |= self.mask[begin:end]
        valid = np.packbits(~null, bitorder="little") if null.any() else None
        if self.format == b"Z":
            texts = [b"" if lacks else _text(one) for one, lacks in zip(values.tolist(), null)]
            offsets = np.zeros(len(texts) + 1, np.int64)
            np.cumsum([len(one) for one in texts], out=offsets[1:])
            return [valid, offsets, np.frombuffer(b"".join(texts) + b"\0", np.uint8)], int(null.sum())
        if self.format == b"b":
            data = np.packbits(values, bitorder="little")
        elif self.format == b"tdD":
            data = np.where(null, 0, values.astype(np.int64)).astype(np.int32)
        else:
            data = np.ascontiguousarray(values)
        return [valid, data], int(null.sum())


class ColumnStream:
    """
    An Arrow stream of columns. Arrays stay alive until the consumer releases them. `pointer` is the
    address of the stream.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        self.rows = len(columns[0]) if columns else 0
        for column in columns:
            if len(column) != self.rows:
                raise UsageError(f"columns have {[len(one) for one in columns]} elements; expected equal numbers")
        self.at = 0
        self._fault = ctypes.create_string_buffer(1024)
        self._held: Dict[int, Any] = {}
        self._number = 0
        self._release_schema, self._release_array = RELEASE(self._free(Schema)), RELEASE(self._free(Array))
        self._stream = Stream(get_schema=NEXT(self._guard(self._schema)), get_next=NEXT(self._guard(self._next)),
                              get_last_error=LAST_ERROR(lambda _: ctypes.addressof(self._fault)),
                              release=RELEASE(self._end))
        self.pointer = ctypes.addressof(self._stream)

    def _free(self, kind: Any) -> Callable[[int], None]:
        def free(address: int) -> None:
            found = kind.from_address(address)
            self._held.pop(found.private_data, None)
            found.release = RELEASE()
        return free

    @staticmethod
    def _end(address: int) -> None:
        Stream.from_address(address).release = RELEASE()

    def _guard(self, function: Callable[[int], None]) -> Callable[[int, int], int]:
        def guarded(_: int, address: int) -> int:
            try:
                function(address)
            except BaseException as fault:  # a callback must not raise
                self._fault.value = f"{type(fault).__name__}: {fault}".encode(errors="replace")[:1023]
                return 22  # EINVAL
            return 0
        return guarded

    def _parts(self, address: int, kind: Any, parts: List[Any], known: Any, release: Any) -> None:
        """Fills the struct at `address` with `known` and with children, which are kept until its release."""
        pointers = (POINTER(kind) * max(len(parts), 1))(*(ctypes.pointer(part) for part in parts))
        known.n_children, known.children, known.release = len(parts), pointers, release
        self._number += 1  # the consumer may move the struct, so its address does not identify it
        known.private_data = self._number
        self._held[self._number] = (parts, pointers, known)
        ctypes.memmove(address, byref(known), ctypes.sizeof(known))

    def _schema(self, address: int) -> None:
        ignore = RELEASE(lambda _: None)
        parts = [Schema(format=column.format, name=column.name, flags=2, release=ignore) for column in self.columns]
        self._parts(address, Schema, parts, Schema(format=b"+s", name=b""), self._release_schema)
        self._ignore = ignore

    def _next(self, address: int) -> None:
        begin, end = self.at, min(self.at + ROWS, self.rows)
        if begin == end:
            Array.from_address(address).release = RELEASE()
            return
        parts = []
        for column in self.columns:
            buffers, nulls = column.buffers(begin, end)
            pointers = (c_void_p * len(buffers))(*(None if one is None else one.ctypes.data for one in buffers))
            part = Array(length=end - begin, null_count=nulls, n_buffers=len(buffers), buffers=pointers,
                         release=self._ignore)
            part.held = buffers, pointers
            parts.append(part)
        nothing = (c_void_p * 1)()
        known = Array(length=end - begin, n_buffers=1, buffers=nothing)
        known.held = nothing
        self._parts(address, Array, parts, known, self._release_array)
        self.at = end


class _Capsule:
    """The Arrow stream in a PyCapsule. `pointer` is its address."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule  # releases the stream unless the library has done so
        address = ctypes.pythonapi.PyCapsule_GetPointer
        address.restype, address.argtypes = c_void_p, (ctypes.py_object, c_char_p)
        self.pointer = address(capsule, b"arrow_array_stream")


def is_table(source: Any) -> bool:
    """Returns whether a source of nonzeros is a table: a frame, a relation, a dataset or columns."""
    return isinstance(source, dict) or any(hasattr(source, name) for name in ("__arrow_c_stream__", "to_reader", "scanner")) or (
        hasattr(source, "to_numpy") and hasattr(source, "columns"))


def is_table_file(source: Any) -> bool:
    """Returns whether a source is the path of a file that open_table reads, or of a folder with Parquet files."""
    if not isinstance(source, (str, bytes, os.PathLike)):
        return False
    path = os.fsdecode(source)
    if not os.path.isdir(path):
        return os.path.splitext(path)[1].lower() in FILE_FORMATS
    return next(glob.iglob(os.path.join(glob.escape(path), "**", "*.parquet"), recursive=True), None) is not None


def open_table(source: Any) -> Any:
    """Opens a file, or a folder of Parquet files, with pyarrow or, for Parquet, with duckdb."""
    path = os.fsdecode(source)
    folder = os.path.isdir(path)
    form = "parquet" if folder else FILE_FORMATS.get(os.path.splitext(path)[1].lower())
    if form is None:
        raise UsageError(f"{path}: expected a file that ends in {', '.join(FILE_FORMATS)}, or a folder of Parquet files; "
                         "the command `sluice convert` reads CSV and tensors")
    os.stat(path)  # the error of pyarrow lacks the reason
    try:
        if importlib.util.find_spec("pyarrow") is not None:
            return importlib.import_module("pyarrow.dataset").dataset(path, format=form)
        if form == "parquet" and importlib.util.find_spec("duckdb") is not None:
            return _zoned(importlib.import_module("duckdb").read_parquet(os.path.join(path, "**", "*.parquet") if folder else path))
    except (ImportError, OSError):
        raise
    except Exception as fault:  # each package has its own errors of damaged files
        raise InputError(f"{path}: {fault}", "input", file=path) from None
    raise UsageError("this needs the Python package pyarrow or, for Parquet, duckdb: pip install pyarrow")


def _zoned(relation: Any) -> Any:
    """Warns if DuckDB converts times of the relation to the time zone of its session."""
    times = [name for name, kind in zip(relation.columns, relation.types) if str(kind) == "TIMESTAMP WITH TIME ZONE"]
    if times:
        zone = importlib.import_module("duckdb").sql("SELECT current_setting('TimeZone')").fetchall()[0][0]
        warnings.warn(f"duckdb reads the times of {', '.join(times)} in the zone {zone}; with pyarrow, they have the zone of the file",
                      RuntimeWarning, stacklevel=4)
    return relation


def _names(source: Any) -> List[Any]:
    if isinstance(source, dict):
        return list(source)
    found = getattr(getattr(source, "schema", None), "names", None)  # pyarrow
    return found if isinstance(found, list) else list(getattr(source, "columns", ()))


def _item(name: str) -> str:
    """Returns a name as an item of `columns`, in quotes if necessary."""
    plain = name.strip(" ") == name != "" and not set(',()"') & set(name)
    return name if plain else '"' + name.replace('"', '""') + '"'


def table_items(source: Any, columns: Union[None, str, Sequence[Any]], value_column: Optional[Any]) -> Optional[str]:
    """Returns the items of `columns` as one string, or None for all columns. Column names in a list need no quotes."""
    if isinstance(columns, str):
        return columns
    names = _names(source)
    if columns is None:  # all columns, without those that the Arrow stream may add, such as an index
        columns = [name for name in names if name != value_column]
    return ",".join(_item(str(one)) if one in names else str(one) for one in items("columns", columns, "a list of columns")) or None


_RULES = "sorted|int|bin|log|minute|hour|weekday|day|month|year|yearmonth|date|datehour|dateminute"
_COLUMNS = re.compile(rf'(?:^|,)\s*(?:(?:{_RULES})\()?\s*("(?:""|[^"])*"|[^,()"]+)(?:[^,()"]*\)|,[^()]*\))?')


def _are_known(items: str, names: Sequence[Any]) -> bool:
    """Returns whether the table has the column of each item."""
    texts = {str(name) for name in names}
    found = (one.group(1).strip(" ") for one in _COLUMNS.finditer(items))
    return all((one[1:-1].replace('""', '"') if one.startswith('"') else one) in texts for one in found)


def table_stream(source: Any, items: Optional[str], value_column: Optional[Any]) -> Tuple[Any, Sequence[int]]:
    """
    Returns an object for the stream of a table, whose `pointer` is the address of the stream, and
    the numbers of the stream's columns in the table. If the source can do this, the stream has only
    the columns whose names occur in `items`.
    """
    names = _names(source)
    used = [name for name in names
            if items is None or str(name) in items.replace('""', '"') or str(name) == str(value_column)]
    if items is not None and not (_are_known(items, names) and (
            value_column is None or str(value_column) in map(str, names))):
        used = names  # the library rejects the items, and its message lists all columns
    numbers: Sequence[int] = range(1, len(names) + 1)
    if hasattr(source, "scanner"):  # a dataset
        numbers = [names.index(name) + 1 for name in used]
        source = source.scanner(columns=used, batch_size=ROWS, batch_readahead=2, fragment_readahead=1)
    if hasattr(source, "to_reader") and not hasattr(source, "__arrow_c_stream__"):
        source = source.to_reader()
    if hasattr(source, "__arrow_c_stream__"):
        try:
            return _Capsule(source.__arrow_c_stream__()), numbers
        except (ImportError, TypeError, ValueError):  # pandas without pyarrow, or with columns of objects of several types
            if not hasattr(source, "to_numpy"):
                raise
    return ColumnStream([Column(str(name), source[name]) for name in used]), [names.index(name) + 1 for name in used]
