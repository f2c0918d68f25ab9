"""Runs commands with time limits for the rows of tools/gpu-acceptance, and writes every figure
as soon as it is measured."""

import concurrent.futures
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
import threading
import time

# Numbers of characters to keep from the start and from the end of the output of a failed command,
# and maximum number of files with such output.
KEPT_CHARACTERS, KEPT_FILES = 50_000, 60
NAME = "gpu-acceptance"


class Skip(Exception):
    """A row is not possible on this machine. The message has the reason."""


class Late(Exception):
    """The time limit of a row has passed. The message names the command."""


class Failed(Exception):
    """A command failed. The message has the message of the command."""


class Stopped(BaseException):
    """A signal ended the run. The argument is the number of the signal."""


def cuda_folders():
    """Returns folders with libraries of the CUDA toolkit that the loader does not search: those of
    the toolkit, and those of Python packages."""
    found = glob.glob("/usr/local/cuda*/lib64") + glob.glob("/usr/local/cuda*/targets/*/lib")
    for place in {os.path.dirname(os.path.dirname(sys.executable)), sys.prefix, "/usr/local", "/opt/torch/.venv"}:
        found += glob.glob(os.path.join(place, "lib/python3*/*-packages/nvidia/*/lib"))
    return [folder for folder in found if glob.glob(os.path.join(folder, "lib*.so*"))]


def npy_write(path, rows, cols, number):
    """Writes an .npy file of f64, row by row, in which element i is number(i). If cols is None, it
    is a vector."""
    count = rows * (cols or 1)
    shape = f"({rows},)" if cols is None else f"({rows}, {cols})"
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        for begin in range(0, count, 65536):
            part = [float(number(i)) for i in range(begin, min(count, begin + 65536))]
            file.write(struct.pack(f"<{len(part)}d", *part))


def replace(path, text):
    """Replaces a file atomically."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def json_text(record):
    """Returns JSON with a line per member and per array element. A short text matters, because it is
    written after every command."""
    members = []
    for name, value in record.items():
        elements = [json.dumps(element) for element in value] if isinstance(value, list) else []
        members.append(f"{json.dumps(name)}: " + ("[\n" + ",\n".join(elements) + "]" if elements else json.dumps(value)))
    return "{\n" + ",\n".join(members) + "\n}\n"


def row_line(row):
    figures = " ".join("; ".join(row["figures"]).split())
    return f"{row['row']:2} {row['verdict']:10} {row['what']} ({row['seconds']:.0f} s): {figures}"


def shortened(text):
    if len(text) <= 2 * KEPT_CHARACTERS:
        return text
    left_out = len(text) - 2 * KEPT_CHARACTERS
    return f"{text[:KEPT_CHARACTERS]}\n[{left_out} characters left out]\n{text[-KEPT_CHARACTERS:]}"


class Runner:
    """Runs the programs of `folder` and writes figures to `out`. There is one current row; its
    commands may run in several threads."""

    def __init__(self, folder, work, out, scale, total_seconds):
        self.folder, self.work, self.out = os.path.abspath(folder), work, out
        self.scale = scale  # factor of tensor sizes; 1 means the sizes in TENSORS
        self.repeats = 5 if scale >= 0.5 else 3
        self.end = self.row_end = time.monotonic() + total_seconds
        self.lock = threading.RLock()
        self.processes, self.stopped, self.kept_files, self.unwritten = set(), False, 0, False
        self.row, self.summary = None, lambda record: []
        self.record = {"rows": [], "commands": []}
        self.environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(
            [self.folder, *cuda_folders(), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])}

    # ---- figures

    def describe(self, device):
        """Records the device, the programs, the machine and the time."""
        smi = ""
        if shutil.which("nvidia-smi"):
            smi = self.run("nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader", check=False,
                           limit=30).stdout.strip()
        driver = re.search(r"^[^,]*, *([^,]+)", smi)
        system = os.uname()
        self.keep("machine", {"device": device["name"], "driver": driver.group(1).strip() if driver else None, "nvidia_smi": smi,
                              "commit": self.commit(), "begun": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                              "system": f"{system.sysname} {system.release} {system.machine}",
                              "processors": len(os.sched_getaffinity(0)), "scale": self.scale,
                              "disk_free_bytes": shutil.disk_usage(self.work).free})

    def commit(self):
        """Returns the commit of the programs, which gpu_pack.py recorded."""
        try:
            with open(os.path.join(self.folder, "commit"), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return None

    def keep(self, name, value):
        """Adds a member to the record and writes the record to disk."""
        with self.lock:
            self.record[name] = value
        self.write()

    def write(self):
        """Writes the current record and table, so that the figures remain if the run is killed."""
        with self.lock:
            rows = sorted(self.record["rows"], key=lambda row: row["row"])
            self.replace(NAME + ".json", json_text({**self.record, "rows": rows}))
            machine = self.record.get("machine")
            lines = [row_line(row) for row in rows]
            if machine:
                lines.insert(0, f"{machine['device']}, driver {machine['driver']}, {machine['begun']}, sluice {machine['commit']}")
            self.replace(NAME + ".txt", "".join(line + "\n" for line in lines + self.summary(self.record)))

    def replace(self, name, text):
        """Writes a file of results. If this fails, the file is unchanged and the run continues."""
        path = os.path.join(self.out, name)
        try:
            replace(path, text)
        except OSError as reason:
            if not self.unwritten:
                print(f"gpu-acceptance: {path}: {reason.strerror}: figures measured from now on may only be on standard output",
                      file=sys.stderr)
            self.unwritten = True
            try:
                os.unlink(path + ".part")
            except OSError:
                pass

    def begin_row(self, number, what, seconds):
        begin = time.monotonic()
        self.row_end = begin + seconds
        self.row = {"row": number, "what": what, "verdict": "RUNNING", "figures": [], "short": [], "seconds": 0}
        with self.lock:
            self.record["rows"].append(self.row)
        self.write()
        return begin

    def end_row(self, verdict, begin):
        with self.lock:
            self.row.update(verdict=verdict, seconds=round(time.monotonic() - begin, 1))
        self.write()

    def add_figure(self, text):
        with self.lock:
            self.row["figures"].append(text)
        self.write()

    def mark(self, reached, text):
        """Records whether a target was reached. If not, the row falls short but continues."""
        if not reached:
            self.row["short"].append(text)
        self.add_figure(text)

    # ---- commands

    def left(self):
        return min(self.end, self.row_end) - time.monotonic()

    def run(self, *command, check=True, limit=None, environment=None, end=None, started=None):
        """Runs a command. Kills it with its children at the end of the time of the row, at the time
        `end`, or after `limit` seconds."""
        command = [str(word) for word in command]
        seconds = min(end - time.monotonic() if end else self.left(), limit or math.inf)
        if seconds <= 0 or self.stopped:
            raise Late("no time left for " + " ".join(command[:3]))
        # Only the packed programs may use the packed libraries, not programs of the system.
        own = self.environment if command[0].startswith(self.folder + os.sep) else os.environ
        begin, late = time.monotonic(), False
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                              env={**own, **(environment or {})}, start_new_session=True) as process:
            self.processes.add(process)
            try:
                if started:
                    started(process)
                out, err = process.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                late = True
                self.kill(process)
                out, err = process.communicate()
            except BaseException:
                self.kill(process)
                raise
            finally:
                self.processes.discard(process)
        self.note_command(command, process.returncode, late, begin, out, err)
        if late:
            raise Late(f"after {seconds:.0f} s: {' '.join(command)}")
        if check and process.returncode != 0:
            raise Failed(f"{' '.join(command)}: exit status {process.returncode}: {(err or out)[-600:].strip()}")
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    @staticmethod
    def kill(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def stop(self):
        """Kills all commands and prevents further ones."""
        self.stopped = True
        for process in list(self.processes):
            self.kill(process)

    def note_command(self, command, status, late, begin, out, err):
        """Records seconds and status of a command, and its output if it failed."""
        words = [os.path.basename(word) if word.startswith((self.folder, self.work)) else word for word in command]
        note = {"command": " ".join(words), "status": "late" if late else status, "seconds": round(time.monotonic() - begin, 2)}
        with self.lock:
            if (late or status != 0) and self.kept_files < KEPT_FILES:
                self.kept_files += 1
                note["output"] = f"failed-{self.kept_files:02}.txt"
                self.replace(note["output"],
                             f"{' '.join(command)}\n{note['status']} after {note['seconds']} s\n---- standard output\n"
                        f"{shortened(out or '')}\n---- standard error\n{shortened(err or '')}\n")
            self.record["commands"].append(note)
        self.write()

    def parallel(self, jobs, most):
        """Calls functions in `most` threads. Returns their results or exceptions."""
        with concurrent.futures.ThreadPoolExecutor(max_workers=most) as pool:
            futures = [pool.submit(job) for job in jobs]
            try:
                return [future.exception() or future.result() for future in futures]
            except BaseException:
                self.stop()
                raise

    def sluice(self, *arguments, **kw):
        return self.run(os.path.join(self.folder, "sluice"), *arguments, **kw)

    def bench(self, *arguments, **kw):
        """Returns the record of `sluice bench device`, without ceilings unless requested."""
        least = [] if "--moved" in arguments else ["--largest", "4KiB", "--moved", "4KiB"]
        return json.loads(self.sluice("bench", "device", *arguments, *least, "--json", **kw).stdout)

    def cpd(self, store, *arguments):
        """Decomposes a tensor at rank 16. Returns run.json, with the seconds of the whole command
        added, and the folder of the run."""
        out = os.path.join(self.work, "out")
        shutil.rmtree(out, ignore_errors=True)
        begin = time.monotonic()
        self.sluice("cpd", store, "-r", 16, "--tol", 0, "-o", out, "-q", *arguments)
        seconds = time.monotonic() - begin
        with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
            return {**json.load(file), "command_seconds": seconds, "folder": out}

    def offers(self, command, *words):
        """Returns True if the help of a command contains all of the words."""
        text = self.sluice(*command.split(), "--help").stdout
        return all(re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) for word in words)

    def programs(self, begin="device_"):
        return sorted(n for n in os.listdir(self.folder)
                      if n.startswith(begin) and os.access(os.path.join(self.folder, n), os.X_OK)
                      and os.path.isfile(os.path.join(self.folder, n)))

    # ---- ceilings

    def ceiling_sizes(self, part):
        """Returns the options for measuring ceilings with 1/part of the bytes per run. On an
        emulated device, only the smallest sets are measured."""
        return ["--largest", "4GiB" if self.scale >= 0.01 else "256KiB", "--moved",
                f"{max(64, int(8 * 2**20 * self.scale / part)) * 1024}"]

    def ceilings(self):
        """Returns the ceilings of the device, rows of `sluice bench device`. They are measured
        once."""
        if "ceilings" not in self.record:
            self.keep("ceilings", self.bench(*self.ceiling_sizes(1), "-n", self.repeats))
        return self.record["ceilings"]["ceilings"]

    def ceiling(self, name, working_bytes=math.inf, row_bytes=None):
        """
        Returns the GB/s of a ceiling for a working set. Interpolates between the measured sets,
        linearly in the logarithm of their sizes; outside the measured sizes, the rate is constant.
        """
        rates = {r["working_bytes"]: r["gb_per_s"] for r in self.ceilings()
                 if r["ceiling"] == name and row_bytes in (None, r.get("row_bytes"))}
        if not rates:
            raise Skip(f"no ceiling {name} was measured")
        below = max((size for size in rates if size <= working_bytes), default=min(rates))
        above = min((size for size in rates if size >= working_bytes), default=max(rates))
        if below == above:
            return rates[below]
        part = math.log(working_bytes / below) / math.log(above / below)
        return rates[below] + part * (rates[above] - rates[below])
