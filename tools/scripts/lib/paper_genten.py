"""Figures 5 to 7 and Table 6 of [Phipps2019], "Software for Sparse Tensor Decomposition on Emerging
Computing Architectures", with the three MTTKRPs of GenTen that `sluice bench mttkrp` has."""

import json
import os
import shutil

from bench_tables import Failed, bench, sluice
from paper_runner import NONE, fastest_ms, rows_of, section
from peers import PEERS

TITLE = "Software for sparse tensor decomposition on emerging computing architectures (GenTen)"

KERNELS = {"A": "genten-a", "B": "genten-b", "C": "genten-c"}
ITERATIONS = 10
# Tables 6b (seconds of MTTKRP in ten iterations at R = 16) and 6c (sorting, in iterations of CP-ALS)
# on the Haswell CPU with 32 threads: MTTKRP-B, -C, SPLATT-M, SPLATT-T, sorting.
HASWELL = {
    "lbnl": (16.6, 0.4, 0.8, 0.5, 0.6),
    "uber": (8.3, 0.3, 0.2, 1.6, 4.3),
    "enron": (45.7, 5.7, 1.1, 10.4, 9.2),
    "vast-5d": (284.0, 6.3, 26.1, 3.8, 5.3),
    "nell-2": (42.8, 7.0, 1.3, 1.4, 6.2),
    "delicious": (57.4, 22.7, 23.4, 71.2, 4.0),
}
OTHER_CELLS = "The KNL, K80 and P100 of the paper are empty: this command uses no GPU, and no Xeon Phi is at hand."


def measure(runner, store, rank, kernel, threads, repeat=None):
    """Returns the record of a kernel of GenTen, or of sluice's MTTKRP from replicas."""
    options = ("--conflict", "owned") if kernel == "sluice" else ()
    return bench("mttkrp", store, "-r", rank, "-t", threads, "-n", repeat or runner.repeat, "--kernel", kernel,
                 "--memory-set", "1MiB", *options)


def rest_of_iteration(runner, store, rank, threads):
    """Returns the seconds of an iteration of CP-ALS outside MTTKRP."""
    folder = os.path.join(runner.work, "run")
    sluice("cpd", store, "-r", rank, "-i", ITERATIONS, "--tol", 0, "-t", threads, "-q", "-o", folder, "--checkpoint", "none")
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        seconds = json.load(file)["seconds"]
    shutil.rmtree(folder)
    return (seconds["solve"] + seconds["fit"]) / ITERATIONS


def print_random(runner, store):
    """Figures 5 and 6: the random tensor at R = 128."""
    counts = sorted({1, runner.threads})
    seconds = {}
    for threads in counts:
        for label, kernel in [*KERNELS.items(), ("sluice", "sluice")]:
            seconds[label, threads] = 1e-3 * ITERATIONS * fastest_ms(measure(runner, store, 128, kernel, threads))
        seconds["rest", threads] = ITERATIONS * rest_of_iteration(runner, store, 128, threads)
    total = {threads: seconds["B", threads] + seconds["rest", threads] for threads in counts}
    section("Figure 5: seconds of ten iterations of CP-ALS with MTTKRP-B, R = 128",
            (["threads", "MTTKRP", "all", "MTTKRP, percent", "speedup"],
             [[threads, seconds["B", threads], total[threads], 100 * seconds["B", threads] / total[threads],
               total[1] / total[threads]] for threads in counts]),
            "MTTKRP-B is measured alone, and the rest of an iteration in sluice's CP-ALS. Paper: MTTKRP takes most of the time; "
            "about 20 times the speed of one core on Haswell (32 threads) and KNL (256 threads), 38 times on the K80, 147 times "
            "on the P100. " + OTHER_CELLS)
    labels = [*KERNELS, "sluice"]
    section("Figure 6: seconds of MTTKRP in ten iterations of CP-ALS, R = 128",
            (["threads", *(f"MTTKRP-{label}" for label in KERNELS), "sluice", "C over B", "sluice over C"],
             [[threads, *(seconds[label, threads] for label in labels), seconds["B", threads] / seconds["C", threads],
               seconds["C", threads] / seconds["sluice", threads]] for threads in counts]),
            "The last columns are speedups. Sorting for C is not included. Paper: A and B are equally fast on Haswell and KNL, "
            "and C is substantially faster. It prints no numbers. " + OTHER_CELLS)


def print_bandwidth(runner, store):
    """Figure 7: bytes by equation 3, divided by the bandwidth of STREAM."""
    ranks = range(8, 257, 8)
    stream = bench("stream", "-t", runner.threads, "-n", 3, "--memory-set", runner.memory_set)
    peak = max(row["triad_gb_per_s"] for row in rows_of(stream, level="memory", threads=runner.threads))
    # Two samples suffice for a curve, and keep the run short.
    records = {label: measure(runner, store, ",".join(map(str, ranks)), kernel, runner.threads, min(2, runner.repeat))
               for label, kernel in KERNELS.items()}
    rows = []
    for rank in ranks:
        rows.append([rank])
        for record in records.values():
            modes = rows_of(record, rank=rank)
            moved = sum(row["model_bytes_per_nnz"] for row in modes) * record["tensor"]["nnz"]
            rows[-1].append(100 * 1e-6 * moved / sum(row["min_ms"] for row in modes) / peak)
    section("Figure 7: bandwidth of MTTKRP by equation 3, percent of STREAM",
            (["R", *(f"MTTKRP-{label}" for label in KERNELS)], rows),
            f"STREAM triad of this machine: {peak:.3g} GB/s. Paper: 96 (Haswell), 294 (KNL), 177 (K80), 544 GB/s (P100). Its "
            "curves have no numbers; C is the most efficient, and exceeds 100 % where caches serve factor rows. " + OTHER_CELLS)


def print_real(runner):
    """Table 6: stand-ins of the tensors of FROSTT at R = 16."""
    sizes, times, sorting = [], [], []
    for name, (slow, fast, mutexes, tiles, sort) in HASWELL.items():
        store, seconds = runner.stand_in(name), {}
        for label in ("B", "C", "sluice"):
            record = measure(runner, store, 16, KERNELS.get(label, label), runner.threads)
            seconds[label] = 1e-3 * ITERATIONS * fastest_ms(record)
            if label == "C":
                permute = 1e-3 * record["totals"][0]["permute_ms"]
        splatt = NONE
        if "SPLATT" in runner.peers:
            try:
                splatt = 1e-3 * ITERATIONS * PEERS["SPLATT"](runner.peers["SPLATT"], runner.peer_tensor(store), 16,
                                                             runner.threads, ITERATIONS)
            except Failed as reason:
                print(f"{name}: SPLATT failed: {reason}")
        iteration = seconds["C"] / ITERATIONS + rest_of_iteration(runner, store, 16, runner.threads)
        sizes.append([name, len(record["tensor"]["dims"]), " x ".join(map(str, record["tensor"]["dims"])), record["tensor"]["nnz"]])
        times.append([name, slow, fast, slow / fast, mutexes / fast, tiles / fast, seconds["B"], seconds["C"],
                      seconds["B"] / seconds["C"], splatt, splatt / seconds["C"] if splatt != NONE else NONE,
                      seconds["sluice"], seconds["C"] / seconds["sluice"]])
        sorting.append([name, sort, permute / iteration])
    section("Table 6a: tensors", (["stand-in", "order", "mode sizes", "nonzeros"], sizes),
            "The paper has 13 M nonzeros for Uber; the stand-in follows the 3.3 M of other papers.")
    section(f"Table 6b: seconds of MTTKRP in ten iterations, R = 16; Haswell with 32 threads, and {runner.threads} threads here",
            (["tensor", "paper: B", "C", "B over C", "SPLATT-M over C", "SPLATT-T over C", "here: B", "C", "B over C",
              "SPLATT", "SPLATT over C", "sluice", "C over sluice"], times),
            "Quotients are of times. Seconds cannot be compared: stand-ins are smaller, and here a thread has other cores and "
            "memory. SPLATT needs SPLATT=PATH, and runs as its default, without tiles (SPLATT-M). " + OTHER_CELLS)
    section("Table 6c: sorting for MTTKRP-C, in iterations of CP-ALS with C, R = 16",
            (["tensor", "paper: Haswell", "here"], sorting), "The sort here is a radix sort. " + OTHER_CELLS)


def report(runner):
    store = runner.stand_in("genten-random")
    print_random(runner, store)
    print_bandwidth(runner, store)
    print_real(runner)
