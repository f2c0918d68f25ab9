"""Compares models with tensors, and with each other."""

from __future__ import annotations

import contextlib
import ctypes
import os
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._arguments import items, path_bytes, real
from ._errors import UsageError
from ._library import LIB, Progress, Run, options, size
from ._options import IOS, PathLike, choose, none_if_nan
from ._result import Result, load_result
from ._tensor import Tensor

SCORES = {"absolute": 0, "relative": 1, "above": 2, "below": 3, "deviance": 4}


@dataclass(frozen=True)
class Residual:
    """
    A nonzero: its indices and their names (or None), its value, the value of the model, and its
    deviance for the loss of the model.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3, noise=0.1)
    >>> r = t.cpd(3, 10)
    >>> at = sluice.residuals(r, t).nonzeros[0]
    >>> len(at.index), at.names, at.residual == at.value - at.model
    (3, (None, None, None), True)
    """

    index: Tuple[int, ...]
    names: Tuple[Optional[str], ...]
    value: float
    model: float
    deviance: Optional[float] = None

    @property
    def residual(self) -> float:
        """
        The value minus the value of the model.

        >>> sluice.Residual((0, 1), (None, None), 5.0, 3.0).residual
        2.0
        """
        return self.value - self.model


@dataclass(frozen=True)
class Residuals:
    """
    Residuals (value - model) at all nonzeros of a store.

    `norm` and `values_norm` are the 2-norms of residuals and values, `rmse` and `mae` are the root
    mean square error and the mean absolute error, `mean` is the mean residual, and `largest` is the
    largest magnitude. `quantiles` are exact quantiles of the magnitudes: {fraction:
    magnitude}. `nonzeros` lists the nonzeros with the highest scores. `deviance` is the mean
    deviance for the loss of the model, or None if the loss is not defined for one of the values.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3, noise=0.1)
    >>> r = t.cpd(3, 10)
    >>> found = sluice.residuals(r, t)
    >>> found.mae < found.rmse < found.largest
    True
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
    deviance: Optional[float] = None


def residuals(run: Union[Result, PathLike], store: Union[None, Tensor, PathLike] = None, *, top: int = 20,
              by: str = "absolute", quantiles: Sequence[float] = (0.5, 0.9, 0.99, 0.999), memory: Any = None,
              threads: int = 0, io: str = "auto", io_limit: Any = None,
              progress: Optional[Progress] = None) -> Residuals:
    """
    Computes the residuals of a model at the nonzeros of a store, in bounded memory.

    run      a Result, or the folder of a run
    store    a Tensor or the path of a store; None: the store of the run
    top      number of nonzeros to list
    by       score, largest first: "absolute" (|residual|), "relative" (|residual / value|), "above"
             (only values above the model), "below" (only values below the model) or "deviance"
             (of the value for the loss of the run)

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3, noise=0.1)
    >>> r = t.cpd(3, 10)
    >>> found = sluice.residuals(r, t, top=5, by="above")
    >>> len(found.nonzeros), sorted(found.quantiles)
    (5, [0.5, 0.9, 0.99, 0.999])
    """
    if not isinstance(run, Result):
        path_bytes(run, "run")
    if store is None and not isinstance(run, Result):
        run = load_result(run)
    where = store if store is not None else run.store if isinstance(run, Result) else None
    if where is None:
        raise UsageError("the record of the run does not state its store: pass the store")
    task = Run()
    known = options(c.ResidualsOptions)
    known.score, known.io = choose("by", SCORES, by), choose("io", IOS, io)
    known.io_limit = size("io_limit", io_limit)
    known.top, known.run.threads, known.run.memory_bytes = top, threads, size("memory", memory)
    quantiles = [real("quantiles", one) for one in items("quantiles", quantiles, "a list of numbers")]
    known.quantiles, known.quantile_count = (ctypes.c_double * len(quantiles))(*quantiles), len(quantiles)
    task.watch(known, progress)
    report = options(c.ResidualsReport)
    found: List[Tuple[Tuple[int, ...], float, float, Optional[float]]] = []

    def on_nonzero(_: Any, given: Any) -> int:
        at = given.contents
        found.append((tuple(at.index[:len(tensor.shape)]), at.value, at.model, none_if_nan(at.deviance)))
        return 0

    with contextlib.ExitStack() as end:
        tensor = where if isinstance(where, Tensor) else end.enter_context(Tensor(where))
        model = (run if isinstance(run, Result) else tensor.load(run))._model()
        end.callback(LIB.sluice_model_destroy, model)
        task.call("sluice_residuals", tensor._open(), model, byref(known), c.ON_RESIDUAL(on_nonzero), byref(report))
        nonzeros = [Residual(index, tuple(tensor.label(mode, i) for mode, i in enumerate(index)), *numbers)
                    for index, *numbers in found]
    return Residuals(report.nnz, report.norm, report.values_norm, report.rmse, report.mae, report.mean, report.largest,
                     dict(zip(quantiles, report.quantiles)), nonzeros, none_if_nan(report.deviance))


@dataclass(frozen=True)
class Match:
    """
    Corresponding components of a run and of the first run, and their similarity (0 to 1).

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3, noise=0.1)
    >>> a, b = t.cpd(3, 10, output="a"), t.cpd(4, 10, seed=1, output="b")
    >>> match = sluice.compare([a, b])[1].matches[0]
    >>> match.first_component, 0 < match.similarity < 1
    (0, True)
    """

    component: int
    first_component: int
    similarity: float


@dataclass(frozen=True)
class Comparison:
    """
    A run, compared with the first run.

    `score` is the factor match score with the first run: 1 if all components are equal except for
    order and sign. It is NaN for the first run, which has no `matches`. `fit` is NaN if the folder
    has no run.json.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3, noise=0.1)
    >>> a, b = t.cpd(3, 10, output="a"), t.cpd(4, 10, seed=1, output="b")
    >>> second = sluice.compare([a, b])[1]
    >>> second.folder, second.rank, second.fit == b.fit
    ('b', 4, True)
    """

    folder: str
    rank: int
    iterations: int
    fit: float
    score: float
    matches: List[Match]


def compare(runs: Sequence[Union[Result, PathLike]], *, memory: Any = None) -> List[Comparison]:
    """
    Compares the components of runs with those of the first run.

    runs     folders of runs, or Results that were written to a folder; their ranks may differ

    Rows of factors correspond by name if the tensors differ and have names, and by index otherwise.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3, noise=0.1)
    >>> a, b = t.cpd(3, 10, output="a"), t.cpd(4, 10, seed=1, output="b")
    >>> [run.rank for run in sluice.compare([a, "b"])]
    [3, 4]
    """
    given = items("runs", runs, "a list of folders or Results")
    if any(isinstance(run, Result) and run.folder is None for run in given):
        raise UsageError("a Result is not in a folder: pass `output` to cpd, or export the Result in the form npy")
    paths = [path_bytes(run.folder if isinstance(run, Result) else run, "runs") for run in given]
    task = Run()
    known = options(c.CompareOptions)
    known.run.memory_bytes = size("memory", memory)
    task.watch(known)
    found: List[Comparison] = []

    def on_run(_: Any, given: Any) -> int:
        at = given.contents
        matches = [Match(m.component, m.first_component, m.similarity) for m in at.matches[:at.match_count]]
        found.append(Comparison(os.fsdecode(paths[at.number]), at.rank, at.iterations, at.fit, at.score, matches))
        return 0

    task.call("sluice_compare_runs", ctypes.c_uint32(len(paths)), (ctypes.c_char_p * len(paths))(*paths), byref(known),
              c.ON_COMPARED(on_run))
    return found
