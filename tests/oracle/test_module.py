#!/usr/bin/env python3
"""The Python module: its results equal those of the command and of NumPy; interrupted runs resume."""

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import FULL, SOURCE, Skip, call, check, fails, load_json, need, run, sluice as command, source_text  # noqa: E402

LIBRARY = os.environ["SLUICE_LIBRARY"]
PACKAGE = os.path.join(SOURCE, "python")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
import sluice  # noqa: E402
from sluice import _structs  # noqa: E402

AMINO = os.path.join(SOURCE, "data", "genten-aminoacid_data.tns.xz")


def small(folder, name="small.slc", **options):
    return sluice.generate(os.path.join(folder, name), (40, 30, 20), 4000, rank=3, noise=0.1, **options)


def entries(tensor, folder):
    """Returns the coordinates, from 0, and the values, in store order."""
    text = os.path.join(folder, "entries.tns")
    tensor.export(text, overwrite=True)
    rows = np.loadtxt(text, ndmin=2)
    return rows[:, :-1].astype(np.int64).T - 1, rows[:, -1]


def dense(tensor, folder):
    coords, values = entries(tensor, folder)
    out = np.zeros(tensor.shape)
    out[tuple(coords)] = values
    return out


def structs(folder):
    """Sizes and offsets of all fields match the headers. A versioned struct has no padding at its
    end, where later versions append members."""
    lines, want = [], []
    for name, kind in _structs.STRUCTS.items():
        last = getattr(kind, kind._fields_[-1][0])
        check(kind._fields_[0][0] != "struct_bytes" or last.offset + last.size == ctypes.sizeof(kind), f"{name} ends in padding")
        lines.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        want.append(f"{name} {ctypes.sizeof(kind)}")
        for field, _ in kind._fields_:
            lines.append(f'printf("{field} %zu %zu\\n", offsetof(struct {name}, {field}), '
                         f'sizeof(((struct {name} *)0)->{field}));')
            place = getattr(kind, field)
            want.append(f"{field} {place.offset} {place.size}")
    with open(os.path.join(folder, "sizes.c"), "w") as file:
        file.write("#include <sluice/experimental.h>\n#include <sluice/sluice.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{\n" +
                   "\n".join(lines) + "\nreturn 0;\n}\n")
    subprocess.run([*os.environ.get("CC", "cc").split(), "-I", os.path.join(SOURCE, "include"), "sizes.c", "-o", "sizes"],
                   cwd=folder, check=True)
    said = subprocess.run(["./sizes"], cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()
    check(said == want, [pair for pair in zip(said, want) if pair[0] != pair[1]])


def arrays(folder):
    """Columns, a coordinate matrix and text yield the same store."""
    generator = np.random.default_rng(3)
    coords = np.array([generator.integers(0, n, 5000) for n in (50, 60, 70)], dtype=np.int32)
    coords[:, 0] = (49, 59, 69)
    values = generator.integers(1, 9, 5000).astype(np.float32)
    text = os.path.join(folder, "entries.txt")
    np.savetxt(text, np.vstack([coords + 1, values]).T, fmt="%d")
    made = {"text": sluice.convert(text, os.path.join(folder, "text.slc")),
            "matrix": sluice.convert(coords, os.path.join(folder, "matrix.slc"), values),
            "columns": sluice.convert(list(coords.astype(np.uint64)), os.path.join(folder, "columns.slc"), values)}
    files = {name: open(os.path.join(tensor.path, "blco.blk"), "rb").read() for name, tensor in made.items()}
    check(files["matrix"] == files["text"] and files["columns"] == files["text"], "stores differ")
    want = np.zeros((50, 60, 70))
    np.add.at(want, tuple(coords), values)
    check(made["matrix"].shape == want.shape and made["matrix"].nnz == np.count_nonzero(want), made["matrix"])
    check(np.array_equal(dense(made["matrix"], folder), want), "values differ")
    fails(sluice.UsageError, "below 0", sluice.convert, -coords, os.path.join(folder, "x.slc"), values)
    fails(sluice.UsageError, "integers", sluice.convert, coords + 0.5, os.path.join(folder, "x.slc"), values)
    fails(sluice.UsageError, "real numbers", sluice.convert, coords, os.path.join(folder, "x.slc"), values * 1j)
    masked = np.ma.masked_equal(values, 3)
    fails(sluice.UsageError, "masked elements in the values", sluice.convert, coords, os.path.join(folder, "x.slc"), masked)
    fails(sluice.UsageError, "masked elements in the indices of mode 1", sluice.convert,
          [coords[0], np.ma.masked_equal(coords[1], 59), coords[2]], os.path.join(folder, "x.slc"), values)
    unmasked = sluice.convert(coords, os.path.join(folder, "unmasked.slc"), np.ma.array(values))
    check(np.array_equal(dense(unmasked, folder), want), "an array whose mask is empty")
    for kind, wide in ((np.int64, 2**53 + 1), (np.int64, -2**53 - 1), (np.uint64, 2**64 - 1), (np.longdouble, np.longdouble(1) + np.longdouble(2)**-60)):
        many = np.full(5000, 1, dtype=kind)
        many[4999] = wide
        fails(sluice.UsageError, "53 significant bits", sluice.convert, coords, os.path.join(folder, "x.slc"), many)
        many[4999] = 2**60 if kind != np.longdouble else 0.1
        if kind != np.longdouble:
            sluice.convert(coords, os.path.join(folder, "wide.slc"), many, overwrite=True)
    fails(sluice.UsageError, "need values", sluice.convert, want, os.path.join(folder, "x.slc"))
    fails(sluice.UsageError, "NoneType is neither a table", sluice.convert, None, os.path.join(folder, "x.slc"))
    fails(sluice.InputError, "entry 0", sluice.convert, coords, os.path.join(folder, "x.slc"), values, shape=(9, 9, 9))
    check(not os.path.exists(os.path.join(folder, "x.slc")), "something is left")


def scipy_sparse(folder):
    scipy = need("scipy.sparse")
    matrix = scipy.random(30, 40, 0.2, random_state=1, format="csr")
    tensor = sluice.convert(matrix, os.path.join(folder, "m.slc"))
    check(tensor.shape == (30, 40) and np.array_equal(dense(tensor, folder), matrix.toarray()), tensor)
    try:
        cube = scipy.coo_array((np.array([1., 2, 3]), ([0, 1, 2], [0, 1, 1], [2, 0, 1])), shape=(3, 2, 4))
    except (TypeError, ValueError):
        return  # SciPy before 1.15 has only matrices
    tensor = sluice.convert(cube, os.path.join(folder, "c.slc"))
    check(tensor.shape == (3, 2, 4) and np.array_equal(dense(tensor, folder), cube.toarray()), tensor)


def sptensors(folder):
    """Objects with the attributes of pyttb's sptensor (subs, vals and shape) are converted."""
    class Sptensor:
        def __init__(self, subs, vals, shape):
            self.subs, self.vals, self.shape = subs, vals, shape

    tensor = sluice.convert(Sptensor(np.array([[0, 2], [2, 1]]), np.array([[1.5], [2.0]]), (3, 4)), os.path.join(folder, "t.slc"))
    check(tensor.shape == (3, 4) and dense(tensor, folder)[0, 2] == 1.5 and dense(tensor, folder)[2, 1] == 2, tensor)
    for empty in (np.array([]), np.empty((0, 2), dtype=int)):
        tensor = sluice.convert(Sptensor(empty, np.empty((0, 1)), (3, 4)), os.path.join(folder, "e.slc"), overwrite=True)
        check(tensor.shape == (3, 4) and tensor.nnz == 0, tensor)


def pydata_sparse(folder):
    sparse = need("sparse")
    array = sparse.random((10, 11, 12), density=0.1, random_state=1)
    tensor = sluice.convert(array, os.path.join(folder, "s.slc"))
    check(tensor.shape == array.shape and np.array_equal(dense(tensor, folder), array.todense()), tensor)
    packed = sluice.convert(sparse.GCXS.from_coo(array), os.path.join(folder, "g.slc"))
    check(packed.shape == array.shape and np.array_equal(dense(packed, folder), array.todense()), packed)
    for filled in (array + 1, sparse.GCXS.from_coo(array + 1)):
        fails(sluice.UsageError, "the fill value 1", sluice.convert, filled, os.path.join(folder, "f.slc"))


def frames(folder):
    pandas = need("pandas")
    frame = pandas.DataFrame({"who": ["b", "a", "b", "c"], "when": [0, 1, 3, 1], "n": [1.0, 2.0, 3.0, 4.0],
                              "what": pandas.Categorical(["y", "x", "y", "x"], categories=["y", "x", "z"])})
    tensor = sluice.convert(frame, os.path.join(folder, "f.slc"), columns=["who", "int(when)"], value="n")
    check(tensor.shape == (3, 4) and list(tensor.labels(0)) == ["b", "a", "c"], tensor)
    check(tensor.titles == ("who", "int(when)"), tensor.titles)
    check(np.array_equal(dense(tensor, folder), [[1, 0, 0, 3], [0, 2, 0, 0], [0, 4, 0, 0]]), "values differ")
    counted = sluice.convert(frame, os.path.join(folder, "c.slc"), columns=["who", "what", "when"])
    check(counted.shape == (3, 2, 3) and list(counted.labels(1)) == ["y", "x"] and list(counted.labels(2)) == ["0", "1", "3"],
          counted.labels(2))
    gaps = pandas.DataFrame({"who": ["b", None, "c"], "when": [0, 1, 2], "n": [1.0, 2.0, float("nan")],
                             "what": pandas.Categorical(["y", "x", None])})
    for name, columns, row in (("who", ["who", "when"], 2), ("what", ["what"], 3), ("n", ["when"], 3)):
        fails(sluice.InputError, f":{row}:", sluice.convert, gaps, os.path.join(folder, "g.slc"), columns=columns,
              value_column="n")
    fails(sluice.UsageError, "no column 'whom'", sluice.convert, frame, "no.slc", columns=["whom"])


def tables(folder):
    """The store of a CSV with names equals that of the command; tensors and coordinates have
    names."""
    text = os.path.join(folder, "t.csv")
    with open(text, "w") as file:
        file.write("who,when,n\nann,2024-01-05 10:20:00,2\nbob,2024-01-05 11:00:00,1\nann,2024-01-06 10:59:59,0.5\n,,1\n")
    store, other = os.path.join(folder, "t.slc"), os.path.join(folder, "o.slc")
    fails(sluice.InputError, "who", sluice.convert, text, store, columns="who", value="n")
    tensor = sluice.convert(text, store, columns=["who", "hour(when)"], value="n", missing="skip")
    command("convert", text, other, "--columns", "who,hour(when)", "--value", "n", "--missing", "skip")
    check(np.array_equal(dense(tensor, folder), dense(sluice.open(other), folder)), "values differ")
    check(list(tensor.labels(0)) == ["ann", "bob"] and tensor.titles == ("who", "hour(when)"), tensor.labels(0))
    check([list(sluice.open(other).labels(n)) for n in (0, 1)] == [list(tensor.labels(n)) for n in (0, 1)], "names differ")
    for null in ("bob,no", ["no", "bob"]):
        tensor = sluice.convert(text, store, columns="who", value="n", missing="skip", null=null, overwrite=True)
        check(list(tensor.labels(0)) == ["ann"], tensor.labels(0))
    frame = {"m": np.array(["10", "2", "1", "NULL", "12"]), "v": np.array([1.0, 2, 3, 4, 5])}
    tensor = sluice.convert(frame, store, columns="sorted(m)", value_column="v", missing="skip", null="NULL", overwrite=True)
    check(list(tensor.labels(0)) == ["1", "2", "10", "12"] and tensor.nnz == 4, tensor.labels(0))
    fails(sluice.UsageError, "not one of auto", sluice.convert, text, store, value="n")
    names = os.path.join(folder, "users.map")
    with open(names, "w") as file:
        file.write("x\ny\nz\n")
    coords = [[0, 2], [1, 0]]
    tensor = sluice.convert(coords, os.path.join(folder, "p.slc"), [1, 2], labels={0: ["r\u00f6t", "gr\u00fcn", "blau"]})
    check(list(tensor.labels(0)) == ["r\u00f6t", "gr\u00fcn", "blau"] and tensor.labels(1) is None, tensor.labels(0))
    fails(sluice.UsageError, "zero character", sluice.convert, coords, "no.slc", [1, 2], labels={0: ["a\0"]})
    fails(sluice.UsageError, "names of mode 2", sluice.convert, coords, "no.slc", [1, 2], labels={2: ["a"]})
    fails(sluice.UsageError, "apply only to files", sluice.convert, coords, "no.slc", [1, 2], missing="skip")
    tensor.export(os.path.join(folder, "p.tns"))
    fails(sluice.UsageError, "a format in which a tensor cannot be written", tensor.export, os.path.join(folder, "t.parquet"))
    tensor = sluice.convert(os.path.join(folder, "p.tns"), os.path.join(folder, "q.slc"), labels={0: names})
    check([tensor.label(0, n) for n in range(3)] == ["x", "y", "z"] and tensor.label(1, 0) is None, tensor.labels(0))


def numpy_files(folder):
    """Coordinates and values in two files are converted and transformed."""
    paths = [os.path.join(folder, name) for name in ("coords.npy", "values.npy")]
    np.save(paths[0], np.array([[0, 2, 1, 0], [1, 0, 3, 2]]))
    np.save(paths[1], np.array([1.0, -2.0, 3.0, 4.0]))
    tensor = sluice.convert(paths[0], os.path.join(folder, "n.slc"), paths[1], transform="abs,log1p")
    want = np.zeros((3, 4))
    want[[0, 2, 1, 0], [1, 0, 3, 2]] = np.log1p([1, 2, 3, 4])
    check(np.allclose(dense(tensor, folder), want, atol=1e-15), "values differ")
    fails(sluice.UsageError, "cube", sluice.convert, paths[0], os.path.join(folder, "m.slc"), paths[1], transform="cube")
    fails(sluice.UsageError, "modes 0 to 1", tensor.permute, os.path.join(folder, "m.slc"), [1, 1])


def grown(folder):
    """Appending to stores and extracting parts: results equal NumPy's, and names are kept."""
    coords, values = np.array([[0, 2, 1], [1, 0, 3]]), [1.0, 2.0, 3.0]
    tensor = sluice.convert(coords, os.path.join(folder, "a.slc"), values, labels={1: ["n0", "n1", "n2", "n3"]})
    x = dense(tensor, folder)
    with sluice.open(tensor.path).permute(os.path.join(folder, "p.slc"), [1, 0]) as turned:
        check(np.array_equal(dense(turned, folder), x.T) and list(turned.labels(0)) == ["n0", "n1", "n2", "n3"], turned)
    with tensor.slice(os.path.join(folder, "s.slc"), {0: slice(1, None), 1: [0, range(3, 4)]}) as part:
        check(np.array_equal(dense(part, folder), x[1:][:, [0, 3]]) and list(part.labels(1)) == ["n0", "n3"], part)
    kept = tensor.slice(os.path.join(folder, "k.slc"), {0: 2}, keep_indices=True, transform="log1p", codec="lz4")
    check(kept.shape == (3, 4) and np.isclose(dense(kept, folder)[2, 0], np.log1p(2)) and kept.nnz == 1, kept)
    fails(sluice.UsageError, "within its 3 indices", tensor.slice, "no.slc", {0: slice(1, 5)})
    fails(sluice.UsageError, "the step 2", tensor.slice, "no.slc", {0: range(0, 2, 2)})
    more = os.path.join(folder, "more.tns")
    with open(more, "w") as file:
        file.write("4 1 5\n1 2 1\n")
    fails(sluice.InputError, "(fixed_modes)", tensor.append, more, fixed_modes=[0], index_base=1)
    check(tensor.append(more, index_base=1) and not tensor.append(more, index_base=1), "appended twice")
    check(tensor.shape == (4, 4) and tensor.nnz == 4 and dense(tensor, folder)[0, 1] == 2, tensor)


def products(folder):
    """MTTKRP, TTV and TTM are NumPy's."""
    tensor = small(folder)
    x = dense(tensor, folder)
    generator = np.random.default_rng(1)
    factors = [generator.standard_normal((n, 5)) for n in tensor.shape]
    for mode, form in enumerate(("ijk,jr,kr->ir", "ijk,ir,kr->jr", "ijk,ir,jr->kr")):
        others = [factor for n, factor in enumerate(factors) if n != mode]
        want = np.einsum(form, x, *others)
        check(np.allclose(tensor.mttkrp(factors, mode), want, rtol=1e-12, atol=1e-10), f"MTTKRP of mode {mode}")
        weights = generator.standard_normal(5)
        check(np.allclose(tensor.mttkrp(factors, mode, weights=weights), want * weights, rtol=1e-12, atol=1e-10), "weights")
    left = tensor.ttv({1: factors[1][:, 0]}, os.path.join(folder, "left.slc"))
    check(np.allclose(dense(left, folder), np.einsum("ijk,j->ik", x, factors[1][:, 0]), atol=1e-10), "TTV")
    number = tensor.ttv([factor[:, 0] for factor in factors])
    check(np.isclose(number, np.einsum("ijk,i,j,k->", x, *(factor[:, 0] for factor in factors))), "TTV to a number")
    with tensor.ttv_operator(1, threads=2) as op:
        cells = np.zeros((40, 20))
        for r in range(2):
            cells[op.indices(0), op.indices(2)] = op @ factors[1][:, r]
            check(np.allclose(cells, np.einsum("ijk,j->ik", x, factors[1][:, r]), atol=1e-10), f"operator, vector {r}")
        check(op.shape == (np.count_nonzero(x.any(axis=1)), 30) and op.nnz == tensor.nnz and op.memory_bytes > 0, repr(op))
        fails(sluice.UsageError, "expected a matrix of 30 rows", op.matvec, np.ones(29))
        fails(sluice.InputError, "number 3 of the vector", op.matvec, np.where(np.arange(30) == 2, np.nan, 1))
        fails(sluice.UsageError, "out must be", op.matvec, np.ones(30), np.empty(3))
        fails(sluice.UsageError, "not a remaining mode", op.indices, 1)
    fails(sluice.UsageError, "is closed", op.matvec, np.ones(30))
    fails(sluice.BudgetError, "in memory", tensor.ttv_operator, 0, memory="1MiB")
    coords, rows = tensor.ttm(factors[2], 2, os.path.join(folder, "ttm"))
    want = np.einsum("ijk,kr->ijr", x, factors[2])
    check(isinstance(rows, np.memmap) and len(rows) == np.count_nonzero(x.any(axis=2)), "rows of TTM")
    check(np.allclose(rows, want[coords[:, 0], coords[:, 1]], atol=1e-10), "TTM")
    fails(sluice.UsageError, "rows", tensor.mttkrp, [factor[:-1] for factor in factors], 0)
    divided = [tensor.ttv({1: factors[1][:, 0]}, os.path.join(folder, f"part{i}.slc"), part=(i, 3)).path for i in range(3)]
    joined = sluice.join(divided[::-1], os.path.join(folder, "joined.slc"))
    check(np.array_equal(dense(joined, folder), dense(left, folder)), "joined TTV")
    some = [tensor.mttkrp(factors, 0, part=(i, 3)) for i in range(3)]
    check(np.array_equal(sum(some), tensor.mttkrp(factors, 0, deterministic=True)), "parts of MTTKRP")
    tensor.add_layout("fiber", 2)
    tensor.ttm(factors[2], 2, os.path.join(folder, "whole"))
    for i in range(3):
        tensor.ttm(factors[2], 2, os.path.join(folder, f"part{i}"), part=(i, 3))
    for name, found in zip(("coords", "rows"), sluice.join([os.path.join(folder, f"part{i}") for i in range(3)],
                                                           os.path.join(folder, "joined"))):
        check(np.array_equal(found, np.load(os.path.join(folder, "whole", name + ".npy"))), f"joined {name} of TTM")
    fails(sluice.InputError, "part 3 of 3 is missing", sluice.join, divided[:2], os.path.join(folder, "none.slc"))
    fails(sluice.UsageError, "expected (i, n)", lambda: tensor.ttv({1: factors[1][:, 0]}, "none.slc", part=(3, 3)))
    fails(sluice.UsageError, "weights", tensor.mttkrp, factors, 0, weights=[1, 2])
    fails(sluice.InputError, "weight 1 is nan", tensor.mttkrp, factors, 0, weights=[1, np.nan, 1, 1, 1])


def no_device(folder):
    """Without a GPU: an explicit request fails, otherwise the CPU is used."""
    tensor = small(folder)
    fails(sluice.SluiceError, "device gpu", tensor.cpd, 2, device="gpu")
    check(tensor.cpd(2, 2, device="auto").device_nnz == 0, "a GPU computed")
    fails(sluice.UsageError, "not one of cpu, auto, gpu", tensor.plan, 2, device="tape")
    fails(sluice.UsageError, "device_memory", tensor.plan, 2, device_memory="1GiB")
    fails(sluice.UsageError, "requires device='gpu'", tensor.plan, 2, devices=[0, 1])
    plan = tensor.plan(2, devices=2, split="nnz", threads=1)
    check(plan["device_count"] == 2 and plan["device_name"] == "", str(plan))
    # A plan for an absent GPU, by memory size or by chip.
    plan = tensor.plan(2, device="gpu", device_memory="80GB")
    check(plan["device_name"] == "h100" and plan["device_described"] == 1 and plan["device_budget_bytes"] == 80 * 10**9, str(plan))
    plan = tensor.plan(2, device="gpu", device_name="a100", mode=1)
    check(plan["device_multiprocessors"] == 108 and plan["device_copied_bytes"] > 0, str(plan))
    fails(sluice.UsageError, "use one of a100, a100-80gb, h100", tensor.plan, 2, device="gpu", device_name="tape")
    fails(sluice.UsageError, "(device_name, device)", tensor.plan, 2, device_name="h100")
    fails(sluice.BudgetError, "on h100 needs", tensor.plan, 2, device="gpu", device_memory=1)


EMULATED = """
import os, sys
import numpy as np
import sluice
tensor = sluice.open(sys.argv[1])
factors = [np.random.default_rng(n).random((rows, 3)) for n, rows in enumerate(tensor.shape)]
gpu = {"device": "gpu", "device_memory": "256MiB"}
assert tensor.plan(3, **gpu)["device_name"]
want = tensor.mttkrp(factors, 1)
for how in ({}, {"split": "static=0.5"}, {"devices": [0, 0], "split": "nnz"}):
    assert np.allclose(tensor.mttkrp(factors, 1, **gpu, **how), want), how
vectors = {n: factor[:, 0] for n, factor in enumerate(factors)}
assert np.isclose(tensor.ttv(vectors, **gpu), tensor.ttv(vectors))
assert len(tensor.ttm(factors[1], 1, sys.argv[1] + ".ttm", **gpu)[1]) > 0
result = tensor.cpd(3, 3, tol=0, device="auto")
assert result.device_nnz == 9 * tensor.nnz, result.device_nnz
assert abs(result.fit - tensor.cpd(3, 3, tol=0).fit) < 1e-9
print("done")
"""


def devices(folder):
    """Runs all operations on an emulated GPU, in a process with the library for it."""
    if not os.environ.get("SLUICE_EMULATED_LIBRARY"):
        raise Skip("no GPU is emulated: there is no compiler of C++")
    tensor = sluice.generate(os.path.join(folder, "tiny.slc"), (30, 9, 7), 600, rank=3)
    done = subprocess.run([sys.executable, "-c", EMULATED, tensor.path], capture_output=True, text=True,
                          env=os.environ | {"SLUICE_LIBRARY": os.environ["SLUICE_EMULATED_LIBRARY"],
                                            "PYTHONPATH": PACKAGE})
    check(done.stdout == "done\n", done.stdout + done.stderr)


def same_bits(folder):
    """A decomposition of shared data is bitwise that of the command, in memory and memory-mapped."""
    with sluice.convert(AMINO, os.path.join(folder, "amino.slc")) as tensor:
        command("cpd", tensor.path, "-r", "3", "-i", "12", "--seed", "4", "--deterministic", "-o",
                os.path.join(folder, "command"), "-q")
        kept = tensor.cpd(3, 12, 4, deterministic=True)
        mapped = tensor.cpd(3, 12, 4, deterministic=True, output=os.path.join(folder, "module"))
        loaded = tensor.load(os.path.join(folder, "command"))
    for result in (kept, mapped, loaded):
        for mode, factor in enumerate(result.factors):
            want = np.load(os.path.join(folder, "command", f"mode-{mode + 1}.npy"))
            check(factor.tobytes() == want.tobytes(), f"the factor of mode {mode} of {result}")
        check(result.weights.tobytes() == np.load(os.path.join(folder, "command", "lambda.npy")).tobytes(), "weights")
    check(isinstance(mapped.factors[0], np.memmap) and not isinstance(kept.factors[0], np.memmap), "memory maps")
    check(kept.fits == mapped.fits and kept.fits[-1] == kept.fit and len(kept.fits) == 12, "fits")
    check(kept.stop == "iterations" and kept.resume is None, "properties of the model")
    check((loaded.fit, loaded.stop, loaded.iterations) == (kept.fit, "iterations", 12), f"the recorded run: {loaded}")
    os.remove(os.path.join(folder, "command", "run.json"))
    bare = sluice.open(os.path.join(folder, "amino.slc")).load(os.path.join(folder, "command"))
    check(np.isnan(bare.fit) and bare.iterations == 0, f"no record: {bare}")
    x = np.zeros(tensor.shape)
    x[tuple(entries(sluice.open(tensor.path), folder)[0])] = entries(sluice.open(tensor.path), folder)[1]
    model = np.einsum("r,ir,jr,kr->ijk", kept.weights, *kept.factors)
    check(abs(1 - np.linalg.norm(x - model) / np.linalg.norm(x) - kept.fit) < 1e-10, "the fit")


def constraints(folder):
    """Constraints and penalties are those of the command, to the bit; contradictions are errors."""
    with sluice.convert(AMINO, os.path.join(folder, "amino.slc")) as tensor:
        for number, (words, keywords) in enumerate((
                (("--nonnegative",), {"nonnegative": True}),
                (("--nonnegative=1,3", "--l1", "2=5", "--reg", "0.5", "--bounds", "3=0,0.25", "--method", "admm"),
                 {"nonnegative": (0, 2), "l1": {1: 5}, "reg": 0.5, "bounds": {2: (0, 0.25)}, "method": "admm"}),
                (("--simplex=2", "--smooth", "3=2", "--reg", "1=0.5"), {"simplex": [1], "smooth": {2: 2}, "reg": {0: 0.5}}))):
            out = os.path.join(folder, f"command{number}")
            command("cpd", tensor.path, "-r", "3", "-i", "6", "--tol", "0", "--deterministic", "-q", "-o", out, *words)
            result = tensor.cpd(3, 6, tol=0, deterministic=True, output=os.path.join(folder, f"module{number}"), **keywords)
            for mode, factor in enumerate(result.factors):
                check(factor.tobytes() == np.load(os.path.join(out, f"mode-{mode + 1}.npy")).tobytes(), (words, mode))
            told = [load_json(os.path.join(each, "run.json")) for each in (out, os.path.join(folder, f"module{number}"))]
            check(told[0]["objective"] == told[1]["objective"] and told[0]["method"] == told[1]["method"], words)
            page = os.path.join(folder, "page.html")
            command("report", os.path.join(folder, f"module{number}"), "-o", page, "--overwrite")
            with open(page) as file:
                check(number != 1 or " --method admm --nonnegative=1,3 --l1 1=0 --l1 2=5 --l1 3=0 " in file.read(), "the page")
        fails(sluice.UsageError, "use the method 'hals'", tensor.cpd, 2, nonnegative=True, method="als")
        fails(sluice.UsageError, "nonnegative 3 is not between 0 and 2", tensor.cpd, 2, nonnegative=[3])
        fails(sluice.UsageError, "a mode of l1 4 is not between 0 and 2", tensor.cpd, 2, l1={4: 1})
        fails(sluice.UsageError, "expected a pair of numbers", tensor.cpd, 2, bounds=3)
        fails(sluice.UsageError, "the bounds of mode 1 are 2 and 1", tensor.cpd, 2, bounds=(2, 1))
        fails(sluice.UsageError, "method", tensor.cpd, 2, method="newton")
        sweep = tensor.sweep([2], 1, iters=3, nonnegative=True)
        check(min(factor.min() for factor in sweep.best.factors) >= 0, "negative numbers in a sweep")


def callbacks(folder):
    """A callback that returns True stops the run, which can be resumed; an exception is propagated."""
    tensor = small(folder)
    whole = tensor.cpd(3, 8, tol=0, deterministic=True)
    here = threading.current_thread()
    seen = []

    def stop(iteration):
        check(threading.current_thread() is here, "another thread")
        seen.append(iteration.fit)
        return iteration.iteration == 3

    kept = os.path.join(folder, "kept")
    part = tensor.cpd(3, 8, tol=0, deterministic=True, callback=stop, checkpoint=kept)
    check(part.stop == "stopped" and part.resume == (4, 0) and part.fits == seen and not part.complete, part)
    fails(sluice.UsageError, "rank", tensor.cpd, 4, 8, tol=0, deterministic=True, checkpoint=kept)
    rest = tensor.cpd(3, 8, tol=0, deterministic=True, checkpoint=kept)
    check(rest.fits == whole.fits and rest.iterations == 8 and not os.path.exists(kept), rest)
    check(all(a.tobytes() == b.tobytes() for a, b in zip(rest.factors, whole.factors)), "factors")

    def burst(_):
        raise LookupError("burst")

    fails(LookupError, "burst", tensor.cpd, 3, 8, callback=burst)
    start = [np.random.default_rng(n).random((rows, 3)) for n, rows in enumerate(tensor.shape)]
    fails(sluice.UsageError, "the initial matrix of mode 1 has complex elements", tensor.cpd, 3, 1, init=[start[0], start[1] * 1j, start[2]])
    fails(sluice.UsageError, "masked elements in the initial matrix of mode 0", tensor.cpd, 3, 1, init=[np.ma.masked_less(start[0], 0.5), *start[1:]])
    check(abs(tensor.cpd(3, 30, init=start).fit - tensor.cpd(3, 30, init=start, threads=1).fit) < 1e-10, "a start")


def holdout(folder):
    """Hold-out errors equal those of the command and of NumPy."""
    tensor = small(folder)
    out = os.path.join(folder, "command")
    command("cpd", tensor.path, "-r", "3", "-i", "6", "--tol", "0", "--deterministic", "--holdout", "10%", "-o", out, "-q")
    with open(os.path.join(out, "run.json")) as file:
        want = json.load(file)["holdout"]
    seen = []
    result = tensor.cpd(3, 6, tol=0, deterministic=True, holdout=0.1, callback=seen.append)
    check(result.holdout == sluice.Holdout(want["count"], want["rmse"], want["mae"], want["norm"], want["deviance"]), result.holdout)
    check(len(seen) == 6 and np.isclose(seen[-1].rmse, want["rmse"]) and np.isclose(seen[-1].mae, want["mae"]), seen)
    check(seen[0].rmse != seen[-1].rmse, "the error does not change")
    plain = []
    check(tensor.cpd(3, 1, callback=plain.append).holdout is None and plain[0].rmse is None, plain)
    other = tensor.cpd(3, 6, tol=0, holdout=0.1, holdout_seed=1).holdout
    check(other.norm != want["norm"], other)
    fails(sluice.UsageError, "0.6", tensor.cpd, 3, holdout=0.6)


def predictions(folder):
    """Values of a model equal NumPy's, in memory and in files, and errors equal the command's."""
    tensor = small(folder)
    coords, values = entries(tensor, folder)
    out = os.path.join(folder, "run")
    kept, mapped = tensor.cpd(3, 5, deterministic=True), tensor.cpd(3, 5, deterministic=True, output=out)
    model = np.einsum("r,ir,jr,kr->ijk", kept.weights, *kept.factors)
    for result in (kept, mapped):
        got = result.predict(coords)
        check(np.allclose(got, model[tuple(coords)], rtol=1e-13, atol=1e-13), result)
        check(np.array_equal(result.predict([column.astype(np.int32) for column in coords], threads=1), got), "columns")
    check(len(kept.predict(np.empty((3, 0), dtype=int))) == 0, "no entries")
    text = os.path.join(folder, "entries.tns")
    want = json.loads(command("predict", out, text, "--json")[0])
    told = kept.predict_file(text, os.path.join(folder, "all.npy"))
    check((told.count, told.rmse, told.mae, told.largest, told.norm, told.index_base) ==
          (want["count"], want["rmse"], want["mae"], want["largest_error"], want["values_norm"], 1), (told, want))
    rows = np.load(os.path.join(folder, "all.npy"))
    check(np.array_equal(rows[:, 0], values) and np.array_equal(rows[:, 1], kept.predict(coords)), "the file")
    fails(sluice.StorageError, "all.npy", kept.predict_file, text, os.path.join(folder, "all.npy"))
    np.savetxt(text, coords.T + 1, fmt="%d")
    check(kept.predict_file(text).rmse is None, "an error without values")
    fails(sluice.InputError, "entry 0: index 40 of mode 0", kept.predict, [[40], [0], [0]])
    fails(sluice.UsageError, "below 0", kept.predict, [[0], [-1], [0]])
    fails(sluice.UsageError, "integers", kept.predict, [[0], [0.5], [0]])
    fails(sluice.UsageError, "shapes", kept.predict, [[0], [0]])


def grown(folder):
    """A Result, or its folder, as the start on a tensor that has grown."""
    generator = np.random.default_rng(3)
    dense = np.einsum("ar,br,cr->abc", *(generator.standard_normal((n, 2)) for n in (9, 8, 7)))
    for name, first, last in (("old", 0, 5), ("new", 5, 7)):
        coords = np.argwhere(dense[:, :, first:last]) + [0, 0, first]
        np.savetxt(os.path.join(folder, name), np.column_stack([coords + 1, dense[tuple(coords.T)]]), fmt=["%d"] * 3 + ["%.17g"])
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "out")
    command("convert", os.path.join(folder, "old"), store)
    with sluice.open(store) as tensor:
        results = tensor.cpd(2, 200, tol=0, deterministic=True), tensor.cpd(2, 200, tol=0, deterministic=True, output=out)
    command("append", store, os.path.join(folder, "new"))
    with sluice.open(store) as tensor:
        check(tensor.shape == (9, 8, 7), tensor.shape)
        warm = [tensor.cpd(2, 2, tol=0, deterministic=True, init=init) for init in (*results, out)]
        check(len({one.factors[2].tobytes() for one in warm}) == 1, "other starts")
        check(warm[0].fit > tensor.cpd(2, 2, tol=0, deterministic=True).fit, f"{warm[0].fit}: no better than a cold start")
        fails(sluice.UsageError, "mode 2", tensor.cpd, 2, 1, init=results[0].factors)


def anomalies(folder):
    """Residuals equal NumPy's and those of the command, with the names of the store."""
    tensor = small(folder)
    coords, values = entries(tensor, folder)
    out = os.path.join(folder, "run")
    kept, mapped = tensor.cpd(3, 5, deterministic=True), tensor.cpd(3, 5, deterministic=True, output=out)
    want = json.loads(command("residuals", out, "--json", "--top", 7, "--by", "below")[0])
    model = kept.predict(coords)
    for run in (kept, mapped, out):
        got = sluice.residuals(run, tensor, top=7, by="below", threads=2)
        check((got.count, got.norm, got.rmse, got.mae, got.mean, got.largest, got.values_norm) ==
              tuple(want[name] for name in ("nnz", "norm", "rmse", "mae", "mean", "largest", "values_norm")), (got, want))
        check([[n + 1 for n in at.index] for at in got.nonzeros] == [at["index"] for at in want["nonzeros"]], got)
        check([at.residual for at in got.nonzeros] == sorted(values - model)[:7], got.nonzeros)
        check({str(q): x for q, x in got.quantiles.items()} == want["quantiles"], (got.quantiles, want))
    check(sluice.residuals(mapped, top=1, quantiles=[0, 1]).quantiles == {0: np.abs(values - model).min(), 1: got.largest}, "extremes")
    check(got.nonzeros[0].names == (None,) * 3, got.nonzeros[0])
    check(sluice.residuals(out).norm == got.norm, "the store that run.json names")
    os.rename(os.path.join(out, "run.json"), os.path.join(folder, "run.json"))
    fails(sluice.UsageError, "pass the store", sluice.residuals, out)
    fails(sluice.UsageError, "by 'most'", sluice.residuals, mapped, by="most")
    fails(sluice.UsageError, "quantile 1.5", sluice.residuals, mapped, quantiles=[1.5])
    fails(sluice.BudgetError, "residuals", sluice.residuals, mapped, memory="1MiB")


def comparisons(folder):
    """compare finds what the command finds."""
    tensor = small(folder)
    outs = [os.path.join(folder, name) for name in "ab"]
    made = [tensor.cpd(rank, 5, seed=rank, output=out) for rank, out in zip((3, 4), outs)]
    want = json.loads(command("compare", *outs, "--json")[0])["runs"]
    first, second = sluice.compare([made[0], outs[1]])
    check(np.isnan(first.score) and first.matches == [] and first.rank == 3, first)
    check((second.score, second.fit, second.rank, second.iterations, second.folder) ==
          (want[1]["score"], want[1]["fit"], 4, 5, outs[1]), (second, want))
    check([(m.component + 1, m.first_component + 1, m.similarity) for m in second.matches] ==
          [(m["component"], m["first_component"], m["similarity"]) for m in want[1]["matches"]], second)
    fails(sluice.UsageError, "not in a folder", sluice.compare, [tensor.cpd(2, 1), outs[0]])
    fails(sluice.StorageError, "nothing", sluice.compare, [os.path.join(folder, "nothing")])


def too_much_memory(folder):
    """A budget beyond the machine's memory is a warning in the caller's thread, from plans and runs."""
    tensor = small(folder)
    os.environ["SLUICE_MEMORY"] = str(768 << 20)  # more memory than the packages of PyPI need
    try:
        for function in (tensor.plan, tensor.cpd):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                function(2, memory="960MiB")
            check(len(caught) == 1 and "960 MiB is more than the 768 MiB of this machine" in str(caught[0].message), caught)
    finally:
        del os.environ["SLUICE_MEMORY"]


def strongest(folder):
    """The top rows equal those of NumPy and of the command, with the names of the store."""
    text, maps = os.path.join(folder, "t.tns"), os.path.join(folder, "mode-1-name.map")
    generator = np.random.default_rng(2)
    np.savetxt(text, np.column_stack([generator.integers(1, n + 1, 500) for n in (20, 9)] + [np.arange(1, 501)]), fmt="%d")
    with open(maps, "w") as file:
        file.writelines(f"name {i}\n" for i in range(1, 21))
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "out")
    command("convert", text, store, "--labels", folder)
    with sluice.open(store) as tensor:
        results = tensor.cpd(3, 4, deterministic=True), tensor.cpd(3, 4, deterministic=True, output=out)
    want = json.loads(command("top", out, "--store", store, "-c", 2, "-n", 6, "--json")[0])["components"][0]["modes"]
    for result in results:
        got = result.top(1, 6)
        check([[(row.index + 1, row.name) for row in mode] for mode in got] ==
              [[(row["index"], row.get("name")) for row in mode["rows"]] for mode in want], (got, want))
        check(got[0][0].name.startswith("name ") and got[1][0].name is None, got)
        order = np.argsort(-np.abs(result.factors[0][:, 1]), kind="stable")[:6]
        check([row.index for row in got[0]] == list(order), (got[0], order))
        check([row.value for row in got[0]] == list(result.factors[0][order, 1]), got[0])
        lowest = result.top(2, 100, modes=[1], by="value")
        check(len(lowest) == 1 and [row.value for row in lowest[0]] == sorted(result.factors[1][:, 2], reverse=True), lowest)
        fails(sluice.UsageError, "no component 3", result.top, 3)
        fails(sluice.BudgetError, "the budget is 1.0 MiB (memory)", result.top, 0, memory="1MiB")
    os.rename(store, store + ".moved")
    check(results[0].top(0, 1)[0][0].name is None, "names of a missing store")


def pages(folder):
    """The record of a run equals its run.json, and pages can be made from it, also without a
    folder."""
    tensor = small(folder)
    out = os.path.join(folder, "out")
    kept, held = (tensor.cpd(3, 4, seed=7, tol=0, output=where) for where in (out, None))
    for name, result in (("a.html", kept), ("b.html", held)):
        check([one["fit"] for one in result.record["iterations"]] == result.fits, result.record)
        check(result.record["options"]["seed"] == 7 and result.record["command"] is None, result.record["options"])
        path = os.path.join(folder, name)
        result.report(path, components=2, rows=3)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        check("--rank 3 --iters 4 --tol 0 --seed 7 " in text and f"{result.fits[-1]:.8f}" in text, text[-3000:])
        check("2 of 3 components" in text, "all components")
        fails(sluice.StorageError, "exists", result.report, path)
        result.report(path, overwrite=True)
    with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
        check(json.load(file) == kept.record == tensor.load(out).record, kept.record)
    command("report", out, "-o", os.path.join(folder, "c.html"))
    check("iterations, exit code 0" in "".join(command("watch", out)), "not watched")
    command("export", out, os.path.join(folder, "tables"), "--format", "csv")
    with open(os.path.join(folder, "one.tns"), "w") as file:
        file.write("1 1 1\n")
    check(float(command("predict", out, os.path.join(folder, "one.tns"))[0].split()[-1]) ==
          kept.predict([[0], [0], [0]])[0], "not predicted")


def sweeps(folder):
    """A sweep reports the same as the command's, also in the same folder, and returns its best run."""
    tensor = small(folder)
    out, other = os.path.join(folder, "module"), os.path.join(folder, "command")
    seen = []
    made = tensor.sweep([2, 3], 2, output=out, iters=5, seed=4, tol=0, deterministic=True, callback=seen.append)
    command("cpd", tensor.path, "-r", "2,3", "--runs", 2, "-i", 5, "--seed", 4, "--tol", 0, "--deterministic", "-o", other, "-q")
    with open(os.path.join(other, "sweep.json")) as file:
        want = json.load(file)
    check([(run.rank, run.seed, run.fit, run.folder, run.kept) for run in made.runs] ==
          [(run["rank"], run["seed"], run["fit"], run["folder"], run["factors_kept"]) for run in want["runs"]], made.runs)
    check([(rank.rank, rank.seed, rank.agreement, rank.consistency) for rank in made.ranks] ==
          [(rank["rank"], rank["best_seed"], rank["agreement"], rank["core_consistency"]) for rank in want["ranks"]], want)
    check(all(os.path.exists(os.path.join(out, run.folder, "run.json")) for run in made.runs), "runs without a record")
    check(made.rank == want["suggestion"]["rank"] and len(seen) == 4 and seen[0].rmse is None, made)
    check(made.best.fit == max(run["fit"] for run in want["runs"] if run["folder"] == want["suggestion"]["best"]), f"the best fit is {made.best.fit}")
    check(made.best.folder == os.path.join(out, want["suggestion"]["best"]) and isinstance(made.best.factors[0], np.memmap), made.best)
    said = command("cpd", tensor.path, "-r", "2,3", "--runs", 2, "-i", 5, "--seed", 4, "--tol", 0, "--deterministic", "-o", out)[0]
    check(said.count("from an earlier part") == 4, said)
    made.report(os.path.join(folder, "sweep.html"))
    with open(os.path.join(folder, "sweep.html"), encoding="utf-8") as file:
        check("id=\"ranks\"" in file.read(), "no page of a sweep")
    kept = tensor.sweep([3], iters=3, consistency="never", holdout=0.2)
    fails(sluice.UsageError, "no output folder", kept.report, os.path.join(folder, "kept.html"))
    check(kept.ranks[0].consistency is None and "never" in kept.ranks[0].note and kept.runs[0].rmse > 0, kept)
    check(not isinstance(kept.best.factors[0], np.memmap) and len(kept.best.factors) == 3, kept.best)
    fault = fails(sluice.SluiceError, "stopped", tensor.sweep, [2, 3], output=os.path.join(folder, "stopped"), iters=3,
                  callback=lambda _: True)
    check(fault.status == "interrupted", fault.status)
    fails(sluice.UsageError, "twice", tensor.sweep, [2, 2])
    fails(sluice.UsageError, "iterations", tensor.sweep, [2, 3], 2, output=out, iters=6)


CHILD = """
import sys, sluice
def tell(iteration):
    print(iteration.iteration, flush=True)
try:
    sluice.open(sys.argv[1]).cpd(3, 1000000, tol=0, deterministic=True, checkpoint=sys.argv[2], callback=tell)
except sluice.Interrupted as fault:
    print("interrupted", fault.result.iterations, fault.checkpoint, flush=True)
    sys.exit(130)
"""


def interrupts(folder):
    """Ctrl-C leaves a checkpoint from which the command resumes; the module resumes from the
    command's."""
    tensor = small(folder)
    kept = os.path.join(folder, "kept")
    child = subprocess.Popen([sys.executable, "-c", CHILD, tensor.path, kept], stdout=subprocess.PIPE, text=True,
                             env=os.environ | {"PYTHONPATH": PACKAGE, "PYTHONDONTWRITEBYTECODE": "1"})
    while child.stdout.readline().strip() not in ("5", ""):
        pass
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[0].splitlines()
    check(child.returncode == 130 and said and said[-1].startswith("interrupted"), f"{child.returncode}: {said[-3:]}")
    done = int(said[-1].split()[1])
    options = ["-r", "3", "--tol", "0", "--deterministic", "--checkpoint", kept]
    told = command("cpd", tensor.path, *options, "-i", done + 5, "-o", os.path.join(folder, "command"))[0]
    check("resumed at iteration" in told, told)
    want = tensor.cpd(3, done + 5, tol=0, deterministic=True)
    for mode, factor in enumerate(want.factors):
        got = np.load(os.path.join(folder, "command", f"mode-{mode + 1}.npy"))
        check(got.tobytes() == factor.tobytes(), f"the factor of mode {mode}")

    # The command, stopped by its time limit, then resumed by the module.
    command("cpd", tensor.path, *options, "-i", 1000000, "--maxsecs", "0.5", "--nowrite", status=75)
    iterations = int(re.search(r"iteration (\d+)", command("info", kept)[0]).group(1))
    went_on = tensor.cpd(3, iterations + 5, tol=0, deterministic=True, checkpoint=kept)
    check(len(went_on.fits) == iterations + 5 and not os.path.exists(kept), went_on)
    want = tensor.cpd(3, iterations + 5, tol=0, deterministic=True)
    check(all(a.tobytes() == b.tobytes() for a, b in zip(went_on.factors, want.factors)), "factors")


def lock_is_free(folder):
    """Other threads run while the library computes."""
    tensor = small(folder)
    count = [0]
    over = threading.Event()

    def counts():
        while not over.is_set():
            count[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=counts)
    thread.start()
    try:
        tensor.cpd(3, 2000000, tol=0, max_seconds=0.5)
    finally:
        over.set()
        thread.join()
    check(count[0] >= 20, f"{count[0]} turns in half a second")


def faults(folder):
    """Exceptions have the cause and the place."""
    text = os.path.join(folder, "bad.tns")
    with open(text, "w") as file:
        file.write("1 1 1 1\n1 x 1 2\n")
    fault = fails(sluice.InputError, "bad.tns:2:3", sluice.convert, text, os.path.join(folder, "bad.slc"))
    check((fault.status, fault.file, fault.line, fault.column, fault.block) == ("input", text, 2, 3, None), vars(fault))
    fault = fails(sluice.StorageError, "none.slc", sluice.open, os.path.join(folder, "none.slc"))
    check(fault.status == "io" and fault.errno == 2, vars(fault))
    tensor = small(folder)
    fails(sluice.BudgetError, "the budget is 1.0 MiB (memory)", tensor.cpd, 3, memory="1MiB")
    fails(sluice.UsageError, "not one of", tensor.cpd, 3, io="tape")
    tensor.add_layout("sorted", 1)
    check([(layout.kind, layout.mode) for layout in tensor.layouts] == [("blco", 0), ("sorted", 1)], tensor.layouts)
    tensor.check()
    tensor.drop_layout("sorted", 1)
    check(len(tensor.layouts) == 1, tensor.layouts)
    path = os.path.join(tensor.path, "blco.blk")
    with open(path, "r+b") as file:
        file.seek(4096)
        byte = file.read(1)
        file.seek(4096)
        file.write(bytes([byte[0] ^ 1]))
    fault = fails(sluice.StorageError, "block 0", tensor.check)
    check(fault.status == "damaged" and fault.block == 0, vars(fault))
    tensor.close()
    fails(sluice.UsageError, "closed", tensor.cpd, 3)


def pyttb(folder):
    """cp_als of pyttb finds the same fit from the same start."""
    other = need("pyttb")
    with sluice.convert(AMINO, os.path.join(folder, "amino.slc")) as tensor:
        coords, values = entries(tensor, folder)
        start = [np.random.default_rng(n).random((rows, 3)) for n, rows in enumerate(tensor.shape)]
        result = tensor.cpd(3, 20, tol=0, init=start)
    x = other.sptensor(coords.T.copy(), values.reshape(-1, 1), tensor.shape)
    model, _, output = other.cp_als(x, 3, stoptol=0, maxiters=20, printitn=0, fixsigns=True,
                                    init=other.ktensor([np.asfortranarray(factor) for factor in start]))
    check(abs(output["fit"] - result.fit) < 1e-8, f"fits {output['fit']} and {result.fit}")
    ours = result.to_pyttb()
    check(abs(ours.norm() - model.norm()) < 1e-6 * model.norm(), "norms")
    check(abs(ours.innerprod(model) - model.norm() ** 2) < 1e-6 * model.norm() ** 2, "models")


def tensorly(folder):
    need("tensorly")
    from tensorly.cp_tensor import cp_to_tensor

    result = small(folder).cpd(3, 5)
    want = np.einsum("r,ir,jr,kr->ijk", result.weights, *result.factors)
    check(np.allclose(cp_to_tensor(result.to_tensorly()), want), "the tensor")


def wheel_contents(folder):
    """A wheel contains only the module and the library."""
    with open(os.path.join(SOURCE, "pyproject.toml"), "rb") as file:
        args = need("tomllib").load(file)["tool"]["meson-python"]["args"]
    if not shutil.which("meson"):
        raise Skip("there is no meson")
    call("meson", "setup", folder, SOURCE, "-Dcuda=disabled", *args["setup"])
    plan = json.loads(call("meson", "introspect", "--install-plan", folder))
    tags = args["install"][0].split("=")[1].split(",")
    found = {file["destination"] for group in plan.values() for file in group.values() if file["tag"] in tags}
    check(found == {"{libdir_shared}/libsluice.so.0", "{py_purelib}/sluice"}, found)


def readme(folder):
    """Runs the example of README.md, with fewer iterations and runs in the short form."""
    block, = re.findall(r"^```python\n(import sluice\n.*?)^```$", source_text("README.md"), re.M | re.S)
    if not FULL:
        block = block.replace("iters=50", "iters=3").replace("runs=5", "runs=1, iters=3")
    os.symlink(os.path.join(SOURCE, "data"), os.path.join(folder, "data"))
    call(sys.executable, "-c", block, cwd=folder, env=os.environ | {"PYTHONPATH": PACKAGE})
    check(os.path.getsize(os.path.join(folder, "flights.html")) > 1000, "no report")


def wheel(folder):
    """pip builds the library and installs it with the module; neither depends on this build folder."""
    if not FULL:
        raise Skip("builds the library anew; SLC_TEST_FULL=1 does")
    need("pip")
    target = os.path.join(folder, "target")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    try:
        call(*pip, "download", "--no-deps", "--dest", folder, "meson-python")
    except AssertionError:
        raise Skip("PyPI, which has meson-python, cannot be reached") from None
    call(*pip, "install", "--no-deps", "--target", target, PACKAGE)
    check(os.path.exists(os.path.join(target, "sluice", "py.typed")), os.listdir(target))
    env = {name: value for name, value in os.environ.items() if name not in ("SLUICE_LIBRARY", "LD_LIBRARY_PATH")}
    said = call(sys.executable, "-c", "import sluice; print(sluice.version(), sluice.__file__, sluice._library.LIB._name)",
                cwd=folder, env=env | {"PYTHONPATH": target})
    check(said.split() == [sluice.__version__, os.path.join(target, "sluice", "__init__.py"),
                           os.path.join(target, ".sluice.mesonpy.libs", "libsluice.so.0")], said)


run([
    ("structs are those of the headers", structs),
    ("stores of arrays", arrays),
    ("stores of scipy's matrices", scipy_sparse),
    ("stores of pyttb's tensors", sptensors),
    ("stores of pydata/sparse arrays", pydata_sparse),
    ("stores of pandas frames", frames),
    ("stores of tables, with names", tables),
    ("stores of two .npy files", numpy_files),
    ("stores that grow, and parts of them", grown),
    ("products are NumPy's", products),
    ("does without a GPU", no_device),
    ("computes on a GPU", devices),
    ("decompositions have the command's bits", same_bits),
    ("constraints are those of the command", constraints),
    ("records and pages of runs", pages),
    ("callbacks stop, and the run resumes", callbacks),
    ("nonzeros are held out as by the command", holdout),
    ("values of a model are NumPy's", predictions),
    ("a start from a Result before the tensor grew", grown),
    ("residuals are NumPy's and the command's", anomalies),
    ("runs are compared as by the command", comparisons),
    ("a budget beyond the machine's memory", too_much_memory),
    ("strongest rows have names", strongest),
    ("sweeps are those of the command", sweeps),
    ("Ctrl-C leaves a checkpoint for the command", interrupts),
    ("the lock is free meanwhile", lock_is_free),
    ("exceptions have cause and position", faults),
    ("pyttb comes to the same fit", pyttb),
    ("TensorLy accepts results", tensorly),
    ("the example of README.md", readme),
    ("a wheel has the module and the library", wheel_contents),
    ("pip builds and installs it", wheel),
])
