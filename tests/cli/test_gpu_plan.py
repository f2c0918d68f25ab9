#!/usr/bin/env python3
"""plan and dry runs for an absent GPU: by memory size or by the name of its chip."""

import json
import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import check, emulated, generate_store, run, sluice  # noqa: E402

NONE_HERE = r"(this sluice was built without CUDA|no CUDA device can be used: [^\n]*)"
NO_TIMES = "no device: copy and kernel times not estimated"
KNOWN = "a100, a100-80gb, h100, h200, b200, l40s"


def made(folder):
    return generate_store(folder, "2000x300x400", 500000, "--block-bytes", "16KiB")


def plan(store, *args, command=sluice):
    """Returns the plan as JSON, with or without a device."""
    done = command("plan", "--no-probe", store, "-r", 8, *args, "--json")
    return json.loads(done[0] if isinstance(done, tuple) else done[:done.rindex("}") + 1])


def by_memory(folder):
    """Without a GPU and a name, the plan is for a documented chip with the given memory and states
    the driver's reason."""
    store = made(folder)
    out, err = sluice("plan", store, "-r", 8, "--device", "gpu", "--device-memory", "80GB")
    check(re.search(r"^  device +h100 \(described\), 4 streams, f64; ", out, re.M), out)
    check("described, not opened: 132 multiprocessors, 227 KiB of shared memory per block, 80.0 GB\n" in out, out)
    check(re.search(rf"no GPU is usable here \({NONE_HERE}\); --device-name selects another chip\n", out), out)
    check("of 74.5 GiB on the device (minimum: " in out, out)
    check("host memory of the GPU driver is not counted" in out, out)
    blocks = re.search(r"in (\d+) blocks\n", out).group(1)
    check(re.search(rf"^    residents +\S+ \S+  {blocks} blocks that stay on the device, copied once: \S+ [kM]B\n", out, re.M), out)
    check(re.search(r"^    copied +0 B  per pass, 0 B per iteration, through 4 slots of \S+ [KM]iB\n", out, re.M), out)
    check(re.search(r"^    devices +\S+ [KM]iB  block descriptors", out, re.M), out)
    check(re.search(r"minimum device memory \S+ \S+ \(ttv\), \S+ \S+ \(ttm\)", out), out)
    check(NO_TIMES in err, err)
    # The plan reports no rate or time, because those of the CPU do not apply to the GPU.
    check(not re.search(r"estimate|per second|bottleneck", out), out)
    told = plan(store, "--device", "gpu", "--device-memory", "80GB")
    device = told["device"]
    check(device["described"] is True and device["name"] == "h100" and told["estimate"] is None, str(told))
    check(device["multiprocessors"] == 132 and device["shared_bytes"] == 227 << 10, str(device))
    check(device["memory_bytes"] == 80 * 10**9 and device["budget_bytes"] == 80 * 10**9, str(device))
    check(device["resident_blocks"] == int(blocks) and device["iteration_copied_bytes"] == 0, str(device))
    check(device["pass_copied_bytes"] == [0, 0, 0] and device["slot_bytes"] > 0 and told["device_bytes"] > 0, str(told))
    check(device["total_bytes"] == device["factor_bytes"] + device["slots_bytes"] + device["resident_bytes"], str(device))
    # Too small for all blocks: some are copied in every pass.
    small = plan(store, "--device", "gpu", "--device-memory", f"{device['minimum_bytes'] + (400 << 10)}")["device"]
    check(0 < small["pass_copied_bytes"][0] and len(set(small["pass_copied_bytes"])) == 1, str(small))
    check(small["iteration_copied_bytes"] == sum(small["pass_copied_bytes"]), str(small))
    one = plan(store, "--device", "gpu", "--device-memory", "80GB", "--mode", 2)["device"]
    check(one["iteration_copied_bytes"] == one["pass_copied_bytes"][0] > 0 and one["resident_blocks"] == 0, str(one))


def by_name(folder):
    store = made(folder)
    text = " ".join(sluice("plan", "--help")[0].split())
    check("a GPU that is not in this machine: " + KNOWN.replace(", l40s", " or l40s") in text, text)
    for name, count, gb in (("a100", 108, 40), ("h200", 132, 141), ("l40s", 142, 48)):
        out, _ = sluice("plan", store, "-r", 8, "--device", "gpu", "--device-name", name, "--no-probe")
        check(f"  device       {name} (described), " in out and "is usable here" not in out, out)
        device = plan(store, "--device", "gpu", "--device-name", name)["device"]
        check(device["multiprocessors"] == count and device["budget_bytes"] == gb * 9 * 10**8, str(device))
    _, err = sluice("plan", store, "-r", 8, "--device", "gpu", "--device-name", "k80", status=2)
    check("k80" in err and KNOWN in err, err)
    _, err = sluice("plan", store, "-r", 8, "--device", "gpu", "--device-memory", "100GiB", status=2)
    check("102400 MiB of device memory requested, but h100 has 80 GB: request less, or name another chip" in err, err)
    plan(store, "--device", "gpu", "--device-memory", "100GiB", "--device-name", "h200")
    # Several devices: each has the memory, or a part of it if one is named more than once.
    for devices, part in (("0,1", 1), ("0,0", 2)):
        told = plan(store, "--device", "gpu", "--device-memory", "1GiB", "--devices", devices, "--split", "nnz")
        check(told["device"]["budget_bytes"] == (1 << 30) // part and told["device"]["described"], str(told["device"]))


def as_on_a_device(folder):
    """The plan for a description equals the plan for an existing device, and the bytes that it then
    copies."""
    store = made(folder)
    unlike = ("name", "described", "multiprocessors", "shared_bytes", "memory_bytes")
    for more in ([], ["--streams", 2], ["--precision", "f32"], ["--deterministic"], ["--split", "static=0.5"], ["--mode", 1],
                 ["--no-cache"], ["--devices", "0,0", "--split", "nnz"]):
        least = plan(store, "--device", "gpu", "--device-memory", "1GB", *more)["device"]["minimum_bytes"]
        options = ["--device", "gpu", "--device-memory", (least + (400 << 10)) * (2 if "0,0" in more else 1), *more]
        there, here = plan(store, *options, command=emulated), plan(store, *options)
        check(there["device"]["described"] is False and here["device"]["described"] is True, str(there["device"]))
        for told in (there, here):
            told["device"] = {key: value for key, value in told["device"].items() if key not in unlike}
            told["products"] = [(of["ttv_device_bytes"], of["ttm_device_bytes"]) for of in told["products"]]
        for key in ("device", "device_bytes", "minimum_bytes", "factor_bytes", "products"):
            got, want = here[key], there[key]
            if key == "minimum_bytes":  # it includes the process, which is another program
                got, want = got - here["process_bytes"], want - there["process_bytes"]
            check(got == want, f"{more}: {key} is {here[key]}, with a device {there[key]}")
    # An existing GPU is used, unless a chip is named.
    check(plan(store, "--device", "gpu", "--device-name", "b200", command=emulated)["device"]["name"] == "b200", "a name")
    memory = plan(store, "--device", "gpu", "--device-memory", "1GB")["device"]["minimum_bytes"] + (400 << 10)
    planned = plan(store, "--device", "gpu", "--device-memory", memory)["device"]
    check(0 < planned["iteration_copied_bytes"] and 0 < planned["resident_blocks"], str(planned))
    copied = []
    for iterations in (1, 3):
        out = os.path.join(folder, f"out{iterations}")
        emulated("cpd", store, "-r", 8, "-i", iterations, "--tol", 0, "--device", "gpu", "--device-memory", memory, "-o", out)
        with open(os.path.join(out, "run.json"), encoding="utf-8") as file:
            copied.append(json.load(file)["device"]["block_bytes"])
    # A plan counts whole pages of the file; copies end with the block.
    more = 2 * planned["iteration_copied_bytes"] - (copied[1] - copied[0])
    blocks = int(re.search(r"in (\d+) blocks\n", sluice("info", store)[0]).group(1)) - planned["resident_blocks"]
    check(0 <= more < 2 * 3 * blocks * 4096, f"{copied} and {planned}")


def refused(folder):
    store = made(folder)
    out, err = sluice("plan", store, "-r", 8, "--device", "gpu", "--device-memory", "64KiB", status=4)
    least = re.search(r"on h100 needs (\d+) MiB of device memory or more", err)
    check(least, out + err)
    sluice("plan", store, "-r", 8, "--device", "gpu", "--device-memory", least.group(1) + "MiB", "--no-probe")
    told = sluice("plan", store, "-r", 8, "--device", "gpu", "--device-memory", "64KiB", "--json", status=4)[0]
    check(json.loads(told)["feasible"] is False, told)
    _, err = sluice("plan", store, "-r", 8, "--device", "gpu", "--device-memory", "80GB", "--memory", "1MiB", status=4)
    check(re.search(r"needs \d+ MiB of memory or more", err), err)
    # Errors: options that do not suffice for a plan, no GPU requested, or a chip named for a run
    # that computes.
    _, err = sluice("plan", store, "-r", 8, "--device", "gpu", status=1)
    check(re.search(rf"device gpu: {NONE_HERE}; to plan for a GPU that this machine lacks, ", err), err)
    for device in ([], ["--device", "auto"], ["--device", "cpu"]):
        _, err = sluice("plan", store, "-r", 8, "--device-name", "h100", *device, status=2)
        check("a device name describes a GPU to plan for: request the device 'gpu' or omit the name (--device-name, --device)" in err, err)
    out, _ = sluice("plan", store, "-r", 8, "--device", "auto", "--device-memory", "80GB", "--no-probe")
    check("  device       CPU" in out and re.search(rf"^  GPU +not used: {NONE_HERE}", out, re.M), out)
    start = os.path.join(folder, "start")
    sluice("cpd", store, "-r", 8, "-i", 0, "-o", start, "-q")
    multiply = ["mttkrp", store, "--mode", 1, "--factors", start, "-o", os.path.join(folder, "m.npy")]
    for command in (["cpd", store, "-r", 8, "--nowrite"], multiply):
        _, err = sluice(*command, "--device", "gpu", "--device-memory", "80GB", status=1)
        check(re.search(rf"device gpu: {NONE_HERE} \(--device\)$", err.strip()), err)
        _, err = sluice(*command, "--device", "gpu", "--device-name", "h100", status=2)
        check("which cannot compute" in err, err)
        out, err = sluice(*command, "--device", "gpu", "--device-name", "a100", "--dry-run")
        check("  device       a100 (described), " in out and NO_TIMES in err and "estimate" not in out, out + err)
        out, err = sluice(*command, "--device", "gpu", "--device-memory", "1GB", "--dry-run")
        check("  device       h100 (described), " in out and "is usable here" in out, out + err)
    check(not os.path.exists(os.path.join(folder, "m.npy")), "a dry run wrote")


run([
    ("a plan by the memory of a GPU", by_memory),
    ("a plan by the name of a chip", by_name),
    ("the plan of a GPU that is there", as_on_a_device),
    ("impossible plans and runs", refused),
])
