"""
Sparse tensors larger than memory, factorized while they stream from disk.

    import sluice

    with sluice.convert("uber.tns", "uber.slc") as t:
        r = t.cpd(rank=16, iters=50, seed=0)
    r.fit, r.weights, r.factors

Modes and indices count from 0. Every number is computed by libsluice, by its public C interface; Python's lock is not
held meanwhile. The library is the file in SLUICE_LIBRARY, the one in the wheel, or that of the system.
"""

from ._convert import convert, generate
from ._errors import BudgetError, InputError, Interrupted, SluiceError, StorageError, UsageError
from ._library import version
from ._result import Holdout, Iteration, Prediction, Result, Row
from ._sweep import Sweep, SweepRank, SweepRun
from ._stored import Layout, StoreInfo
from ._tensor import Tensor, open

__all__ = ["BudgetError", "Holdout", "InputError", "Interrupted", "Iteration", "Layout", "Prediction", "Result", "Row",
           "SluiceError", "StorageError", "StoreInfo", "Sweep", "SweepRank", "SweepRun", "Tensor", "UsageError", "convert", "generate", "open", "version"]
__version__ = "0.1.0"
