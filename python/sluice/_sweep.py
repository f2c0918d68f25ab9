"""Sweeps over ranks and random starts."""

from __future__ import annotations

import ctypes
import math
import os
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Callable, List, Optional

from . import _structs as c
from ._errors import UsageError
from ._library import LIB, Run, call, options, path_bytes
from ._result import STOPS, Result, report_options


def _none_if_nan(number: float) -> Optional[float]:
    return None if math.isnan(number) else number


@dataclass(frozen=True)
class SweepRun:
    """
    A completed run. `match` is the factor match score of this run and the best run of its rank. If
    `kept` is True, the factors are in `folder`, a subfolder of the sweep's folder.
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

    @classmethod
    def of(cls, given: Any) -> "SweepRun":
        return cls(given.rank, given.seed, given.fit, given.iterations, STOPS[given.stop_reason], given.seconds,
                   _none_if_nan(given.heldout_rmse), _none_if_nan(given.match), bool(given.kept), given.folder.decode())


@dataclass(frozen=True)
class SweepRank:
    """
    Summary of the runs of one rank.

    `seed` and `fit` are those of the best run. `agreement` is the mean factor match score of the
    other runs with the best run. `consistency` is the core consistency (CORCONDIA) of the best run
    in percent. If `agreement` or `consistency` is None, `note` states the reason.
    """

    rank: int
    runs: int
    seed: int
    fit: float
    agreement: Optional[float]
    consistency: Optional[float]
    note: str


@dataclass(frozen=True)
class Sweep:
    """
    A sweep over ranks and random starts.

    `ranks` is in ascending order. `rank` is the suggested rank or None, and `why` the reason. `best`
    is the best run of the suggested rank or, if there is none, the run with the best fit. `folder`
    contains the results; None if the sweep had no output.
    """

    ranks: List[SweepRank]
    runs: List[SweepRun]
    rank: Optional[int]
    why: str
    best: Result
    folder: Optional[str] = None

    def report(self, path: Any, *, overwrite: bool = False, memory: Any = None) -> None:
        """Writes a report that compares the runs and suggests a rank, as one HTML file."""
        if self.folder is None:
            raise UsageError("the sweep has no output folder: set output to write a report")
        known = report_options(64, 10, None, overwrite, memory)
        call("sluice_run_report", path_bytes(self.folder), path_bytes(path), byref(known))


def _read_sweep(sweep: Any, folder: Optional[str], load: Callable[[str], Result]) -> Sweep:
    runs, ranks = [], []
    for number in range(LIB.sluice_sweep_run_count(sweep)):
        run = options(c.SweepRun)
        call("sluice_sweep_get_run", sweep, ctypes.c_uint32(number), byref(run))
        runs.append(SweepRun.of(run))
    for number in range(LIB.sluice_sweep_rank_count(sweep)):
        rank = options(c.SweepRank)
        call("sluice_sweep_get_rank", sweep, ctypes.c_uint32(number), byref(rank))
        ranks.append(SweepRank(rank.rank, rank.runs, rank.best_seed, rank.best_fit, _none_if_nan(rank.agreement),
                               _none_if_nan(rank.consistency), rank.note.decode()))
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
        return int(callback is not None and run.ask(callback, SweepRun.of(given.contents)))

    known.completed = c.ON_SWEEP_RUN(on_run)
    numbers = (ctypes.c_uint32 * max(1, len(ranks)))(*(c.whole(ctypes.c_uint32, "rank", rank) for rank in ranks))
    sweep = ctypes.c_void_p()
    run.call("sluice_sweep_ranks", store, path_bytes(folder), ctypes.c_uint32(len(ranks)), numbers, byref(known), byref(sweep))
    try:
        return _read_sweep(sweep, os.fsdecode(folder) if lasting else None, load)
    finally:
        LIB.sluice_sweep_destroy(sweep)
