"""
Factorize sparse tensors larger than memory while they stream from disk.

    import sluice

    with sluice.convert("uber.tns", "uber.slc") as t:
        r = t.cpd(rank=16, iters=50, seed=0)
    r.fit, r.weights, r.factors

Modes and indices count from 0. libsluice does all computation, through its public C interface and
without Python's global interpreter lock. The path of the library is the environment variable
SLUICE_LIBRARY. If it is not set, the library of the wheel is loaded or, without a wheel, that of
the system.
"""

from ._analysis import Comparison, Match, Residual, Residuals, compare, residuals
from ._convert import convert, generate
from ._errors import BudgetError, InputError, Interrupted, SluiceError, StorageError, UsageError
from ._library import version
from ._estimator import CPD
from ._join import join
from ._operator import TtvOperator
from ._result import Diagnosis, Holdout, Iteration, Prediction, Result, Row
from ._sweep import Sweep, SweepRank, SweepRun, load
from ._stored import Layout, StoreInfo
from ._tensor import Tensor, open

__all__ = ["BudgetError", "CPD", "Comparison", "Diagnosis", "Holdout", "InputError", "Interrupted", "Iteration", "Layout",
           "Match", "Prediction", "Residual", "Residuals", "Result", "Row", "SluiceError", "StorageError", "StoreInfo",
           "Sweep", "SweepRank", "SweepRun", "Tensor", "TtvOperator", "UsageError", "compare", "convert", "generate", "join",
           "load", "open", "residuals", "version"]
__version__ = "0.1.0"
