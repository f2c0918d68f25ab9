"""Sweeps over ranks and random starts."""

from __future__ import annotations

import ctypes
import json
import os
from ctypes import byref
from dataclasses import dataclass, fields
from typing import Any, Callable, List, Optional, Union

from . import _structs as c
from ._arguments import path_bytes, path_text
from ._errors import InputError, UsageError
from ._interop import package
from ._library import LIB, Run, call, options
from ._options import none_if_nan
from ._result import STOPS, Result, load_result, report_options
from ._views import plot_sweep, sweep_html


@dataclass(frozen=True)
class SweepRun:
    """
    A completed run. `match` is the factor match score of this run and the best run of its rank. If
    `kept` is True, the factors are in `folder`, a subfolder of the sweep's folder. `rmse` and
    `deviance` are the errors of the model on the held-out nonzeros; None if none are held out.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> run = t.sweep([2, 3], iters=3).runs[0]
    >>> run.rank, run.seed, run.kept
    (2, 0, True)
    """

    rank: int
    seed: int
    fit: float
    iterations: int
    stop: str
    seconds: float
    rmse: Optional[float]
    match: Optional[float]
    kept: bool
    folder: str
    deviance: Optional[float] = None

    @classmethod
    def _of(cls, given: Any) -> "SweepRun":
        return cls(given.rank, given.seed, given.fit, given.iterations, STOPS[given.stop_reason], given.seconds,
                   none_if_nan(given.heldout_rmse), none_if_nan(given.match), bool(given.kept), given.folder.decode(),
                   none_if_nan(given.heldout_deviance))


@dataclass(frozen=True)
class SweepRank:
    """
    Summary of the runs of one rank.

    `seed` and `fit` are those of the best run. `reached` is the number of runs whose fit is within
    1e-4 of `fit`. `agreement` is the mean factor match score of the best run with the others of
    these runs. `consistency` is the core consistency (CORCONDIA) of the best run in percent. If
    `agreement` or `consistency` is None, `note` states the reason.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> rank = t.sweep([2, 3], runs=2, iters=3).ranks[0]
    >>> rank.rank, rank.runs, rank.seed in (0, 1)
    (2, 2, True)
    """

    rank: int
    runs: int
    seed: int
    fit: float
    agreement: Optional[float]
    consistency: Optional[float]
    note: str
    reached: int


@dataclass(frozen=True, repr=False)
class Sweep:
    """
    A sweep over ranks and random starts.

    `ranks` is in ascending order. `rank` is the suggested rank or None, and `why` the reason. `best`
    is the best run of the suggested rank or, if no rank is suggested, the run with the best fit.
    `folder` contains the results; None if the sweep had no output.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> s = t.sweep([1, 2, 3], runs=2, iters=5, output="ranks")
    >>> s.best.rank in (1, 2, 3), len(s.runs)
    (True, 6)
    """

    ranks: List[SweepRank]
    runs: List[SweepRun]
    rank: Optional[int]
    why: str
    best: Result
    folder: Optional[str] = None

    def __repr__(self) -> str:
        return f"<sluice.Sweep of {self._summary()}>"

    def _repr_html_(self) -> str:
        return sweep_html(self)

    def _summary(self) -> str:
        """Returns the mode sizes, the number of runs, the ranks and the suggested rank as one line."""
        dims = " x ".join(str(len(factor)) for factor in self.best.factors)
        ranks = ", ".join(str(rank.rank) for rank in self.ranks)
        return f"{dims}, {len(self.runs)} runs of the ranks {ranks}: " + ("no rank" if self.rank is None else f"rank {self.rank}") + " suggested"

    def plot(self) -> Any:
        """
        Plots fit, agreement and core consistency by rank with matplotlib; returns the axes as an array.

        >>> len(s.plot())                                     # needs matplotlib
        3
        """
        return plot_sweep(self)

    def to_pandas(self) -> Any:
        """
        Returns the runs as a pandas.DataFrame: a row for each SweepRun, a column for each of its members.

        >>> s.to_pandas()["rank"].tolist()                    # needs pandas
        [1, 1, 2, 2, 3, 3]
        """
        names = [field.name for field in fields(SweepRun)]
        return package("pandas").DataFrame([[getattr(run, name) for name in names] for run in self.runs], columns=names)

    def report(self, path: Any, *, overwrite: bool = False, memory: Any = None) -> None:
        """
        Writes a report that compares the runs and suggests a rank, as one HTML file.

        >>> s.report("ranks.html")
        """
        if self.folder is None:
            raise UsageError("the sweep has no output folder: set output to write a report")
        known = report_options(64, 10, None, overwrite, memory)
        call("sluice_run_report", path_bytes(self.folder), path_bytes(path), byref(known))


def _read_sweep(sweep: Any, folder: Optional[str], load: Callable[[str], Result]) -> Sweep:
    runs, ranks = [], []
    for number in range(LIB.sluice_sweep_run_count(sweep)):
        run = options(c.SweepRun)
        call("sluice_sweep_get_run", sweep, ctypes.c_uint32(number), byref(run))
        runs.append(SweepRun._of(run))
    for number in range(LIB.sluice_sweep_rank_count(sweep)):
        rank = options(c.SweepRank)
        call("sluice_sweep_get_rank", sweep, ctypes.c_uint32(number), byref(rank))
        ranks.append(SweepRank(rank.rank, rank.runs, rank.best_seed, rank.best_fit, none_if_nan(rank.agreement),
                               none_if_nan(rank.consistency), rank.note.decode(), rank.reached))
    suggestion = options(c.SweepSuggestion)
    call("sluice_sweep_suggest", sweep, byref(suggestion))
    return Sweep(ranks, runs, suggestion.rank or None, suggestion.why.decode(), load(suggestion.folder.decode()),
                 folder)


def run_sweep(run: Run, store: Any, folder: Any, ranks: List[int], known: Any,
              callback: Optional[Callable[[SweepRun], Any]], lasting: bool,
              load: Callable[[str], Result]) -> Sweep:
    """
    Runs a sweep with the options `known`.

    `lasting` is True if the folder is kept. `load` returns the result in the folder of a run.
    """

    def on_run(_: Any, given: Any) -> int:
        return int(callback is not None and run.ask(callback, SweepRun._of(given.contents)))

    known.completed = c.ON_SWEEP_RUN(on_run)
    numbers = (ctypes.c_uint32 * max(1, len(ranks)))(*ranks)
    sweep = ctypes.c_void_p()
    run.call("sluice_sweep_ranks", store, path_bytes(folder), ctypes.c_uint32(len(ranks)), numbers, byref(known), byref(sweep))
    try:
        return _read_sweep(sweep, os.fsdecode(folder) if lasting else None, load)
    finally:
        LIB.sluice_sweep_destroy(sweep)


def _load_sweep(folder: str) -> Sweep:
    """Reads the record of a sweep, sweep.json."""
    path = os.path.join(folder, "sweep.json")
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            record = json.load(file)
        runs = [SweepRun(run["rank"], run["seed"], run["fit"], run["iterations"], run["reason"], run["seconds"], run["heldout_rmse"],
                         run["match_with_best"], run["factors_kept"], run["folder"], run.get("heldout_deviance")) for run in record["runs"]]
        ranks = [SweepRank(rank["rank"], rank["runs"], rank["best_seed"], rank["fit"], rank["agreement"], rank["core_consistency"],
                           rank["core_consistency_note"] or "", rank["reached"]) for rank in record["ranks"]]
        suggestion = record["suggestion"]
        rank, why, best = suggestion["rank"], suggestion["why"], suggestion["best"]
    except (ValueError, KeyError, TypeError) as fault:
        raise InputError(f"{path}: not the record of a complete sweep ({fault!r}); continue the sweep with the same call",
                         "input", file=path) from None
    return Sweep(ranks, runs, rank, why, load_result(os.path.join(folder, best)), folder)


def load(path: Any) -> Union[Result, Sweep]:
    """
    Loads what cpd, a sweep or the command wrote: a run folder, the folder of a sweep, or a .mat or
    .ktensor file that export wrote.

    The factors of a run folder are memory-mapped. Names are read from the store that run.json
    states, if it still exists. Tensor.load also checks that the factors have the shape of the
    tensor.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> r = t.cpd(3, 10, output="demo.r3")
    >>> sluice.load("demo.r3").fits == r.fits
    True
    """
    folder = path_text(path)
    return _load_sweep(folder) if os.path.exists(os.path.join(folder, "sweep.json")) else load_result(folder)
