#!/usr/bin/python3
"""Output formats: the top rows of components against NumPy's sort, and every format read by its own
ecosystem."""

import csv
import json
import os
import struct
import sys
import zipfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Skip, check, load_json, run, sluice  # noqa: E402


def factored(folder, dims="60x50x40", rank=5, more=()):
    """A store and the folder of a run of it."""
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "run")
    sluice("generate", store, "--dims", dims, "--nnz", 3000, "-q")
    sluice("cpd", store, "-r", rank, "-i", 3, "--tol", 0, "-o", out, "-q", *more)
    return store, out


def factors_of(folder):
    record = load_json(os.path.join(folder, "run.json"))
    return (np.load(os.path.join(folder, "lambda.npy")),
            [np.load(os.path.join(folder, f"mode-{k + 1}.npy")) for k in range(len(record["tensor"]["dims"]))])


def check_top(told, weights, factors, order, rows, strength):
    check([c["component"] - 1 for c in told["components"]] == list(order), f"order {told}")
    for component in told["components"]:
        r = component["component"] - 1
        check(component["weight"] == weights[r], f"weight {component['weight']}")
        for mode in component["modes"]:
            column = factors[mode["mode"] - 1][:, r].astype(np.float64)
            best = np.argsort(-strength(column), kind="stable")[:rows]
            check(mode["length"] == len(column), f"length {mode['length']}")
            check([row["index"] - 1 for row in mode["rows"]] == best.tolist(), f"component {r + 1}, {mode}")
            check([row["value"] for row in mode["rows"]] == column[best].tolist(), f"values of {mode}")


def top(folder):
    """top lists all or some components by weight, and rows by absolute value or value, in both
    precisions."""
    for precision in ("f64", "f32"):
        here = os.path.join(folder, precision)
        os.mkdir(here)
        _, out = factored(here, more=("--precision", precision))
        weights, factors = factors_of(out)
        by_weight = np.argsort(-np.abs(weights), kind="stable")
        told = json.loads(sluice("top", out, "--json")[0])
        check(told["schema"] == "sluice-top-1" and told["rank"] == 5, f"{told}")
        check_top(told, weights, factors, by_weight, 10, np.abs)
        told = json.loads(sluice("top", out, "--json", "--order", "number", "-n", 100, "--by", "value")[0])
        check_top(told, weights, factors, range(5), 100, lambda x: x)
        told = json.loads(sluice("top", out, "--json", "--component", "4,2", "--mode", "3,1", "-n", 1)[0])
        check_top(told, weights, factors, (3, 1), 1, np.abs)
        check([m["mode"] for m in told["components"][0]["modes"]] == [3, 1], "order of modes")


def top_text(folder):
    """The text has the same rows; errors list the valid choices."""
    _, out = factored(folder)
    weights, factors = factors_of(out)
    text, messages = sluice("top", out, "-c", 3, "-m", 2, "-n", 4)
    best = np.argsort(-np.abs(factors[1][:, 2]), kind="stable")[:4]
    lines = text.splitlines()
    check(messages == "" and lines[2] == f"Component 3, weight {weights[2]:.6g}", text)
    check(lines[4].split() == ["value", "index"], text)
    check([int(line.split()[1]) - 1 for line in lines[5:]] == best.tolist(), text)
    check([line.split()[0] for line in lines[5:]] == [f"{x:.6g}" for x in factors[1][best, 2]], text)
    check("the model has components 1 to 5" in sluice("top", out, "-c", 6, status=2)[1], "component 6")
    check("the model has modes 1 to 3" in sluice("top", out, "-m", 4, status=2)[1], "mode 4")
    check("neither" in sluice("top", folder, status=3)[1], "a folder without factors")
    check("--memory" in sluice("top", out, "--memory", "1MiB", status=4)[1], "a budget that is too small")


def top_of_others(folder):
    """A folder made by NumPy, without run.json and weights, and one whose record and files
    disagree."""
    rng = np.random.default_rng(1)
    factors = [rng.standard_normal((n, 3)) for n in (20, 7)]
    np.save(os.path.join(folder, "mode-1.npy"), np.asfortranarray(factors[0]))
    np.save(os.path.join(folder, "mode-2.npy"), factors[1].astype(">f4"))
    factors[1] = factors[1].astype(np.float32)
    told = json.loads(sluice("top", folder, "--json", "-n", 8)[0])
    check_top(told, np.ones(3), factors, range(3), 8, np.abs)
    check(told["store"] is None, f"{told['store']}")
    check("weight" not in sluice("top", folder)[0], "missing weights")
    record = {"schema": "sluice-run-1", "tensor": {"path": "x", "dims": [20, 8], "content_sum": "0" * 16}}
    for change, part in ((record, "7 x 3, but 8 x 3"), (record | {"schema": "x"}, "schema"),
                         (record | {"tensor": {}}, "path"), ({}, "schema")):
        with open(os.path.join(folder, "run.json"), "w") as file:
            json.dump(change, file)
        check(part in sluice("top", folder, status=3)[1], part)


def top_in_a_budget(folder):
    """Lists the top rows of a factor of 64 MB within 32 MiB."""
    rng = np.random.default_rng(2)
    factors = [rng.standard_normal((1000000, 8)), rng.standard_normal((3, 8))]
    for k, factor in enumerate(factors):
        np.save(os.path.join(folder, f"mode-{k + 1}.npy"), factor)
    told = json.loads(sluice("top", folder, "--json", "--memory", "32MiB", "-n", 1000)[0])
    check_top(told, np.ones(8), factors, range(8), 1000, np.abs)


def bits(array):
    return np.asarray(array, dtype=np.float64).tobytes()


def same_model(weights, factors, got_weights, got_factors, what):
    check(bits(weights) == bits(got_weights), f"{what}: other weights")
    check(len(factors) == len(got_factors), f"{what}: {len(got_factors)} factors")
    for mode, (want, got) in enumerate(zip(factors, got_factors)):
        check(want.shape == got.shape and bits(want) == bits(got), f"{what}: factor {mode + 1} differs")


def read_ktensor(path):
    """Reads a ktensor like import_data of the Tensor Toolbox, according to its manual."""
    with open(path) as file:
        lines = [line.split() for line in file]
    check(lines[0] == ["ktensor"], f"{lines[0]}")
    order, dims, rank = int(lines[1][0]), [int(x) for x in lines[2]], int(lines[3][0])
    check(len(dims) == order, f"{dims}")
    weights, factors, at = np.array([float(x) for x in lines[4]]), [], 5
    for length in dims:
        check(lines[at:at + 3] == [["matrix"], ["2"], [str(length), str(rank)]], f"{lines[at:at + 3]}")
        factors.append(np.array([[float(x) for x in line] for line in lines[at + 3:at + 3 + length]]))
        at += 3 + length
    check(at == len(lines), "lines after the last factor")
    return weights, factors


def read_splatt(stem, order):
    """Reads SPLATT's text, which has only numbers."""
    return (np.loadtxt(stem + "lambda.mat", ndmin=1),
            [np.loadtxt(f"{stem}mode{k + 1}.mat", ndmin=2) for k in range(order)])


def read_csv(folder, order):
    """Reads a CSV: a line of names, then rows with the index (from 1) and the numbers."""
    factors = []
    for k in range(order):
        with open(os.path.join(folder, f"mode-{k + 1}.csv"), newline="") as file:
            names, *rows = list(csv.reader(file))
        check(names[0] == "index" and names[1] == "component-1", f"{names}")
        check([int(row[0]) for row in rows] == list(range(1, len(rows) + 1)), "indices")
        factors.append(np.array([[float(x) for x in row[1:]] for row in rows]))
    with open(os.path.join(folder, "lambda.csv"), newline="") as file:
        names, *rows = list(csv.reader(file))
    check(names == ["component", "weight"], f"{names}")
    return np.array([float(row[1]) for row in rows]), factors


def read_matlab(path, factors):
    try:
        from scipy.io import loadmat
    except ImportError:
        raise Skip("SciPy is not installed") from None
    model = loadmat(path)["model"][0, 0]
    check(model.dtype.names == ("lambda", "U"), f"{model.dtype.names}")
    check(model["lambda"].shape[1] == 1 and model["U"].shape == (len(factors), 1), "shapes")
    got = [model["U"][k, 0] for k in range(len(factors))]
    check([f.dtype for f in got] == [f.dtype for f in factors], "types")
    return model["lambda"][:, 0], got


def exported_runs(folder):
    """A run exported in every format is bitwise the run, in both precisions and any rank."""
    for precision, rank, dims in (("f64", 5, "60x50x40"), ("f32", 3, "61x5x7x4"), ("f32", 1, "701x30"),
                                  ("f64", 40, "3000x30x20")):
        here = os.path.join(folder, f"{precision}-{rank}")
        os.mkdir(here)
        _, out = factored(here, dims, rank, ("--precision", precision))
        weights, factors = factors_of(out)
        order = len(factors)
        for form, name in (("auto", "k.ktensor"), ("splatt", "stem-"), ("csv", "tables"), ("auto", "m.mat")):
            target = os.path.join(here, name)
            text, _ = sluice("export", out, target, "--format", form)
            told = {"stem-": f"{target}mode1.mat and {order} more files", "tables": f"the folder {target}"}.get(name, target)
            check(f"Exported {order} factors of rank {rank} to {told}\n" in text, text)
            read = {"k.ktensor": lambda: read_ktensor(target), "stem-": lambda: read_splatt(target, order),
                    "tables": lambda: read_csv(target, order), "m.mat": lambda: read_matlab(target, factors)}[name]
            same_model(weights, factors, *read(), f"{precision}, rank {rank}: {name}")
            check("--overwrite" in sluice("export", out, target, "--format", form, status=5)[1], "written over")
            sluice("export", out, target, "--format", form, "-f", "-q")
            same_model(weights, factors, *read(), f"again: {name}")
        left = set(os.listdir(here)) - {"t.slc", "run", "k.ktensor", "tables", "m.mat", "stem-lambda.mat"}
        check(left == {f"stem-mode{k + 1}.mat" for k in range(order)}, f"{left}")
        check(len(os.listdir(os.path.join(here, "tables"))) == order + 1, "files in the folder")


def exported_as_cpd_does(folder):
    """cpd's own text equals the export of its .npy files."""
    store, out = factored(folder)
    sluice("cpd", store, "-r", 5, "-i", 3, "--tol", 0, "-s", os.path.join(folder, "a-"),
           "--ktensor", os.path.join(folder, "a.ktensor"), "-q")
    sluice("export", out, os.path.join(folder, "b-"), "--format", "splatt", "-q")
    sluice("export", out, os.path.join(folder, "b.ktensor"), "-q")
    for name in ("mode1.mat", "mode3.mat", "lambda.mat"):
        with open(os.path.join(folder, "a-" + name)) as a, open(os.path.join(folder, "b-" + name)) as b:
            check(a.read() == b.read(), name)
    with open(os.path.join(folder, "a.ktensor")) as a, open(os.path.join(folder, "b.ktensor")) as b:
        check(a.read() == b.read(), "ktensor")


def exported_runs_of_others(folder):
    """Factors that are column-major, big-endian or integer, without weights; a factor of 80 MB in
    32 MiB."""
    rng = np.random.default_rng(3)
    factors = [rng.standard_normal((1250000, 8)), rng.integers(-9, 9, (5, 8)).astype("<i4")]
    np.save(os.path.join(folder, "mode-1.npy"), np.asfortranarray(factors[0].astype(">f8")))
    np.save(os.path.join(folder, "mode-2.npy"), factors[1])
    target = os.path.join(folder, "m.mat")
    sluice("export", folder, target, "--memory", "32MiB")
    factors[1] = factors[1].astype(np.float64)
    same_model(np.ones(8), factors, *read_matlab(target, factors), "m.mat")


def refused_exports(folder):
    """Impossible exports are rejected before anything is written."""
    store, out = factored(folder)
    before = sorted(os.listdir(folder))
    for args, status, part in (((out, "x.dat"), 2, "--format"), ((out, "x.tns", "--format", "tns"), 2, "tns"),
                               ((store, "x.csv", "--format", "csv"), 2, "csv"),
                               ((out, "t.slc/x.mat"), 2, "store"), ((out, "x.mat", "--memory", "1MiB"), 4, "--memory"),
                               ((out, "run.mat/x.mat"), 5, ""), ((folder, "x.tns"), 3, "store")):
        _, messages = sluice("export", *args, status=status, cwd=folder)
        check(part in messages, f"{args}: {messages}")
    check(sorted(os.listdir(folder)) == before, f"left: {os.listdir(folder)}")
    # A sparse file of more than 2 GiB.
    big = os.path.join(folder, "big")
    os.mkdir(big)
    np.save(os.path.join(big, "mode-1.npy"), np.zeros((1, 4)))
    with open(os.path.join(big, "mode-1.npy"), "rb") as file:
        head = file.read(128).replace(b"(1, 4)", b"(70000000, 4)").replace(b" " * 12 + b"\n", b" " * 5 + b"\n")
    with open(os.path.join(big, "mode-1.npy"), "wb") as file:
        file.write(head)
        file.truncate(128 + 70000000 * 4 * 8)
    _, messages = sluice("export", big, os.path.join(folder, "big.mat"), status=3)
    check("2 GiB" in messages, messages)
    check(sorted(os.listdir(folder)) == sorted(before + ["big"]), f"left: {os.listdir(folder)}")


def lists_of(store, folder):
    """Returns the coordinates (from 0, ascending) and values of a store, from its text."""
    text = os.path.join(folder, "x.tns")
    sluice("export", store, text, "-q", "-f")
    rows = np.loadtxt(text, ndmin=2)  # coordinates are below 2^53
    coords = rows[:, :-1].T.astype(np.int64) - 1
    order = np.lexsort(coords[::-1])
    return coords[:, order], rows[order, -1]


def same_lists(want, coords, values, what):
    order = np.lexsort(np.asarray(coords)[::-1])
    check((np.asarray(coords)[:, order] == want[0]).all(), f"{what}: coordinates differ")
    check(bits(np.asarray(values)[order]) == bits(want[1]), f"{what}: values differ")


def read_splatt_bin(path, dims, width, value_width):
    """SPLATT's p_read_binary: every number of the header except the first three has the width of an
    index."""
    with open(path, "rb") as file:
        data = file.read()
    check(struct.unpack_from("<iQQ", data) == (0, width, value_width), f"{data[:20]}")
    index, at = f"<u{width}", 20
    head = np.frombuffer(data, index, 2 + len(dims), at)
    order, nnz = int(head[0]), int(head[-1])
    check(order == len(dims) and head[1:-1].tolist() == list(dims), f"{head}")
    at += width * len(head)
    coords = np.frombuffer(data, index, order * nnz, at).reshape(order, nnz).astype(np.int64)
    at += width * order * nnz
    values = np.frombuffer(data, f"<f{value_width}", nnz, at)
    check(at + value_width * nnz == len(data), "length")
    return coords, values


def made(folder, name, dims, nnz, more=()):
    store = os.path.join(folder, name + ".slc")
    sluice("generate", store, "--dims", dims, "--nnz", nnz, "-q", *more)
    return store, tuple(int(x) for x in dims.split("x")), lists_of(store, folder)


SHAPES = (("three", "60x50x40", 3000, ()), ("two", "700x900", 4000, ()), ("one", "100000", 900, ()),
          ("relabelled", "900x800x30", 20000, ("--dist", "zipf-shuffled:1.3", "--relabel", "frequency")),
          ("five", "9x80x7x60x5", 5000, ()), ("tiles", "3000x2000x10", 200000, ()),
          ("wide", "5000000000x4294967296x3x1000000000", 3000, ()))


def exported_bin(folder):
    """SPLATT's .bin, read by its own rules and converted back: the same store."""
    for name, dims, nnz, more in SHAPES:
        store, lengths, want = made(folder, name, dims, nnz, more)
        out = os.path.join(folder, "out.bin")
        sluice("export", store, out, "-f", "-t", 3)
        width = 8 if max(lengths) > 0xffffffff else 4
        value = {"f32": 4, "f64": 8}[load_json(os.path.join(store, "tensor.json"))["value_type"]]
        same_lists(want, *read_splatt_bin(out, lengths, width, value), name)
        back = os.path.join(folder, "back.slc")
        sluice("convert", out, back, "-f", "-q")
        again = lists_of(back, folder)
        check((again[0] == want[0]).all() and bits(again[1]) == bits(want[1]), f"{name}: there and back")


def exported_matlab(folder):
    try:
        from scipy.io import loadmat
    except ImportError:
        raise Skip("SciPy is not installed") from None
    for name, dims, nnz, more in SHAPES:
        store, lengths, want = made(folder, name, dims, nnz, more)
        out = os.path.join(folder, "out.mat")
        sluice("export", store, out, "-f")
        tensor = loadmat(out)["tensor"][0, 0]
        check(tensor["size"].tolist() == [list(lengths)] and tensor["vals"].shape[1] == 1, f"{tensor['size']}")
        same_lists(want, tensor["subs"].astype(np.int64).T - 1, tensor["vals"][:, 0], name)


def exported_npz(folder):
    """pydata/sparse's .npz: rows ascend, as its reader assumes; also in parts."""
    for name, dims, nnz, more in SHAPES:
        store, lengths, want = made(folder, name, dims, nnz, more)
        out = os.path.join(folder, "out.npz")
        sluice("export", store, out, "-f")
        with zipfile.ZipFile(out) as archive:
            check(archive.testzip() is None, "a checksum of the archive")
        with np.load(out) as found:
            check(sorted(found.files) == ["coords", "data", "fill_value", "format", "shape"], f"{found.files}")
            check(found["format"].item().upper() == "COO", f"{found['format']!r}")
            check(tuple(found["shape"]) == lengths and found["fill_value"][()] == 0, "shape")
            check((found["coords"] == want[0]).all(), f"{name}: coordinates, or their order")
            check(bits(found["data"]) == bits(want[1]), f"{name}: values")
        with open(out, "rb") as file:
            whole = file.read()
        sluice("export", store, out, "-f", "-t", 1)
        with open(out, "rb") as file:
            check(file.read() == whole, f"{name}: other bytes with one thread")
        try:
            import sparse
        except ImportError:
            continue
        if name != "wide":
            loaded = sparse.load_npz(out)
            check(loaded.shape == lengths and loaded.nnz == len(want[1]), f"{loaded}")
            probe = want[0][:, len(want[1]) // 2]
            check(float(loaded[tuple(int(i) for i in probe)]) == want[1][len(want[1]) // 2], f"{name}: one element")


def exported_in_parts(folder):
    """An export of more nonzeros than fit in the budget stays within it and writes the same
    file."""
    store, _, _ = made(folder, "t", "30x20000x30000", 700000)
    big, small = os.path.join(folder, "big.npz"), os.path.join(folder, "small.npz")
    sluice("export", store, big)
    _, messages = sluice("export", store, small, "--memory", "1MiB", status=4)
    sluice("export", store, small, "--memory", "30MiB", "-t", 1)
    with open(big, "rb") as a, open(small, "rb") as b:
        check(a.read() == b.read(), "other bytes in parts")


def exported_scipy(folder):
    try:
        from scipy.sparse import load_npz
    except ImportError:
        raise Skip("SciPy is not installed") from None
    for more in ((), ("--dist", "zipf-shuffled:1.3", "--relabel", "frequency")):
        store, lengths, want = made(folder, "two" + str(len(more)), "7000x9000", 90000, more)
        out = os.path.join(folder, "out.npz")
        sluice("export", store, out, "--format", "scipy", "-f")
        found = load_npz(out)
        check(found.format == "coo" and found.shape == lengths, f"{found}")
        same_lists(want, np.array([found.row, found.col]), found.data, "scipy")
    store, _, _ = made(folder, "three", "6x5x4", 30)
    _, messages = sluice("export", store, os.path.join(folder, "x.npz"), "--format", "scipy", status=3)
    check("3 modes" in messages, messages)
    _, messages = sluice("export", store, "-", "--format", "npz", status=2)
    check("use a file name instead of -" in messages, messages)


run([
    ("top: as NumPy sorts", top),
    ("top: text", top_text),
    ("top: folders of others", top_of_others),
    ("top: a factor larger than the budget", top_in_a_budget),
    ("export: a run in every form", exported_runs),
    ("export: the same as cpd's own text", exported_as_cpd_does),
    ("export: folders of others", exported_runs_of_others),
    ("export: refused", refused_exports),
    ("export: SPLATT's .bin", exported_bin),
    ("export: a tensor for MATLAB", exported_matlab),
    ("export: pydata/sparse's .npz", exported_npz),
    ("export: .npz in parts", exported_in_parts),
    ("export: scipy.sparse's .npz", exported_scipy),
])
