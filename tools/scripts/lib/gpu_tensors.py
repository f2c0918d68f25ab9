"""Generates the tensors of tools/gpu-acceptance at their first use, or earlier in the background.
Deletes them after their last use."""

import json
import math
import os
import re
import shutil
import signal
import threading
import time

from gpu_runner import Failed, Late

# There are six shapes for the targets: a small mode, skew, many modes, large modes beyond the
# cache, hypersparse, fibers. The other tensors are: one with indices of more than 64 bits; one for
# streaming, whose factors fit a cache, so that copies dominate; one with several nonzeros per
# fiber; and one whose fibers are mostly empty.
TENSORS = {
    "short": ("24x60000x80000", 30e6, "uniform"),
    "skewed": ("200000x200000x5000", 30e6, "zipf:1.1"),
    "four": ("3000x40000x40000x30", 20e6, "uniform"),
    "long": ("2000000x1500000x1000000", 30e6, "uniform"),
    "shuffled": ("300000x300000x300000", 20e6, "zipf-shuffled:0.9"),
    "five": ("5000x5000x5000x500x200", 15e6, "zipf:0.8"),
    "wide": ("1000000x400000x200000x100000", 10e6, "uniform"),
    "streamed": ("120000x80000x40000", 400e6, "uniform"),
    "fibers": ("2000x1500x5000", 30e6, "uniform"),
    "hollow": ("6000x20000x300000", 20e6, "uniform"),
}
# Tensors of kernels that are bound by the bandwidth of the memory. Their fibers must exceed the cache
# of the device several times, so --scale does not reduce them, unless it is below WHOLE_SCALE.
WHOLE = ("fibers", "hollow")
WHOLE_SCALE = 0.1
SIX = ("short", "skewed", "four", "long", "shuffled", "five")
MOST_NNZ = 120e6
# Rate of `sluice generate`, in nonzeros per second, that the sizes above need. On a slower machine,
# tensors are proportionally smaller, because generating them would take all the time.
GENERATED_PER_SECOND = 8e6
BACKGROUND_NICENESS = 10


def key(name, share=1.0, codec="packed", layouts=()):
    """Returns the key of a tensor: its name, the share of its nonzeros, the codec, and the options
    of `sluice layout`, which adds layouts."""
    return name, share, codec, layouts


def name_of(path):
    """Returns the name in TENSORS of a store that get() returned."""
    return os.path.basename(path).split("-")[0]


def geometric_mean(numbers):
    numbers = list(numbers)
    return math.exp(sum(math.log(n) for n in numbers) / len(numbers))


def machine_memory():
    """Returns the memory available to this process: the memory of the machine, or the limit of its
    cgroup."""
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(re.search(r"MemTotal:\s+(\d+)", file.read()).group(1)) * 1024
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as file:
                limit = file.read().strip()
        except OSError:
            continue
        if limit.isdigit():
            total = min(total, int(limit))
    return total


class Tensors:
    """Stores by key. Rows call get() for a store. A thread generates the stores of plan() while
    background(True) is in effect."""

    def __init__(self, runner):
        self.runner = runner
        self.generated_per_second = None
        self.changed = threading.Condition()
        self.made, self.planned = {}, []
        self.current = self.process = None  # key and command of the store that the background generates
        self.allowed = self.awaited = self.closed = False
        self.thread = threading.Thread(target=self.make_planned, daemon=True)
        self.thread.start()

    # ---- sizes

    def available_bytes(self):
        """Returns the bytes that stores may use: a third of the free disk space, but at most a
        quarter of the memory."""
        return min(shutil.disk_usage(self.runner.work).free // 3, machine_memory() // 4)

    def shape(self, name):
        # Tiny tensors, for an emulated device, also have smaller modes, because otherwise factors
        # would dominate.
        shorter = min(1.0, self.runner.scale * 20)
        return "x".join(str(max(2, int(int(d) * shorter))) for d in TENSORS[name][0].split("x"))

    def nonzeros(self, name, share):
        slower = min(1.0, self.generated_per_second / GENERATED_PER_SECOND)
        scale = 1.0 if name in WHOLE and self.runner.scale >= WHOLE_SCALE else self.runner.scale
        nnz = min(TENSORS[name][1] * share * scale * slower, MOST_NNZ)
        # A codec needs at most 16 bytes per nonzero, and half of the space is for other stores. At
        # most a quarter of the cells have a nonzero.
        places = math.prod(int(d) for d in self.shape(name).split("x"))
        return min(max(1000, min(nnz, self.available_bytes() / 2 / 16)), places // 4)

    # ---- generating

    def generate(self, path, dims, nnz, dist, *more, **kw):
        begin = time.monotonic()
        # With small blocks, tiny tensors also have several blocks.
        blocks = ["--block-bytes", "16KiB"] if self.runner.scale < 0.01 else []
        self.runner.sluice("generate", path, "--dims", dims, "--nnz", int(nnz), "--dist", dist, *blocks, *more, "-f", "-q", **kw)
        return nnz / (time.monotonic() - begin)

    def probe(self):
        """Measures the rate of `sluice generate`, which determines the sizes of all tensors."""
        path = os.path.join(self.runner.work, "probe.slc")
        self.generated_per_second = (self.generate(path, "1000000x1000000x1000000", 4e6, "uniform")
                                     if self.runner.scale >= 0.01 else math.inf)
        shutil.rmtree(path, ignore_errors=True)

    def make(self, wanted, *threads, **kw):
        name, share, codec, layouts = wanted
        path = os.path.join(self.runner.work, f"{name}-{share:g}-{codec}{''.join(layouts)}.slc")
        self.generate(path, self.shape(name), self.nonzeros(name, share), TENSORS[name][2], "--codec", codec, *threads, **kw)
        if layouts:
            self.runner.sluice("layout", path, *layouts, "-q", **kw)
        return path

    def get(self, *which, **options):
        """Returns the path of the store of a tensor. Generates the store, or waits if the
        background is generating it."""
        wanted = key(*which, **options)
        with self.changed:
            if wanted in self.planned:
                self.planned.remove(wanted)
            while self.current == wanted:
                self.awaited = True
                self.signal(signal.SIGCONT)
                if self.runner.left() <= 0:
                    raise Late(f"no time left for the tensor {wanted[0]}")
                self.changed.wait(0.2)
            self.awaited = False
            if wanted in self.made:
                return self.made[wanted]
        path = self.make(wanted)
        with self.changed:
            self.made[wanted] = path
        return path

    # ---- the background

    def plan(self, keys):
        """Sets the tensors that the background generates, in this order."""
        with self.changed:
            self.planned = [k for k in dict.fromkeys(keys) if k not in self.made and k != self.current]
            self.changed.notify_all()

    def background(self, allowed):
        """Sets whether the background may generate tensors while a row runs. If not, suspends its
        running command."""
        with self.changed:
            self.allowed = allowed
            self.signal(signal.SIGCONT if allowed else signal.SIGSTOP)
            self.changed.notify_all()

    def signal(self, number):
        if self.process in self.runner.processes:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass

    def started(self, process):
        with self.changed:
            self.process = process
            try:
                os.setpriority(os.PRIO_PROCESS, process.pid, BACKGROUND_NICENESS)
            except OSError:
                pass  # the command has ended, or this system has no priorities
            if not self.allowed and not self.awaited:
                self.signal(signal.SIGSTOP)

    def make_planned(self):
        threads = max(1, len(os.sched_getaffinity(0)) // 2)
        while True:
            with self.changed:
                while not self.closed and not (self.allowed and self.planned):
                    self.changed.wait()
                if self.closed:
                    return
                self.current = self.planned.pop(0)
            path = None
            try:
                path = self.make(self.current, "-t", threads, end=self.runner.end, started=self.started)
            except (Failed, Late, OSError):
                pass  # the row that needs the tensor generates it again, and reports the error
            with self.changed:
                if path is not None:
                    self.made[self.current] = path
                self.current = None
                self.changed.notify_all()

    # ---- deleting

    def drop(self, path):
        """Deletes a store to free its space."""
        with self.changed:
            self.made = {k: made for k, made in self.made.items() if made != path}
        shutil.rmtree(path, ignore_errors=True)

    def keep_only(self, keys):
        """Deletes stores that no later row needs."""
        with self.changed:
            unneeded = [path for k, path in self.made.items() if k not in keys]
        for path in unneeded:
            self.drop(path)

    def close(self):
        with self.changed:
            self.closed = True
            self.signal(signal.SIGKILL)
            self.changed.notify_all()
        self.thread.join(timeout=10)

    def info(self, store):
        return json.loads(self.runner.sluice("info", store, "--json").stdout)
