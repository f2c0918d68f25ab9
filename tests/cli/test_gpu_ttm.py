#!/usr/bin/env python3
"""ttm --device: on an emulated device, together with the CPU, and without a device."""

import ast
import json
import os
import re
import shutil
import struct
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, check, emulated, generate_store, interrupted, npy, run, sluice  # noqa: E402


def matrix(folder, rows, cols, reals=False):
    """Writes a file of small integers, or of non-integers, and returns its path."""
    path = os.path.join(folder, "u.npy")
    numbers = [(i * 7) % 11 - 5 if not reals else 0.1 + 1 / (1 + (i * 13) % 101) for i in range(rows * cols)]
    npy(path, numbers, rows, cols)
    return path


def product(folder, store, dims, mode, cols, reals=False):
    """Returns the command line of a product, without the folder of the result."""
    return ["ttm", store, "--mode", mode, "--matrix", matrix(folder, int(dims.split("x")[mode - 1]), cols, reals)]


def contents(out):
    result = []
    for name in ("coords.npy", "rows.npy"):
        with open(os.path.join(out, name), "rb") as file:
            result.append(file.read())
    shutil.rmtree(out)
    return result


def array(data):
    """Returns the numbers of an .npy file."""
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:begin].decode())
    size, kind = int(header["descr"][2:]), {"<f8": "d", "<f4": "f", "<i8": "q"}[header["descr"]]
    return struct.unpack(f"<{(len(data) - begin) // size}{kind}", data[begin:])


# Small integers with exact sums: dims, nonzeros, options of the store, whether it has a layout,
# mode, columns.
EXACT = [
    ("200x300x40", 70000, ["--fibers", "2"], False, 2, 5),
    ("60x80x20", 6000, ["--fibers", "none", "--codec", "lz4"], True, 1, 33),
    ("60x80x20", 6000, ["--fibers", "3", "--codec", "blco"], False, 3, 1),
    ("3000x200x40", 40000, ["--dist", "zipf-shuffled:1.0", "--relabel", "frequency"], True, 2, 3),
    ("60x1x50x40", 6000, [], False, 4, 7),
    ("9x8x7x6x5", 6000, [], False, 5, 16),
    ("9000000000x90x7", 3000, [], True, 2, 4),
    ("5x4x3", 0, [], False, 2, 2),
    ("5x4x3", 1, [], False, 2, 2),
    ("7", 5, [], False, 1, 3),
]


def exact(folder):
    """The bytes of a result equal the CPU's."""
    for dims, nnz, options, layout, mode, cols in EXACT[::2] if QUICK else EXACT:
        store = generate_store(folder, dims, nnz, *options)
        if layout:
            sluice("layout", store, "--fiber", mode, "-q")
        for precision in ("f64", "f32") if cols > 16 else ("f64",):
            results = []
            for command in (sluice, emulated):
                out = os.path.join(folder, "out")
                command(*product(folder, store, dims, mode, cols), out, "--precision", precision, "-q",
                        *(["--device", "gpu", "--streams", 2] if command is emulated else []))
                results.append(contents(out))
            check(results[0] == results[1], f"{dims}, {options}, mode {mode}, {precision}: the results differ")


def reals(folder):
    """The coordinates equal the CPU's, the rows nearly, and all bytes are the same for any number
    of lanes and threads."""
    dims, same, out = "200x300x40", [], os.path.join(folder, "out")
    store = generate_store(folder, dims, 140000, "--rank", 2, "--noise", 0.1)
    args = product(folder, store, dims, 2, 4, True)
    sluice(*args, out, "-q")
    cpu = contents(out)
    for streams, threads, split in ((1, 1, []), (5, 2, []), (2, 1, ["--split", "static=0.5"]),
                                    (1, 2, ["--split", "static=0.5"])):
        emulated(*args, out, "--device", "gpu", "--streams", streams, "-t", threads, *split, "-q")
        same.append(contents(out))
        check(same[-1][0] == cpu[0] and len(array(cpu[0])) > 10000, "other fibers")
        for a, b in zip(array(cpu[1]), array(same[-1][1]), strict=True):
            check(abs(a - b) <= 1e-12 * max(1, abs(a)), f"{a} and {b}")
    check(same[0] == same[1], "lanes change the bytes")
    check(same[2] == same[3], "lanes and threads change the bytes of a static share")


def split(folder):
    """With the tiles divided between CPU and device, the result has the CPU's bytes; the work of
    each is reported."""
    nnz, dims, out = 200000 if QUICK else 400000, "200x300x400", os.path.join(folder, "out")
    store = generate_store(folder, dims, nnz, "--fibers", 1)
    args = product(folder, store, dims, 1, 3)
    sluice(*args, out, "-q")
    cpu = contents(out)
    for how in ("static=0.5", "static=0", "static=1", "queue", "adaptive"):
        told = json.loads(emulated(*args, out, "--device", "gpu", "--split", how, "--streams", 1, "-t", 2, "--json"))
        device = told["device"]
        gpu, host = device["gpu"], device["cpu"]
        check(contents(out) == cpu, f"{how}: other bytes")
        check(device["split"] == how and device["lanes"] == 1 and told["threads"] == 3, str(told))
        check(gpu["nnz"] + host["nnz"] == nnz, str(device))
        if how.startswith("static"):
            tiles = gpu["tiles"] + host["tiles"]
            check(gpu["tiles"] == int(float(how[7:]) * tiles) and device["fraction"] == float(how[7:]), str(device))
        elif how == "queue":
            check(device["fraction"] is None, str(device))
    text = emulated(*args, out, "--device", "gpu", "--split", "queue")
    check(re.search(r"^  device +\S.*\(cuda\), \d+ lanes?, .*; split queue with ", text, re.M), text)
    check(re.search(r"^  shares +GPU \d+ tiles?, .* nonzeros \([\d.]+ %\), .*; CPU \d+ tile", text, re.M), text)


def budgets(folder):
    """Dry runs, too small budgets, and the choice of auto."""
    dims, out = "60x80x20", os.path.join(folder, "out")
    store = generate_store(folder, dims, 6000, "--fibers", 2)
    args = [*product(folder, store, dims, 2, 50), out]
    text = emulated(*args, "--device", "gpu", "--device-memory", "64KiB", status=4)
    needs = re.search(r"needs? (\d+) MiB of device memory or more", text)
    check(needs, text)
    told = json.loads(emulated(*args, "--device", "gpu", "--device-memory", needs.group(1) + "MiB", "--dry-run", "--json"))
    device = told["device"]
    check(device["memory_least_bytes"] <= device["memory_bytes"] <= device["memory_budget_bytes"], str(device))
    check("gpu" not in device and not os.path.exists(out), str(device))
    plan = json.loads(emulated("plan", "--no-probe", store, "-r", 50, "--device", "gpu", "--json"))["products"][1]
    check(plan["ttm_device_bytes"] == device["memory_least_bytes"] > plan["ttv_device_bytes"] > 0, str(plan))
    check("minimum device memory" in emulated("plan", "--no-probe", store, "-r", 50, "--device", "gpu"), "the plan's text")
    emulated(*args, "--device", "gpu", "--device-memory", needs.group(1) + "MiB", "--memory",
             (told["memory_least_bytes"] >> 20) + 8 << 20)
    text = emulated(*args, "--device", "gpu", "--memory", "4MiB", status=4)
    check("--memory" in text or "budget" in text, text)
    text = emulated(*args, "--device", "auto", "--dry-run", "--split", "static=0.25", "-t", 3)
    check("(minimum: " in text and "split static=0.25 with 3 threads" in text, text)
    for more in (["--dry-run"], []):
        text = emulated(*args, "--device", "auto", "--device-memory", "64KiB", *more)
        check(re.search(r"^  GPU +not used: .*--device-memory", text, re.M), text)
    told = json.loads(emulated(*args, "--device", "auto", "--device-memory", "64KiB", "--json"))
    check(told["device"] is None and "--device-memory" in told["no_device"], str(told))


def instead(folder):
    """If the device fails to open, `auto` computes on the CPU and reports why, and `gpu` fails."""
    dims, out = "60x80x20", os.path.join(folder, "out")
    args = [*product(folder, generate_store(folder, dims, 6000, "--fibers", 2), dims, 2, 3), out]
    sluice(*args, "-q")
    cpu = contents(out)
    text = emulated(*args, "--device", "auto", "--split", "queue", fault="memory")
    check(re.search(r"^  GPU +not used: .*free in one piece", text, re.M) and "shares" not in text, text)
    check(contents(out) == cpu, "other bytes")
    check("free in one piece" in emulated(*args, "--device", "gpu", fault="memory", status=1), "gpu")
    check(not os.path.exists(out), "a folder is left")


def without(folder):
    """Runs on a machine without a device, like the other tests of the command."""
    dims, out = "60x80x20", os.path.join(folder, "out")
    args = [*product(folder, generate_store(folder, dims, 6000), dims, 2, 2), out]
    why = "(this sluice was built without CUDA|no CUDA device can be used)"
    _, err = sluice(*args, "--device", "gpu", status=1)
    check(re.search("device gpu: " + why, err) and not os.path.exists(out), err)
    text, _ = sluice(*args, "--device", "auto", "--split", "adaptive")
    check(re.search("^  GPU +not used: " + why, text, re.M), text)
    check("GPU" not in sluice(*args)[0], "the CPU alone")
    for wrong, told in ((["--split", "queue"], "request the device 'gpu' (--split, --device)"), (["--split", "half", "--device", "gpu"], "half"),
                        (["--split", "static=2", "--device", "gpu"], "static="),
                        (["--split", "partitions", "--device", "gpu"], "partitions")):
        _, err = sluice(*args, *wrong, status=2)
        check(told in err, err)


def stopped(folder):
    """A product that is interrupted while lanes are busy leaves no files."""
    dims = "200x300x400"
    store = generate_store(folder, dims, 400000, "--fibers", 1)
    args = [*product(folder, store, dims, 1, 20), "out", "-q", "--device", "gpu"]
    interrupted(args, folder, "out")


run([
    ("the bytes of the CPU", exact),
    ("reals", reals),
    ("CPU and GPU together", split),
    ("memory", budgets),
    ("a device that cannot be opened", instead),
    ("no device", without),
    ("interrupted", stopped),
])
