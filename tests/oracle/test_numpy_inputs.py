#!/usr/bin/python3
"""Tensors in files written by NumPy, scipy.sparse and pydata/sparse: each yields the same store as
its text; errors name the fault. Tests of scipy or sparse are skipped without them."""

import gzip
import io
import json
import os
import struct
import sys
import zipfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import binary_forms as forms  # noqa: E402
from tap import Skip, check, run, sluice  # noqa: E402
from test_binary import as_text, converted, goes_on, tensor, write  # noqa: E402

try:
    import scipy.sparse
except ImportError:
    scipy = None
try:
    import sparse
except ImportError:
    sparse = None


def saved(array, **kw):
    out = io.BytesIO()
    np.save(out, array, **kw)
    return out.getvalue()


def archive(compression=zipfile.ZIP_DEFLATED, **members):
    """Returns a .npz file with arbitrary bytes as its members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, content in members.items():
            file.writestr(name + ".npy", content if isinstance(content, bytes) else saved(np.asarray(content)))
    return out.getvalue()


def pairs(folder):
    """Coordinates and values in two .npy files, in both shapes, storage orders, byte orders and all
    types."""
    dims, coords, values = tensor((90, 80, 100), 3000, 1, True)
    want = as_text(folder, dims, coords, values)
    more = ("--dims", "90x80x100")
    v = write(os.path.join(folder, "v.npy"), saved(values))
    cases = {"columns": coords.astype(np.int64), "rows": coords.T.astype(np.int64, order="C"),
             "columns, stored by column": np.asfortranarray(coords), "rows, stored by column": np.asfortranarray(coords.T),
             **{code: coords.astype(code) for code in ("<i1", "<u1", "<i2", ">i2", "<u2", ">u2", "<i4", ">i4", ">u4", "<u8",
                                                       ">i8")}}
    for name, array in cases.items():
        path = write(os.path.join(folder, "c.npy"), saved(array))
        check(converted(folder, (path, v), *more) == want, f"{name}: another store")
    for code in ("<i1", "<i2", ">i4", "<i8", ">i8", "<f2", ">f2", "<f4", ">f4", ">f8"):
        other = write(os.path.join(folder, "o.npy"), saved(values.astype(code)))
        check(converted(folder, (path, other), *more) == want, f"values {code}: another store")
    for shape in ((-1, 1), (1, -1)):
        other = write(os.path.join(folder, "o.npy"), saved(values.reshape(shape)))
        check(converted(folder, (path, other), *more) == want, f"values {shape}: another store")
    write(os.path.join(folder, "o.npy"), gzip.compress(saved(values)))
    with open(path, "rb") as pipe:
        check(converted(folder, ("-", other), *more, stdin=pipe) == want, "a pipe and a compressed file: another store")
    path = write(os.path.join(folder, "c.npy"), saved(coords + 1))
    check(converted(folder, (path, v), *more, "--index-base", 1) == want, "from 1: another store")
    _, messages = sluice("convert", path, v, os.path.join(folder, "n.slc"))
    check("--index-base 1" in messages, f"no note about the base: {messages}")
    truth = write(os.path.join(folder, "o.npy"), saved(values > 0))
    check(converted(folder, (write(path, saved(coords)), truth), *more) == as_text(folder, dims, coords, values > 0),
          "truth values: another store")


def wide_integers(folder):
    """Integers are exact or rejected."""
    held = np.array([(1 << 53) - 1, 1 << 53, (1 << 53) + 2, -(1 << 63), 3 << 61], np.int64)
    coords = np.array([[0, 1, 2, 3, 4]])
    c = write(os.path.join(folder, "c.npy"), saved(coords.T))
    v = write(os.path.join(folder, "v.npy"), saved(held))
    check(converted(folder, (c, v)) == as_text(folder, (5,), coords, held), "another store")
    for bad, code in (((1 << 53) + 1, "<i8"), (-(1 << 62) - 1, ">i8"), ((1 << 64) - 1, "<u8")):
        write(v, saved(np.array([1, 2, bad, 3, 4], code)))
        _, messages = sluice("convert", c, v, os.path.join(folder, "o.slc"), status=3)
        check(f"nonzero 3: value {bad} has more than the 53 significant bits" in messages, messages)
    c = write(os.path.join(folder, "c.npy"), saved(np.array([[0], [(1 << 62) - 1]], np.uint64)))
    write(v, saved(np.array([1.0, 2.0])))
    sluice("convert", c, v, os.path.join(folder, "long.slc"))


def asked(folder):
    """An ambiguous shape is an error, which an option resolves."""
    coords = np.array([[0, 1, 2], [1, 0, 2], [2, 2, 0]])
    values = np.array([1.0, 2.0, 3.0])
    c, v = write(os.path.join(folder, "c.npy"), saved(coords)), write(os.path.join(folder, "v.npy"), saved(values))
    _, messages = sluice("convert", c, v, os.path.join(folder, "o.slc"), status=3)
    check("the format npy-rows or npy-columns (--format)" in messages, messages)
    more = ("--dims", "3x3x3")
    check(converted(folder, (c, v), "--format", "npy-columns", *more) == as_text(folder, (3, 3, 3), coords, values), "columns")
    check(converted(folder, (c, v), "--format", "npy-rows", *more) == as_text(folder, (3, 3, 3), coords.T, values), "rows")
    _, messages = sluice("convert", c, os.path.join(folder, "o.slc"), status=3)
    check("COORDS.npy VALUES.npy OUT.slc" in messages and "npy-dense" in messages, messages)
    _, messages = sluice("convert", "-", "-", os.path.join(folder, "o.slc"), status=2)
    check("standard input" in messages, messages)


def dense(folder):
    """Dense arrays of both storage orders, of all types and of both byte orders are converted
    without their zeros, with any number of threads, through a pipe, and after an interruption. The
    tensor has the shape of the array."""
    generator = np.random.default_rng(5)
    array = generator.integers(-3, 4, (7, 5, 1, 11)).astype(float) * (generator.random((7, 5, 1, 11)) < 0.4)
    array[6] = 0
    want = as_text(folder, array.shape, np.array(np.nonzero(array)), array[np.nonzero(array)])
    path = os.path.join(folder, "d.npy")
    for name, of in {"C": array, "Fortran": np.asfortranarray(array), **{code: array.astype(code) for code in ("<i1", ">i2", "<i8", "<f2", ">f4", ">f8")}}.items():
        check(converted(folder, write(path, saved(of))) == want, f"{name}: another store")
    with open(path, "rb") as pipe:
        check(converted(folder, "-", stdin=pipe) == want, "a pipe: another store")
    check(converted(folder, write(path, gzip.compress(saved(array))), "--threads", 3) == want, "compressed: another store")
    # Many pieces, matrices, vectors and a larger size.
    for shape, more in (((700, 900, 3), ()), ((90000,), ("--format", "npy-dense")), ((300, 40), ())):
        array = generator.random(shape) * (generator.random(shape) < 0.1)
        want = as_text(folder, shape, np.array(np.nonzero(array)), array[np.nonzero(array)])
        for of in (array, np.asfortranarray(array)):
            check(converted(folder, write(path, saved(of)), "--threads", 2, *more) == want, f"{shape}: another store")
    write(path, saved(np.eye(4)))
    check(converted(folder, path, "--dims", "5x9") == as_text(folder, (5, 9), np.array([range(4)] * 2), np.ones(4)), "--dims")
    integers = saved(np.eye(4, dtype=int))
    check(converted(folder, write(path, integers), "--format", "npy-dense") == as_text(folder, (4, 4), np.array([range(4)] * 2), np.ones(4)),
          "integers: another store")
    for what, words, content, *more in (
            ("integers", "or the format npy-dense for a dense tensor (sluice convert COORDS.npy VALUES.npy OUT.slc, --format)", integers),
            ("a number", "a single number without a dimension: save an array", saved(np.float64(3))),
            ("a vector", "the shape (4,) may be that of coordinates or values", saved(np.ones(4))),
            ("NaN", "element 6: value NaN is not finite", saved(np.array([[1, 2, 3], [4, 5, np.nan]]))),
            ("2^53 + 1", "element 2: value 9007199254740993 has more", saved(np.array([[[1, (1 << 53) + 1]]]))),
            ("complex numbers", "type '<c16'", saved(np.ones((2, 2), complex))),
            ("no elements", "an array of shape (3, 0) has no elements", saved(np.zeros((3, 0)))),
            ("17 dimensions", "17 dimensions", saved(np.zeros((1,) * 17))),
            ("a cut file", "does not match", saved(np.ones((3, 3, 3)))[:-1]),
            ("rows", "COORDS.npy VALUES.npy", saved(np.ones((3, 3))), "--format", "npy-rows"),
            ("an index beyond --dims", "beyond the declared mode size 3", saved(np.eye(4)), "--dims", "4x3")):
        _, messages = sluice("convert", write(path, content), os.path.join(folder, "o.slc"), *more, status=3)
        check(words in messages and "d.npy" in messages, f"{what}: {messages}")
        check(os.listdir(folder) == ["d.npy"] or sorted(os.listdir(folder)) == ["d.npy", "same.tns"], os.listdir(folder))
    _, messages = sluice("convert", path, path, os.path.join(folder, "o.slc"), "--format", "npy-dense", status=3)
    check("not for a dense array" in messages, messages)
    zeros = os.path.join(folder, "z.slc")
    out, _ = sluice("convert", write(path, saved(np.zeros((2, 3, 4)))), zeros)
    check("24 elements" in out and json.loads(sluice("info", zeros, "--json")[0])["dims"] == [2, 3, 4], out)


def refused(folder):
    """Arrays that are no tensor: the error names the fault and the file."""
    good = {"c": saved(np.array([[0, 1], [1, 0], [2, 1]])), "v": saved(np.array([1.0, 2.0]))}

    def pair(what, words, *more, status=3, **other):
        paths = [write(os.path.join(folder, name + ".npy"), (good | other)[name]) for name in "cv"]
        _, messages = sluice("convert", *paths, os.path.join(folder, "o.slc"), *more, status=status)
        check(words in messages, f"{what}: {messages}")
        check(sorted(os.listdir(folder)) == ["c.npy", "v.npy"], f"{what}: left {os.listdir(folder)}")

    header = saved(np.zeros(2)).replace(b"(2,)", b"(%d,)" % (1 << 60))
    pair("2^60 values", "v.npy", v=header)
    pair("a cut file", "does not match the", v=good["v"][:-1])
    pair("floats as indices", "integers, because they are indices", c=saved(np.zeros((3, 2))))
    pair("a negative index", "c.npy: nonzero 2: index -1 of mode 1 is negative", c=saved(np.array([[0, -1], [1, 0], [2, 1]])))
    pair("NaN", "v.npy: nonzero 2: value NaN is not finite", v=saved(np.array([1, np.nan])))
    pair("another number", "a row or a column of coordinates per value", v=saved(np.ones(5)))
    pair("complex values", "type '<c16'", v=saved(np.ones(2, complex)))
    pair("objects", "type '|O'", v=saved(np.array([1, "x"], object), allow_pickle=True))
    pair("a number", "c.npy: the array has 0 dimensions", c=saved(np.int64(3)))
    pair("three dimensions", "3 dimensions", c=saved(np.zeros((3, 2, 2), int)))
    pair("17 modes", "17 modes", c=saved(np.zeros((17, 2), int)))
    pair("beyond a length", "nonzero 1: index 2 of mode 3 is beyond the declared mode size 2", "--dims", "2x2x2")
    pair("no .npy file", "is not a .npy file", c=b"1 1 1 2.0\n", status=2)
    pair("values that are text", "not a .npy file", v=b"1.0\n2.0\n3.0\n")
    pair("nothing", "--dims", c=saved(np.zeros((3, 0), int)), v=saved(np.zeros(0)))
    sluice("convert", write(os.path.join(folder, "c.npy"), saved(np.zeros((3, 0), int))),
           write(os.path.join(folder, "v.npy"), saved(np.zeros(0))), os.path.join(folder, "e.slc"), "--dims", "2x2x2")


def of_sparse(folder):
    """pydata/sparse: its own files, compressed or not, of several orders, types and fill values."""
    if sparse is None:
        raise Skip("python3-sparse is not there")
    for seed, dims in enumerate(((50,), (40, 30), (30, 40, 50), (6, 7, 8, 9))):
        given = sparse.random(dims, density=0.1, random_state=seed)
        for array in (given, given.astype(np.float32), (given * 100).astype(np.int32)):
            want = as_text(folder, dims, array.coords, array.data)
            for compressed in (True, False):
                path = os.path.join(folder, "s.npz")
                sparse.save_npz(path, array, compressed=compressed)
                check(converted(folder, path) == want, f"{dims}, {array.dtype}: another store")
        with open(path, "rb") as file:
            content = file.read()
        check(converted(folder, write(path + ".gz", gzip.compress(content))) == want, f"{dims} within gzip")
        with open(path, "rb") as pipe:
            check(converted(folder, "-", stdin=pipe) == want, f"{dims} by a pipe")
    sparse.save_npz(path, sparse.COO(given.coords, given.data, shape=dims, fill_value=1.0))
    _, messages = sluice("convert", path, os.path.join(folder, "o.slc"), status=3)
    check("fill_value is not 0" in messages, messages)
    sparse.save_npz(path, sparse.GCXS.from_coo(given))
    _, messages = sluice("convert", path, os.path.join(folder, "o.slc"), status=3)
    check("a GCXS array of pydata/sparse: save its tocoo()" in messages, messages)


def of_scipy(folder):
    """scipy.sparse: COO, also with duplicates, CSR and CSC with empty rows and columns; other
    formats are rejected."""
    if scipy is None:
        raise Skip("python3-scipy is not there")
    path = os.path.join(folder, "m.npz")
    for seed, shape in enumerate(((300, 200), (1, 900), (900, 1), (5000, 7))):
        matrix = scipy.sparse.random(*shape, density=0.05, random_state=seed)
        matrix = scipy.sparse.coo_matrix((np.append(matrix.data, 5.0), (np.append(matrix.row, 0),
                                                                       np.append(matrix.col, 0))), shape)
        for form in (matrix, matrix.tocsr(), matrix.tocsc(), matrix.tocsr().astype(np.int8)):
            listed = form.tocoo()
            want = as_text(folder, shape, np.array([listed.row, listed.col]), listed.data)
            for compressed in (True, False):
                scipy.sparse.save_npz(path, form, compressed=compressed)
                check(converted(folder, path) == want, f"{shape}, {form.format}: another store")
    scipy.sparse.save_npz(path, scipy.sparse.coo_matrix((3, 4)))
    out, _ = sluice("convert", path, os.path.join(folder, "e.slc"))
    check("3 x 4" in out, f"an empty matrix: {out}")
    scipy.sparse.save_npz(path, scipy.sparse.bsr_matrix(np.eye(4)))
    _, messages = sluice("convert", path, os.path.join(folder, "o.slc"), status=3)
    check("format bsr: save its tocoo()" in messages, messages)
    scipy.sparse.save_npz(path, scipy.sparse.dia_matrix(np.eye(4)))
    _, messages = sluice("convert", path, os.path.join(folder, "o.slc"), status=3)
    check("format dia: save its tocoo()" in messages, messages)


def archives(folder):
    """Archives with inconsistent members, damage or false sizes are refused."""
    good = {"coords": np.array([[0, 1], [1, 0]]), "data": np.array([1.0, 2.0]), "shape": np.array([2, 2]),
            "fill_value": np.array(0.0)}
    csr = {"format": np.array(b"csr"), "shape": np.array([2, 2]), "data": np.array([1.0, 2.0]), "indices": np.array([0, 1]),
           "indptr": np.array([0, 1, 2])}
    want = as_text(folder, (2, 2), good["coords"], good["data"])
    path = os.path.join(folder, "a.npz")
    check(converted(folder, write(path, archive(**good))) == want, "what is sound: another store")

    def bad(what, content, words):
        for more in ((), ("-t", 1)):
            _, messages = sluice("convert", write(path, content), os.path.join(folder, "o.slc"), *more, status=3)
            check(words in messages and "a.npz" in messages, f"{what}: {messages}")
            check(sorted(os.listdir(folder)) == ["a.npz", "same.tns"], f"{what}: left {os.listdir(folder)}")

    bad("no shape", archive(**{k: v for k, v in good.items() if k != "shape"}), "neither the members")
    bad("GCXS", archive(**csr | {"compressed_axes": np.array([0]), "fill_value": np.array(0.0)}), "GCXS array of pydata/sparse: save its tocoo()")
    bad("dense arrays", archive(arr_0=np.ones((2, 2))), "numpy.savez: save a dense array alone")
    bad("fewer values", archive(**good | {"data": np.ones(3)}), "expected (2, 3)")
    bad("another order", archive(**good | {"shape": np.array([2, 2, 2])}), "expected (3, 2)")
    bad("17 modes", archive(**good | {"shape": np.ones(17, int)}), "modes")
    bad("a length of 0", archive(**good | {"shape": np.array([2, 0])}), "size 0")
    bad("a negative length", archive(**good | {"shape": np.array([2, -5])}), "size")
    bad("fill of NaN", archive(**good | {"fill_value": np.array(np.nan)}), "fill_value")
    bad("an index beyond", archive(**good | {"shape": np.array([2, 1])}), "nonzero 1: index 1 of mode 2")
    bad("NaN", archive(**good | {"data": np.array([1.0, np.nan])}), "nonzero 2: value NaN is not finite")
    huge = saved(np.zeros(2)).replace(b"(2,)", b"(%d,)" % (1 << 60))
    bad("2^60 values", archive(**good | {"data": huge}), "does not match the")
    bad("no array", archive(**good | {"data": b"text"}), "not a .npy file")
    bad("indptr that falls", archive(**csr | {"indptr": np.array([0, 2, 1])}), "indptr")
    bad("indptr that ends early", archive(**csr | {"indptr": np.array([0, 1, 1])}), "indptr")
    bad("indptr beyond", archive(**csr | {"indptr": np.array([0, 1, 1 << 60])}), "indptr")
    bad("too few rows", archive(**csr | {"indptr": np.array([0, 2])}), "indptr")
    bad("many members", archive(**good | {f"x{i}": np.zeros(1) for i in range(100)}), "members")
    content = archive(**good)
    bad("cut", content[:-30], "damaged")
    lied = bytearray(archive(**good))
    at = lied.rfind(b"PK\x01\x02", 0, lied.find(b"shape.npy", lied.find(b"PK\x01\x02")))
    lied[at + 24:at + 28] = struct.pack("<I", 0xfffffff0)
    bad("a member that claims 4 GiB", bytes(lied), "shape.npy")
    stored = bytearray(archive(zipfile.ZIP_STORED, **good))
    at = stored.find(b"\x93NUMPY", stored.find(b"data.npy")) + 128
    stored[at] ^= 1
    bad("a flipped bit", bytes(stored), "damaged")


def resumed(folder):
    """Interrupted conversions of two files and of members resume."""
    dims, coords, values = tensor((3000, 2000, 90), 400000, 7, True)
    coords[:, 0], values[0] = np.array(dims) - 1, 1
    want = as_text(folder, dims, coords, values, "--block-bytes", "64KiB")
    write(os.path.join(folder, "c.npy"), saved(coords))
    write(os.path.join(folder, "v.npy"), saved(values))
    write(os.path.join(folder, "m.npz"), archive(coords=coords, data=values, shape=np.array(dims)))
    goes_on(folder, ["c.npy", "v.npy"], want)
    goes_on(folder, ["m.npz"], want)


if __name__ == "__main__":
    run([
        ("interrupted", resumed),
        ("pairs of .npy files", pairs),
        ("wide integers", wide_integers),
        ("asked", asked),
        ("dense arrays", dense),
        ("refused", refused),
        ("pydata/sparse", of_sparse),
        ("scipy.sparse", of_scipy),
        ("archives", archives),
    ])
