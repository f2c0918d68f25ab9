"""Computes MTTKRPs, products, decompositions and plans from stores."""

from __future__ import annotations

import ctypes
import math
import os
import tempfile
from ctypes import byref, c_uint32, c_uint64, c_void_p
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, Union

from . import _structs as c
from ._arguments import flag, function, is_bool, items, path_bytes, path_text, real, whole, wholes, wrong
from ._errors import InputError, Interrupted, UsageError
from ._interop import model_of
from ._library import LIB, Progress, Run, call, options, pointer
from ._numpy import np
from ._options import (BIASES, CODECS, CONSISTENCIES, LOSSES, METHODS, RELABELS, Device, Fibers, PathLike, choose, compute, real_matrix,
                       set_fibers, set_sort_limits)
from ._operator import TtvOperator
from ._result import Iteration, Result, load_result, save
from ._stored import Stored
from ._sweep import Sweep, SweepRun, run_sweep

# A number for all modes, or a number for each of some modes.
PerMode = Union[float, Dict[int, float]]
# True means all modes.
Modes = Union[bool, Sequence[int]]


def _set_part(known: Any, part: Optional[Tuple[int, int]]) -> None:
    """Sets which part of a product is computed."""
    if part is not None:
        numbers = wholes("part", part, 0, 2**32 - 1)
        if len(numbers) != 2 or numbers[0] >= numbers[1]:
            raise UsageError(f"part {part!r}: expected (i, n) with i below n, such as (0, 3) for the first of three")
        known.part, known.parts = numbers


class Tensor(Stored):
    """
    An open store. The first mode is 0. Common options of the methods:

    memory          memory budget of the process, in bytes or as text such as "2GiB" or "50%"; None:
                    80 % of memory
    threads         number of threads; 0: all processors
    precision       type of factors and matrices, "f64" or "f32"; sums are f64 (the record of a run
                    states their type as "sums")
    io              how blocks are read: "auto", "uring", "pread" or "mmap"
    deterministic   compute the same bits with any number of threads, I/O method and memory
    device          "cpu", "gpu", or "auto": a GPU if one supports the call
    device_memory   memory budget of each GPU, as `memory`; None: most of its free memory
    devices         list of GPU numbers, or number of CPU devices (groups of threads) with `threads`
                    threads each
    split           division of the work between devices: "partitions" (of sorted layouts) or "nnz"
                    (consecutive blocks); between CPU and GPU: "static=F" (F from 0 to 1: the GPU's
                    fraction of the nonzeros, such as "static=0.7"), "adaptive" or "queue"
    streams         number of streams per GPU; 0: automatic
    pin             bind threads to processors: "auto" (if there are several NUMA nodes), "never" or
                    "always"
    schedule        order of blocks in a pass: "auto", "largest" (largest first) or "file"
    cache           keep blocks in memory between passes
    io_limit        maximum bytes read per second
    progress        called regularly with the phase, the units done and the units in total (None:
                    unknown); if it returns True, the call ends with SluiceError
    fibers          in a store that is written: the mode whose fibers are kept together, (mode,
                    bits) to keep pieces of 2^bits indices together, "none", or "auto" (the nonzeros
                    determine the mode)

    Ctrl-C ends every call promptly with KeyboardInterrupt. No incomplete output remains, except for
    files from which the same call resumes.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000, rank=3)
    >>> t
    <sluice.Tensor 40 x 30 x 20, 4000 nonzeros, demo.slc>
    """

    def plan(self, rank: int, *, memory: Any = None, threads: int = 0, precision: str = "f64", io: str = "auto",
             deterministic: bool = False, device: str = "cpu", device_memory: Any = None, split: Optional[str] = None,
             devices: Union[None, int, Sequence[int]] = None, streams: int = 0, mode: Optional[int] = None,
             copies: str = "auto", layouts: str = "auto", passes: str = "auto", pin: str = "auto",
             schedule: str = "auto", cache: bool = True, io_limit: Any = None, device_name: Optional[str] = None,
             loss: str = "ls", observed: bool = False, biases: str = "auto", inner: int = 10, huber: float = 1,
             method: str = "auto", nonnegative: Modes = False, simplex: Modes = False, l1: PerMode = 0,
             smooth: PerMode = 0, reg: PerMode = 0, bounds: Any = None) -> Dict[str, Any]:
        """
        Returns the plan of cpd or, if `mode` is not None, of an MTTKRP: bytes in memory and bytes read.

        `loss`, `method`, constraints and penalties are those of cpd.

        Raises BudgetError if the budget is too small.

        device_name   with device="gpu", the GPU to plan for; this machine need not have it: "a100",
                      "a100-80gb", "h100", "h200", "b200" or "l40s". The plan uses device_memory or,
                      if this is None, nine tenths of the GPU's memory. None: the GPU of this
                      machine; if it has no GPU and device_memory is given, an h100

        >>> plan = t.plan(16, memory="1GiB")
        >>> plan["total_bytes"] <= plan["budget_bytes"] == 2**30
        True
        """
        known = options(c.CpdOptions if mode is None else c.MttkrpOptions)
        devices_asked = compute(known, Run(), memory, threads, precision, io, deterministic,
                                Device(device, device_memory, split, devices, streams, device_name), copies=copies,
                                layouts=layouts, passes=passes, pin=pin, schedule=schedule, cache=cache, io_limit=io_limit)
        out, of_devices = options(c.Plan), options(c.DevicePlan)
        devices_asked.plan = ctypes.pointer(of_devices)
        if mode is None:
            self._loss(known, loss, observed, biases, inner, huber)
            self._constraints(known, method, nonnegative, simplex, l1, smooth, reg, bounds)
            call("sluice_cpd_plan", self._open(), c.whole(c_uint32, "rank", rank), byref(known), byref(out))
        else:
            call("sluice_mttkrp_plan", self._open(), c_uint32(self._mode(mode)), c.whole(c_uint32, "rank", rank), byref(known), byref(out))
        plan = {name: getattr(out, name) for name, *_ in out._fields_ if name != "struct_bytes"}
        plan.update({"device_" + name: getattr(of_devices, name) for name, *_ in of_devices._fields_ if name != "struct_bytes"})
        return plan | {"passes": math.ceil(out.passes), "mean_passes": out.passes, "device_name": of_devices.name.decode()}

    def mttkrp(self, factors: Sequence[Any], mode: int, *, weights: Any = None, memory: Any = None, threads: int = 0,
               precision: str = "f64", io: str = "auto", deterministic: bool = False, device: str = "cpu",
               device_memory: Any = None, split: Optional[str] = None,
               devices: Union[None, int, Sequence[int]] = None, streams: int = 0, layouts: str = "auto",
               pin: str = "auto", schedule: str = "auto", cache: bool = True, io_limit: Any = None,
               part: Optional[Tuple[int, int]] = None, progress: Optional[Progress] = None) -> np.ndarray:
        """
        Returns an MTTKRP, an array of shape[mode] x rank. factors[mode] is ignored. Column r of the
        result is multiplied by weights[r].

        part=(i, n) computes the rows of part i of n (from 0) and reads only the blocks that these
        rows need; the other rows are 0. The whole result is the sum of all parts.

        >>> t.mttkrp([np.ones((size, 2)) for size in t.shape], 0).shape
        (40, 2)
        """
        mode, factors = self._mode(mode), items("factors", factors, "a list of matrices")
        if len(factors) != self.order:
            raise UsageError(f"{len(factors)} factors for {self.order} modes")
        held = [None if n == mode else real_matrix(factors[n], self.shape[n], f"the factor of mode {n}")
                for n in range(self.order)]
        ranks = {matrix.shape[1] for matrix in held if matrix is not None}
        if not ranks:  # a single mode: the sum of its only column
            rows = len(factors[mode]) if np.ndim(factors[mode]) == 2 else self.shape[mode]
            ranks = {real_matrix(factors[mode], rows, f"the factor of mode {mode}").shape[1]}
        if len(ranks) != 1:
            raise UsageError(f"factors have {sorted(ranks)} columns; they must have the same number")
        rank = ranks.pop()
        run = Run()
        known = options(c.MttkrpOptions)
        lambdas = None if weights is None else real_matrix(np.reshape(weights, (-1, 1)), rank, "the list of weights")
        known.weights = None if lambdas is None else pointer(lambdas)
        compute(known, run, memory, threads, precision, io, deterministic,
                Device(device, device_memory, split, devices, streams), progress, layouts=layouts, pin=pin,
                schedule=schedule, cache=cache, io_limit=io_limit)
        _set_part(known, part)
        pointers = (c_void_p * self.order)(*(pointer(matrix) for matrix in held))
        out = np.empty((self.shape[mode], rank))
        run.call("sluice_mttkrp", self._open(), c_uint32(mode), c_uint32(rank), pointers, pointer(out), c_uint64(out.size),
                 byref(known))
        return out

    def ttv(self, vectors: Union[Dict[int, Any], Sequence[Optional[Any]]], output: Optional[PathLike] = None, *,
            codec: str = "packed", relabel: str = "none", fibers: Fibers = "auto", sort: bool = False,
            overwrite: bool = False, memory: Any = None, threads: int = 0, temp_folder: Optional[PathLike] = None,
            io: str = "auto", schedule: str = "auto", io_limit: Any = None, device: str = "cpu", device_memory: Any = None,
            split: Optional[str] = None, streams: int = 0, block_bytes: Any = None, max_temp: Any = None,
            part: Optional[Tuple[int, int]] = None, progress: Optional[Progress] = None) -> Union["Tensor", float]:
        """
        Multiplies by vectors in one or more modes.

        `vectors` is {mode: vector}, or a list with None for the modes that remain. Writes the result
        to the store `output` and opens this store. If no mode remains, `output` must be None, and
        the result is returned as a number.

        part=(i, n) computes part i of n of the result, from 0, and reads only the blocks that it
        needs; sluice.join joins all parts.

        >>> t.ttv({2: np.ones(20)}, "sums.slc").shape
        (40, 30)
        >>> total = t.ttv([np.ones(size) for size in t.shape])
        >>> np.allclose(total, sluice.open("sums.slc").ttv([np.ones(40), np.ones(30)]))
        True
        """
        given = vectors if isinstance(vectors, dict) else {
            n: v for n, v in enumerate(items("vectors", vectors, "{mode: vector}, or a list")) if v is not None}
        held: List[Optional[np.ndarray]] = [None] * self.order
        for mode, vector in given.items():
            mode = self._mode(mode)
            held[mode] = real_matrix(np.reshape(vector, (-1, 1)), self.shape[mode], f"the vector of mode {mode}")
        run = Run()
        known = options(c.TtvOptions)
        compute(known, run, memory, threads, "f64", io, False, Device(device, device_memory, split, None, streams),
                progress, schedule=schedule, io_limit=io_limit)
        known.output.codec, known.output.relabel = choose("codec", CODECS, codec), choose("relabel", RELABELS, relabel)
        known.sort = sort
        _set_part(known, part)
        set_fibers(known, fibers)
        set_sort_limits(known, block_bytes, temp_folder, max_temp)
        known.output.overwrite = overwrite
        report = options(c.TtvReport)
        pointers = (c_void_p * self.order)(*(pointer(vector) for vector in held))
        run.call("sluice_ttv", self._open(), pointers, path_bytes(output, "output") if output is not None else None,
                 byref(known), byref(report))
        return Tensor(output) if output is not None else report.number

    def ttv_operator(self, mode: int, *, memory: Any = None, threads: int = 0,
                     progress: Optional[Progress] = None) -> TtvOperator:
        """
        Reads the tensor into memory, for products of a mode with many vectors.

        Takes up to 56 bytes of memory per nonzero while it reads and sorts (80 for large modes), and
        about a third of this afterwards. `threads` is also the number of threads of each product.

        >>> with t.ttv_operator(2) as op:
        ...     sums = [op @ np.full(20, factor) for factor in (1.0, 2.0)]
        >>> np.allclose(2 * sums[0], sums[1])
        True
        """
        return TtvOperator(self._open(), self._mode(mode), threads, memory, progress)

    def ttm(self, matrix: Any, mode: int, output: PathLike, *, memory: Any = None, threads: int = 0,
            precision: str = "f64", nonzeros: bool = False, temp_folder: Optional[PathLike] = None, io: str = "auto",
            pin: str = "auto", io_limit: Any = None, device: str = "cpu", device_memory: Any = None,
            split: Optional[str] = None, streams: int = 0, part: Optional[Tuple[int, int]] = None,
            progress: Optional[Progress] = None) -> Tuple[np.ndarray, np.ndarray]:
        """
        Multiplies by a matrix of shape[mode] rows in one mode.

        Writes the result to the folder `output`. Returns memory-mapped arrays (coords, rows):
        coords[f] has the indices of fiber f in the other modes, and rows[f] has the result for fiber
        f, one number per column of the matrix. part=(i, n) is that of ttv; the mode needs a fiber
        layout.

        >>> coords, rows = t.ttm(np.ones((20, 4)), 2, "product")
        >>> coords.shape[1], rows.shape[1]
        (2, 4)
        """
        mode = self._mode(mode)
        held = real_matrix(matrix, self.shape[mode], "the matrix")
        run = Run()
        known = options(c.TtmOptions)
        compute(known, run, memory, threads, precision, io, False, Device(device, device_memory, split, None, streams),
                progress, pin=pin, io_limit=io_limit)
        known.nonzeros = nonzeros
        _set_part(known, part)
        if temp_folder is not None:
            known.temp_folder = path_bytes(temp_folder, "temp_folder")
        run.call("sluice_ttm", self._open(), c_uint32(mode), c_uint32(held.shape[1]), pointer(held),
                 path_bytes(output, "output"), byref(known), None)
        return tuple(np.load(os.path.join(os.fsdecode(output), name), mmap_mode="r")
                     for name in ("coords.npy", "rows.npy"))  # type: ignore[return-value]

    def cpd(self, rank: int, iters: int = 50, seed: int = 0, *, loss: str = "ls", observed: bool = False,
            biases: str = "auto", tol: Optional[float] = None, max_seconds: float = 0,
            reg: PerMode = 0, inner: int = 10, huber: float = 1, method: str = "auto", nonnegative: Modes = False,
            simplex: Modes = False, l1: PerMode = 0, smooth: PerMode = 0, bounds: Any = None, init: Any = None,
            mode_order: Optional[Sequence[int]] = None, callback: Optional[Callable[[Iteration], Any]] = None,
            output: Optional[PathLike] = None, checkpoint: Optional[PathLike] = None,
            checkpoint_interval: Optional[float] = None, restart: bool = False, memory: Any = None, threads: int = 0,
            precision: str = "f64", io: str = "auto", deterministic: bool = False, copies: str = "auto",
            layouts: str = "auto", passes: str = "auto", device: str = "cpu", device_memory: Any = None,
            split: Optional[str] = None, devices: Union[None, int, Sequence[int]] = None, streams: int = 0,
            holdout: float = 0, holdout_seed: int = 0, pin: str = "auto", schedule: str = "auto", cache: bool = True,
            io_limit: Any = None, progress: Optional[Progress] = None) -> Result:
        """
        Computes a CP decomposition: by alternating least squares or, with constraints or another
        loss, by other methods.

        loss         what the model minimizes: "ls" (squared errors), "poisson" (counts; the model
                     has no negative numbers) or, with `observed`, also "bernoulli" (0 and 1; the
                     model is the log-odds), "gamma" (values above 0) or "huber" (linear for
                     residuals whose magnitude exceeds `huber`)
        observed     True: only the cells that the store lists count, the others are unknown (a
                     completion, as for ratings); False: the others are 0
        biases       with `observed`, additional components after the `rank` others: a bias of each
                     mode, and the mean ("all"), only the mean ("mean"), "none", or "auto" (all, or
                     none if the model has no negative numbers)
        inner        maximum number of inner iterations of a row, for "mu", "pdnr", "ccd" and
                     "newton"
        method       algorithm: "als" (no constraints), "hals" (all constraints except simplex and
                     smooth), "admm" (all constraints), "mu" or "pdnr" (poisson), "als", "ccd" or
                     "newton" (with `observed`), or "auto" (the first that supports the loss and
                     the constraints; "ccd" for completions with "ls" and a rank above 192)
        nonnegative  True, or the modes whose factors have no negative numbers
        simplex      True, or the modes with rows on the simplex (no negative numbers, sum 1). The
                     columns of these factors are not normalized
        l1           penalty: l1 times the sum of the magnitudes of a factor; one number for all modes,
                     or a dict with a number for each mode
        smooth       penalty: smooth times the sum of the squared differences of consecutive rows of a
                     factor, for example in a mode of times; one number for all modes, or a dict
        reg          regularization: number that is added to the diagonal of the matrix of the least
                     squares of each mode; one number for all modes, or a dict. With `observed`, 0
                     means that each iteration chooses the number in proportion to the model's error
        bounds       (smallest, largest) number in all factors, or a dict with a pair for each mode.
                     The columns of a factor with bounds are not normalized
        init         initial factors: a folder with mode-1.npy, .., a .mat or .ktensor file that
                     export wrote, one matrix per mode, a Result, a pyttb.ktensor or a CPTensor of
                     TensorLy (weights included); None: uniform random numbers, which `seed`
                     determines. If modes have grown since the model was computed, new rows start
                     random
        tol          the run stops after three consecutive iterations that change the fit by less
                     than `tol` times the smaller of the fit and 1 - fit; with the loss "poisson",
                     when the KKT violation is at most `tol`; 0: never; None: 1e-5, or 1e-4 for
                     "poisson"
        callback     called with an Iteration after each iteration; the run stops if it returns True
        output       folder to which a complete run writes mode-1.npy, .. and lambda.npy; the factors
                     of the result are then memory-mapped from these files
        checkpoint   folder for checkpoints; None: `output`. After any interruption, including Ctrl-C
                     and kill -9, the same call or `sluice cpd --checkpoint` resumes from the
                     checkpoint. A call also resumes from a checkpoint of the command. The
                     checkpoint is removed when the run is complete.
        holdout      fraction of the nonzeros to hold out, up to 0.5. A hash of the indices and
                     `holdout_seed` selects the nonzeros. The error on them is in each Iteration
                     and in `holdout` of the result

        Raises Interrupted on Ctrl-C, with the partial result.

        >>> r = t.cpd(3, iters=10, output="demo.r3")
        >>> warm = t.cpd(3, iters=10, init=r)
        >>> warm.fit >= r.fit
        True
        """
        run = Run()
        known = options(c.CpdOptions)
        compute(known, run, memory, threads, precision, io, deterministic,
                Device(device, device_memory, split, devices, streams), progress, copies=copies, layouts=layouts,
                passes=passes, pin=pin, schedule=schedule, cache=cache, io_limit=io_limit)
        self._limits(known, iters, tol)
        known.seed = seed
        function("callback", callback)
        known.max_seconds, known.restart = max_seconds, restart
        self._loss(known, loss, observed, biases, inner, huber)
        self._constraints(known, method, nonnegative, simplex, l1, smooth, reg, bounds)
        known.holdout, known.holdout_seed = holdout, holdout_seed
        self._order(known, mode_order)
        kept = checkpoint if checkpoint is not None else output
        if kept is not None:
            known.checkpoint_folder = path_bytes(kept, "output" if checkpoint is None else "checkpoint")
        if checkpoint_interval is not None:
            # In the C interface, zero means the default interval, and a negative number means after every update.
            known.checkpoint_seconds = real("checkpoint_interval", checkpoint_interval, 0) or -1
        with tempfile.TemporaryDirectory(prefix="sluice-init-") as folder:
            if init is not None:
                known.init_folder = path_bytes(self._init_folder(init, folder))
            return self._cpd(run, rank, known, callback, output, kept)

    @staticmethod
    def _limits(known: c.CpdOptions, iters: int, tol: Optional[float]) -> None:
        """Sets the stopping criteria; in the C interface, zero means the default."""
        known.iterations = iters
        known.start_only = known.iterations == 0
        known.tolerance = 0 if tol is None else real("tol", tol, 0) or -1

    @staticmethod
    def _loss(known: c.CpdOptions, loss: str, observed: bool, biases: str, inner: int, huber: float) -> None:
        """Sets loss, unlisted cells and biases."""
        known.loss, known.unlisted = choose("loss", LOSSES, loss), int(flag("observed", observed))
        known.biases = choose("biases", BIASES, biases)
        known.inner, known.huber = inner, real("huber", huber, 0)

    def _per_mode(self, name: str, value: Any, rest: float) -> List[float]:
        """Returns a number for each mode: `value`, or its items if it is a dict."""
        if not isinstance(value, dict):
            return [real(name, value)] * self.order
        modes = {whole(f"a mode of {name}", mode, 0, self.order - 1): real(name, one) for mode, one in value.items()}
        return [modes.get(n, rest) for n in range(self.order)]

    def _mode_bits(self, name: str, value: Modes) -> int:
        """Returns a number with a bit for each mode of `value`."""
        if is_bool(value):
            return (1 << self.order) - 1 if value else 0
        return sum(1 << n for n in set(wholes(name, value, 0, self.order - 1)))

    def _bounds(self, known: c.CpdOptions, bounds: Any) -> None:
        """Sets the bounds: a pair, or a dict with a pair for each of some modes."""
        pairs = bounds if isinstance(bounds, dict) else dict.fromkeys(range(self.order), bounds)
        limits: List[Dict[int, float]] = [{}, {}]
        for mode, pair in pairs.items():
            both = items("bounds", pair, "a pair of numbers, or a dict with a pair for each mode")
            if len(both) != 2:
                raise wrong("bounds", pair, "a pair of numbers")
            for limit, number in zip(limits, both):
                limit[mode] = real("bounds", number)
        numbers = c.F64 * self.order
        known.low = numbers(*self._per_mode("bounds", limits[0], -math.inf))
        known.high = numbers(*self._per_mode("bounds", limits[1], math.inf))

    def _constraints(self, known: c.CpdOptions, method: str, nonnegative: Modes, simplex: Modes, l1: PerMode,
                     smooth: PerMode, reg: PerMode, bounds: Any) -> None:
        """Sets the algorithm, constraints and penalties."""
        numbers = c.F64 * self.order
        known.method = choose("method", METHODS, method)
        known.nonnegative = self._mode_bits("nonnegative", nonnegative)
        known.simplex = self._mode_bits("simplex", simplex)
        known.l1 = numbers(*self._per_mode("l1", l1, 0))
        known.smooth = numbers(*self._per_mode("smooth", smooth, 0))
        if isinstance(reg, dict):
            known.regularizations = numbers(*self._per_mode("reg", reg, 0))
        else:
            known.regularization = reg
        if bounds is not None:
            self._bounds(known, bounds)

    def _order(self, known: c.CpdOptions, mode_order: Optional[Sequence[int]]) -> None:
        """Sets the order in which modes are updated."""
        if mode_order is None:
            return
        order = wholes("mode_order", mode_order)
        if sorted(order) != list(range(self.order)):
            raise UsageError(f"mode_order {order} is not a permutation of {self.order} modes, counted from 0", field="mode_order")
        known.mode_order_count = self.order
        known.mode_order[:self.order] = order

    def _init_folder(self, init: Any, folder: str) -> PathLike:
        """Returns the folder with the initial factors. Writes factors that are not in a run folder to `folder`."""
        if isinstance(init, Result) and init.folder is not None:
            return init.folder
        given = model_of(init)
        if given is None and isinstance(init, (str, bytes, os.PathLike)):
            return os.fsdecode(init)
        weights, factors = given if given is not None else (None, items("init", init, "a folder, a file, a model or a list of matrices"))
        if len(factors) != self.order:
            raise UsageError(f"{len(factors)} initial matrices for {self.order} modes")
        for n, matrix in enumerate(factors):
            rows = self.shape[n] if given is None else len(matrix)
            np.save(os.path.join(folder, f"mode-{n + 1}.npy"), real_matrix(matrix, rows, f"the initial matrix of mode {n}"))
        if weights is not None:
            np.save(os.path.join(folder, "lambda.npy"), weights)
        return folder

    def _cpd(self, run: Run, rank: int, known: c.CpdOptions, callback: Optional[Callable[[Iteration], Any]],
             output: Optional[PathLike], kept: Optional[PathLike]) -> Result:
        fits: List[float] = []

        def on_iteration(_: Any, given: Any) -> int:
            iteration = Iteration._of(given.contents)
            fits.append(iteration.fit)
            return int(callback is not None and run.ask(callback, iteration))

        def on_resume(_: Any, given: Any) -> None:
            fits[:] = [given.contents.past[i].contents.fit for i in range(given.contents.past_count)]

        known.iteration = c.ON_ITERATION(on_iteration)
        known.resumed = c.ON_CHECKPOINT(on_resume)
        model = c_void_p()
        try:
            try:
                run.call("sluice_cpd", self._open(), c.whole(c_uint32, "rank", rank), byref(known), byref(model))
            except KeyboardInterrupt:
                result = Result(model, fits, store=self.path) if model else None
                raise Interrupted(result, os.fsdecode(kept) if kept is not None else None) from None
            info = options(c.ModelInfo)
            call("sluice_model_get_info", model, byref(info))
            if output is None or info.stop_reason > 1:
                result = Result(model, fits, store=self.path)
            else:
                save(model, output)
                result = Result(model, fits, os.fsdecode(output), self.path)
            if result.complete and kept is not None and known.start_only == 0:
                call("sluice_checkpoint_remove", path_bytes(kept))
            return result
        finally:
            LIB.sluice_model_destroy(model)

    def sweep(self, ranks: Sequence[int], runs: int = 1, *, output: Optional[PathLike] = None, iters: int = 50,
              seed: int = 0, loss: str = "ls", observed: bool = False, biases: str = "auto",
              tol: Optional[float] = None, reg: PerMode = 0, inner: int = 10, huber: float = 1,
              method: str = "auto", nonnegative: Modes = False, simplex: Modes = False, l1: PerMode = 0,
              smooth: PerMode = 0, bounds: Any = None, holdout: float = 0, holdout_seed: int = 0,
              keep_all: bool = False, consistency: str = "auto", restart: bool = False, max_seconds: float = 0,
              callback: Optional[Callable[[SweepRun], Any]] = None, memory: Any = None, threads: int = 0,
              precision: str = "f64", io: str = "auto", deterministic: bool = False, device: str = "cpu",
              device_memory: Any = None, split: Optional[str] = None, devices: Union[None, int, Sequence[int]] = None,
              streams: int = 0, mode_order: Optional[Sequence[int]] = None, copies: str = "auto", layouts: str = "auto",
              passes: str = "auto", pin: str = "auto", schedule: str = "auto", cache: bool = True,
              io_limit: Any = None) -> Sweep:
        """
        Compares ranks: `runs` decompositions per rank, with the seeds `seed`, `seed` + 1, ..

        The result has the fits of all runs, for each rank the agreement of its runs and the core
        consistency of its best run, and a suggested rank.

        output        folder for the results and sweep.json; the same call or the command resumes
                      from it. None: a temporary folder
        keep_all      keep the factors of all runs, not only of the best run of each rank
        consistency   compute the core consistency: "auto" (if it needs a few minutes at most),
                      "always" or "never"
        callback      called with a SweepRun after each completed run; the sweep ends if it returns
                      True

        Raises SluiceError with the status "interrupted" or "time-limit" if a callback or
        `max_seconds` ended the sweep.

        >>> s = t.sweep([1, 2, 3], runs=2, iters=5)
        >>> [rank.rank for rank in s.ranks], len(s.runs)
        ([1, 2, 3], 6)
        """
        run = Run()
        each = options(c.CpdOptions)
        compute(each, run, memory, threads, precision, io, deterministic,
                Device(device, device_memory, split, devices, streams), copies=copies, layouts=layouts,
                passes=passes, pin=pin, schedule=schedule, cache=cache, io_limit=io_limit)
        self._order(each, mode_order)
        self._limits(each, iters, tol)
        self._loss(each, loss, observed, biases, inner, huber)
        self._constraints(each, method, nonnegative, simplex, l1, smooth, reg, bounds)
        each.holdout, each.holdout_seed = holdout, holdout_seed
        known = options(c.SweepOptions)
        function("callback", callback)
        runs = whole("runs", runs, 1, 2**32 - 1)
        known.runs, known.seed, known.keep_all, known.restart = runs, seed, keep_all, restart
        known.consistency = choose("consistency", CONSISTENCIES, consistency)
        known.max_seconds, known.cpd = max_seconds, ctypes.pointer(each)
        with tempfile.TemporaryDirectory(prefix="sluice-sweep-") as temporary:
            folder = temporary if output is None else path_text(output, "output")
            return run_sweep(run, self._open(), folder, wholes("ranks", ranks, 0, 2**32 - 1), known, callback,
                             output is not None, lambda name: self._load(os.path.join(folder, name), output is not None))

    def load(self, path: PathLike) -> Result:
        """
        Loads the factors of this tensor that cpd or the command wrote to a run folder, or a .mat or
        .ktensor file that export wrote.

        The factors of a run folder are memory-mapped; `fit`, `stop` and `iterations` are those of
        run.json. A file has no record: `fit` is NaN.

        >>> r = t.cpd(3, 10, output="demo.r3")
        >>> t.load("demo.r3").fit == r.fit
        True
        """
        return self._load(path, True)

    def _load(self, path: PathLike, mapped: bool) -> Result:
        result = load_result(path, self._open(), self.path, mapped)
        shape = tuple(len(factor) for factor in result.factors)
        if shape != self.shape:
            raise InputError(f"{os.fsdecode(path)}: the factors have {shape} rows; expected {self.shape}, the mode sizes of {self.path}",
                             "input", file=os.fsdecode(path))
        result.norm = self.norm
        return result


def open(path: PathLike) -> Tensor:
    """
    Opens a store. Raises InputError if `path` is not a store, StorageError if it is damaged.

    >>> t = sluice.generate("demo.slc", (40, 30, 20), 4000)
    >>> with sluice.open("demo.slc") as t:
    ...     t.nnz
    4000
    """
    return Tensor(path)
