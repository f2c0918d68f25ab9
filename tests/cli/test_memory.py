#!/usr/bin/env python3
"""With --memory B no command uses more than B bytes: in a cgroup with this limit, page cache
included, it is not killed, and its peak resident size stays below the limit, too.

B ranges from the smallest accepted budget (found by retries, then by halving) to eight times that.
If no cgroup can be made, or files are in memory, only resident sizes are checked. The plain form
uses the smallest named budget and twice that, for one tensor; SLC_TEST_FULL=1 five values, three
tensors and every I/O method."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from measured import MIB, Cgroup, measured, works_as_named  # noqa: E402
from tap import FULL, Skip, check, npy, run, sluice, unpacked  # noqa: E402

STEP = 256 << 10
IO = ("uring", "pread", "mmap")
RANK = 6
# More than the number of processors: threads have stacks and buffers, so a small budget must reduce
# their number.
THREADS = 4
TENSORS = {
    "skewed": ("--dims", "20000x30000x7000", "--dist", "zipf-shuffled:1.1", "-r", 3, "--noise", 0.1),
    "long modes, odd order": ("--dims", "500000x300000x9x100000x20", "--dist", "uniform"),
}


def generate(name, nnz):
    """Returns the arguments that generate a tensor, without the output."""
    return ("--nnz", nnz, "--seed", 5, *TENSORS[name])


class Inputs:
    """A tensor as text and as stores of many blocks, and its operands."""

    def __init__(self, folder, name, nnz):
        self.at, self.name, self.nnz = os.path.join(folder, ""), name, nnz
        if name in TENSORS:
            sluice("generate", self.at + "t.tns", *generate(name, nnz), "-q")
        else:
            shutil.copy(unpacked(name), self.at + "t.tns")
        with open(self.at + "t.tns") as text, open(self.at + "more.tns", "w") as more:
            more.writelines(f"{int(line.split()[0]) + 7} {line.split(maxsplit=1)[1]}" for line in text)
        sluice("convert", self.at + "t.tns", self.at + "t.slc", "-q", "--block-bytes", "128KiB")
        shutil.copytree(self.at + "t.slc", self.at + "all.slc")
        sluice("layout", self.at + "all.slc", "--sorted", "all", "--fiber", "2", "-q")
        # Factors of any tensor with these mode sizes; the vector has one column and one mode.
        sluice("cpd", self.at + "t.slc", "-r", RANK, "-i", 0, "--tol", 0, "-o", self.at + "factors", "-q")
        info = sluice("info", self.at + "t.slc", "--json")[0]
        self.dims = [int(n) for n in info.split('"dims":')[1].split("[")[1].split("]")[0].split(",")]
        npy(self.at + "v.npy", [1] * self.dims[1], self.dims[1])
        for part in ("1/2", "2/2"):
            sluice("ttv", self.at + "t.slc", f"{self.at}p{part[0]}.slc", "--mode", 2, "--vector", self.at + "v.npy", "--part", part, "-q")

    def commands(self):
        """Name: (arguments, whether it reads blocks by --io). Results are written to the folder
        "out"."""
        at, out = self.at, self.at + "out/"
        cpd = ("cpd", at + "t.slc", "-r", RANK, "-i", 2, "--tol", 0, "-o", out + "r", "--checkpoint-interval", 0)
        drawn = generate(self.name if self.name in TENSORS else "skewed", self.nnz)
        return {
            "convert": (("convert", at + "t.tns", out + "a.slc"), False),
            "convert --relabel": (("convert", at + "t.tns", out + "a.slc", "--relabel", "frequency"), False),
            "generate a store": (("generate", out + "a.slc", *drawn), False),
            "generate text": (("generate", out + "a.tns", *drawn), False),
            "layout --sorted": (("layout", out + "t.slc", "--sorted", "1"), False),
            "layout --fiber": (("layout", out + "t.slc", "--fiber", "2"), False),
            "append": (("append", out + "t.slc", at + "more.tns"), False),
            "slice": (("slice", at + "t.slc", out + "a.slc", "--mode", "2=5..9000", "--transform", "abs"), False),
            "permute": (("permute", at + "t.slc", out + "a.slc", "--order", ",".join(map(str, range(len(self.dims), 0, -1)))), False),
            "check": (("check", at + "all.slc"), False),
            "export": (("export", at + "t.slc", out + "a.tns"), False),
            "export lists": (("export", at + "t.slc", out + "a.bin"), False),
            "export sorted": (("export", at + "t.slc", out + "a.npz"), False),
            "export factors": (("export", at + "factors", out + "a.mat"), False),
            "cpd": (cpd, True),
            "cpd --passes fused": (("cpd", at + "all.slc", *cpd[2:], "--passes", "fused"), True),
            "mttkrp": (("mttkrp", at + "t.slc", "--mode", 1, "--factors", at + "factors", "-o", out + "m.npy"), True),
            "mttkrp, sorted": (("mttkrp", at + "all.slc", "--mode", 2, "--factors", at + "factors", "-o",
                                out + "m.npy"), True),
            "residuals": (("residuals", at + "factors", at + "t.slc"), True),
            "ttv": (("ttv", at + "t.slc", out + "a.slc", "--mode", 2, "--vector", at + "v.npy"), True),
            "ttv, fibers": (("ttv", at + "all.slc", out + "a.slc", "--mode", 2, "--vector", at + "v.npy"), True),
            "ttv, a part": (("ttv", at + "t.slc", out + "a.slc", "--mode", 2, "--vector", at + "v.npy", "--part", "2/3"), True),
            "join": (("join", at + "p1.slc", at + "p2.slc", out + "a.slc"), False),
            "ttm": (("ttm", at + "t.slc", out + "a", "--mode", 2, "--matrix", at + "factors/mode-2.npy"), True),
            "ttm, fibers": (("ttm", at + "all.slc", out + "a", "--mode", 2, "--matrix", at + "factors/mode-2.npy"),
                            True),
            **(self.benchmarks() if FULL and self.name == "skewed" else {}),
        }

    def benchmarks(self):
        """The other benchmarks have no budget, or need the whole store in memory together with the
        factors."""
        return {"bench convert": (("bench", "convert", self.at + "t.tns", "-n", 1), False),
                "bench ttv": (("bench", "ttv", self.at + "t.slc", "-n", 1), False)}

    def prepare(self, name):
        """Makes an empty folder for results, in which layouts find their store."""
        shutil.rmtree(self.at + "out", ignore_errors=True)
        os.mkdir(self.at + "out")
        if name.startswith("layout") or name == "append":
            shutil.copytree(self.at + ("all.slc" if name == "append" else "t.slc"), self.at + "out/t.slc")

    def leave_cache(self):
        """Writes the inputs to the drive and drops them from the page cache, so that the reading
        process is charged."""
        for here, _, names in os.walk(self.at):
            for name in names:
                fd = os.open(os.path.join(here, name), os.O_RDONLY)
                os.fsync(fd)
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.close(fd)


def with_budget(args, budget):
    return (*args, "-t", THREADS, "--memory", f"{budget >> 10}KiB")


def accepted(inputs, name, args, budget):
    """Whether the command accepts this budget; it must succeed, or reject it."""
    inputs.prepare(name)
    done = measured(with_budget(args, budget), status=None)
    check(done.status in (0, 4), f"{name}: exit {done.status}: {done.messages}")
    return done.status == 0


def smallest(inputs, name, args):
    """The smallest budget that the command accepts: the one it names, which must work; in the long
    form smaller ones, in steps of STEP."""
    low, high = works_as_named((*args, "-t", THREADS), THREADS + 1, lambda: inputs.prepare(name))
    while FULL and high - low > STEP:
        middle = (low + high) // 2 // STEP * STEP
        low, high = (low, middle) if accepted(inputs, name, args, middle) else (middle, high)
    return high


def in_memory(folder):
    """Whether the folder is in memory, which a cgroup counts and cannot reclaim."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False).stdout
    return kind.strip() in ("tmpfs", "ramfs")


def peaks(inputs, name, args, budget):
    """Runs the command within the budget; returns (peak resident, charged). If the least budget is
    rejected, retries with slightly more: the process size varies by a few pages."""
    for more in range(0, 17 * STEP, STEP):
        inputs.prepare(name)
        inputs.leave_cache()
        cgroup = None if in_memory(inputs.at) else Cgroup(budget + more)
        try:
            done = measured(with_budget(args, budget + more), cgroup, status=None)
            what = f"{name}, {budget + more} bytes, {' '.join(map(str, args))}"
            check(cgroup is None or cgroup.killed() == 0, f"{what}: killed for want of memory")
            check(done.status in (0, 4), f"{what}: exit {done.status}: {done.messages}")
            if done.status == 0:
                check(done.resident <= budget + more, f"{what}: {done.resident} bytes were resident")
                charged = cgroup.charged() if cgroup else None
                return done.resident / (budget + more), done.resident, budget + more, charged
        finally:
            if cgroup:
                cgroup.remove()
    raise AssertionError(f"{name}: {budget} bytes were accepted, and now 4 MiB more are not")


def within(inputs):
    """Runs all commands with all budgets; prints the largest fraction of a budget that each command
    used."""
    for name, (args, reads) in inputs.commands().items():
        least = smallest(inputs, name, args)
        found = []
        for number, times in enumerate((1, 1.5, 2, 4, 8) if FULL else (1, 2)):
            for io in (IO if FULL else IO[number::3][:1]) if reads else (None,):
                found.append(peaks(inputs, name, (*args, *(("--io", io) if io else ())), int(least * times)))
        near, resident, budget, charged = max(found, key=lambda peak: peak[0])
        print(f"# {inputs.name}: {name}: {len(found)} runs from {least / MIB:.2f} MiB on; nearest {resident / MIB:.1f} "
              f"of {budget / MIB:.1f} MiB, {near:.0%}" + (f", charged {charged / MIB:.1f}" if charged else ""))


def tensor(name, nnz):
    def test(folder):
        if not FULL and name != "skewed":
            raise Skip("takes minutes: SLC_TEST_FULL=1")
        try:
            Cgroup(64 * MIB).remove()
        except Skip as reason:
            print(f"# {reason}: resident sizes alone are looked at")
        within(Inputs(folder, name, nnz))
    return test


run([
    ("a skewed tensor", tensor("skewed", 400000 if FULL else 100000)),
    ("long modes of odd order", tensor("long modes, odd order", 500000)),
    ("a real tensor of five modes", tensor("gitlog-petsc-5d", 200000)),
])
