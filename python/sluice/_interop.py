"""Models as the objects and files of other packages, in both directions."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Tuple

from ._arguments import flag, path_bytes, path_text, whole
from ._errors import InputError, StorageError, UsageError
from ._numpy import np
from ._options import ORDERS, choose, plain
from ._stored import Stored

if TYPE_CHECKING:
    from ._result import Result

# Columns of a tidy table of factors, with their NumPy types.
COLUMNS = {"component": "int32", "weight": "float64", "mode": "int32", "title": "object", "index": "int64", "name": "object",
           "value": "float64"}
MODEL_ENDINGS = (".mat", ".ktensor")


def store_path(given: Any) -> bytes:
    """Returns the path of a Tensor, or a path, as bytes."""
    return path_bytes(given.path if isinstance(given, Stored) else given, "store")


def package(name: str) -> Any:
    """Imports an optional package; the error names the command that installs it."""
    try:
        return importlib.import_module(name)
    except ImportError as fault:
        top = name.partition(".")[0]
        raise ImportError(f"this call needs the package {top}, which cannot be imported ({fault}); "
                          f"install it: pip install {top}", name=top) from None


def _whole_component(result: "Result", component: int, modes: Sequence[int], names: Dict[int, Any],
                     titles: Sequence[str]) -> Dict[str, np.ndarray]:
    """Returns all rows of a component as columns."""
    sizes = [len(result.factors[mode]) for mode in modes]
    none = [np.full(size, None, dtype=object) for size in sizes]
    return {"component": np.full(sum(sizes), component, dtype=np.int32),
            "weight": np.full(sum(sizes), result.weights[component]),
            "mode": np.repeat(np.array(modes, dtype=np.int32), sizes),
            "title": np.repeat(np.array([titles[mode] or None for mode in modes], dtype=object), sizes),
            "index": np.concatenate([np.arange(size) for size in sizes]).astype(np.int64),
            "name": np.concatenate([names.get(mode, none[at]) for at, mode in enumerate(modes)]),
            "value": np.concatenate([np.asarray(result.factors[mode][:, component], dtype=np.float64) for mode in modes])}


def titles_and_names(result: "Result", modes: Sequence[int], store: Any) -> Tuple[Sequence[str], Dict[int, np.ndarray]]:
    """Returns the titles of all modes, and the names of `modes` (None for an index without a name)."""
    where = result._names_from(store)
    if where is None:
        return [""] * len(result.factors), {}
    names = {}
    with Stored(where) as found:
        for mode in modes:
            given = found.labels(mode)
            if given is not None:
                given[given == ""] = None
                names[mode] = given
        return found.titles, names


def tidy(result: "Result", rows: Optional[int], modes: Optional[Sequence[int]], by: str, store: Any) -> Iterator[Dict[str, np.ndarray]]:
    """Returns a tidy table for each component: the columns COLUMNS, and a row for each row of a factor."""
    selected = result._selected_modes(modes)
    choose("by", ORDERS, by)
    if rows is not None:
        whole("rows", rows, 1)
    if store is not None:
        store_path(store)
    return _tidy_parts(result, rows, selected, by, store)


def _tidy_parts(result: "Result", rows: Optional[int], selected: List[int], by: str, store: Any) -> Iterator[Dict[str, np.ndarray]]:
    if rows is not None:
        for component in range(result.rank):
            found = list(result._top_rows(component, rows, selected, by, store))
            yield {name: np.array([getattr(row, name) for row in found], dtype=kind) for name, kind in COLUMNS.items()}
        return
    titles, names = titles_and_names(result, selected, store)
    for component in range(result.rank):
        yield _whole_component(result, component, selected, names, titles)


def pandas_table(tables: Iterator[Dict[str, np.ndarray]]) -> Any:
    """Returns the tables as one data frame."""
    pandas = package("pandas")
    parts = list(tables)
    return pandas.DataFrame({name: np.concatenate([part[name] for part in parts]) for name in COLUMNS})


def arrow_tables(tables: Iterator[Dict[str, np.ndarray]]) -> Iterator[Any]:
    """Yields the tables as tables of pyarrow."""
    arrow = package("pyarrow")
    kinds = {"object": arrow.string(), "int32": arrow.int32(), "int64": arrow.int64(), "float64": arrow.float64()}
    for part in tables:
        yield arrow.table({name: arrow.array(part[name], type=kinds[kind]) for name, kind in COLUMNS.items()})


def write_parquet(tables: Iterator[Dict[str, np.ndarray]], path: Any, overwrite: bool) -> None:
    """Writes the tables to a Parquet file, one row group each; the file is complete or absent."""
    output = path_text(path)
    replace = flag("overwrite", overwrite)
    parquet = package("pyarrow.parquet")
    if os.path.exists(output) and not replace:
        raise StorageError(f"{output}: the file exists; remove it, or replace it (overwrite)", "io", file=output, field="overwrite")
    part, writer = output + ".part", None
    try:
        for table in arrow_tables(tables):
            writer = writer or parquet.ParquetWriter(part, table.schema)
            writer.write_table(table, row_group_size=max(1, len(table)))
        if writer is not None:
            writer.close()
        os.replace(part, output)
    except BaseException:
        if writer is not None:
            writer.close()
        if os.path.exists(part):
            os.remove(part)
        raise


def _read_ktensor(path: str) -> Tuple[np.ndarray, List[np.ndarray]]:
    """Reads a ktensor in the text format of the Tensor Toolbox."""
    place = "the first line"

    def lines(file: Any) -> Iterator[str]:
        nonlocal place
        for number, line in enumerate(file, 1):
            place = f"line {number}"
            if line.strip():
                yield line

    with open(path, encoding="ascii", errors="replace") as file:
        given = lines(file)
        try:
            if next(given).split() != ["ktensor"]:
                raise ValueError("the first line is not: ktensor")
            order = int(next(given))
            shape = [int(text) for text in next(given).split()]
            rank = int(next(given))
            weights = np.array(next(given).split(), dtype=np.float64)
            if len(shape) != order or len(weights) != rank:
                raise ValueError(f"{len(shape)} mode sizes and {len(weights)} weights; expected {order} and {rank}")
            factors = []
            for size in shape:
                kind, order_of, dims = next(given).split(), next(given).split(), next(given).split()
                if kind != ["matrix"] or order_of != ["2"] or dims != [str(size), str(rank)]:
                    raise ValueError(f"expected a matrix of {size} x {rank}")
                factor = np.empty((size, rank))
                for row in range(size):
                    factor[row] = np.array(next(given).split(), dtype=np.float64)
                factors.append(factor)
        except (ValueError, StopIteration) as fault:
            reason = "the file ends too early" if isinstance(fault, StopIteration) else str(fault)
            raise InputError(f"{path}: {place}: {reason}", "input", file=path, line=int(place.split()[1]) if place[0] == "l" else 1) from None
    return weights, factors


def _read_matlab(path: str) -> Tuple[np.ndarray, List[np.ndarray]]:
    """Reads the struct `model` of a .mat file, with the members lambda and U."""
    try:
        found = package("scipy.io").loadmat(path, variable_names=["model"])
        model = found["model"][0, 0]
        return np.ravel(model["lambda"]), [np.atleast_2d(factor) for factor in np.ravel(model["U"])]
    except (KeyError, IndexError, ValueError, TypeError, NotImplementedError) as fault:
        raise InputError(f"{path}: no struct `model` with the members lambda and U, as export writes it ({fault})", "input",
                         file=path) from None


def model_of(given: Any) -> Optional[Tuple[np.ndarray, List[np.ndarray]]]:
    """
    Returns the weights and factors of a ktensor of pyttb, a CPTensor of TensorLy, a Result, or a
    .mat or .ktensor file that export wrote; None for other objects and for folders.
    """
    if isinstance(given, (str, bytes, os.PathLike)):
        path = os.fsdecode(given)
        if os.path.isdir(path) or not path.endswith(MODEL_ENDINGS):
            return None
        weights, factors = _read_matlab(path) if path.endswith(".mat") else _read_ktensor(path)
    elif hasattr(given, "weights") and (hasattr(given, "factor_matrices") or hasattr(given, "factors")):
        factors = [plain(factor, f"the factor of mode {n}")
                   for n, factor in enumerate(given.factor_matrices if hasattr(given, "factor_matrices") else given.factors)]
        if not factors or any(factor.ndim != 2 for factor in factors):
            raise UsageError(f"{type(given).__name__} has factors of the shapes {[factor.shape for factor in factors]}; expected matrices")
        weights = np.ones(factors[0].shape[1]) if given.weights is None else np.ravel(plain(given.weights, "the weights"))
    else:
        return None
    if any(one.dtype.kind not in "fiub" for one in (weights, *factors)):
        raise UsageError(f"the model has elements of the types {sorted({str(one.dtype) for one in (weights, *factors)})}; "
                         "expected real numbers")
    if len({factor.shape[1] for factor in factors} | {len(weights)}) != 1:
        raise UsageError(f"{len(weights)} weights for factors with {[factor.shape[1] for factor in factors]} columns; "
                         "expected equal numbers")
    return np.asarray(weights, dtype=np.float64), factors
