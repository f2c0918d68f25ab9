"""Table 2 and Figures 1 and 8 to 12 of [Nguyen2022], "Efficient, Out-of-Memory Sparse MTTKRP on
Massively Parallel Architectures", with sluice's MTTKRPs on the CPU."""

import os
import shutil
import statistics

from bench_tables import bench, sluice
from paper_runner import NONE, fastest_ms, section

TITLE = "Efficient, out-of-memory sparse MTTKRP on massively parallel architectures (BLCO)"

RANK = 32
# Table 2: nonzeros and density. The last three exceed the memory of the paper's GPUs.
TENSORS = {"nips": (3.1e6, 1.8e-6), "uber": (3.3e6, 3.8e-4), "chicago": (5.3e6, 1.5e-2), "vast-3d": (26e6, 7.8e-7),
           "darpa": (28.4e6, 2.4e-9), "enron": (54.2e6, 5.5e-9), "nell-2": (76.9e6, 2.4e-5), "fb-m": (99.6e6, 1.1e-9),
           "flickr": (112.9e6, 1.1e-14), "delicious": (140.1e6, 4.3e-15), "nell-1": (143.6e6, 9.1e-13)}
LARGE = {"amazon": (1.7e9, 1.1e-10), "patents": (3.6e9, 1.4e-3), "reddit": (4.7e9, 4.0e-10)}
LARGE_SCALE = 0.1  # of the large tensors, times the scale of the run
# What the caption of Figure 1 prints of MM-CSF, in times of the fastest mode.
MM_CSF = {"nell-2": "modes 1 and 3: 2 to 3", "uber": "one mode: above 9", "enron": "one mode: above 9",
          "darpa": "mode 1: 5, mode 2: 12"}
DEVICE = "On a machine with a GPU: sluice bench device X.slc --rank 32 --kernel all"


class Measured:
    """The modes of a stand-in: ms of sluice from blocks in one order (as BLCO), from a replica per
    mode (as mode-specific formats), and of GenTen's MTTKRP-C; then the construction of both."""

    def __init__(self, runner, name):
        store = runner.stand_in(name)
        options = ("-r", RANK, "--memory-set", "1MiB", "--kernel")
        self.blocks = runner.bench("mttkrp", store, *options, "sluice", "--conflict", "stream")
        self.replicas = runner.bench("mttkrp", store, *options, "sluice", "--conflict", "owned")
        self.genten = runner.bench("mttkrp", store, *options, "genten-c")
        self.tensor = self.blocks["tensor"]
        text = os.path.join(runner.work, name + ".tns")
        sluice("export", store, text, "-q")
        self.convert = bench("convert", text, "-r", RANK, "-t", runner.threads, "-n", 1, "--temp-dir", runner.work)
        shutil.rmtree(store)
        os.remove(text)

    def modes(self):
        return [row["min_ms"] for row in self.blocks["rows"]]


def density(tensor):
    cells = 1.0
    for size in tensor["dims"]:
        cells *= size
    return tensor["nnz"] / cells


def print_modes(measured):
    rows, speedups = [], []
    for name, one in measured.items():
        modes, replicas, permuted = one.modes(), fastest_ms(one.replicas), fastest_ms(one.genten)
        rows.append([name, MM_CSF.get(name, NONE), *(f"{ms / min(modes):.3g}" for ms in modes), *[NONE] * (4 - len(modes))])
        speedups.append([name, permuted / sum(modes), permuted / replicas, sum(modes) / replicas,
                         ", ".join(f"{theirs['min_ms'] / ours:.3g}" for theirs, ours in zip(one.genten["rows"], modes))])
    means = [statistics.geometric_mean(values) for values in zip(*(row[1:4] for row in speedups))]
    section("Figure 1: time of each mode over that of the fastest mode, R = 32",
            (["tensor", "paper: MM-CSF", *(f"sluice: mode {n}" for n in range(1, 5))], rows),
            "sluice computes from blocks in one order. MM-CSF runs on GPUs only. " + DEVICE + ".")
    section("Figure 8: speedups of MTTKRP of all modes, R = 32, f64",
            (["tensor", "blocks over MTTKRP-C", "replicas over MTTKRP-C", "replicas over blocks"],
             [row[:4] for row in speedups] + [["geometric mean", *means]]),
            "Paper: BLCO is 2.12 to 2.6 times as fast as MM-CSF, and GenTen about as fast as MM-CSF, on three GPUs. Blocks keep "
            "one copy in one order, as BLCO; replicas keep a sorted copy per mode. MTTKRP-C is GenTen's. MM-CSF and F-COO run on "
            "GPUs only. " + DEVICE + ".")
    section("Figure 9: speedup of each mode, R = 32, f64",
            (["tensor", "blocks over MTTKRP-C, modes 1, 2, .."], [[row[0], row[4]] for row in speedups]),
            "Paper: at most 33.35 times the speed of MM-CSF, and slower only for modes of Uber and NIPS.")


def print_large(runner):
    rows = []
    for name, (nonzeros, _) in LARGE.items():
        store = runner.generate(name, "--like", name, "--scale", runner.scale * LARGE_SCALE)
        for mode in (1, 2, 3):
            record = bench("pass", store, "-r", RANK, "-t", runner.threads, "--mode", mode, "-n", runner.repeat)
            row = record["rows"][0]
            nnz, memory, streamed = record["tensor"]["nnz"], row["memory_ms"], row["median_ms"]
            rows.append([name, f"{nonzeros:.1e}", nnz, mode, 1e-3 * nnz / memory, 1e-3 * nnz / streamed,
                         100 * memory / streamed, row["over_bound"]])
        shutil.rmtree(store)
    section("Figure 10: MTTKRP beyond memory, R = 32, million nonzeros per second",
            (["stand-in", "paper: nonzeros", "nonzeros", "mode", "blocks in memory", "streamed", "streamed, percent",
              "time over the bound"], rows),
            "Paper: copies from host to GPU hide all computing, and the whole runs at 57 to 75 % of the memory's bandwidth on an "
            "A100, in TB/s that a profiler counts. Here blocks are streamed from the drive to the processors. The bound is the "
            "longer of two times: reading, and computing in memory. Streaming to a GPU is empty: this command uses no GPU. "
            "On a machine with one: sluice bench device X.slc --rank 32 --no-cache --device-memory 8GiB.")


def print_construction(measured):
    cost, stages = [], []
    for name, one in measured.items():
        phase = {row["phase"]: row["min_ms"] for row in one.convert["rows"]}
        build = sum(phase[stage] for stage in ("spill", "sort", "encode", "write"))
        permuted = one.genten["totals"][0]["permute_iterations"]
        cost.append([name, phase["convert"] / sum(one.modes()), build / sum(one.modes()),
                     one.replicas["totals"][0]["copies_iterations"], permuted])
        stages.append([name, *(100 * phase[stage] / build if build else NONE for stage in ("spill", "sort", "encode", "write"))])
    section("Figure 11: construction, in MTTKRPs of all modes of the same form, R = 32",
            (["tensor", "conversion of text", "of it, building the store", "replicas", "sorting for MTTKRP-C"], cost),
            "Paper: BLCO takes about 12 in the mean on an A100, other formats up to ten times as many; MM-CSF takes up to 13.6 "
            "times as long as BLCO. A conversion includes reading and parsing; building is the time of all threads together.")
    section("Figure 12: stages of building a store, percent",
            (["tensor", "spilling to disk", "sorting", "encoding", "writing"], stages),
            "Paper: blocking and re-encoding take less than 25 % of the construction of BLCO.")


def report(runner):
    measured = {name: Measured(runner, name) for name in TENSORS}
    section("Table 2: tensors",
            (["tensor", "paper: nonzeros", "stand-in", "paper: density", "stand-in", "mode sizes"],
             [[name, f"{TENSORS[name][0]:.3g}", one.tensor["nnz"], f"{TENSORS[name][1]:.1e}", f"{density(one.tensor):.1e}",
               " x ".join(map(str, one.tensor["dims"]))] for name, one in measured.items()]),
            "The density of Vast-2015 in the paper is that of the five modes of the original.")
    print_modes(measured)
    section("Table 3: volume and throughput of memory",
            "Empty: the paper's numbers come from a profiler of NVIDIA GPUs. " + DEVICE +
            ", whose byte model stands in for the profiler.")
    print_large(runner)
    print_construction(measured)
