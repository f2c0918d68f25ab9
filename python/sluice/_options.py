"""Converts keyword arguments to the library's option structs."""

from __future__ import annotations

import ctypes
import math
import os
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Union

from . import _structs as c
from ._arguments import encoded, flag, items, path_bytes, text, whole, wholes, wrong
from ._errors import UsageError
from ._library import Progress, Run, options, size
from ._numpy import np

PathLike = Union[str, "os.PathLike[str]"]
Labels = Union[None, PathLike, Sequence[PathLike], Dict[int, Any]]
CODECS = {"packed": 1, "lz4": 2, "blco": 3}
VALUES = {"auto": 0, "f32": 1, "f64": 2}
DUPLICATES = {"sum": 0, "error": 1, "keep-first": 2, "keep-last": 3, "mean": 4, "min": 5, "max": 6}
# Input formats, with the names of `sluice convert --format`.
FORMATS = {"auto": 0, "tns": 1, "parti": 2, "frostt-ext": 3, "genten": 4, "tensortoolbox": 5, "taco": 6, "matrixmarket": 7,
           "splatt-bin": 8, "genten-bin": 9, "alto-bin": 10, "npz": 11, "npy": 12, "npy-rows": 13, "npy-columns": 14,
           "npy-dense": 15, "tensor": 16}
# Output formats of tensors and of models; with None, the ending of the output determines the format.
EXPORTS = {None: 0, "tns": 1, "splatt-bin": 2, "npz": 3, "scipy": 4, "matlab": 5}
MODELS = {None: 0, "npy": 1, "splatt": 2, "ktensor": 3, "csv": 4, "matlab": 5}
MISSING = {"error": 0, "skip": 1, "name": 2}
ORDERS = {"absolute": False, "value": True}  # orders of top rows: whether the sign counts
FIBERS = {"auto": 0, "none": 1}
Fibers = Union[str, int, "tuple[int, int]"]
RELABELS = {"none": 1, "frequency": 2}
DISTRIBUTIONS = {"uniform": 0, "zipf": 1, "zipf-shuffled": 2, "best": 3, "worst": 4, "dense-fibers": 5,
                 "dense-slices": 6, "fibers": 7}
CONSISTENCIES = {"auto": 0, "always": 1, "never": 2}
METHODS = {"auto": 0, "als": 1, "hals": 2, "admm": 3, "mu": 4, "pdnr": 5, "ccd": 6, "newton": 7}
LOSSES = {"ls": 0, "poisson": 1, "bernoulli": 2, "gamma": 3, "huber": 4}
BIASES = {"auto": 0, "none": 1, "mean": 2, "all": 3}
LAYOUTS = {"blco": 1, "sorted": 2, "fiber": 3}
PRECISIONS = {"f32": 1, "f64": 2}
DEVICES = {"cpu": 0, "auto": 1, "gpu": 2}
SPLITS = {None: 0, "partitions": 1, "nnz": 2, "static": 3, "adaptive": 4, "queue": 5}
IOS = {"auto": 0, "uring": 1, "pread": 2, "mmap": 3}
CHOICES = {"copies": {"auto": 0, "never": 1, "always": 2}, "layouts": {"auto": 0, "blco": 1, "sorted": 2},
           "passes": {"auto": 0, "plain": 1, "fused": 2}, "pin": {"auto": 0, "never": 1, "always": 2},
           "schedule": {"auto": 0, "largest": 1, "file": 2}}


def none_if_nan(number: float) -> Optional[float]:
    return None if math.isnan(number) else number



def plain(array: Any, what: str) -> np.ndarray:
    """Returns an array without a mask."""
    if np.ma.is_masked(array):
        raise UsageError(f"masked elements in {what}: remove them (numpy.ma.compressed) or fill them (filled)")
    return np.asarray(array)


def real_matrix(given: Any, rows: int, what: str) -> np.ndarray:
    """Returns real numbers as a contiguous float64 matrix with `rows` rows."""
    try:
        matrix = plain(given, what)
        if matrix.dtype.kind == "c":
            raise UsageError(f"{what} has complex elements; expected real numbers")
        if matrix.dtype.kind not in "fiubO" or matrix.dtype.kind == "O" and any(one is None for one in matrix.flat):
            raise TypeError
        out = np.ascontiguousarray(matrix, dtype=np.float64)
    except UsageError:
        raise
    except (TypeError, ValueError):
        raise UsageError(f"{what} has elements that are no real numbers") from None
    if out.ndim != 2 or out.shape[0] != rows:
        raise UsageError(f"{what} has the shape {out.shape}; expected a matrix of {rows} rows")
    return out


def choose(name: str, choices: Dict[Any, int], given: Any) -> int:
    if not isinstance(given, (str, type(None))) or given not in choices:
        raise UsageError(f"{name} {given!r} is not one of {', '.join(map(str, choices))}", field=name)
    return choices[given]


def set_label_files(known: Any, labels: Labels) -> None:
    """Sets the files with index names; `labels` is one or more folders, or {mode: file}."""
    where = []
    if isinstance(labels, dict):
        where = [b"%d=%s" % (whole("a mode of labels", mode, 0, c.MAX_ORDER - 1) + 1, path_bytes(path, "labels"))
                 for mode, path in labels.items()]
    elif isinstance(labels, (str, bytes, os.PathLike)):
        where = [path_bytes(labels, "labels")]
    elif labels is not None:
        where = [path_bytes(path, "labels") for path in items("labels", labels, "folders, or {mode: file}")]
    known.labels, known.label_count = (ctypes.c_char_p * len(where))(*where), len(where)


def null_words(given: Union[None, str, Sequence[str]]) -> Optional[bytes]:
    """Returns the words of `null`, separated by commas."""
    return None if given is None else encoded("null", given if isinstance(given, str) else ",".join(
        text("null", word) for word in items("null", given, "a list of words")))


def index_base(given: Optional[int]) -> int:
    """Converts an index base (None, 0 or 1) to the library's enumeration (0, 1 or 2)."""
    return 0 if given is None else whole("index_base", given, 0, 1) + 1


def set_fibers(known: Any, given: Fibers) -> None:
    """Sets the mode whose fibers are kept together: "auto", "none", a mode, or (mode, bits)."""
    if isinstance(given, str):
        known.output.fibers = choose("fibers", FIBERS, given)
        return
    try:
        mode, bits = wholes("fibers", given) if isinstance(given, tuple) else (whole("fibers", given), 12)
    except ValueError:
        mode, bits = -1, 0
    if not 0 <= mode < c.MAX_ORDER or not 1 <= bits <= 24:
        raise wrong("fibers", given, "a mode, counted from 0, or (mode, bits) with 1 to 24 bits")
    known.output.fibers, known.output.fiber_mode, known.output.fiber_bits = 2, mode, bits


def set_sort_limits(known: Any, block_bytes: Any, temp_folder: Optional[PathLike], max_temp: Any) -> None:
    """Sets the block size, and the folder and size limit of temporary files."""
    known.output.block_bytes, known.output.max_temp_bytes = size("block_bytes", block_bytes), size("max_temp", max_temp)
    if temp_folder is not None:
        known.output.temp_folder = path_bytes(temp_folder, "temp_folder")


@dataclass(frozen=True)
class Device:
    """Selects the devices that compute."""

    device: str = "cpu"
    device_memory: Any = None
    split: Optional[str] = None
    devices: Union[None, int, Sequence[int]] = None
    streams: int = 0
    name: Optional[str] = None

    def options(self) -> c.DeviceOptions:
        """Converts the selection to the library's struct."""
        out = options(c.DeviceOptions)
        out.kind = choose("device", DEVICES, self.device)
        out.memory_bytes, out.streams = size("device_memory", self.device_memory), self.streams
        kind, _, fraction = ("" if self.split is None else text("split", self.split)).partition("=")
        out.split = choose("split", SPLITS, kind or None)
        if out.split == SPLITS["static"]:
            try:
                out.split_fraction = float(fraction)
            except ValueError:
                raise UsageError(f"split {self.split!r}: expected a fraction from 0 to 1, such as static=0.7") from None
        out.chip = encoded("device_name", self.name)
        if hasattr(self.devices, "__index__"):
            out.count = whole("devices", self.devices)
        elif self.devices is not None:
            numbers = wholes("devices", self.devices, 0, 2**32 - 1)
            if self.device != "gpu" or not 1 <= len(numbers) <= c.MAX_DEVICES:
                raise UsageError(f"devices {numbers}: a list has 1 to {c.MAX_DEVICES} GPUs and requires device='gpu'; "
                                 "for the CPU, pass the number of devices")
            out.count = len(numbers)
            out.numbers[:len(numbers)] = numbers
        return out


def compute(known: Any, run: Run, memory: Any, threads: int, precision: str, io: str, deterministic: bool,
            device: Device, progress: Optional[Progress] = None, *, cache: bool = True, io_limit: Any = None,
            **more: Any) -> c.DeviceOptions:
    """Sets the members `run` and `compute` of the options `known`; returns the device options."""
    run.watch(known, progress)
    known.run.memory_bytes, known.run.threads = size("memory", memory), threads
    out = known.compute
    out.precision, out.io = choose("precision", PRECISIONS, precision), choose("io", IOS, io)
    out.deterministic, out.no_cache, out.io_limit = deterministic, not flag("cache", cache), size("io_limit", io_limit)
    for name, given in more.items():
        setattr(out, name, choose(name, CHOICES[name], given))
    devices = device.options()
    out.device = ctypes.pointer(devices)
    return devices
