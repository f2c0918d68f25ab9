#!/usr/bin/env python3
"""Arguments of wrong types: every argument of every public function of the Python module."""

import contextlib
import inspect
import io
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import SOURCE, check, run  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "python"))
sys.dont_write_bytecode = True
import sluice  # noqa: E402

# Wrong values by the annotation of an argument.
LISTS = (5, True, "01", b"01", ["a"], [1.5], [True], [None], [[0]])
WRONG = {"int": (None, "1", 1.5, [1], True, -1, 2**64), "float": (None, "1", [1], True, 1j), "bool": (None, "yes", 2, [], 0.5),
         "str": (None, 5, True, ["a"], "?"), "PathLike": (None, 5, True, ["a"]), "Sequence[int]": (None, *LISTS),
         "Sequence[float]": (None, 5, "01", ["a"], [True], [None]), "Sequence[PathLike]": (None, 5, "drive", b"drive", [5]),
         "Union[int, Sequence[int]]": LISTS[1:], "Progress": (5, "x", [1]), "Callable": (5, "x", [1]), "Fibers": (None, 1.5, "x", [1], True, -1, (0, "a"), (0,), (0, 1, 2)),
         "PerMode": (None, "1", [1], True, {0: "1"}, {99: 1}), "Modes": (None, 5, "1", ["a"], [99]),
         "Labels": (5, True, [5], {"a": "x"}, {0.5: "x"}, {0: 5})}
SIZES = (-1, 0, "0", True, [1], "x", 1.5, 2**64)  # wrong sizes of memory and files
# Wrong values of arguments whose annotation does not determine them.
OWN = {"memory": SIZES, "device_memory": SIZES, "io_limit": SIZES, "block_bytes": SIZES, "max_temp": SIZES,
       "path": WRONG["PathLike"], "store": (5, True, ["a"]), "run": WRONG["PathLike"],
       "factors": (None, 5, "abc", ["a", "b", "c"], [None, None, None]), "vectors": (None, 5, "abc", {0: "a"}, {"a": [1]}, {1.0: [1] * 20}),
       "weights": (5, "a", ["a"], [[None]], [1] * 70), "matrix": (None, 5, "a", ["a"], [[None]]), "ranges": (None, 5, "a", [0], {0: "a"}, {0: 1.5}, {0: True}, {"a": 0}, {0: [None]},
                                                              {0: slice("a", None)}, {0: slice(0, 1.5)}),
       "init": (5, True, "none", [1, 2, 3], [[["a"]], [["b"]], [["c"]]]), "coords": (None, 5, [1], [["a"], ["b"], ["c"]], [[0.5], [0], [0]], [[True]]),
       "part": (5, "1/3", (1,), (3, 3), (-1, 2), (0, 1.5)), "parts": (None, 5, "part", [5]),
       "table": ("yes", 2), "threads": (None, "1", 1.5, True, -1), "checkpoint_interval": ("1", [1], True, -1), "tol": (None, "1", True, -1),
       "index_base": ("1", 1.0, True, 2, [1]), "seed": (None, "1", 1.5, True, -1), "holdout_seed": (None, "1", 1.5, True, -1),
       "split": (5, ["a"], "?", "static=x"), "device_name": (5, ["a"], "?"), "format": (None, 5, ["a"], "?"), "name": (None, 5, ["a"], "?"),
       "transform": (5, ["abs"], "?"), "null": (5, ["NA", 5], True), "columns": (5, True, ""), "value_column": (["a"], "?"),
       "delimiter": (5, "", "ab", [","]), "values": (5, ["a"], "none.npy"), "source": (None, 5, True, [[0], [0]]), "value": (None, 5, [1], "f16"),
       "shape": (5, "12", [1.5], [True], ["a"], [-1]), "source_name": (5, ["a"]), "runs": (None, 5, "r2", b"r2", [5], [None]),
       "bounds": (5, [1], ["a", 1], {99: (0, 1)}), "zipf": (None, "1", True, -1), "noise": (None, "1", True, -1), "output": (5, True, ["a"])}
# Whole numbers for which 0 would silently mean a default.
ABOVE_ZERO = ("rows", "most", "components")
# Words in messages about a part of an argument.
PARTS = {"fixed_modes": ["mode"], "modes": ["mode"], "ranges": ["mode"], "factors": ["the factor of mode"], "vectors": ["mode"],
         "coords": ["mode", "coordinates"], "source": ["coordinates", "elements"], "values": ["elements"]}


def wrong_values(name, parameter):
    annotation = str(parameter.annotation)
    optional = annotation.startswith("Optional[")
    kind = annotation[len("Optional["):-1] if optional else annotation
    kind = kind.replace("Union[None, ", "Union[") if kind.startswith("Union[None") else kind
    kind = "Callable" if kind.startswith("Callable") else kind
    values = WRONG.get(kind) if name == "runs" and kind == "int" else OWN.get(name) or WRONG.get(kind)
    check(values is not None, f"{name}: {annotation} has no wrong values in this test")
    values = [one for one in values if one is not None or not (optional or parameter.default is None)]
    return values + ([0] if name in ABOVE_ZERO else [])


def complaint(name, value, function, given):
    """Calls a function; returns what is wrong with the way in which it refuses the argument."""
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            function(**given)
    except sluice.SluiceError as fault:
        named = name in str(fault) or any(part in str(fault) for part in PARTS.get(name, [])) or str(value) in str(fault) or repr(value) in str(fault) or name == fault.field
        return None if named and len(str(fault)) < 700 else f"the message does not name it: {fault}"
    except BaseException as fault:
        return f"{type(fault).__name__}: {fault}"
    return "accepted"


def cases(folder):
    """Name, function, and the arguments that it needs."""
    def at(name):
        return os.path.join(folder, name)

    tensor = sluice.generate(at("t.slc"), (20, 10, 8), 300, rank=2)
    tensor.export(at("t.tns"))
    with open(at("t.csv"), "w", encoding="ascii") as file:
        file.write("a,b\n1,2\n")
    first, second = tensor.cpd(2, 1, output=at("one")), tensor.cpd(2, 1, output=at("two"))
    free = tensor.cpd(2, 1)
    named = sluice.convert([[0, 1], [0, 0]], at("named.slc"), [1, 2], labels={0: ["ann", "bob"]})
    frame = {"a": np.arange(4), "b": np.arange(4)}
    sweep = tensor.sweep([1], iters=1, output=at("sweep"))
    coords = [[0, 1], [0, 1]]
    yield "generate", sluice.generate, {"output": at("g.slc"), "shape": (4, 3), "nnz": 3}, ()
    yield "convert a file", sluice.convert, {"source": at("t.tns"), "output": at("c.slc")}, ("values", "labels", "source_name", "null", "missing", "value_column")
    yield "convert a CSV", sluice.convert, {"source": at("t.csv"), "output": at("c.slc"), "columns": "a"}, (
        "values", "value", "labels", "source_name", "shape", "format", "index_base")
    yield "convert coordinates", sluice.convert, {"source": coords, "output": at("c.slc"), "values": [1, 2]}, (
        "columns", "value_column", "source_name", "transform")
    yield "convert a table", sluice.convert, {"source": frame, "output": at("c.slc"), "columns": ["a"]}, ("value", "shape")
    yield "open", sluice.open, {"path": tensor.path}, ()
    yield "load", sluice.load, {"path": at("one")}, ()
    yield "compare", sluice.compare, {"runs": [first, second]}, ()
    yield "residuals", sluice.residuals, {"run": first}, ()
    part = tensor.ttv({0: np.ones(20)}, at("part.slc"), part=(0, 1)).path
    yield "join", sluice.join, {"parts": [part], "output": at("j.slc")}, ()
    for name in ("plan", "cpd", "label", "labels", "check", "faults", "export", "add_layout", "drop_layout", "stripe_layout", "gather_layout",
                 "append", "slice", "permute", "mttkrp", "ttv", "ttv_operator", "ttm", "sweep", "load"):
        given = {"plan": {"rank": 2}, "cpd": {"rank": 2, "iters": 1}, "label": {"mode": 0, "index": 0}, "labels": {"mode": 0},
                 "export": {"output": at("e.tns")}, "add_layout": {"kind": "sorted", "mode": 0}, "drop_layout": {"kind": "sorted", "mode": 0},
                 "stripe_layout": {"folders": [at("drive")]}, "append": {"source": at("t.tns")}, "slice": {"output": at("s.slc"), "ranges": {0: 1}},
                 "permute": {"output": at("p.slc"), "modes": [1, 0, 2]}, "mttkrp": {"factors": [np.ones((n, 2)) for n in tensor.shape], "mode": 0},
                 "ttv": {"vectors": {0: np.ones(20)}, "output": at("v.slc")}, "ttm": {"matrix": np.ones((20, 2)), "mode": 0, "output": at("m")}, "ttv_operator": {"mode": 0},
                 "sweep": {"ranks": [1], "iters": 1}, "load": {"path": at("one")}}.get(name, {})
        yield name, getattr(tensor, name), given, ("values", "source_name") if name == "append" else ()
    yield "index", named.index, {"mode": 0, "name": "bob"}, ()
    for result in (first, free):
        yield "report", result.report, {"path": at("r.html")}, ()
        yield "predict", result.predict, {"coords": [[0], [0], [0]]}, ()
        yield "predict_file", result.predict_file, {"path": at("t.tns")}, ("columns", "value_column")
        yield "top", result.top, {"component": 0}, ()
        yield "export", result.export, {"output": at("r.mat")}, ()
        yield "to_pandas", result.to_pandas, {}, ()
        yield "to_arrow", result.to_arrow, {}, ()
        yield "to_parquet", result.to_parquet, {"path": at("r.parquet")}, ()
    yield "report of a sweep", sweep.report, {"path": at("w.html")}, ()
    for name in ("rank", "mode"):
        yield f"CPD({name})", lambda rank, mode, x=tensor: sluice.CPD(rank=rank, mode=mode, iters=1).fit(x), {"rank": 2, "mode": 0}, ("x",)


def wrong_types(folder):
    """A value of a wrong type, for any argument, raises an error of this package that names the
    argument or the value."""
    faults, count = [], 0
    for function, called, given, without in cases(folder):
        for name, parameter in inspect.signature(called).parameters.items():
            if name == "x" or name in without:
                continue
            if function.startswith("CPD"):
                parameter = inspect.Parameter(name, parameter.kind, annotation="int")
            for value in wrong_values(name, parameter):
                count += 1
                found = complaint(name, value, called, {**given, name: value})
                if found is not None:
                    faults.append(f"{function}({name}={value!r}): {found}")
    print(f"# {count} calls")
    check(not faults, f"{len(faults)} of {count}:\n# " + "\n# ".join(faults))


run([
    ("arguments of wrong types", wrong_types),
])
