#!/usr/bin/python3
"""Stores at the limits of the format, modified stores, and the size of the index."""

import math
import os
import random
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import slc_format  # noqa: E402
from tap import FULL, QUICK, bundled, check, load_json, run, sluice  # noqa: E402


def convert_text(folder, name, text, *more):
    path, store = os.path.join(folder, name + ".tns"), os.path.join(folder, name + ".slc")
    with open(path, "w") as file:
        file.write(text)
    sluice("convert", path, store, *more)
    return path, store


def rows_of(path):
    with open(path) as file:
        return sorted(line.split() for line in file if line.strip() and line[0] != "#")


def whole_life(folder, name, text, *more, cpd_status=0):
    """convert, check, info, export (equal to the input), cpd; returns the tensor of the store."""
    path, store = convert_text(folder, name, text, *more)
    sluice("check", store)
    sluice("check", "--fast", store)
    out, _ = sluice("info", store)
    check("nnz" in out.lower() or "nonzeros" in out.lower(), "info says nothing of nonzeros")
    back = os.path.join(folder, name + ".back")
    sluice("export", store, back)
    check(rows_of(back) == rows_of(path), "export differs from the input")
    _, messages = sluice("cpd", store, "-r", 2, "-i", 3, "--nowrite", "--tol", 0,
                         status=cpd_status)
    if cpd_status:
        check("sluice:" in messages, "cpd gives no reason")
    return slc_format.read_store(store)


def text_of(rng, dims, nnz):
    coords = {tuple(rng.randrange(d) + 1 for d in dims) for _ in range(nnz)}
    # A nonzero in the last cell fixes the mode sizes.
    coords.add(tuple(dims))
    return "".join(" ".join(map(str, c)) + f" {rng.randrange(1, 9)}\n" for c in coords)


def wide_keys(folder):
    rng = random.Random(5)
    # Different mode sizes whose factors are still small.
    dims = (1 << 21, 1 << 19, 1 << 18, 1 << 18, 1 << 17)
    tensor = whole_life(folder, "bits93", text_of(rng, dims, 5000))
    check(sum(slc_format.mode_bits(d) for d in tensor["dims"]) == 93, "not 93 bits")


def eight_modes(folder):
    whole_life(folder, "modes8", text_of(random.Random(6), (5, 9, 1, 30, 2, 77, 3, 12), 4000))
    whole_life(folder, "modes16", text_of(random.Random(6), (3,) * 16, 500))


def four_billion_rows(folder):
    """A mode of four billion rows is converted and checked, but not decomposed: its factor exceeds
    the budget."""
    dims = (1 << 32, 5, 7)
    rng = random.Random(7)
    path, store = convert_text(folder, "g4", text_of(rng, dims, 2000))
    sluice("check", store)
    sluice("info", store)
    back = os.path.join(folder, "g4.back")
    sluice("export", store, back)
    check(rows_of(back) == rows_of(path), "export differs from the input")
    _, messages = sluice("cpd", store, "-r", 2, "--nowrite", "--memory", "1GiB", status=4)
    check("memory" in messages.lower(), messages)
    tensor = slc_format.read_store(store)
    check(tensor["dims"][0] == 1 << 32, "length")


def tiny(folder):
    whole_life(folder, "ones", "1 1 1 2.5\n1 1 2 3\n")
    whole_life(folder, "single", "3 4 2 7\n")
    whole_life(folder, "point", "1 1 1 4\n")
    whole_life(folder, "matrix", "1 1 1\n1 2 3\n2 2 1\n3 1 5\n")
    _, store = convert_text(folder, "vector", "1 2\n4 3\n")
    sluice("check", store)


def empty(folder):
    """Without nonzeros: declared mode sizes yield a store, and cpd reports why it cannot run."""
    tensor = whole_life(folder, "none", "", "--dims", "3x4x5", cpd_status=1)
    check(tensor["header"]["nnz"] == 0 and tensor["dims"] == [3, 4, 5], "empty store")
    path, store = convert_text(folder, "zeros", "1 1 1 0\n2 2 2 0\n")
    check(slc_format.read_store(store)["header"]["nnz"] == 0, "explicit zeros are kept")


def flip(path, position, bit):
    with open(path, "r+b") as file:
        file.seek(position)
        byte = file.read(1)[0]
        file.seek(position)
        file.write(bytes([byte ^ (1 << bit)]))


def altered(folder):
    """check finds any flipped bit and names the file; cpd stops before using the damaged part."""
    rng = random.Random(int(os.environ.get("SLC_TEST_SEED", "9")))
    for codec in ("packed", "lz4", "blco"):
        store = os.path.join(folder, codec + ".slc")
        sluice("convert", bundled("splatt-med4"), store, "--codec", codec,
               "--block-bytes", "128KiB")
        files = [os.path.join(store, name) for name in sorted(os.listdir(store))]
        weights = [os.path.getsize(name) for name in files]
        for _ in range(1000 if FULL else 10 if QUICK else 40):
            path = rng.choice(files) if rng.random() < 0.3 else rng.choices(files, weights)[0]
            position, bit = rng.randrange(os.path.getsize(path)), rng.randrange(8)
            flip(path, position, bit)
            for command in (("check", store), ("check", "--fast", store),
                            ("cpd", store, "-r", 2, "-i", 2, "--tol", 0, "--nowrite")):
                _, messages = sluice(*command, status=5)
                check(os.path.basename(path) in messages, f"{command[0]} does not name the file: "
                      f"{messages}")
                if path.endswith(".blk"):
                    check("offset" in messages, f"{command[0]} names no offset: {messages}")
            flip(path, position, bit)
        sluice("check", store)


def cut_short(folder):
    rng = random.Random(4)
    store = os.path.join(folder, "t.slc")
    sluice("convert", bundled("splatt-med4"), store, "--block-bytes", "128KiB")
    for name in sorted(os.listdir(store)):
        path = os.path.join(store, name)
        kept = os.path.join(folder, name + ".kept")
        shutil.copy(path, kept)
        size = os.path.getsize(path)
        for cut in [0, 1, size - 1, size - 4096, size // 2] + [rng.randrange(size)
                                                               for _ in range(3 if QUICK else 10)]:
            with open(path, "r+b") as file:
                file.truncate(max(cut, 0))
            for command in (("check", store), ("cpd", store, "-r", 2, "--nowrite")):
                _, messages = sluice(*command, status=5)
                check(name in messages, f"{command[0]}: {messages}")
            shutil.copy(kept, path)
        with open(path, "ab") as file:
            file.write(b"\0" * 4096)
        sluice("check", store, status=5)
        os.replace(kept, path)
    sluice("check", store)


def index_bits(folder):
    """In codec packed, the index is within 1.5 bits of log2(e * product of mode sizes / nnz), and a
    store of integers has a third of BLCO's size."""
    print("# tensor                nnz  bound  index  over  bytes/nnz (whole store)")
    names = ("wordnet30-srs", "gitlog-petsc-5d", "genten-aminoacid_data", "uber-part", "flights-4d",
             "kg-fb15k-237", "cmudict-wpp", "tkg-icews14", "splatt-med4")
    for name in names[:3] if QUICK else names:
        try:
            path = bundled(name)
        except Exception as reason:
            print(f"# {name}: {reason}")
            continue
        store = os.path.join(folder, name + ".slc")
        sluice("convert", path, store)
        manifest = load_json(os.path.join(store, "tensor.json"))
        nnz = manifest["nnz"]
        if nnz < 50000:
            continue
        bound = math.log2(math.e) + sum(map(math.log2, manifest["dims"])) - math.log2(nnz)
        index = 8.0 * manifest["layouts"][0]["index_bytes"] / nnz
        total = sum(os.path.getsize(os.path.join(store, f)) for f in os.listdir(store)) / nnz
        print(f"# {name:22} {nnz:8} {bound:6.2f} {index:6.2f} {index - bound:+5.2f} {total:6.2f}")
        check(index <= bound + 1.5, f"{name}: {index:.2f} bits, bound {bound:.2f}")
        values = slc_format.read_store(store)["values"]
        if (values == np.floor(values)).all():
            check(total <= 16 / 3, f"{name}: {total:.2f} bytes per nonzero")


def not_stores(folder):
    """Folders and files that are no stores: exit code 3 and a clear message."""
    os.makedirs(os.path.join(folder, "empty"))
    sluice("info", os.path.join(folder, "empty"), status=3)
    sluice("cpd", os.path.join(folder, "missing.slc"), "-r", 2, status=5)
    forged = os.path.join(folder, "forged.slc")
    coords = np.array([[0, 1], [1, 2]], dtype=np.uint64)
    slc_format.write_store(forged, [2, 3], coords, np.array([1.0, 2.0]))
    with open(os.path.join(forged, "blco.blk"), "r+b") as file:
        file.write(b"not a block file")
    for command in (["check", forged], ["cpd", forged, "-r", 2, "--nowrite"]):
        _, messages = sluice(*command, status=5)
        check("blco.blk" in messages, messages)
    with open(os.path.join(folder, "text.slc"), "w") as file:
        file.write("1 1 1\n")
    sluice("info", os.path.join(folder, "text.slc"), status=3)


run([
    ("a 93-bit index", wide_keys),
    ("8 and 16 modes", eight_modes),
    ("4 Gi rows in a mode", four_billion_rows),
    ("modes of length 1, one nonzero, a matrix, a vector", tiny),
    ("no nonzeros", empty),
    ("altered bits are found", altered),
    ("cut and lengthened files are found", cut_short),
    ("the index is near its bound, the store a third of BLCO", index_bits),
    ("folders that are no stores", not_stores),
])
