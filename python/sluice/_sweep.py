"""Sweeps over ranks and starts."""

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


def _known(number: float) -> Optional[float]:
    return None if math.isnan(number) else number


@dataclass(frozen=True)
class SweepRun:
    """
    One run that is through. `match` is its factor match score with the best run of its rank, `folder` that of its
    factors in the sweep's, where `kept` says that they are there.
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
                   _known(given.heldout_rmse), _known(given.match), bool(given.kept), given.folder.decode())


@dataclass(frozen=True)
class SweepRank:
    """
    What the runs of a rank tell: the best of them, how well the others agree with it (mean factor match score), and its
    core consistency (CORCONDIA) in percent; where one is not known, `note` says why.
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
    A sweep: its ranks, ascending, all runs, the rank that is suggested, or None, why, and the best run of it, or else
    of the best fit; `folder` has all of them, None of a sweep that nothing is left of.
    """

    ranks: List[SweepRank]
    runs: List[SweepRun]
    rank: Optional[int]
    why: str
    best: Result
    folder: Optional[str] = None

    def report(self, path: Any, *, overwrite: bool = False, memory: Any = None) -> None:
        """Writes a page that compares the runs and tells which rank they suggest: one HTML file."""
        if self.folder is None:
            raise UsageError("nothing is left of this sweep: make it with an output for a page")
        known = report_options(64, 10, None, overwrite, memory)
        call("sluice_run_report", path_bytes(self.folder), path_bytes(path), byref(known))


def _tell(sweep: Any, folder: Optional[str], load: Callable[[str], Result]) -> Sweep:
    runs, ranks = [], []
    for number in range(LIB.sluice_sweep_run_count(sweep)):
        run = options(c.SweepRun)
        call("sluice_sweep_get_run", sweep, ctypes.c_uint32(number), byref(run))
        runs.append(SweepRun.of(run))
    for number in range(LIB.sluice_sweep_rank_count(sweep)):
        rank = options(c.SweepRank)
        call("sluice_sweep_get_rank", sweep, ctypes.c_uint32(number), byref(rank))
        ranks.append(SweepRank(rank.rank, rank.runs, rank.best_seed, rank.best_fit, _known(rank.agreement),
                               _known(rank.consistency), rank.note.decode()))
    suggestion = options(c.SweepSuggestion)
    call("sluice_sweep_suggest", sweep, byref(suggestion))
    return Sweep(ranks, runs, suggestion.rank or None, suggestion.why.decode(), load(suggestion.folder.decode()),
                 folder)


def make(run: Run, store: Any, folder: Any, ranks: List[int], known: Any, callback: Optional[Callable[[SweepRun], Any]],
         lasting: bool, load: Callable[[str], Result]) -> Sweep:
    """
    Makes the sweep that the options `known` tell of; `lasting`: its folder stays; `load` gives the result of a run's.
    """

    def on_run(_: Any, given: Any) -> int:
        return int(callback is not None and run.ask(callback, SweepRun.of(given.contents)))

    known.completed = c.ON_SWEEP_RUN(on_run)
    numbers = (ctypes.c_uint32 * max(1, len(ranks)))(*(c.whole(ctypes.c_uint32, "rank", rank) for rank in ranks))
    sweep = ctypes.c_void_p()
    run.call("sluice_sweep_ranks", store, path_bytes(folder), ctypes.c_uint32(len(ranks)), numbers, byref(known), byref(sweep))
    try:
        return _tell(sweep, os.fsdecode(folder) if lasting else None, load)
    finally:
        LIB.sluice_sweep_destroy(sweep)
