"""Rows 1 to 5 and 8 of tools/gpu-acceptance: measurements in device memory."""

import glob
import os
import shutil

from gpu_runner import Failed, Late, Skip
from gpu_tensors import SIX, geometric_mean, name_of

TESTS_AT_A_TIME, TEST_SECONDS = 8, 30
SANITIZED_AT_A_TIME, SANITIZED_SECONDS = 4, 60


def ceilings(runner):
    """Row 1: measures the ceilings, with which the other rows are compared."""
    device = runner.ceilings() and runner.record["ceilings"]["device"]
    best = {}
    for row in runner.ceilings():
        best[row["ceiling"]] = max(best.get(row["ceiling"], 0), row["gb_per_s"])
    copies = [f"{row['working_bytes'] / 2**20:g} MiB {row['gb_per_s']:.1f}" for row in runner.ceilings()
              if row["ceiling"] == "to-device"]
    runner.add_figure(f"{device['name']}, {device['multiprocessors']} multiprocessors; GB/s: "
                + ", ".join(f"{name} {rate:.0f}" for name, rate in best.items() if name != "to-device")
                + f", read from memory {runner.ceiling('read'):.0f}, to-device " + ", ".join(copies))


def kernels(runner):
    """Row 2: runs the tests of gpu/, compiled for the device, several programs at a time. The sizes
    of their tensors do not depend on --scale."""
    programs, passed = runner.programs(), 0
    if not programs:
        raise Skip("no device tests were built")

    def test(name):
        return lambda: runner.run(os.path.join(runner.folder, name), check=False, limit=TEST_SECONDS)

    for name, done in zip(programs, runner.parallel([test(name) for name in programs], TESTS_AT_A_TIME)):
        if isinstance(done, Late):
            runner.mark(False, f"time limit: {done}")
            continue
        if isinstance(done, Exception):
            raise done
        lines = done.stdout.splitlines()
        passed += sum(line.startswith("ok") and "# SKIP" not in line for line in lines)
        bad = [line for line in lines if line.startswith("not ok")]
        if done.returncode != 0 or bad:
            detail = [line for line in lines if line.startswith("# ")][-3:]
            runner.mark(False, f"{name}: exit status {done.returncode}; {'; '.join(bad + detail)[:500]} {done.stderr[-200:]}")
    if passed == 0 and not runner.row["short"]:
        raise Skip("the tests found no device")
    runner.add_figure(f"{passed} tests of {len(programs)} programs pass")


def deterministic(runner):
    """Row 3: checks that results have the same bits for any number of streams, with and without
    resident blocks."""
    store, first, runs = runner.tensors.get("skewed", 0.1), None, 0
    for streams, more in ((1, []), *[(2, [])] * 5, (4, []), (1, ["--no-cache"]), (4, ["--no-cache"])):
        result = runner.cpd(store, "-i", 3, "--device", "gpu", "--deterministic", "--streams", streams, *more)
        factors = []
        for name in sorted(glob.glob(os.path.join(result["folder"], "*.npy"))):
            with open(name, "rb") as file:
                factors.append(file.read())
        runs += 1
        first = first or factors
        if factors != first:
            runner.mark(False, f"different bits with {streams} streams {' '.join(more)}".strip())
    runner.add_figure(f"{runs} runs with 1, 2 and 4 streams" + ("" if runner.row["short"] else ": the same bits"))


def find_sanitizer():
    found = shutil.which("compute-sanitizer")
    places = [found] if found else sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer")
                                          + glob.glob("/usr/local/cuda*/compute-sanitizer/compute-sanitizer"))
    if not places:
        raise Skip("no compute-sanitizer")
    return places[0]


def sanitizer(runner):
    """Row 4: checks that compute-sanitizer finds no error in the kernels that decode and compute,
    and finds a planted race."""
    tool = find_sanitizer()
    planted = os.path.join(runner.folder, "planted_race")
    programs = [name for name in ("device_expand", "device_decode", "device_product", "device_mttkrp")
                if name in runner.programs()]
    if not programs or not os.path.exists(planted):
        raise Skip("no device tests were built")

    def run_under(kind, program):
        # The program needs no LD_LIBRARY_PATH to find its libraries; it would also affect the tool.
        done = runner.run(tool, "--tool", kind, "--error-exitcode", "9", program, check=False, limit=SANITIZED_SECONDS,
                          environment={"SLC_TEST_QUICK": "2"})
        text = done.stdout + done.stderr
        if "not supported" in text or "Failed to initialize" in text or "Unable to" in text:
            raise Skip("compute-sanitizer does not support this device: " + text.strip().splitlines()[-1][:200])
        return done.returncode, text

    status, text = run_under("racecheck", planted)
    runner.mark(status == 9, "a planted race is " + ("found" if status == 9 else f"not found: {text[-200:]}"))
    cases = [(kind, name) for kind in ("memcheck", "synccheck", "initcheck", "racecheck") for name in programs]

    def check(kind, name):
        return lambda: run_under(kind, os.path.join(runner.folder, name))

    late, done = [], 0
    for (kind, name), result in zip(cases, runner.parallel([check(*case) for case in cases], SANITIZED_AT_A_TIME)):
        if isinstance(result, Late):
            late.append(f"{kind} of {name}")
            continue
        if isinstance(result, Exception):
            raise result
        status, text = result
        done += 1
        if status != 0:
            # The first report of the tool, and its last line, which counts them.
            said = [line[10:].strip() for line in text.splitlines() if line.startswith("========= ")]
            reports = [line for line in said if line and line != "COMPUTE-SANITIZER"]
            runner.mark(False, f"{kind} of {name}: exit status {status}: " +
                        ("; ".join(reports[:2] + reports[-1:])[:500] if reports else text[-300:]))
    runner.add_figure(f"{done} of {len(cases)} runs complete" + (f"; time limit: {', '.join(late)}" if late else "")
                + ("" if runner.row["short"] else ", no error"))
    if done == 0:
        raise Skip("no run completed within its time limit")


def by_case(rows):
    """Returns the rows of a call by tensor, precision, rank and mode, then by kernel."""
    cases = {}
    for row in (row for row in rows if "median_ms" in row):
        cases.setdefault((row["tensor"], row["precision"], row["rank"], row["mode"]), {})[row["kernel"]] = row
    return cases


class InMemory:
    """The measurements of row 5: the rows and the summary of each call of `sluice bench device`."""

    def __init__(self, runner):
        self.runner, self.calls, self.summaries, self.late = runner, [], [], None

    def measure(self, name, *options):
        """Measures all ranks of a tensor in one process. Returns the record, which has no rows if
        the process failed."""
        try:
            result = self.runner.bench(self.runner.tensors.get(name), *options, "-n", self.runner.repeats, limit=120)
        except (Late, Failed) as reason:
            self.late = f"{name} {' '.join(options)}: {reason}"
            if isinstance(reason, Failed):
                self.runner.mark(False, self.late)
            return {"rows": []}
        for row in result["rows"]:
            self.check(row)
        return result

    def check(self, row):
        tensor = name_of(row["tensor"])
        if row["kernel"] == "sluice" and row.get("copied_bytes", 0) > 0:
            self.runner.mark(False, f"{tensor}: not all blocks were resident in the device's memory")
        if row.get("differs", 0) > (1e-10 if row["precision"] == "f64" else 1e-4):
            self.runner.mark(False, f"{row['kernel']}, {tensor}, mode {row['mode']}: differs by {row['differs']:.1e}")

    def add(self, name, rank, precision, kernel, *more):
        if self.runner.left() <= 0:
            self.late = f"{name}, {precision}, rank {rank}, {kernel}"
            return
        result = self.measure(name, "--rank", rank, "--precision", precision, "--kernel", kernel, *more)
        if result.get("summary"):
            self.summaries.append({"call": len(self.calls), "summary": result["summary"]})
            self.runner.keep("in_memory_summaries", self.summaries)
        self.calls.append(result["rows"])
        self.runner.keep("in_memory", [{"call": n, **row} for n, rows in enumerate(self.calls) for row in rows])


def mark_blco(runner, measured):
    """Checks the targets, in f64 at rank 32, compared with BLCO's kernel: the mean over six
    tensors, and the lowest ratio of all tensors."""
    of = {key: times for rows in measured.calls for key, times in by_case(rows).items() if {"blco", "sluice"} <= set(times)}
    if not of:
        raise Late(measured.late or "nothing was measured")
    ratios = {key: times["blco"]["median_ms"] / times["sluice"]["median_ms"] for key, times in of.items()}
    six = [key for key in of if name_of(key[0]) in SIX]
    if six:
        mean = geometric_mean(ratios[key] for key in six)
        runner.mark(mean >= 2.0, f"{mean:.2f} x BLCO (f64, rank 32, {len(six)} modes of {len({key[0] for key in six})} tensors)")
        shares = [entry["ceiling_share"] for call in measured.summaries for entry in call["summary"]
                  if entry["kernel"] == "sluice" and name_of(entry["tensor"]) in SIX and entry["ceiling_share"]]
        share = geometric_mean(shares) if shares else 0
        runner.mark(share >= 0.6, f"{share:.2f} of the ceiling of random rows")
    below = [f"{name_of(key[0])} mode {key[3]} {ratio:.2f}" for key, ratio in ratios.items() if ratio < 1]
    runner.mark(not below, "below 1.0: " + ", ".join(below) if below else f"lowest {min(ratios.values()):.2f}")
    wide = [ratio for key, ratio in ratios.items() if key not in six]
    if wide:
        runner.add_figure(f"more than 64 index bits: {geometric_mean(wide):.2f} x BLCO")


def in_memory(runner):
    """Row 5: measures all modes of seven tensors. Measures what targets need first and the other
    kernels last, in case time runs out."""
    measured, tensors = InMemory(runner), (*SIX, "wide")
    for name in tensors:
        measured.add(name, "32", "f64", "blco", *runner.ceiling_sizes(8))
    mark_blco(runner, measured)
    for rank, precision in (("16,64", "f64"), ("16,32,64", "f32")):
        for name in tensors:
            measured.add(name, rank, precision, "blco")
    for name in tensors:
        measured.add(name, "32", "f64", "all")
    others = {}
    for times in (times for rows in measured.calls for times in by_case(rows).values() if "sluice" in times):
        for kernel in set(times) - {"sluice"}:
            others.setdefault(kernel, []).append(times[kernel]["median_ms"] / times["sluice"]["median_ms"])
    runner.add_figure("all: " + ", ".join(f"{geometric_mean(r):.2f} x {kernel}" for kernel, r in sorted(others.items())))
    if measured.late:
        runner.add_figure("not everything was measured: " + measured.late)


def agrees_with_cpu(runner):
    """Row 8: compares CP-ALS on the GPU with CP-ALS on the CPU. Checks that iterations copy only
    small matrices from the device."""
    store, result = runner.tensors.get("skewed", 0.2), {}
    for device in ("gpu", "cpu"):
        result[device] = runner.cpd(store, "-i", 10, "--device", device)
        runner.keep("cp_als", result)
    gpu, apart = result["gpu"], abs(result["cpu"]["fit"] - result["gpu"]["fit"])
    runner.mark(apart <= 1e-6, f"fits differ by {apart:.1e} after ten iterations")
    once = sum(gpu["tensor"]["dims"]) * 16 * 8
    back = gpu["device"]["factor_bytes_to_host"]
    runner.mark(back <= once, f"{back / 1e6:.1f} MB of factors were copied back, one copy is {once / 1e6:.1f}")
    dense = (gpu["seconds"]["solve"] + gpu["seconds"]["fit"]) / sum(i["seconds"] for i in gpu["iterations"])
    runner.mark(dense <= 0.1, f"dense algebra {100 * dense:.1f} % of the iterations")
    each = {device: sorted(i["seconds"] for i in run["iterations"])[len(run["iterations"]) // 2] for device, run in result.items()}
    runner.add_figure(f"an iteration {each['gpu'] * 1e3:.1f} ms, CPU {each['cpu'] * 1e3:.1f} ms")
