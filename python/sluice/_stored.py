"""Stores: opened, asked, verified, changed, and written in other forms."""

from __future__ import annotations

import ctypes
import os
from ctypes import byref, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, TypeVar

import numpy as np

from . import _structs as c
from ._errors import SluiceError, UsageError
from ._library import LIB, Progress, Run, call, fault, options, path_bytes, size
from ._options import CODECS, DUPLICATES, EXPORTS, FORMATS, LAYOUTS, RELABELS, Fibers, Labels, PathLike, choose, index_base as first_index, keep_fibers, name_files, sort_beyond

Self = TypeVar("Self", bound="Stored")


@dataclass(frozen=True)
class Layout:
    """One order of the nonzeros on disk: "blco", or "sorted" or "fiber" of a mode."""

    kind: str
    mode: int
    codec: str
    file_bytes: int
    block_count: int
    stripes: Tuple[str, ...] = ()  # files in other folders that it is in; (): it is in the store


@dataclass(frozen=True)
class StoreInfo:
    """
    What a store says of itself. `total_bytes` are those of all its files, `store_bytes` of the layout that serves all
    modes; `fibers` is the mode whose fibers are kept together, and in pieces of how many bits, or None. Modes that are
    `relabelled` are numbered by frequency within the store, those that are `named` have names of indices. The rest is
    what it was made of: `entries` that were read, how many of them were `duplicates` or `explicit_zeros`, and inputs that
    were `appended`, with their entries.
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


class _Handle:
    """The library's store. Calls hold it, so that one which is closed meanwhile is closed behind the last of them."""

    def __init__(self, path: PathLike) -> None:
        self._as_parameter_ = c_void_p()
        call("sluice_store_open", path_bytes(path), byref(self._as_parameter_))

    def __del__(self, close: Any = LIB.sluice_store_close) -> None:
        close(self._as_parameter_)


class Stored:
    """An open store, without what is computed with it: see Tensor."""

    def __init__(self, path: PathLike) -> None:
        self._store: Optional[_Handle] = None
        self.path = os.fsdecode(path)
        self._store = _Handle(path)
        self._look()

    def _info(self) -> c.StoreInfo:
        info = options(c.StoreInfo)
        call("sluice_store_get_info", self._open(), byref(info))
        return info

    def _look(self) -> None:
        info = self._info()
        self.shape: Tuple[int, ...] = tuple(info.dims[:info.order])
        self.nnz: int = info.nnz
        self.norm: float = info.norm
        self.store_bytes: int = info.store_bytes

    @property
    def order(self) -> int:
        """Number of modes."""
        return len(self.shape)

    @property
    def layouts(self) -> List[Layout]:
        """Those that the store had when it was opened."""
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
        """What the store says of itself: see StoreInfo."""
        info = self._info()
        codecs = {number: name for name, number in CODECS.items()}
        modes = range(info.order)
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
            transforms=info.transforms.decode(), writer=info.writer.decode(), appended=tuple(appended))

    @property
    def titles(self) -> Tuple[str, ...]:
        """What the modes are called, "" where nothing is known."""
        return tuple(LIB.sluice_store_title(self._open(), c_uint32(n)).decode(errors="replace")
                     for n in range(self.order))

    def label(self, mode: int, index: int) -> Optional[str]:
        """The name of an index; None where it has none."""
        name = ctypes.c_char_p()
        call("sluice_store_get_name", self._open(), c_uint32(self._mode(mode)), c.whole(c_uint64, "index", index), byref(name))
        return None if name.value is None else name.value.decode(errors="replace")

    def labels(self, mode: int) -> Optional[np.ndarray]:
        """The names of all indices of a mode, "" where one has none; None where none has. They come from disk."""
        count = LIB.sluice_store_name_count(self._open(), c_uint32(self._mode(mode)))
        if count == 0:
            return None
        out = np.full(self.shape[mode], "", dtype=object)
        for index in range(count):
            out[index] = self.label(mode, index) or ""
        return out

    def _open(self) -> _Handle:
        if self._store is None:
            raise UsageError(f"{self.path} has been closed")
        return self._store

    def close(self) -> None:
        """Closes the store, behind a call that is under way; it may be closed already."""
        self._store = None

    def __reduce__(self: Self) -> Any:
        """Copies, and what another process unpickles, open the store anew."""
        return type(self), (os.path.abspath(self.path),)

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        dims = " x ".join(map(str, self.shape))
        return f"<sluice.Tensor {dims}, {self.nnz} nonzeros, {self.path}>"

    def _mode(self, mode: int) -> int:
        if not 0 <= mode < self.order:
            raise UsageError(f"mode {mode} of a tensor of {self.order} modes, from 0 on")
        return mode

    def check(self, *, fast: bool = False, threads: int = 0, memory: Any = None,
              progress: Optional[Progress] = None) -> None:
        """Verifies the store, all of it unless `fast`: raises the first fault."""
        known = options(c.CheckOptions)
        known.fast, known.run.threads, known.run.memory_bytes = fast, threads, size(memory)
        run = Run()
        run.watch(known, progress)
        run.call("sluice_check", path_bytes(self.path), byref(known), None)

    def faults(self, *, fast: bool = False, most: int = 64, threads: int = 0, memory: Any = None,
               progress: Optional[Progress] = None) -> List[SluiceError]:
        """Verifies the store as check does, and returns the faults that it finds, `most` of them: [] where it is sound."""
        known = options(c.CheckOptions)
        known.fast, known.run.threads, known.run.memory_bytes, known.max_findings = fast, threads, size(memory), most
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

    def export(self, output: PathLike, *, form: Optional[str] = None, index_base: int = 1, overwrite: bool = False,
               threads: int = 0, memory: Any = None, progress: Optional[Progress] = None) -> int:
        """
        Writes a form that others read: "tns", FROSTT text that reads back to the same bits, with indices from
        `index_base`; "splatt-bin", SPLATT's .bin; "npz", pydata/sparse's, or "scipy", scipy.sparse's; "matlab", a .mat.
        None: as `output` ends, .bin, .npz or .mat, text by any other name. Returns the number of nonzeros.
        """
        known = options(c.ExportOptions)
        known.form = choose("form", EXPORTS, form)
        known.index_base, known.overwrite = first_index(index_base), overwrite
        known.run.threads, known.run.memory_bytes = threads, size(memory)
        lines = c_uint64()
        run = Run()
        run.watch(known, progress)
        run.call("sluice_export", path_bytes(self.path), path_bytes(output), byref(known), byref(lines))
        return lines.value

    def add_layout(self, kind: str, mode: int, *, threads: int = 0, memory: Any = None,
                   progress: Optional[Progress] = None) -> None:
        """
        Adds a "sorted" or "fiber" layout of the mode to the store, unless it is there, and opens it anew. After Ctrl-C the
        same call goes on with it.
        """
        run = Run()
        known = options(c.LayoutOptions)
        known.run.threads, known.run.memory_bytes = threads, size(memory)
        run.watch(known, progress)
        run.call("sluice_layout_add", path_bytes(self.path), ctypes.c_int(choose("kind", LAYOUTS, kind)),
                 c_uint32(self._mode(mode)), byref(known))
        self._reopen()

    def drop_layout(self, kind: str, mode: int) -> None:
        """Drops a layout, and opens the store anew."""
        call("sluice_layout_drop", path_bytes(self.path), ctypes.c_int(choose("kind", LAYOUTS, kind)),
             c_uint32(self._mode(mode)))
        self._reopen()

    def _move(self, name: str, args: tuple, kind: str, mode: int, progress: Optional[Progress]) -> None:
        known = options(c.LayoutOptions)
        run = Run()
        run.watch(known, progress)
        run.call(name, path_bytes(self.path), ctypes.c_int(choose("kind", LAYOUTS, kind)), c_uint32(self._mode(mode)), *args,
                 byref(known))
        self._reopen()

    def stripe_layout(self, folders: Sequence[PathLike], kind: str = "blco", mode: int = 0, *,
                      progress: Optional[Progress] = None) -> None:
        """
        Moves a layout out of the store, in stripes to folders on other drives, which are then read at once, and opens the
        store anew. `mode` of "blco", the layout that serves all modes, is 0.
        """
        paths = [path_bytes(folder) for folder in folders]
        self._move("sluice_layout_stripe", (c_uint32(len(paths)), (ctypes.c_char_p * len(paths))(*paths)), kind, mode, progress)

    def gather_layout(self, kind: str = "blco", mode: int = 0, *, progress: Optional[Progress] = None) -> None:
        """Moves a layout back into the store, and opens that anew."""
        self._move("sluice_layout_gather", (), kind, mode, progress)

    def append(self, source: PathLike, values: Optional[PathLike] = None, *, labels: Labels = None, table: bool = False, index_base: Optional[int] = None, duplicates: str = "sum",
               fixed_modes: Sequence[int] = (), again: bool = False, drop_layouts: bool = False,
               fibers: Fibers = "auto", block_bytes: Any = None, threads: int = 0, memory: Any = None,
               temp_folder: Optional[PathLike] = None, max_temp: Any = None, format: str = "auto",
               progress: Optional[Progress] = None) -> bool:
        """
        Adds the nonzeros of a file, and opens the store anew; False where it has had them already, unless `again`.
        Modes get longer as needed, but for `fixed_modes`, of which an index beyond the end is an error. A store that was
        made of a table takes another one, with the same columns; `table` says so of a file whose name does not. `labels`,
        as of convert, have a line for every index that there is then; names that the store has stay. Of coordinates in an
        .npy file `values` is the file of their values.
        """
        known = options(c.AppendOptions)
        known.index_base = first_index(index_base)
        known.duplicates = choose("duplicates", DUPLICATES, duplicates)
        known.fixed_modes = sum(1 << self._mode(mode) for mode in set(fixed_modes))
        known.again, known.drop_layouts, known.run.threads, known.run.memory_bytes = again, drop_layouts, threads, size(memory)
        known.dialect, known.table = choose("format", FORMATS, format), table
        known.values = None if values is None else path_bytes(values)
        name_files(known, labels)
        sort_beyond(known, block_bytes, temp_folder, max_temp)
        report = options(c.AppendReport)
        keep_fibers(known, fibers)
        run = Run()
        run.watch(known, progress)
        run.call("sluice_append", path_bytes(self.path), path_bytes(source), byref(known), byref(report))
        self._reopen()
        return not report.known

    def slice(self: Self, output: PathLike, ranges: Dict[int, Any], *, keep_indices: bool = False,
              codec: Optional[str] = None, relabel: Optional[str] = None, transform: Optional[str] = None,
              fibers: Fibers = "auto", block_bytes: Any = None, overwrite: bool = False, threads: int = 0,
              memory: Any = None, temp_folder: Optional[PathLike] = None, max_temp: Any = None, progress: Optional[Progress] = None) -> Self:
        """
        The store of the nonzeros in ranges of modes: {mode: range} or {mode: [range, range, ..]}, each a Python slice
        without a step, a range, or an index. What is left is numbered anew, unless `keep_indices`. Codec and numbering
        are those of this store where none is given; `transform` is of values: "abs,log1p".
        """
        run = Run()
        known = self._reshape(codec, relabel, transform, fibers, overwrite, threads, memory)
        sort_beyond(known, block_bytes, temp_folder, max_temp)
        run.watch(known, progress)
        known.keep_indices = keep_indices
        flat = [self._range(mode, one) for mode, given in ranges.items()
                for one in (given if isinstance(given, (list, tuple)) else [given])]
        run.call("sluice_slice", path_bytes(self.path), path_bytes(output), c_uint32(len(flat)),
                   (c.Range * len(flat))(*flat), byref(known), None)
        return type(self)(output)

    def permute(self: Self, output: PathLike, modes: Sequence[int], *, codec: Optional[str] = None,
                relabel: Optional[str] = None, transform: Optional[str] = None, fibers: Fibers = "auto",
                block_bytes: Any = None, overwrite: bool = False, threads: int = 0, memory: Any = None,
                temp_folder: Optional[PathLike] = None, max_temp: Any = None, progress: Optional[Progress] = None) -> Self:
        """The store with its modes in another order: mode k of it is mode modes[k] of this one."""
        run = Run()
        known = self._reshape(codec, relabel, transform, fibers, overwrite, threads, memory)
        sort_beyond(known, block_bytes, temp_folder, max_temp)
        run.watch(known, progress)
        order = (c_uint32 * len(modes))(*(self._mode(mode) for mode in modes))
        run.call("sluice_permute", path_bytes(self.path), path_bytes(output), c_uint32(len(modes)), order,
                   byref(known), None)
        return type(self)(output)

    def _range(self, mode: int, given: Any) -> c.Range:
        length = self.shape[self._mode(mode)]
        if isinstance(given, (int, np.integer)):
            first, stop = int(given), int(given) + 1
        else:
            first = 0 if given.start is None else given.start
            stop = length if given.stop is None else given.stop
            if given.step not in (None, 1):
                raise UsageError(f"the range {given!r} of mode {mode} has the step {given.step}; 1 is needed")
        if not 0 <= first < stop <= length:
            raise UsageError(f"the range {given!r} of mode {mode} is not within its {length} indices, from 0 on")
        return c.Range(mode, first, stop - 1)

    def _reshape(self, codec: Optional[str], relabel: Optional[str], transform: Optional[str], fibers: Fibers,
                 overwrite: bool, threads: int, memory: Any) -> c.ReshapeOptions:
        known = options(c.ReshapeOptions)
        keep_fibers(known, fibers)
        known.output.codec = 0 if codec is None else choose("codec", CODECS, codec)
        known.output.relabel = 0 if relabel is None else choose("relabel", RELABELS, relabel)
        if transform is not None:
            known.transform = transform.encode()
        known.output.overwrite, known.run.threads, known.run.memory_bytes = overwrite, threads, size(memory)
        return known

    def _reopen(self) -> None:
        self._store = _Handle(self.path)
        self._look()
