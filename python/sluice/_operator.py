"""Multiplies a mode of a tensor in memory by many vectors."""

from __future__ import annotations

import threading
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any, Optional, Tuple

from . import _structs as c
from ._arguments import whole
from ._errors import UsageError
from ._library import LIB, Progress, Run, call, options, pointer, size
from ._numpy import np
from ._options import real_matrix


class TtvOperator:
    """
    A mode of a tensor in memory, for products with many vectors (Tensor.ttv_operator).

    It is the sparse matrix with a row for each fiber that has nonzeros, and a column for each index
    of the mode; `shape` is (fibers, size of the mode). `op @ v` is the product with a vector. The
    operator can be closed, or used in a `with` statement.

    mode           the mode that products multiply
    dims           mode sizes of the tensor
    nnz            number of nonzeros
    used           number of indices of the mode that have nonzeros
    memory_bytes   memory of the operator

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000)
    >>> op = t.ttv_operator(2)
    >>> sums = op @ np.ones(20)
    >>> sums.shape == (op.shape[0],), op.shape[1]
    (True, 20)
    """

    def __init__(self, handle: Any, mode: int, threads: int, memory: Any, progress: Optional[Progress]) -> None:
        run, known, info = Run(), options(c.TtvOperatorOptions), options(c.TtvOperatorInfo)
        run.watch(known, progress)
        known.run.memory_bytes, known.run.threads = size("memory", memory), threads
        self._as_parameter_ = c_void_p()
        self._busy = threading.Lock()
        run.call("sluice_ttv_create", handle, c_uint32(mode), byref(known), byref(self._as_parameter_))
        call("sluice_ttv_get_info", self, byref(info))
        self.mode: int = info.mode
        self.dims: Tuple[int, ...] = tuple(info.dims[:info.order])
        self.shape: Tuple[int, int] = (info.fibers, self.dims[self.mode])
        self.nnz: int = info.nnz
        self.used: int = info.used
        self.memory_bytes: int = info.memory_bytes

    def __repr__(self) -> str:
        return f"<sluice.TtvOperator of mode {self.mode}: {self.shape[0]} fibers, {self.nnz} nonzeros>"

    def matvec(self, vector: Any, out: Optional[np.ndarray] = None) -> np.ndarray:
        """
        Returns the product with a vector: one sum per fiber.

        `out` is an array for the sums; None: a new array. The first call is not slower than later
        calls. Calls from several threads wait for each other.

        >>> v, sums = np.arange(20.0), np.empty(op.shape[0])
        >>> op.matvec(v, out=sums) is sums
        True
        """
        held = real_matrix(np.reshape(vector, (-1, 1)), self.shape[1], "the vector")
        if out is None:
            out = np.empty(self.shape[0])
        elif not (isinstance(out, np.ndarray) and out.dtype == np.float64 and out.shape == (self.shape[0],)
                  and out.flags.c_contiguous and out.flags.writeable and not np.may_share_memory(out, held)):
            raise UsageError(f"out must be a writable, contiguous float64 array of shape ({self.shape[0]},) that "
                             "does not overlap the vector", field="out")
        with self._busy:
            self._check_open()
            call("sluice_ttv_multiply", self, pointer(held), c_uint64(held.size), pointer(out), c_uint64(out.size))
        return out

    def __matmul__(self, vector: Any) -> np.ndarray:
        return self.matvec(vector)

    def indices(self, mode: int) -> np.ndarray:
        """
        Returns the index of each fiber in another mode, in the order of the sums.

        >>> rows, columns = op.indices(0), op.indices(1)
        >>> matrix = np.zeros((40, 30))
        >>> matrix[rows, columns] = op @ np.ones(20)
        """
        out = np.empty(self.shape[0], dtype=np.uint64)
        with self._busy:
            self._check_open()
            call("sluice_ttv_get_indices", self, c_uint32(whole("mode", mode, 0, c.MAX_ORDER - 1)), pointer(out), c_uint64(out.size))
        return out.astype(np.int64)

    def close(self) -> None:
        """
        Releases the memory. Does nothing if the operator is closed.

        >>> t.ttv_operator(0).close()
        """
        with self._busy:
            LIB.sluice_ttv_destroy(self)
            self._as_parameter_ = c_void_p()

    def _check_open(self) -> None:
        if not self._as_parameter_:
            raise UsageError("the operator is closed")

    def __enter__(self) -> "TtvOperator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_as_parameter_", None):
            LIB.sluice_ttv_destroy(self)
