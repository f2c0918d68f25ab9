#!/usr/bin/python3
"""Work larger than memory: peak resident size stays within the budget, passes read from the drive.

The plain form uses a few million nonzeros; SLC_TEST_FULL=1 runs the 200-million-nonzero case inside
a cgroup of 256 MiB (memory and page cache)."""

import json
import os
import resource
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from measured import MIB, Cgroup, measured, works_as_named  # noqa: E402
from methods import METHODS  # noqa: E402
from tap import FULL, Skip, check, load_json, read_bytes, run, sluice  # noqa: E402


def last_fit(folder):
    return load_json(os.path.join(folder, "run.json"))["iterations"][-1]["fit"]


def out_of_core(folder, nnz, dims, memory, limit, rank, store_at_least, *more):
    text, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")
    sluice("generate", text, "--dims", dims, "--nnz", nnz, "--dist", "uniform", "--seed", 4, *more)
    cgroup = Cgroup(limit)
    try:
        peak = measured(["convert", text, store, "--memory", memory], cgroup).resident
        print(f"# convert: peak {peak / MIB:.1f} MiB of {memory / MIB:.0f}")
        check(peak <= memory, f"convert: peak {peak} above the budget {memory}")
        os.remove(text)
        blocks = os.path.getsize(os.path.join(store, "blco.blk"))
        check(blocks >= store_at_least, f"the store has only {blocks} bytes")
        free = os.path.join(folder, "free")
        sluice("cpd", store, "-r", rank, "-i", 2, "--tol", 0, "-o", free, "--deterministic")
        for io in ("uring", "pread", "mmap"):
            run_folder = os.path.join(folder, io)
            done = measured(["cpd", store, "-r", rank, "-i", 2, "--tol", 0, "--memory",
                             memory, "--io", io, "-o", run_folder, "--deterministic"], cgroup)
            passes = 2 * len(dims.split("x"))
            share = done.read / (passes * blocks)
            print(f"# cpd {io}: peak {done.resident / MIB:.1f} MiB, {share:.0%} of each pass from the drive")
            check(done.resident <= memory, f"cpd {io}: peak {done.resident} above the budget {memory}")
            check(share >= 0.7, f"cpd {io}: only {share:.0%} of each pass read from the drive")
            check(last_fit(run_folder) == last_fit(free), "the fit depends on the budget")
        anomalies(store, free, min(memory, max(blocks // 4, 32 * MIB)), cgroup)
    finally:
        cgroup.remove()


def anomalies(store, folder, memory, cgroup):
    """Residuals with and without a small budget are equal; the quantiles need several passes."""
    want = json.loads(sluice("residuals", folder, store, "--json", "-q")[0])
    done = measured(["residuals", folder, store, "--json", "-q", "--memory", memory], cgroup)
    got = json.loads(done.output)
    print(f"# residuals: peak {done.resident / MIB:.1f} of {memory / MIB:.1f} MiB, {got['passes']} passes")
    check(done.resident <= memory, f"residuals: peak {done.resident} above the budget {memory}")
    check({**got, "bytes_read": 0, "passes": 0} == {**want, "bytes_read": 0, "passes": 0}, (got, want))


def small_out_of_core(folder):
    """Values of a noisy model need 8 bytes each, so few nonzeros make a large store."""
    out_of_core(folder, 6_000_000, "40000x30000x20000", 56 * MIB, 72 * MIB, 4, 60 * MIB,
                "--rank", 3, "--noise", 0.1)


def npy_files(folder):
    """Contents of the factors and weights."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".npy"))
    check(len(names) == 4, f"{folder}: {names}")
    return [read_bytes(os.path.join(folder, name)) for name in names]


def limited(args, least):
    """Runs a command in a cgroup with the least budget, or one MiB more if it then needs more. Returns
    the run and its budget."""
    for budget in range(least, least + 5 * MIB, MIB):
        cgroup = Cgroup(budget)
        try:
            done = measured([*args, "--memory", budget], cgroup, status=None)
            what = f"{' '.join(map(str, args))} with {budget} bytes"
            check(cgroup.killed() == 0, f"{what}: killed for want of memory")
            check(done.resident <= budget, f"{what}: peak {done.resident}")
            check(done.status in (0, 4, 75), f"{what}: exit {done.status}: {done.messages}")
            if done.status != 4:
                return done, budget
        finally:
            cgroup.remove()
    raise AssertionError(f"{args}: {least} bytes were accepted, and 4 MiB more are not")


def methods_out_of_core(folder):
    """Every method with the least budget: within a cgroup of this size it has the bits of a run without
    a limit, also if it is interrupted. In the long form, the store has four times the budget."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "6000x5000x4000", "--nnz", 13_000_000 if FULL else 300_000, "--codec", "blco",
           "--block-bytes", "128KiB", "-q")
    sluice("layout", store, "--sorted", "all", "-q")
    blocks = os.path.getsize(os.path.join(store, "blco.blk"))
    # The values are counts, not 0 and 1. bernoulli has the solver of huber.
    chosen = [method for method in METHODS if method != "bernoulli"]
    for number, (method, layouts) in enumerate((m, l) for m in (chosen if FULL else chosen[3::4]) for l in ("blco", "sorted")):
        # Held-out nonzeros stay in memory, so only few are held out.
        options = [word.replace("10%", "0.1%") for word in METHODS[method]]
        args = ["cpd", store, "-r", 4, "-i", 1, "--inner", 2, "--tol", 0, "-t", 2, "--deterministic", *options, "--layouts",
                layouts, "--checkpoint-interval", 0, "-o"]
        free, out = os.path.join(folder, "free"), os.path.join(folder, "out")
        sluice(*args, free)
        want = npy_files(free)
        _, least = works_as_named((*args, out), TRIES)
        check(not FULL or blocks >= 4 * least, f"{method}: {blocks} bytes for a budget of {least}")
        check(npy_files(out) == want, f"{method}: other bits with the least budget")
        args += [out, "--io", ("uring", "pread", "mmap")[number % 3]]
        done, budget = limited(args, least)
        check(npy_files(out) == want, f"{method}: other bits in a cgroup")
        seconds, stops = 0.01, 0
        while limited([*args, "--maxsecs", seconds], budget)[0].status == 75:
            seconds, stops = seconds * (4 if FULL else 2), stops + 1
        check(stops > 0, f"{method}: never stopped")
        check(npy_files(out) == want, f"{method}: other bits after {stops} stops")
        print(f"# {method}, {layouts}, {args[-1]}: peak {done.resident / MIB:.1f} of {budget / MIB:.0f} MiB, store "
              f"{blocks / MIB:.0f} MiB, {stops} stops")


def large_out_of_core(folder):
    if not FULL:
        raise Skip("takes many minutes: SLC_TEST_FULL=1")
    out_of_core(folder, 200_000_000, "60000x50000x40000x300", 200 * MIB, 256 * MIB, 16, 800 * 10**6)


# A budget counts the process in steps of some MiB: if the process is a few pages larger the next
# time, it may need, and name, another step.
TRIES = 2


def too_small(folder):
    """Too small budgets are rejected at once with exit code 4. The smallest budget that the error
    names works, but a smaller one does not."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "60000x50000x40000", "--nnz", "300000", "--seed", 1)
    works_as_named(("cpd", store, "-r", 16, "-i", 1, "--nowrite"), TRIES)
    works_as_named(("plan", store, "-r", 16), TRIES)
    text, other = os.path.join(folder, "t.tns"), os.path.join(folder, "u.slc")
    sluice("export", store, text)
    sluice("convert", text, other, "--memory", "1MiB", status=4)
    check(not os.path.exists(other), "a refused conversion left something")
    works_as_named(("convert", text, other), TRIES)
    sluice("check", other)
    # The second error, about the memory of indices, comes late: mode sizes are known only after all
    # input is read.
    works_as_named(("convert", text, other, "-f", "--relabel", "frequency", "-t", 4), TRIES)


def check_within_its_budget(folder):
    """check needs no more than the smallest budget that it names, including the process."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "60000x50000x40000", "--nnz", "1500000", "--seed", 1)
    _, least = works_as_named(("check", store, "--threads", 4), TRIES)
    for memory in (least, least + 5 * MIB):
        peak = measured(["check", store, "--threads", 4, "--memory", memory]).resident
        check(peak <= memory, f"check: peak {peak} above {memory}")


def same_store_from_any_budget(folder):
    """The store is the same, byte for byte, for any budget, thread count and input form."""
    text = os.path.join(folder, "t.tns")
    sluice("generate", text, "--dims", "5000x700x90000", "--nnz", "1500000", "--dist",
           "zipf-shuffled:1.1", "--seed", 2)
    seen = set()
    for number, more in enumerate((["--memory", "1GiB"], ["--memory", "64MiB", "--threads", 1],
                                   ["--memory", "96MiB", "--threads", 3])):
        store = os.path.join(folder, f"{number}.slc")
        sluice("convert", text, store, *more)
        with open(os.path.join(store, "blco.blk"), "rb") as file:
            seen.add(file.read())
    store = os.path.join(folder, "pipe.slc")
    with open(text) as file:
        sluice("convert", "-", store, "--memory", "80MiB", stdin=file)
    with open(os.path.join(store, "blco.blk"), "rb") as file:
        seen.add(file.read())
    check(len(seen) == 1, f"{len(seen)} different stores")


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
run([
    ("a budget too small is refused and the smallest named", too_small),
    ("check keeps within its budget", check_within_its_budget),
    ("the same store from any budget, threads and input", same_store_from_any_budget),
    ("out of core: a few million nonzeros in 80 MiB", small_out_of_core),
    ("out of core: every method", methods_out_of_core),
    ("out of core: 200 million nonzeros in 256 MiB", large_out_of_core),
])
