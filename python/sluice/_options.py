"""What keywords say, as the library's options."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Union

from . import _structs as c
from ._errors import UsageError
from ._library import Run, options, size

PathLike = Union[str, "os.PathLike[str]"]
CODECS = {"packed": 1, "lz4": 2, "blco": 3}
VALUES = {"auto": 0, "f32": 1, "f64": 2}
DUPLICATES = {"sum": 0, "error": 1, "keep-first": 2, "keep-last": 3}
MISSING = {"error": 0, "skip": 1, "name": 2}
RELABELS = {"none": 0, "frequency": 1}
DISTRIBUTIONS = {"uniform": 0, "zipf": 1, "zipf-shuffled": 2}
CONSISTENCIES = {"auto": 0, "always": 1, "never": 2}
LAYOUTS = {"blco": 1, "sorted": 2, "fiber": 3}
PRECISIONS = {"f32": 1, "f64": 2}
DEVICES = {"cpu": 0, "auto": 1, "gpu": 2}
IOS = {"auto": 0, "uring": 1, "pread": 2, "mmap": 3}
CHOICES = {"copies": {"auto": 0, "never": 1, "always": 2}, "layouts": {"auto": 0, "blco": 1, "sorted": 2},
           "passes": {"auto": 0, "plain": 1, "fused": 2}}


def choose(name: str, choices: Dict[str, int], given: str) -> int:
    if given not in choices:
        raise UsageError(f"{name} {given!r} is none of {', '.join(choices)}")
    return choices[given]


@dataclass(frozen=True)
class Device:
    """What computes."""

    device: str = "cpu"
    device_memory: Any = None
    split: Optional[str] = None
    devices: Union[None, int, Sequence[int]] = None
    streams: int = 0


def compute(run: Run, memory: Any, threads: int, precision: str, io: str, deterministic: bool, device: Device,
            **more: Any) -> c.ComputeOptions:
    """The library's struct; `run` is stopped by Ctrl-C."""
    out = options(c.ComputeOptions)
    out.memory_bytes = size(memory)
    out.threads = threads
    out.precision = choose("precision", PRECISIONS, precision)
    out.io = choose("io", IOS, io)
    out.deterministic = deterministic
    out.stop = ctypes.pointer(run.stop)
    out.device = choose("device", DEVICES, device.device)
    out.device_memory_bytes, out.streams = size(device.device_memory), device.streams
    if device.split is not None:
        out.split = device.split.encode()
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
