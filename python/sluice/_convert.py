"""Creates stores from files, tables, arrays, data frames and random numbers."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, Optional, Sequence, Union

from . import _structs as c
from ._arrow import is_table, is_table_file, open_table, table_items, table_stream
from ._arguments import encoded, flag, items, path_bytes, path_text, real, text, whole, wholes, wrong
from ._errors import UsageError
from ._library import LIB, Progress, Run, options, pointer, size
from ._numpy import np
from ._options import (CODECS, DISTRIBUTIONS, DUPLICATES, FORMATS, MISSING, RELABELS, VALUES, Fibers, Labels, PathLike, choose,
                       index_base as first_index, null_words, plain, set_fibers, set_label_files, set_sort_limits)
from ._tensor import Tensor

PIECE = 1 << 20  # number of nonzeros that are converted to the library's types at a time


def _options(run: Run, shape: Optional[Sequence[int]], index_base: Optional[int], duplicates: str, codec: str, value: str,
             relabel: str, fibers: Fibers, overwrite: bool, threads: int, memory: Any, progress: Optional[Progress],
             kind: Any) -> Any:
    known = options(kind)
    run.watch(known, progress)
    set_fibers(known, fibers)
    if shape is not None:
        dims = wholes("shape", shape)
        if len(dims) > c.MAX_ORDER:
            raise wrong("shape", shape, f"at most {c.MAX_ORDER} modes")
        known.entries.dims_order = len(dims)
        known.entries.dims[:len(dims)] = dims
    known.entries.index_base = first_index(index_base)
    known.entries.duplicates = choose("duplicates", DUPLICATES, duplicates)
    known.entries.value = choose("value", VALUES, value)
    known.output.codec, known.output.relabel = choose("codec", CODECS, codec), choose("relabel", RELABELS, relabel)
    known.output.overwrite, known.run.threads, known.run.memory_bytes = overwrite, threads, size("memory", memory)
    return known


def _doubles(values: np.ndarray) -> np.ndarray:
    """Returns the values as doubles; rejects values that would be rounded."""
    try:
        doubles = np.ascontiguousarray(values, dtype=np.float64)
    except OverflowError:
        raise UsageError("a value is above 1.8e308, the largest double") from None
    if values.dtype.kind in "iu" and values.dtype.itemsize == 8:
        large = values[(values > 1 << 53) | (values < -(1 << 53))] if values.dtype.kind == "i" else values[values > 1 << 53]
        rounded = [one for one in large.tolist() if int(float(one)) != one]
    elif values.dtype.kind == "f" and values.dtype.itemsize > 8:
        rounded = values[np.isfinite(values) & (doubles.astype(values.dtype) != values)]
    elif values.dtype.kind == "O":
        rounded = [one for one, double in zip(values, doubles) if isinstance(one, (int, np.integer)) and int(double) != one]
    else:
        return doubles
    if len(rounded) > 0:
        raise UsageError(f"value {rounded[0]} has more than the 53 significant bits of a double; "
                         "round the values first (.astype(float))")
    return doubles


def _push(run: Run, output: PathLike, coords: Sequence[np.ndarray], values: np.ndarray, known: c.BuilderOptions,
          names: Dict[int, Sequence[Any]]) -> None:
    """Builds a store from arrays, piece by piece. The library gets the names by a callback."""
    held: list = [None]

    def name(_: Any, mode: int, index: int) -> Optional[int]:
        if index >= len(names[mode]):
            return None
        held[0] = ctypes.c_char_p(str(names[mode][index]).encode(errors="surrogateescape"))
        return ctypes.cast(held[0], c_void_p).value

    for mode, given in names.items():
        if not 0 <= whole("a mode of labels", mode, -2**63) < len(coords):
            raise UsageError(f"names of mode {mode}: there are {len(coords)} modes, counted from 0")
        for one in map(str, items("labels", given, "lists of names: {mode: [name, ..]}")):
            if "\0" in one:
                raise UsageError(f"a name of mode {mode} contains a zero character")
            try:
                one.encode(errors="surrogateescape")
            except UnicodeEncodeError:
                raise UsageError(f"the name {one!r} of mode {mode} contains half of a surrogate pair") from None
    known.named_modes = sum(1 << mode for mode in names)
    known.name = c.NAME(name)
    if len({len(column) for column in (*coords, values)}) != 1:
        raise UsageError(f"columns have {[len(column) for column in (*coords, values)]} elements; expected equal numbers")
    for n, column in enumerate(coords):
        if column.dtype.kind not in "iub":
            raise UsageError(f"the indices of mode {n} have the type {column.dtype}; expected integers")
        if column.dtype.kind == "i" and len(column) > 0 and column.min() < 0:
            raise UsageError(f"index {column.min()} in mode {n} is below 0")
    if values.dtype.kind in "cmMSUV":  # arrays of objects are allowed: they may be numbers of pandas or decimal
        raise UsageError(f"the values have the type {values.dtype}; expected real numbers")
    builder = c_void_p()
    run.call("sluice_builder_create", path_bytes(output, "output"), c_uint32(len(coords)), byref(known), byref(builder))
    try:
        for at in range(0, len(values), PIECE):
            columns = [np.ascontiguousarray(column[at:at + PIECE], dtype=np.uint64) for column in coords]
            piece = _doubles(values[at:at + PIECE])
            pointers = (c_void_p * len(columns))(*(pointer(column) for column in columns))
            run.call("sluice_builder_push", builder, c_uint64(len(piece)), pointers, pointer(piece))
    except BaseException:
        LIB.sluice_builder_abandon(builder)
        raise
    run.call("sluice_builder_finish", builder, None)


def separator(delimiter: str) -> bytes:
    """Returns the delimiter as a byte; "tab" means a tab."""
    found = b"\t" if delimiter == "tab" else text("delimiter", delimiter).encode()
    if len(found) != 1:
        raise wrong("delimiter", delimiter, "one character, or tab")
    return found


def _file(run: Run, source: PathLike, output: PathLike, known: c.ConvertOptions, columns: Union[None, str, Sequence[Any]],
          value_column: Optional[Any], delimiter: Optional[str], header: bool, missing: str,
          labels: Labels, values: Optional[PathLike], transform: Optional[str], report: c.ConvertReport) -> None:
    """Converts a file. With `columns`, the file is a table."""
    if values is not None:
        known.values = path_bytes(values, "values")
    if columns is not None:
        known.table.columns = encoded("columns", columns if isinstance(columns, str) else ",".join(map(str, items("columns", columns, "a list of columns"))))
    if delimiter is not None:
        known.table.delimiter = separator(delimiter)
    known.table.no_header = not header
    set_label_files(known, labels)
    _set_values(known, value_column, missing, transform)
    run.call("sluice_convert", path_bytes(source, "source"), path_bytes(output, "output"), byref(known), byref(report))


def _set_values(known: c.ConvertOptions, value_column: Optional[Any], missing: str, transform: Optional[str]) -> None:
    if value_column is not None:
        known.table.value_column = encoded("value_column", str(value_column))
    known.table.missing = choose("missing", MISSING, missing)
    known.transform = encoded("transform", transform)


def _stream(run: Run, source: Any, output: PathLike, known: c.ConvertOptions, columns: Union[None, str, Sequence[Any]],
            value_column: Optional[Any], missing: str, transform: Optional[str], report: c.ConvertReport) -> None:
    """Converts a table that is not a file."""
    items = table_items(source, columns, value_column)
    known.table.columns = None if items is None else items.encode(errors="surrogateescape")
    _set_values(known, value_column, missing, transform)
    stream, run.columns = table_stream(source, items, value_column)
    run.call("sluice_convert_arrow", c_void_p(stream.pointer), path_bytes(output, "output"), byref(known), byref(report))


def convert(source: Any, output: PathLike, values: Optional[Any] = None, *, shape: Optional[Sequence[int]] = None,
            columns: Union[None, str, Sequence[Any]] = None, value_column: Optional[Any] = None,
            labels: Labels = None, delimiter: Optional[str] = None, header: bool = True, missing: str = "error",
            null: Union[None, str, Sequence[str]] = None, transform: Optional[str] = None,
            index_base: Optional[int] = None, duplicates: str = "sum", codec: str = "packed", value: Any = "auto",
            relabel: str = "none", fibers: Fibers = "auto", block_bytes: Any = None, overwrite: bool = False, threads: int = 0,
            memory: Any = None, temp_folder: Optional[PathLike] = None, max_temp: Any = None, format: str = "auto",
            restart: bool = False, checkpoint_interval: float = 0, source_name: Optional[PathLike] = None,
            keep_zeros: bool = False, progress: Optional[Progress] = None) -> Tensor:
    r"""
    Converts a tensor to a store and opens the store. `source` is one of the following:

    a path           a file in any format that `sluice convert` recognizes. With `columns`, the file
                     is a CSV or TSV table. `columns` defines one mode per item, like --columns of
                     the command: "hour(when),origin", or a list of such items. The values are in
                     the column `value_column` (or `value`, unless this is a type such as "f32").
                     Without a column of values, rows are counted. `delimiter` and `header` describe
                     the table, and `missing` selects what is done with rows that have empty fields:
                     "error", "skip" or "name". Words in `null` are read as empty fields: "NULL,NA"
                     or ["NULL", "NA"]. `transform` changes the values: "abs,log1p". If the file is
                     an .npy file with coordinates, `values` is the .npy file with their values;
                     without `values`, an .npy file is a dense array. `labels` has the names of
                     indices: a folder with mode-1-TITLE.map, .., or {mode: file}
    an array         coordinates of shape order x nnz, or a list with one column per mode; indices
                     start at 0. `values` has the values; `labels` has names: {mode: [name, ..]}
    scipy.sparse     a matrix or array in any format, also with more than two modes (coo_array)
    pydata/sparse    an array in any format (COO, GCXS) with fill value 0
    pyttb            an sptensor
    a table          a data frame of pandas or polars, a DuckDB relation, a pyarrow Table,
                     RecordBatchReader, Dataset or Scanner, anything else with __arrow_c_stream__,
                     or a dict with arrays as columns {name: array}. `columns`, `value_column`,
                     `missing` and `transform` are as for files, and the result is that of a CSV
                     with the same rows: integers are names, too, unless the item is "int(NAME)".
                     The table is read batch by batch. In a list, an item that is the name of a
                     column needs no quotes. Without `columns`, all columns except that of the
                     values are modes. The path of a Parquet, Feather, Arrow or ORC file, or of a
                     folder of Parquet files, is opened with pyarrow or, for Parquet, with duckdb.
                     `source_name` is the name of the table in `info().source` and in messages,
                     such as the path of its file

    The store keeps the names: see Tensor.labels. Values of duplicates are added unless `duplicates`
    is "mean", "min", "max", "error", "keep-first" or "keep-last". With `keep_zeros`, values of 0
    are stored as listed cells instead of being dropped: ratings or counts that were observed to be
    0. `memory` limits the memory of the process, including arrays. `fibers` is the mode whose
    fibers are kept together, or (mode, bits) to keep pieces of 2^bits indices together instead of
    4,096; with "auto", the nonzeros determine the mode, and with "none" there is no such mode.
    `progress` is called regularly with the phase, the units done and the units in total (None:
    unknown). Ctrl-C stops the call. If a long conversion of a text or tensor file was interrupted,
    the same call resumes from the last commit of the conversion, unless `restart` is True;
    `checkpoint_interval` is the time between commits in seconds. `format` is the format of a file,
    as for --format of the command. Data larger than memory is sorted in files in `temp_folder`,
    which have at most `max_temp` bytes together. `skipped_rows` of the result is the number of rows
    that missing="skip" left out.

    >>> coords = [[0, 0, 1], [2, 0, 1]]                   # one row per mode
    >>> t = sluice.convert(coords, "t.slc", [1.5, 2, 4], labels={0: ["ann", "bob"]})
    >>> t.shape, t.nnz, list(t.labels(0))
    ((2, 3), 3, ['ann', 'bob'])
    >>> with open("trips.csv", "w") as file:
    ...     lines = file.write("when,origin,n\n2024-01-05 10:20:00,JFK,2\n2024-01-05 23:00:00,LAX,1\n")
    >>> trips = sluice.convert("trips.csv", "trips.slc", columns="hour(when),origin", value_column="n")
    >>> trips.titles, list(trips.labels(1))
    (('hour(when)', 'origin'), ['JFK', 'LAX'])
    """
    flag("header", header)
    flag("restart", restart)
    real("checkpoint_interval", checkpoint_interval, 0)
    if is_table_file(source) and format == "auto":
        source, source_name = open_table(source), source_name or source
    of_file = isinstance(source, (str, bytes, os.PathLike))
    of_table = not of_file and is_table(source)
    if not of_file and not of_table and hasattr(source, "collect"):
        raise UsageError(f"{type(source).__name__} is not a table yet: collect it first (.collect())")
    if not isinstance(value, str) and columns is None and not of_table:
        choose("value", VALUES, value)
    if (not isinstance(value, str) or value not in VALUES) and (of_table or columns is not None) and value_column is None:
        value, value_column = "auto", value
    if not of_file and (delimiter is not None or not header or format != "auto" or restart or checkpoint_interval != 0):
        raise UsageError("delimiter, header, format, restart and checkpoint_interval apply only to files, not to tables or Parquet")
    if not of_file and not of_table and (missing != "error" or null is not None or transform is not None):
        raise UsageError(f"missing, null and transform apply only to files and tables, not to {type(source).__name__}")
    if not of_table and source_name is not None:
        raise UsageError("source_name applies only to tables that are not files")
    if of_table and (labels is not None or values is not None):
        raise UsageError("labels and values do not apply to tables: name the column of values with value_column")
    if not of_file and labels is not None and not isinstance(labels, dict):
        raise UsageError("labels of coordinates must be lists of names: {mode: [name, ..]}")
    names = dict(labels) if isinstance(labels, dict) else {}
    if of_table:
        coords = []
    elif hasattr(source, "tocoo") or hasattr(source, "coords"):  # SciPy, pydata/sparse
        found = source.tocoo() if hasattr(source, "tocoo") else source
        if getattr(found, "fill_value", 0) != 0:
            raise UsageError(f"the array has the fill value {found.fill_value}; expected 0")
        # Matrices of SciPy before 1.13 only have rows and columns.
        coords = list(found.coords) if hasattr(found, "coords") else [found.row, found.col]
        values, shape = found.data, found.shape if shape is None else shape
    elif hasattr(source, "subs") and hasattr(source, "vals"):  # pyttb
        coords = [np.reshape(source.subs, (-1, len(source.shape)))[:, mode] for mode in range(len(source.shape))]
        coords = [column.astype(np.int64) if len(column) == 0 else column for column in coords]
        values, shape = np.reshape(source.vals, -1), source.shape if shape is None else shape
    elif not of_file and values is None:
        raise UsageError(f"{type(source).__name__} is neither a table nor a supported sparse "
                         "array, and coordinates need values: convert(coords, output, values)")
    elif not of_file and not hasattr(source, "__iter__"):
        raise wrong("source", source, "a file, a table, a sparse array or coordinates")
    elif not of_file:
        coords = [plain(column, f"the indices of mode {n}") for n, column in enumerate(source)]
        values = plain(values, "the values")
    run, report = Run(), options(c.ConvertReport)
    known = _options(run, shape, index_base, duplicates, codec, value, relabel, fibers, overwrite, threads, memory,
                     progress, c.ConvertOptions if of_file or of_table else c.BuilderOptions)
    set_sort_limits(known, block_bytes, temp_folder, max_temp)
    known.keep_zeros = keep_zeros
    if null is not None:
        known.table.null = null_words(null)
    if of_file:
        known.dialect, known.restart, known.commit_seconds = choose("format", FORMATS, format), restart, checkpoint_interval
        _file(run, source, output, known, columns, value_column, delimiter, header, missing, labels, values, transform, report)
    elif of_table:
        known.source_name = None if source_name is None else path_bytes(source_name, "source_name")
        _stream(run, source, output, known, columns, value_column, missing, transform, report)
    else:
        if np.ndim(values) != 1:
            raise wrong("values", values, "an array with one value for each nonzero")
        _push(run, output, coords, np.asarray(values), known, names)
    tensor = Tensor(output)
    tensor.skipped_rows = report.skipped
    return tensor


def generate(output: PathLike, shape: Sequence[int] = (), nnz: int = 0, *, like: Optional[str] = None, scale: float = 1,
             seed: int = 0, rank: int = 0, noise: float = 0, distribution: str = "uniform", zipf: float = 1, mode: int = 0,
             fiber_count: int = 0, codec: str = "packed", relabel: str = "none", fibers: Fibers = "auto", block_bytes: Any = None, threads: int = 0, memory: Any = None,
             temp_folder: Optional[PathLike] = None, max_temp: Any = None, overwrite: bool = False, progress: Optional[Progress] = None) -> Tensor:
    """
    Generates a random tensor and opens its store.

    If `rank` is not 0, the values are those of a random model of this rank. `distribution` selects
    the coordinates: "uniform", "zipf" or "zipf-shuffled" (with the exponent `zipf`), "best" (a full
    box), "worst" (no index of a mode occurs twice), "dense-fibers" or "dense-slices" (scattered full
    fibers or slices of `mode`), or "fibers" (`fiber_count` scattered fibers of `mode`). `like` names a
    tensor of a paper (sluice-generate(1), STAND-INS), and `scale` a factor of its number of nonzeros
    up to 1: the result is a stand-in of this tensor, and `shape`, `nnz` and `distribution` are not given.

    >>> sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3, noise=0.1)
    <sluice.Tensor 40 x 30 x 20, 4000 nonzeros, demo.slc>
    """
    if not path_text(output, "output").rstrip("/").endswith(".slc"):
        raise UsageError(f"the name {output!s} must end in .slc")
    known = options(c.GenerateOptions)
    known.distribution = choose("distribution", DISTRIBUTIONS, distribution)
    # In the C interface, 0 means the default. The smallest positive exponent generates the same tensor as exponent 0.
    known.zipf_exponent = real("zipf", zipf, 0) or 5e-324
    known.rank, known.noise, known.seed = rank, noise, seed
    factor = real("scale", scale) or -1  # in C, 0 means 1
    if like is not None:
        known.like, known.scale = text("like", like).encode(), factor
    known.mode, known.fiber_count = whole("mode", mode), whole("fiber_count", fiber_count)
    known.run.threads, known.run.memory_bytes, known.output.overwrite = threads, size("memory", memory), overwrite
    known.output.codec, known.output.relabel = choose("codec", CODECS, codec), choose("relabel", RELABELS, relabel)
    set_fibers(known, fibers)
    set_sort_limits(known, block_bytes, temp_folder, max_temp)
    run = Run()
    run.watch(known, progress)
    dims = wholes("shape", shape)
    run.call("sluice_generate", path_bytes(output, "output"), c_uint32(len(dims)), (c_uint64 * len(dims))(*dims), c.whole(c_uint64, "nnz", nnz), byref(known))
    return Tensor(output)
