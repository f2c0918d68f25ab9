"""Rows 1 to 5 and 8 of tools/gpu-acceptance: what runs in the device's memory."""

import glob
import math
import os
import shutil

from gpu_runner import SIX, Failed, Late, Skip


def geometric_mean(numbers):
    numbers = list(numbers)
    return math.exp(sum(math.log(n) for n in numbers) / len(numbers))


def ceilings(runner):
    """1: recorded; everything else is told beside them."""
    device = runner.ceilings() and runner.record["ceilings"]["device"]
    best = {}
    for row in runner.ceilings():
        best[row["ceiling"]] = max(best.get(row["ceiling"], 0), row["gb_per_s"])
    copies = [f"{row['working_bytes'] / 2**20:g} MiB {row['gb_per_s']:.1f}" for row in runner.ceilings()
              if row["ceiling"] == "to-device"]
    runner.tell(f"{device['name']}, {device['multiprocessors']} multiprocessors; GB/s: "
                + ", ".join(f"{name} {rate:.0f}" for name, rate in best.items() if name != "to-device")
                + f", read from memory {runner.ceiling('read'):.0f}, to-device " + ", ".join(copies))


def kernels(runner):
    """2: the tests of gpu/, compiled for the device."""
    programs, passed = runner.programs(), 0
    if not programs:
        raise Skip("no tests for a device were built")
    for name in programs:
        try:
            done = runner.run(os.path.join(runner.folder, name), check=False, limit=90,
                              environment={} if runner.scale >= 0.5 else {"SLC_TEST_QUICK": "2"})
        except Late as reason:
            runner.mark(False, f"not in time: {reason}")
            continue
        lines = done.stdout.splitlines()
        passed += sum(line.startswith("ok") and "# SKIP" not in line for line in lines)
        bad = [line for line in lines if line.startswith("not ok")]
        if done.returncode != 0 or bad:
            detail = [line for line in lines if line.startswith("# ")][-3:]
            runner.mark(False, f"{name}: exit status {done.returncode}; {'; '.join(bad + detail)[:500]} {done.stderr[-200:]}")
    if passed == 0 and not runner.shortfalls:
        raise Skip("the tests found no device")
    runner.tell(f"{passed} tests of {len(programs)} programs pass")


def deterministic(runner):
    """3: the same bits for any number of streams, with blocks that stay and without."""
    store, first, runs = runner.tensor("skewed", 0.1), None, 0
    for streams, more in ((1, []), *[(2, [])] * 5, (4, []), (1, ["--no-cache"]), (4, ["--no-cache"])):
        told = runner.cpd(store, "-i", 3, "--device", "gpu", "--deterministic", "--streams", streams, *more)
        factors = []
        for name in sorted(glob.glob(os.path.join(told["folder"], "*.npy"))):
            with open(name, "rb") as file:
                factors.append(file.read())
        runs += 1
        first = first or factors
        if factors != first:
            runner.mark(False, f"other bits with {streams} streams {' '.join(more)}".strip())
    runner.tell(f"{runs} runs with 1, 2 and 4 streams" + ("" if runner.shortfalls else ": the same bits"))


def find_sanitizer():
    found = shutil.which("compute-sanitizer")
    places = [found] if found else sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer")
                                          + glob.glob("/usr/local/cuda*/compute-sanitizer/compute-sanitizer"))
    if not places:
        raise Skip("no compute-sanitizer")
    return places[0]


def sanitizer(runner):
    """4: no error in the kernels that decode and compute, and a planted race is found."""
    tool = find_sanitizer()
    planted = os.path.join(runner.folder, "planted_race")
    programs = [name for name in ("device_expand", "device_decode", "device_product", "device_mttkrp")
                if name in runner.programs()]
    if not programs or not os.path.exists(planted):
        raise Skip("no tests for a device were built")

    def under(kind, program, limit):
        done = runner.run(tool, "--tool", kind, "--error-exitcode", "9", program, check=False, limit=limit,
                          environment={"SLC_TEST_QUICK": "2"})
        text = done.stdout + done.stderr
        if "not supported" in text or "Failed to initialize" in text or "Unable to" in text:
            raise Skip("compute-sanitizer refuses this device: " + text.strip().splitlines()[-1][:200])
        return done.returncode, text

    status, text = under("racecheck", planted, 60)
    runner.mark(status == 9, "a planted race is " + ("found" if status == 9 else f"not found: {text[-200:]}"))
    late, done = [], 0
    for kind in ("memcheck", "synccheck", "initcheck", "racecheck"):
        for name in programs:
            try:
                status, text = under(kind, os.path.join(runner.folder, name), 60)
            except Late:
                late.append(f"{kind} of {name}")
                continue
            done += 1
            if status != 0:
                runner.mark(False, f"{kind} of {name}: exit status {status}: {text[-300:]}")
    runner.tell(f"{done} of {4 * len(programs)} runs complete" + (f"; not in time: {', '.join(late)}" if late else "")
                + ("" if runner.shortfalls else ", no error"))
    if done == 0:
        raise Skip("no run was complete in time")


def model_ms(runner, store, row):
    """What the rows that an MTTKRP reads would take alone, each at a random place: GPU.md's model of the memory."""
    dims, row_bytes = runner.info(store)["dims"], row["rank"] * (8 if row["precision"] == "f64" else 4)
    known = sorted({r["row_bytes"] for r in runner.ceilings() if r["ceiling"] == "rows"})
    measured = min(known, key=lambda b: abs(b - row_bytes))
    nnz = row["gnnz_per_s"] * row["median_ms"] * 1e6
    return sum(nnz * row_bytes / runner.ceiling("rows", length * row_bytes, measured) * 1e-6
               for m, length in enumerate(dims) if m + 1 != row["mode"])


def compare(runner, rows):
    """Ratios to BLCO's kernel, by what was measured together."""
    times = {}
    for row in rows:
        key = row["tensor"], row["precision"], row["rank"], row["mode"]
        times.setdefault(key, {})[row["kernel"]] = row
        if row.get("copied_bytes", 0) > 0:
            runner.mark(False, f"{os.path.basename(row['tensor'])}: not all blocks stayed in the device's memory")
        if row.get("differs", 0) > (1e-10 if row["precision"] == "f64" else 1e-4):
            runner.mark(False, f"{row['kernel']}, {os.path.basename(row['tensor'])}, mode {row['mode']}: differs by {row['differs']:.1e}")
    return times


def in_memory(runner):
    """5: all modes of six tensors. What has a mark comes first, in case that time runs out."""
    rows = []
    cases = [("32", "f64", "blco"), ("32", "f64", "all"), ("16,64", "f64", "blco"), ("16,32,64", "f32", "blco")]
    late = None
    for rank, precision, kernel in cases:
        for name in SIX:
            if kernel == "all" and runner.left() < 120:
                continue  # the others' kernels are told, and have no mark
            try:
                rows += runner.bench(runner.tensor(name), "--rank", rank, "--precision", precision, "--kernel", kernel, "-n",
                                     runner.repeats, limit=120)["rows"]
            except (Late, Failed) as reason:
                late = f"{name}, {precision}, rank {rank}, {kernel}: {reason}"
                if isinstance(reason, Failed):
                    runner.mark(False, late)
            runner.keep("in_memory", rows)
    times = compare(runner, rows)
    marked = {key: of for key, of in times.items() if key[1] == "f64" and key[2] == 32 and "blco" in of}
    if not marked:
        raise Late(late or "nothing was measured")
    ratios = {key: of["blco"]["median_ms"] / of["sluice"]["median_ms"] for key, of in marked.items()}
    mean = geometric_mean(ratios.values())
    runner.mark(mean >= 2.0, f"{mean:.2f} x BLCO (f64, rank 32, {len(ratios)} modes of {len({k[0] for k in ratios})} tensors)")
    below = [f"{os.path.basename(key[0])} mode {key[3]} {ratio:.2f}" for key, ratio in ratios.items() if ratio < 1]
    runner.mark(not below, "below 1.0: " + ", ".join(below) if below else f"lowest {min(ratios.values()):.2f}")
    shares = [model_ms(runner, key[0], of["sluice"]) / of["sluice"]["median_ms"] for key, of in marked.items()]
    runner.mark(geometric_mean(shares) >= 0.6, f"{geometric_mean(shares):.2f} of the model's ceiling")
    others = {}
    for of in times.values():
        for kernel, row in of.items():
            if kernel != "sluice":
                others.setdefault(kernel, []).append(row["median_ms"] / of["sluice"]["median_ms"])
    runner.tell("all: " + ", ".join(f"{geometric_mean(r):.2f} x {kernel}" for kernel, r in sorted(others.items())))
    if late:
        runner.tell("not all was measured: " + late)


def agrees_with_cpu(runner):
    """8: CP-ALS beside the CPU's; nothing but small matrices leaves the device within the loop."""
    store, told = runner.tensor("skewed", 0.2), {}
    for device in ("gpu", "cpu"):
        told[device] = runner.cpd(store, "-i", 10, "--device", device)
        runner.keep("cp_als", told)
    gpu, apart = told["gpu"], abs(told["cpu"]["fit"] - told["gpu"]["fit"])
    runner.mark(apart <= 1e-6, f"fits differ by {apart:.1e} after ten iterations")
    once = sum(gpu["tensor"]["dims"]) * 16 * 8
    back = gpu["device"]["factor_bytes_to_host"]
    runner.mark(back <= once, f"{back / 1e6:.1f} MB of factors came back, once at the end {once / 1e6:.1f}")
    dense = (gpu["seconds"]["solve"] + gpu["seconds"]["fit"]) / sum(i["seconds"] for i in gpu["iterations"])
    runner.mark(dense <= 0.1, f"dense algebra {100 * dense:.1f} % of the iterations")
    each = {device: sorted(i["seconds"] for i in run["iterations"])[len(run["iterations"]) // 2] for device, run in told.items()}
    runner.tell(f"an iteration {each['gpu'] * 1e3:.1f} ms, CPU {each['cpu'] * 1e3:.1f} ms")
