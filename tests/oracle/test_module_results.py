#!/usr/bin/env python3
"""Results of the Python module in other packages: values keep their bits, and models are read back.
In the long form, the packages come from PyPI."""

import importlib.util
import json
import os
import pathlib
import pickle
import subprocess
import sys
import types

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import FULL, SOURCE, Skip, call, check, fails, need, run, sluice as command  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "python"))
sys.dont_write_bytecode = True
import sluice  # noqa: E402
from sluice import _interop  # noqa: E402

PACKAGES = ["scipy", "pandas", "pyarrow", "polars", "pyttb", "tensorly", "matplotlib", "sparse", "scikit-learn", "nbconvert", "ipykernel"]


def named(folder):
    """Returns a store with names in two of three modes."""
    generator = np.random.default_rng(2)
    coords = [generator.integers(0, n, 900) for n in (12, 9, 7)]
    names = {0: [f"user {n}" for n in range(12)], 2: ["mon", "tue", "wed", "thu", "fri", "sat", "s\u00f6n"]}
    return sluice.convert(coords, os.path.join(folder, "named.slc"), generator.random(900), shape=(12, 9, 7), labels=names)


def same(model, result, what):
    weights, factors = model
    check(np.asarray(weights).tobytes() == result.weights.tobytes(), f"weights of {what}")
    for mode, factor in enumerate(result.factors):
        check(np.ascontiguousarray(factors[mode]).tobytes() == np.ascontiguousarray(factor).tobytes(), f"mode {mode} of {what}")


def pivoted(columns, result):
    """Returns the factors and weights in a tidy table."""
    weights = np.full(result.rank, np.nan)
    weights[columns["component"]] = columns["weight"]
    factors = [np.full(factor.shape, np.nan) for factor in result.factors]
    for mode, factor in enumerate(factors):
        here = columns["mode"] == mode
        factor[columns["index"][here], columns["component"][here]] = columns["value"][here]
    return weights, factors


def columns_of(table):
    return {name: table[name].to_numpy() for name in table.column_names}


def missing(folder):
    """The error of an absent package says how to install it."""
    result = named(folder).cpd(2, 2)
    for name, use in (("pandas", result.to_pandas), ("pyarrow", result.to_arrow), ("pyttb", result.to_pyttb),
                      ("tensorly", result.to_tensorly), ("torch", result.to_torch)):
        if importlib.util.find_spec(name) is None:
            fault = fails(ImportError, f"pip install {name}", use)
            check(fault.name == name, fault.name)


def tidy_tables(folder):
    """All rows, and the top rows, as columns equal the values of NumPy and have names."""
    tensor = named(folder)
    for result in (tensor.cpd(3, 4), tensor.cpd(3, 4, output=os.path.join(folder, "run"))):
        parts = list(_interop.tidy(result, None, None, "absolute", None))
        whole = {name: np.concatenate([part[name] for part in parts]) for name in _interop.COLUMNS}
        same(pivoted(whole, result), result, "a tidy table")
        check(len(whole["value"]) == 3 * (12 + 9 + 7), len(whole["value"]))
        check(all(name == (None if mode == 1 else tensor.label(mode, index))
                  for mode, index, name in zip(whole["mode"], whole["index"], whole["name"])), "names")
        top = list(_interop.tidy(result, 2, [2, 0], "value", None))[1]
        check(list(top["mode"]) == [2, 2, 0, 0] and set(top["component"]) == {1}, top)
        check(list(top["value"][2:]) == sorted(result.factors[0][:, 1], reverse=True)[:2], top)
        check(top["name"][0] == tensor.label(2, top["index"][0]) and set(top["weight"]) == {result.weights[1]}, top)
    fails(sluice.UsageError, "modes [3]", lambda: list(_interop.tidy(result, 2, [3], "value", None)))


def pandas_frames(folder):
    pandas = need("pandas")
    tensor = named(folder)
    result = tensor.cpd(3, 4)
    frame = result.to_pandas()
    check(list(frame.columns) == ["component", "weight", "mode", "title", "index", "name", "value"], frame.columns)
    same(pivoted({name: frame[name].to_numpy() for name in frame.columns}, result), result, "a frame")
    wide = frame[frame["mode"] == 2].pivot(index="name", columns="component", values="value")
    check(wide.loc["s\u00f6n", 1] == result.factors[2][6, 1], wide)
    top = result.to_pandas(1)
    check(len(top) == 9 and isinstance(top, pandas.DataFrame) and top["name"].isna().sum() == 3, top)


def arrow_tables(folder):
    need("pyarrow")
    import pyarrow.parquet

    result = named(folder).cpd(3, 4)
    table = result.to_arrow()
    same(pivoted(columns_of(table), result), result, "an Arrow table")
    path = os.path.join(folder, "t.parquet")
    result.to_parquet(path)
    same(pivoted(columns_of(pyarrow.parquet.read_table(path)), result), result, "a Parquet file")
    check(pyarrow.parquet.ParquetFile(path).num_row_groups == 3, "row groups")
    fails(sluice.StorageError, "overwrite", result.to_parquet, path)
    result.to_parquet(path, 2, modes=[1], overwrite=True)
    check(pyarrow.parquet.read_table(path).num_rows == 6 and sorted(os.listdir(folder)) == ["named.slc", "t.parquet"], os.listdir(folder))
    if importlib.util.find_spec("polars"):
        import polars

        frame = polars.from_arrow(table)
        check(frame["value"].to_numpy().tobytes() == table["value"].to_numpy().tobytes(), "polars")


def other_objects(folder):
    """Models of pyttb and TensorLy have the same bits, and are accepted as a start."""
    result = named(folder).cpd(3, 4)
    tensor = named_again(folder)
    tried = 0
    if importlib.util.find_spec("pyttb"):
        model = result.to_pyttb()
        same((model.weights, model.factor_matrices), result, "a ktensor")
        same(_interop.model_of(model), result, "a ktensor that is read back")
        text = os.path.join(folder, "pyttb.ktensor")
        importlib.import_module("pyttb").export_data(model, text)
        same(_interop.model_of(text), result, "a ktensor that pyttb wrote")
        starts_from(tensor, model, result, "a ktensor as a start")
        tried += 1
    if importlib.util.find_spec("tensorly"):
        model = result.to_tensorly()
        same((model.weights, model.factors), result, "a CPTensor")
        same(_interop.model_of(model), result, "a CPTensor that is read back")
        starts_from(tensor, model, result, "a CPTensor as a start")
        tried += 1
    if not tried:
        raise Skip("there is no pyttb or tensorly")


def torch_tensors(folder):
    """torch gets writable copies with the same bits, also of memory-mapped factors."""
    result = named(folder).cpd(3, 4, output=os.path.join(folder, "run"))
    there = importlib.util.find_spec("torch") is not None
    if not there:
        sys.modules["torch"] = types.SimpleNamespace(from_numpy=lambda array: array)
    try:
        weights, factors = result.to_torch()
    finally:
        if not there:
            del sys.modules["torch"]
    arrays = [np.asarray(one) for one in (weights, *factors)]
    same((arrays[0], arrays[1:]), result, "a model for torch")
    check(all(one.flags.writeable for one in arrays), "read-only factors")


def named_again(folder):
    return sluice.open(os.path.join(folder, "named.slc"))


def starts_from(tensor, init, result, what):
    """A run without iterations returns its start, with columns normalized again, and its fit."""
    model = tensor.cpd(3, 0, init=init)
    check(np.allclose(model.weights, result.weights, rtol=1e-14), f"weights of {what}: {model.weights}")
    check(all(np.allclose(a, b, rtol=1e-14, atol=0) for a, b in zip(model.factors, result.factors)), what)


class Cp:
    """The attributes of pyttb's ktensor and TensorLy's CPTensor."""

    def __init__(self, weights, **factors):
        self.weights = weights
        self.__dict__.update(factors)


def read_back(folder):
    """Exported .mat and .ktensor files, results and models of others are starts; files are loaded."""
    tensor = named(folder)
    result = tensor.cpd(3, 4)
    files = [os.path.join(folder, name) for name in ("m.ktensor", "m.mat")]
    for path in files:
        result.export(path)
        if path.endswith(".mat") and importlib.util.find_spec("scipy") is None:
            continue
        loaded = tensor.load(path)
        same((loaded.weights, loaded.factors), result, path)
        check(np.isnan(loaded.fit) and loaded.norm == tensor.norm, loaded)
        check(loaded.predict([[1], [2], [3]]) == result.predict([[1], [2], [3]]), "a prediction")
        starts_from(tensor, path, result, f"{path} as a start")
        check(tensor.cpd(3, 2, init=path, deterministic=True).fits == tensor.cpd(3, 2, init=result, deterministic=True).fits, "fits")
    starts_from(tensor, result, result, "a result as a start")
    starts_from(tensor, Cp(result.weights, factor_matrices=result.factors), result, "a start like pyttb's")
    whole = [result.factors[0] * result.weights, *result.factors[1:]]
    starts_from(tensor, Cp(None, factors=whole), result, "a start without weights")
    ones = tensor.cpd(3, 0, init=Cp(np.array([2.0, 1.0, 1.0]), factors=result.factors))
    check(np.isclose(max(ones.weights), 2.0), ones.weights)
    fails(sluice.UsageError, "2 weights for factors with [3, 3, 3]", tensor.cpd, 3, init=Cp(np.ones(2), factors=result.factors))
    for weights, factors in ((result.weights * 1j, result.factors), (result.weights, [result.factors[0] * 1j, *result.factors[1:]])):
        fails(sluice.UsageError, "complex128", tensor.cpd, 3, init=Cp(weights, factors=factors))
    masked = np.ma.masked_less(result.factors[1], 0.1)
    fails(sluice.UsageError, "masked elements in the factor of mode 1", tensor.cpd, 3,
          init=Cp(result.weights, factors=[result.factors[0], masked, result.factors[2]]))
    fails(sluice.UsageError, "2 initial matrices for 3 modes", tensor.cpd, 3, init=Cp(np.ones(3), factors=result.factors[:2]))
    with open(files[0]) as file:
        lines = file.read().splitlines(True)
    broken = os.path.join(folder, "broken.ktensor")
    for number, text, line in ((None, "ends too early", len(lines) - 1), (1, "invalid literal", 2), (4, "could not convert", 5),
                               (7, "matrix of 12 x 3", 8)):
        with open(broken, "w") as file:
            file.writelines(lines[:-1] if number is None else [*lines[:number], "x 1\n", *lines[number + 1:]])
        fault = fails(sluice.InputError, text, tensor.load, broken)
        check(fault.file == broken and (number is None or fault.line == line), vars(fault))
    if importlib.util.find_spec("scipy"):
        tensor.export(os.path.join(folder, "tensor.mat"))
        fails(sluice.InputError, "no struct `model`", tensor.load, os.path.join(folder, "tensor.mat"))
    other = sluice.generate(os.path.join(folder, "other.slc"), (5, 9, 7), 30)
    fails(sluice.InputError, "mode-1.npy", other.cpd, 3, init=result)
    fails(sluice.InputError, "expected (5, 9, 7)", other.load, files[0])
    command("cpd", tensor.path, "-r", 3, "-i", 4, "-o", os.path.join(folder, "run"), "-q")
    check(isinstance(tensor.load(os.path.join(folder, "run")).factors[0], np.memmap), "no memory map")


def khatri_rao(factors):
    """The matrix whose rows are the products of rows of all factors, the last factor fastest."""
    out = np.ones((1, factors[0].shape[1]))
    for factor in factors:
        out = (out[:, None, :] * factor[None, :, :]).reshape(-1, out.shape[1])
    return out


def least_squares(model, x):
    """Returns the scores of the slices of a dense tensor by numpy.linalg.lstsq."""
    others = khatri_rao([factor for mode, factor in enumerate(model.factors_) if mode != model.mode])
    unfolded = np.moveaxis(x, model.mode, 0).reshape(x.shape[model.mode], -1)
    return np.linalg.lstsq(others * model.weights_, unfolded.T, rcond=None)[0].T


def scores(folder):
    """Scores of new slices in every mode are the solution of least squares, to 1e-10."""
    generator = np.random.default_rng(4)
    fitted, new = (generator.random((14, 11, 9)) * (generator.random((14, 11, 9)) < 0.4) for _ in range(2))
    stores = [sluice.convert(list(np.nonzero(x)), os.path.join(folder, f"{n}.slc"), x[np.nonzero(x)], shape=x.shape)
              for n, x in enumerate((fitted, new))]
    for mode in range(3):
        model = sluice.CPD(rank=4, mode=mode, iters=15, tol=0, seed=2, memory="1GiB").fit(stores[0])
        want = least_squares(model, new)
        got = model.transform(stores[1])
        check(np.abs(got - want).max() <= 1e-10 * np.abs(want).max(), f"mode {mode}: off by {np.abs(got - want).max()}")
        rows = (got * model.weights_) @ khatri_rao([f for n, f in enumerate(model.factors_) if n != mode]).T
        left = np.linalg.norm(np.moveaxis(new, mode, 0).reshape(new.shape[mode], -1) - rows) / np.linalg.norm(new)
        check(abs(model.score(stores[1]) - (1 - left)) < 1e-10, f"{model.score(stores[1])} and {1 - left}")
        check(model.score() == model.fit_ == model.result_.fit and model.score(stores[0]) >= model.fit_ - 1e-12, model.score())
        again = sluice.CPD(rank=4, mode=mode, iters=15, tol=0, seed=2, memory="1GiB")
        check(np.allclose(again.fit_transform(stores[0]), model.transform(stores[0]), rtol=1e-9), "fit_transform")
    alone = sluice.CPD(rank=2, iters=3).fit([np.arange(3)], values=[5.0, 2, 1])
    check(np.allclose((alone.transform([np.arange(2)], values=[3.0, 4]) * alone.weights_).sum(axis=1), [3, 4]), "a single mode")
    # Values whose squares overflow or underflow.
    for power in (-250, 250):
        scaled = sluice.convert(list(np.nonzero(new)), os.path.join(folder, f"{power}.slc"), np.ldexp(new[np.nonzero(new)], power), shape=new.shape)
        check(abs(model.score(scaled) - model.score(stores[1])) < 1e-12, f"{model.score(scaled)} and {model.score(stores[1])}")
    for value in (1e-200, 1e200):
        fault = fails(sluice.SluiceError, "too small or too large for a fit", model.score, [[0], [0], [0]], values=[value])
        check(fault.status == "numeric", fault.status)
    # Other numbers of slices, a store's path, and a model whose components are the same.
    part = stores[1].slice(os.path.join(folder, "part.slc"), {2: slice(3, 5)})
    check(np.allclose(model.transform(part.path), got[3:5], rtol=1e-12, atol=1e-14), "two slices")
    twice = sluice.CPD(rank=2, iters=0, init=[np.tile(generator.random((n, 1)), 2) for n in (14, 11, 9)]).fit(stores[0])
    check(np.allclose(twice.transform(stores[1]), least_squares(twice, new), rtol=1e-10), "equal components")
    held = sluice.CPD(rank=2, iters=5, holdout=0.2).fit(stores[0])
    error = held.result_.holdout
    check(np.isclose(held.score(), 1 - error.rmse * np.sqrt(error.count) / error.norm), held.score())


def indices_of_names(folder):
    """`index` is the inverse of `label`, also after the tensor has grown."""
    tensor = named(folder)
    check([tensor.index(2, str(tensor.label(2, n))) for n in range(7)] == list(range(7)), "indices")
    fails(sluice.UsageError, "has no index named 'user 77'; it has user 7", tensor.index, 0, "user 77")
    fails(sluice.UsageError, "has no names", tensor.index, 1, "user 1")
    fails(sluice.UsageError, "no mode 3", tensor.index, 3, "user 1")
    more = os.path.join(folder, "more.tns")
    with open(more, "w") as file:
        file.write("13 1 1 1\n")
    maps = os.path.join(folder, "users.map")
    with open(maps, "w") as file:
        file.writelines(f"user {n}\n" for n in range(13))
    tensor.append(more, index_base=1, labels={0: maps})
    check(tensor.index(0, "user 12") == 12, "a grown tensor")
    twice = sluice.convert([[0, 1, 2]], os.path.join(folder, "twice.slc"), [1, 2, 3], labels={0: ["a", "", "a"]})
    check(twice.index(0, "a") == 0, "a name that occurs twice")
    fails(sluice.UsageError, "no index named ''", twice.index, 0, "")


def matched_names(folder):
    """Indices of new slices are matched by name, in any order; unseen names are reported."""
    tensor = named(folder)
    model = sluice.CPD(rank=3, mode=1, iters=5).fit(tensor)
    text = os.path.join(folder, "named.tns")
    tensor.export(text)
    rows = np.loadtxt(text)
    orders = [np.random.default_rng(9).permutation(12), np.arange(9), np.array([6, 5, 4, 3, 2, 1, 0])]
    coords = [np.argsort(order)[rows[:, mode].astype(int) - 1] for mode, order in enumerate(orders)]
    names = {mode: [str(tensor.label(mode, index)) for index in orders[mode]] for mode in (0, 2)}
    shuffled = sluice.convert(coords, os.path.join(folder, "shuffled.slc"), rows[:, 3], labels=names)
    want = model.transform(tensor)
    check(np.allclose(model.transform(shuffled), want, rtol=1e-12, atol=1e-14) and model.row_names_ is None, "shuffled names")
    names[2] = names[2][:1] + ["never"] + names[2][2:]
    other = sluice.convert(coords, os.path.join(folder, "other.slc"), rows[:, 3], labels=names)
    fault = fails(sluice.InputError, "mode 2 has never, which the fitted tensor does not have", model.transform, other)
    check(fault.field == "unseen" and "unseen='skip'" in str(fault), fault)
    kept = coords[2] != 1
    rest = sluice.convert([column[kept] for column in coords], os.path.join(folder, "rest.slc"), rows[kept, 3], shape=(12, 9, 7),
                          labels=names | {2: [name.replace("never", "sat") for name in names[2]]})
    check(np.allclose(model.transform(other, unseen="skip"), model.transform(rest), rtol=1e-12, atol=1e-14), "unseen names are skipped")
    new = sluice.convert(coords, os.path.join(folder, "new.slc"), rows[:, 3], labels=names | {2: [f"new {name}" for name in names[2]]})
    fails(sluice.InputError, "mode 2 has no index of the fitted tensor, so all nonzeros would be ignored", model.transform, new, unseen="skip")
    fails(sluice.UsageError, "mode 0 has names only in the fitted tensor", model.transform, coords, values=rows[:, 3])
    fails(sluice.UsageError, "coordinates need values", sluice.CPD(rank=1).fit(coords, values=rows[:, 3]).transform, coords)
    byname = sluice.CPD(rank=3, mode=0, iters=5).fit(coords, values=rows[:, 3], labels=names)
    check(byname.result_.top(0, 1)[0][0].name.startswith("user ") and byname.shape_ == (12, 9, 7), "a temporary store with names")
    place = os.path.dirname(byname.result_.store)
    byname.transform(other)
    check(byname.row_names_ == names[0] and os.path.isdir(place), byname.row_names_)
    byname.result_ = None
    check(not os.path.exists(place), "the temporary store is left")
    wide = sluice.generate(os.path.join(folder, "wide.slc"), (3, 4, 9), 80)
    plain = sluice.CPD(rank=2, mode=0, iters=2).fit(sluice.generate(os.path.join(folder, "plain.slc"), (3, 4, 6), 40))
    fails(sluice.InputError, "mode 2 has 6, 7, 8, which", plain.transform, wide)
    check(np.allclose(plain.transform(wide, unseen="skip"),
                      plain.transform(wide.slice(os.path.join(folder, "six.slc"), {2: slice(0, 6)})), rtol=1e-10), "unseen numbers")


def habits(folder):
    """Parameters, inputs and errors are those of scikit-learn's estimators."""
    model = sluice.CPD(rank=2, iters=4, seed=3)
    check(model.get_params() == {"rank": 2, "mode": 0, "iters": 4, "seed": 3} and repr(model) == "CPD(rank=2, mode=0, iters=4, seed=3)", model)
    check(model.set_params(rank=3, tol=0) is model and model.get_params()["tol"] == 0 and model.rank == 3, model)
    fails(sluice.UsageError, "unknown options depth", model.set_params, depth=3)
    fails(sluice.UsageError, "unknown options depth", sluice.CPD, rank=3, depth=3)
    fails(sluice.UsageError, "call fit first", model.score)
    fails(sluice.UsageError, "call fit first", model.transform, named(folder))
    fails(sluice.UsageError, "no mode 3", sluice.CPD(rank=2, mode=3).fit, named_again(folder))
    check(model.fit(named_again(folder)) is model and model.n_iter_ == 4 and model.shape_ == (12, 9, 7), model)
    fails(sluice.UsageError, "not one of error, skip", model.transform, named_again(folder), unseen="drop")
    fails(sluice.UsageError, "has 2 modes", model.transform, sluice.generate(os.path.join(folder, "m.slc"), (3, 4), 9))
    table = os.path.join(folder, "t.csv")
    with open(table, "w") as file:
        file.writelines(["who,what,n\n"] + [f"u{n % 7},w{n % 5},{n % 3 + 1}\n" for n in range(200)])
    got = model.fit_transform(table, columns="who,what", value_column="n")
    check(got.shape == (7, 3) and model.titles_ == ("who", "what") and model.row_names_[0] == "u0", model.row_names_)
    with open(table, "w") as file:
        file.write("n,what,who\n2,w1,new\n1,w4,new\n")
    matrix = np.zeros((1, 5))
    matrix[0, [list(model.names_[1]).index(name) for name in ("w1", "w4")]] = (2, 1)
    check(np.allclose(model.transform(table), least_squares(model, matrix), rtol=1e-10) and model.row_names_ == ["new"], "a new row")
    with open(table, "w") as file:
        file.write("who,what\nu1,w1\nNA,w2\nu2,w2\n")
    gaps = sluice.CPD(rank=1, iters=2).fit(table, columns="who,what", missing="skip", null="NA")
    check(gaps.shape_ == (2, 2) and gaps.transform(table).shape == (2, 1), f"null words are names: {gaps.row_names_}")
    if importlib.util.find_spec("scipy"):
        import scipy.sparse

        matrix = scipy.sparse.random(20, 9, 0.4, random_state=1, format="csr")
        model = sluice.CPD(rank=2, iters=9).fit(matrix[:15])
        check(np.allclose(model.transform(matrix[15:]), least_squares(model, matrix[15:].toarray()), rtol=1e-10), "SciPy")
    again = pickle.loads(pickle.dumps(model))
    check(repr(again) == repr(model) and again.get_params() == model.get_params() and again.fit_ == model.fit_, again)
    check(all(np.array_equal(one, other) for one, other in zip(again.factors_, model.factors_)), "factors")
    check(list(model.get_feature_names_out()) == ["cpd0", "cpd1"], model.get_feature_names_out())
    if importlib.util.find_spec("sklearn"):
        from sklearn.base import clone
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        search = GridSearchCV(sluice.CPD(rank=1, iters=5), {"rank": [1, 3]}, cv=3, error_score="raise").fit(matrix)
        check(search.best_params_ == {"rank": 3} and search.best_estimator_.factors_[0].shape == (20, 3), search.best_params_)
        check(make_pipeline(sluice.CPD(rank=2), StandardScaler()).fit_transform(matrix).shape == (20, 2), "a pipeline")
        check(repr(clone(model)) == repr(model) and not hasattr(clone(model), "result_"), "a clone")
    if importlib.util.find_spec("pandas"):
        import pandas

        table = pandas.DataFrame({"who": [f"u{n % 7}" for n in range(200)], "what": [f"w{n % 5}" for n in range(200)], "n": 2.0})
        model = sluice.CPD(rank=2).set_output(transform="pandas").fit(table, columns=["who", "what"], value_column="n")
        frame = model.transform(table[table["who"] == "u3"])
        check(list(frame.columns) == ["cpd0", "cpd1"] and list(frame.index) == ["u3"], frame)
        matrix = np.array([[2.0 * np.sum((table["who"] == "u3") & (table["what"] == name)) for name in model.names_[1]]])
        check(np.allclose(frame, least_squares(model, matrix), rtol=1e-10), frame)


def loaded(folder):
    """`load` finds runs, sweeps and files, with all that their records have."""
    tensor = named(folder)
    run, sweep, file = (os.path.join(folder, name) for name in ("run", "sweep", "m.ktensor"))
    made = tensor.cpd(3, 6, tol=0, holdout=0.1, output=run)
    found = sluice.load(run)
    same((found.weights, found.factors), made, "a run")
    check((found.fit, found.fits, found.stop, found.holdout) == (made.fit, made.fits, made.stop, made.holdout), found.fits)
    check(isinstance(found.factors[0], np.memmap) and found.seconds > 0, found.seconds)
    check(found.top(1, 3) == made.top(1, 3) and os.path.samefile(found.store, tensor.path), "names of the recorded store")
    check(tensor.load(run).holdout == made.holdout, "Tensor.load")
    made.export(file)
    same((sluice.load(file).weights, sluice.load(file).factors), made, "a file")
    ranks = tensor.sweep([1, 2], 2, iters=4, output=sweep)
    again = sluice.load(sweep)
    for name in ("ranks", "runs", "rank", "why", "folder"):
        check(getattr(again, name) == getattr(ranks, name), f"{name}: {getattr(again, name)} and {getattr(ranks, name)}")
    same((again.best.weights, again.best.factors), ranks.best, "the best run")
    check(again.best.fit == ranks.best.fit == max(rank.fit for rank in ranks.ranks if rank.rank == ranks.best.rank), again.best)
    with open(os.path.join(sweep, "sweep.json"), "w") as broken:
        broken.write('{"runs": []}')
    fails(sluice.InputError, "not the record of a complete sweep", sluice.load, sweep)
    fails(sluice.SluiceError, "none", sluice.load, os.path.join(folder, "none"))


def shown(folder):
    """Results and sweeps have short texts and HTML with names."""
    tensor = sluice.convert([[0, 1, 1], [0, 0, 2]], os.path.join(folder, "t.slc"), [1, 2, 3.5],
                            labels={0: ["<b>", "\u00f6l"]}, shape=(2, 200))
    result = tensor.cpd(1, 3)
    check(repr(result).startswith("<sluice.Result of 2 x 200, rank 1: fit 0.") and len(repr(result)) < 100, repr(result))
    html = result._repr_html_()
    check("&lt;b&gt; (" in html and "<b>" not in html and "\u00f6l (" in html and "<th>mode 1</th>" in html, html)
    check(f"{result.weights[0]:.6g}" in html and html.count("<br>") == 4 + 1, html)
    sweep = tensor.sweep([1, 2], 2, iters=2)
    check(repr(sweep).startswith("<sluice.Sweep of 2 x 200, 4 runs of the ranks 1, 2: ") and len(repr(sweep)) < 100, repr(sweep))
    html = sweep._repr_html_()
    check(all(f"{rank.fit:.6f}" in html for rank in sweep.ranks) and html.count("<tr>") == 3, html)
    check(sweep.rank is None or f"<b>{sweep.rank}</b>" in html, html)
    if importlib.util.find_spec("pandas"):
        frame = sweep.to_pandas()
        check(list(frame["fit"]) == [run.fit for run in sweep.runs] and list(frame.columns)[:2] == ["rank", "seed"], frame)


def diagnosed(folder):
    """The diagnosis has the numbers of the record, with components counted from 0; notes are sentences."""
    generator = np.random.default_rng(3)
    a, b = np.linalg.qr(generator.standard_normal((10, 2)))[0].T
    border = sum(np.einsum("i,j,k->ijk", *which) for which in ((a, a, b), (a, b, a), (b, a, a)))
    tensor = sluice.convert(list(np.nonzero(border)), os.path.join(folder, "border.slc"), border[border != 0], shape=border.shape)
    made = tensor.cpd(2, 1000, tol=0, output=os.path.join(folder, "border"))
    found = made.diagnosis
    congruence = np.prod([factor[:, 0] @ factor[:, 1] for factor in made.factors])
    check(found.cancelling == (0, 1) and abs(found.congruence - congruence) < 1e-12 and congruence < -0.95, (found, congruence))
    check(np.allclose(found.condition, [np.linalg.cond(factor) for factor in made.factors], rtol=1e-6), found)
    check(made.notes == made.record["diagnosis"]["notes"] and "components 1 and 2 nearly cancel" in made.notes[0], made.notes)
    again = sluice.load(os.path.join(folder, "border"))
    check((again.diagnosis, again.notes) == (found, made.notes) and isinstance(found.fit_rising, bool), again.diagnosis)
    single = tensor.cpd(1, 200)
    check(single.diagnosis.cancelling is None and single.diagnosis.congruence == 1 and single.notes == [], single.diagnosis)
    made.export(os.path.join(folder, "m.ktensor"))
    bare = sluice.load(os.path.join(folder, "m.ktensor"))
    check(bare.diagnosis is None and bare.notes == [], bare.diagnosis)


def predicted(folder):
    """Predicts values at the nonzeros of a store and at the rows of a table with its names, and
    compares them with the command's."""
    table, store, out, path = (os.path.join(folder, name) for name in ("t.csv", "t.slc", "m", "p.npy"))
    with open(table, "w") as file:
        file.write("who,t,n\nb,2,1\na,7,2\nc,8,5\nb,8,4\nb,31,3\n")
    tensor = sluice.convert(table, store, columns="who,bin(t,5)", value_column="n", relabel="frequency")
    result = tensor.cpd(2, 3, output=out)
    tensor.export(os.path.join(folder, "t.tns"))
    coords = np.loadtxt(os.path.join(folder, "t.tns"))[:, :2].T.astype(int) - 1
    want = result.predict(coords)
    for given in (tensor, store, pathlib.Path(store)):
        check(np.array_equal(result.predict(given), want), given)
    for given, what in ((tensor, store), (store, store), (table, table)):
        got, told = result.predict_file(given, path, overwrite=True), json.loads(command("predict", out, what, "--json")[0])
        check((got.count, got.rmse, got.mae, got.largest, got.norm, got.unknown, got.index_base) == (told["count"], told["rmse"],
              told["mae"], told["largest_error"], told["values_norm"], told.get("unknown", 0), told["index_base"]), (got, told))
        check(sorted(np.load(path)[:, 1]) == sorted(want), what)
    with open(table, "w") as file:
        file.write("WHO,t\nnew,1\nb,2\n")
    got = sluice.load(out).predict_file(table, path, columns="WHO,bin(t,5)", value_column="", overwrite=True)
    check((got.count, got.unknown, got.rmse) == (2, 1, None) and np.isnan(np.load(path)[0]), got)
    check(np.load(path)[1] == result.predict([[tensor.index(0, "b")], [tensor.index(1, "[0, 5)")]])[0], np.load(path))
    fails(sluice.InputError, "column WHO has 'new'", sluice.load(out).predict_file, table, columns="WHO,bin(t,5)", value_column="",
          null=["new", "NA"])
    fails(sluice.UsageError, "apply to tables", result.predict_file, tensor, null="NA")
    fails(sluice.UsageError, "only the names of columns may differ", result.predict_file, table, columns="WHO,bin(t,6)")
    result.store = None
    fails(sluice.InputError, "specify the store", result.predict_file, table)
    got = result.predict_file(table, columns="WHO,bin(t,5)", value_column="", store=tensor)
    check(got.unknown == 1, got)
    other = sluice.generate(os.path.join(folder, "o.slc"), (2, 2), 3)
    fails(sluice.InputError, "modes differ", result.predict, other)
    larger = sluice.generate(os.path.join(folder, "l.slc"), (9, 9), 81)
    fails(sluice.InputError, "in mode 1, but the model has 3 rows", result.predict, larger)
    fails(sluice.BudgetError, "memory", result.predict_file, tensor, memory="1KiB")


def plots(folder):
    need("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    result = named(folder).cpd(5, 3)
    axes = result.plot()
    check(axes.shape == (4, 3) and [bar.get_height() for bar in axes[0][1].patches] ==
          list(result.factors[1][:, np.argmax(result.weights)]), axes.shape)
    check([label.get_text() for label in axes[0][2].get_xticklabels()][6] == "s\u00f6n", "names of a mode")
    wide = sluice.generate(os.path.join(folder, "wide.slc"), (4, 900), 800).cpd(2, 3)
    bars = wide.plot([1], rows=7)[0][1].patches
    check(sorted(abs(bar.get_width()) for bar in bars) == sorted(np.abs(wide.factors[1][:, 1]))[-7:], "top rows of a large mode")
    fails(sluice.UsageError, "from 0 to 1", wide.plot, [2])
    check(len(named_again(folder).sweep([1, 2], iters=2).plot()) == 3, "plots of a sweep")


def packages(folder):
    """Runs this file again, with the packages of PyPI."""
    if not FULL or os.environ.get("SLUICE_TEST_PACKAGES"):
        raise Skip("installs packages from PyPI; SLC_TEST_FULL=1 does")
    python = os.path.join(folder, "venv", "bin", "python")
    call(sys.executable, "-m", "venv", os.path.join(folder, "venv"))
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    try:
        call(*pip, *PACKAGES)
    except AssertionError as fault:
        raise Skip(f"PyPI cannot be reached: {str(fault).splitlines()[-1]}") from None
    try:
        call(*pip, "torch", "--index-url", "https://download.pytorch.org/whl/cpu")
    except AssertionError as fault:
        print(f"# no torch: {str(fault).splitlines()[-1]}")
    for name in ("test_module_results.py", "test_module_docs.py", "test_module.py"):
        done = subprocess.run([python, os.path.join(os.path.dirname(os.path.abspath(__file__)), name)], capture_output=True,
                              text=True, check=False, env=os.environ | {"SLUICE_TEST_PACKAGES": "1", "SLC_TEST_FULL": "0"})
        check(done.returncode == 0 and "not ok" not in done.stdout, done.stdout + done.stderr)
        print("\n".join("# " + line for line in done.stdout.splitlines()))


run([
    ("an absent package is named with its pip command", missing),
    ("tidy tables have the numbers and names", tidy_tables),
    ("pandas frames keep the bits", pandas_frames),
    ("Arrow tables and Parquet files keep the bits", arrow_tables),
    ("models of pyttb and TensorLy keep the bits", other_objects),
    ("tensors of torch keep the bits", torch_tensors),
    ("exported files and models are read back", read_back),
    ("runs, sweeps and files are loaded", loaded),
    ("results and sweeps have short texts and HTML", shown),
    ("a diagnosis has the numbers of NumPy", diagnosed),
    ("values at the nonzeros of stores and tables", predicted),
    ("plots have the values of the factors", plots),
    ("indices of names", indices_of_names),
    ("scores are the solution of least squares", scores),
    ("indices of new slices are matched by name", matched_names),
    ("estimators have scikit-learn's habits", habits),
    ("with the packages of PyPI", packages),
])
