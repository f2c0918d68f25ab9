#!/usr/bin/env python3
"""cpd and mttkrp on several devices: the same bytes for any number, reports, error messages."""

import json
import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import check, generate_store, read_bytes, run, run_command, sluice  # noqa: E402


def made(folder, sorted_by="all"):
    store = generate_store(folder, "900x3x70", 60000, "--block-bytes", "64KiB")
    sluice("layout", store, "--sorted", sorted_by, "-q")
    return store


def try_to(*arguments):
    return run_command(list(map(str, arguments)), 300)


def factors(folder):
    return [read_bytes(os.path.join(folder, name)) for name in ("mode-1.npy", "mode-2.npy", "mode-3.npy", "lambda.npy")]


def same_bytes(folder):
    store = made(folder)
    one = os.path.join(folder, "one")
    sluice("cpd", store, "-r", 5, "-i", 3, "--tol", 0, "--deterministic", "-o", one, "-q")
    for devices, threads in ((1, 1), (2, 1), (4, 2), (64, 1)):
        out = os.path.join(folder, f"on{devices}")
        text = try_to("cpd", store, "-r", 5, "-i", 3, "--tol", 0, "--deterministic", "--devices", devices,
                      "-t", threads, "-o", out, "-v").stdout
        check(factors(out) == factors(one), f"{devices} devices give other factors")
        check(re.search(rf"^Devices \({devices} with {threads} thread", text, re.M), text)
        check(re.search(r"; (1 device|[2-9]\d* devices) of (1 thread|[2-9] threads)$", text, re.M), text)
        check(re.search(r"imbalance: largest over mean \d+\.\d{3} for nonzeros", text), text)
        with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
            record = json.load(file)
        told = record["devices"]
        check(len(told["each"]) == devices and told["split"] == "partitions", str(told))
        check(sum(each["nnz"] for each in told["each"]) == 9 * record["tensor"]["nnz"], str(told))
        check(record["plan"]["device_count"] == devices and told["imbalance_nnz"] >= 1, str(told))
    with open(os.path.join(one, "run.json"), encoding="utf-8") as file:
        check(json.load(file)["devices"] is None, "devices where there are none")


def equal_shares(folder):
    store = made(folder)
    out = os.path.join(folder, "shares")
    text = try_to("cpd", store, "-r", 4, "-i", 3, "--devices", 3, "-t", 1, "--split", "nnz", "-o", out, "-v").stdout
    check("equal parts of the nonzeros" in text and "reduce" in text, text)


def one_mttkrp(folder):
    store = made(folder)
    start, one = os.path.join(folder, "start"), os.path.join(folder, "one.npy")
    sluice("cpd", store, "-r", 4, "-i", 1, "-o", start, "-q")
    sluice("mttkrp", store, "--mode", 1, "--factors", start, "-o", one, "--layouts", "sorted", "-q")
    for split in ("partitions", "nnz"):
        out = os.path.join(folder, split + ".npy")
        text = try_to("mttkrp", store, "--mode", 1, "--factors", start, "-o", out, "--devices", 3, "-t", 1,
                      "--split", split).stdout
        check("Devices (3 with 1 thread each" in text, text)
        check(split == "nnz" or read_bytes(out) == read_bytes(one), "other bytes on devices")


def plans(folder):
    store = made(folder)
    plan = json.loads(try_to("plan", "--no-probe", store, "-r", 8, "--devices", 4, "-t", 1, "--json").stdout)
    one = json.loads(try_to("plan", "--no-probe", store, "-r", 8, "--layouts", "sorted", "-t", 1, "--json").stdout)
    check(plan["factor_bytes"] == 4 * one["factor_bytes"] and plan["threads"] == 4, str(plan))
    check(plan["fused"]["reason"] == "devices" and one["fused"]["reason"] != "devices", str(plan))
    text = try_to("plan", "--no-probe", store, "-r", 8, "--devices", 1, "-t", 1).stdout
    check("fused        no: with --devices each pass updates one mode" in text, text)
    check("partitions on 1 device, " in text and "1 partition on" not in text, text)
    check(len(plan["devices"]) == 3 and plan["device_bytes"] > 0 and one["device_bytes"] == 0, str(plan))


def refused(folder):
    store = made(folder, "1,3")
    for arguments, part in ((["--devices", "2"], "no layout sorted by mode 2: build it"),
                            (["--devices", "65"], "64"),
                            (["--devices", "2", "--split", "nnz", "--passes", "fused"], "name no devices, or request passes 'plain'"),
                            (["--devices", "2", "--layouts", "blco"], "the layouts 'sorted' (--split, --layouts)"),
                            (["--devices", "2", "--split", "nnz", "--layouts", "sorted"], "the layouts 'blco' (--split, --layouts)"),
                            (["--devices", "2", "--split", "nnz", "--deterministic"], "use the split 'partitions', or"),
                            (["--devices", "2", "--split", "nnz", "--copies", "always"], "a single device"),
                            (["--devices", "2", "--split", "rows"], "partitions")):
        told = try_to("cpd", store, "-r", 2, "--nowrite", *arguments)
        check(told.returncode == 2 and part in told.stderr, f"{arguments}: {told.returncode}, {told.stderr}")


run([
    ("the same bytes on any number of devices", same_bytes),
    ("equal shares of nonzeros", equal_shares),
    ("one MTTKRP", one_mttkrp),
    ("plans count every device", plans),
    ("impossible requests are rejected", refused),
])
