#!/usr/bin/python3
"""Tensor times matrix against NumPy: every mode of real tensors, results larger than memory,
matrices written by other programs, and the leftovers of interrupted or rejected runs."""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
import slc_format  # noqa: E402
from exported import read_text  # noqa: E402
from tap import QUICK, SLUICE, bundled, check, run, sluice  # noqa: E402

LARGE = "gitlog-petsc-5d"
# Nonzeros per step: their terms fit in the L2 cache.
PIECE = 2048


def matrix_of(folder, rows, cols):
    matrix = np.random.default_rng(rows + cols).normal(size=(int(rows), cols))
    np.save(os.path.join(folder, "u.npy"), matrix)
    return matrix


def fibers_of(tensor, mode):
    """Returns the coordinates of the nonempty fibers, ascending, the nonzeros sorted by fiber, and
    the start of each fiber."""
    kept = [m for m in range(len(tensor["dims"])) if m != mode]
    coords, fiber = cp_als.distinct([tensor["dims"][m] for m in kept],
                                    tensor["coords"][kept].astype(np.int64))
    order = np.argsort(fiber, kind="stable")
    return coords.T, order, np.concatenate([[0], np.nonzero(np.diff(fiber[order]))[0] + 1])


def products(tensor, mode, matrix):
    """Yields a slice of fibers at a time, with their rows and sums of magnitudes: all terms
    together are up to a hundred times the size of the tensor."""
    _, order, begins = fibers_of(tensor, mode)
    ends = np.append(begins[1:], len(order))
    first = 0
    while first < len(begins):
        last = max(first + 1, int(np.searchsorted(ends, begins[first] + PIECE, side="right")))
        own = order[begins[first]:ends[last - 1]]
        terms = matrix[tensor["coords"][mode][own].astype(np.int64)]
        terms *= tensor["values"][own].astype(np.float64)[:, None]
        starts = begins[first:last] - begins[first]
        sums = np.add.reduceat(terms, starts)
        yield slice(first, last), sums, np.add.reduceat(np.abs(terms, out=terms), starts)
        first = last


def read(out):
    """Returns the two arrays and the order in which fibers ascend; checks that every fiber occurs
    once."""
    check(sorted(os.listdir(out)) == ["coords.npy", "rows.npy"], os.listdir(out))
    coords, rows = (np.load(os.path.join(out, f"{name}.npy")) for name in ("coords", "rows"))
    check(len(coords) == len(rows), f"{len(coords)} coordinates, {len(rows)} rows")
    return coords, rows, np.lexsort(coords.T[::-1])


def compare(out, tensor, mode, matrix, limit=1e-12):
    coords, rows, order = read(out)
    check(coords.dtype == np.int64 and np.array_equal(coords[order], fibers_of(tensor, mode)[0]), "other fibers")
    worst = max((np.abs(rows[order[fibers]] - want) / np.maximum(magnitude, 1e-300)).max()
                for fibers, want, magnitude in products(tensor, mode, matrix))
    check(worst <= limit, f"mode {mode + 1}, {matrix.shape[1]} columns: {worst}")


def real(name, *convert):
    def test(folder):
        store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y")
        sluice("convert", bundled(name), store, "-q", *convert)
        # The largest tensor is read as text, which is faster: other tests compare its store with
        # the second reader.
        tensor = read_text(store, folder) if name == LARGE else slc_format.read_store(store)
        for mode, length in enumerate(tensor["dims"]):
            cols = (1, 16, 100)[mode % 3]
            matrix = matrix_of(folder, length, cols)
            kernel = ("fiber", "nonzero")[mode % 2]
            text, _ = sluice("ttm", store, "--mode", mode + 1, "--matrix",
                             os.path.join(folder, "u.npy"), out, "--json", "--kernel", kernel,
                             "--progress", "never")
            report = json.loads(text)
            check(report["columns"] == cols and report["nnz"] == len(tensor["values"]), text)
            compare(out, tensor, mode, matrix)
            check(sorted(os.listdir(folder)) == ["u.npy", "x.slc", "y"], os.listdir(folder))
    return test


def fiber_layouts(folder):
    """Layouts of whole fibers are used if present, for relabelled modes or not."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y")
    sluice("generate", store, "--dims", "300x40x1x500", "--nnz", 30000, "-q",
           "--dist", "zipf-shuffled:1.1", "--relabel", "frequency")
    tensor = slc_format.read_store(store)
    sluice("layout", store, "--fiber", "all", "-q")
    for mode, length in enumerate(tensor["dims"]):
        matrix = matrix_of(folder, length, 7)
        text, messages = sluice("ttm", store, "--mode", mode + 1, "--matrix",
                                os.path.join(folder, "u.npy"), out, "--json", "--progress", "never")
        check(json.loads(text)["layout"] == "fiber" and messages == "", text + messages)
        compare(out, tensor, mode, matrix)


def larger_than_memory(folder):
    """The smallest budget, which an error names, yields the same bytes as a large budget."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y")
    sluice("generate", store, "--dims", "3000x200x1000", "--nnz", 40000 if QUICK else 150000, "-q",
           "--fibers", "2:8")
    tensor = slc_format.read_store(store)
    matrix = matrix_of(folder, 200, 100)
    command = ("ttm", store, "--mode", 2, "--matrix", os.path.join(folder, "u.npy"), out, "-q",
               "-t", 2, "--memory")
    _, refused = sluice(*command, "1MiB", status=4)
    # The process is counted in steps of 4 MiB, and may have grown by a step since the error.
    least = int(re.search(r"needs (\d+) MiB of memory", refused).group(1)) + 4
    written = []
    for memory in ("1GiB", f"{least}MiB"):
        sluice(*command, memory)
        written.append([open(os.path.join(out, f"{name}.npy"), "rb").read()
                        for name in ("coords", "rows")])
    check(written[0] == written[1], "memory changes the result")
    check(QUICK or len(written[0][1]) > least << 20, f"{len(written[0][1])} bytes, {least} MiB")
    compare(out, tensor, 1, matrix)


def matrices(folder):
    """Matrices in files written by NumPy and other programs are accepted. Errors name the file of
    an invalid matrix."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y")
    file = os.path.join(folder, "u.npy")
    sluice("generate", store, "--dims", "30x20x10", "--nnz", 900, "-q")
    tensor = slc_format.read_store(store)
    matrix = np.random.default_rng(5).integers(-9, 9, size=(20, 6)).astype(np.float64)
    command = ("ttm", store, "--mode", 2, "--matrix", file, out, "-q")
    for form in (matrix, np.asfortranarray(matrix), matrix.astype(np.float32),
                 matrix.astype(">f8"), matrix.astype(np.int32), np.asfortranarray(matrix, ">f4")):
        np.save(file, form)
        sluice(*command)
        compare(out, tensor, 1, matrix, 0)
    sluice(*command, "--precision", "f32")
    check(read(out)[1].dtype == np.float32, "not f32")
    compare(out, tensor, 1, matrix, 0)  # the result is exact in f32
    np.save(file, matrix[:, 0])
    sluice(*command)
    compare(out, tensor, 1, matrix[:, :1], 0)
    before = read(out)
    for bad, words in ((matrix.T, "20 x any is needed"), (matrix[:19], "20 x any is needed"),
                       (matrix[:, :0], "columns"), (np.zeros((20, 4097)), "4097 columns"),
                       (matrix.astype(np.complex128), "c16"), (np.zeros((20, 2, 2)), "dimension")):
        np.save(file, bad)
        _, message = sluice(*command, status=3)
        check(words in message and "u.npy" in message, message)
    np.save(file, matrix)
    with open(file, "rb+") as handle:
        handle.truncate(os.path.getsize(file) - 8)
    _, message = sluice(*command, status=3)
    check("does not match the file size" in message, message)
    check(all(np.array_equal(a, b) for a, b in zip(before, read(out))), "the result is another")


def stopped(folder):
    """A signal while sorting or multiplying leaves only the earlier result."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y")
    sluice("generate", store, "--dims", "3000x2000x100", "--nnz", 300000 if QUICK else 1000000,
           "-q", "--fibers", "1:12")
    for mode, length, sign in ((1, 3000, "y/rows.npy.tmp"), (3, 100, "y.fibers.tmp.part")):
        matrix_of(folder, length, 60)
        for _ in range(20):
            os.makedirs(out, exist_ok=True)
            with open(os.path.join(out, "rows.npy"), "w") as file:
                file.write("before")
            child = subprocess.Popen([SLUICE, "ttm", store, "--mode", str(mode), "--matrix",
                                      os.path.join(folder, "u.npy"), out, "-q"],
                                     stderr=subprocess.PIPE)
            while not os.path.exists(os.path.join(folder, sign)) and child.poll() is None:
                time.sleep(0.001)
            child.send_signal(signal.SIGTERM)
            _, messages = child.communicate(timeout=60)
            if child.returncode != 0:
                break
        check(child.returncode == 143, f"exit {child.returncode}: {messages}")
        with open(os.path.join(out, "rows.npy")) as file:
            check(file.read() == "before", "the earlier result is gone")
        check(os.listdir(out) == ["rows.npy"], f"leftovers: {os.listdir(out)}")
        check(sorted(os.listdir(folder)) == ["u.npy", "x.slc", "y"], os.listdir(folder))


def two_runs(folder):
    """An output folder in use by another run is rejected and not modified."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y")
    sluice("generate", store, "--dims", "30x20x10", "--nnz", 900, "-q", "--fibers", "1")
    matrix_of(folder, 30, 2)
    os.makedirs(out)
    descriptor = os.open(out, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    command = ["ttm", store, "--mode", 1, "--matrix", os.path.join(folder, "u.npy"), out, "-q"]
    _, message = sluice(*command, status=5)
    check("another run is writing" in message and os.listdir(out) == [], message)
    os.close(descriptor)
    sluice(*command)
    check(len(os.listdir(out)) == 2, os.listdir(out))


def neighbours(folder):
    """A store named after the output is not mistaken for the leftovers of an earlier run."""
    out, beside = os.path.join(folder, "y"), os.path.join(folder, "y.fibers.slc")
    sluice("generate", beside, "--dims", "30x20x10", "--nnz", 900, "-q", "--fibers", "1")
    matrix_of(folder, 10, 2)
    sluice("ttm", beside, "--mode", 3, "--matrix", os.path.join(folder, "u.npy"), out, "-q")
    sluice("check", beside, "-q")
    check(sorted(os.listdir(folder)) == ["u.npy", "y", "y.fibers.slc"], os.listdir(folder))
    # The leftovers of a killed run are replaced.
    os.rename(beside, os.path.join(folder, "x.slc"))
    shutil.copytree(os.path.join(folder, "x.slc"), os.path.join(folder, "y.fibers.tmp"))
    sluice("ttm", os.path.join(folder, "x.slc"), "--mode", 3, "--matrix",
           os.path.join(folder, "u.npy"), out, "-q")
    check(sorted(os.listdir(folder)) == ["u.npy", "x.slc", "y"], os.listdir(folder))


def shapes(folder):
    """One mode, no nonzeros, modes of size 1: shapes that NumPy reads."""
    out, text = os.path.join(folder, "y"), os.path.join(folder, "x.tns")
    for name, lines, dims, mode, fibers in (("vector", "1 2\n3 4\n", (3,), 1, 1),
                                            ("ones", "1 1 5\n1 1 6\n", (1, 1), 2, 1),
                                            ("row", "1 2 5\n1 3 6\n", (1, 3), 1, 2)):
        store = os.path.join(folder, name + ".slc")
        with open(text, "w") as file:
            file.write(lines)
        sluice("convert", text, store, "-q")
        matrix = matrix_of(folder, dims[mode - 1], 3)
        sluice("ttm", store, "--mode", mode, "--matrix", os.path.join(folder, "u.npy"), out, "-q")
        coords, rows = (np.load(os.path.join(out, f"{n}.npy")) for n in ("coords", "rows"))
        check(coords.shape == (fibers, len(dims) - 1) and rows.shape == (fibers, 3), coords.shape)
        if name == "vector":
            check(np.allclose(rows[0], 2 * matrix[0] + 4 * matrix[2]), rows)
    _, message = sluice("ttm", store, "--mode", 3, "--matrix", os.path.join(folder, "u.npy"), out,
                        status=2)
    check("the tensor has 2 modes" in message, message)


run([
    ("reals, three modes", real("genten-aminoacid_data")),
    ("words, labels", real("wordnet30-srs", "--relabel", "frequency", "--fibers", "1:24")),
    ("a history, five modes, fibers kept together", real(LARGE, "--fibers", "2:17")),
    ("layouts of whole fibers", fiber_layouts),
    ("a result larger than memory", larger_than_memory),
    ("matrices of other programs", matrices),
    ("small shapes", shapes),
    ("stores next to the output", neighbours),
    ("two runs at once", two_runs),
    ("stopped by a signal", stopped),
])
