"""Opens, inspects, verifies, changes and exports stores."""

from __future__ import annotations

import ctypes
import difflib
import os
import threading
from ctypes import byref, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, TypeVar

from . import _structs as c
from ._arrow import is_table, is_table_file, open_table, table_stream
from ._arguments import encoded, items, path_bytes, path_text, text, whole, wrong
from ._errors import SluiceError, UsageError
from ._library import LIB, Progress, Run, call, fault, options, size
from ._numpy import np
from ._options import (CODECS, DUPLICATES, EXPORTS, FORMATS, LAYOUTS, RELABELS, Fibers, Labels, PathLike, choose,
                       index_base as first_index, set_fibers, set_label_files, set_sort_limits)

Self = TypeVar("Self", bound="Stored")


@dataclass(frozen=True)
class Layout:
    """
    A layout, an order of the nonzeros on disk: "blco", or "sorted" or "fiber" for a mode.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000)
    >>> [(layout.kind, layout.codec) for layout in t.layouts]
    [('blco', 'packed')]
    """

    kind: str
    mode: int
    codec: str
    file_bytes: int
    block_count: int
    stripes: Tuple[str, ...] = ()  # the stripes of its file in other folders; (): the file is in the store


@dataclass(frozen=True)
class StoreInfo:
    """
    Properties of a store.

    `total_bytes` is the size of all files, and `store_bytes` the size of the layout "blco".
    `fibers` is (mode whose fibers are kept together, bits of a fiber run), or None. `relabelled` has
    the modes whose indices are renumbered by frequency in the store; `named` has the modes with
    index names. `source` to `appended` describe the input: `entries` is the number of rows read,
    including `duplicates` and `explicit_zeros`. `appended` has (source, number of entries) for each
    appended input.

    `keep_zeros` is True if the store keeps values of 0 (option of `convert`); `nnz` includes
    `listed_zeros`, the number of nonzeros whose value is 0. `value_range` has the smallest and the
    largest value; `distinct_values` has the distinct values, or is None if there are more than 16.
    Stores of older versions have no statistics of values: these members are None.

    >>> info = sluice.generate("demo.slc", (40, 30, 20), 4000).info()
    >>> info.shape, info.codec, info.dialect
    ((40, 30, 20), 'packed', 'generate')
    """

    shape: Tuple[int, ...]
    nnz: int
    norm: float
    value_type: str
    codec: str
    store_bytes: int
    total_bytes: int
    block_count: int
    tile_count: int
    max_block_bytes: int
    key_bits: int
    content_sum: int
    fibers: Optional[Tuple[int, int]]
    relabelled: Tuple[int, ...]
    named: Tuple[int, ...]
    titles: Tuple[str, ...]
    layouts: Tuple[Layout, ...]
    source: str
    dialect: str
    index_base: int
    entries: int
    duplicates: int
    explicit_zeros: int
    duplicate_policy: str
    transforms: str
    writer: str
    appended: Tuple[Tuple[str, int], ...]
    keep_zeros: bool
    listed_zeros: Optional[int]
    value_range: Optional[Tuple[float, float]]
    all_integers: Optional[bool]
    distinct_values: Optional[Tuple[float, ...]]


def _name(given: Optional[bytes]) -> Optional[str]:
    """Returns a name as a string; bytes that are not UTF-8 become \\xNN, as in the output of the command."""
    return None if given is None else given.decode(errors="backslashreplace")


class _Handle:
    """An open store of the library. It is closed after the last call that uses it."""

    def __init__(self, path: PathLike) -> None:
        self._as_parameter_ = c_void_p()
        self.names = threading.Lock()  # a name is valid until the next one is read
        call("sluice_store_open", path_bytes(path), byref(self._as_parameter_))

    def __del__(self, close: Any = LIB.sluice_store_close) -> None:
        close(self._as_parameter_)


class Stored:
    """An open store; the subclass Tensor adds the computations."""

    def __init__(self, path: PathLike) -> None:
        self._store: Optional[_Handle] = None
        self.path = path_text(path)
        self._store = _Handle(path)
        self.skipped_rows = 0  # rows of a table with nulls that convert or the last append skipped
        self._read_shape()

    def _info(self) -> c.StoreInfo:
        info = options(c.StoreInfo)
        call("sluice_store_get_info", self._open(), byref(info))
        return info

    def _read_shape(self) -> None:
        info = self._info()
        self._indices: Dict[int, Dict[str, int]] = {}  # mode -> name -> index, filled by `index`
        self.shape: Tuple[int, ...] = tuple(info.dims[:info.order])
        self.nnz: int = info.nnz
        self.norm: float = info.norm
        self.store_bytes: int = info.store_bytes

    @property
    def order(self) -> int:
        """
        Number of modes.

        >>> t.order
        3
        """
        return len(self.shape)

    @property
    def layouts(self) -> List[Layout]:
        """
        The layouts that the store had when it was opened.

        >>> t.layouts[0].kind
        'blco'
        """
        names = {number: name for name, number in LAYOUTS.items()}
        codecs = {number: name for name, number in CODECS.items()}
        found = []
        for number in range(LIB.sluice_store_layout_count(self._open())):
            info = options(c.LayoutInfo)
            call("sluice_store_get_layout", self._open(), c_uint32(number), byref(info))
            found.append(Layout(names[info.kind], info.mode, codecs[info.codec], info.file_bytes, info.block_count,
                                tuple(self._stripe(number, stripe) for stripe in range(info.stripes))))
        return found

    def _stripe(self, number: int, stripe: int) -> str:
        path = ctypes.create_string_buffer(8192)
        call("sluice_store_get_stripe", self._open(), c_uint32(number), c_uint32(stripe), path, c_uint64(len(path)), None)
        return os.fsdecode(path.value)

    def info(self) -> StoreInfo:
        """
        Returns the properties of the store.

        >>> t.info().nnz
        4000
        """
        info = self._info()
        codecs = {number: name for name, number in CODECS.items()}
        modes = range(info.order)
        known = info.distinct_count
        appended = []
        for number in range(info.appended):
            one = options(c.Appended)
            call("sluice_store_get_appended", self._open(), c_uint32(number), byref(one))
            appended.append((one.source.decode(errors="replace"), one.entries))
        return StoreInfo(
            shape=self.shape, nnz=info.nnz, norm=info.norm, value_type="f32" if info.value_type == 1 else "f64",
            codec=codecs[info.codec], store_bytes=info.store_bytes, total_bytes=info.total_bytes,
            block_count=info.block_count, tile_count=info.tile_count, max_block_bytes=info.max_block_bytes,
            key_bits=info.key_bits, content_sum=info.content_sum,
            fibers=(info.fiber_mode, info.fiber_bits) if info.fiber_bits > 0 else None,
            relabelled=tuple(n for n in modes if info.relabelled_modes >> n & 1),
            named=tuple(n for n in modes if info.named_modes >> n & 1), titles=self.titles,
            layouts=tuple(self.layouts), source=info.source.decode(errors="replace"), dialect=info.dialect.decode(),
            index_base=info.index_base, entries=info.entries, duplicates=info.duplicates,
            explicit_zeros=info.explicit_zeros, duplicate_policy=info.duplicate_policy.decode(),
            transforms=info.transforms.decode(), writer=info.writer.decode(), appended=tuple(appended),
            keep_zeros=info.keep_zeros != 0, listed_zeros=info.listed_zeros if known else None,
            value_range=(info.value_min, info.value_max) if known else None,
            all_integers=info.all_integers != 0 if known else None,
            distinct_values=tuple(info.distinct_values[:info.distinct_count]) if 0 < known <= c.MAX_DISTINCT else None)

    @property
    def titles(self) -> Tuple[str, ...]:
        """
        The titles of the modes; "" for a mode without a title.

        >>> t.titles
        ('', '', '')
        """
        return tuple(LIB.sluice_store_title(self._open(), c_uint32(n)).decode(errors="replace")
                     for n in range(self.order))

    def label(self, mode: int, index: int) -> Optional[str]:
        """
        Returns the name of an index, or None if it has no name.

        >>> named = sluice.convert([[0, 1], [0, 0]], "named.slc", [1, 2], labels={0: ["ann", "bob"]})
        >>> named.label(0, 1)
        'bob'
        """
        store, name = self._open(), ctypes.c_char_p()
        with store.names:
            call("sluice_store_get_name", store, c_uint32(self._mode(mode)), c.whole(c_uint64, "index", index), byref(name))
            return _name(name.value)

    def labels(self, mode: int) -> Optional[np.ndarray]:
        """
        Returns the names of all indices of a mode ("" for none); None if the mode has no names.

        >>> named = sluice.convert([[0, 1], [0, 0]], "named.slc", [1, 2], labels={0: ["ann", "bob"]})
        >>> list(named.labels(0)), named.labels(1)
        (['ann', 'bob'], None)
        """
        count = LIB.sluice_store_name_count(self._open(), c_uint32(self._mode(mode)))
        if count == 0:
            return None
        out = np.full(self.shape[mode], "", dtype=object)
        # The loop is that of `label` without its checks, which take longer than the call.
        get, store, number, name = LIB.sluice_store_get_name, self._open(), c_uint32(mode), ctypes.c_char_p()
        place = byref(name)
        for index in range(count):
            with store.names:
                read = get(store, number, c_uint64(index), place, None) == 0
                out[index] = _name(name.value) or ""
            if not read:
                self.label(mode, index)  # raises the error
        return out

    def index(self, mode: int, name: str) -> int:
        """
        Returns the index that has a name; the first one if several have it.

        The first call for a mode reads all its names and keeps them in memory.

        >>> named = sluice.convert([[0, 1], [0, 0]], "named.slc", [1, 2], labels={0: ["ann", "bob"]})
        >>> named.index(0, "bob")
        1
        """
        mode = self._mode(mode)
        text("name", name)
        if mode not in self._indices:
            names = self.labels(mode)
            self._indices[mode] = {} if names is None else {one: index for index, one in reversed(list(enumerate(names)))}
        found = self._indices[mode].get(name)
        if found is None or name == "":
            has = f"has no index named {name!r}" if self._indices[mode] else "has no names"
            close = difflib.get_close_matches(name, self._indices[mode], 3) if len(self._indices[mode]) < 100000 else []
            raise UsageError(f"mode {mode} of {self.path} {has}" + (f"; it has {', '.join(close)}" if close else ""))
        return found

    def _open(self) -> _Handle:
        if self._store is None:
            raise UsageError(f"the store {self.path} is closed")
        return self._store

    def close(self) -> None:
        """
        Closes the store when running calls have returned; a second call has no effect.

        >>> t.close()
        """
        self._store = None

    def __reduce__(self: Self) -> Any:
        """Lets copy and pickle open the store again."""
        return type(self), (os.path.abspath(self.path),)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        dims = " x ".join(map(str, self.shape))
        return f"<sluice.Tensor {dims}, {self.nnz} nonzeros, {self.path}>"

    def _mode(self, mode: int) -> int:
        found = whole("mode", mode, -2**63)
        if not 0 <= found < self.order:
            raise UsageError(f"no mode {found}: the tensor has {self.order} modes, counted from 0", field="mode")
        return found

    def _modes(self, name: str, modes: Any) -> List[int]:
        return [self._mode(mode) for mode in items(name, modes, "a list of modes")]

    def check(self, *, fast: bool = False, threads: int = 0, memory: Any = None,
              progress: Optional[Progress] = None) -> None:
        """
        Verifies the store and raises the first error. `fast` omits the nonzeros.

        >>> t.check()
        """
        known = options(c.CheckOptions)
        known.fast, known.run.threads, known.run.memory_bytes = fast, threads, size("memory", memory)
        run = Run()
        run.watch(known, progress)
        run.call("sluice_check", path_bytes(self.path), byref(known), None)

    def faults(self, *, fast: bool = False, most: int = 64, threads: int = 0, memory: Any = None,
               progress: Optional[Progress] = None) -> List[SluiceError]:
        """
        Verifies the store; returns at most `most` errors, [] if the store is valid.

        >>> t.faults()
        []
        """
        known = options(c.CheckOptions)
        known.fast, known.run.threads, known.run.memory_bytes = fast, threads, size("memory", memory)
        known.max_findings = whole("most", most, 1, 2**32 - 1)
        found: List[SluiceError] = []
        known.found = c.ON_FOUND(lambda _, given: found.append(fault(given.contents.status, given.contents)))
        run = Run()
        run.watch(known, progress)
        try:
            run.call("sluice_check", path_bytes(self.path), byref(known), None)
        except SluiceError as first:
            if not found:
                raise first
        return found

    def export(self, output: PathLike, *, form: Optional[str] = None, index_base: int = 1, header: bool = False,
               overwrite: bool = False, threads: int = 0, memory: Any = None, progress: Optional[Progress] = None) -> int:
        """
        Exports the tensor for other programs and returns the number of nonzeros.

        form        "tns": FROSTT text without loss of precision; "splatt-bin": SPLATT's .bin;
                    "npz": pydata/sparse; "scipy": scipy.sparse; "matlab": a .mat file; None: the
                    ending of `output` determines the format (.bin, .npz, .mat; otherwise text)
        index_base  first index of each mode in text, 0 or 1
        header      start the text with a header that states the index base and the mode sizes (of
                    extended FROSTT, or of GenTen for index_base=0); text without a header does not
                    show whether the last slices of a mode are empty

        >>> t.export("demo.tns")
        4000
        """
        known = options(c.ExportOptions)
        known.form = choose("form", EXPORTS, form)
        known.index_base, known.overwrite, known.header = first_index(index_base), overwrite, header
        known.run.threads, known.run.memory_bytes = threads, size("memory", memory)
        lines = c_uint64()
        run = Run()
        run.watch(known, progress)
        run.call("sluice_export", path_bytes(self.path), path_bytes(output, "output"), byref(known), byref(lines))
        return lines.value

    def add_layout(self, kind: str, mode: int, *, threads: int = 0, memory: Any = None,
                   progress: Optional[Progress] = None) -> None:
        """
        Adds a "sorted" or "fiber" layout of a mode, unless it exists, and reopens the store.

        After Ctrl-C, the same call resumes.

        >>> t.add_layout("sorted", 1)
        >>> [(layout.kind, layout.mode) for layout in t.layouts]
        [('blco', 0), ('sorted', 1)]
        """
        run = Run()
        known = options(c.LayoutOptions)
        known.run.threads, known.run.memory_bytes = threads, size("memory", memory)
        run.watch(known, progress)
        run.call("sluice_layout_add", path_bytes(self.path), ctypes.c_int(choose("kind", LAYOUTS, kind)),
                 c_uint32(self._mode(mode)), byref(known))
        self._reopen()

    def drop_layout(self, kind: str, mode: int) -> None:
        """
        Removes a layout and reopens the store.

        >>> t.add_layout("sorted", 1)
        >>> t.drop_layout("sorted", 1)
        >>> len(t.layouts)
        1
        """
        call("sluice_layout_drop", path_bytes(self.path), ctypes.c_int(choose("kind", LAYOUTS, kind)),
             c_uint32(self._mode(mode)))
        self._reopen()

    def _move_layout(self, name: str, args: tuple, kind: str, mode: int, progress: Optional[Progress]) -> None:
        known = options(c.LayoutOptions)
        run = Run()
        run.watch(known, progress)
        run.call(name, path_bytes(self.path), ctypes.c_int(choose("kind", LAYOUTS, kind)), c_uint32(self._mode(mode)), *args,
                 byref(known))
        self._reopen()

    def stripe_layout(self, folders: Sequence[PathLike], kind: str = "blco", mode: int = 0, *,
                      progress: Optional[Progress] = None) -> None:
        """
        Moves a layout from the store to stripes in folders on other drives, and reopens the store.

        The drives are read in parallel. For "blco", the layout for all modes, `mode` is 0.

        >>> import os
        >>> os.mkdir("drive1"), os.mkdir("drive2")
        (None, None)
        >>> t.stripe_layout(["drive1", "drive2"])
        >>> len(t.layouts[0].stripes)
        2
        """
        paths = [path_bytes(folder, "folders") for folder in items("folders", folders, "a list of folders")]
        self._move_layout("sluice_layout_stripe", (c_uint32(len(paths)), (ctypes.c_char_p * len(paths))(*paths)), kind, mode, progress)

    def gather_layout(self, kind: str = "blco", mode: int = 0, *, progress: Optional[Progress] = None) -> None:
        """
        Moves a layout back to the store's folder, and reopens the store.

        >>> import os
        >>> os.mkdir("drive")
        >>> t.stripe_layout(["drive"])
        >>> t.gather_layout()
        >>> t.layouts[0].stripes
        ()
        """
        self._move_layout("sluice_layout_gather", (), kind, mode, progress)

    def append(self, source: Any, values: Optional[PathLike] = None, *, labels: Labels = None,
               table: bool = False, index_base: Optional[int] = None, duplicates: str = "sum",
               fixed_modes: Sequence[int] = (), again: bool = False, drop_layouts: bool = False,
               fibers: Fibers = "auto", block_bytes: Any = None, threads: int = 0, memory: Any = None,
               temp_folder: Optional[PathLike] = None, max_temp: Any = None, format: str = "auto",
               source_name: Optional[PathLike] = None, progress: Optional[Progress] = None) -> bool:
        """
        Adds the nonzeros of a file, or the rows of a table such as a data frame (see convert), and
        reopens the store.

        If the same input was appended before, returns False without any change, unless `again` is
        True. Mode sizes grow if necessary, except for `fixed_modes`, in which an index that exceeds
        the mode size is an error. If the store was made from a table, `source` can be another table
        with the same columns, also a frame after a file or a file after a frame. Set `table` if the
        name of a file does not show that it is a table. `labels` is as for convert, with a line for
        every index that exists after the append; existing names are kept. If `source` is an .npy
        file with coordinates, `values` is the .npy file with their values. `source_name` is the
        name of a table in `info().appended`, such as the path of its file. `skipped_rows` of the
        tensor is then the number of rows of `source` that were left out because of nulls.

        >>> with open("more.tns", "w") as file:
        ...     print("40 30 21 1.5", file=file)
        >>> t.append("more.tns", index_base=1), t.append("more.tns", index_base=1)
        (True, False)
        >>> t.shape, t.nnz
        ((40, 30, 21), 4001)
        """
        if is_table_file(source) and format == "auto":
            source, source_name = open_table(source), source_name or source
        known = options(c.AppendOptions)
        known.index_base = first_index(index_base)
        known.duplicates = choose("duplicates", DUPLICATES, duplicates)
        known.fixed_modes = sum(1 << mode for mode in set(self._modes("fixed_modes", fixed_modes)))
        known.again, known.drop_layouts, known.run.threads, known.run.memory_bytes = again, drop_layouts, threads, size("memory", memory)
        known.dialect, known.table = choose("format", FORMATS, format), table
        known.values = None if values is None else path_bytes(values, "values")
        known.source_name = None if source_name is None else path_bytes(source_name, "source_name")
        set_label_files(known, labels)
        set_sort_limits(known, block_bytes, temp_folder, max_temp)
        report = options(c.AppendReport)
        set_fibers(known, fibers)
        run = Run()
        run.watch(known, progress)
        if not is_table(source) and not isinstance(source, (str, bytes, os.PathLike)):
            raise wrong("source", source, "a file or a table; to add coordinates, write them to a file, for example with Tensor.export")
        if is_table(source):
            stream, run.columns = table_stream(source, None, None)
            run.call("sluice_append_arrow", path_bytes(self.path), c_void_p(stream.pointer), byref(known), byref(report))
        else:
            run.call("sluice_append", path_bytes(self.path), path_bytes(source, "source"), byref(known), byref(report))
        self._reopen()
        self.skipped_rows = report.skipped
        return not report.known

    def slice(self: Self, output: PathLike, ranges: Dict[int, Any], *, keep_indices: bool = False,
              codec: Optional[str] = None, relabel: Optional[str] = None, transform: Optional[str] = None,
              fibers: Fibers = "auto", block_bytes: Any = None, overwrite: bool = False, threads: int = 0,
              memory: Any = None, temp_folder: Optional[PathLike] = None, max_temp: Any = None,
              progress: Optional[Progress] = None) -> Self:
        """
        Writes the nonzeros in ranges of indices to a new store, and opens the new store.

        `ranges` is {mode: range} or {mode: [range, range, ..]}, where a range is a Python slice
        without a step, a range, or an index. Indices are renumbered unless `keep_indices`. `codec`
        and `relabel` default to those of this store. `transform` changes the values: "abs,log1p".

        >>> t.slice("part.slc", {0: slice(10, 20), 2: [0, 5]}).shape
        (10, 30, 2)
        """
        run = Run()
        known = self._reshape(codec, relabel, transform, fibers, overwrite, threads, memory)
        set_sort_limits(known, block_bytes, temp_folder, max_temp)
        run.watch(known, progress)
        known.keep_indices = keep_indices
        if not isinstance(ranges, dict):
            raise wrong("ranges", ranges, "{mode: range}")
        flat = [self._range(mode, one) for mode, given in ranges.items()
                for one in (given if isinstance(given, (list, tuple)) else [given])]
        run.call("sluice_slice", path_bytes(self.path), path_bytes(output, "output"), c_uint32(len(flat)),
                   (c.Range * len(flat))(*flat), byref(known), None)
        return type(self)(output)

    def permute(self: Self, output: PathLike, modes: Sequence[int], *, codec: Optional[str] = None,
                relabel: Optional[str] = None, transform: Optional[str] = None, fibers: Fibers = "auto",
                block_bytes: Any = None, overwrite: bool = False, threads: int = 0, memory: Any = None,
                temp_folder: Optional[PathLike] = None, max_temp: Any = None, progress: Optional[Progress] = None) -> Self:
        """
        Writes a new store whose mode k is mode modes[k] of this store, and opens the new store.

        >>> t.permute("turned.slc", [2, 0, 1]).shape
        (20, 40, 30)
        """
        run = Run()
        known = self._reshape(codec, relabel, transform, fibers, overwrite, threads, memory)
        set_sort_limits(known, block_bytes, temp_folder, max_temp)
        run.watch(known, progress)
        order = self._modes("modes", modes)
        run.call("sluice_permute", path_bytes(self.path), path_bytes(output, "output"), c_uint32(len(order)), (c_uint32 * len(order))(*order),
                   byref(known), None)
        return type(self)(output)

    def _range(self, mode: int, given: Any) -> c.Range:
        mode = self._mode(mode)
        length = self.shape[mode]
        if not isinstance(given, (slice, range)):
            first = whole(f"the index of mode {mode}", given, -2**63)
            stop = first + 1
        else:
            first = 0 if given.start is None else whole(f"the start of the range of mode {mode}", given.start, -2**63)
            stop = length if given.stop is None else whole(f"the end of the range of mode {mode}", given.stop, -2**63)
            if given.step not in (None, 1):
                raise UsageError(f"the range {given!r} of mode {mode} has the step {given.step}; expected 1")
        if not 0 <= first < stop <= length:
            raise UsageError(f"the range {given!r} of mode {mode} is not within its {length} indices, counted from 0")
        return c.Range(mode, first, stop - 1)

    def _reshape(self, codec: Optional[str], relabel: Optional[str], transform: Optional[str], fibers: Fibers,
                 overwrite: bool, threads: int, memory: Any) -> c.ReshapeOptions:
        known = options(c.ReshapeOptions)
        set_fibers(known, fibers)
        known.output.codec = 0 if codec is None else choose("codec", CODECS, codec)
        known.output.relabel = 0 if relabel is None else choose("relabel", RELABELS, relabel)
        known.transform = encoded("transform", transform)
        known.output.overwrite, known.run.threads, known.run.memory_bytes = overwrite, threads, size("memory", memory)
        return known

    def _reopen(self) -> None:
        self._store = _Handle(self.path)
        self._read_shape()
