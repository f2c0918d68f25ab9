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
from tap import FULL, Skip, check, load_json, run, sluice  # noqa: E402


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


def large_out_of_core(folder):
    if not FULL:
        raise Skip("takes many minutes: SLC_TEST_FULL=1")
    out_of_core(folder, 200_000_000, "60000x50000x40000x300", 200 * MIB, 256 * MIB, 16, 800 * 10**6)


# A budget counts the process in steps of some MiB: if the process is a few pages larger the next
# time, it may need, and name, another step.
TRIES = 2


def too_small(folder):
    """Rejected at once with exit code 4; the smallest budget that the error names works, a smaller
    one does not."""
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
    ("out of core: 200 million nonzeros in 256 MiB", large_out_of_core),
])
