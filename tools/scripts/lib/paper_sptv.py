"""Tables 1 and 2 and Figures 8 to 13 of [SPTV], "Exploiting Hierarchical Parallelism for Sparse
Tensor-Vector Multiplication on Heterogeneous Parallel Systems". All products are those of mode 1."""

import array
import json
import os
import statistics

from bench_tables import sluice
from paper_runner import NONE, fastest_ms, reduction, rows_of, section

TITLE = "Exploiting hierarchical parallelism for sparse tensor-vector multiplication"

# Table 2: rows and columns of the unfolding with empty fibers, and without (also without unused
# rows), and both densities.
UNFOLDINGS = {
    "ratings-m1": ((6040, 19760, 8.38e-3), (6040, 16912, 9.79e-3)),
    "ratings-m20": ((7120, 1306420, 1.13e-4), (7120, 70147, 2.10e-3)),
    "user-ratedmovies": ((71534, 651330, 1.84e-5), (71534, 63015, 1.90e-4)),
    "user-taggedartists": ((2100, 23705536, 3.75e-7), (2100, 109750, 8.09e-4)),
    "submissions": ((3253292, 693430, 7.08e-7), (1596660, 121318, 8.24e-6)),
    "uber-pickups": ((1717, 5006880, 3.85e-4), (1717, 692597, 2.78e-3)),
}
# The numbers that section 6 prints for single tensors, and its means over all tensors.
SPEEDUPS = {"uber-pickups": 10.60, "ratings-m1": 5.33, "mean": 7.34}  # Figure 8
EMPTY_FIBERS = {"user-taggedartists": 99.83, "ratings-m1": 9.77, "mean": 43.61}  # Figure 9, percent
NODES = {"user-taggedartists": 3.95, "uber-pickups": 4.58, "submissions": 1.64, "mean": 3.57}  # Figure 10
STREAMS = {"user-taggedartists": 16.80, "submissions": 27.14, "mean": 40.09}  # Figure 12, percent
SORTING = {"submissions": 29.65, "mean": 17.48}  # Figure 12, percent
PARTS = (1, 2, 4, 8)


def save_ones(path, length):
    """Writes a vector of ones as .npy."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({length},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("ascii"))
        (array.array("d", [1.0]) * length).tofile(file)


def with_mean(columns, rows, papers):
    """Returns a table with the values of the paper (one dictionary per measured column) to the left
    of the measured columns, and a last row of means."""
    means = [statistics.mean(values) for values in zip(*(row[1:] for row in rows))]
    cells = []
    for name, *values in [*rows, ["mean", *means]]:
        cells.append([name])
        for paper, value in zip(papers, values):
            cells[-1] += ([] if paper is None else [paper.get(name, NONE)]) + [value]
    header = ["tensor"]
    for paper, column in zip(papers, columns):
        header += ([] if paper is None else ["paper"]) + [column]
    return header, cells


def print_unfoldings(records):
    tables = ([], [])
    for name, record in records.items():
        (row,), nnz = rows_of(record, kernel="sluice", threads=1), record["tensor"]["nnz"]
        ours = ((row["length"], int(row["dense_fibers"])), (row["used"], row["fibers"]))
        for table, (rows, columns, density), (our_rows, our_columns) in zip(tables, UNFOLDINGS[name], ours):
            table.append([name, f"{rows} x {columns}", f"{our_rows} x {our_columns}", f"{density:.2e}",
                          f"{nnz / our_rows / our_columns:.2e}"])
    header = ["tensor", "paper: size", "stand-in", "paper: density", "stand-in"]
    section("Table 1: tensors", (["tensor", "mode sizes of the stand-in", "nonzeros"],
                                 [[name, " x ".join(map(str, record["tensor"]["dims"])), record["tensor"]["nnz"]]
                                  for name, record in records.items()]),
            "The paper rounds mode sizes; those of the stand-ins come from its Table 2.")
    section("Table 2: unfoldings in mode 1", "With all fibers:", (header, tables[0]),
            "Without empty fibers and unused indices of mode 1:", (header, tables[1]))


def print_figures(records, threads):
    speedups, empty, order, rates = [], [], [], []
    for name, record in records.items():
        ms = {kernel: fastest_ms(record, kernel=kernel, threads=threads)
              for kernel in ("sluice", "keep-empty-fibers", "schedule-file", "schedule-largest", "coo", "coo-sorted", "csr")}
        one = {kernel: fastest_ms(record, kernel=kernel, threads=1) for kernel in ("sluice", "coo-sorted")}
        speedups.append([name, one["coo-sorted"] / ms["sluice"], one["sluice"] / ms["sluice"]])
        if ms["keep-empty-fibers"]:
            empty.append([name, reduction(ms["keep-empty-fibers"], ms["sluice"])])
        order.append([name, reduction(ms["schedule-file"], ms["schedule-largest"])])
        rate = {kernel: 2e-6 * record["tensor"]["nnz"] / ms[kernel] for kernel in ("sluice", "coo", "coo-sorted", "csr")}
        rates.append([name, *rate.values(), rate["sluice"] / rate["csr"], rate["sluice"] / rate["coo-sorted"]])
    section(f"Figure 8: speedup over a serial product, {threads} threads",
            with_mean(["over a sorted list with 1 thread", "over sluice with 1 thread"], speedups, [SPEEDUPS, None]),
            "The paper's parallel product runs on a P100 GPU, and its times include copies to the GPU.")
    section("Figure 9: time saved by leaving out empty fibers, percent",
            with_mean(["sluice, CPU"], empty, [EMPTY_FIBERS]),
            "The paper also saves copies of empty fibers to the GPU. A missing row has more empty fibers than memory.")
    section("Figure 11: 1 to 64 threads of a GPU", "Empty: this command uses no GPU. The paper's mean speedup of 64 threads "
            "is 56.91. One GPU thread is no setting of sluice.")
    section("Figure 12: time saved by streams, and by processing the largest blocks first, percent",
            with_mean(["largest first, sluice, CPU"], order, [SORTING]),
            f"Streams need a GPU, whose copies they hide: empty. Paper: {STREAMS['mean']} in the mean, "
            f"{STREAMS['user-taggedartists']} for user-taggedartists, {STREAMS['submissions']} for submissions. "
            "On a machine with a GPU: sluice ttv X.slc --mode 1 --vector V.npy OUT.slc --device gpu --streams 1, 2 or 4.")
    section(f"Figure 13: GFLOP/s, {threads} threads",
            (["tensor", "sluice", "list", "sorted list", "CSR, converted in each product", "sluice over CSR",
              "sluice over sorted list"], rates),
            "Paper: 1.88 times the speed of aeSpTV in the mean, at most 3.28 times, and faster than cuSPARSE for all tensors. "
            "aeSpTV and cuSPARSE are not run: no program of the first was at hand, the second needs a GPU (sluice bench device X.slc "
            "--operation ttv).")


def time_parts(runner, store, vector, alpha):
    """Returns the seconds of the slowest of `alpha` parts, which run one after the other, and the
    bytes that all parts read. The time of a part is the fastest of the samples."""
    slowest, bytes_read = 0, 0
    for part in range(1, alpha + 1):
        runs = [json.loads(sluice("ttv", store, "--mode", 1, "--vector", vector, "--part", f"{part}/{alpha}",
                                  os.path.join(runner.work, "part.slc"), "-f", "-t", runner.threads, "--json"))
                for _ in range(runner.repeat)]
        slowest = max(slowest, min(run["seconds"]["total"] for run in runs))
        bytes_read += runs[0]["bytes_read"]
    return slowest, bytes_read


def print_nodes(runner):
    """Figure 10. Every part runs alone with all threads, as if on its own node."""
    rows, reads = [], []
    for name in UNFOLDINGS:
        # Small blocks, so that eight parts have several blocks each. A layout of fibers has larger ones.
        store = runner.generate(name + "-blocks", "--like", name, "--scale", runner.scale, "--block-bytes", "32KiB")
        vector = os.path.join(runner.work, "ones.npy")
        save_ones(vector, json.loads(sluice("info", store, "--json"))["dims"][0])
        parts = {alpha: time_parts(runner, store, vector, alpha) for alpha in PARTS}
        rows.append([name, *(parts[1][0] / parts[alpha][0] for alpha in PARTS[1:])])
        reads.append([name, *(parts[alpha][1] / parts[1][1] for alpha in PARTS[1:])])
    section("Figure 10: speedup of parts over one part",
            with_mean([f"{alpha} parts" for alpha in PARTS[1:]], rows, [None, None, NODES]),
            "Bytes that all parts read together, over the bytes that one part reads:",
            (["tensor", *(f"{alpha} parts" for alpha in PARTS[1:])], reads),
            "Each part is a process that runs alone with all threads (sluice ttv --part), as if on its own node. Its time "
            "includes opening the store and writing the part. The paper's nodes have a GPU each; its vector is copied whole to "
            "every GPU, which limits tensors with a long mode 1.")


def report(runner):
    threads = ",".join(map(str, sorted({1, runner.threads})))
    records = {}
    for name in UNFOLDINGS:
        options = ("--mode", 1, "-n", runner.repeat, "--kernel", "all")
        records[name] = json.loads(sluice("bench", "ttv", runner.stand_in(name), *options, "-t", threads, "--json"))
    print_unfoldings(records)
    print_figures(records, runner.threads)
    print_nodes(runner)
