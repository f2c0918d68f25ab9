#!/usr/bin/env python3
"""--deterministic yields the same bits for any number of threads, I/O method, block size, codec and
budget, with and without cached blocks, interrupted or not: all combinations in the long form,
otherwise a sample in which each choice occurs with the others."""

import itertools
import json
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from methods import METHODS, convert_counts  # noqa: E402
from tap import FULL, QUICK, check, load_json, run, run_command, sluice  # noqa: E402

DIMS = "300x200x100"
NNZ = 150000  # three tiles
CODECS = ("packed", "lz4", "blco")
BLOCKS = ("64KiB", "1MiB")
THREADS = (1, 2, 3, 8)
IO = ("uring", "pread", "mmap")
BUDGETS = ("least", "plenty")
CACHES = ((), ("--no-cache",))
STOPS = (False, True)


def combinations():
    """Yields all 576 combinations, or every 97th (quick: 113th). The steps are primes, so that each
    choice occurs."""
    every = list(itertools.product(CODECS, BLOCKS, THREADS, IO, BUDGETS, CACHES, STOPS))
    return every if FULL else every[::113 if QUICK else 97]


def stores(folder, *layouts):
    """One tensor of real values in every codec and block size."""
    text = os.path.join(folder, "t.tns")
    sluice("generate", text, "--dims", DIMS, "--nnz", NNZ, "-r", 3, "--noise", 0.3, "-q")
    made = {}
    for codec, block in itertools.product(CODECS, BLOCKS):
        path = os.path.join(folder, f"{codec}-{block}.slc")
        sluice("convert", text, path, "--codec", codec, "--block-bytes", block, "-q")
        if layouts:
            sluice("layout", path, *layouts, "-q")
        made[codec, block] = path
    return made


def budget(store, options, threads, which):
    """--memory with the least budget of a plan, or nothing. The process itself, a part of that
    budget, varies and is counted in steps of 4 MiB; under a sanitizer it varies too much for a
    least budget."""
    if which == "plenty":
        return []
    # plan does not know --holdout; held-out nonzeros need less than the steps.
    options = [word for word in options if word not in ("--holdout", "10%")]
    plan = json.loads(sluice("plan", "--no-probe", store, *options, "-t", threads, "--deterministic", "--json")[0])
    return ["--memory", plan["minimum_bytes"] + ((512 if QUICK else 5) << 20)]


def written(folder):
    names = sorted(name for name in os.listdir(folder) if name.endswith(".npy"))
    check(len(names) == 4, f"{folder}: {os.listdir(folder)}")
    return [open(os.path.join(folder, name), "rb").read() for name in names]


def decomposed(store, out, options, stopped, iterations=4):
    """The factors and fits. A `stopped` run is interrupted again and again, later each time."""
    args = ["cpd", store, "-i", iterations, "--tol", 0, "--deterministic", "-o", out, "-q", *options]
    status, seconds = 75, 0.0005
    while stopped and status == 75:
        seconds *= 2
        done = run_command([*map(str, args), "--maxsecs", str(seconds), "--checkpoint-interval", "0"])
        status = done.returncode
        check(status in (0, 75), f"exit {status}: {done.stderr}")
    if stopped:
        check(seconds > 0.001, "it never stopped")
    else:
        sluice(*args)
    return written(out), [step["fit"] for step in load_json(os.path.join(out, "run.json"))["iterations"]]


def decompositions(*layouts, precision="f64"):
    def test(folder):
        made = stores(folder, *layouts)
        options = ["-r", 7, "--precision", precision]
        want = decomposed(made["packed", "1MiB"], os.path.join(folder, "want"), options, False)
        tried = combinations()
        for number, (codec, block, threads, io, memory, cache, stopped) in enumerate(tried):
            store = made[codec, block]
            how = [*options, "-t", threads, "--io", io, *budget(store, options, threads, memory), *cache]
            got = decomposed(store, os.path.join(folder, f"got-{number}"), how, stopped)
            check(got[0] == want[0], f"other factors: {codec} {block} {how} {stopped}")
            check(got[1] == want[1], f"other fits: {codec} {block} {how} {stopped}: {got[1]}, {want[1]}")
        print(f"# {len(tried)} combinations")
    return test


def by_methods(folder):
    """Every method, by blco and by sorted layouts: each of these has its own bits. The long form has all
    combinations."""
    codec = ("--codec", "lz4", "--block-bytes", "64KiB")
    made = convert_counts(folder, "--dims", DIMS, "--nnz", NNZ // 2, options=codec)
    for store in {made(method) for method in METHODS}:
        sluice("layout", store, "--sorted", "all", "-q")
    some = {"blco": ((2, "pread", "least", False), (7, "mmap", "plenty", True)),
            "sorted": ((2, "mmap", "plenty", False), (7, "uring", "least", True))}
    tried = 0
    for (method, chosen), layouts in itertools.product(METHODS.items(), some):
        options = ["-r", 4, *chosen, "--layouts", layouts]
        want = decomposed(made(method), os.path.join(folder, "want"), [*options, "-t", 1, "--restart"], False, 2)
        for threads, io, memory, stopped in itertools.product((1, 2, 7), IO, BUDGETS, STOPS) if FULL else some[layouts]:
            how = [*options, "-t", threads, "--io", io, *budget(made(method), options, threads, memory)]
            got = decomposed(made(method), os.path.join(folder, f"got-{tried}"), how, stopped, 2)
            check(got == want, f"other results: {method} {layouts} {how} {stopped}")
            tried += 1
    print(f"# {tried} combinations")


def products(folder):
    """MTTKRP of every mode."""
    made = stores(folder)
    factors, out = os.path.join(folder, "factors"), os.path.join(folder, "m.npy")
    sluice("cpd", made["packed", "1MiB"], "-r", 5, "-i", 1, "-o", factors, "-q")
    want = {}
    for codec, block, threads, io, memory, cache, _ in combinations():
        store = made[codec, block]
        for mode in (1, 2, 3):
            sluice("mttkrp", store, "--mode", mode, "--factors", factors, "-o", out, "--deterministic", "-q",
                   "-t", threads, "--io", io, *budget(store, ["-r", 5, "--mode", mode], threads, memory), *cache)
            with open(out, "rb") as file:
                got = file.read()
            os.remove(out)
            check(want.setdefault(mode, got) == got, f"mode {mode}: {codec} {block} {threads} {io} {memory} {cache}")


run([
    ("decompositions by blco", decompositions()),
    ("decompositions by sorted layouts", decompositions("--sorted", "1,2,3")),
    ("decompositions in f32", decompositions(precision="f32")),
    ("decompositions by every method", by_methods),
    ("products", products),
])
