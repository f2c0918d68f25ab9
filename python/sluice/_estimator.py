"""A decomposition with the interface of scikit-learn's estimators."""

from __future__ import annotations

import contextlib
import inspect
import os
import shutil
import tempfile
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

from ._arguments import whole
from ._arrow import is_table_file
from ._convert import convert
from ._errors import InputError, SluiceError, UsageError
from ._interop import package
from ._numpy import np
from ._tensor import Tensor

UNSEEN = ("error", "skip")
# Options of sluice.convert that `transform` and `score` take over from `fit`.
KEPT = ("columns", "value_column", "delimiter", "header", "missing", "null", "transform", "index_base", "duplicates", "value", "format",
        "temp_folder", "max_temp")
SHOWN = 5  # number of unseen names in a message


def _keywords(function: Any, *without: str) -> List[str]:
    """Returns the names of the keyword arguments of a function."""
    return [name for name in inspect.signature(function).parameters if name not in ("self", *without)]


OPTIONS = _keywords(Tensor.cpd, "rank")
# Options that Tensor.cpd and Tensor.mttkrp have in common.
SHARED = [name for name in _keywords(Tensor.mttkrp, "factors", "mode") if name in OPTIONS]


class CPD:
    """
    A CP decomposition as an estimator with the interface of scikit-learn.

    `rank` is the number of components, `mode` is the mode of the samples (counted from 0), and
    `options` are those of Tensor.cpd: iters, seed, tol, holdout, memory, .. `fit` decomposes a
    tensor, and `transform` computes the scores of new slices of the mode `mode`: the rows of the
    factor of this mode for which the model, with all other factors fixed, is closest to the
    slices. scikit-learn is not needed.

    A tensor x is a Tensor, the path of a store, or anything that sluice.convert reads: the path
    of a file, a matrix or array of scipy.sparse or pydata/sparse, or a frame. `convert` are
    options of sluice.convert, such as `columns` and `value_column` for frames and tables; except
    for `values`, `labels` and `shape`, the options of `fit` also hold for `transform` and `score`.
    Except for Tensors and stores, x is converted to a temporary store, which is removed together
    with `result_`.

    Attributes after fit:

    factors_, weights_   factor matrices and weights of the components
    fit_                 1 - ||X - M|| / ||X||
    n_iter_              number of iterations
    result_              the Result
    shape_, titles_      mode sizes and titles of modes
    names_               names of the indices of each mode; None for a mode without names
    row_names_           names of the rows of the last scores; None if they have no names

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> model = sluice.CPD(rank=3, iters=20).fit(t)
    >>> [factor.shape for factor in model.factors_]
    [(40, 3), (30, 3), (20, 3)]
    """

    def __init__(self, rank: int, *, mode: int = 0, **options: Any) -> None:
        self.set_params(rank=rank, mode=mode, **options)

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """
        Returns the parameters: rank, mode, and the options that are set.

        >>> model.get_params()
        {'rank': 3, 'mode': 0, 'iters': 20}
        """
        return {"rank": self.rank, "mode": self.mode, **self.options}

    def set_params(self, **params: Any) -> "CPD":
        """
        Sets parameters by name and returns the estimator. Fitted attributes do not change.

        >>> model.set_params(rank=4, tol=1e-7)
        CPD(rank=4, mode=0, iters=20, tol=1e-07)
        """
        unknown = sorted(set(params) - {"rank", "mode", *OPTIONS})
        if unknown:
            raise UsageError(f"unknown options {', '.join(unknown)}; CPD has rank, mode, {', '.join(OPTIONS)}")
        self.rank: int = params.pop("rank", getattr(self, "rank", None))
        self.mode: int = params.pop("mode", getattr(self, "mode", 0))
        self.options: Dict[str, Any] = {**getattr(self, "options", {}), **params}
        return self

    def __sklearn_tags__(self) -> Any:
        """Describes the estimator to scikit-learn, for grid searches and pipelines."""
        utils = package("sklearn.utils")
        return utils.Tags(estimator_type="transformer", target_tags=utils.TargetTags(required=False),
                          transformer_tags=utils.TransformerTags(), input_tags=utils.InputTags(sparse=True))

    def __repr__(self) -> str:
        return f"CPD({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def set_output(self, *, transform: Optional[str] = None) -> "CPD":
        """
        Selects the type of scores: "default" for arrays, "pandas" for frames with row names; None: unchanged.

        >>> model.set_output(transform="default").transform(t).shape
        (40, 3)
        """
        if transform not in (None, "default", "pandas"):
            raise UsageError(f"transform {transform!r} is not one of default, pandas")
        self._output = transform or getattr(self, "_output", "default")
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """
        Returns the names of the columns of scores: "cpd0", "cpd1", ..

        >>> list(model.get_feature_names_out())
        ['cpd0', 'cpd1', 'cpd2']
        """
        return np.array([f"cpd{component}" for component in range(len(self._fitted().weights_))], dtype=object)

    def fit(self, x: Any, y: Any = None, **convert: Any) -> "CPD":
        """
        Decomposes the tensor x and returns the estimator. `y` is ignored.

        >>> sluice.CPD(rank=2).fit([[0, 1, 1], [0, 0, 2]], values=[1, 2, 3]).shape_
        (2, 3)
        """
        with self._opened(x, convert) as (tensor, end):
            self._decompose(tensor, end, convert)
        return self

    def transform(self, x: Any, *, unseen: str = "error", **convert: Any) -> np.ndarray:
        """
        Returns the scores of the slices of x in the mode `mode`, a row for each slice.

        The scores are the solution of least squares over all cells of the slices, including those
        that are zero: scores[i] * weights_, combined with the other factors, is closest to slice i.
        The option `reg` applies only to the fit. x may have other slices than the fitted tensor, in
        any number. In the other modes, indices are matched by name, or by number in a mode without
        names. With unseen="error", a name or number that the fitted mode does not have is an error;
        with "skip", its nonzeros are ignored.

        Cost: one pass over x (one MTTKRP).

        >>> new = sluice.generate("new.slc", (5, 30, 20), 600, seed=1)
        >>> model.transform(new).shape
        (5, 3)
        """
        with self._opened(x, convert) as (tensor, _):
            return self._table(self._scores(tensor, unseen)[0])

    def fit_transform(self, x: Any, y: Any = None, **convert: Any) -> np.ndarray:
        """
        Decomposes x and returns the scores of its slices, as `fit` and then `transform`.

        >>> scores = sluice.CPD(rank=3, iters=20).fit_transform(t)
        >>> np.allclose(scores, model.transform(t))
        True
        """
        with self._opened(x, convert) as (tensor, end):
            self._decompose(tensor, end, convert)
            return self._table(self._scores(tensor, "error")[0])

    def score(self, x: Any = None, y: Any = None, *, unseen: str = "error", **convert: Any) -> float:
        """
        Returns the fit of the model to x: 1 - ||X - M|| / ||X||, where M has the scores of x.

        Without x, returns the fit to the tensor of `fit` or, with the option `holdout`, to its
        held-out nonzeros. The best score is 1; a model that is zero everywhere has the score 0.

        >>> model.score() == model.fit_, model.score(t) >= model.fit_
        (True, True)
        """
        if x is None:
            held = self._fitted().result_.holdout
            return self.fit_ if held is None else 1 - held.rmse * held.count ** 0.5 / held.norm
        with self._opened(x, convert) as (tensor, _):
            scores, products, gram = self._scores(tensor, unseen)
            if tensor.norm == 0 and tensor.nnz == 0:
                return 1.0
            if not 0 < tensor.norm < np.inf:
                raise SluiceError(f"{tensor.path}: the norm is {tensor.norm}, too small or too large for a fit; scale the values",
                                  "numeric", file=tensor.path)
            # Relative to the norm of the tensor, so that no square overflows or underflows.
            rows, products = scores / tensor.norm * self.weights_, products / tensor.norm
            square = 1 - 2 * np.sum(rows * products) + np.sum((rows.T @ rows) * gram)
            return float(1 - max(square, 0.0) ** 0.5)

    def _fitted(self) -> "CPD":
        if not hasattr(self, "result_"):
            raise UsageError("this CPD has no model yet: call fit first")
        return self

    @contextlib.contextmanager
    def _opened(self, x: Any, given: Dict[str, Any]) -> Iterator[Tuple[Tensor, contextlib.ExitStack]]:
        """Opens x, or converts it to a temporary store; yields the store and what removes it at the end."""
        with contextlib.ExitStack() as end:
            if isinstance(x, Tensor):
                yield x, end
            elif isinstance(x, (str, bytes, os.PathLike)) and os.path.isdir(x) and not is_table_file(x):
                with Tensor(os.fsdecode(x)) as tensor:
                    yield tensor, end
            else:
                known: Dict[str, Any] = {name: self.options[name] for name in ("memory", "threads") if name in self.options}
                known.update(getattr(self, "_convert", {}))
                known.update(given)
                folder = tempfile.mkdtemp(prefix="sluice-cpd-", dir=known.get("temp_folder"))
                end.callback(shutil.rmtree, folder, True)
                with convert(x, os.path.join(folder, "tensor.slc"), **known) as tensor:
                    yield tensor, end

    def _decompose(self, tensor: Tensor, end: contextlib.ExitStack, given: Dict[str, Any]) -> None:
        if not 0 <= whole("mode", self.mode, -2**63) < tensor.order:
            raise UsageError(f"no mode {self.mode}: the tensor has {tensor.order} modes, counted from 0")
        result = tensor.cpd(self.rank, **self.options)
        weakref.finalize(result, end.pop_all().close)  # the result reads names from a temporary store
        self._convert = {name: given[name] for name in KEPT if name in given}
        self.result_, self.factors_, self.weights_ = result, result.factors, result.weights
        self.fit_, self.n_iter_ = result.fit, result.iterations
        self.shape_, self.titles_ = tensor.shape, tensor.titles
        self.names_ = [tensor.labels(mode) for mode in range(tensor.order)]

    def _matched(self, tensor: Tensor, mode: int, unseen: str) -> np.ndarray:
        """Returns the row of the fitted factor for each index of a mode of the tensor; -1 for none."""
        old, new = self.names_[mode], tensor.labels(mode)
        if (old is None) != (new is None):
            raise UsageError(f"mode {mode} has names only in the {'fitted' if new is None else 'new'} tensor, so its indices "
                             "cannot be matched; convert both with names (labels) or both without")
        if old is None or new is None:
            rows = np.arange(tensor.shape[mode])
            rows[self.shape_[mode]:] = -1
            shown: Any = range(self.shape_[mode], tensor.shape[mode])
        else:
            places = {name: index for index, name in enumerate(old) if name != ""}
            if len(places) < np.count_nonzero(old != ""):
                raise UsageError(f"mode {mode} of the fitted tensor has a name twice, so names do not identify its indices")
            rows = np.array([places.get(name, -1) for name in new], dtype=np.int64)
            shown = [name or f"index {index}" for index, name in enumerate(new) if rows[index] < 0]
        if len(shown) == len(rows) and unseen == "skip":
            raise InputError(f"{tensor.path}: mode {mode} has no index of the fitted tensor, so all nonzeros would be ignored; "
                             "use a mode that both have, such as the weekday instead of the date", "input", file=tensor.path, field="unseen")
        if len(shown) > 0 and unseen == "error":
            more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
            raise InputError(f"{tensor.path}: mode {mode} has {', '.join(map(str, shown[:SHOWN]))}{more}, "
                             "which the fitted tensor does not have; ignore their nonzeros with unseen='skip'", "input",
                             file=tensor.path, field="unseen")
        return rows

    def _scores(self, tensor: Tensor, unseen: str) -> Tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns the scores, the MTTKRP, and the product of the Gram matrices of the other factors."""
        self._fitted()
        if unseen not in UNSEEN:
            raise UsageError(f"unseen {unseen!r} is not one of {', '.join(UNSEEN)}")
        if tensor.order != len(self.factors_):
            raise UsageError(f"{tensor.path} has {tensor.order} modes; the fitted tensor has {len(self.factors_)}")
        gram = np.ones((len(self.weights_), len(self.weights_)))
        factors: List[np.ndarray] = []
        for mode, factor in enumerate(self.factors_):
            if mode == self.mode:
                factors.append(factor)  # ignored, except for the rank of a single mode
                continue
            rows = self._matched(tensor, mode, unseen)
            same = len(rows) == len(factor) and np.array_equal(rows, np.arange(len(rows)))
            factors.append(factor if same else np.where((rows < 0)[:, None], 0.0, factor[rows]))
            gram *= factor.T @ factor
        known = {name: self.options[name] for name in SHARED if name in self.options}
        products = tensor.mttkrp(factors, self.mode, **known)
        values, vectors = np.linalg.eigh(gram)
        # As in numpy.linalg.lstsq, eigenvalues that are rounding errors are treated as 0.
        used = values > len(values) * np.finfo(float).eps * values[-1]
        rows = (products @ vectors[:, used] / values[used]) @ vectors[:, used].T
        names = tensor.labels(self.mode)
        self.row_names_ = None if names is None else list(names)
        return np.divide(rows, self.weights_, out=np.zeros_like(rows), where=self.weights_ != 0), products, gram

    def _table(self, scores: np.ndarray) -> Any:
        """Returns the scores in the type that set_output selected."""
        if getattr(self, "_output", "default") == "default":
            return scores
        return package("pandas").DataFrame(scores, index=self.row_names_, columns=self.get_feature_names_out())
