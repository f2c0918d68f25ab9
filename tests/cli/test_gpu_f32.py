#!/usr/bin/env python3
"""--precision f32: factors in f32 and sums in f64, on the CPU and on an emulated device, and their
records."""

import array
import json
import math
import os
import struct
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, QUICK, bundled, check, emulated, load_json, npy, run, sluice  # noqa: E402

RANK = 16
# Number of nonzeros of each: an emulated device computes about a million per second. SparTen's is
# text.
TENSORS = {"splatt-small": 6, "splatt-small4": 8, "parti-3d_dense": 48, "sparten-poisson-10": 892,
           "genten-aminoacid_data": 61_282, "tkg-icews14": 90_730, "splatt-med4": 100_000, "kg-fb15k-237": 310_116,
           "uber-part": 353_031, "wordnet30-srs": 364_552, "gitlog-petsc-5d": 399_126, "cmudict-wpp": 860_134,
           "flights-4d": 2_607_931}
LARGEST = max(TENSORS.values()) if FULL else 1_000 if QUICK else 100_000
FAR = 1e-6  # a relative difference in norm that exceeds the error of any f32 result


def numbers(path):
    """Returns the numbers of an .npy file of f32 or f64."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    found = array.array("f" if b"'<f4'" in data[:begin] else "d")
    found.frombytes(data[begin:])
    return found


def apart(found, wanted):
    """Returns the relative difference of two arrays, in norm."""
    norm = math.sqrt(math.fsum(b * b for b in wanted))
    return math.sqrt(math.fsum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))) / norm


def as_close_as_the_cpu(name):
    def test(folder):
        store, start = os.path.join(folder, "t.slc"), os.path.join(folder, "start")
        text = bundled(name, ".sptensor.txt" if name.startswith("sparten") else ".tns.xz")
        sluice("convert", text, store, "-q")
        # The starting factors are exact in f32, so only products, sums and the output are rounded.
        sluice("cpd", store, "-r", RANK, "-i", 0, "--precision", "f32", "-o", start, "-q")
        for mode in range(1, 1 + len(json.loads(sluice("info", store, "--json")[0])["dims"])):
            outputs = []
            for command, precision, device in ((sluice, "f64", "cpu"), (sluice, "f32", "cpu"), (emulated, "f32", "gpu")):
                out = os.path.join(folder, f"{device}-{precision}.npy")
                command("mttkrp", store, "--mode", mode, "--factors", start, "--precision", precision, "--device", device,
                        "-o", out, "-q")
                outputs.append(numbers(out))
            cpu, gpu = (apart(each, outputs[0]) for each in outputs[1:])
            print(f"# {name}, mode {mode}: f32 differs from f64 by {cpu:.2e} on the CPU, {gpu:.2e} on the device")
            check(outputs[1].typecode == outputs[2].typecode == "f", "not f32")
            check(gpu <= 2 * cpu, f"mode {mode}: {gpu:.2e} on the device, {cpu:.2e} on the CPU")
            check(0 < cpu < FAR, f"mode {mode}: {cpu:.2e} on the CPU")
    return test


def recorded(folder):
    """The plan and records name the types of factors and of sums."""
    store, matrix = os.path.join(folder, "t.slc"), os.path.join(folder, "u.npy")
    sluice("generate", store, "--dims", "20x30x40", "--nnz", 2000, "-q", "-f")
    npy(matrix, [1.0] * 60, 30, 2)
    for command, device in ((sluice, "cpu"), (emulated, "gpu")):
        for precision, line in (("f64", r"f64"), ("f32", r"f32, sums in f64")):
            out = os.path.join(folder, device + precision)
            options = ["--precision", precision, "--device", device]
            told = command("cpd", store, "-r", 3, "-i", 1, *options, "-o", out)
            record = load_json(os.path.join(out, "run.json"))
            text = told if command is emulated else "".join(told)
            lines = [each for each in text.splitlines() if each.startswith("  device ")]
            check(len(lines) == 1 and f", {line}" in lines[0] and ("sums" in lines[0]) == (precision == "f32"), text)
            check(record["plan"]["precision"] == precision and record["plan"]["sums"] == "f64", str(record["plan"]))
            told = command("plan", "--no-probe", store, "-r", 3, *options, "--json")
            plan = json.loads(told if command is emulated else told[0])
            check(plan["precision"] == precision and plan["sums"] == "f64", str(plan))
            told = command("ttm", store, "--mode", 2, "--matrix", matrix, out + ".ttm", *options, "--json", "-q")
            product = json.loads(told if command is emulated else told[0])
            check(product["precision"] == precision and product["sums"] == "f64", str(product))


def small_values(folder):
    """For values near 1e-25, an emulated device and the CPU find the fit of values near 1."""
    fits = []
    for power in (0, -25):
        text, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")
        with open(text, "w") as file:
            for k in range(400):
                at = k * 997 % 1000
                file.write(f"{at // 100 + 1} {at // 10 % 10 + 1} {at % 10 + 1} {(1 + k % 7) * 10.0 ** power!r}\n")
        sluice("convert", "-f", "-q", text, store)
        for command, device in ((sluice, "cpu"), (emulated, "gpu")):
            for more in ((), ("--deterministic",)):
                out = os.path.join(folder, f"{device}{power}{len(more)}")
                command("cpd", store, "-r", 3, "-i", 10, "--tol", 0, "--precision", "f32", "--device", device, "-o", out,
                        "-q", *more)
                fits.append(load_json(os.path.join(out, "run.json"))["fit"])
    check(0 < fits[0] < 1 and max(fits) - min(fits) < 1e-5 * fits[0], str(fits))


run([("records", recorded), ("values near 1e-25", small_values)] +
    [(f"as close as the CPU: {name}", as_close_as_the_cpu(name)) for name, nnz in TENSORS.items() if nnz <= LARGEST])
