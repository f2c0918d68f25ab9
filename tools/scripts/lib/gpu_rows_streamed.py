"""Rows 6, 7, 9 and 10 of tools/gpu-acceptance: streaming, and several devices."""

import hashlib
import json
import os
import re
import shutil

from gpu_runner import Failed, npy_write
from gpu_tensors import geometric_mean, name_of

RANK = 16  # rank for streamed tensors, the smallest one in use in the papers, so that copies dominate


def mega(size):
    return f"{max(1, int(size / 2**20))}MiB"


def slot_ms(row, rate):
    """Returns the ms to copy one slot. No kernel overlaps the first copy."""
    return row["device"]["slot_bytes"] / rate * 1e-6


def stream_once(runner, store, memory, *more):
    """Returns the row of mode 1 with `memory` bytes of device memory, or with the minimum if that
    is larger."""
    try:
        return runner.bench(store, "--rank", RANK, "--mode", 1, "--device-memory", memory, "-n", runner.repeats, *more)["rows"][0]
    except Failed as reason:
        needed = re.search(r"needs? (\d+) MiB of device memory", str(reason))
        if not needed:
            raise
        return runner.bench(store, "--rank", RANK, "--mode", 1, "--device-memory", needed[1] + "MiB", "-n", runner.repeats,
                            *more)["rows"][0]


def through(runner, codec, result):
    """Streams a store of one codec through a part of device memory: first with an eighth of the
    store resident, then with half of it."""
    store = runner.tensors.get("streamed", codec=codec)
    copy = runner.ceiling("to-device", 4 * 2**20)
    # Blocks that are streamed are decoded in every MTTKRP.
    whole = runner.bench(store, "--rank", RANK, "--mode", 1, "--encoded", "-n", runner.repeats)["rows"][0]
    size = whole["resident_bytes"] + whole["copied_bytes"]
    runner.keep("streaming", result)
    result[codec] = {"store_bytes": size, "kernel": whole, "through": []}
    for share in (8, 2):
        # Of the memory that is left after the factors, the plan uses a third for four whole slots,
        # and the rest for resident blocks.
        slots = 12 * min(whole["device"]["slot_bytes"], size // 64)
        row = stream_once(runner, store, mega(whole["device"]["factor_bytes"] + slots + size / share))
        copies = row["copied_bytes"] / copy * 1e-6
        result[codec]["through"].append({**row, "copies_alone_ms": copies, "kernels_alone_ms": whole["median_ms"]})
        runner.keep("streaming", result)
        bound = max(copies, whole["median_ms"])
        runner.add_figure(f"{codec}, {size / 1e9:.1f} GB: kernels {whole['median_ms']:.1f} ms, {row['copied_bytes'] / 1e9:.2f} GB copied "
                    f"(alone {copies:.1f} ms), {row['resident_bytes'] / 1e9:.2f} GB resident, both {row['whole_ms']:.1f} ms")
        runner.mark(row["whole_ms"] <= 1.05 * bound + slot_ms(row, copy),
                    f"{row['whole_ms'] / bound:.2f} x the larger of copies and kernels")
        if row["copied_bytes"] + row["resident_bytes"] != size:
            runner.mark(False, f"{row['copied_bytes'] + row['resident_bytes']} bytes copied or resident, not {size}")
        if copies > whole["median_ms"]:
            reached = row["copied_bytes"] / row["whole_ms"] * 1e-6 / copy
            runner.mark(reached >= 0.93, f"{reached:.2f} of the rate of pinned copies")
    return result[codec]["through"][0]["whole_ms"]


def streaming(runner):
    """Row 6: measures streaming from host memory through a part of device memory, compared with the
    same nonzeros in BLCO's codec."""
    result = {}
    packed = through(runner, "packed", result)
    blco = through(runner, "blco", result)
    runner.tensors.drop(runner.tensors.get("streamed", codec="blco"))
    runner.mark(blco / packed >= 2.4, f"packed {blco / packed:.2f} x as fast as blco")


def from_disk(runner):
    """Row 7: reads every block from the drive in every pass. Compares the rate with the slower of
    the drive and the bus."""
    store = runner.tensors.get("streamed")
    # Like the tile stream, this bypasses the page cache and has the same number of reads in flight,
    # one block each.
    io = json.loads(runner.sluice("bench", "io", store, "--io", "pread", "-n", 2, "--json").stdout)
    runner.keep("drive", io)
    drive = max(row["gb_per_s"] for row in io["rows"] if row["method"].startswith("raw") and row.get("gb_per_s"))
    row = runner.bench(store, "--rank", RANK, "--mode", 1, "--no-cache", "-n", runner.repeats)["rows"][0]
    runner.keep("from_disk", row)
    copy = runner.ceiling("to-device", 4 * 2**20)
    rate = row["read_bytes"] / row["whole_ms"] * 1e-6
    slower = min(drive, copy)
    runner.add_figure(f"drive {drive:.2f} GB/s, copies {copy:.1f}, {'past' if row['direct'] else 'through'} the page cache")
    runner.mark(row["read_bytes"] >= row["copied_bytes"] > 0, f"{row['read_bytes'] / 1e9:.2f} GB read")
    runner.mark(rate >= 0.9 * slower, f"streamed {rate:.2f} GB/s, {rate / slower:.2f} of the slower")


# ---- several devices, CPU with GPU

def median_iteration(result):
    """Returns the median time of iterations, except the first, which reads and copies the resident
    blocks."""
    seconds = sorted(i["seconds"] for i in result["iterations"][1:])
    return seconds[len(seconds) // 2]


def logical_devices(runner, kept):
    store = runner.tensors.get("skewed", 0.3, layouts=("--sorted", "all"))
    fit = None
    for split in ("partitions", "nnz"):
        for count in (1, 2, 4):
            result = runner.cpd(store, "-i", 6, "--device", "gpu", "--devices", ",".join(["0"] * count), "--split", split)
            each = (result["devices"] or {}).get("each", [])
            parts = {name: sum(one[name] for one in each) for name in ("compute", "copy", "reduce", "solve", "exchange")} if each else {}
            kept.append({"split": split, "devices": count, "fit": result["fit"], "iteration": median_iteration(result), "sums": parts,
                         "run": result["devices"]})
            runner.keep("several", kept)
            fit = result["fit"] if fit is None else fit
            if abs(result["fit"] - fit) > 1e-9:
                runner.mark(False, f"{count} devices by {split}: fit {result['fit']}, one: {fit}")
            runner.add_figure(f"{split} {count}: {kept[-1]['iteration'] * 1e3:.1f} ms"
                        + (" (" + ", ".join(f"{name} {1e3 * s / 6:.1f}" for name, s in parts.items()) + ")" if count > 1 else ""))


def divided(runner):
    """Measures the MTTKRP alone on logical devices, if this sluice can: scaling and spread as the
    paper of AMPED defines them."""
    if not runner.offers("bench device", "--logical"):
        return
    store = runner.tensors.get("skewed", 0.3, layouts=("--sorted", "all"))
    result = runner.bench(store, "--rank", RANK, "--logical", "2,4", "-n", runner.repeats)
    runner.keep("logical", result)
    runner.add_figure("MTTKRP: " + "; ".join(f"{entry['devices']} {entry.get('split') or ''} scaling {entry['scaling']:.2f}, "
                                       f"spread {entry['device_spread']:.2f}"
                                       for entry in result.get("summary", []) if entry.get("scaling") and entry.get("device_spread")))


def shared(runner, kept):
    """Computes a decomposition with CPU and GPU together. Compares it with the faster of the two
    alone. All runs read `blco`."""
    store = runner.tensors.get("skewed", 0.3)
    alone = {}
    for device in ("cpu", "gpu"):
        alone[device] = runner.cpd(store, "-i", 8, "--device", device)
        kept[device] = median_iteration(alone[device])
    best = min(kept.values())
    for split in ("static=0.9", "adaptive", "queue"):
        result = runner.cpd(store, "-i", 8, "--device", "gpu", "--split", split)
        kept[split] = median_iteration(result)
        runner.keep("cpu_with_gpu", {**kept, "run": result.get("share")})
        apart = abs(result["fit"] - alone["gpu"]["fit"])
        modes = result["share"]["modes"]
        # An adaptive split may not use the CPU if that is faster.
        idle = [mode["mode"] for mode in modes
                if (mode["nnz"]["device"] if split == "adaptive" else min(mode["nnz"].values())) == 0]
        runner.mark(not idle, f"{split}: both compute" if not idle else f"{split}: one side computes nothing of modes {idle}")
        if split == "adaptive" and "passes_without_cpu" in modes[0]:
            runner.add_figure(f"adaptive: {sum(mode['passes_without_cpu'] for mode in modes)} of {sum(mode['passes'] for mode in modes)} "
                        "passes without the CPU")
        runner.mark(apart <= 1e-9, f"{split}: {best / kept[split]:.2f} x the best alone, fits differ by {apart:.1e}")
    runner.mark(best / kept["adaptive"] >= 0.98, f"adaptive {best / kept['adaptive']:.2f} x the best alone")


def together(runner):
    """Row 9: uses one device as two and as four devices, and the CPU together with the GPU."""
    logical_devices(runner, [])
    divided(runner)
    if not runner.offers("cpd", "adaptive", "queue"):
        runner.add_figure("CPU with GPU: this sluice has no --split adaptive")
        return
    shared(runner, {})


# ---- SpTV and TTM

def by_kernel(rows):
    found = {}
    for row in rows:
        found.setdefault((name_of(row["tensor"]), row["mode"], row["rank"]), {})[row["kernel"]] = row
    return found


def mixed_seconds(runner, read, written):
    """Returns the time of reads and writes at the rates of the device. Half of the bytes of a copy
    are reads. A write takes at least as long as a read."""
    of_read = 1e-9 / runner.ceiling("read")
    of_write = max(of_read, 2e-9 / runner.ceiling("copy") - of_read)
    return read * of_read + written * of_write


def vectors_in_memory(runner, rows):
    read, shares, mixed, gains, lost = runner.ceiling("read"), [], [], {}, []
    for key, of in by_kernel(rows).items():
        if "sptv" not in of:
            continue
        ours = of["sptv"]
        shares.append(ours["gb_per_s"] / read)
        written = 8 * ours["fibers"]
        mixed.append(mixed_seconds(runner, ours["moved_bytes"] - written, written) / (1e-3 * ours["median_ms"]))
        for other in ("sptv-all", "sptv-short"):
            if "median_ms" in of.get(other, {}):
                gains.setdefault(other, []).append(of[other]["median_ms"] / ours["median_ms"])
        library = [of[name]["median_ms"] for name in ("cusparse-1", "cusparse-2") if "median_ms" in of.get(name, {})]
        if library:
            gains.setdefault("cusparse", []).append(min(library) / ours["median_ms"])
            if min(library) <= ours["median_ms"]:
                lost.append(f"{key[0]} mode {key[1]}: {min(library) / ours['median_ms']:.2f}")
    runner.mark(geometric_mean(shares) >= 0.8,
                f"SpTV {geometric_mean(shares):.2f} of the read bandwidth, lowest {min(shares):.2f}")
    runner.add_figure(f"{geometric_mean(mixed):.2f} of the rate of copies for sums and of reads for the rest, lowest {min(mixed):.2f}")
    if "cusparse" in gains:
        runner.mark(not lost, f"{geometric_mean(gains['cusparse']):.2f} x cuSPARSE"
                    + (f", not faster: {', '.join(lost)}" if lost else ", faster in every mode"))
    else:
        runner.add_figure("no cuSPARSE found")
    for name, what in (("sptv-all", "with empty fibers"), ("sptv-short", "with a shortened vector")):
        if name in gains:
            runner.add_figure(f"{what} {geometric_mean(gains[name]):.2f} x the time")


def in_memory(runner):
    rows = []
    for name in ("fibers", "hollow"):
        # The result for a matrix is many times larger than for a vector, so a part of the tensor
        # suffices.
        for share, more in ((1.0, ("ttv",)), (0.3, ("ttm", "--rank", "16,32"))):
            rows += runner.bench(runner.tensors.get(name, share), "--operation", *more, "-n", runner.repeats)["rows"]
            runner.keep("products", rows)
    wrong = [f"{row['kernel']} mode {row['mode']}: {row['differs']:.1e}" for row in rows if row.get("differs", 0) > 1e-10]
    runner.mark(not wrong, "differ from the CPU: " + ", ".join(wrong) if wrong else "all results agree with the CPU's")
    vectors_in_memory(runner, rows)
    forms = [of["ttm-nonzeros"]["median_ms"] / of["ttm-fibers"]["median_ms"] for of in by_kernel(rows).values()
             if "ttm-fibers" in of]
    rates = [row["gb_per_s"] for row in rows if row["kernel"] == "ttm-fibers"]
    runner.add_figure(f"TTM by fibers {geometric_mean(rates):.0f} GB/s, {geometric_mean(forms):.2f} x as fast as by elements")


def streamed_cases(runner, command):
    """Returns the options of each variant of a product, by name: the optimizations that [SPTV]
    measures, and the CPU."""
    gpu = ["--device", "gpu"]
    cases = {"cpu": [], "gpu": gpu, "1 stream": [*gpu, "--streams", 1], "4 streams": [*gpu, "--streams", 4]}
    if runner.offers(command, "--schedule"):
        cases.update({"file order": [*gpu, "--schedule", "file"], "largest first": [*gpu, "--schedule", "largest"]})
    if runner.offers(command, "--split"):
        cases["with CPU"] = [*gpu, "--split", "adaptive"]
    return cases


def streamed_product(runner, store, command, cols, content):
    """Compares all variants of a product with the product of the CPU. The operands are integers, so
    that sums are exact and the order of additions does not matter. `content(runner, path)` returns
    the part of a result that must agree."""
    operand, length = os.path.join(runner.work, command + ".npy"), runner.tensors.info(store)["dims"][2]
    npy_write(operand, length, cols, lambda i: 1 + i % 3)
    result, found = {}, {}
    for name, more in streamed_cases(runner, command).items():
        out = os.path.join(runner.work, command + "-out.slc")
        shutil.rmtree(out, ignore_errors=True)
        record = json.loads(runner.sluice(command, store, out, "--mode", 3, "--vector" if cols is None else "--matrix", operand,
                                          "--json", *more).stdout)
        result[name], found[name] = record, content(runner, out)
        runner.keep("streamed_" + command, result)
    apart = [name for name, what in found.items() if what != found["cpu"]]
    runner.mark(not apart, f"streamed {command} " + (f"differs from the CPU's: {', '.join(apart)}" if apart else "agrees with the CPU's"))
    # With a device, most of the rest is the time to open it.
    runner.add_figure("; ".join(f"{name} {record['seconds']['total']:.2f} s, of which {record['seconds']['multiply']:.3f} to multiply"
                                for name, record in result.items()))


def sums_of(runner, out):
    info = runner.tensors.info(out)
    return info["nnz"], info["content_sum"]


def digest_of(_runner, out):
    """Returns a digest of the numbers in the files, whose rows have a fixed order."""
    digest = hashlib.sha256()
    for name in ("coords.npy", "rows.npy"):
        with open(os.path.join(out, name), "rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
    return digest.hexdigest()


def products(runner):
    """Row 10: measures SpTV and TTM in memory, then checks the streamed products."""
    in_memory(runner)
    # TTM writes 16 numbers per fiber. With a part of the tensor, these rows fit the disk.
    store = runner.tensors.get("fibers", 0.3, layouts=("--fiber", "3"))
    for command, cols, content in (("ttv", None, sums_of), ("ttm", RANK, digest_of)):
        if runner.offers(command, "--device"):
            streamed_product(runner, store, command, cols, content)
        else:
            runner.add_figure(f"streamed {command}: this sluice has no {command} --device")
