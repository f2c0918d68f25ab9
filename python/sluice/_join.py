"""Joins the parts of a product."""

from __future__ import annotations

import os
from ctypes import byref, c_char_p, c_uint32
from typing import Any, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._arguments import items, path_bytes
from ._library import Progress, Run, options, size
from ._numpy import np
from ._options import PathLike
from ._tensor import Tensor


def join(parts: Sequence[PathLike], output: PathLike, *, overwrite: bool = False, memory: Any = None, threads: int = 0,
         temp_folder: Optional[PathLike] = None, max_temp: Any = None,
         progress: Optional[Progress] = None) -> Union[Tensor, np.ndarray, Tuple[np.ndarray, np.ndarray]]:
    """
    Joins all parts of a product that Tensor.ttv or Tensor.ttm, or the command, computed.

    `output` gets the bytes that one run without parts would have written. Returns the opened store
    or, for TTM and MTTKRP, what numpy.load returns for the files of the result. Raises InputError if
    a part is missing, given twice or of another result.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000)
    >>> parts = [t.ttv({2: np.ones(20)}, f"part{i}.slc", part=(i, 3)).path for i in range(3)]
    >>> sluice.join(parts, "joined.slc").shape
    (40, 30)
    """
    paths = [path_bytes(path, "parts") for path in items("parts", parts, "a list of paths")]
    known = options(c.JoinOptions)
    known.run.threads, known.run.memory_bytes, known.overwrite = threads, size("memory", memory), overwrite
    known.max_temp_bytes = size("max_temp", max_temp)
    if temp_folder is not None:
        known.temp_folder = path_bytes(temp_folder, "temp_folder")
    run = Run()
    run.watch(known, progress)
    run.call("sluice_join", c_uint32(len(paths)), (c_char_p * len(paths))(*paths), path_bytes(output, "output"), byref(known))
    folder = os.fsdecode(output)
    if not os.path.isdir(folder):
        return np.load(folder, mmap_mode="r")
    if not os.path.exists(os.path.join(folder, "coords.npy")):
        return Tensor(output)
    return tuple(np.load(os.path.join(folder, name), mmap_mode="r")
                 for name in ("coords.npy", "rows.npy"))  # type: ignore[return-value]
