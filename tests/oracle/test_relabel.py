#!/usr/bin/python3
"""Relabelling by frequency: the second reader undoes it, users never see it, no store gets larger,
and every damaged byte of a permutation is found and named."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
import slc_format  # noqa: E402
from tap import QUICK, Skip, unpacked, check, load_json, run, sluice  # noqa: E402

FREQUENCY = ("--relabel", "frequency")
PLAIN = ("--fibers", "none")
REAL = ("flights-4d", "wordnet30-srs", "cmudict-wpp", "gitlog-petsc-5d", "genten-aminoacid_data",
        "splatt-small", "splatt-small4", "parti-3d_dense", "kg-fb15k-237", "splatt-med4",
        "tkg-icews14", "uber-part")


def store_bytes(store):
    return sum(os.path.getsize(os.path.join(store, name)) for name in os.listdir(store))


def rows_of(store, folder):
    """The size of the store's text and the sum of the hashes of its lines, which is independent of
    their order."""
    out = os.path.join(folder, "rows.tns")
    sluice("export", store, out, "--overwrite")
    with open(out, "rb") as file:
        return os.path.getsize(out), sum(map(hash, file))


def zipf_store(folder, name, dims="3000x2000x500", nnz=300000, more=()):
    store = os.path.join(folder, name)
    sluice("generate", store, "--dims", dims, "--nnz", nnz, "--dist", "zipf-shuffled:1.1", *more)
    return store


def nonzeros_of(store):
    """Returns the coordinates and values from the second reader, in its order."""
    content = slc_format.read_store(store)
    order = np.lexsort(content["coords"])
    return content["coords"][:, order], content["values"][order]


def generated(folder):
    """Relabelled zipf-shuffled tensors of several shapes are not larger, have the same rows, and
    agree with the second reader."""
    shapes = ("3000x2000x500", "20000x20000", "900x1x700x300", "90x80x70x60x50", "1000000x300x40")
    for number, dims in enumerate(shapes):
        # The gain is smaller if fibers are kept together: see real_tensors.
        plain = zipf_store(folder, f"p{number}.slc", dims, 200000, PLAIN)
        relabelled = zipf_store(folder, f"r{number}.slc", dims, 200000, PLAIN + FREQUENCY)
        check(store_bytes(relabelled) <= store_bytes(plain), f"{dims}: larger")
        check(rows_of(plain, folder) == rows_of(relabelled, folder), f"{dims}: other rows")
        sluice("check", relabelled)
        a, b = nonzeros_of(plain), nonzeros_of(relabelled)
        check((a[0] == b[0]).all() and (a[1] == b[1]).all(),
              f"{dims}: the second reader sees other nonzeros")
        modes = load_json(os.path.join(relabelled, "tensor.json")).get("permutations", [])
        check(modes or number == 4, f"{dims}: nothing was relabelled")


def real_tensors(folder):
    """Available tensors never get larger, and are exported to the same text."""
    found = 0
    for name in REAL[:6] if QUICK else REAL:
        try:
            text = unpacked(name)
        except Skip:
            continue
        found += 1
        plain, relabelled = os.path.join(folder, "p.slc"), os.path.join(folder, "r.slc")
        sluice("convert", text, plain, "--overwrite")
        out, _ = sluice("convert", text, relabelled, "--overwrite", *FREQUENCY)
        check(" relabel " in out, f"{name}: the decision is missing: {out}")
        check(store_bytes(relabelled) <= store_bytes(plain), f"{name}: larger")
        check(rows_of(plain, folder) == rows_of(relabelled, folder), f"{name}: other rows")
        sluice("check", relabelled)
    check(found > 0, "no real tensors")


def budgets(folder):
    """A small budget yields the same store. If the limit of temporary files is too small, the error
    names its option."""
    text = os.path.join(folder, "t.tns")
    sluice("generate", text, "--dims", "300000x2000x500", "--nnz", 600000, "--dist",
           "zipf-shuffled:1.1")
    large, small = os.path.join(folder, "l.slc"), os.path.join(folder, "s.slc")
    sluice("convert", text, large, *FREQUENCY)
    # The memory of a sanitizer counts as memory of the process.
    sluice("convert", text, small, "--memory", "160MiB" if QUICK else "64MiB", "--threads", 1,
           *FREQUENCY)
    for name in sorted(os.listdir(large)):
        if name != "tensor.json":
            with open(os.path.join(large, name), "rb") as a, open(os.path.join(small, name), "rb") as b:
                check(a.read() == b.read(), f"{name} depends on memory")
    refused = os.path.join(folder, "no.slc")
    _, err = sluice("convert", text, refused, "--max-temp", "1MiB", *FREQUENCY, status=4)
    check("--max-temp" in err, f"no reason: {err}")
    check(not os.path.exists(refused) and not os.path.exists(refused + ".part"), "something is left")


def numbers(folder):
    """MTTKRP and CP-ALS agree with the plain store and with NumPy, in the order of the input."""
    plain, relabelled = zipf_store(folder, "p.slc"), zipf_store(folder, "r.slc", more=FREQUENCY)
    tensor = slc_format.read_store(plain)
    dims, coords = tensor["dims"], tensor["coords"].astype(np.int64)
    check(load_json(os.path.join(relabelled, "tensor.json"))["permutations"], "not relabelled")
    results = {}
    for name, store in (("p", plain), ("r", relabelled)):
        out = os.path.join(folder, name + ".r5")
        sluice("cpd", store, "-r", 5, "-i", 6, "--tol", 0, "--seed", 3, "-o", out, "-q")
        results[name] = out
    for file in ("mode-1.npy", "mode-2.npy", "mode-3.npy", "lambda.npy"):
        a, b = (np.load(os.path.join(results[name], file)) for name in ("p", "r"))
        check(np.abs(a - b).max() <= 1e-10 * np.abs(a).max(), f"{file}: {np.abs(a - b).max()}")
    factors = [np.load(os.path.join(results["p"], f"mode-{n + 1}.npy")) for n in range(3)]
    for mode in range(3):
        got = []
        for name, store in (("p", plain), ("r", relabelled)):
            out = os.path.join(folder, name + ".npy")
            sluice("mttkrp", store, "--mode", mode + 1, "--factors", results["p"], "-o", out, "-q")
            got.append(np.load(out))
        want = cp_als.mttkrp(dims, coords, tensor["values"], factors, mode)
        scale = np.abs(want).max()
        check(np.abs(got[1] - want).max() <= 1e-12 * scale, f"mode {mode + 1} differs from NumPy")
        check(np.abs(got[1] - got[0]).max() <= 1e-12 * scale, f"mode {mode + 1} differs")
    # A start from files is in the order of the input, and so is the result of 0 iterations.
    for name, store in (("p", plain), ("r", relabelled)):
        out = os.path.join(folder, name + ".0")
        sluice("cpd", store, "-r", 5, "-i", 0, "--init", results["p"], "-o", out, "-q")
        for n in range(3):
            got = np.load(os.path.join(out, f"mode-{n + 1}.npy"))
            check(np.abs(got - factors[n]).max() <= 1e-14, f"start of mode {n + 1} moved")


def damage(folder):
    """Commands refuse a permutation with a changed byte, cut or extended; check finds missing and
    unlisted files."""
    store = os.path.join(folder, "d.slc")
    rng = np.random.default_rng(3)
    coords = np.unique(rng.integers(0, 20, (300, 3)), axis=0).T.astype(np.uint64)
    slc_format.write_store(store, [20, 20, 20], coords, np.ones(coords.shape[1]),
                           labels={1: list(rng.permutation(20))})
    sluice("check", store)
    path = os.path.join(store, "perm-2.bin")
    with open(path, "rb") as file:
        good = file.read()

    def refused(raw, what):
        with open(path, "wb") as file:
            file.write(raw)
        for command in (("check", store), ("check", "--fast", store),
                        ("export", store, os.path.join(folder, "x.tns")),
                        ("cpd", store, "-r", "2", "-i", "1", "--nowrite")):
            out, err = sluice(*command, status=5)
            check("perm-2.bin" in out + err, f"{what}: {command[0]} does not name the file")

    for at in range(len(good)):
        refused(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1:], f"byte {at}")
    refused(good[:-1], "cut")
    refused(good + b"\0", "extended")
    os.remove(path)
    out, err = sluice("check", store, status=5)
    check("perm-2.bin" in out + err, "a missing file is not named")
    with open(path, "wb") as file:
        file.write(good)
    sluice("check", store)
    with open(os.path.join(store, "perm-3.bin"), "wb") as file:
        file.write(good)
    out, err = sluice("check", store, status=3)
    check("perm-3.bin" in out + err, "a file that is not listed is not named")


def told(folder):
    """info and plan report used ranges of the input, the modes, and sizes with permutations."""
    plain, relabelled = zipf_store(folder, "p.slc"), zipf_store(folder, "r.slc", more=FREQUENCY)
    a, b = sluice("info", plain)[0], sluice("info", relabelled)[0]
    check("numbered by frequency" in b and "numbered by frequency" not in a, f"info: {b}")

    def ranges(text):
        return [line.split("used")[1].split(",")[0] for line in text.splitlines() if "used" in line]

    check(ranges(a) == ranges(b), f"used ranges differ: {ranges(a)} {ranges(b)}")
    import json

    info = json.loads(sluice("info", relabelled, "--json")[0])
    check(info["relabelled_modes"] == [1, 2, 3], f"modes: {info['relabelled_modes']}")
    permutations = sum(os.path.getsize(os.path.join(relabelled, f"perm-{k}.bin")) for k in (1, 2, 3))
    blocks = os.path.getsize(os.path.join(relabelled, "blco.blk"))
    check(info["store_bytes"] == blocks + permutations, "store_bytes leaves out permutations")
    plan = json.loads(sluice("plan", "--no-probe", relabelled, "-r", 8, "--json")[0])
    check(plan["label_bytes"] > 3000 * 4, "the plan leaves out permutations")
    check(json.loads(sluice("plan", "--no-probe", plain, "-r", 8, "--json")[0])["label_bytes"] == 0, "plan")


run([
    ("generated tensors", generated),
    ("real tensors", real_tensors),
    ("budgets", budgets),
    ("numbers", numbers),
    ("damaged permutations", damage),
    ("info and plan", told),
])
