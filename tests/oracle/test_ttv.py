#!/usr/bin/python3
"""Tensor times vectors against NumPy: every mode of real tensors, several modes at once, numbers."""

import itertools
import json
import os
import re
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
import slc_format  # noqa: E402
from exported import read_text  # noqa: E402
from tap import FULL, QUICK, bundled, check, read_bytes, run, sluice  # noqa: E402

LARGE = "gitlog-petsc-5d"
# More tensors next to the checkout; used with SLC_TEST_FULL.
SHARED = ("cmudict-wpp", "flights-4d", "gitlog-petsc-5d", "kg-fb15k-237", "parti-3d_dense", "splatt-med4",
          "splatt-small", "splatt-small4", "tkg-icews14", "uber-part", "wordnet30-srs")


def vectors_of(folder, dims):
    """Returns a vector per mode with some zeros, and saves each to a file."""
    draw = np.random.default_rng(7)
    vectors = [draw.normal(size=int(length)) for length in dims]
    for mode, vector in enumerate(vectors):
        vector[::5] = 0
        np.save(os.path.join(folder, f"v{mode + 1}.npy"), vector)
    return vectors


def contracted(tensor, vectors, modes):
    """Returns the remaining mode sizes, the ascending coordinates of the nonempty fibers, their
    sums, and sums of magnitudes."""
    kept = [m for m in range(len(tensor["dims"])) if m not in modes]
    products = tensor["values"].astype(np.float64)
    for mode in modes:
        products = products * vectors[mode][tensor["coords"][mode].astype(np.int64)]
    if not kept:
        return [], None, products.sum(), np.abs(products).sum()
    dims = [tensor["dims"][m] for m in kept]
    coords, fiber = cp_als.distinct(dims, tensor["coords"][kept])
    return dims, coords, np.bincount(fiber, products), np.bincount(fiber, np.abs(products))


def compare(result, want):
    """Returns the largest error relative to the sum of magnitudes; a missing sum counts as zero."""
    dims, coords, sums, magnitudes = want
    check(result["dims"] == dims, f"{result['dims']} are not {dims}")
    check((result["coords"] < np.array(dims)[:, None]).all(), "a coordinate past its mode")
    fibers, keys = (cp_als.numbered(dims, c) for c in (coords, result["coords"]))
    check(len(np.unique(keys)) == len(keys) == len(result["values"]), "a coordinate twice")
    check((result["values"] != 0).all(), "a zero is stored")
    check(np.isin(keys, fibers).all(), "a coordinate that no fiber has")
    found = np.zeros(len(fibers))
    found[np.searchsorted(fibers, keys)] = result["values"]
    some = magnitudes > 0
    return float((np.abs(found - sums)[some] / magnitudes[some]).max(initial=0.0))


def blocks_of(store):
    return read_bytes(os.path.join(store, "blco.blk"))


def arguments(folder, modes):
    return [a for m in modes
            for a in ("--mode", m + 1, "--vector", os.path.join(folder, f"v{m + 1}.npy"))]


def real(name, *convert):
    def test(folder):
        store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
        sluice("convert", bundled(name), store, "-q", *convert)
        # The largest tensor is read as text, which is faster: other tests compare its store with
        # the second reader.
        read = slc_format.read_store if FULL or name != LARGE else lambda s: read_text(s, folder)
        tensor = read(store)
        order = len(tensor["dims"])
        vectors = vectors_of(folder, tensor["dims"])
        choices = [(m,) for m in range(order)] + [(0, order - 1)] + [tuple(range(1, order))]
        for modes in choices:
            sluice("ttv", store, *arguments(folder, modes), out, "-q", "-f")
            result = read(out)
            worst = compare(result, contracted(tensor, vectors, modes))
            check(worst <= 1e-12, f"modes {modes}: {worst}")
            sluice("check", out, "-q")
        modes = tuple(range(order))
        number, messages = sluice("ttv", store, *arguments(folder, modes), "--progress", "never")
        check(messages == "", messages)
        _, _, total, magnitude = contracted(tensor, vectors, modes)
        check(abs(float(number) - total) <= 1e-12 * magnitude, f"{number} is not {total}")
    return test


def in_order(name):
    """Every mode from a store with layouts of whole fibers: no sorting is necessary."""
    def test(folder):
        store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
        sluice("convert", bundled(name), store, "-q")
        tensor = slc_format.read_store(store)
        vectors = vectors_of(folder, tensor["dims"])
        for mode in range(len(tensor["dims"])):
            sluice("convert", bundled(name), store, "-q", "-f", "--fibers", f"{mode + 1}:24")
            printed, _ = sluice("ttv", store, *arguments(folder, (mode,)), out, "-f")
            check("sums written in order" in printed, printed)
            worst = compare(slc_format.read_store(out), contracted(tensor, vectors, (mode,)))
            check(worst <= 1e-12, f"mode {mode}: {worst}")
            sluice("check", out, "-q")
    return test


def one_by_one(folder):
    """Contracting mode after mode equals contracting all at once: every result is a store."""
    store = os.path.join(folder, "x0.slc")
    sluice("generate", store, "--dims", "40x50x60x7", "--nnz", 20000, "-q")
    tensor = slc_format.read_store(store)
    vectors = vectors_of(folder, tensor["dims"])
    for step in range(3):
        following = os.path.join(folder, f"x{step + 1}.slc")
        sluice("ttv", store, "--mode", 1, "--vector", os.path.join(folder, f"v{step + 1}.npy"),
               following, "-q", "--relabel", "frequency", "-t", step + 1)
        store = following
    number, _ = sluice("ttv", store, "--mode", 1, "--vector", os.path.join(folder, "v4.npy"), "-q")
    _, _, total, magnitude = contracted(tensor, vectors, (0, 1, 2, 3))
    check(abs(float(number) - total) <= 1e-12 * magnitude, f"{number} is not {total}")


def small_memory(folder):
    """The smallest budget, which an error names, yields the same bytes as a large budget."""
    store = os.path.join(folder, "x.slc")
    sluice("generate", store, "--dims", "3000x2000x1000", "--nnz",
           300000 if QUICK else 3000000, "-q")
    np.save(os.path.join(folder, "v.npy"), np.random.default_rng(1).normal(size=2000))
    out = os.path.join(folder, "y.slc")
    command = ("ttv", store, "--mode", 2, "--vector", os.path.join(folder, "v.npy"), out, "-q", "-f",
               "-t", 2, "--memory")
    _, refused = sluice(*command, "1MiB", status=4)
    # The process is counted in steps of 4 MiB, and may have grown by a step since the error.
    least = int(re.search(r"needs (\d+) MiB of memory", refused).group(1)) + 4
    written = []
    for memory in ("1GiB", f"{least}MiB"):
        sluice(*command, memory)
        written.append(blocks_of(out))
    check(written[0] == written[1], "memory changes the result")


def every_way(name):
    """Every mode, from blco and from whole fibers, by every method and schedule, has the same
    result."""
    def test(folder):
        store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
        sluice("convert", bundled(name), store, "-q")
        tensor = slc_format.read_store(store)
        vectors = vectors_of(folder, tensor["dims"])
        ios = ["pread", "mmap"] + (["uring"] if probe_uring(store, folder, len(vectors)) == 0 else [])
        for layout in ("blco", "fiber"):
            if layout == "fiber":
                sluice("layout", store, "--fiber", "all", "-q")
            for mode in range(len(vectors)):
                written = set()
                for io, schedule in itertools.product(ios, ("file", "largest")):
                    sluice("ttv", store, *arguments(folder, (mode,)), out, "-q", "-f", "--io", io,
                           "--schedule", schedule, "-t", 1 + len(written) + len(schedule) % 3)
                    written.add(blocks_of(out))
                check(len(written) == 1, f"mode {mode} from {layout}: reading changes the result")
                worst = compare(slc_format.read_store(out), contracted(tensor, vectors, (mode,)))
                check(worst <= 1e-12, f"mode {mode} from {layout}: {worst}")
    return test


def twice_the_budget(folder):
    """For a store of twice the budget with whole fibers, the bytes are the same as with a large
    budget, and are written as sums complete."""
    store, out, vector = (os.path.join(folder, name) for name in ("x.slc", "y.slc", "v.npy"))
    sluice("generate", store, "--dims", "3000x2000x1000", "--nnz", 300000 if QUICK else 4500000,
           "--codec", "blco", "--fibers", "2:11", "--block-bytes", "1MiB", "-q")
    np.save(vector, np.random.default_rng(1).normal(size=2000))
    written = []
    for more in (("--memory", "32MiB"), ("--memory", "1GiB", "--sort", "--fibers", "none")):
        printed, _ = sluice("ttv", store, "--mode", 2, "--vector", vector, out, "-f", "-t", 2, *more)
        written.append(blocks_of(out))
        check(("sums written in order" in printed) == (len(written) == 1) or QUICK, printed)
        if len(written) == 1 and not QUICK:
            size = os.path.getsize(os.path.join(store, "blco.blk"))
            peak = float(re.search(r"memory +peak ([\d.]+) MiB", printed).group(1))
            check(peak <= 32 and size >= 2 * 32 << 20, f"{peak} MiB for {size} bytes")
    check(written[0] == written[1], "the budget changes the result")


def reading(folder):
    """Every I/O method and schedule yields the same bytes, or the same number, and reports its
    work."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
    sluice("generate", store, "--dims", "40x50x60", "--nnz", 30000, "-q", "--fibers", "3:6")
    vectors_of(folder, (40, 50, 60))
    written = {1: set(), 3: set(), "number": set()}
    for io in ("pread", "mmap", "uring"):
        for schedule in ("file", "largest"):
            how = ("--io", io, "--schedule", schedule, "-t", 3)
            status = 0 if io != "uring" else probe_uring(store, folder)
            for mode in (1, 3) if status == 0 else ():
                printed, _ = sluice("ttv", store, *arguments(folder, (mode - 1,)), out, "-f", "-v", *how)
                check(f"by {io}" in printed and f"schedule {schedule}" in printed, printed)
                check("blco: 30,000 nonzeros in 1 block, " in printed, printed)
                written[mode].add(blocks_of(out))
                sorted_sums = mode == 1 or schedule == "largest"
                check(("sums sorted" in printed) == sorted_sums, printed)
            if status == 0:
                printed, told = sluice("ttv", store, *arguments(folder, (0, 1, 2)), "-v", *how)
                check(f"by {io}" in told and "by" not in printed, told)
                written["number"].add(printed)
    check(all(len(values) == 1 for values in written.values()), "reading changes the result")


def batch(folder):
    """Many vectors of one mode: the bytes of runs with one vector each, from one read."""
    store = os.path.join(folder, "x.slc")
    sluice("generate", store, "--dims", "40x50x60", "--nnz", 30000, "-q", "--fibers", "3:6")
    paths = [os.path.join(folder, f"v{k}.npy") for k in range(3)]
    for k, path in enumerate(paths):
        np.save(path, np.random.default_rng(k).normal(size=60))
    out, pattern = os.path.join(folder, "y.slc"), os.path.join(folder, "y-%d.slc")
    for more in ((), ("--sort",), ("--fibers", "1")):
        command = ("ttv", store, pattern, "--mode", 3, "--batch", ",".join(paths), "-f", *more)
        told = json.loads(sluice(*command, "--json")[0])
        for k, path in enumerate(paths):
            alone = json.loads(sluice("ttv", store, "--mode", 3, "--vector", path, out, "-f", "--json", *more)[0])
            result = pattern.replace("%d", str(k + 1))
            check(blocks_of(result) == blocks_of(out), f"vector {k + 1}: other bytes")
            want = {name: alone[name] for name in ("result_nnz", "result_bytes", "zero_sums", "dropped_sums")}
            check(told["results"][k] == {**want, "output": result}, str(told))
            check(told["bytes_read"] == alone["bytes_read"], str(told))
        check(len(told["results"]) == len(paths) and "result_nnz" not in told, str(told))
    printed, _ = sluice(*command, "--dry-run")
    check(re.findall(r"^Would write .*y-(\d)\.slc$", printed, re.M) == ["1", "2", "3"], printed)


def hypersparse(folder):
    """Few used indices: the vector in memory has only their elements, and the blocks are read
    once."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
    sluice("generate", store, "--dims", "3000000x50x60", "--nnz", 20000, "-q")
    tensor = slc_format.read_store(store)
    vector = os.path.join(folder, "v.npy")
    vectors = [np.random.default_rng(7).normal(size=3000000)]
    np.save(vector, vectors[0])
    told = json.loads(sluice("ttv", store, "--mode", 1, "--vector", vector, out, "--json")[0])
    used = len(np.unique(tensor["coords"][0]))
    check(told["held"] == [used] and told["bytes_read"] <= told["layout_bytes"], f"{used}, {told}")
    worst = compare(slc_format.read_store(out), contracted(tensor, vectors, (0,)))
    check(worst <= 1e-12, f"{worst}")


def probe_uring(store, folder, order=3):
    """The exit status of a product by io_uring, which may be unavailable here."""
    try:
        sluice("ttv", store, *arguments(folder, range(order)), "--io", "uring", "-q")
    except AssertionError:
        return 1
    return 0


def report(folder):
    """--json reports the layout that was read, its fibers, and the result."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
    sluice("generate", store, "--dims", "40x50x60", "--nnz", 30000, "-q", "--fibers", "none")
    sluice("layout", store, "--fiber", 2, "-q")
    vectors_of(folder, (40, 50, 60))
    printed, _ = sluice("ttv", store, *arguments(folder, (1,)), out, "--json", "-t", 2)
    told, tensor = json.loads(printed), slc_format.read_store(store)
    fibers = np.unique(tensor["coords"][[0, 2]], axis=1).shape[1]
    want = {"schema": "sluice-ttv-1", "modes": [2], "nnz": 30000, "layout": "fiber-2", "threads": 2,
            "used": [[int(tensor["coords"][1].min()) + 1, int(tensor["coords"][1].max()) + 1]],
            "fibers": fibers, "fibers_possible": 2400.0, "dims": [40, 60], "sorted": False}
    check({key: told[key] for key in want} == want, printed)
    check(told["result_nnz"] == len(slc_format.read_store(out)["values"]), printed)
    check(told["bytes_read"] > 0 and told["memory_peak_bytes"] <= told["memory_budget_bytes"], printed)
    printed, _ = sluice("ttv", store, *arguments(folder, (0, 1, 2)), "--json")
    number, _ = sluice("ttv", store, *arguments(folder, (0, 1, 2)), "-q")
    check(json.loads(printed)["number"] == float(number), printed)


def plans(folder):
    """The forecasts of plan and --dry-run match the runs, and the budget they name works."""
    store, out = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
    sluice("generate", store, "--dims", "40x50x60", "--nnz", 30000, "-q", "--fibers", "none")
    sluice("layout", store, "--fiber", 2, "-q")
    vectors_of(folder, (40, 50, 60))
    np.save(os.path.join(folder, "u.npy"), np.ones((50, 3)))
    products = json.loads(sluice("plan", "--no-probe", store, "-r", 3, "--json")[0])["products"]
    check([p["layout"] for p in products] == ["blco", "fiber-2", "blco"], f"{products}")
    check([p["ttv_sorts"] for p in products] == [p["ttm_sorts"] for p in products] == [True, False, True],
          f"{products}")
    renamed = os.path.join(folder, "renamed.slc")
    sluice("generate", renamed, "--dims", "4000x5000x60", "--nnz", 30000, "-q", "--dist", "zipf-shuffled:1.2",
           "--relabel", "frequency")
    check(os.path.exists(os.path.join(renamed, "perm-3.bin")), "nothing is relabelled")
    vector = os.path.join(folder, "ones.npy")
    np.save(vector, np.ones(60))
    printed, _ = sluice("ttv", renamed, "--mode", 3, "--vector", vector, out, "--dry-run")
    check("are in use, as numbered by the store" in printed, printed)
    printed, _ = sluice("plan", "--no-probe", store, "-r", 3)
    check(printed.count("--fiber 1 avoids the sort") == 1 and "--fiber 2" not in printed, printed)
    for mode in (1, 2):
        command = ("ttv", store, *arguments(folder, (mode - 1,)), out, "--json", "-t", 2)
        told = json.loads(sluice(*command, "--dry-run")[0])
        check(not os.path.exists(out) and told["dry_run"], f"{told}")
        least = told["memory_least_bytes"]
        check(abs(least - products[mode - 1]["ttv_minimum_bytes"]) <= 4 << 20, f"{told}")
        sluice(*command, "--dry-run", "--memory", least // 2, status=4)
        done = json.loads(sluice(*command, "--memory", least + (4 << 20))[0])
        check(told["sorted"] == done["sorted"] == (mode == 1), f"{done}")
        check(done["result_nnz"] <= told["result_nnz_most"], f"{done}")
        sluice("ttv", store, *arguments(folder, (mode - 1,)), out, "-f", "-q")
        shutil.rmtree(out)
    matrix = ("--mode", 2, "--matrix", os.path.join(folder, "u.npy"), os.path.join(folder, "o"))
    told = json.loads(sluice("ttm", store, *matrix, "--dry-run", "--json")[0])
    check(told["layout"] == "fiber" and not os.path.exists(os.path.join(folder, "o")), f"{told}")
    done = json.loads(sluice("ttm", store, *matrix, "--json")[0])
    check(told["fibers_most"] == done["fibers"] and told["bytes_to_read"] == done["bytes_read"], f"{told}")
    printed, _ = sluice("ttm", store, "--mode", 1, "--matrix", os.path.join(folder, "v1.npy"),
                        os.path.join(folder, "o"), "--dry-run")
    check("temporary" in printed and "up to 3,000 of mode 1, 1 columns" in printed, printed)


run([
    ("reals, three modes", real("genten-aminoacid_data")),
    ("words, labels", real("wordnet30-srs", "--relabel", "frequency")),
    ("a history, five modes, fibers kept together", real(LARGE, "--fibers", "2")),
    ("reals in order", in_order("genten-aminoacid_data")),
    ("mode after mode", one_by_one),
    ("every way of reading", reading),
    ("many vectors", batch),
    ("few used indices", hypersparse),
    ("the report", report),
    ("plans", plans),
    ("every mode, layout and way of reading", every_way("genten-aminoacid_data")),
    ("small memory", small_memory),
    ("a store of twice the budget", twice_the_budget),
] + [(f"every way, {name}", every_way(name)) for name in SHARED if FULL])
