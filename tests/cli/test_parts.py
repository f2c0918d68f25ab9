#!/usr/bin/env python3
"""Products in parts: the joined parts have the bytes of one run, parts read only their blocks, and
parts that do not belong together are refused by name."""

import json
import os
import random
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import FULL, SLUICE, bundled, check, ended, npy, read_bytes, run, sluice, tree  # noqa: E402

COUNTS = (1, 2, 4, 8, 7) if FULL else (7,)
# More tensors next to the checkout; used with SLC_TEST_FULL.
SHARED = ("cmudict-wpp", "flights-4d", "genten-aminoacid_data", "gitlog-petsc-5d", "kg-fb15k-237", "parti-3d_dense",
          "splatt-med4", "splatt-small", "splatt-small4", "tkg-icews14", "uber-part", "wordnet30-srs")
NNZ = 270000  # five tiles
BLOCKS = ("--block-bytes", "4KiB")  # one tile of 65,536 nonzeros per block


def paths(folder, *names):
    return [os.path.join(folder, name) for name in names]


def vector(folder, size):
    """Saves a vector of -1, 0 and 1, with which many sums cancel."""
    path = os.path.join(folder, f"v{size}.npy")
    npy(path, random.Random(size).choices((-1.0, 0.0, 1.0), k=size), size)
    return path


def in_parts(folder, command, suffix, count, *more):
    """Runs a command in parts, joins them, and returns the reports of the parts."""
    outputs = [os.path.join(folder, f"p{i}{suffix}") for i in range(1, count + 1)]
    told = []
    for i, output in enumerate(outputs, 1):
        printed, _ = sluice(*command, *(("-o", output) if suffix == ".npy" else (output,)), "--part", f"{i}/{count}", *more)
        told.append(json.loads(printed) if "--json" in more else printed)
    sluice("join", *reversed(outputs), os.path.join(folder, "joined" + suffix), "-q", *(("-f",) if suffix == ".slc" else ()))
    return told


def ttv_of(folder, store, mode, counts, *more):
    """Compares the joined parts of a product with the result of one run, for several numbers of parts."""
    one, joined = paths(folder, "one.slc", "joined.slc")
    sizes = json.loads(sluice("info", store, "--json")[0])["dims"]
    command = ("ttv", store, "--mode", mode, "--vector", vector(folder, sizes[mode - 1]))
    whole = json.loads(sluice(*command, one, "-f", "--json", *more)[0])
    for count in counts:
        told = in_parts(folder, command, ".slc", count, "-f", "--json", *more)
        check(tree(one) == tree(joined), f"{store}, mode {mode}, {count} parts: the joined store differs")
        for i, part in enumerate(told, 1):
            check(part["bytes_read"] == part["part"]["bytes_expected"], f"{part}")
            check((part["part"]["number"], part["part"]["of"]) == (i, count), f"{part}")
        check(sum(part["part"]["blocks"] for part in told) >= whole["blocks"], f"{told}")
    return whole, told


def generated(folder):
    """Sums in order and sorted sums, renumbered modes, and a chosen fiber; zero sums are dropped."""
    store = paths(folder, "x.slc")[0]
    sluice("generate", store, "--dims", "300x200x90", "--nnz", NNZ, "-q", "--fibers", "none", *BLOCKS)
    whole, _ = ttv_of(folder, store, 1, COUNTS)
    check(whole["sorted"] and whole["zero_sums"] > 0 and whole["dropped_sums"] > 0, f"{whole}")
    ttv_of(folder, store, 3, COUNTS[-1:], "--codec", "lz4", "--fibers", "2:5", "--relabel", "frequency")
    sluice("generate", store, "--dims", "300x200x90", "--nnz", NNZ, "-q", "-f", "--fibers", "2:8", *BLOCKS)
    whole, told = ttv_of(folder, store, 2, COUNTS)
    check(not whole["sorted"], f"{whole}")
    borders = sum(part["part"]["blocks"] for part in told) - whole["blocks"]
    check(borders < len(told), f"{borders} blocks are read twice")
    sluice("generate", store, "--dims", "3000x2000x90", "--nnz", 200000, "-q", "-f", "--relabel", "frequency", "--dist",
           "zipf-shuffled:1.2", *BLOCKS)
    ttv_of(folder, store, 3, COUNTS[-1:])


def short_vectors(folder):
    """Few indices are used: each part finds those of its blocks, which it reads twice if memory is scarce."""
    store = paths(folder, "x.slc")[0]
    sluice("generate", store, "--dims", "1100000x200x90", "--nnz", NNZ, "-q", "--fibers", "1:21", "--codec", "blco",
           *BLOCKS)
    whole, told = ttv_of(folder, store, 1, (7, 2))
    check(not whole["sorted"] and all(0 < part["held"][0] < whole["held"][0] for part in told), f"{told}")
    for more in (("-t", 1), ("-t", 1, "--sort")):
        least = json.loads(sluice("ttv", store, "--mode", 1, "--vector", vector(folder, 1100000), "o.slc", "--part", "1/2",
                                  "--dry-run", "--json", *more)[0])["memory_least_bytes"]
        _, scarce = ttv_of(folder, store, 1, (2,), "--memory", least, *more)
        check(sum(part["bytes_read"] for part in scarce) > sum(part["bytes_read"] for part in told), f"{more} {scarce}")
    sluice("generate", store, "--dims", "1100000x200x90", "--nnz", NNZ, "-q", "-f", "--relabel", "frequency", "--dist",
           "zipf-shuffled:0.5", "--fibers", "none", *BLOCKS)
    whole, _ = ttv_of(folder, store, 1, COUNTS[-1:])
    check(whole["sorted"] and whole["held"][0] < NNZ, f"{whole}")


def batch(folder):
    """A part of each of two vectors in one run has the bytes of a part of this vector alone."""
    store, v, w, alone = paths(folder, "x.slc", "v.npy", "w.npy", "alone.slc")
    sluice("generate", store, "--dims", "300x200x90", "--nnz", NNZ, "-q", "--fibers", "2:8", *BLOCKS)
    for seed, path in enumerate((v, w)):
        npy(path, random.Random(seed).choices((-1.0, 0.0, 1.0), k=200), 200)
    for more in ((), ("--sort",)):
        common = ("ttv", store, "--mode", 2, "--part", "2/3", "-f", *more)
        printed, _ = sluice(*common, "--batch", f"{v},{w}", os.path.join(folder, "b-%d.slc"))
        check(printed.count("Wrote ") == 2 and printed.count("2 of 3: ") == 1, printed)
        for number, path in enumerate((v, w), 1):
            sluice(*common, "--vector", path, alone, "-q")
            check(tree(alone) == tree(os.path.join(folder, f"b-{number}.slc")), f"vector {number} {more}: the part differs")


def other_products(folder):
    """Fibers of a TTM and rows of an MTTKRP, over every kind of layout."""
    store, one, pair, joined = paths(folder, "x.slc", "one.npy", "one", "joined")
    for mode, size in enumerate((300, 200, 90), 1):
        npy(os.path.join(folder, f"mode-{mode}.npy"), random.Random(mode).choices((0.1, 0.3, -0.7), k=size * 2), size, 2)
    for mode in (1, 3) if FULL else (1,):
        sluice("generate", store, "--dims", "300x200x90", "--nnz", NNZ, "-q", "-f", "--fibers", f"{mode}:9", *BLOCKS)
        for layout in ("blco", "sorted"):
            if layout == "sorted":
                sluice("layout", store, "--sorted", mode, "-q")
            command = ("mttkrp", store, "--mode", mode, "--factors", folder, "--layouts", layout)
            sluice(*command, "-o", one, "--deterministic", "-q")
            printed = in_parts(folder, command, ".npy", 5)[0]
            check("part 1 of 5: " in " ".join(printed.split()), printed)
            expected, actual = re.search(r"read +expected (.*), read (.*) \(", printed).groups()
            check(expected == actual, printed)
            check(read_bytes(one) == read_bytes(joined + ".npy"), f"MTTKRP of mode {mode} over {layout} differs")
        command = ("ttm", store, "--mode", mode, "--matrix", os.path.join(folder, f"mode-{mode}.npy"))
        sluice(*command, pair, "-q")
        told = in_parts(folder, command, "", 5, "--json")
        check(all(part["fibers"] > 0 for part in told), f"{told}")
        check(tree(pair) == tree(joined), f"TTM of mode {mode} differs")
    sluice(*command, paths(folder, "p1")[0], "-q")
    check("part.txt" not in os.listdir(paths(folder, "p1")[0]), "the record of the old part is left")


def at_once(folder):
    """Eight processes at once; one is killed and repeated."""
    store, one, joined = paths(folder, "x.slc", "one.slc", "joined.slc")
    sluice("generate", store, "--dims", "300x200x90", "--nnz", NNZ, "-q", *BLOCKS)
    command = ("ttv", store, "--mode", "2", "--vector", vector(folder, 200), "-q")
    parts = [(*command, f"p{i}.slc", "--part", f"{i}/8") for i in range(1, 9)]
    others = [subprocess.Popen([SLUICE, *part], cwd=folder) for part in parts[:2] + parts[3:]]
    code, messages = ended((*parts[2], "--io-limit", "64KiB"), folder, "p3.slc.part")
    check(code == -signal.SIGKILL, f"{code} {messages}")
    check([other.wait(60) for other in others] == [0] * 7, "a part failed")
    outputs = paths(folder, *(f"p{i}.slc" for i in range(1, 9)))
    check("p3.slc: there is no part" in sluice("join", *outputs, joined, status=3)[1], "a missing part is accepted")
    sluice(*parts[2], cwd=folder)
    sluice("join", *outputs, joined, "-q")
    sluice(*command, one)
    check(tree(one) == tree(joined), "the joined store differs")


def refused(folder):
    """Parts that are missing, given twice, foreign or changed are refused by name."""
    store, other, out = paths(folder, "x.slc", "other.slc", "out.slc")
    p1, p2, p3, q1, q2 = parts = paths(folder, "p1.slc", "p2.slc", "p3.slc", "q1.slc", "q2.slc")
    sluice("generate", store, "--dims", "30x20x9", "--nnz", 4000, "-q")
    sluice("generate", other, "--dims", "30x20x9", "--nnz", 4000, "-q", "--seed", 5)

    def part(output, of, number, *more, source=store, mode=2, operand=vector(folder, 20), status=0):
        return sluice("ttv", source, "--mode", mode, "--vector", operand, output, "--part", f"{number}/{of}", "-f", "-q",
                      *more, status=status)[1]

    def says(text, *inputs, status=3):
        _, told = sluice("join", *inputs, out, "-q", status=status)
        check(text in told and not os.path.exists(out), told)

    for number, output in enumerate((p1, p2, p3), 1):
        part(output, 3, number)
    says("part 2 of 3 is missing", p1, p3)
    says(f"{p2}: this and {p2} are both part 2 of 3", p1, p2, p2, p3)
    says(f"{store}: this store is not a part of a product", p1, store)
    says(f"{other}x: there is no part of a product here", p1, other + "x")
    for line, arguments in (("divisions, whose number of parts is 2 and 3", (q2, 2, 2)),
                            ("products with the codec lz4 and packed", (q2, 3, 2, "--codec", "lz4"))):
        part(*arguments)
        says(f"{q2}: this part and {p1} belong to different {line}", p1, q2, p3)
    for line, how in (("tensors", {"source": other}), ("modes 1 and 2", {"mode": 1, "operand": vector(folder, 30)}),
                      ("vectors", {"operand": os.path.join(folder, "ones.npy")})):
        npy(os.path.join(folder, "ones.npy"), [1.0] * 20, 20)
        part(q2, 3, 2, **how)
        _, told = sluice("join", p1, q2, p3, out, "-q", status=3)
        check(q2 in told and line in told, told)
    with open(os.path.join(folder, "more.tns"), "w", encoding="utf-8") as file:
        file.write("1 1 1\n")
    part(q1, 3, 1)
    sluice("append", q1, os.path.join(folder, "more.tns"), "-q", "--index-base", 1)
    says(f"{q1}: nonzeros were appended to this part", q1, p2, p3)
    check("4/3" in part(q1, 3, 4, status=2), "part 4 of 3")
    for text in ("0/3", "1", "1/", "/3", "1/3x", "1/2000"):
        sluice("ttv", store, "--mode", 2, "--vector", vector(folder, 20), out, "--part", text, status=2)
    number = [a for m, n in ((1, 30), (2, 20), (3, 9)) for a in ("--mode", m, "--vector", vector(folder, n))]
    check("number" in sluice("ttv", store, *number, "--part", "1/2", status=2)[1], "a part of a number")
    _, told = sluice("ttm", store, "--mode", 2, "--matrix", vector(folder, 20), os.path.join(folder, "o"), "--part", "1/2", status=3)
    check("sluice layout --fiber" in told, told)
    check(all(os.path.exists(path) for path in parts[:3]), "a part is gone")


def bytes_read(folder):
    """60 million nonzeros in at least 256 blocks: the bytes that all parts read, and their forecast."""
    store, one, joined = paths(folder, "x.slc", "one.slc", "joined.slc")
    sluice("generate", store, "--dims", "30000x20000x10000", "--nnz", 60000000, "--dist", "zipf-shuffled:0.7",
           "--block-bytes", "256KiB", "--memory", "4GiB", "-q")
    command = ("ttv", store, "--mode", 2, "--vector", vector(folder, 20000), "-q", "-f", "--json")
    whole = json.loads(sluice(*command, one)[0])
    check(whole["blocks"] >= 256, f"{whole}")
    for count, most in ((2, 1.15), (4, 1.15), (8, 1.15), (7, 1.3)):
        outputs = [os.path.join(folder, f"p{i}.slc") for i in range(1, count + 1)]
        others = [subprocess.Popen([SLUICE, *map(str, command), output, "--part", f"{i}/{count}", "-t", "1", "--memory", "1GiB"],
                                   stdout=subprocess.PIPE) for i, output in enumerate(outputs, 1)]
        if count == 8:
            others[2].kill()
            others[2].communicate()
            others[2] = subprocess.Popen(others[2].args, stdout=subprocess.PIPE)
        told = [json.loads(other.communicate()[0]) for other in others]
        total, expected = (sum(numbers) for numbers in zip(*((t["bytes_read"], t["part"]["bytes_expected"]) for t in told)))
        print(f"# {count} parts read {total / whole['bytes_read']:.3f} times the bytes of one run, "
              f"the largest {max(t['bytes_read'] for t in told) * count / total:.2f} times the mean")
        check(total <= most * whole["bytes_read"], f"{count} parts: {total} of {whole['bytes_read']}")
        check(abs(total - expected) <= 0.02 * total, f"{total} is not {expected}")
        sluice("join", *outputs, joined, "-q", "-f", "--memory", "2GiB")
        check(tree(one) == tree(joined), f"{count} parts: the joined store differs")


def shared(name):
    """Every mode of a real tensor."""
    def test(folder):
        store = paths(folder, "x.slc")[0]
        sluice("convert", bundled(name), store, "-q", *BLOCKS)
        for mode in range(1, len(json.loads(sluice("info", store, "--json")[0])["dims"]) + 1):
            ttv_of(folder, store, mode, COUNTS)
    return test


run([("ttv", generated), ("short vectors", short_vectors), ("several vectors", batch),
     ("ttm and mttkrp", other_products), ("eight processes", at_once), ("refused parts", refused)] +
    [(name, shared(name)) for name in SHARED if FULL] + [("bytes read", bytes_read)] * FULL)
