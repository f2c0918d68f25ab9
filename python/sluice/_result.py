"""Results of decompositions."""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
from ctypes import byref
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._arguments import encoded, flag, items, path_bytes, path_text, whole, wholes
from ._errors import UsageError
from ._interop import arrow_tables, model_of, package, pandas_table, store_path, tidy, write_parquet
from ._library import LIB, Progress, Run, call, options, pointer, size
from ._numpy import np
from ._options import FORMATS, LOSSES, MODELS, ORDERS, choose, index_base as first_index, none_if_nan, null_words, plain
from ._stored import Stored
from ._views import plot_result, result_html

STOPS = ("tol", "iterations", "time", "stopped", "holdout")


@dataclass(frozen=True)
class Holdout:
    """
    Held-out nonzeros: number, RMSE and MAE of the model on them, norm of their values, and mean
    deviance for the loss of the model.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> held = t.cpd(3, 10, holdout=0.1).holdout
    >>> held.count, held.rmse > held.mae
    (406, True)
    """

    count: int
    rmse: float
    mae: float
    norm: float
    deviance: Optional[float] = None


@dataclass(frozen=True)
class Row:
    """
    A row of a factor: its index, its value in the component, and its name (or None).

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> row = t.cpd(3, 10).top(0, 1)[0][0]
    >>> type(row.index), row.name
    (<class 'int'>, None)
    """

    index: int
    value: float
    name: Optional[str]


@dataclass(frozen=True)
class Prediction:
    """
    Comparison of a model with the nonzeros of a text file, a table or a store.

    `count` is the number of nonzeros, and `index_base` says whether their indices start at 0 or 1.
    If the nonzeros have values, `rmse` and `mae` are the errors of the model, `largest` is the
    largest residual, and `norm` is the norm of the values; otherwise these are None. `unknown` is
    the number of rows of a table with a name that the model does not have; the errors exclude them.
    `deviance` is the mean deviance for the loss of the model, or None if the loss is not defined
    for one of the values.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> t.export("demo.tns")
    4000
    >>> found = t.cpd(3, 10).predict_file("demo.tns")
    >>> found.count, found.index_base, found.rmse < found.largest
    (4000, 1, True)
    """

    count: int
    index_base: int
    rmse: Optional[float]
    mae: Optional[float]
    largest: Optional[float]
    norm: Optional[float]
    unknown: int = 0
    deviance: Optional[float] = None


@dataclass(frozen=True)
class Diagnosis:
    """
    Properties that may make the model of a run unreliable; modes and components count from 0.

    `congruence` is the smallest congruence of two components (the product over modes of the cosine
    of their columns), and `cancelling` are these components if they nearly cancel each other, or
    None. `condition` has the condition number of each factor, or None for a factor with fewer rows
    than columns. `fit_rising` is True if the fit may still have been rising when the run ended, and
    `no_better_than_zeros` is True if a model of zeros has no larger held-out error.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> found = t.cpd(3, 10, tol=0).diagnosis
    >>> found.cancelling, len(found.condition)
    (None, 3)
    """

    congruence: float
    cancelling: Optional[Tuple[int, int]]
    condition: Tuple[Optional[float], ...]
    fit_rising: bool
    no_better_than_zeros: bool


@dataclass(frozen=True)
class Iteration:
    """
    A completed iteration; the first iteration has number 1.

    `rmse` and `mae` are the errors of the model on held-out nonzeros; None without a hold-out.
    `objective` is as in Result. With the loss "poisson", `violation` is the violation of the KKT
    conditions before the updates. `inner` is the mean number of inner iterations of a row.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> seen = []
    >>> r = t.cpd(3, 2, tol=0, callback=seen.append)
    >>> [one.iteration for one in seen], seen[1].fit == r.fit
    ([1, 2], True)
    """

    iteration: int
    fit: float
    delta: float
    seconds: float
    bytes_read: int
    singular: Tuple[int, ...]
    rmse: Optional[float] = None
    mae: Optional[float] = None
    objective: Optional[float] = None
    violation: Optional[float] = None
    inner: Optional[float] = None

    @classmethod
    def _of(cls, given: Any) -> "Iteration":
        modes = tuple(n for n in range(c.MAX_ORDER) if given.singular >> n & 1)
        errors = (given.heldout_rmse, given.heldout_mae) if given.heldout > 0 else (None, None)
        solver = (given.objective, given.violation, given.inner) if given.inner > 0 else (given.objective or None,)
        return cls(given.iteration, given.fit, given.delta, given.seconds, given.bytes_read, modes, *errors, *solver)


@dataclass(frozen=True)
class _TopRow:
    """A row of a factor with its component and mode, as in the tables of to_pandas."""

    component: int
    weight: float
    mode: int
    title: Optional[str]
    index: int
    name: Optional[str]
    value: float
    place: int


def _recorded_path(record: Dict[str, Any], name: str) -> str:
    """Returns a path of a record, whose bytes are in a member of their own if they are not UTF-8."""
    digits = record.get(name + "_bytes")
    return os.fsdecode(bytes.fromhex(digits)) if digits else record.get(name) or ""


class Result:
    """
    A CP decomposition: the sum over r of weights[r] times the outer product of columns r of all
    factors. The columns of factors have 2-norm 1, except in modes with simplex or bounds.

    weights, factors   NumPy arrays, memory-mapped read-only if they are in files
    fit                1 - ||X - M|| / ||X||, in a completion over the listed cells; with another
                       loss than "ls", the fraction of the deviance of a constant model that the
                       model removes; NaN for a result that was loaded without a run.json
    fits               fits of all iterations, including those of earlier runs that were resumed
    iterations         number of completed iterations
    stop               why the run ended: "tol", "iterations", "time", "stopped", or "holdout" if the
                       error on held-out nonzeros no longer improved
    biases             one item for each bias among the last components: its mode, or "mean"
    objective          with penalties, the number that was minimized; with the loss "poisson", the
                       log-likelihood without the terms log x!; for a completion, the root mean
                       square error on the listed cells, but with another loss than "ls" the sum of
                       the loss over these cells; otherwise None
    resume             (iteration, mode) at which the same call resumes, or None; the first iteration
                       is 1, the first mode is 0
    seconds            run time, including that of earlier runs that were resumed
    loss               the loss that the model minimizes, such as "ls"
    holdout            held-out nonzeros: count, rmse, mae and norm, or None
    device_nnz         number of nonzeros that GPUs multiplied in all passes; 0: only the CPU
                       computed
    bytes_read         bytes read from files
    norm               norm of the tensor
    mode_order         order in which the modes were updated
    folder             folder of the factors, or None
    store              path of the factorized store
    record             record of the run, as in run.json, or None
    diagnosis          properties that may make the model unreliable, or None
    notes              what to know before using the model: a list of sentences

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> r = t.cpd(3, 10, tol=0)
    >>> r.rank, r.stop, [factor.shape for factor in r.factors]
    (3, 'iterations', [(40, 3), (30, 3), (20, 3)])
    """

    def __init__(self, model: Any, fits: Sequence[float] = (), folder: Optional[str] = None,
                 store: Optional[str] = None) -> None:
        """Copies the weights and factors of the library's model; maps the factors if `folder` has them."""
        report = options(c.ModelInfo)
        call("sluice_model_get_info", model, byref(report))
        self.rank: int = report.rank
        self.device_nnz: int = report.device_nnz
        self.fit: float = report.fit
        self.fits: List[float] = list(fits)
        self.iterations: int = report.iterations
        self.stop: str = STOPS[report.stop_reason]
        self.resume: Optional[Tuple[int, int]] = \
            (report.resume_iteration, report.resume_mode) if report.resume_iteration > 0 else None
        self.seconds: float = report.seconds
        self.bytes_read: int = report.bytes_read
        self.norm: float = report.norm
        self.holdout: Optional[Holdout] = Holdout(report.heldout, report.heldout_rmse, report.heldout_mae,
                                                  report.heldout_norm, report.heldout_deviance) if report.heldout > 0 else None
        self.loss: str = list(LOSSES)[report.loss]
        self._huber: float = report.huber
        modes: List[Any] = [n for n in range(report.order) if report.bias_modes >> n & 1]
        self.biases: List[Any] = modes + ["mean"] * (report.biases - len(modes))
        self.objective: Optional[float] = report.objective if report.objective != 0 else None
        self.mode_order: Tuple[int, ...] = tuple(report.mode_order[:report.order])
        self.folder = folder
        self.store = store
        self._record: Optional[bytes] = LIB.sluice_model_record(model)
        if self._record is not None and not self.fits:
            self._read_record()
        self.weights: np.ndarray = np.empty(self.rank)
        call("sluice_model_get_weights", model, pointer(self.weights), ctypes.c_uint64(self.rank))
        self.factors: List[np.ndarray] = []
        for mode in range(report.order):
            if folder is not None:
                self.factors.append(np.load(os.path.join(folder, f"mode-{mode + 1}.npy"), mmap_mode="r"))
                continue
            factor = np.empty((report.dims[mode], self.rank))
            call("sluice_model_get_factor", model, ctypes.c_uint32(mode), pointer(factor), ctypes.c_uint64(factor.size))
            self.factors.append(factor)

    @property
    def record(self) -> Optional[Dict[str, Any]]:
        """
        The record of the run, as in run.json; None if the factors have no record.

        >>> r.record["options"]["seed"]
        0
        """
        return None if self._record is None else json.loads(self._record)

    @property
    def diagnosis(self) -> Optional[Diagnosis]:
        """
        The diagnosis of the model; None without a record or without iterations.

        >>> r.diagnosis.cancelling is None
        True
        """
        found = (self.record or {}).get("diagnosis")
        if found is None:
            return None
        first, second = found["cancelling"] or (0, 0)
        return Diagnosis(found["smallest_congruence"], (first - 1, second - 1) if first > 0 else None,
                         tuple(found["condition"]), found["fit_rising"], found["heldout_no_better_than_zeros"])

    @property
    def notes(self) -> List[str]:
        """
        What to know before using the model, as sentences without full stop; modes and components count from 1.

        >>> t.cpd(3, 1).notes
        ['stopped while the fit may still be rising: try more iterations']
        """
        return ((self.record or {}).get("diagnosis") or {}).get("notes", [])

    def _read_record(self) -> None:
        """Sets what only the record of a loaded run knows."""
        record = self.record or {}
        self.fits = [one["fit"] for one in record.get("iterations", [])]
        self.seconds = record.get("seconds", {}).get("total", self.seconds)
        self.bytes_read = record.get("counters", {}).get("bytes_read", self.bytes_read)
        held, tensor = record.get("holdout"), record.get("tensor", {})
        if held is not None:
            self.holdout = Holdout(held["count"], held["rmse"], held["mae"], held["norm"], held.get("deviance"))
        if self.store is None and "path" in tensor:
            self.store = os.path.join(_recorded_path(tensor, "directory"), _recorded_path(tensor, "path"))

    def report(self, path: Any, *, components: int = 64, rows: int = 10, store: Any = None, overwrite: bool = False,
               memory: Any = None) -> None:
        """
        Writes a report of the run and its results as one self-contained HTML file.

        The report has at most `components` components, the heaviest first, with `rows` rows per
        mode. Names are read from `store` (None: the factorized store).

        >>> r.report("demo.html", components=2)
        """
        known = report_options(components, rows, store, overwrite, memory)
        if self.folder is not None:
            call("sluice_run_report", path_bytes(self.folder), path_bytes(path), byref(known))
            return
        known.record = self._record
        where = self._names_from(store)
        known.store = None if where is None else store_path(where)
        model = self._model()
        try:
            call("sluice_model_report", model, path_bytes(path), byref(known))
        finally:
            LIB.sluice_model_destroy(model)

    @property
    def complete(self) -> bool:
        """
        True if the run ended because of its tolerance or its number of iterations.

        >>> r.complete
        True
        """
        return self.stop in ("tol", "iterations", "holdout")

    def __repr__(self) -> str:
        return f"<sluice.Result of {self._summary()}>"

    def _repr_html_(self) -> str:
        return result_html(self)

    def _summary(self) -> str:
        """Returns mode sizes, rank, fit and the end of the run as one line."""
        dims = " x ".join(str(len(factor)) for factor in self.factors)
        return f"{dims}, rank {self.rank}: fit {self.fit:.6f}, {self.stop} after {self.iterations}"

    def plot(self, components: Optional[Sequence[int]] = None, rows: int = 10) -> Any:
        """
        Plots the factors with matplotlib: a line of plots for each component, one for each mode.

        `components` are numbers of components; None: the four with the largest weights. A mode with
        at most 60 indices is plotted in their order, a larger mode with its `rows` top rows.
        Returns the axes as an array, components x modes.

        >>> r.plot([0, 1]).shape                              # needs matplotlib
        (2, 3)
        """
        return plot_result(self, components, rows)

    def _model(self) -> Any:
        """Creates a model of the library with these weights and factors; the caller destroys it."""
        model = create_model(self.weights, self.factors)
        call("sluice_model_set_loss", model, ctypes.c_int(LOSSES[self.loss]), ctypes.c_double(self._huber or 1.0))
        return model

    def predict(self, coords: Union[Any, Sequence[Any]], *, threads: int = 0) -> np.ndarray:
        """
        Computes the model's values at coordinates: expected values, for the loss "bernoulli" the
        probability of 1.

        `coords` is an array with one row per mode, or a list with one array per mode; indices start
        at 0. A Tensor, or the path of a store, means all its nonzeros, in the order in which
        `Tensor.export` writes them. During the call, the library has a copy of the factors in
        memory.

        >>> len(r.predict(t))
        4000
        >>> coords = [[0, 5], [1, 1], [2, 3]]                 # one row per mode
        >>> u, v, w = r.factors
        >>> np.allclose(r.predict(coords), [np.sum(r.weights * u[0] * v[1] * w[2]), np.sum(r.weights * u[5] * v[1] * w[3])])
        True
        """
        if isinstance(coords, (Stored, str, os.PathLike)):
            with tempfile.TemporaryDirectory(prefix="sluice-predict-") as folder:
                output = os.path.join(folder, "values.npy")
                self._predict_rows(store_path(coords), output, threads=threads)
                return np.load(output)[:, 1].copy()
        columns = [plain(column, f"the indices of mode {n}")
                   for n, column in enumerate(items("coords", coords, "a list with the indices of each mode, or a store"))]
        if len(columns) != len(self.factors) or any(column.shape != columns[0].shape or column.ndim != 1
                                                    for column in columns):
            raise UsageError(f"coordinates have the shapes {[column.shape for column in columns]}; expected "
                             f"{len(self.factors)} columns of equal length, one per mode")
        for n, column in enumerate(columns):
            if column.dtype.kind not in "iub":
                raise UsageError(f"the indices of mode {n} have the type {column.dtype}; expected integers")
            if column.dtype.kind == "i" and len(column) > 0 and column.min() < 0:
                raise UsageError(f"index {column.min()} in mode {n} is below 0")
        held = [np.ascontiguousarray(column, dtype=np.uint64) for column in columns]
        pointers = (ctypes.c_void_p * len(held))(*(pointer(column) for column in held))
        out = np.empty(len(held[0]))
        run = Run()
        known = options(c.PredictOptions)
        known.run.threads, known.run.stop = threads, ctypes.pointer(run.stop)
        model = self._model()
        try:
            run.call("sluice_predict", model, ctypes.c_uint64(len(out)), pointers, pointer(out), byref(known))
        finally:
            LIB.sluice_model_destroy(model)
        return out

    def predict_file(self, path: Any, output: Any = None, *, format: str = "auto", index_base: Optional[int] = None,
                     columns: Optional[str] = None, value_column: Optional[str] = None,
                     null: Union[None, str, Sequence[str]] = None, store: Any = None,
                     overwrite: bool = False, threads: int = 0, memory: Any = None,
                     progress: Optional[Progress] = None) -> Prediction:
        """
        Computes the model's error on the nonzeros of a text file, a table or a store.

        The file `output` receives indices, values, the model's values and residuals. Its ending
        determines the format: .csv, .npy, or text for any other ending.

        `path` is a text file in any text format; a Tensor or the path of a store; or a table (CSV,
        TSV) with the columns of `store` (None: the factorized store), in which names are looked up.
        If the columns of the table have other names than the store records, `columns` (with the
        same rules) and `value_column` state the names in the table; with value_column "", the table
        has no values. If one of them is given, `path` is read as a table. Words in `null` are read
        as empty fields, as by convert. `memory` limits the memory for stores and tables.

        >>> t.export("demo.tns")
        4000
        >>> r.predict_file("demo.tns", "residuals.csv").count
        4000
        >>> r.predict_file(t).count
        4000
        """
        where = None if isinstance(path, Stored) else self._names_from(store)
        return self._predict_rows(
            store_path(path), output, dialect=choose("format", FORMATS, format), index_base=first_index(index_base),
            columns=encoded("columns", columns), null=null_words(null), overwrite=overwrite, threads=threads, memory=memory,
            value_column=encoded("value_column", value_column), progress=progress,
            store=None if where is None else store_path(where))

    def _predict_rows(self, path: bytes, output: Any, *, threads: int = 0, memory: Any = None,
                      progress: Optional[Progress] = None, **members: Any) -> Prediction:
        """Implements predict_file; `members` are members of the library's struct."""
        run = Run()
        known = options(c.PredictTextOptions)
        for name, value in members.items():
            setattr(known, name, value)
        known.run.threads, known.run.memory_bytes = threads, size("memory", memory)
        run.watch(known, progress)
        ending = os.path.splitext(path_text(output, "output"))[1] if output is not None else ""
        known.form = {".csv": 1, ".npy": 2}.get(ending, 0)
        report = options(c.PredictReport)
        model = self._model()
        try:
            run.call("sluice_predict_text", model, path, None if output is None else path_bytes(output, "output"), byref(known),
                     byref(report))
        finally:
            LIB.sluice_model_destroy(model)
        compared = report.has_values and report.rows > report.unknown
        errors = (report.rmse, report.mae, report.largest, report.values_norm) if compared else (None,) * 4
        return Prediction(report.rows, report.index_base, *errors, report.unknown,
                          none_if_nan(report.deviance) if compared else None)

    def top(self, component: int, rows: int = 10, *, modes: Optional[Sequence[int]] = None, by: str = "absolute",
            store: Any = None, memory: Any = None) -> List[List[Row]]:
        """
        Returns the top rows of a component: one list for each mode of `modes`, largest rows first.

        The first component is 0. `by` is "absolute" to order rows by absolute value, or "value".
        Names are read from `store` (None: the factorized store).

        >>> [len(rows) for rows in r.top(0, rows=5)]
        [5, 5, 5]
        >>> first = r.top(0, rows=1, modes=[2])[0][0]
        >>> first.value == float(r.factors[2][first.index, 0])
        True
        """
        component = whole("component", component, -2**63)
        if not 0 <= component < self.rank:
            raise UsageError(f"no component {component}: there are {self.rank} components, counted from 0", field="component")
        out: List[List[Row]] = []
        for row in self._top_rows(component, rows, self._selected_modes(modes), by, store, memory):
            if row.place == 0:
                out.append([])
            out[-1].append(Row(row.index, row.value, row.name))
        return out

    def _selected_modes(self, modes: Optional[Sequence[int]]) -> List[int]:
        """Returns the modes as a list; None selects all modes."""
        selected = wholes("modes", range(len(self.factors)) if modes is None else modes, -2**63)
        if any(not 0 <= mode < len(self.factors) for mode in selected):
            raise UsageError(f"not all of the modes {selected} exist: there are {len(self.factors)} modes, counted from 0", field="modes")
        return selected

    def _names_from(self, store: Any) -> Any:
        """Returns the store with the index names: `store`, or the factorized store if it exists."""
        return store if store is not None else self.store if self.store and os.path.isdir(self.store) else None

    def _top_rows(self, component: int, rows: int, modes: List[int], by: str, store: Any, memory: Any = None) -> List["_TopRow"]:
        """Returns the top rows of a component in the modes `modes`."""
        signed = choose("by", ORDERS, by)
        rows = whole("rows", rows, 1)
        if not modes:
            return []
        where = self._names_from(store)
        known = options(c.TopOptions)
        known.component_count, known.mode_count = 1, len(modes)
        known.components, known.modes = (ctypes.c_uint32 * 1)(component), (ctypes.c_uint32 * len(modes))(*modes)
        known.rows, known.by_signed, known.run.memory_bytes = rows, signed, size("memory", memory)
        known.store = None if where is None else store_path(where)
        out: List[_TopRow] = []

        def on_row(_: Any, given: Any) -> int:
            row = given.contents
            out.append(_TopRow(row.component, row.weight, row.mode, row.title.decode() or None, row.index,
                               row.name.decode() or None, row.value, row.place))
            return 0

        if self.folder is not None:
            call("sluice_run_top", path_bytes(self.folder), byref(known), c.ON_TOP_ROW(on_row))
            return out
        model = self._model()
        try:
            call("sluice_model_top", model, byref(known), c.ON_TOP_ROW(on_row))
        finally:
            LIB.sluice_model_destroy(model)
        return out

    def export(self, output: Any, *, form: Optional[str] = None, store: Any = None, escape: bool = True,
               overwrite: bool = False, memory: Any = None, progress: Optional[Progress] = None) -> None:
        """
        Writes factors and weights for other programs.

        form      "matlab": one .mat file; "ktensor": text for the Tensor Toolbox and pyttb;
                  "splatt": text files whose names start with `output`; "csv": a folder of tables
                  with index names; "npy": a folder of .npy files; None: the ending of `output`
                  (.mat or .ktensor) determines the format
        store     store with the index names; None: the factorized store
        escape    False: write names to CSV as they are; True: an apostrophe precedes names that a
                  spreadsheet could run as a formula

        >>> r.export("demo.ktensor")
        >>> sluice.load("demo.ktensor").factors[0].tobytes() == r.factors[0].tobytes()
        True
        """
        known = options(c.ModelExportOptions)
        known.raw_names = not flag("escape", escape)
        known.form = choose("form", MODELS, form)
        known.overwrite, known.run.memory_bytes = overwrite, size("memory", memory)
        where = self._names_from(store)
        known.store = None if where is None else store_path(where)
        run = Run()
        run.watch(known, progress)
        if self.folder is not None and form != "npy":
            run.call("sluice_run_export", path_bytes(self.folder), path_bytes(output, "output"), byref(known))
            return
        model = self._model()
        try:
            run.call("sluice_model_export", model, path_bytes(output, "output"), byref(known))
        finally:
            LIB.sluice_model_destroy(model)

    def to_pandas(self, rows: Optional[int] = None, *, modes: Optional[Sequence[int]] = None, by: str = "absolute",
                  store: Any = None) -> Any:
        """
        Returns the factors as a tidy pandas.DataFrame: one row for each component, mode and index.

        The columns are component, weight (of the component), mode, title (of the mode), index, name
        (of the index) and value (element of the factor). Components, modes and indices count from
        0. With `rows`, the table has only the top rows of each component and mode, as in `top`;
        `modes`, `by` and `store` are as for `top`.

        >>> r.to_pandas(rows=5).shape                         # needs pandas
        (45, 7)
        """
        return pandas_table(tidy(self, rows, modes, by, store))

    def to_arrow(self, rows: Optional[int] = None, *, modes: Optional[Sequence[int]] = None, by: str = "absolute",
                 store: Any = None) -> Any:
        """
        Returns the table of to_pandas as a pyarrow.Table.

        polars reads it with polars.from_arrow, and DuckDB reads it by its name in a query.

        >>> r.to_arrow().num_rows                             # needs pyarrow
        270
        """
        tables = tidy(self, rows, modes, by, store)
        return package("pyarrow").concat_tables(arrow_tables(tables))

    def to_parquet(self, path: Any, rows: Optional[int] = None, *, modes: Optional[Sequence[int]] = None,
                   by: str = "absolute", store: Any = None, overwrite: bool = False) -> None:
        """
        Writes the table of to_pandas to a Parquet file, one row group for each component.

        Only the rows of one component are in memory. The package pyarrow writes the file.

        >>> r.to_parquet("demo.parquet")                      # needs pyarrow
        """
        write_parquet(tidy(self, rows, modes, by, store), path, overwrite)

    def to_pyttb(self) -> Any:
        """
        Returns a pyttb.ktensor with copies of the weights and factors.

        >>> r.to_pyttb().shape                                # needs pyttb
        (40, 30, 20)
        """
        return package("pyttb").ktensor([np.array(factor, dtype=float, order="F") for factor in self.factors], self.weights.copy())

    def to_tensorly(self) -> Any:
        """
        Returns a TensorLy CPTensor of NumPy arrays with copies of the weights and factors.

        >>> r.to_tensorly().rank                              # needs tensorly
        3
        """
        return package("tensorly.cp_tensor").CPTensor((self.weights.copy(), [np.array(factor, dtype=float) for factor in self.factors]))

    def to_torch(self) -> Tuple[Any, List[Any]]:
        """
        Returns (weights, factors) as torch tensors of doubles, with copies of the numbers.

        >>> weights, factors = r.to_torch()                   # needs torch
        """
        torch = package("torch")
        return torch.from_numpy(self.weights.copy()), [torch.from_numpy(np.array(factor, dtype=float)) for factor in self.factors]


def create_model(weights: Any, factors: Sequence[Any]) -> Any:
    """Creates a model of the library; the caller destroys it."""
    model = ctypes.c_void_p()
    held = [np.ascontiguousarray(factor, dtype=np.float64) for factor in factors]
    numbers = np.ascontiguousarray(weights, dtype=np.float64)
    pointers = (ctypes.c_void_p * len(held))(*(pointer(factor) for factor in held))
    dims = (ctypes.c_uint64 * len(held))(*(len(factor) for factor in held))
    call("sluice_model_create", ctypes.c_uint32(len(held)), dims, ctypes.c_uint32(len(numbers)), pointer(numbers),
         pointers, byref(model))
    return model


def load_model(path: Any, store: Any) -> Any:
    """Loads a model of the library from a run folder or an exported file; the caller destroys it."""
    given = model_of(path)
    if given is not None:
        return create_model(*given)
    model = ctypes.c_void_p()
    call("sluice_model_load", store if store is not None else ctypes.c_void_p(), path_bytes(path), byref(model))
    return model


def load_result(path: Any, handle: Any = None, store: Optional[str] = None, mapped: bool = True) -> Result:
    """Loads a result; with the open store `handle`, its factors must have the shape of the store."""
    model = load_model(path, handle)
    try:
        return Result(model, (), os.fsdecode(path) if mapped and os.path.isdir(path) else None, store)
    finally:
        LIB.sluice_model_destroy(model)


def report_options(components: int, rows: int, store: Any, overwrite: bool, memory: Any) -> Any:
    """Returns the library's struct with the options of a report."""
    known = options(c.ReportOptions)
    known.components, known.rows = whole("components", components, 1, 2**32 - 1), whole("rows", rows, 1, 2**32 - 1)
    known.overwrite, known.run.memory_bytes = overwrite, size("memory", memory)
    known.store = None if store is None else store_path(store)
    return known


def save(model: Any, path: Any) -> None:
    """Writes the weights and factors of the library's model as .npy files."""
    call("sluice_model_save", model, ctypes.c_int(MODELS["npy"]), path_bytes(path))
