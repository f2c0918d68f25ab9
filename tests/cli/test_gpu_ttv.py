#!/usr/bin/env python3
"""ttv --device: on an emulated device, together with the CPU, and without a device."""

import json
import os
import re
import shutil
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, check, emulated, generate_store, interrupted, npy, read_bytes, run, sluice  # noqa: E402


def vector(folder, mode, length, reals=False):
    """Writes a file with one number per index: small integers with some zeros, or non-integers.
    Returns its path."""
    path = os.path.join(folder, f"v{mode}{'r' if reals else ''}.npy")
    numbers = [(i * 7 + mode) % 5 - 2 if not reals else 0.1 + 1 / (1 + (i * 13 + mode) % 101) for i in range(length)]
    npy(path, numbers, length)
    return path


def vectors(folder, dims, modes, reals=False):
    """Returns --mode and --vector for some modes."""
    lengths = [int(n) for n in dims.split("x")]
    return [part for k in modes for part in ("--mode", k, "--vector", vector(folder, k, lengths[k - 1], reals))]


def blocks(store):
    return read_bytes(os.path.join(store, "blco.blk"))


def entries(store):
    """Returns the coordinates and the values of a store as lists."""
    text = store + ".tns"
    sluice("export", store, text, "-q", "-f")
    with open(text) as file:
        rows = [line.split() for line in file if not line.startswith("#")]
    return [row[:-1] for row in rows], [float(row[-1]) for row in rows]


# Small integers with exact sums: dims, nonzeros, options of the store, a layout of whole fibers,
# modes.
EXACT = [
    ("200x300x40", 70000, [], None, [2]),
    ("60x80x20", 6000, ["--fibers", "none", "--codec", "lz4"], None, [1, 3]),
    ("60x80x20", 6000, ["--fibers", "3", "--codec", "blco"], None, [3]),
    ("3000x200x40", 40000, ["--dist", "zipf-shuffled:1.0", "--relabel", "frequency"], None, [2]),
    ("3000x200x40", 40000, ["--dist", "zipf-shuffled:1.0", "--relabel", "frequency"], None, [1, 3]),
    ("60x80x20", 6000, ["--block-bytes", "4KiB"], 2, [2]),
    ("60x80x20", 6000, ["--block-bytes", "4KiB"], 2, [1, 2]),
    ("60x1x50x40", 6000, [], None, [2, 4]),
    ("60x1x50x40", 6000, [], None, [2]),
    ("9x8x7x6x5", 6000, [], None, [5, 1, 3]),
    ("9000000000x90x7", 3000, [], None, [2]),
    ("5x4x3", 0, [], None, [2]),
    ("5x4x3", 1, [], None, [2]),
    ("200x300x40", 70000, [], None, [3, 1, 2]),
    ("5x4x3", 0, [], None, [1, 2, 3]),
    ("7", 5, [], None, [1]),
]


def exact(folder):
    """The bytes of a result, or the number, equal the CPU's."""
    for dims, nnz, options, fiber, modes in EXACT[::3] if QUICK else EXACT:
        store, results = generate_store(folder, dims, nnz, *options), []
        check(("--relabel" in options) == any(name.startswith("perm-") for name in os.listdir(store)), str(os.listdir(store)))
        if fiber is not None:
            sluice("layout", store, "--fiber", fiber, "-q")
        is_number = len(modes) == len(dims.split("x"))
        for command in (sluice, emulated):
            out = os.path.join(folder, command.__name__ + ".slc")
            text = command("ttv", store, *vectors(folder, dims, modes), *([] if is_number else [out]), "-q",
                           *(["--device", "gpu", "--streams", 2] if command is emulated else []))
            results.append((text[0] if command is sluice else text) if is_number else blocks(out))
            shutil.rmtree(out, ignore_errors=True)
        check(results[0] == results[1], f"{dims}, {options}, modes {modes}: the results differ")


def reals(folder):
    """The coordinates equal the CPU's, the sums nearly, and all bytes are the same for any number
    of lanes and threads."""
    store, same = generate_store(folder, "200x300x40", 70000, "--rank", 2, "--noise", 0.1), []
    args = ["ttv", store, *vectors(folder, "200x300x40", [2], True)]
    cpu = os.path.join(folder, "cpu.slc")
    sluice(*args, cpu, "-q")
    for streams, threads, sort in ((1, 1, []), (2, 2, ["--sort"]), (5, 1, [])):
        out = os.path.join(folder, "gpu.slc")
        emulated(*args, out, "--device", "gpu", "--streams", streams, "-t", threads, "-q", "-f", *sort)
        same.append(blocks(out))
    check(same[0] == same[1] == same[2], "lanes, threads or sorting change the bytes")
    (coords, values), (others, sums) = entries(cpu), entries(out)
    check(coords == others and len(coords) > 5000, "other nonzeros")
    for a, b in zip(values, sums, strict=True):
        check(abs(a - b) <= 1e-12 * max(1, abs(a)), f"{a} and {b}")


def split(folder):
    """With the tiles divided between CPU and device, the result has the CPU's bytes; the work of
    each is reported."""
    store, dims = generate_store(folder, "200x300x400", 200000 if QUICK else 400000), "200x300x400"
    args = ["ttv", store, *vectors(folder, dims, [1])]
    cpu = os.path.join(folder, "cpu.slc")
    sluice(*args, cpu, "-q")
    for how in ("static=0.5", "static=0", "queue", "adaptive"):
        out = os.path.join(folder, "gpu.slc")
        told = json.loads(emulated(*args, out, "--device", "gpu", "--split", how, "--streams", 1, "-t", 2, "-q", "-f",
                                   "--json"))["device"]
        gpu, host = told["gpu"], told["cpu"]
        check(blocks(out) == blocks(cpu), f"{how}: other bytes")
        check(told["split"] == how and told["lanes"] == 1, str(told))
        check(gpu["nnz"] + host["nnz"] == (200000 if QUICK else 400000), str(told))
        check(abs(told["part"] - gpu["nnz"] / (gpu["nnz"] + host["nnz"])) < 1e-9, str(told))
        if how.startswith("static"):
            tiles = gpu["tiles"] + host["tiles"]
            check(abs(gpu["tiles"] - float(how[7:]) * tiles) <= 1 and told["fraction"] == float(how[7:]), str(told))
        elif not QUICK:
            check(gpu["tiles"] > 0 and host["tiles"] > 0, str(told))
    text = emulated(*args, out, "--device", "gpu", "--split", "queue", "-f")
    check(re.search(r"^  device +\S.*\(cuda\), \d lanes?, .*; split queue with ", text, re.M), text)
    check(re.search(r"^  shares +GPU \d+ tiles?, .* nonzeros \([\d.]+ %\), .*; CPU \d+ tile", text, re.M), text)


def several(folder):
    """Short vectors, and several vectors at once: the CPU's bytes."""
    for dims, mode in (("200x300x40", 2), ("200000x30x40", 1)):
        store, length = generate_store(folder, dims, 20000), int(dims.split("x")[mode - 1])
        paths = [vector(folder, k, length) for k in (1, 2, 3)]
        cpu, gpu = (os.path.join(folder, name) for name in ("cpu-%d.slc", "gpu-%d.slc"))
        args = ["ttv", store, "--mode", mode, "--batch", ",".join(paths), "-q", "-f"]
        sluice(*args, cpu)
        emulated(*args, gpu, "--device", "gpu", "--streams", 2)
        for k in ("1", "2", "3"):
            check(blocks(cpu.replace("%d", k)) == blocks(gpu.replace("%d", k)), f"{dims}: the results differ")


def budgets(folder):
    """Dry runs, too small budgets, and the choice of auto."""
    store, out = generate_store(folder, "60x80x20", 6000), os.path.join(folder, "out.slc")
    args = ["ttv", store, *vectors(folder, "60x80x20", [2]), out, "-f"]
    text = emulated(*args, "--device", "gpu", "--device-memory", "64KiB", status=4)
    needs = re.search(r"needs? (\d+) MiB of device memory or more", text)
    check(needs, text)
    told = json.loads(emulated(*args, "--device", "gpu", "--device-memory", needs.group(1) + "MiB", "--dry-run", "--json", "-q"))
    device = told["device"]
    check(device["memory_least_bytes"] <= device["memory_bytes"] <= device["memory_budget_bytes"], str(device))
    check("gpu" not in device and not os.path.exists(out), str(device))
    alone = json.loads(emulated(*args, "--dry-run", "--json", "-q"))
    # The resident size of the program varies between runs.
    beside = [record["memory_least_bytes"] - record["process_bytes"] for record in (told, alone)]
    check(beside[0] > beside[1] > 0 < alone["process_bytes"], f"{told}, {alone}")
    emulated(*args, "--device", "gpu", "--device-memory", needs.group(1) + "MiB", "--memory",
             (told["memory_least_bytes"] >> 20) + 8 << 20)
    emulated(*args, "--device", "gpu", "--memory", "4MiB", status=4)
    check("(minimum: " in emulated(*args, "--device", "auto", "--dry-run"), "auto takes the GPU")
    text = emulated(*args, "--device", "auto", fault="memory")
    check(re.search(r"^  GPU +not used: .*free in one piece", text, re.M), text)
    check("free in one piece" in emulated(*args, "--device", "gpu", fault="memory", status=1), "gpu")
    for more in (["--dry-run"], []):
        text = emulated(*args, "--device", "auto", "--device-memory", "64KiB", *more)
        check(re.search(r"^  GPU +not used: .*--device-memory", text, re.M), text)
    told = json.loads(emulated(*args, "--device", "auto", "--device-memory", "64KiB", "--json", "-q"))
    check(told["device"] is None and "--device-memory" in told["no_device"], str(told))
    args += ["--sort"]
    lanes = ["--device", "gpu", "--streams", 8]
    least = [json.loads(emulated(*args, *more, "--dry-run", "--json", "-q"))["memory_least_bytes"] for more in ([], lanes)]
    check(least[1] - least[0] > 4 << 20, str(least))
    between = (least[0] + least[1]) // 2
    emulated(*args, *lanes, "--memory", between, "--dry-run", status=4)
    text = emulated(*args, "--device", "auto", "--streams", 8, "--memory", between, "--dry-run")
    check(re.search(r"^  GPU +not used: .*--memory", text, re.M), text)


def without(folder):
    """Runs on a machine without a device, like the other tests of the command."""
    store, out = generate_store(folder, "60x80x20", 6000), os.path.join(folder, "out.slc")
    args = ["ttv", store, *vectors(folder, "60x80x20", [2]), out, "-f"]
    why = "(this sluice was built without CUDA|no CUDA device can be used)"
    _, err = sluice(*args, "--device", "gpu", status=1)
    check(re.search("device gpu: " + why, err) and not os.path.exists(out), err)
    text, _ = sluice(*args, "--device", "auto")
    check(re.search("^  GPU +not used: " + why, text, re.M), text)
    check("GPU" not in sluice(*args)[0], "the CPU alone")
    number = ["ttv", store, *vectors(folder, "60x80x20", [1, 2, 3])]
    text, err = sluice(*number, "--device", "auto")
    check(text == sluice(*number)[0] and re.search("GPU not used: " + why, err), text + err)
    for wrong, told in ((["--split", "queue"], "request the device 'gpu' (--split, --device)"), (["--split", "half", "--device", "gpu"], "half"),
                        (["--split", "static=2", "--device", "gpu"], "static=")):
        _, err = sluice(*args, *wrong, status=2)
        check(told in err, err)


def stopped(folder):
    """A product that is interrupted while lanes are busy leaves no files."""
    generate_store(folder, "200x300x400", 400000)
    args = ["ttv", "t.slc", *vectors(folder, "200x300x400", [1]), "out.slc", "-q", "--device", "gpu"]
    interrupted(args, folder, "out.slc.part")


run([
    ("the bytes of the CPU", exact),
    ("reals", reals),
    ("CPU and GPU together", split),
    ("short vectors, several vectors", several),
    ("memory", budgets),
    ("no device", without),
    ("interrupted", stopped),
])
