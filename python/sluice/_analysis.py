"""Compares models with tensors."""

from __future__ import annotations

import ctypes
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._errors import UsageError
from ._library import LIB, Progress, Run, options, size
from ._options import IOS, PathLike, choose
from ._result import Result
from ._tensor import Tensor

SCORES = {"absolute": 0, "relative": 1, "above": 2, "below": 3}


@dataclass(frozen=True)
class Residual:
    """A nonzero: its indices and their names (or None), its value, and the value of the model."""

    index: Tuple[int, ...]
    names: Tuple[Optional[str], ...]
    value: float
    model: float

    @property
    def residual(self) -> float:
        """value - model"""
        return self.value - self.model


@dataclass(frozen=True)
class Residuals:
    """
    Residuals (value - model) at all nonzeros of a store.

    norm and values_norm are the 2-norms of residuals and values, `mean` is the mean residual, and
    `largest` is the largest magnitude. `quantiles` are exact quantiles of the magnitudes: {fraction:
    magnitude}. `nonzeros` lists the nonzeros with the highest scores.
    """

    count: int
    norm: float
    values_norm: float
    rmse: float
    mae: float
    mean: float
    largest: float
    quantiles: Dict[float, float]
    nonzeros: List[Residual]


def residuals(run: Union[Result, PathLike], store: Union[None, Tensor, PathLike] = None, *, top: int = 20,
              by: str = "absolute", quantiles: Sequence[float] = (0.5, 0.9, 0.99, 0.999), memory: Any = None,
              threads: int = 0, io: str = "auto", io_limit: Any = None,
              progress: Optional[Progress] = None) -> Residuals:
    """
    Computes the residuals of a model at the nonzeros of a store, in bounded memory.

    run      a Result, or the folder of a run
    store    a Tensor or the path of a store; None: the store of the Result
    top      number of nonzeros to list
    by       score, largest first: "absolute" (|residual|), "relative" (|residual / value|), "above"
             (only values above the model) or "below" (only values below the model)
    """
    where = store if store is not None else run.store if isinstance(run, Result) else None
    if where is None:
        raise UsageError("the run does not know its store: pass the store")
    tensor = where if isinstance(where, Tensor) else Tensor(where)
    model = (run if isinstance(run, Result) else tensor.load(run))._model()
    task = Run()
    known = options(c.ResidualsOptions)
    known.score, known.io = choose("by", SCORES, by), choose("io", IOS, io)
    known.io_limit = size(io_limit)
    known.top, known.run.threads, known.run.memory_bytes = top, threads, size(memory)
    known.quantiles, known.quantile_count = (ctypes.c_double * len(quantiles))(*quantiles), len(quantiles)
    task.watch(known, progress)
    report = options(c.ResidualsReport)
    found: List[Tuple[Tuple[int, ...], float, float]] = []

    def on_nonzero(_: Any, given: Any) -> int:
        at = given.contents
        found.append((tuple(at.index[:len(tensor.shape)]), at.value, at.model))
        return 0

    try:
        task.call("sluice_residuals", tensor._open(), model, byref(known), c.ON_RESIDUAL(on_nonzero), byref(report))
    finally:
        LIB.sluice_model_destroy(model)
    nonzeros = [Residual(index, tuple(tensor.label(mode, i) for mode, i in enumerate(index)), value, of_model)
                for index, value, of_model in found]
    if tensor is not where:
        tensor.close()
    return Residuals(report.nnz, report.norm, report.values_norm, report.rmse, report.mae, report.mean, report.largest,
                     dict(zip(quantiles, report.quantiles)), nonzeros)
