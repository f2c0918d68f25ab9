#!/usr/bin/env python3
"""sluice bench: valid, consistent JSON, bad options, stores of every shape.

Timings are never checked here, because tests share their machine."""

import json
import math
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from measured import MIB, measured, works_as_named  # noqa: E402
from tap import FULL, QUICK, SOURCE, Skip, bundled, check, run, run_command, sluice  # noqa: E402


def bench_names():
    """Returns the benchmarks that `sluice bench --help` lists."""
    text = sluice("bench", "--help")[0].split("\nBenchmarks:\n")[1]
    return re.findall(r"^  (\w+) ", text, re.M)


# Benchmarks that spend most of their time on sweeps beyond all caches, whose timings are not
# checked here.
SWEEPING = ("mttkrp", "roofline", "stream")
SMALL_SET = ("--memory-set", "1MiB")


def bench(*args):
    """Runs a benchmark with --json; checks the parts common to all records; returns the record."""
    out, messages = sluice("bench", *args, *(SMALL_SET if args[0] in SWEEPING else ()), "--json")
    record = json.loads(out)
    check(record["schema"] == "sluice-bench-1", record["schema"])
    check(record["bench"] == args[0], record["bench"])
    check(record["versions"]["sluice"] and record["machine"]["processors"] >= 1, f"{record}")
    check(len(record["machine"]["cache_bytes"]) == 3, f"{record['machine']}")
    check(record["options"]["json"] is True, f"{record['options']}")
    check(messages == "", messages)
    return record


def helps_and_man_page(_folder):
    """Every benchmark has a help text, and a section of the man page with exactly its options."""
    with open(os.path.join(SOURCE, "docs", "man", "sluice-bench.1.scd")) as file:
        page = file.read()
    names = bench_names()
    check(names, "no benchmark is listed")
    for name in names:
        out, _ = sluice("bench", name, "--help")
        check(out.startswith(f"Example: sluice bench {name} "), out)
        check(sluice("help", "bench", name)[0] == out, "help bench NAME differs")
        check(max(map(len, out.splitlines())) <= 100, f"{name}: the help is too wide")
        check(f"\n# {name.upper()}\n" in page, f"the man page has no section {name.upper()}")
        section = page.split(f"\n# {name.upper()}\n")[1].split("\n# ")[0]
        wanted = set(re.findall(r"^(?:  -\w,|     ) --([\w-]+)", out, re.M)) - {"help"}
        there = set(re.findall(r"^(?:\*-\w\*, )?\*--([\w-]+)\*", section, re.M))
        check(wanted == there, f"{name}: help {sorted(wanted)}, man page {sorted(there)}")


def usage(_folder):
    out, messages = sluice("bench", status=2)
    check("Benchmarks:" in out and messages == "", messages)
    for part, args in (("unknown benchmark 'strem'; did you mean stream?", ["strem"]),
                       ("see sluice bench --help", ["xyzzy"]),
                       ("see sluice bench stream --help", ["stream", "--xyzzy"]),
                       ("stream accepts none", ["stream", "x.slc"]),
                       ("not a multiple of 64", ["stream", "--row-bytes", "72"]),
                       ("not between 64", ["stream", "--row-bytes", "8"]),
                       ("not between 1 and 1000", ["stream", "--repeat", "0"]),
                       ("not between 1 and 1000", ["stream", "--repeat", "1001"])):
        out, messages = sluice("bench", *args, status=2)
        check(out == "", out)
        check(part in messages, f"{part!r} is not in {messages!r}")


def stream(_folder):
    record = bench("stream", "-t", 2, "--isa", "best", "-n", 1, "--warm-up", 0)
    check({row["threads"] for row in record["rows"]} == {1, 2}, f"{record['rows']}")
    check("memory" in {row["level"] for row in record["rows"]}, f"{record['rows']}")
    for row in record["rows"]:
        for kind in ("read", "copy", "triad", "gather"):
            check(row[f"{kind}_gb_per_s"] > 0, f"{row}")
        check(row["set_bytes"] % 4096 == 0, f"{row}")
        check(row["set_bytes"] == 1 << 20 or row["level"] != "memory", f"{row}")


def close(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))


def shapes(folder):
    """Makes small stores of 1 to 5 modes, some without nonzeros, and yields (path, order, nnz)."""
    for order, dims in enumerate(("7", "9x8", "20x30x4", "3x9x8x7", "4x5x6x3x2"), 1):
        if order not in ((3,) if QUICK else range(1, 6) if FULL else (1, 3, 5)):
            continue
        path = os.path.join(folder, f"{order}.slc")
        nnz = 7 if order == 1 else 50
        sluice("generate", path, "--dims", dims, "--nnz", nnz, "-q")
        yield path, order, nnz
    text = os.path.join(folder, "empty.tns")
    with open(text, "w") as file:
        file.write("# nothing\n")
    path = os.path.join(folder, "empty.slc")
    sluice("convert", text, path, "--dims", "3x4", "-q")
    yield path, 2, 0


KEYS = ("rank", "threads", "precision", "instruction_set", "kernel", "layout", "fiber_mode", "conflict")


def combination(row):
    return tuple(row.get(key) for key in KEYS)


STRATEGIES = {"sluice": ("direct", "private", "locked", "ordered", "columns", "owned"),
              "genten-a": ("atomic",), "genten-b": ("atomic",), "genten-c": ("permuted",),
              "xplat-element": ("rows",), "xplat-row": ("rows",), "atomic-fiber": ("atomic",),
              "atomic-nonzero": ("atomic",)}


XPLAT = ("xplat-element", "xplat-row")


def check_permuting(record, total):
    """The cost of sorting a list is counted in MTTKRPs; it pays off if the permuted visit is
    faster."""
    check(("permute_ms" in total) == (total["kernel"] == "genten-c"), f"{total}")
    if "permute_ms" not in total:
        check("payback_iterations" not in total, f"{total}")
        return
    check(total["permute_ms"] > 0, f"{total}")
    check(close(total["permute_iterations"], total["permute_ms"] / total["all_modes_ms"]), f"{total}")
    others = [other["all_modes_ms"] for other in record["totals"] if other["kernel"] == "genten-a"
              and combination(other)[:4] == combination(total)[:4]]
    check(("payback_iterations" in total) == bool(others), f"{total}")
    if others and others[0] > total["all_modes_ms"]:
        check(close(total["payback_iterations"],
                    total["permute_ms"] / (others[0] - total["all_modes_ms"])), f"{total}")
    elif others:
        check(total["payback_iterations"] is None, f"{total}")


def check_mttkrp(record, order, nnz):
    """The record of `bench mttkrp` is consistent."""
    check(record["tensor"]["nnz"] == nnz and len(record["tensor"]["dims"]) == order, f"{record}")
    for row in record["rows"]:
        check(row["min_ms"] <= row["median_ms"] <= row["max_ms"], f"{row}")
        check(0 <= row["decode_share"] <= 1, f"{row}")
        whole = row["kernel"].startswith("atomic")
        owned_rows = row["layout"] == "sorted" and nnz > 0
        check(row["strategy"] in (("rows",) if owned_rows else STRATEGIES[row["kernel"]]), f"{row}")
        check(("fiber_mode" in row) == whole and (row["layout"] != "fiber" or whole), f"{row}")
        check(row["kernel"] == "sluice" or whole or row["decode_share"] == 0, f"{row}")
        check(row.get("error", 0) <= (1e-12 if row["precision"] == "f64" else 1e-4), f"{row}")
        check(row["conflict"] in ("auto", "stream", row["strategy"]), f"{row}")
        check(row["conflict"] != "stream" or row["strategy"] != "owned", f"{row}")
        check(("form" in row) == (row["strategy"] == "owned"), f"{row}")
        if row["kernel"].startswith("xplat") and nnz > 0:
            check(1 <= row["nnz_per_run"] <= nnz, f"{row}")
        if "form" in row:
            check(row["form"] == (",".join(map(str, row["varying"])) or "plain"), f"{row}")
            check(row["nnz_per_run"] >= 1 and row["tried"] >= 0, f"{row}")
        check(close(row["nnz_per_s"], nnz / row["median_ms"] * 1e3), f"{row}")
        check(close(row["gflop_per_s"], row["nnz_per_s"] * order * row["rank"] * 1e-9), f"{row}")
        value = 4 if row["precision"] == "f32" else 8
        check(row["model_bytes_per_nnz"] == (order * row["rank"] + 3) * value + 8 * order, f"{row}")
        check(close(row["model_gb_per_s"], row["nnz_per_s"] * row["model_bytes_per_nnz"] * 1e-9),
              f"{row}")
        for kind in ("ceiling", "memory_ceiling"):
            check(row[f"{kind}_gb_per_s"] > 0, f"{row}")
            check(close(row[f"{kind}_share"], row["model_gb_per_s"] / row[f"{kind}_gb_per_s"]),
                  f"{row}")
    combined = {}
    for row in record["rows"]:
        combined.setdefault(combination(row), []).append(row)
    for total in record["totals"]:
        rows = combined.get(combination(total), [])
        check([row["mode"] for row in rows] == list(range(1, order + 1)), f"{rows}")
        check(close(total["all_modes_ms"], sum(row["median_ms"] for row in rows)), f"{total}")
        owned = rows[0]["strategy"] == "owned"
        check(all((row["strategy"] == "owned") == owned for row in rows), f"{rows}")
        check(("copies_ms" in total) == owned, f"{total}")
        if owned:
            check(close(total["copies_iterations"], total["copies_ms"] / total["all_modes_ms"]),
                  f"{total}")
        check_permuting(record, total)


def mttkrp(folder):
    """A single combination has all_modes_ms at the top level; every order, also without nonzeros."""
    for path, order, nnz in shapes(folder):
        count = 3 if order == 3 else 1  # few samples per ceiling: the ceilings dominate the time
        record = bench("mttkrp", path, "-r", 3, "-t", 2, "-n", count)
        check_mttkrp(record, order, nnz)
        check(len(record["totals"]) == 1, f"{record['totals']}")
        check(record["all_modes_ms"] == record["totals"][0]["all_modes_ms"], f"{record}")
        check(all(row["samples"] == count for row in record["rows"]), f"{record['rows']}")


def mttkrp_baselines(folder):
    """The baselines run together with sluice's kernels and alone, in every order, precision and
    instruction set."""
    for path, order, nnz in shapes(folder):
        record = bench("mttkrp", path, "-r", 3, "-t", 2, "-n", 1, "--kernel", "all")
        check_mttkrp(record, order, nnz)
        check([total["kernel"] for total in record["totals"] if "fiber_mode" not in total]
              == ["sluice", "genten-a", "genten-b", "genten-c"], f"{record['totals']}")
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "300x200x100", "--nnz", 3000, "-q")
    record = bench("mttkrp", path, "-r", "1,16", "-t", "1,2", "--precision", "all", "--isa", "all",
                   "--kernel", "genten", "-n", 1)
    check_mttkrp(record, 3, 3000)
    sets = {total["instruction_set"] for total in record["totals"]}
    check(len(record["totals"]) == 2 * 2 * 2 * len(sets) * 3, f"{record['totals']}")
    for name in ("genten-a", "genten-b", "genten-c"):
        record = bench("mttkrp", path, "-r", 4, "-n", 1, "--kernel", name)
        check_mttkrp(record, 3, 3000)
        check([row["kernel"] for row in record["rows"]] == [name] * 3, f"{record['rows']}")
        check(record["all_modes_ms"] == record["totals"][0]["all_modes_ms"], f"{record}")
    only = bench("mttkrp", path, "-r", 4, "-n", 1, "--kernel", "genten", "--mode", 3)
    check([row["mode"] for row in only["rows"]] == [3] * 3, f"{only['rows']}")
    check(all("permute_ms" not in total for total in only["totals"]), f"{only['totals']}")
    out, _ = sluice("bench", "mttkrp", path, "-r", 4, "-n", 1, "--kernel", "all")
    check("sorting in its" in out and "paid back in" in out and "genten-b" in out, out)
    # The budget holds the list of the tensor, but not the list and sluice's own copy.
    path = os.path.join(folder, "y.slc")
    sluice("generate", path, "--dims", "3000x2000x1000", "--nnz", 400000, "-q")
    plan = json.loads(sluice("plan", "--no-probe", path, "-r", 2, "--copies", "never", "--json")[0])
    out, messages = sluice("bench", "mttkrp", path, "-r", 2, "--kernel", "genten-c", "--memory",
                           plan["total_bytes"] + (6 << 20), status=4)
    check(out == "" and "list of 400000 nonzeros" in messages and "MiB of memory or more" in messages, messages)


def check_layouts(path, *args):
    """Every kernel over every suitable layout, in each mode, agrees with the oracle within
    rounding; returns the largest error."""
    sluice("layout", path, "--sorted", "all", "--fiber", "all", "-q")
    record = bench("mttkrp", path, "-t", 2, "-n", 1, "--warm-up", 0, "--kernel", "all", "--layouts",
                   "all", "--check", *args)
    order = len(record["tensor"]["dims"])
    check_mttkrp(record, order, record["tensor"]["nnz"])
    check(all("error" in row for row in record["rows"]), f"{record['rows']}")
    there = {(row["kernel"], row["layout"], row.get("fiber_mode"), row["mode"])
             for row in record["rows"]}
    modes = range(1, order + 1)
    wanted = {(kernel, layout, fibers, mode) for kernel, layout, lists in
              (("sluice", "blco", (None,)), ("sluice", "sorted", (None,)), ("genten-a", "blco", (None,)),
               ("genten-b", "blco", (None,)), ("genten-c", "blco", (None,)),
               ("atomic-fiber", "fiber", modes), ("atomic-nonzero", "fiber", modes),
               *((name, "sorted", (None,)) for name in XPLAT if order >= 3))
              for fibers in lists for mode in modes}
    check(there == wanted, f"{there ^ wanted}")
    return max(row["error"] for row in record["rows"])


def mttkrp_layouts(folder):
    """Each kernel over each layout of small stores and bundled tensors agrees with the oracle."""
    for path, order, nnz in shapes(folder):
        if order % 2 == 0 and nnz > 0:
            continue
        check_layouts(path, "-r", 33 if order == 3 else 3, "--precision", "all" if order == 3 else "f64")
    names = ["splatt-small4", "genten-aminoacid_data"]
    for name in names[:1] if QUICK else names:
        path = os.path.join(folder, name + ".slc")
        sluice("convert", bundled(name), path, "-q")
        check_layouts(path, "-r", 5)
    # Fibers that are whole in `blco` need no other layout.
    path = os.path.join(folder, "whole.slc")
    sluice("generate", path, "--dims", "4x300x200", "--nnz", 100000, "-q")
    record = bench("mttkrp", path, "-r", 4, "-n", 1, "--kernel", "atomic", "--check")
    check([(total["kernel"], total["layout"], total["fiber_mode"]) for total in record["totals"]]
          == [("atomic-fiber", "blco", 2), ("atomic-nonzero", "blco", 2)], f"{record['totals']}")
    check_mttkrp(record, 3, record["tensor"]["nnz"])
    sluice("layout", path, "--sorted", "2", "-q")
    only = bench("mttkrp", path, "-r", 4, "-n", 1, "--mode", 2, "--layouts", "sorted", "--check")
    check([(row["strategy"], row["layout"], row["mode"]) for row in only["rows"]]
          == [("rows", "sorted", 2)], f"{only['rows']}")
    only = bench("mttkrp", path, "-r", 4, "-n", 1, "--mode", 2, "--kernel", "xplat", "--check")
    check([(row["kernel"], row["mode"]) for row in only["rows"]] == [(name, 2) for name in XPLAT], f"{only['rows']}")
    out, messages = sluice("bench", "mttkrp", path, "-r", 2, "--kernel", "xplat-row", status=2)
    check("no layout sorted by mode 1: build it" in messages, messages)
    out, _ = sluice("bench", "mttkrp", path, "-r", 4, "-n", 1, "--kernel", "atomic-fiber", "--check", *SMALL_SET)
    check("fibers of" in out and "error e-15" in out, out)
    out, messages = sluice("bench", "mttkrp", path, "-r", 2, "--layouts", "sorted", status=2)
    check("no layout sorted by mode 1: build it" in messages and "(sluice layout --sorted, --layouts)" in messages, messages)
    # The budget holds the store, but neither further layouts nor a list of 64-bit coordinates.
    path = os.path.join(folder, "large.slc")
    sluice("generate", path, "--dims", "3000x2000x1000", "--nnz", 400000, "-q")
    sluice("layout", path, "--fiber", "all", "-q")
    plan = json.loads(sluice("plan", "--no-probe", path, "-r", 2, "--copies", "never", "--json")[0])
    for part, args in (("the layout with whole fibers of mode", ["--kernel", "atomic-fiber"]),
                       ("the reference results of --check", ["--check"])):
        out, messages = sluice("bench", "mttkrp", path, "-r", 2, *args, "--memory",
                               plan["total_bytes"] + (6 << 20), status=4)
        check(out == "" and part in messages and "MiB of memory or more" in messages, messages)
    path = os.path.join(folder, "sparse.slc")
    sluice("generate", path, "--dims", "3000x2000x1000", "--nnz", 1000, "-q")
    out, messages = sluice("bench", "mttkrp", path, "-r", 2, "--kernel", "atomic-fiber", status=2)
    check("keeps no mode's fibers whole" in messages and f"sluice layout {path} --fiber all" in messages,
          messages)


# Tensors for which the listings of XPLAT are compared with the oracle: those of the short form, and all others.
REAL = (("splatt-small", "splatt-small4", "genten-aminoacid_data"),
        ("parti-3d_dense", "gitlog-petsc-5d", "wordnet30-srs", "cmudict-wpp", "uber-part", "tkg-icews14", "kg-fb15k-237",
         "splatt-med4", "flights-4d"))


def xplat(folder):
    """MTTKRP and TTM by the listings of XPLAT agree with the oracle on real tensors and several ranks."""
    ranks = (1, 7, 16, 33)
    options = ("-r", ",".join(map(str, ranks)), "-n", 1, "--warm-up", 0, "--check")
    compared = 0
    for name in REAL[0] + (REAL[1] if FULL else ()):
        path = os.path.join(folder, name + ".slc")
        try:
            sluice("convert", bundled(name), path, "-q")
        except Skip:
            continue
        compared += 1
        sluice("layout", path, "--sorted", "all", "-q")
        for operation, kernels, more in (("mttkrp", XPLAT, ("--kernel", "xplat")),
                                         ("ttm", IN_MEMORY, ("--temp-dir", folder))):
            record = bench(operation, path, *options, *more)
            order = len(record["tensor"]["dims"])
            errors = {(row["kernel"], row["rank"], row["mode"]): row["error"] for row in record["rows"] if "error" in row}
            check(set(errors) == {(kernel, rank, mode + 1) for kernel in kernels for rank in ranks for mode in range(order)},
                  f"{name}: {errors}")
            check(max(errors.values()) <= 1e-12, f"{name}: {errors}")
    check(compared > 0, "no tensor is there")


def mttkrp_sweep(folder):
    """Measures every rank, number of threads, precision, instruction set and strategy once."""
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "300x200x100", "--nnz", 3000, "-q")
    record = bench("mttkrp", path, "-r", "1,16", "-t", "1,2", "--precision", "all", "--isa", "all",
                   "--conflict", "all", "-n", 1)
    check_mttkrp(record, 3, 3000)
    check("all_modes_ms" not in record, "several combinations have one sum")
    there = {combination(total) for total in record["totals"]}
    check(len(there) == len(record["totals"]), "a combination is listed twice")
    sets = {total["instruction_set"] for total in record["totals"]}
    strategies = {1: ("stream", "direct", "locked", "ordered", "owned"),
                  2: ("stream", "private", "locked", "ordered", "columns", "owned")}
    wanted = {(rank, threads, precision, isa, "sluice", "blco", None, conflict)
              for rank in (1, 16) for threads in (1, 2) for precision in ("f32", "f64")
              for isa in sets for conflict in strategies[threads]}
    check(there == wanted, f"{there ^ wanted}")
    only = bench("mttkrp", path, "-r", 4, "--mode", 2, "-n", 1, "--warm-up", 0)
    check([row["mode"] for row in only["rows"]] == [2], f"{only['rows']}")
    check(only["all_modes_ms"] is None and "copies_iterations" not in only["totals"][0], f"{only}")
    check(only["rows"][0]["strategy"] == "owned", f"{only}")
    only = bench("mttkrp", path, "-r", 4, "--conflict", "stream", "-n", 1)
    check(all(row["strategy"] != "owned" for row in only["rows"]), f"{only}")


def mttkrp_refuses(folder):
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "30x20", "--nnz", 100, "-q")
    plan = json.loads(sluice("plan", "--no-probe", path, "-r", 2, "--copies", "never", "--json")[0])
    without = plan["total_bytes"] + (6 << 20)
    for status, part, args in (
            (2, "the tensor has 2 modes", [path, "-r", 2, "--mode", 3]),
            (2, "direct needs one thread", [path, "-r", 2, "-t", 2, "--conflict", "direct"]),
            (2, "needs a tensor of 3 modes or more", [path, "-r", 2, "--kernel", "xplat"]),
            (2, "'' is not a whole number (in '2,')", [path, "-r", "2,"]),
            (2, "0 is not between 1 and 4096", [path, "-r", "0"]),
            (2, "'x' is not a whole number (in '1,x')", [path, "-r", "2", "-t", "1,x"]),
            (2, "more than 64 numbers", [path, "-r", ",".join(["2"] * 65)]),
            (2, "--rank R[,R..] must be given", [path]),
            (2, "genten-d", [path, "-r", 2, "--kernel", "genten-d"]),
            (4, "MiB of memory or more", [path, "-r", 2, "--memory", "1MiB"]),
            (4, "replicas", [path, "-r", 2, "--memory", without, "--conflict", "owned"]),
            (5, "x-not.slc", [os.path.join(folder, "x-not.slc"), "-r", 2])):
        out, messages = sluice("bench", "mttkrp", *args, status=status)
        check(out == "", out)
        check(part in messages, f"{part!r} is not in {messages!r}")


TTV_FORMS = {"sluice", "keep-empty-fibers", "keep-unused", "drop-unused", "schedule-largest",
             "schedule-file"}
TTV_BASELINES = {"coo", "coo-sorted", "csr"}


def check_ttv(record, order, nnz, threads):
    """Every kernel in every mode agrees with a plain loop within rounding, and its figures are
    consistent."""
    for mode in range(1, order + 1):
        for count in threads:
            rows = {row["kernel"]: row for row in record["rows"]
                    if row["mode"] == mode and row["threads"] == count}
            check(TTV_FORMS | TTV_BASELINES <= set(rows) <= TTV_FORMS | TTV_BASELINES | {"from-tiles"},
                  f"{set(rows)}")
            check(rows["sluice"]["ratio"] == 1, f"{rows['sluice']}")
            for name, row in rows.items():
                check(row["error"] <= 1e-12, f"{row}")
                check(close(row["nnz_per_s"], nnz / row["median_ms"] * 1e3), f"{row}")
                if name in TTV_FORMS:
                    check(row["index_bytes"] in (2, 4) and row["blocks"] >= 1, f"{row}")
                    check(close(row["moved_gb_per_s"],
                                row["moved_bytes"] / row["median_ms"] * 1e-6), f"{row}")
            check(rows["keep-empty-fibers"]["fibers"] == rows["coo"]["dense_fibers"], f"{rows}")
            check(rows["coo"]["fibers"] == rows["sluice"]["fibers"] <= nnz, f"{rows}")
            check(rows["drop-unused"]["shortened"] and not rows["keep-unused"]["shortened"], f"{rows}")


def ttv(folder):
    for path, order, nnz in shapes(folder):
        if nnz == 0:
            out, messages = sluice("bench", "ttv", path, status=2)
            check(out == "" and "has no nonzeros" in messages, messages)
            continue
        record = bench("ttv", path, "-t", "1,3", "-n", 2, "--warm-up", 1)
        check_ttv(record, order, nnz, (1, 3))
        for total in record["totals"]:
            check(total["kernel"] == "from-tiles" or total["modes"] == order, f"{total}")
    record = bench("ttv", os.path.join(folder, "3.slc"), "--kernel", "sluice", "--mode", 2, "-n", 1,
                   "--keep-empty-fibers", "--keep-unused", "--schedule", "file")
    check([row["kernel"] for row in record["rows"]] == ["sluice"], f"{record['rows']}")
    check(record["rows"][0]["fibers"] == record["rows"][0]["dense_fibers"], f"{record['rows']}")
    out, _ = sluice("bench", "ttv", os.path.join(folder, "3.slc"), "--kernel", "baselines", "-n", 1)
    check("coo-sorted" in out and "schedule-file" not in out, out)


# Kernels of bench ttm that keep the result, so that --check can compare it.
IN_MEMORY = ("loop", "xplat-element", "xplat-fiber")


def ttm(folder):
    """Measures both kernels and the baselines in every mode, from a layout of the store or a
    temporary one; the results that are kept agree with the oracle."""
    temp = os.path.join(folder, "temp")
    os.mkdir(temp)
    for path, order, nnz in shapes(folder):
        if nnz == 0:
            out, messages = sluice("bench", "ttm", path, "-r", 3, status=2)
            check(out == "" and "has no nonzeros" in messages, messages)
            continue
        record = bench("ttm", path, "-r", "1,5", "-n", 2, "-t", 2, "--check", "--temp-dir", temp)
        check(os.listdir(temp) == [], f"left: {os.listdir(temp)}")
        rows = {(row["mode"], row["rank"], row["kernel"]): row for row in record["rows"]}
        check(list(rows) == [(n, r, k) for n in range(1, order + 1) for r in (1, 5)
                             for k in ("fiber", "nonzero", *IN_MEMORY)],
              f"{list(rows)}")
        for (mode, rank, _), row in rows.items():
            check(close(row["ratio"], row["median_ms"] / rows[mode, rank, "loop"]["median_ms"]),
                  f"{row}")
            check(close(row["gflop_per_s"], 2e-6 * nnz * rank / row["median_ms"]), f"{row}")
            check(close(row["nnz_per_fiber"], nnz / row["fibers"]), f"{row}")
            check(("error" in row) == (row["kernel"] in IN_MEMORY) and row.get("error", 0) <= 1e-13, f"{row}")
        check(order > 1 or rows[1, 5, "fiber"]["fibers"] == 1, f"{rows}")
    # Tiles of a layout fiber-n end with a fiber, before they are full.
    path = os.path.join(folder, "fibers.slc")
    sluice("generate", path, "--dims", "40x300x200", "--nnz", 100000, "-q")
    sluice("layout", path, "--fiber", 1, "-q")
    record = bench("ttm", path, "-r", 3, "-n", 1, "--warm-up", 0, "--mode", 1, "--check", "--temp-dir", temp)
    check({row["layout"] for row in record["rows"]} == {"fiber"}, f"{record['rows']}")
    check(max(row.get("error", 0) for row in record["rows"]) <= 1e-13, f"{record['rows']}")
    path = os.path.join(folder, "3.slc")
    out, messages = sluice("bench", "ttm", path, "-r", 3, "-n", 1, "--mode", 2, "--precision", "f32",
                           "--json")
    check([row["kernel"] for row in json.loads(out)["rows"]] == ["fiber", "nonzero", "xplat-element", "xplat-fiber"], out)
    check("no loop" in messages, messages)
    for status, part, args in ((2, "the tensor has 3 modes", [path, "-r", 3, "--mode", 4]),
                               (4, "MiB of memory or more", [path, "-r", 3, "--memory", "1MiB"]),
                               (5, "x-not.slc", [os.path.join(folder, "x-not.slc"), "-r", 3])):
        out, messages = sluice("bench", "ttm", *args, status=status)
        check(out == "" and part in messages, messages)


def fpga(folder):
    """The model gets the right numbers of fibers and slices, and its figures are consistent."""
    temp = os.path.join(folder, "temp")
    os.mkdir(temp)
    for path, order, nnz in shapes(folder):
        record = bench("fpga", path, "-r", "1,40", "--temp-dir", temp, "--dsps", 60)
        check(os.listdir(temp) == [], f"left: {os.listdir(temp)}")
        cells = [line.split()[:order] for line in sluice("export", path, "-")[0].splitlines() if line[:1] != "#"]
        check(len(cells) == nnz, f"{cells}")
        designs = ("ttm", "ttm-on-chip") + (("mttkrp",) if order == 3 else ())
        check([(row["design"], row["mode"], row["rank"]) for row in record["rows"]] ==
              [(d, n, r) for d in designs for n in range(1, order + 1) for r in (1, 40)], f"{record['rows']}")
        for row in record["rows"]:
            two = row["design"] == "mttkrp"
            mode = (2 if row["mode"] == 3 else 3) if two else row["mode"]
            fibers = len({tuple(cell[:mode - 1] + cell[mode:]) for cell in cells})
            check(row["fibers"] == fibers, f"{row}: {fibers} fibers")
            check(not two or row["slices"] == len({cell[row["mode"] - 1] for cell in cells}), f"{row}")
            check(row["dsps"] == (1 + two) * row["rank"], f"{row}")
            if row["dsps"] > 60:
                check(row["fit"] == "does not fit: DSPs" and "cycles" not in row, f"{row}")
                continue
            check(row["fit"] == "fits" and row["cycles"] > row["beats"] > 0, f"{row}")
            check(close(row["ms"], row["cycles"] / 450e3), f"{row}")
            check(close(row["gflop_per_s"], 2e-6 * row["rank"] * (nnz + two * fibers) / row["ms"]), f"{row}")
            check(close(row["peak_gflop_per_s"], 0.9 * row["dsps"]), f"{row}")
            check(close(row["peak_share"], row["gflop_per_s"] / row["peak_gflop_per_s"]), f"{row}")
    path = os.path.join(folder, "3.slc")
    same = next(row for row in bench("fpga", path, "-r", 8, "--mode", 1)["rows"] if row["design"] == "mttkrp")
    given = bench("fpga", "-r", 8, "--counts", f"{same['slices']},{same['fibers']},50,4")["rows"]
    check(given[2] == {key: value for key, value in same.items() if key != "mode"}, f"{given}, {same}")
    args = ["fpga", path, "-r", 40, "--mode", 3, "--unroll", 8, "--clock", 100]
    rows = bench(*args)["rows"]
    check([row["dsps"] for row in rows] == [8, 8, 16] and close(rows[0]["ms"], rows[0]["cycles"] / 1e5), f"{rows}")
    out, _ = sluice("bench", *args, "--ram-blocks", rows[2]["ram_blocks"])
    check(out.count("does not fit: RAM blocks") == 2 and "MAC lanes" in out, out)
    for status, part, args in ((2, "the tensor has 3 modes", [path, "-r", 3, "--mode", 4]),
                               (2, "above 0 MHz", [path, "-r", 3, "--clock", 0]),
                               (2, "either a store or --counts", ["-r", 3]),
                               (2, "either a store or --counts", [path, "-r", 3, "--counts", "1,1,1,1"]),
                               (2, "--counts needs 4 numbers", ["-r", 3, "--counts", "1,1,1"]),
                               (2, "at least as many fibers", ["-r", 3, "--counts", "2,1,3,1"]),
                               (2, "at least as many nonzeros", ["-r", 3, "--counts", "1,3,2,1"]),
                               (5, "x-not.slc", [os.path.join(folder, "x-not.slc"), "-r", 3])):
        out, messages = sluice("bench", "fpga", *args, status=status)
        check(out == "" and part in messages, messages)


def ttv_refuses(folder):
    """Empty fibers that exceed the budget are omitted with a note, or rejected if requested
    explicitly."""
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "1000000x1000000x1000000", "--nnz", 100, "-q")
    out, messages = sluice("bench", "ttv", path, "--mode", 1, "-n", 1, "--memory", "64MiB")
    check("1e+12 fibers" in messages and "keep-empty-fibers" not in out, messages + out)
    for status, part, args in ((4, "1e+12 fibers, including empty ones", [path, "--keep-empty-fibers"]),
                               (2, "the tensor has 3 modes", [path, "--mode", 4]),
                               (2, "largst", [path, "--schedule", "largst"]),
                               (4, "MiB of memory or more", [path, "--memory", "10KiB"]),
                               (5, "x-not.slc", [os.path.join(folder, "x-not.slc")])):
        out, messages = sluice("bench", "ttv", *args, status=status)
        check(out == "" and part in messages, messages)


ROOFLINE_KERNELS = ("mttkrp-copies", "mttkrp-stream")


def moved_bytes(row, order, value):
    """Returns the bytes per nonzero that an MTTKRP transfers, by form, as documented in the man
    page."""
    vary = None if row["form"] == "plain" else [int(mode) for mode in row["form"].split(",")]
    each, run = value, 0 if vary is None else 4
    for mode in range(1, order + 1):
        moved = 4 + row["rank"] * (16 if mode == row["mode"] else value)
        each += moved if vary is None or mode in vary else 0
        run += moved if vary is not None and mode not in vary else 0
    return each + run / row["nnz_per_run"]


def check_roofline_row(record, row, order, nnz):
    value = 4 if record["precision"] == "f32" else 8
    if row["kernel"] == "sptv":
        check(row["flop"] == 2 * nnz, f"{row}")
        # Small integers, and mode sizes that fit in 16 bits.
        lanes = nnz * (4 + 2 + 8 + 10 / row["nnz_per_run"])
        few = nnz * (8 + 4 + 8 + 4 + 4 / row["nnz_per_run"])
        check(close(row["bytes"], lanes) or nnz <= 256 and close(row["bytes"], few), f"{row}")
        check(row["form"] == str(row["mode"]) and row["strategy"] == "fibers", f"{row}")
        return
    if row["kernel"].startswith("ttm-"):
        check(row["flop"] == 2 * nnz * row["rank"], f"{row}")
        each, sums = value + 4 + row["rank"] * value, 16 * row["rank"]
        fiber = row["kernel"] == "ttm-fiber"
        check(close(row["bytes"], nnz * (each + (4 * (order - 1) + sums) / row["nnz_per_run"]
                                         if fiber else each + 4 + sums)), f"{row}")
        check(row["form"] == (str(row["mode"]) if fiber else "plain"), f"{row}")
        return
    check(row["flop"] == nnz * order * row["rank"], f"{row}")
    check(close(row["bytes"], nnz * moved_bytes(row, order, value)), f"{row}")
    check(row["min_ms"] <= row["median_ms"] <= row["max_ms"], f"{row}")
    check(row["nnz_per_run"] >= 1 and row["strategy"], f"{row}")
    if nnz == 0:
        check(row["flop_per_byte"] is None and row["gflop_per_s"] == 0, f"{row}")
        return
    check(close(row["flop_per_byte"], row["flop"] / row["bytes"]), f"{row}")
    check(close(row["gflop_per_s"], row["flop"] / row["min_ms"] * 1e-6), f"{row}")
    level = [level for level in record["levels"] if level["level"] == row["roof"]]
    peak = [peak for peak in record["peaks"] if peak["precision"] == record["precision"]]
    roof = min(peak[0]["gflop_per_s"], row["flop_per_byte"] * level[0]["gb_per_s"])
    check(close(row["roof_gflop_per_s"], roof), f"{row}")
    check(close(row["roof_share"], row["gflop_per_s"] / roof), f"{row}")


def roofline(folder):
    """The record has a row per kernel, rank and mode, and rows of the bounds, with consistent
    positions."""
    temp = os.path.join(folder, "temp")
    os.mkdir(temp)
    for path, order, nnz in shapes(folder):
        if order % 2 == 0 and nnz > 0 and not FULL:
            continue  # one order suffices in quick runs: this is the longest test here
        more = ["--precision", "f32", "-t", 1, "-n", 2] if order == 3 else ["-t", 2, "-n", 1]
        record = bench("roofline", path, "-r", "1,5", "--warm-up", 0, "--bounds",
                       "--temp-dir", temp, *more)
        check(os.listdir(temp) == [], f"left: {os.listdir(temp)}")
        check([peak["precision"] for peak in record["peaks"]] == ["f64", "f32"], f"{record}")
        check(record["levels"][-1]["level"] == "memory", f"{record['levels']}")
        check(all(row["gb_per_s"] > 0 for row in record["levels"]), f"{record['levels']}")
        check(all(row["gflop_per_s"] > 0 for row in record["peaks"]), f"{record['peaks']}")
        # A tensor of one mode has no replicas.
        kernels = ROOFLINE_KERNELS if order > 1 else ROOFLINE_KERNELS[1:]
        wanted = [(k, r, n) for k in kernels for r in (1, 5) for n in range(1, order + 1)]
        if record["precision"] == "f64" and nnz > 0:
            wanted += [("sptv", 1, n) for n in range(1, order + 1)]
        if nnz > 0:
            wanted += [(k, r, n) for k in ("ttm-fiber", "ttm-nonzero") for r in (1, 5)
                       for n in range(1, order + 1)]
        rows = {(row["kernel"], row["rank"], row["mode"]): row for row in record["rows"]}
        check(list(rows) == wanted, f"{list(rows)}")
        bounds = {(row["case"], row["kernel"], row["rank"], row["mode"]): row
                  for row in record["bounds"]}
        check(len(bounds) == (2 * len(wanted) if nnz > 0 else 0), f"{list(bounds)}")
        for key, row in rows.items():
            check(row["case"] == "given" and row["tensor"] == os.path.basename(path)[:-4], f"{row}")
            check_roofline_row(record, row, order, nnz)
            if nnz == 0:
                continue
            best, worst = bounds[("best", *key)], bounds[("worst", *key)]
            check_roofline_row(record, best, order, nnz)
            check_roofline_row(record, worst, order, nnz)
            check(row["best_gflop_per_s"] == best["gflop_per_s"], f"{row}, {best}")
            check(row["worst_gflop_per_s"] == worst["gflop_per_s"], f"{row}, {worst}")
            check(row["position"] == ("above best" if row["gflop_per_s"] > best["gflop_per_s"] else
                                      "below worst" if row["gflop_per_s"] < worst["gflop_per_s"]
                                      else "between"), f"{row}")
        if nnz > 0:
            check_roofline_bounds(record["tensors"][0], order, nnz)


def check_roofline_bounds(tensor, order, nnz):
    """The same number of nonzeros; the worst case has the same size in every mode, the best cases of
    a mode are dense slices with long fibers, and dense fibers of the length of a square root."""
    worst = tensor["worst"]
    check(worst["nnz"] == nnz and worst["dims"] == [nnz] * order, f"{worst}")
    cases = [(best["distribution"], best["mode"]) for best in tensor["best"]]
    check(cases == [(name, n) for name in ("dense-slices", "dense-fibers") for n in range(1, order + 1)], f"{cases}")
    for best in tensor["best"]:
        own, others = best["dims"][best["mode"] - 1], math.prod(best["dims"]) // best["dims"][best["mode"] - 1]
        scatter = 4 if order > 1 else 1
        if best["distribution"] == "dense-slices":
            last = order - 1 if best["mode"] < order else order - 2
            length = max(math.ceil(nnz ** (1 / order) - 1e-9), min(math.isqrt(nnz), 256)) if order > 1 else 1
            check(order == 1 or best["dims"][last] == length, f"{best}")
            even = (nnz / length) ** (1 / max(order - 1, 1)) + 2
            check(all(size <= (scatter if n + 1 == best["mode"] else 1) * even
                      for n, size in enumerate(best["dims"]) if n != last or order == 1), f"{best}")
            check(own // scatter * others >= nnz, f"{best}")
        else:
            check(own == (math.ceil(nnz ** 0.5) if order > 1 else nnz), f"{best}")
            check(own * others >= nnz * scatter ** (order - 1), f"{best}")
        check(best["nnz"] == nnz, f"{best}")


# Operations, loads and stores of table 2 of the paper, for one thread: C columns, f fibers of a slice, z nonzeros of
# a fiber or slice. Then those of table 3, for the tensor: F fibers, S slices, Z nonzeros.
TABLE_2 = {("ttm", "element-centric"): lambda C, f, z: (2 * z, 2 + 3 * z, 1),
           ("ttm", "fiber-centric"): lambda C, f, z: (2 * C * z, 2 + z * (C + 2), C),
           ("mttkrp", "element-centric"): lambda C, f, z: (2 * (f + z), 3 * (1 + z + f), 1),
           ("mttkrp", "row-centric"): lambda C, f, z: (2 * C * (f + z), (C + 2) * (f + z) + 3, C)}
TABLE_3 = {"ttm": lambda C, S, F, Z: (2 * C * Z, F + Z * (C + 2) + 1, F * C),
           "mttkrp": lambda C, S, F, Z: (2 * C * (F + Z), S + 2 + (C + 2) * (F + Z), S * C)}
AI_MIN = {"ttm": 1 / 12, "mttkrp": 1 / 10}
AI_MAX = {"element-centric": 1 / 6}  # 1/2 for all others


def per_byte(counts):
    """Equation 4 of the paper."""
    return 0.25 * counts[0] / (counts[1] + counts[2])


def check_intensity(row, coords):
    """Compares a row with the tables, evaluated by hand from the coordinates of a tensor of 3 modes."""
    mttkrp, mode = row["operation"] == "mttkrp", row["mode"] - 1
    fiber_mode = max(n for n in range(3) if n != mode) if mttkrp else mode
    check(row["fiber_mode"] == fiber_mode + 1, f"{row}")
    places = {}
    for each in coords:
        unit = (each[mode],) if mttkrp else each[:mode] + each[mode + 1:]
        places.setdefault(unit, []).append(each[:fiber_mode] + each[fiber_mode + 1:])
    units = [(len(set(fibers)), len(fibers)) for fibers in places.values()]
    fibers = sum(f for f, z in units)
    check(row["fibers"] == fibers and row.get("slices") == (len(units) if mttkrp else None), f"{row}")
    C = row.get("rank", 1)
    if row["form"] == "fpga":
        counts = TABLE_3[row["operation"]](C, len(units), fibers, len(coords))
    else:
        threads = [TABLE_2[row["operation"], row["form"]](C, f, z) for f, z in units]
        counts = tuple(map(sum, zip(*threads)))
        check(close(row["least_flop_per_byte"], min(map(per_byte, threads))), f"{row}")
        check(close(row["most_flop_per_byte"], max(map(per_byte, threads))), f"{row}")
    check((row["operations"], row["loads"], row["stores"]) == counts, f"{row}, not {counts}")
    check(close(row["flop_per_byte"], per_byte(counts)), f"{row}")
    check(close(row["ai_min"], AI_MIN[row["operation"]]), f"{row}")
    check(close(row["ai_max"], AI_MAX.get(row["form"], 1 / 2)), f"{row}")
    check(row["ai_min"] <= row["flop_per_byte"] <= row["ai_max"], f"{row}")


def intensity(folder):
    """The arithmetic intensity and its bounds are those of tables 2 and 3 of the paper, also with
    several blocks, with layouts of fibers, and from best cases."""
    path = [os.path.join(folder, f"{n}.slc") for n in range(4)]
    sluice("generate", path[0], "--dims", "30x400x50", "--nnz", 5000, "--dist", "zipf:1.1", "--block-bytes", "4KiB", "-q")
    sluice("layout", path[0], "--fiber=2", "-q")
    sluice("generate", path[1], "--dims", "20x9x200", "--nnz", 2000, "--dist", "dense-fibers:3", "-q")
    sluice("generate", path[2], "--dims", "50x9x20", "--nnz", 1801, "--dist", "dense-slices:1", "--relabel", "frequency", "-q")
    sluice("generate", path[3], "--dims", "5x4x3x6", "--nnz", 100, "-q")
    record = bench("roofline", *path, "-r", "1,16", "-n", 1, "--warm-up", 0, "-t", 1, "--kernel", "ttm-nonzero")
    for tensor in path[:3]:
        text = sluice("export", tensor, "-", "-q")[0]
        coords = [tuple(map(int, line.split()[:3])) for line in text.splitlines() if not line.startswith("#")]
        rows = [row for row in record["intensity"] if row["tensor"] == os.path.basename(tensor)[:-4]]
        check(len(rows) == 2 * 3 * 5, f"{rows}")
        for row in rows:
            check_intensity(row, coords)
    # With 4 modes, a fiber of an MTTKRP has two indices and two rows: one more product per column.
    row = [row for row in record["intensity"] if row["tensor"] == "3" and row["form"] == "row-centric"][1]
    slices, fibers = row["slices"], row["fibers"]
    check((row["rank"], row["operations"], row["loads"], row["stores"])
          == (16, 16 * (2 * 100 + 3 * fibers), 18 * 100 + 35 * fibers + 3 * slices, 16 * slices), f"{row}")
    sluice("generate", path[0], "--dims", "9000000x9000000x9", "--nnz", 100, "-q", "-f")
    out, messages = sluice("bench", "roofline", path[0], "-r", 2, "-n", 1, "--warm-up", 0, "-t", 1, "--memory", "160MiB",
                           "--kernel", "ttm-nonzero", *SMALL_SET, "--json")
    record = json.loads(out)
    told = [(item["kernel"], item["mode"]) for item in record["left_out"] if "of 9000000 slices" in item["why"]]
    check(told == [("intensity", n) for n in (1, 2, 3)] and record["intensity"] == [], f"{record['left_out']}")
    check("intensity at rank 2 is left out: " in messages, messages)


def attributes(tree):
    return [value for element in tree.iter() for value in element.attrib.values()]


def roofline_picture(folder):
    """The picture is well-formed XML without external references and has a marker per row, for any
    file name."""
    svg = os.path.join(folder, "roofs.svg")
    odd = os.path.join(folder, "a<b>&c\"d\x01.slc")
    other = os.path.join(folder, "other")
    os.mkdir(other)
    sluice("generate", odd, "--dims", "30x20x10", "--nnz", 300, "-q")
    sluice("generate", os.path.join(other, "x.slc"), "--dims", "30x20", "--nnz", 100, "-q")
    sluice("generate", os.path.join(folder, "x.slc"), "--dims", "30x20", "--nnz", 100, "-q",
           "--rank", 2)
    with open(svg, "w") as file:
        file.write("before")
    record = bench("roofline", odd, os.path.join(other, "x.slc"), os.path.join(folder, "x.slc"),
                   "-r", "2,3", "-t", 1, "-n", 1, "--warm-up", 0, "--bounds", "--svg", svg)
    names = [tensor["name"] for tensor in record["tensors"]]
    check(names == [os.path.basename(odd)[:-4], os.path.join(other, "x"), os.path.join(folder, "x")],
          f"{names}")
    for tensor, kind in ((2, "f64"), (1, "f32")):
        types = {best["value_type"] for best in record["tensors"][tensor]["best"]}
        check(types == {kind} and record["tensors"][tensor]["worst"]["value_type"] == kind, f"{record['tensors'][tensor]}")
    tree = ElementTree.parse(svg).getroot()
    check(tree.tag == "{http://www.w3.org/2000/svg}svg", tree.tag)
    tags = {element.tag.split("}")[1] for element in tree.iter()}
    check(tags == {"svg", "title", "style", "rect", "text", "path", "circle", "polygon", "g"}, f"{tags}")
    check(not any("://" in value or "url(" in value for value in attributes(tree)), "a reference")
    style = tree.find("{*}style").text
    check("prefers-color-scheme:dark" in style and "url(" not in style and "@import" not in style, style)
    markers = [element for element in tree.iter() if element.get("class") == "marker"]
    rows = record["rows"] + record["bounds"]
    check(len(markers) == len(rows), f"{len(markers)} markers for {len(rows)} rows")
    for row in rows:
        name = row["tensor"].replace("\x01", "?")
        title = f"{name}, {row['case']}: {row['kernel']}, mode {row['mode']}, rank {row['rank']}: "
        check(any(marker[0].text.startswith(title) for marker in markers), title)
    texts = [element.text for element in tree.iter() if element.tag.endswith("}text")]
    for part in [level["level"] + " " for level in record["levels"]] + ["peak f64", "peak f32"]:
        check(any(text and text.startswith(part) for text in texts), f"{part}: {texts}")
    for name in names:
        for rank in (2, 3):
            label = name.replace("\x01", "?") + f", rank {rank}"
            check(label in texts, f"no {label!r} in the legend: {texts}")
    check(os.listdir(folder).count("roofs.svg.tmp") == 0, "the temporary file is left")
    out, _ = sluice("bench", "roofline", odd, "-r", 2, "-t", 1, "-n", 1, "--warm-up", 0, "--kernel", "mttkrp-stream")
    check("peak GFLOP/s" in out and "mttkrp-stream" in out and "mttkrp-copies" not in out, out)


def roofline_refuses(folder):
    path, svg = os.path.join(folder, "x.slc"), os.path.join(folder, "x.svg")
    sluice("generate", path, "--dims", "9000x9000x9000", "--nnz", 9000, "-q")
    for status, part, args in (
            (2, "needs X.slc ..", []),
            (2, "--rank R[,R..] must be given", [path]),
            (2, "unexpected argument", [path] * 9 + ["-r", 2]),
            (2, "unknown kernel", [path, "-r", 2, "--kernel", "spmv", "--svg", svg]),
            (5, "x-not.slc", [path, os.path.join(folder, "x-not.slc"), "-r", 2, "--svg", svg]),
            (5, "x.svg.tmp", [path, "-r", 2, "--svg", os.path.join(folder, "not", "x.svg")]),
            (5, "temporary files", [path, "-r", 2, "--bounds", "--temp-dir",
                                    os.path.join(folder, "not")]),
            (4, "MiB of memory or more", [path, "-r", 2, "-n", 1, "-t", 1, "--memory", "1MiB"])):
        out, messages = sluice("bench", "roofline", *args, *SMALL_SET, status=status)
        check(out == "", out)
        check(part in messages, f"{part!r} is not in {messages!r}")
        check(os.listdir(folder) == ["x.slc"], f"left: {os.listdir(folder)}")
    for isa in ("portable", "neon"):
        done = run_command(["bench", "roofline", path, "-r", "2", "-n", "1", "-t", "1", "--isa", isa, *SMALL_SET,
                            "--json"])
        if done.returncode == 0:
            record = json.loads(done.stdout)
            check(all(peak["instruction_set"] == isa for peak in record["peaks"]), f"{record}")
        else:
            check(done.returncode == 2 and "does not support" in done.stderr, done.stderr)
    if QUICK:
        return  # a sanitizer's memory changes the budget
    # Sorting for TTM needs the most memory: only its rows are missing, with a reason.
    plan = json.loads(sluice("plan", "--no-probe", path, "-r", 2, "-t", 1, "--json")[0])
    out, messages = sluice("bench", "roofline", path, "-r", 2, "-n", 1, "-t", 1, "--memory",
                           plan["minimum_bytes"] + (6 << 20), "--warm-up", 0, *SMALL_SET,
                           "--json")
    record = json.loads(out)
    kernels = {row["kernel"] for row in record["rows"]}
    check("mttkrp-stream" in kernels and "ttm-fiber" not in kernels, f"{record['rows']}")
    told = [(item["kernel"], item["mode"]) for item in record["left_out"]]
    check([("ttm-fiber", n) for n in (1, 2, 3)] == [t for t in told if t[0] == "ttm-fiber"], f"{told}")
    check("is left out: " in messages and "MiB of memory or more" in record["left_out"][-1]["why"], messages)
    # A kernel that does not fit is omitted, and bounds are reduced to fit; both are reported.
    sluice("generate", path, "--dims", "300x200x100", "--nnz", 300000, "-f", "-q")
    plan = json.loads(sluice("plan", "--no-probe", path, "-r", 1, "-t", 1, "--copies", "always", "--json")[0])
    tight = plan["total_bytes"] - plan["copies_bytes"] // 2
    out, messages = sluice("bench", "roofline", path, "-r", 1, "-n", 1, "-t", 1, "--memory", tight,
                           "--bounds", "--warm-up", 0, *SMALL_SET, "--json")
    record = json.loads(out)
    check("replicas need" in messages, messages)
    check("instead of 300000 nonzeros" in messages, messages)
    kernels = {row["kernel"] for row in record["rows"]}
    check("mttkrp-stream" in kernels and "mttkrp-copies" not in kernels, f"{record['rows']}")
    told = [item for item in record["left_out"] if item["kernel"] == "mttkrp-copies" and item["case"] == "given"]
    check([item["mode"] for item in told] == [1, 2, 3] and "replicas need" in told[0]["why"], f"{told}")
    check(0 < record["tensors"][0]["worst"]["nnz"] < 300000, f"{record['tensors']}")


def codec(folder):
    """Sizes match the format, rates match times, and no files are left."""
    for path, order, nnz in shapes(folder):
        temp = path + ".tmp"
        os.mkdir(temp)
        record = bench("codec", path, "-n", 2, "--temp-dir", temp)
        check(os.listdir(temp) == [], f"{os.listdir(temp)}")
        check(record["sample_nnz"] == nnz, f"{record}")
        check([row["codec"] for row in record["codecs"]] == ["packed", "lz4", "blco"], f"{record}")
        cells = math.prod(record["tensor"]["dims"])
        for row in record["codecs"]:
            if nnz == 0:
                check(row["bits_per_nnz"] is None and row["over_bound_bits"] is None, f"{row}")
                continue
            check(close(row["bits_per_nnz"], row["index_bits_per_nnz"] + row["value_bits_per_nnz"]),
                  f"{row}")
            check(close(row["bound_bits_per_nnz"], math.log2(math.e * cells / nnz)), f"{row}")
            check(close(row["over_bound_bits"],
                        row["index_bits_per_nnz"] - row["bound_bits_per_nnz"]), f"{row}")
        for row in record["rows"]:
            check(row["encode_min_ms"] <= row["encode_median_ms"] <= row["encode_max_ms"], f"{row}")
            check(row["encode_instruction_set"] in (row["instruction_set"], "portable"), f"{row}")
            check(close(row["encode_nnz_per_s"], nnz / row["encode_median_ms"] * 1e3), f"{row}")
            check(close(row["encode_ceiling_share"],
                        row["encode_gb_per_s"] / row["encode_ceiling_gb_per_s"]), f"{row}")
            check(close(row["nnz_per_s"], nnz / row["median_ms"] * 1e3), f"{row}")
            check(close(row["decoded_gb_per_s"], row["nnz_per_s"] * (4 * order + 8) * 1e-9), f"{row}")
            check(close(row["ceiling_share"], row["encoded_gb_per_s"] / row["ceiling_gb_per_s"]),
                  f"{row}")
        pairs = [(row["codec"], row["instruction_set"]) for row in record["rows"]]
        check(len(set(pairs)) == len(pairs) == 3 * len({isa for _, isa in pairs}), f"{pairs}")


def codec_sample(folder):
    """The sample of a larger store has whole tiles; `info` reports the actual cost of the index."""
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "3000x2000x1000", "--nnz", 200000, "-q")
    record = bench("codec", path, "-n", 1, "--isa", "best", "--nnz", 1)
    check(0 < record["sample_nnz"] <= 65536, f"{record['sample_nnz']}")
    fibers, text = os.path.join(folder, "f.slc"), os.path.join(folder, "f.tns")
    sluice("generate", text, "--dims", "3000x20x10", "--nnz", 90000, "-q")
    sluice("convert", text, fibers, "--fibers", "1:12", "-q")
    record = bench("codec", fibers, "-n", 1)
    check(record["sample_nnz"] > 80000 and len(record["codecs"]) == 3, f"{record}")
    record = bench("codec", path, "-n", 1, "--isa", "portable")
    check(record["sample_nnz"] == 200000, f"{record['sample_nnz']}")
    check([(row["instruction_set"], row["encode_instruction_set"]) for row in record["rows"]]
          == [("portable", "portable")] * 3, f"{record['rows']}")
    info = json.loads(sluice("info", path, "--json")[0])
    layout = info["layouts"][0]
    check(close(record["codecs"][0]["index_bits_per_nnz"], layout["index_bits_per_nonzero"]),
          f"{record['codecs'][0]}, {layout}")
    for status, part, args in (
            (5, "x-not.slc", [os.path.join(folder, "x-not.slc")]),
            (5, "temporary files", [path, "--temp-dir", os.path.join(folder, "not")]),
            (2, "is below 1", [path, "--nnz", 0])):
        out, messages = sluice("bench", "codec", *args, status=status)


def convert(folder):
    """Phases and consistent ratios within the budget; no files are left."""
    for path, order, nnz in shapes(folder):
        text, temp = path + ".tns", path + ".tmp"
        sluice("export", path, text)
        os.mkdir(temp)
        more = ["--codec", "blco", "-t", 1, "--fibers", 1] if order % 2 else ["--relabel", "frequency"]
        # Without nonzeros the mode sizes are unknown.
        if nnz == 0:
            out, _ = sluice("bench", "convert", text, "--temp-dir", temp, status=3)
            check(out == "" and os.listdir(temp) == [], f"{os.listdir(temp)}")
            continue
        record = bench("convert", text, "-r", 3, "-n", 2, "--temp-dir", temp, *more)
        check(os.listdir(temp) == [], f"{os.listdir(temp)}")
        check(record["tensor"]["nnz"] == nnz, f"{record}")
        rows = {row["phase"]: row for row in record["rows"]}
        check(list(rows) == ["scan", "convert", "text", "read", "parse", "scatter", "spill", "sort",
                             "encode", "write"], f"{list(rows)}")
        for row in rows.values():
            check(row["min_ms"] <= row["median_ms"] <= row["max_ms"] and row["samples"] == 2, f"{row}")
        check(rows["parse"]["bytes"] == os.path.getsize(text), f"{rows}")
        whole = rows["convert"]["median_ms"]
        check(close(record["over_scan"], whole / rows["scan"]["median_ms"]), f"{record}")
        check(close(record["all_modes_iterations"], whole / record["all_modes_ms"]), f"{record}")
    if QUICK:
        return  # a sanitizer's memory changes the budget
    # Factors of that many columns do not fit although the conversion does.
    text = os.path.join(folder, "long.tns")
    sluice("generate", text, "--dims", "9000x9000x9000", "--nnz", 1000)
    out, messages = sluice("bench", "convert", text, "-r", 4000, "-n", 1, "-t", 1, "--memory", "60MiB",
                           "--temp-dir", temp, "--json")
    check("no MTTKRPs" in messages and "all_modes_ms" not in json.loads(out), messages)
    out, _ = sluice("bench", "convert", text, "-r", 4000, "-n", 1, "-t", 1, "--memory", "60MiB",
                    "--temp-dir", temp)
    check("convert / scan" in out and "MTTKRP" not in out, out)


def convert_refuses(folder):
    bad, temp = os.path.join(folder, "bad.tns"), os.path.join(folder, "temp")
    os.mkdir(temp)
    with open(bad, "w") as file:
        file.write("1 1 1\n1 x 1\n")
    for status, part, args in (
            (2, "which standard input does not allow", ["-"]),
            (3, "bad.tns:2", [bad]),
            (5, "not.tns", [os.path.join(folder, "not.tns")]),
            (5, "temporary files", [bad, "--temp-dir", os.path.join(folder, "not")])):
        out, messages = sluice("bench", "convert", "--temp-dir", temp, *args, status=status)
        check(out == "", out)
        check(part in messages, f"{part!r} is not in {messages!r}")
    check(os.listdir(temp) == [], f"{os.listdir(temp)}")


def io(folder):
    """Raw reads and every method, for every shape; an unavailable method has a note."""
    for path, _order, nnz in shapes(folder):
        record = bench("io", path, "-n", 2, "--warm-up", 0)
        check(record["tensor"]["nnz"] == nnz, f"{record}")
        rows = {row["method"]: row for row in record["rows"]}
        check(set(rows) == {"raw", "read", "uring", "pread", "mmap"}, f"{rows}")
        for row in rows.values():
            if "median_ms" not in row:
                check(row["method"] == "uring" and row["note"], f"{row}")
                continue
            check(row["min_ms"] <= row["median_ms"] <= row["max_ms"], f"{row}")
            check(row["cpu_s_per_gb"] is None or row["cpu_s_per_gb"] >= 0, f"{row}")
    only = bench("io", path, "--io", "pread", "--slots", 3, "-n", 1)
    check([row["method"] for row in only["rows"]] == ["raw", "read", "pread"], f"{only['rows']}")
    check(all(row["reads_in_flight"] == 3 for row in only["rows"]), f"{only['rows']}")


def passes(folder):
    """There is a row per rank and mode, with shares that match its times."""
    for path, order, nnz in shapes(folder):
        record = bench("pass", path, "-r", "1,5", "-n", 2, "--warm-up", 0)
        check(record["tensor"]["nnz"] == nnz, f"{record}")
        there = [(row["rank"], row["mode"]) for row in record["rows"]]
        check(there == [(r, n) for r in (1, 5) for n in range(1, order + 1)], f"{there}")
        for row in record["rows"]:
            for over, share, drive in (("over_bound", "scan_share", "raw_ms"),
                                       ("over_read", "read_share", "read_ms")):
                check(close(row[over],
                            row["median_ms"] / max(row[drive], row["memory_ms"])), f"{row}")
                check(close(row[share],
                            max(row[drive], row["decode_ms"]) / row["median_ms"]), f"{row}")
            check(0 <= row["wait_share"] <= 1, f"{row}")
    many = bench("pass", path, "-r", ",".join(map(str, range(1, 65))), "--mode", 1, "-n", 1, "--warm-up", 0, "-t", 1)
    check([row["rank"] for row in many["rows"]] == list(range(1, 65)), f"{many['rows']}")
    only = bench("pass", path, "-r", 2, "--mode", 1, "--io", "mmap", "--precision", "f32", "-n", 1)
    check([row["mode"] for row in only["rows"]] == [1], f"{only['rows']}")


def named_budgets(folder):
    """The budget that a benchmark names for an in-memory store suffices, and a MiB less does not."""
    if QUICK:
        return  # a sanitizer's memory changes the budget
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "300x200x100", "--nnz", 400000, "--rank", 2, "--noise", 0.1, "-q")
    for kind in (("mttkrp", *SMALL_SET), ("pass", "--mode", 1), ("ttm", "--mode", 1)):
        args = ("bench", kind[0], path, "-r", 3, "-n", 1, "-t", 2, *kind[1:])
        # Try again: a process that is a few pages larger may count as 4 MiB more.
        for _ in range(4):
            _, budget = works_as_named(args, 2)
            less = measured([*args, "--memory", budget - MIB], status=None)
            if less.status == 4:
                break
        check(less.status == 4 and "MiB of memory or more" in less.messages, f"{kind}: {budget - MIB} bytes are enough, too")


def streaming_refuses(folder):
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "30x20", "--nnz", 100, "-q")
    for status, part, args in (
            (2, "the tensor has 2 modes", ["pass", path, "-r", 2, "--mode", 3]),
            (2, "--rank R[,R..] must be given", ["pass", path]),
            (4, "MiB of memory or more", ["pass", path, "-r", 2, "--memory", "1MiB"]),
            (2, "slots requested", ["io", path, "--slots", 1]),
            (5, "x-not.slc", ["io", os.path.join(folder, "x-not.slc")])):
        out, messages = sluice("bench", *args, status=status)
        check(out == "", out)
        check(part in messages, f"{part!r} is not in {messages!r}")


def cpd(folder):
    """The phases of an iteration add up; a tensor without nonzeros is an error, as in sluice cpd."""
    for path, order, nnz in shapes(folder):
        if nnz == 0:
            out, messages = sluice("bench", "cpd", path, "-r", 2, status=1)
            check(out == "" and "no nonzeros" in messages, messages)
            continue
        for more in ([], ["--no-cache", "--deterministic", "--precision", "f32"]):
            record = bench("cpd", path, "-r", 3, "-t", 2, "-n", 1, *more)
            phases = {row["phase"]: row for row in record["rows"]}
            check(len(phases) == 8, f"{phases.keys()}")
            check(close(sum(row["share"] for row in phases.values()), 1), f"{phases}")
            # With one sample the median is that iteration's time.
            check(close(sum(row["median_ms"] for row in phases.values()),
                        record["iteration_median_ms"]), f"{record}")
            check(close(record["dense_share"], phases["update"]["share"] + phases["fit"]["share"]),
                  f"{record}")
            for name, row in phases.items():
                there = name in ("decode", "multiply", "update") or (name == "read wait" and more)
                check((row["ceiling_ms"] is not None) == bool(there), f"{row}")
                check(not there or row["ceiling_ms"] > 0, f"{row}")
            check(close(record["nnz_per_row"], nnz / sum(record["tensor"]["dims"])), f"{record}")
            check((record["read_bytes_per_iteration"] > 0) == bool(more), f"{record}")
            check((record["mttkrps"], record["mttkrps_from_copies"]) == (order, 0), f"{record}")
        record = bench("cpd", path, "-r", 3, "-n", 4, "--warm-up", 2)
        check(all(row["samples"] == 4 for row in record["rows"]), f"{record['rows']}")
        check(record["runs"][0]["iteration_median_ms"] == record["iteration_median_ms"], f"{record}")
        check(record["device"] is None and record["device_work"] is None, f"{record}")
        record = bench("cpd", path, "-r", 3, "-n", 1, "-t", "2,1", "--devices", 0)
        runs = record["runs"]
        check([run["threads"] for run in runs] == [2, 1] and "threads" not in record, f"{runs}")
        check([row["threads"] for row in record["rows"]] == [2] * 8 + [1] * 8, f"{record['rows']}")
        for run in runs:
            check(close(run["over_first"], runs[0]["iteration_median_ms"] / run["iteration_median_ms"]), f"{run}")
            check(close(run["iterations_per_s"] * run["iteration_median_ms"], 1e3), f"{run}")


def cpd_copies(folder):
    """With replicas nothing is streamed; creating them belongs to no iteration."""
    path = os.path.join(folder, "x.slc")
    sluice("generate", path, "--dims", "300x200x100", "--nnz", 30000, "-q")
    # With auto the replicas are created after ten iterations of more than twenty.
    for more, count, owned in ((["--copies", "always", "-n", 3], 3, 3),
                               (["--warm-up", 8, "-n", 14], 14, 12),
                               (["--warm-up", 6, "-n", 14], 14, 0),
                               (["--copies", "never", "--warm-up", 11, "-n", 14], 14, 0)):
        record = bench("cpd", path, "-r", 3, "-t", 2, *more)
        phases = {row["phase"]: row for row in record["rows"]}
        check("copies_fault" not in record, f"{record}")
        check(record["mttkrps"] == 3 * count, f"{record}")
        check(record["mttkrps_from_copies"] == 3 * owned, f"{record}")
        check((record["copies_bytes"] > 0) == (owned > 0), f"{record}")
        check(("copies" in phases) == (owned > 0), f"{record}")
        copies = phases.pop("copies", None)
        check(close(sum(row["share"] for row in phases.values()), 1), f"{phases}")
        if copies is not None:
            check(copies["share"] is None and copies["samples"] == 1, f"{copies}")
            check(copies["ceiling_ms"] > 0, f"{copies}")
        check((phases["decode"]["ceiling_ms"] is None) == (owned == count), f"{phases}")
        for name in ("read wait", "decode", "uneven", "outputs"):
            check(owned < count or phases[name]["max_ms"] == 0, f"{phases[name]}")
        check(phases["multiply"]["min_ms"] > 0, f"{phases}")
    out, _ = sluice("bench", "cpd", path, "-r", 3, "-n", 2, "--copies", "always")
    check("6 of 6 MTTKRPs from replicas" in out and re.search(r"^  copies ", out, re.M), out)
    plan = json.loads(sluice("plan", "--no-probe", path, "-r", 3, "--copies", "always", "--json")[0])
    tight = plan["total_bytes"] - plan["copies_bytes"] // 2
    for status, part, more in ((2, "deterministic", ["--deterministic"]), (2, "caching is disabled", ["--no-cache"]),
                               (4, "MiB of replicas, one per mode", ["--memory", tight])):
        out, messages = sluice("bench", "cpd", path, "-r", 3, "--copies", "always", *more, status=status)
        check(out == "" and part in messages, messages)


tests = [
    ("helps and man page agree", helps_and_man_page),
    ("usage faults", usage),
    ("bench stream", stream),
    ("bench mttkrp: shapes", mttkrp),
    ("bench mttkrp: sweeps", mttkrp_sweep),
    ("bench mttkrp: baselines", mttkrp_baselines),
    ("bench mttkrp: layouts", mttkrp_layouts),
    ("bench mttkrp and ttm: listings of XPLAT", xplat),
    ("bench mttkrp: refusals", mttkrp_refuses),
    ("bench ttv: shapes and switches", ttv),
    ("bench ttv: refusals", ttv_refuses),
    ("bench ttm: shapes and refusals", ttm),
    ("bench fpga: counts, figures and refusals", fpga),
    ("bench roofline: shapes and bounds", roofline),
    ("bench roofline: arithmetic intensity", intensity),
    ("bench roofline: picture", roofline_picture),
    ("bench roofline: refusals", roofline_refuses),
    ("bench codec: shapes", codec),
    ("bench codec: samples and refusals", codec_sample),
    ("bench convert", convert),
    ("bench convert: refusals", convert_refuses),
    ("bench cpd", cpd),
    ("bench cpd: copies per mode", cpd_copies),
    ("bench io", io),
    ("bench pass", passes),
    ("bench io and pass: refusals", streaming_refuses),
    ("budgets that are named", named_budgets),
]
# Cases that other cases cover, too; quick runs omit them.
LONG = {"bench stream", "bench mttkrp: sweeps", "bench roofline: picture", "bench roofline: refusals"}
run([test for test in tests if FULL or test[0] not in LONG])
