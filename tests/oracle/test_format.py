#!/usr/bin/python3
"""Interoperability: slc_format.py reads the stores that sluice writes, and the reverse."""

import filecmp
import json
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
import slc_format  # noqa: E402
from tap import FULL, SOURCE, bundled, check, run, sluice  # noqa: E402

CODECS = ("packed", "lz4", "blco")


def write_tns(path, coords, values):
    rows = (coords + coords.dtype.type(1)).T.tolist()
    with open(path, "w") as file:
        file.writelines(f"{' '.join(map(str, row))} {value!r}\n" for row, value in zip(rows, values.tolist()))


def random_tensor(rng, dims, nnz, kind):
    nnz = nnz if max(dims) < LONG else 300
    coords = np.unique(np.array([rng.integers(0, d, nnz, dtype=np.uint64) for d in dims]).T,
                       axis=0).T.copy()
    count = coords.shape[1]
    values = {
        "ones": np.ones(count),
        "counts": np.floor(rng.pareto(1.0, count)) + 1,
        "signed": rng.integers(-500, 500, count) + 0.0,
        "few": rng.choice(np.array([0.1, 2.5, -7e300, 1e-310]), count),
        "halves": rng.integers(1, 1 << 20, count) / 4096.0,
        "reals": rng.normal(size=count),
    }[kind]
    values = np.where(values == 0, 1.0, values)
    return coords, values


SHAPES = [
    [5], [1], [1, 1], [4, 2, 3], [1, 1000, 1], [300, 40, 5000, 2], [1 << 20, 5, 1 << 31],
    [2 ** 33, 3, 2 ** 40], [2 ** 33, 3, 2 ** 40, 5, 2 ** 13], [2] * 16, [256] * 16, [2 ** 62, 7],
]
# In such a mode, random nonzeros are so far apart that a tile holds one or two, so few nonzeros
# suffice.
LONG = 1 << 33
KINDS = ("ones", "counts", "signed", "few", "halves", "reals")


def same(tensor, dims, coords, values):
    run = tensor["header"]["run"] if "header" in tensor else tensor.get("run", (0, 0))
    keys = slc_format.keys_of(dims, coords, run)
    order = np.argsort(keys) if len(keys) else np.zeros(0, dtype=int)
    check(tensor["dims"] == list(dims), "dims differ")
    check((tensor["coords"] == coords[:, order].astype(np.uint64)).all(), "coordinates differ")
    check((tensor["values"].view(np.uint64) == values[order].view(np.uint64)).all(), "values differ")


def written_by_sluice(folder):
    """Random shapes, all codecs: convert, read by the second reader, compare bit for bit."""
    rng = np.random.default_rng(7)
    count = 0
    for s, dims in enumerate(SHAPES):
        # Every codec with every shape and, across shapes, with every kind of values.
        for k, kind in enumerate(KINDS if FULL else KINDS[s % 2:6:2]):
            coords, values = random_tensor(rng, dims, 1500 if s % 2 else 700, kind)
            text = os.path.join(folder, "t.tns")
            write_tns(text, coords, values)
            for codec in CODECS if FULL else [CODECS[(k + s // 2) % 3]]:
                store = os.path.join(folder, f"s{count}.slc")
                count += 1
                sluice("convert", text, store, "--codec", codec, "--block-bytes", "4096",
                       "--dims", "x".join(map(str, dims)), "--threads", 1 + k % 2)
                same(slc_format.read_store(store), dims, coords, values)
                sluice("check", store)


def written_by_python(folder):
    """The same shapes written by the second writer: sluice check and export agree."""
    rng = np.random.default_rng(8)
    count = 0
    for s, dims in enumerate(SHAPES):
        # One shape has more nonzeros than a tile, and so two blocks, but only in the first codec.
        tensors = [random_tensor(rng, dims, 70000 if s == 5 else 1500, KINDS[s % 6])]
        tensors += [tensors[0] if FULL or s != 5 else random_tensor(rng, dims, 1500, KINDS[s % 6])] * 2
        for c, codec in enumerate(CODECS):
            coords, values = tensors[c]
            store = os.path.join(folder, f"p{count}.slc")
            count += 1
            run = ((s + c) % len(dims), (0, 5, 12, 24)[(s + count) % 4])
            # Stores have a layout sorted by another mode each time; with the large shape, only the
            # store with the first codec has one.
            target = (200, 500, 10 ** 6)[(s + c) % 3] if s != 5 else 30000
            by = {(s + c + 1) % len(dims): target} if s != 5 or c == 0 else None
            # The keys of the sorted layout are those of blco, or have another run, or none.
            own = [run, ((s + c + 2) % len(dims), 9), (0, 0)][(s + 2 * c) % 3]
            slc_format.write_store(store, dims, coords, values, codec, tiles_per_block=1, run=run,
                                   sorted_by=by, sorted_runs=dict.fromkeys(by or {}, own),
                                   fibers_of=[(s + c) % len(dims)] if s != 5 or c == 1 else [])
            sluice("check", store)
            out = os.path.join(folder, f"p{count}.tns")
            sluice("export", store, out)
            with open(out) as file:
                rows = [line.split() for line in file if not line.startswith("#")]
            got = np.array([[int(x) - 1 for x in row[:-1]] for row in rows], dtype=np.uint64).T
            tensor = dict(dims=list(dims), coords=got, values=np.array([float(r[-1]) for r in rows]), run=run)
            same(tensor, dims, coords, values)


def real_tensors(folder):
    """Bundled tensors through every codec: text to store to text is lossless."""
    for name in ("splatt-small", "splatt-small4", "parti-3d_dense", "genten-aminoacid_data",
                 "gitlog-petsc-5d") + (("cmudict-wpp", "wordnet30-srs") if FULL else ()):
        dims, coords, values = cp_als.read_tns(bundled(name))
        # The larger ones only in the default codec.
        for codec in CODECS if FULL or len(values) < 20_000 else CODECS[:1]:
            store = os.path.join(folder, f"{name}-{codec}.slc")
            sluice("convert", bundled(name), store, "--codec", codec)
            tensor = slc_format.read_store(store)
            same(tensor, dims, coords.astype(np.uint64), values)
        back, again = os.path.join(folder, "back.tns"), os.path.join(folder, name + "-2.slc")
        sluice("export", store, back)
        sluice("convert", back, again, "--dims", "x".join(map(str, dims)))
        if len(values) < 20_000 or FULL:
            same(slc_format.read_store(again), dims, coords.astype(np.uint64), values)
        check(filecmp.cmp(os.path.join(store, "blco.blk"), os.path.join(again, "blco.blk"), False)
              or codec != CODECS[0], "another store from its own text")
        os.remove(back)


def block_sizes(folder):
    """Block size changes only the split into blocks; tiles are whole."""
    dims, coords, values = cp_als.read_tns(bundled("gitlog-petsc-5d"))
    # Only three tiles, because the second reader needs seconds for all seven.
    coords, values = coords[:, :180_000].astype(np.uint64), values[:180_000]
    text = os.path.join(folder, "t.tns")
    write_tns(text, coords, values)
    seen = set()
    for size in ("4KiB", "256KiB", "1MiB", "64MiB"):
        store = os.path.join(folder, size + ".slc")
        sluice("convert", text, store, "--dims", "x".join(map(str, dims)), "--block-bytes", size)
        tensor = slc_format.read_store(store)
        same(tensor, dims, coords, values)
        seen.add(tuple(tensor["block_nnz"]))
        check(all(n % 65536 == 0 for n in tensor["block_nnz"][:-1]), "a block splits a tile")
    check(len(seen) >= 3, f"block sizes do not matter: {seen}")


def golden(folder):
    """Committed stores stay readable, and the dump in docs/FORMAT.md matches one of them."""
    coords = np.array([[0, 0, 1, 2, 3], [0, 1, 0, 1, 1], [0, 2, 1, 0, 2]], dtype=np.uint64)
    values = np.array([1.0, 3.0, 2.0, 7.0, 1.0])
    for codec in CODECS:
        store = os.path.join(SOURCE, "tests", "golden", f"tiny-{codec}.slc")
        same(slc_format.read_store(store), [4, 2, 3], coords, values)
        sluice("check", store)
        out = os.path.join(folder, codec + ".tns")
        sluice("export", store, out)
        with open(out) as file:
            rows = [line.strip() for line in file if not line.startswith("#")]
        check(rows == ["1 1 1 1", "2 1 2 2", "1 2 3 3", "3 2 1 7", "4 2 3 1"], f"export: {rows}")
    store = os.path.join(SOURCE, "tests", "golden", "tiny-sorted.slc")
    tensor = slc_format.read_store(store)
    same(tensor, [4, 2, 3], coords, values)
    rows = {key: [(p["first_row"], p["last_row"], p["nnz"], p["continued"])
                  for p in layout["partitions"]] for key, layout in tensor["layouts"].items()}
    check(rows == {("blco", 0): [], ("sorted", 1): [(0, 0, 2, False), (1, 2, 2, False),
                                                    (3, 3, 1, False)],
                   ("sorted", 2): [(0, 0, 2, False), (1, 1, 2, False), (1, 1, 1, True)]},
          f"partitions: {rows}")
    check("4 files, 7 blocks, 5 nonzeros in each of 3 layouts" in sluice("check", store)[0], "check")
    told = json.loads(sluice("info", store, "--json")[0])["layouts"]
    check([layout.get("partitions") for layout in told] == [
        None, {"count": 3, "smallest_nnz": 1, "largest_nnz": 2, "split_rows": 0},
        {"count": 3, "smallest_nnz": 1, "largest_nnz": 2, "split_rows": 1}], told)
    check([(layout["layout"], layout["mode"]) for layout in told]
          == [("blco", 0), ("sorted", 1), ("sorted", 2)], told)
    check("sorted by mode 2: 3 partitions of 1 to 2 nonzeros, 1 row split" in
          sluice("info", store)[0], "info of partitions")
    store = os.path.join(SOURCE, "tests", "golden", "tiny-runs.slc")
    tensor = slc_format.read_store(store)
    same(tensor, [4, 2, 3], coords, values)
    runs = {key: layout["header"]["run"] for key, layout in tensor["layouts"].items()}
    check(runs == {("blco", 0): (2, 1), ("sorted", 1): (0, 0), ("sorted", 2): (0, 2)}, f"{runs}")
    check("4 files, 6 blocks, 5 nonzeros in each of 3 layouts" in sluice("check", store)[0], "check")
    store = os.path.join(SOURCE, "tests", "golden", "tiny-fibers.slc")
    same(slc_format.read_store(store), [4, 2, 3], coords, values)
    check("4 files, 3 blocks, 5 nonzeros in each of 3 layouts" in sluice("check", store)[0], "check")
    told = json.loads(sluice("info", store, "--json")[0])["layouts"]
    check([(layout["layout"], layout["fiber_mode"], layout["fiber_bits"], layout.get("fibers"))
           for layout in told] == [("blco", 0, 0, None), ("fiber", 1, 2, 4), ("fiber", 2, 1, 5)], told)
    store = os.path.join(SOURCE, "tests", "golden", "tiny-relabelled.slc")
    same(slc_format.read_store(store), [4, 2, 3], coords, values)
    sluice("check", store)
    out = os.path.join(folder, "relabelled.tns")
    sluice("export", store, out)
    with open(out) as file:
        rows = sorted(line.strip() for line in file if not line.startswith("#"))
    check(rows == ["1 1 1 1", "1 2 3 3", "2 1 2 2", "3 2 1 7", "4 2 3 1"], f"relabelled: {rows}")
    with open(os.path.join(SOURCE, "docs", "FORMAT.md")) as file:
        dump = re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{8} ){4})", file.read(), flags=re.M)
    with open(os.path.join(SOURCE, "tests", "golden", "tiny-packed.slc", "blco.blk"), "rb") as file:
        raw = file.read()
    shown = {int(at, 16): bytes.fromhex(row.replace(" ", "")) for at, row in dump}
    check(len(shown) > 20, "docs/FORMAT.md has no dump")
    for at in range(0, len(raw), 16):
        want = shown.get(at, bytes(16))
        check(raw[at:at + 16] == want, f"the dump in docs/FORMAT.md is wrong at {at:04x}")


run([
    ("golden stores and the dump of docs/FORMAT.md", golden),
    ("stores written by sluice, read by the second reader", written_by_sluice),
    ("stores written by the second writer, read by sluice", written_by_python),
    ("real tensors in every codec, and back to text", real_tensors),
    ("block sizes", block_sizes),
])
