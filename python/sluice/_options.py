"""What keywords say, as the library's options."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Union

from . import _structs as c
from ._errors import UsageError
from ._library import Progress, Run, options, size

PathLike = Union[str, "os.PathLike[str]"]
Labels = Union[None, PathLike, Sequence[PathLike], Dict[int, Any]]
CODECS = {"packed": 1, "lz4": 2, "blco": 3}
VALUES = {"auto": 0, "f32": 1, "f64": 2}
DUPLICATES = {"sum": 0, "error": 1, "keep-first": 2, "keep-last": 3}
# Of files, by the names that the command has.
FORMATS = {"auto": 0, "tns": 1, "parti": 2, "frostt-ext": 3, "genten": 4, "tensortoolbox": 5, "taco": 6, "matrixmarket": 7,
           "splatt-bin": 8, "genten-bin": 9, "alto-bin": 10, "npz": 11, "npy": 12, "npy-rows": 13, "npy-columns": 14}
# What tensors and models are written as; None: as the output ends.
EXPORTS = {None: 0, "tns": 1, "splatt-bin": 2, "npz": 3, "scipy": 4, "matlab": 5}
MODELS = {"npy": 0, "splatt": 1, "ktensor": 2, "csv": 3, "matlab": 4, None: 5}
MISSING = {"error": 0, "skip": 1, "name": 2}
FIBERS = {"auto": 0, "none": 1}
Fibers = Union[str, int, "tuple[int, int]"]
RELABELS = {"none": 0, "frequency": 1}
DISTRIBUTIONS = {"uniform": 0, "zipf": 1, "zipf-shuffled": 2, "best": 3, "worst": 4}
CONSISTENCIES = {"auto": 0, "always": 1, "never": 2}
LAYOUTS = {"blco": 1, "sorted": 2, "fiber": 3}
PRECISIONS = {"f32": 1, "f64": 2}
DEVICES = {"cpu": 0, "auto": 1, "gpu": 2}
IOS = {"auto": 0, "uring": 1, "pread": 2, "mmap": 3}
CHOICES = {"copies": {"auto": 0, "never": 1, "always": 2}, "layouts": {"auto": 0, "blco": 1, "sorted": 2},
           "passes": {"auto": 0, "plain": 1, "fused": 2}, "pin": {"auto": 0, "never": 1, "always": 2},
           "schedule": {"auto": 0, "largest": 1, "file": 2}}


def choose(name: str, choices: Dict[Any, int], given: Any) -> int:
    if given not in choices:
        raise UsageError(f"{name} {given!r} is none of {', '.join(map(str, choices))}")
    return choices[given]


def name_files(known: Any, labels: Labels) -> None:
    """The files with names of indices: a folder or several, or {mode: file}."""
    where = []
    if isinstance(labels, dict):
        where = [b"%d=%s" % (mode + 1, os.fsencode(path)) for mode, path in labels.items()]
    elif labels is not None:
        where = [os.fsencode(path) for path in ([labels] if isinstance(labels, (str, os.PathLike)) else labels)]
    known.labels, known.label_count = (ctypes.c_char_p * len(where))(*where), len(where)


def keep_fibers(known: Any, given: Fibers) -> None:
    """Whose fibers are kept together: "auto", "none", a mode, or (mode, bits)."""
    if isinstance(given, str):
        known.fibers = choose("fibers", FIBERS, given)
        return
    mode, bits = given if isinstance(given, tuple) else (given, 12)
    if not 0 <= mode < c.MAX_ORDER or not 1 <= bits <= 24:
        raise UsageError(f"fibers {given!r}: a mode from 0 on, or (mode, bits) with 1 to 24 bits")
    known.fibers, known.fiber_mode, known.fiber_bits = 2, mode, bits


def sort_beyond(known: Any, block_bytes: Any, temp_folder: Optional[PathLike], max_temp: Any) -> None:
    """The size of blocks, and where what is larger than memory is sorted."""
    known.block_bytes, known.max_temp_bytes = size(block_bytes), size(max_temp)
    if temp_folder is not None:
        known.temp_folder = os.fsencode(temp_folder)


@dataclass(frozen=True)
class Device:
    """What computes."""

    device: str = "cpu"
    device_memory: Any = None
    split: Optional[str] = None
    devices: Union[None, int, Sequence[int]] = None
    streams: int = 0
    name: Optional[str] = None


def compute(run: Run, memory: Any, threads: int, precision: str, io: str, deterministic: bool, device: Device,
            progress: Optional[Progress] = None, *, cache: bool = True, io_limit: Any = None,
            **more: Any) -> c.ComputeOptions:
    """The library's struct; `run` is stopped by Ctrl-C."""
    out = options(c.ComputeOptions)
    out.memory_bytes = size(memory)
    out.threads = threads
    out.precision = choose("precision", PRECISIONS, precision)
    out.io = choose("io", IOS, io)
    out.deterministic = deterministic
    out.no_cache, out.io_limit = not cache, size(io_limit)
    run.watch(out, progress)
    out.device = choose("device", DEVICES, device.device)
    out.device_memory_bytes, out.streams = size(device.device_memory), device.streams
    if device.split is not None:
        out.split = device.split.encode()
    if device.name is not None:
        out.device_name = device.name.encode()
    named = device.devices
    if isinstance(named, int):
        out.device_count = named
    elif named is not None:
        numbers = list(named)
        if device.device != "gpu" or not 1 <= len(numbers) <= c.MAX_DEVICES:
            raise UsageError(f"devices {numbers}: the numbers of 1 to {c.MAX_DEVICES} GPUs go with device='gpu'; of the "
                             "CPU it is one number")
        out.device_count = len(numbers)
        out.devices[:len(numbers)] = numbers
    for name, given in more.items():
        setattr(out, name, choose(name, CHOICES[name], given))
    return out
