"""Table 2 and Figures 3 to 9 of [Wijeratne2025], "AMPED: Accelerating MTTKRP for Billion-Scale Sparse
Tensor Decomposition on Multiple GPUs", with CPU devices (`sluice cpd --devices`) instead of GPUs."""

import json
import os
import shutil
import statistics
import time

from bench_tables import sluice
from paper_runner import info, section

TITLE = "AMPED: accelerating MTTKRP for billion-scale sparse tensor decomposition on multiple GPUs"

RANK = 32
TENSORS = {"amazon": 1.7e9, "patents": 3.6e9, "reddit": 4.7e9, "twitch": 0.5e9}  # nonzeros of Table 2
SCALABILITY = {2: 1.9, 3: 2.3, 4: 3.3}  # Figure 8, geometric means
EMPTY = "Bars of GPUs are empty: this command uses none. On a machine with one: sluice bench device X.slc --rank 32 --logical 1,2,4."
TIMES = ("compute", "wait", "reduce", "solve", "copy", "exchange", "exchange_wait")


def run_cpd(runner, store, *options):
    """Returns the seconds of the fastest iteration of CP-ALS, and what each device did."""
    folder = os.path.join(runner.work, "run")
    sluice("cpd", store, "-r", RANK, "-i", runner.repeat, "--tol", 0, "-q", "-o", folder, "--checkpoint", "none",
           "--copies", "never", *options)
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        record = json.load(file)
    shutil.rmtree(folder)
    return min(one["seconds"] for one in record["iterations"]), (record["devices"] or {}).get("each", [])


class Measured:
    """Iterations of CP-ALS of a stand-in: with blocks in one order, and divided among devices."""

    def __init__(self, runner, name, counts):
        store = runner.stand_in(name)
        self.found = info(store)
        self.blocks, _ = run_cpd(runner, store, "-t", runner.threads)
        begin = time.monotonic()
        runner.layout(store, "--sorted", "all")
        self.preprocessing = time.monotonic() - begin
        self.parts = {count: run_cpd(runner, store, "-t", 1, "--devices", count, "--split", "partitions") for count in counts}
        self.shares, _ = run_cpd(runner, store, "-t", 1, "--devices", max(counts), "--split", "nnz")
        shutil.rmtree(store)


def report(runner):
    counts = range(1, min(4, max(2, runner.threads)) + 1)
    most = max(counts)
    measured = {name: Measured(runner, name, counts) for name in TENSORS}
    section("Table 2: tensors", (["tensor", "paper: nonzeros", "stand-in", "mode sizes"],
                                 [[name, f"{TENSORS[name]:.1e}", one.found["nnz"], " x ".join(map(str, one.found["dims"]))]
                                  for name, one in measured.items()]))
    print_times(measured, most)
    scaling, rates = [], []
    for name, one in measured.items():
        # Every MTTKRP multiplies and adds once per nonzero, column and mode.
        operations = len(one.found["dims"]) ** 2 * RANK * one.found["nnz"]
        rates.append([name, *(1e-9 * operations / one.parts[count][0] for count in counts)])
        scaling.append([name, *(one.parts[1][0] / one.parts[count][0] for count in counts[1:])])
    means = [statistics.geometric_mean(values) for values in zip(*(row[1:] for row in scaling))]
    section("Figure 4: GFLOP/s by number of devices", (["tensor", *counts], rates),
            "Operations: order times R per nonzero and mode, over the time of a whole iteration. Paper: nearly linear. " + EMPTY)
    section("Figure 8: speedup by number of devices",
            (["tensor", *counts[1:]], [*scaling, ["geometric mean", *means], ["paper", *(SCALABILITY[n] for n in counts[1:])]]),
            "Every device has one thread. More devices than processors do not become faster. " + EMPTY)


def print_times(measured, most):
    times, balance, phases, spread, cost = [], [], [], [], []
    for name, one in measured.items():
        seconds, each = one.parts[most]
        compute = [device["compute"] for device in each]
        spent = {phase: sum(device[phase] for device in each) for phase in TIMES}
        times.append([name, one.blocks, seconds, one.blocks / seconds])
        balance.append([name, seconds, one.shares, one.shares / seconds])
        phases.append([name, *(100 * spent[phase] / sum(spent.values()) for phase in TIMES)])
        spread.append([name, "below 1", 100 * (max(compute) - min(compute)) / sum(compute)])
        cost.append([name, one.preprocessing, one.preprocessing / seconds])
    times.append(["geometric mean", "", "", statistics.geometric_mean(row[3] for row in times)])
    section("Figure 3: seconds of an iteration of CP-ALS, R = 32",
            (["tensor", "blocks in one order, as BLCO", f"{most} devices", "speedup"], times),
            "Paper: 5.1 times the speed of the baselines in the geometric mean, with 4 GPUs against one; FLYCOO-GPU is 3.9 "
            "times as fast on Twitch. Here both sides have the same number of threads. " + EMPTY)
    section(f"Figure 5: {most} devices that divide whole rows, or equal numbers of nonzeros, seconds of an iteration",
            (["tensor", "partitions", "equal numbers of nonzeros", "speedup"], balance), "Paper: 5.3 to 10.3. " + EMPTY)
    section("Figure 6: time of all devices, percent", (["tensor", *TIMES], phases),
            "Paper: communication takes 32 % for Reddit. Devices of one machine exchange rows in memory. " + EMPTY)
    section("Figure 7: (max - min) / total of the computing time of devices, percent",
            (["tensor", "paper", "here"], spread), "Computing times add all modes and iterations. " + EMPTY)
    section("Figure 9: preprocessing", (["tensor", "sorting by every mode, seconds", "iterations"], cost),
            "The paper prints no numbers. Its other bar, the construction of BLCO, is Figure 11 of tools/papers blco.")
