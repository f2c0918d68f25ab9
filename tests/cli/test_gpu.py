#!/usr/bin/env python3
"""cpd, mttkrp and plan with --device: on an emulated device, and without a device."""

import itertools
import json
import os
import re
import struct
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, Skip, bundled, check, emulated, generate_store, run, sluice  # noqa: E402


def made(folder):
    return generate_store(folder, "200x30x40", 8000, "--block-bytes", "4KiB")


def record(folder):
    with open(os.path.join(folder, "run.json"), encoding="utf-8") as file:
        return json.load(file)


def numbers(path):
    """Returns the numbers of an .npy file of f64."""
    with open(path, "rb") as file:
        data = file.read()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - begin) // 8}d", data[begin:])


def decompose(folder):
    store = made(folder)
    on_cpu, on_gpu = os.path.join(folder, "cpu"), os.path.join(folder, "gpu")
    options = ["cpd", store, "-r", 3, "-i", 3, "--tol", 0]
    sluice(*options, "--device", "cpu", "-o", on_cpu, "-q")
    text = emulated(*options, "--device", "gpu", "--streams", 3, "-o", on_gpu, "-v")
    cpu, gpu = record(on_cpu), record(on_gpu)
    check(abs(cpu["fit"] - gpu["fit"]) < 1e-9, f"fits {cpu['fit']} and {gpu['fit']}")
    check(cpu["device"] is None and cpu["plan"]["device"] is None, str(cpu["device"]))
    check([mode["chosen"] for mode in gpu["conflicts"]] == [None] * 3 and None not in
          [mode["chosen"] for mode in cpu["conflicts"]], f"{cpu['conflicts']} {gpu['conflicts']}")
    check(re.search(r"^  device +\S.*\(cuda\), 3 streams, f64; ", text, re.M), text)
    check(re.search(r"^Device \(", text, re.M) and re.search("block.* that stay", text), text)
    check("fused        no: on the device each pass updates one mode" in text, text)
    plan, told = gpu["plan"]["device"], gpu["device"]
    check(plan["name"] == told["name"] and plan["streams"] == 3, str(plan))
    check(plan["total_bytes"] == plan["factor_bytes"] + plan["slots_bytes"] + plan["resident_bytes"], str(plan))
    # All blocks are resident: copied in the first of nine passes.
    check(told["resident_bytes"] == 8 * told["block_bytes"], str(told))
    check(gpu["counters"]["bytes_resident"] == 8 * gpu["counters"]["bytes_read"], str(gpu["counters"]))
    check(told["launches"] >= 9 and told["factor_bytes_to_host"] > 0, str(told))


def bench(folder):
    """Every kernel over lists agrees with sluice's own, and ceilings are measured."""
    text = emulated("bench", "device", made(folder), "--rank", 5, "--precision", "all", "--kernel", "all", "-n", 1, "--warm-up",
                    0, "--largest", "256KiB", "--moved", "64KiB", "--streams", 2, "--json")
    told = json.loads(text)
    check(len(told["ceilings"]) == 8 and all(row["gb_per_s"] > 0 for row in told["ceilings"]), str(told["ceilings"]))
    check([row["peak"] for row in told["peaks"]] == ["fma-f64", "fma-f32"], str(told["peaks"]))
    check(all(row["gflop_per_s"] > 0 for row in told["peaks"]), str(told["peaks"]))
    check(len(told["rows"]) == 2 * 3 * 16, str(len(told["rows"])))
    for row in told["rows"]:
        check(row["median_ms"] > 0 and row.get("differs", 0) < 1e-12, str(row))
        check(row["dims"] == [200, 30, 40] and row["nnz"] == 8000, str(row))
        check("chosen" in row and row["build_ms"] > 0 and row["form_bytes_per_nnz"] >= 12 or row["kernel"] == "sluice", str(row))
    forms = {row["kernel"]: row.get("form", "").rstrip("-123") for row in told["rows"]}
    check({kernel: form for kernel, form in forms.items() if not kernel.startswith("blco")} ==
          {"sluice": "", "amped": "partitions", "genten-a": "list", "genten-b": "list", "genten-c": "permutation",
           "xplat-element": "slices", "xplat-row": "slices", "atomic-fiber": "fibers", "atomic-nonzero": "fibers"}, str(forms))
    check_summary(told)
    # Products from fibers: every kernel in three modes, a matrix of two widths; no cuSPARSE for an emulated device.
    told = json.loads(emulated("bench", "device", made(folder), "--operation", "products", "--rank", "1,5", "-n", 1, "--largest",
                               "4KiB", "--json"))
    names = [row["kernel"] for row in told["rows"] if "differs" in row]
    check(sorted(set(names)) == ["sptv", "sptv-all", "sptv-short", "ttm-fibers", "ttm-nonzeros", "ttm-xplat-element",
                                  "ttm-xplat-fiber"], str(names))
    check(len(names) == 3 * (3 + 2 * 4) and len(told["rows"]) == len(names) + 3 * 2, str(names))
    for row in told["rows"]:
        check(row["differs"] < 1e-14 and row["moved_bytes"] > 0 if "differs" in row else "cuSPARSE" in row["note"], str(row))
    # Too many empty fibers are not stored.
    store = os.path.join(folder, "hollow.slc")
    sluice("generate", store, "--dims", "90x3x200", "--nnz", 200, "-q", "-f")
    told = json.loads(emulated("bench", "device", store, "--operation", "ttv", "-n", 1, "--largest", "4KiB", "--json"))
    notes = [row["note"] for row in told["rows"] if row["kernel"] == "sptv-all" and "note" in row]
    check(len(notes) == 1 and "1.8e+04 fibers" in notes[0], str(told["rows"]))
    # One mode, read from the drive and copied in every pass.
    told = json.loads(emulated("bench", "device", made(folder), "--mode", 3, "--rank", 4, "--no-cache", "-n", 1, "--largest",
                               "4KiB", "--json"))
    check([row["mode"] for row in told["rows"]] == [3] and told["rows"][0]["read_bytes"] > 0, str(told["rows"]))
    check(told["ceilings"] == told["peaks"] == [], str(told["ceilings"]))
    # Resident blocks are transcoded, unless --encoded or the memory forbids it.
    for more, transcoded in (((), True), (("--encoded",), False), (("--no-cache",), False), (("--precision", "f32"), True)):
        told = json.loads(emulated("bench", "device", made(folder), "--mode", 2, "--rank", 16, *more, "-n", 2, "--warm-up", 2,
                                   "--kernel", "blco", "--largest", "4KiB", "--json"))
        check((told["rows"][0]["transcoded_bytes"] > 0) == transcoded, str(told["rows"]))
        check(told["rows"][1]["differs"] < (1e-5 if "f32" in more else 1e-12), str(told["rows"]))
    check("unknown kernel" in emulated("bench", "device", made(folder), "--kernel", "baselines", "--largest", "4KiB", status=2),
          "a kernel that there is not")


# Tensors of the short form, and all others.
REAL = (("splatt-small", "splatt-small4"),
        ("genten-aminoacid_data", "parti-3d_dense", "gitlog-petsc-5d", "wordnet30-srs", "cmudict-wpp", "uber-part",
         "tkg-icews14", "kg-fb15k-237", "splatt-med4", "flights-4d"))


def xplat(folder):
    """The listings of XPLAT agree with sluice (MTTKRP) and with the CPU (TTM) on real tensors and several ranks."""
    compared = 0
    for name in REAL[0] + (REAL[1] if FULL else ()):
        store = os.path.join(folder, name + ".slc")
        try:
            sluice("convert", bundled(name), store, "-q")
        except Skip:
            continue
        compared += 1
        order = len(json.loads(sluice("info", store, "--json")[0])["dims"])
        rows = []
        for rank, mode in itertools.product((1, 7, 16, 33), range(1, order + 1)):
            for more in (("--kernel", "xplat-element"), ("--kernel", "xplat-row"), ("--operation", "ttm")):
                rows += json.loads(emulated("bench", "device", store, "--rank", rank, "--mode", mode, "-n", 1, "--warm-up", 0,
                                            "--largest", "4KiB", "--json", *more))["rows"]
        differ = {(row["kernel"], row["rank"], row["mode"]): row["differs"] for row in rows if "xplat" in row["kernel"]}
        check(set(differ) == {(kernel, rank, mode + 1) for kernel in ("xplat-element", "xplat-row", "ttm-xplat-element",
                              "ttm-xplat-fiber") for rank in (1, 7, 16, 33) for mode in range(order)}, f"{name}: {differ}")
        check(max(differ.values()) < 1e-12, f"{name}: {differ}")
    check(compared > 0, "no tensor is there")


def check_summary(told):
    """Sums over modes equal those of the rows; ceilings and ratios are present."""
    groups = {}
    for row in told["rows"]:
        groups.setdefault((row["precision"], row["kernel"]), []).append(row)
    summary = {(row["precision"], row["kernel"]): row for row in told["summary"]}
    check(list(summary) == list(groups) and len(told["summary_means"]) == len(groups), str(list(summary)))
    for key, rows in groups.items():
        row, medians = summary[key], [row["median_ms"] for row in rows]
        own = sum(row["median_ms"] for row in groups[key[0], "sluice"])
        check(row["modes"] == 3 and abs(row["all_modes_ms"] / sum(medians) - 1) < 1e-6, str(row))
        check(abs(row["ratio"] / (sum(medians) / own) - 1) < 1e-6, str(row))
        check(abs(row["slowest_over_fastest"] / (max(medians) / min(medians)) - 1) < 1e-6, str(row))
        check(row["ceiling_gb_per_s"] > 0, str(row))
        if key[1] == "sluice":
            check(row["form_bytes_per_nnz"] > 0 and 0 < row["ceiling_share"] == told["summary_means"][list(groups).index(key)]
                  ["ceiling_share"], str(row))


def bench_logical(folder):
    """One device named twice: each nonzero is computed by one of them; only sorted layouts have
    partitions."""
    store = made(folder)
    options = ["--rank", 4, "--logical", "1,2", "-n", 1, "--largest", "4KiB", "--no-cache", "--json"]
    told = json.loads(emulated("bench", "device", store, *options))
    rows = [row for row in told["rows"] if "devices" in row]
    check([(row["split"], row["devices"], row["mode"]) for row in rows] ==
          [("nnz", d, n) for d in (1, 2) for n in (1, 2, 3)], str(rows))
    for row in rows:
        check(len(row["device_ms"]) == row["devices"] and abs(max(row["device_ms"]) - row["median_ms"]) < 1e-6, str(row))
        check(row["copied_bytes"] > 0, str(row))
    several = [row for row in told["summary"] if "devices" in row]
    check([(row["split"], row["devices"]) for row in several] == [("nnz", 1), ("nnz", 2)], str(several))
    check(several[0]["device_spread"] == 0 and 0 <= several[1]["device_spread"] <= 1, str(several))
    for row in told["summary"]:
        check(0 < row["overall_share"] < 1 and row["overall_gnnz_per_s"] > 0, str(row))
        check("devices" in row or 0 <= row["overlap_share"] <= 1, str(row))
        check(row["ceiling_gb_per_s"] is None and row["ceiling_share"] is None, str(row))
    sluice("layout", store, "--sorted", "all", "-q")
    text = emulated("bench", "device", store, *options[:-1], "--mode", 2)
    check(re.search(r"sluice +partitions +2 ", text) and re.search(r"sluice +nnz +2 ", text), text)
    # The least memory for one device is too little for two devices: rows without figures have a
    # note.
    least = least_memory(store)
    rows = json.loads(emulated("bench", "device", store, *options, "--device-memory", least, "--mode", 2))["rows"]
    check([row.get("devices") for row in rows] == [None, 1, 1, 2, 2] and rows[0]["median_ms"] > 0, str(rows))
    check([row["split"] for row in rows[1:]] == ["partitions", "nnz"] * 2, str(rows))
    check(all("median_ms" not in row and "MiB of device memory or more" in row["note"] for row in rows[3:]), str(rows[3:]))


def least_memory(store):
    """MiB of --device-memory that MTTKRPs of rank 4 need on one device."""
    text = emulated("bench", "device", store, "--rank", 4, "--largest", "4KiB", "--device-memory", "1KiB", status=4)
    return re.search(r"needs? (\d+) MiB of device memory or more", text).group(1) + "MiB"


def roofline(folder):
    """Points of a device under its roofs, with bounds and as a picture; options for the CPU are
    rejected."""
    store, svg = made(folder), os.path.join(folder, "roofs.svg")
    options = ["bench", "roofline", store, "--rank", "1,4", "-n", 1, "--warm-up", 0, "--memory-set", "1MiB"]
    told = json.loads(emulated(*options, "--device", "gpu", "--bounds", "--temp-dir", folder, "--svg", svg, "--json"))
    check(told["instruction_set"] == "cuda" and told["device"]["name"], str(told["device"]))
    check([level["level"] for level in told["levels"]] == ["L2", "memory", "random rows"], str(told["levels"]))
    check(all(level["gb_per_s"] > 0 and level["f64_ridge_flop_per_byte"] > 0 for level in told["levels"]), str(told["levels"]))
    check([(peak["precision"], peak["threads"]) for peak in told["peaks"]] == [("f64", None), ("f32", None)], str(told["peaks"]))
    wanted = [(kernel, rank, mode) for kernel in ("mttkrp", "sptv", "ttm-fibers", "ttm-nonzeros")
              for rank in ((1,) if kernel == "sptv" else (1, 4)) for mode in (1, 2, 3)]
    rows = {(row["kernel"], row["rank"], row["mode"]): row for row in told["rows"]}
    check(list(rows) == wanted, str(list(rows)))
    check(len(told["bounds"]) == 2 * len(wanted) and told["left_out"] == [], str(len(told["bounds"])))
    levels = {level["level"]: level["gb_per_s"] for level in told["levels"]}
    peak = told["peaks"][0]["gflop_per_s"]
    for (kernel, rank, mode), row in rows.items():
        check(row["flop"] == 8000 * rank * (3 if kernel == "mttkrp" else 2), str(row))
        check(abs(row["gflop_per_s"] * row["min_ms"] * 1e6 / row["flop"] - 1) < 1e-6, str(row))
        check(abs(row["roof_gflop_per_s"] / min(peak, row["flop_per_byte"] * levels[row["roof"]]) - 1) < 1e-6, str(row))
        check(row["position"] in ("above best", "below worst", "between"), str(row))
        length = [200, 30, 40][mode - 1]
        # A row of one f64 column counts 8 bytes, one of four 32.
        check(row["rows_bytes"] == (270 if kernel == "mttkrp" else length) * rank * 8, str(row))
    elements, fibers = rows["ttm-nonzeros", 4, 1], rows["ttm-fibers", 4, 1]
    check(elements["bytes"] == 8000 * (8 + 4 + 32 + 32 + 4), str(elements))
    check(fibers["bytes"] < elements["bytes"] and fibers["nnz_per_run"] > 1, str(fibers))
    with open(svg, encoding="utf-8") as file:
        picture = file.read()
    check(picture.count('class="marker"') == 3 * len(wanted), "another number of markers")
    check("random rows" in picture and told["device"]["name"] + ", f64" in picture, picture[:2000])
    text = emulated(*options, "--device", "gpu", "--kernel", "mttkrp", "--precision", "f32", "--device-memory", "32MiB")
    check(re.search(r"^  t +given +mttkrp +4 +3 ", text, re.M) and "ttm-" not in text, text)
    # TTM sums in f64 for both precisions.
    told = json.loads(emulated(*options, "--device", "gpu", "--kernel", "ttm-nonzeros", "--precision", "f32", "--json"))
    rows = {row["rank"]: row for row in told["rows"] if row["mode"] == 1}
    check(rows[4]["bytes"] == 8000 * (4 + 4 + 16 + 32 + 4), str(rows[4]))
    for part, more in (("--isa applies to the CPU only", ["--device", "gpu", "--isa", "portable"]),
                       ("unknown kernel", ["--device", "gpu", "--kernel", "ttm-fiber"]),
                       ("add --device gpu", ["--device-memory", "1MiB"])):
        text = emulated(*options, *more, status=2)
        check(part in text, text)
    _, err = sluice(*options, "--device", "gpu", status=1)
    check(re.search(r"--device gpu: (this sluice was built without CUDA|no CUDA device can be used)", err), err)


def bench_cpd(folder):
    """Iterations on a device are timed by its clock: phases add up; dense algebra is update and
    fit."""
    store = made(folder)
    options = ["bench", "cpd", store, "-r", 3, "-n", 1]
    # Blocks are resident unless caching is off or the CPU processes some of them, different ones in
    # each pass.
    for more, copied in (([], False), (["--no-cache", "--streams", 2, "-t", 1], True),
                         (["--devices", "0,0", "--split", "nnz"], False), (["--split", "static=0.5"], None)):
        told = json.loads(emulated(*options, "--device", "gpu", *more, "--json"))
        phases = {row["phase"]: row for row in told["rows"]}
        check(list(phases) == ["kernels", "block copies", "idle", "update", "fit", "other"], str(list(phases)))
        check(abs(sum(row["share"] for row in phases.values()) - 1) < 1e-6, str(phases))
        check(abs(sum(row["median_ms"] for row in phases.values()) - told["iteration_median_ms"]) < 1e-3, str(phases))
        check(phases["kernels"]["median_ms"] > 0 and phases["idle"]["median_ms"] > 0, str(phases))
        check(abs(told["dense_share"] - phases["update"]["share"] - phases["fit"]["share"]) < 1e-6, str(told["dense_share"]))
        check(abs(told["iterations_per_s"] * told["iteration_median_ms"] / 1e3 - 1) < 1e-6, str(told["iterations_per_s"]))
        several = "--devices" in more
        for name, row in phases.items():
            there = name in ("kernels", "update") and not several
            check((row["ceiling_ms"] is not None) == there, f"{more}: {row}")
        check(copied in (None, told["copied_bytes_per_iteration"] > 0), f"{more}: {told['copied_bytes_per_iteration']}")
        check(told["device"]["streams"] > 0 and told["device_work"]["launches"] > 0, str(told["device"]))
        check((len(told["devices"]["each"]) == 2) if several else told["devices"] is None, str(told["devices"]))
    told = json.loads(emulated(*options, "--device", "gpu", "-t", "1,2", "--json"))
    check([run["threads"] for run in told["runs"]] == [1, 2] and "iteration_median_ms" not in told, str(told["runs"]))
    check([row["threads"] for row in told["rows"]] == [1] * 6 + [2] * 6, str(told["rows"]))
    check("block copies" in emulated(*options, "--device", "auto"), "auto takes the device")
    _, err = sluice(*options, "--device", "gpu", status=1)
    check("device gpu: " in err, err)


def baselines(folder):
    """The kernels of other programs accept their options, and one of them several devices."""
    options = ("bench", "device", made(folder), "--rank", 5, "-n", 1, "--warm-up", 0, "--largest", "4KiB", "--json")
    rows = json.loads(emulated(*options, "--kernel", "blco-queues", "--queues", 2, "--block-nnz", 700, "--index-bits", 9,
                               "--work-group", 64, "--coarsening", 2, "--stash-rows", 3, "--copies", 2))["rows"]
    streamed = [row for row in rows if row["kernel"] == "blco-queues"]
    check(len(streamed) == 3 and all(row["differs"] < 1e-12 for row in streamed), str(rows))
    for row in streamed:
        check(row["copied_bytes"] > 0 and 0 < row["copy_ms"] <= row["busy_ms"], str(row))
        check(row["kernel_ms"] <= row["busy_ms"] <= row["copy_ms"] + row["kernel_ms"] + row["whole_ms"], str(row))
    for count in (1, 2, 3):
        told = json.loads(emulated(*options, "--kernel", "amped", "--devices", ",".join(["0"] * count)))
        rows = told["rows"]
        divided = [row for row in rows if "devices" in row]
        check([row["mode"] for row in divided] == [1, 2, 3], str(rows))
        for row in divided:
            check(row["kernel"] == "amped" and row["devices"] == len(row["device_ms"]) == count, str(row))
            check(row["differs"] < 1e-12 and row["exchange_ms"] > 0 and row["form"] == f"partitions-{row['mode']}", str(row))
            check(row["median_ms"] == max(row["device_ms"]), str(row))
        entry = next(row for row in told["summary"] if "devices" in row)
        times = [sum(row["device_ms"][d] for row in divided) for d in range(count)]
        alone = sum(row["median_ms"] for row in rows if row["kernel"] == "amped" and "devices" not in row)
        scaling = alone / sum(row["median_ms"] + row["exchange_ms"] for row in divided)
        check(abs(entry["device_spread"] - (max(times) - min(times)) / sum(times)) < 1e-6, str(entry))
        check(abs(entry["scaling"] / scaling - 1) < 1e-6, str(entry))
    # Too little memory for two devices: their row has a note, and the results of one device are
    # kept.
    rows = json.loads(emulated(*options, "--rank", 4, "--kernel", "amped", "--devices", "0,0", "--device-memory",
                               least_memory(made(folder))))["rows"]
    check([row.get("devices") for row in rows] == [None] * 6 + [2] and "MiB of device memory or more" in rows[-1]["note"], str(rows))
    for wrong in (["--work-group", 48], ["--queues", 1]):
        check("must be" in emulated(*options, "--kernel", "blco", *wrong, status=2), str(wrong))


def stop(folder):
    """A run ended by its time limit writes its current factors."""
    store, out = made(folder), os.path.join(folder, "out")
    emulated("cpd", store, "-r", 3, "-i", 1000, "--tol", 0, "--maxsecs", 0.5, "--device", "gpu", "-o", out, status=75)
    check(record(out)["reason"] == "time" and record(out)["device"]["factor_bytes_to_host"] > 0, str(record(out)))
    emulated("cpd", store, "-r", 3, "-i", 1, "--init", out, "--nowrite")


def multiply(folder):
    store, start = made(folder), os.path.join(folder, "start")
    sluice("cpd", store, "-r", 3, "-i", 0, "-o", start, "-q")
    results = []
    for command in (sluice, emulated):
        out = os.path.join(folder, command.__name__ + ".npy")
        command("mttkrp", store, "--mode", 2, "--factors", start, "-o", out, "--device",
                "cpu" if command is sluice else "gpu")
        results.append(numbers(out))
    check(len(results[0]) == 90 and max(map(abs, results[0])) > 1, str(results[0][:9]))
    for cpu, gpu in zip(*results, strict=True):
        check(abs(cpu - gpu) <= 1e-12 * abs(cpu), f"{cpu} and {gpu}")


def several(folder):
    """A device that is named several times gets divided partitions or equal shares, and yields the
    same bits."""
    store, results, nnz = os.path.join(folder, "t.slc"), [], 30000
    sluice("generate", store, "--dims", "900x3x70", "--nnz", nnz, "-q", "-f", "--block-bytes", "16KiB")
    sluice("layout", store, "--sorted", "all", "-q")
    for split in ("partitions", "nnz"):
        for devices in ("0", "0,0", "0,0,0,0"):
            out = os.path.join(folder, split + str(len(devices)))
            text = emulated("cpd", store, "-r", 3, "-i", 2, "--tol", 0, "--deterministic", "--device", "gpu", "--devices",
                            devices, "--split", split, "-o", out, "-v")
            told, count = record(out), devices.count("0")
            check(f"Devices ({count} with whole blocks" in text, text)
            check(len(told["devices"]["each"]) == count and told["devices"]["split"] == split, str(told["devices"]))
            check(sum(each["nnz"] for each in told["devices"]["each"]) == 2 * 3 * record(out)["tensor"]["nnz"], str(told["devices"]))
            check(told["device"]["bytes_from_devices"] > 0 or count == 1, str(told["device"]))
            with open(os.path.join(out, "mode-1.npy"), "rb") as file:
                results.append((file.read(), told["fit"]))
    check(results[0] == results[1] == results[2], "partitions: other bits with more devices")
    check(results[3] == results[4] == results[5], "shares: other bits with more devices")
    check(abs(results[0][1] - results[3][1]) < 1e-9, str((results[0][1], results[3][1])))
    start, outputs = os.path.join(folder, "start"), []
    sluice("cpd", store, "-r", 3, "-i", 0, "-o", start, "-q")
    for devices, split in (("0", "nnz"), ("0,0,0", "nnz"), ("0", "partitions"), ("0,0", "partitions")):
        out = os.path.join(folder, "several.npy")
        emulated("mttkrp", store, "--mode", 2, "--factors", start, "-o", out, "--device", "gpu", "--devices", devices,
                 "--split", split, "--deterministic")
        with open(out, "rb") as file:
            outputs.append(file.read())
    check(outputs[0] == outputs[1] and outputs[2] == outputs[3], "outputs differ with the number of devices")
    plan = json.loads(emulated("plan", "--no-probe", store, "-r", 3, "--device", "gpu", "--devices", "0,0,0", "--json"))
    check(len(plan["devices"]) == 3 and len(plan["devices"][0]["nnz"]) == 3, str(plan["devices"]))
    check(plan["devices"][0]["partitions"] >= 4, str(plan["devices"]))


def shared(folder):
    """CPU and device together process every nonzero once, yield the CPU's results, and report the
    work of each."""
    store, start = os.path.join(folder, "t.slc"), os.path.join(folder, "start")
    sluice("generate", store, "--dims", "300x200x70", "--nnz", 100000, "-q", "-f", "--block-bytes", "16KiB")
    options = ["cpd", store, "-r", 3, "-i", 2, "--tol", 0]
    sluice(*options, "-o", os.path.join(folder, "cpu"), "-q")
    cpu, nnz = record(os.path.join(folder, "cpu")), 2 * record(os.path.join(folder, "cpu"))["tensor"]["nnz"]
    check(cpu["share"] is None and cpu["plan"]["share"] is None, str(cpu["share"]))
    sluice("cpd", store, "-r", 3, "-i", 0, "-o", start, "-q")
    for split in ("static=0.3", "adaptive", "queue"):
        out = os.path.join(folder, split)
        text = emulated(*options, "--device", "gpu", "--no-cache", "--split", split, "-o", out)
        told = record(out)
        share = told["share"]
        check(abs(told["fit"] - cpu["fit"]) < 1e-9, f"{split}: fits {told['fit']} and {cpu['fit']}")
        for mode in range(3):
            pair = [numbers(os.path.join(each, f"mode-{mode + 1}.npy")) for each in (out, os.path.join(folder, "cpu"))]
            apart = sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) ** 0.5
            check(apart < 1e-8 * sum(b * b for b in pair[1]) ** 0.5, f"{split}: mode {mode + 1} is {apart} apart")
        check(share["kind"] == split.split("=")[0] and share["fraction"] == (0.3 if "=" in split else None), str(share))
        check(told["plan"]["share"] == {"kind": share["kind"], "fraction": share["fraction"]}, str(told["plan"]["share"]))
        check([each["mode"] for each in share["modes"]] == [1, 2, 3], str(share))
        for each in share["modes"]:
            check(each["passes"] == 2 and each["nnz"]["cpu"] + each["nnz"]["device"] == nnz, str(each))
            check(0 <= each["used"] <= 1 and abs(each["used"] - each["nnz"]["device"] / nnz) < 1e-12, str(each))
            check(0 < each["measured"] < 1 and min(each["seconds"].values()) > 0, str(each))
        check(f"Shared between CPU and device ({split})" in text and "  shared       between CPU and device: " + split in text, text)
        made_by = os.path.join(folder, "shared.npy"), os.path.join(folder, "alone.npy")
        text = emulated("mttkrp", store, "--mode", 2, "--factors", start, "-o", made_by[0], "--device", "gpu", "--devices", "0",
                        "--split", split)
        check(re.search(r"^  mode 2 +\S+ % of the nonzeros on the device", text, re.M), text)
        sluice("mttkrp", store, "--mode", 2, "--factors", start, "-o", made_by[1], "-q")
        for a, b in zip(*map(numbers, made_by), strict=True):
            check(abs(a - b) <= 1e-12 * abs(b), f"{split}: {a} and {b}")
    # With f32 factors, the device returns f64 sums, and the CPU returns sums rounded to f32.
    fits = []
    for command, more in ((sluice, []), (emulated, ["--device", "gpu", "--no-cache", "--split", "static=0.5"])):
        out = os.path.join(folder, "f32-" + command.__name__)
        command(*options, "--precision", "f32", *more, "-o", out)
        fits.append(record(out)["fit"])
    check(abs(fits[0] - fits[1]) < 1e-6 and record(out)["share"]["modes"][0]["nnz"]["cpu"] > 0, str(fits))
    for wrong, told in ((["--split", "static=2"], "with F from 0 to 1"), (["--split", "rows"], "use partitions or nnz"),
                        (["--split", "queue", "--deterministic"], "omit the split, or do not request deterministic (--split, --deterministic)"),
                        (["--split", "queue", "--devices", "0,0"], "the CPU and one GPU"),
                        (["--split", "adaptive", "--device", "cpu"], "request the device 'gpu' (--split, --device)"),
                        (["--split", "queue", "--device", "auto", "--devices", "2"], "the CPU and one GPU")):
        text = emulated("plan", store, "-r", 3, *(["--device", "gpu"] if "--device" not in wrong else []), *wrong, status=2)
        check(told in text, text)
    # Without a device to share the work with, the CPU computes everything, and the reason is
    # reported.
    text, _ = sluice("cpd", store, "-r", 2, "-i", 1, "--nowrite", "--device", "auto", "--split", "adaptive")
    check(re.search(r"^  GPU +not used: \S", text, re.M) and "Shared" not in text, text)
    text = emulated("cpd", store, "-r", 2, "-i", 1, "--nowrite", "--device", "auto", "--split", "queue", fault="memory")
    check("  device       CPU" in text and "Shared" not in text, text)


def resumed(folder):
    """A run on the device that is out of time resumes to the same bits, including the device's
    part."""
    store, outs = os.path.join(folder, "t.slc"), [os.path.join(folder, name) for name in ("whole", "parts")]
    sluice("generate", store, "--dims", "300x200x70", "--nnz", 20000, "-q", "-f", "--block-bytes", "64KiB")
    options = ["cpd", store, "-r", 3, "-i", 2, "--tol", 0, "--deterministic", "--device", "gpu", "-q"]
    emulated(*options, "-o", outs[0])
    emulated(*options, "-o", outs[1], "--maxsecs", "0.000001", status=75)
    part = [os.environ["SLUICE_EMULATED"], *map(str, options), "-o", outs[1], "--maxsecs"]
    # Each of the first two runs makes at least one update; the last run makes all others.
    for seconds in ("0.1", "0.1", "100"):
        code = subprocess.run([*part, seconds], check=False).returncode
        check(code in (0, 75), f"exit {code}")
        if code == 0:
            break
    told = [record(out) for out in outs]
    check(code == 0 and told[1]["checkpoint"]["resumes"] > 0, str(told[1]["checkpoint"]))
    check(told[0]["lambda"] == told[1]["lambda"] and told[0]["fit"] == told[1]["fit"], "other bits after a stop")


def budgets(folder):
    store = made(folder)
    text = emulated("cpd", store, "-r", 3, "--device", "gpu", "--device-memory", "64KiB", status=4)
    needs = re.search(r"needs (\d+) MiB of device memory or more", text)
    check(needs, text)
    plan = json.loads(emulated("plan", "--no-probe", store, "-r", 3, "--device", "gpu", "--device-memory", needs.group(1) + "MiB",
                               "--json"))
    check(plan["feasible"] and plan["device"]["minimum_bytes"] <= plan["device"]["budget_bytes"], str(plan["device"]))
    text = emulated("plan", "--no-probe", store, "-r", 3, "--device", "auto", "--device-memory", "64KiB")
    check(re.search(r"^  GPU +not used: .*--device-memory", text, re.M), text)
    for devices in ([], ["--devices", "0,0,0", "--split", "nnz"]):
        options = ["plan", store, "-r", 3, "--device-memory", "1025MiB", *devices]
        text = emulated(*options, "--device", "gpu", status=2)
        check("1025 MiB of device memory requested, but 1024 of the 1024 MiB of device 0" in text, text)
    text = emulated("plan", "--no-probe", store, "-r", 3, "--device", "auto", "--device-memory", "1025MiB")
    check(re.search(r"^  GPU +not used: 1025 MiB of device memory requested.*--device-memory", text, re.M), text)
    emulated("plan", store, "-r", 3, "--device", "gpu", "--device-memory", "1GiB", "--devices", "0,0,0", "--split", "nnz")
    text = emulated("plan", store, "-r", 3, "--device", "auto")
    check(re.search(r"on the device \(minimum: ", text) and "not used" not in text, text)


def instead(folder):
    """If the device fails to open, `auto` computes on the CPU and reports why, and `gpu` fails."""
    store, out = made(folder), os.path.join(folder, "out")
    options = ["cpd", store, "-r", 2, "-i", 1, "-o", out]
    text = emulated(*options, "--device", "auto", fault="memory")
    check("  device       CPU" in text and re.search(r"^  GPU +not used: .*free in one piece", text, re.M), text)
    check(record(out)["device"] is None, str(record(out)["device"]))
    check("free in one piece" in emulated(*options, "--device", "gpu", fault="memory", status=1), "gpu")
    text = emulated("mttkrp", store, "--mode", 1, "--factors", out, "-o", os.path.join(folder, "m.npy"), "--device", "auto",
                    fault="memory")
    check("  device       CPU" in text and "free in one piece" in text, text)
    text = emulated(*options, "--device", "gpu", fault="old", status=3)
    check("has compute capability 7.0; the oldest supported by this build is 8.0" in text, text)
    # The memory that the runtime used for the device no longer counts.
    process = []
    for device in (["cpu"], ["auto", "--device-memory", "64KiB"], ["gpu"]):
        plan = json.loads(emulated("plan", "--no-probe", store, "-r", 3, "--json", "--device", *device, fault="context"))
        process.append(plan["process_bytes"])
    check(process[1] < process[0] + (32 << 20) < process[2], str(process))


def wishes(folder):
    """With options that only the CPU supports, `auto` selects the CPU and reports why, and `gpu`
    fails."""
    store = made(folder)
    text = emulated("cpd", store, "-r", 2, "-i", 1, "--nowrite", "--device", "auto", "--deterministic")
    check("  device       CPU" in text and re.search("not used: the bits of a deterministic run .*--deterministic", text), text)
    for wish, told in ((["--copies", "always"], "or the device cpu (--copies, --device)"),
                       (["--devices", "2", "--split", "nnz"], "device 2 does not exist")):
        text = emulated("cpd", store, "-r", 2, "-i", 1, "--nowrite", "--device", "auto", *wish)
        check("  device       CPU" in text, text)
        text = emulated("cpd", store, "-r", 2, "-i", 1, "--nowrite", "--device", "gpu", *wish, status=2)
        check(told in text, text)
    text = emulated("cpd", store, "-r", 2, "-i", 1, "--nowrite", "--devices", "0,1", status=2)
    check("request the device 'gpu', or give a number of CPU devices (--devices, --device)" in text, text)
    for option in (["--streams", 3], ["--device-memory", "64MiB"]):
        for device in ([], ["--device", "cpu"]):
            text = emulated("plan", store, "-r", 2, *option, *device, status=2)
            check(f"needs a GPU: request the device 'gpu' or 'auto', or omit the option ({option[0]}, --device)" in text, text)
        emulated("plan", "--no-probe", store, "-r", 2, *option, "--device", "auto", "--devices", "2", "--split", "nnz")
    text = emulated("cpd", store, "-r", 2, "--streams", 9, status=2)
    check("8" in text, text)


def without(folder):
    """Runs on a machine without a device, like the other tests of the command."""
    store = made(folder)
    out, err = sluice("cpd", store, "-r", 2, "-i", 1, "--device", "gpu", "--nowrite", status=1)
    check(re.search(r"device gpu: (this sluice was built without CUDA|no CUDA device can be used)", err), out + err)
    out, err = sluice("cpd", store, "-r", 2, "-i", 1, "--nowrite", "--device", "auto")
    check(re.search(r"^  GPU +not used: \S", out, re.M), out)
    out, err = sluice("cpd", store, "-r", 2, "-i", 1, "--nowrite")
    check("GPU" not in out, out)


run([
    ("CP-ALS on a device", decompose),
    ("a stop by time", stop),
    ("resuming after one", resumed),
    ("MTTKRP on a device", multiply),
    ("bench device", bench),
    ("bench device: listings of XPLAT", xplat),
    ("bench device, as several", bench_logical),
    ("bench roofline of a device", roofline),
    ("bench cpd on a device", bench_cpd),
    ("bench device: kernels of other programs", baselines),
    ("several devices", several),
    ("the CPU and a device together", shared),
    ("memory of the device", budgets),
    ("a device that cannot be opened", instead),
    ("options that only the CPU supports", wishes),
    ("no device", without),
])
