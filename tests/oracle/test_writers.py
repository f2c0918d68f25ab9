#!/usr/bin/python3
"""Files as other programs write them: text in the notation of each writer, read without options to
the right mode sizes, base and values, or a clear question. The long form installs the writers that
are on PyPI in a virtual environment and reads the files that they write."""

import json
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import FULL, Skip, check, run, sluice  # noqa: E402
from test_binary import as_text, converted, write  # noqa: E402

try:
    import scipy.io
    import scipy.sparse
except ImportError:
    scipy = None

DIMS = (4, 3, 6)
COORDS = np.array([[0, 3, 1], [0, 2, 1], [1, 4, 0]])
VALUES = np.array([1.5, -2.0, 0.001])


def rows(form, base=1, separator=" ", end=""):
    """Returns the nonzeros, one per line."""
    return "".join(separator.join([str(c + base) for c in column] + [form(value)]) + end + "\n" for column, value in zip(COORDS.T, VALUES))


def full_digits(value):
    return f"{value:.16e}"


def shortest(value):
    return repr(value).removesuffix(".0")


SIZES, COUNT = " ".join(map(str, DIMS)), len(VALUES)
# name: (text, whether the text has the mode sizes)
TEXTS = {
    "FROSTT": (rows(shortest), False),
    "FROSTT with comments": ("# a tensor\n" + rows(shortest), False),
    "SPLATT": (rows(lambda value: f"{value:0.10f}"), False),
    "taco, .tns": (rows(shortest), False),
    "taco, .ttx": (f"%%MatrixMarket tensor coordinate real general\n%\n{SIZES} {COUNT}\n" + rows(shortest), True),
    "MLIR": (f"; extended FROSTT format\n3 {COUNT}\n{SIZES}\n" + rows(shortest), True),
    "extended FROSTT": (f"# extended FROSTT format\n3 {COUNT}\n{SIZES}\n" + rows(shortest), True),
    "GenTen": (f"sptensor indices-start-at-zero\n3\n{SIZES} \n{COUNT}\n" + rows(full_digits, 0, "  "), True),
    "GenTen, from 1": (f"sptensor indices-start-at-one\n3\n{SIZES} \n{COUNT}\n" + rows(full_digits, 1, " "), True),
    "GenTen without a word, from 0": (f"3\n{SIZES}\n{COUNT}\n" + rows(full_digits, 0), True),
    "HiParTI": ("3\n" + "\t".join(map(str, DIMS)) + "\n" + rows(lambda value: f"{value:.16f}", 1, "\t"), True),
    "HiParTI, blanks at ends": (f"3\n{SIZES} \n" + rows(shortest, 1, " ", " "), True),
    "MM-CSF": (f"3\n{SIZES}\n" + rows(shortest), True),
}


def texts(folder):
    """The text of every writer yields the store of the same nonzeros, also with CR LF."""
    want = as_text(folder, DIMS, COORDS, VALUES)
    found = as_text(folder, tuple(int(row.max()) + 1 for row in COORDS), COORDS, VALUES)
    for name, (text, sized) in TEXTS.items():
        for content in (text, text.replace("\n", "\r\n"), text.rstrip("\n")):
            path = write(os.path.join(folder, "t.txt"), content.encode())
            check(converted(folder, path) == (want if sized else found), f"{name}: another store")


def toolbox(folder):
    """Files of export_data of the Tensor Toolbox and of pyttb: sptensor and tensor are converted.
    If no index shows the base of an sptensor, the error asks for it. For ktensor and matrix, the
    error names the type."""
    want = as_text(folder, DIMS, COORDS, VALUES)
    path = os.path.join(folder, "t.txt")
    for ends in ("", " "):
        text = f"sptensor\n3\n{SIZES}{ends}\n{COUNT}\n" + rows(full_digits)
        check(converted(folder, write(path, text)) == want, "an index equal to a size: another store")
        text = f"sptensor\n3\n9 9 9{ends}\n{COUNT}\n" + rows(full_digits)
        _, said = sluice("convert", write(path, text), os.path.join(folder, "o.slc"), status=3)
        check("give the index base, 0 or 1 (--index-base)" in said and "t.txt" in said, said)
        check(converted(folder, path, "--format", "tensortoolbox") == as_text(folder, (9, 9, 9), COORDS, VALUES), "sptensor: another store")
        elements = np.zeros(DIMS)
        elements[tuple(COORDS)] = VALUES
        listed = "".join(f"{value:.16e}\n" for value in elements.ravel(order="F"))
        check(converted(folder, write(path, f"tensor\n3\n{SIZES}{ends}\n{listed}")) == want, "tensor: another store")
    for text, words in ((f"ktensor\n3\n{SIZES}\n1\n1.0\nmatrix\n2\n4 1\n1\n1\n1\n1\n", "this is a ktensor"), ("matrix\n2\n1 2\n1 2\n", "dense matrix")):
        _, said = sluice("convert", write(path, text), os.path.join(folder, "o.slc"), status=3)
        check(words in said, said)


def market(folder):
    """Files of mmwrite of SciPy, with its comment line: real, integer and pattern matrices,
    general, symmetric or skew-symmetric, are converted. For array and complex matrices, the error
    names the type."""
    if scipy is None:
        raise Skip("python3-scipy is not there")
    path = os.path.join(folder, "m.mtx")
    square = scipy.sparse.random(9, 9, density=0.3, random_state=3)
    for name, matrix, options in (("real", scipy.sparse.random(7, 9, density=0.3, random_state=1), {}),
                                  ("comment", scipy.sparse.random(7, 9, density=0.3, random_state=1), {"comment": "a\nb"}),
                                  ("integer", (scipy.sparse.random(7, 9, density=0.3, random_state=2) * 99).astype(int), {}),
                                  ("pattern", scipy.sparse.random(7, 9, density=0.3, random_state=2), {"field": "pattern"}),
                                  ("symmetric", square + square.T, {"symmetry": "symmetric"}),
                                  ("skew", square - square.T, {"symmetry": "skew-symmetric"})):
        scipy.io.mmwrite(path, matrix, **{"precision": 17, **options})
        listed = scipy.sparse.coo_matrix(matrix)
        values = np.ones(listed.nnz) if name == "pattern" else listed.data
        check(converted(folder, path) == as_text(folder, listed.shape, np.array([listed.row, listed.col]), values), f"{name}: another store")
    for name, matrix, words in (("array", np.eye(3), "'array' is not supported"), ("complex", scipy.sparse.eye(3) * 1j, "'complex' is not supported")):
        scipy.io.mmwrite(path, matrix)
        _, said = sluice("convert", path, os.path.join(folder, "o.slc"), status=3)
        check(words in said, f"{name}: {said}")


# Runs in the virtual environment: writes files to the current folder, and their tensors to one
# .npz file each.
WRITE = r"""
import json, sys
import numpy as np, pyttb, scipy.io, scipy.sparse, sparse
random = np.random.default_rng(7)
made = {}
def add(name, dims, coords, values, *options):
    np.savez("want-" + name + ".npz", dims=np.array(dims), coords=np.array(coords, np.int64).reshape(len(dims), -1), values=np.array(values, float))
    made[name] = list(options)
def listed(array):
    return array.shape, np.array(np.nonzero(array)), array[np.nonzero(array)]
dense = random.integers(-4, 5, (5, 4, 7)) * (random.random((5, 4, 7)) < 0.3) * 0.5
coords = np.argwhere(dense)
pyttb.export_data(pyttb.sptensor(coords, dense[tuple(coords.T)][:, None], dense.shape), "sptensor.txt")
add("sptensor.txt", *listed(dense))
pyttb.export_data(pyttb.tensor(dense), "tensor.txt")
add("tensor.txt", *listed(dense))
for name, array in (("c.npy", dense), ("f.npy", np.asfortranarray(dense)), ("i2.npy", (2 * dense).astype(np.int16)), ("f4.npy", dense.astype(np.float32))):
    np.save(name, array)
    add(name, *listed(array.astype(float)))
for dims in ((50,), (6, 7), (5, 4, 7), (3, 4, 5, 6)):
    array = sparse.random(dims, density=0.2, random_state=1)
    name = "coo%d.npz" % len(dims)
    sparse.save_npz(name, array)
    add(name, dims, array.coords, array.data)
sparse.save_npz("gcxs.npz", sparse.GCXS.from_coo(array))
matrix = scipy.sparse.random(30, 20, density=0.1, random_state=2)
for form in ("coo", "csr", "csc"):
    for kind in (matrix.asformat(form), scipy.sparse.coo_array(matrix).asformat(form)):
        name = form + type(kind).__name__[-6:] + ".npz"
        scipy.sparse.save_npz(name, kind)
        add(name, matrix.shape, [matrix.row, matrix.col], matrix.data)
for name, symmetry in (("general.mtx", "general"), ("symmetric.mtx", "symmetric")):
    square = scipy.sparse.random(9, 9, density=0.3, random_state=3)
    square = scipy.sparse.coo_matrix(square + square.T)
    scipy.io.mmwrite(name, square, symmetry=symmetry, precision=17)
    add(name, square.shape, [square.row, square.col], square.data)
for form in ("bsr", "dia"):
    scipy.sparse.save_npz(form + ".npz", matrix.asformat(form))
pyttb.export_data(pyttb.ktensor([np.ones((3, 2)), np.ones((4, 2))]), "ktensor.txt")
json.dump(made, open("made.json", "w"))
"""


def of_writers(folder):
    """Files of the current versions of pyttb, SciPy, pydata/sparse and NumPy convert."""
    if not FULL:
        raise Skip("only in the long form: it installs packages from PyPI")
    venv = os.environ.get("SLC_WRITERS_VENV", os.path.join(folder, "venv"))
    python = os.path.join(venv, "bin", "python3")
    if not os.path.exists(python):
        done = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True)
        if done.returncode == 0:
            done = subprocess.run([python, "-m", "pip", "install", "-q", "pyttb", "scipy", "sparse"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skip(f"the writers cannot be installed: {done.stderr[-200:]}")
    files = os.path.join(folder, "files")
    os.mkdir(files)
    done = subprocess.run([python, "-c", WRITE], cwd=files, capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    with open(os.path.join(files, "made.json"), encoding="utf-8") as file:
        made = json.load(file)
    for name, options in made.items():
        want = np.load(os.path.join(files, f"want-{name}.npz"))
        check(converted(folder, os.path.join(files, name), *options) ==
              as_text(folder, tuple(want["dims"].tolist()), want["coords"], want["values"]), f"{name}: another store")
    for name, words in (("gcxs.npz", "GCXS array of pydata/sparse: save its tocoo()"), ("bsr.npz", "format bsr: save its tocoo()"),
                        ("dia.npz", "format dia: save its tocoo()"), ("ktensor.txt", "this is a ktensor")):
        path = os.path.join(files, name)
        done = sluice("convert", path, os.path.join(folder, "o.slc"), status=3)[1]
        check(words in done and name in done, f"{name}: {done}")


run([("texts", texts), ("Tensor Toolbox", toolbox), ("Matrix Market", market), ("files of the writers", of_writers)])
