"""What the rows of tools/gpu-acceptance stand on: commands with limits of time, tensors made on the spot, results kept."""

import glob
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import time


class Skip(Exception):
    """What this machine cannot do; says why."""


class Late(Exception):
    """A row's time is up; says in the midst of what."""


class Failed(Exception):
    """A command that should have succeeded; says what it said."""


# Six shapes: a short mode, skew, many modes, long modes beyond the cache, hypersparse, fibers. Then those of streaming, whose
# factors fit a cache, so that copies decide; of fibers, each with several nonzeros; and of fibers that are mostly empty.
TENSORS = {
    "short": ("24x60000x80000", 30e6, "uniform"),
    "skewed": ("200000x200000x5000", 30e6, "zipf:1.1"),
    "four": ("3000x40000x40000x30", 20e6, "uniform"),
    "long": ("2000000x1500000x1000000", 30e6, "uniform"),
    "shuffled": ("300000x300000x300000", 20e6, "zipf-shuffled:0.9"),
    "five": ("5000x5000x5000x500x200", 15e6, "zipf:0.8"),
    "streamed": ("120000x80000x40000", 400e6, "uniform"),
    "fibers": ("2000x1500x5000", 30e6, "uniform"),
    "hollow": ("6000x20000x300000", 20e6, "uniform"),
}
SIX = ("short", "skewed", "four", "long", "shuffled", "five")
# Nonzeros a second that `sluice generate` makes at least where tensors have the sizes above. On a slower machine they
# are smaller in proportion, or making them would take all the time.
GENERATED_PER_SECOND = 8e6


def machine_memory():
    """Bytes that this process may have: of the machine, or less by its control group."""
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


def cuda_folders():
    """Where libraries of the toolkit may lie that the loader does not look into: the toolkit's own, and those of Python."""
    found = glob.glob("/usr/local/cuda*/lib64") + glob.glob("/usr/local/cuda*/targets/*/lib")
    for place in {os.path.dirname(os.path.dirname(sys.executable)), sys.prefix, "/usr/local", "/opt/torch/.venv"}:
        found += glob.glob(os.path.join(place, "lib/python3*/*-packages/nvidia/*/lib"))
    return [folder for folder in found if glob.glob(os.path.join(folder, "lib*.so*"))]


def npy_write(path, rows, cols, number):
    """An .npy file of f64: `number(i)` of element i, row-major; a vector where cols is None."""
    count = rows * (cols or 1)
    shape = f"({rows},)" if cols is None else f"({rows}, {cols})"
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for begin in range(0, count, 65536):
            part = [float(number(i)) for i in range(begin, min(count, begin + 65536))]
            file.write(struct.pack(f"<{len(part)}d", *part))


class Runner:
    """Runs the programs of `folder`, makes tensors in `work`, keeps figures in `out`."""

    def __init__(self, folder, work, out, scale, total_seconds):
        self.folder, self.work, self.out = os.path.abspath(folder), work, out
        self.scale = scale  # of sizes; 1: those of TENSORS
        self.repeats = 5 if scale >= 0.5 else 3
        self.end = self.row_end = time.monotonic() + total_seconds
        self.record = {"rows": []}
        self.figures, self.shortfalls = [], []
        self.made = {}
        self.generator = None  # nonzeros a second
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(
            [self.folder, *cuda_folders(), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}

    # ---- figures

    def describe(self):
        """What the figures were measured on, beside the device, which its ceilings name."""
        driver = ""
        if shutil.which("nvidia-smi"):
            driver = self.run("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader", check=False,
                              limit=30).stdout.strip()
        system = os.uname()
        self.keep("machine", {"nvidia_smi": driver, "system": f"{system.sysname} {system.release} {system.machine}",
                              "processors": len(os.sched_getaffinity(0)), "memory_bytes": machine_memory(),
                              "disk_free_bytes": shutil.disk_usage(self.work).free, "scale": self.scale,
                              "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})

    def keep(self, name, value):
        """Into the record, which is on the disk from then on: a run that is killed leaves what it had."""
        self.record[name] = value
        path = os.path.join(self.out, "gpu-acceptance.json")
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(self.record, file, indent=1)
        os.replace(path + ".part", path)

    def tell(self, text):
        self.figures.append(text)

    def mark(self, reached, text):
        """A mark; what does not reach it makes the row fall short, and the row goes on."""
        self.tell(text)
        if not reached:
            self.shortfalls.append(text)

    # ---- commands

    def left(self):
        return min(self.end, self.row_end) - time.monotonic()

    def run(self, *command, check=True, limit=None, environment=None):
        """Runs a command for as long as the row has, or `limit` seconds; kills it, and what it started, after that."""
        command = [str(word) for word in command]
        seconds = min(self.left(), limit or math.inf)
        if seconds <= 0:
            raise Late("no time left for " + " ".join(command[:3]))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              env={**self.environment, **(environment or {})}, start_new_session=True) as process:
            try:
                out, err = process.communicate(timeout=seconds)
            except BaseException as reason:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
                if isinstance(reason, subprocess.TimeoutExpired):
                    raise Late(f"after {seconds:.0f} s: {' '.join(command)}") from None
                raise
        if check and process.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit status {process.returncode}: {(err or out)[-600:].strip()}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def sluice(self, *arguments, **kw):
        return self.run(os.path.join(self.folder, "sluice"), *arguments, **kw)

    def bench(self, *arguments, **kw):
        """The record of `sluice bench device`, without ceilings unless asked for."""
        least = [] if "--moved" in arguments else ["--largest", "4KiB", "--moved", "4KiB"]
        return json.loads(self.sluice("bench", "device", *arguments, *least, "--json", **kw).stdout)

    def cpd(self, store, *arguments):
        """run.json of a decomposition of 16 components, with the seconds the whole command took, and its folder."""
        out = os.path.join(self.work, "out")
        shutil.rmtree(out, ignore_errors=True)
        begin = time.monotonic()
        self.sluice("cpd", store, "-r", 16, "--tol", 0, "-o", out, "-q", *arguments)
        seconds = time.monotonic() - begin
        with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
            return {**json.load(file), "command_seconds": seconds, "folder": out}

    def offers(self, command, *words):
        """Whether the command's help has all of the words."""
        text = self.sluice(command, "--help").stdout
        return all(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words)

    def programs(self, begin="device_"):
        return sorted(n for n in os.listdir(self.folder)
                      if n.startswith(begin) and os.access(os.path.join(self.folder, n), os.X_OK)
                      and os.path.isfile(os.path.join(self.folder, n)))

    def ceilings(self):
        """What the device moves, measured once; rows of `sluice bench device`."""
        if "ceilings" not in self.record:
            # On an emulated device the smallest sets take long enough; a real one is asked for all.
            sizes = ["--largest", "4GiB" if self.scale >= 0.01 else "256KiB", "--moved",
                     f"{max(64, int(8 * 2**20 * self.scale)) * 1024}"]
            self.keep("ceilings", self.bench(*sizes, "-n", self.repeats))
        return self.record["ceilings"]["ceilings"]

    def ceiling(self, name, working_bytes=math.inf, row_bytes=None):
        """GB/s of the smallest working set that is no smaller than asked for; of the largest, if there is none."""
        rows = [r for r in self.ceilings() if r["ceiling"] == name and row_bytes in (None, r.get("row_bytes"))]
        enough = [r for r in rows if r["working_bytes"] >= working_bytes]
        if not rows:
            raise Skip(f"no ceiling {name} was measured")
        return (min(enough, key=lambda r: r["working_bytes"]) if enough
                else max(rows, key=lambda r: r["working_bytes"]))["gb_per_s"]

    # ---- tensors

    def room(self):
        """Bytes that stores may take: a third of what the disk has left, a quarter of memory."""
        return min(shutil.disk_usage(self.work).free // 3, machine_memory() // 4)

    def shape(self, name):
        # Tiny ones, for an emulated device, are shorter, too: factors would be all they consist of.
        shorter = min(1.0, self.scale * 20)
        return "x".join(str(max(2, int(int(d) * shorter))) for d in TENSORS[name][0].split("x"))

    def make(self, path, dims, nnz, dist, *more):
        begin = time.monotonic()
        # Tiny tensors have several blocks, too.
        blocks = ["--block-bytes", "16KiB"] if self.scale < 0.01 else []
        self.sluice("generate", path, "--dims", dims, "--nnz", int(nnz), "--dist", dist, *blocks, *more, "-f", "-q")
        return nnz / (time.monotonic() - begin)

    def tensor(self, name, share=1.0, codec="packed", layouts=()):
        """A store of TENSORS, made once; `share` of its nonzeros."""
        key = (name, share, codec, layouts)
        if key in self.made:
            return self.made[key]
        if self.generator is None:
            probe = os.path.join(self.work, "probe.slc")
            self.generator = self.make(probe, "1000000x1000000x1000000", 4e6, "uniform") if self.scale >= 0.01 else math.inf
            shutil.rmtree(probe, ignore_errors=True)
        nnz = TENSORS[name][1] * share * self.scale * min(1.0, self.generator / GENERATED_PER_SECOND)
        # 16 bytes a nonzero is the most that a codec takes, and half of the room is others'. Some places stay empty.
        places = math.prod(int(d) for d in self.shape(name).split("x"))
        nnz = min(max(1000, min(nnz, self.room() / 2 / 16)), places // 4)
        path = os.path.join(self.work, f"{name}-{share:g}-{codec}{'-sorted' if layouts else ''}.slc")
        self.make(path, self.shape(name), nnz, TENSORS[name][2], "--codec", codec)
        if layouts:
            self.sluice("layout", path, *layouts, "-q")
        self.made[key] = path
        return path

    def drop(self, path):
        """Gives a store's room back."""
        self.made = {key: made for key, made in self.made.items() if made != path}
        shutil.rmtree(path, ignore_errors=True)

    def info(self, store):
        return json.loads(self.sluice("info", store, "--json").stdout)
