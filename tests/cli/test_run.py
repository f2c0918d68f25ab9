#!/usr/bin/env python3
"""plan, mttkrp and cpd: reports, results, logs, exit codes."""

import json
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, SLUICE, Skip, check, load_json, npy, run, sluice  # noqa: E402


def small_store(folder, name="t.slc", dims="30x20x10", nnz=2000, *more):
    store = os.path.join(folder, name)
    sluice("generate", store, "--dims", dims, "--nnz", nnz, "--seed", 3, "-q", *more)
    return store


def npy_header(path):
    """Returns (dtype, shape) of a .npy file, by the format's specification."""
    with open(path, "rb") as file:
        check(file.read(8) == b"\x93NUMPY\x01\x00", f"{path} is no .npy 1.0")
        length = struct.unpack("<H", file.read(2))[0]
        header = eval(file.read(length).decode(), {"__builtins__": {}})  # a literal dictionary
    check(header["fortran_order"] is False, f"{path} is in Fortran order")
    return header["descr"], header["shape"]


def generated(folder):
    """The same seed yields the same tensor, another seed yields another tensor, and text and store
    agree."""
    text, again, other = (os.path.join(folder, n) for n in ("a.tns", "b.tns", "c.tns"))
    base = ("--dims", "50x40x30", "--nnz", 5000)
    sluice("generate", text, *base, "--seed", 1)
    sluice("generate", again, *base, "--seed", 1, "--threads", 1)
    sluice("generate", other, *base, "--seed", 2)
    read = [open(p).read() for p in (text, again, other)]
    check(read[0] == read[1], "the same seed gives another tensor")
    check(read[0] != read[2], "another seed gives the same tensor")
    check(read[0].count("\n") == 5000, "not the number asked for")
    check(len({line.rsplit(" ", 1)[0] for line in read[0].splitlines()}) == 5000, "not distinct")
    sluice("generate", os.path.join(folder, "a.slc"), *base, "--seed", 1)
    out, _ = sluice("export", os.path.join(folder, "a.slc"), "-")
    check(sorted(out.splitlines()) == sorted(read[0].splitlines()), "store and text differ")
    for dist in ("zipf:1.2", "zipf-shuffled:1.2"):
        sluice("generate", os.path.join(folder, "z.slc"), *base, "--dist", dist, "-f", "--rank", 3,
               "--noise", 0.1)
    _, messages = sluice("generate", os.path.join(folder, "n.slc"), "--dims", "2x2", "--nnz", 5,
                         status=2)
    check(not os.path.exists(os.path.join(folder, "n.slc")), "refused, but something is there")


def planned(folder):
    store = small_store(folder)
    out, _ = sluice("plan", store, "-r", 4, "--memory", "1GiB")
    for word in ("Tensor information", "process", "index", "factors", "ring", "passes", "schedule"):
        check(word in out, f"the plan does not tell {word}: {out}")
    plan = json.loads(sluice("plan", store, "-r", 4, "--memory", "1GiB", "--json")[0])
    check(plan["feasible"] is True and plan["passes"] == 3, plan)
    parts = sum(plan[k] for k in ("process_bytes", "index_bytes", "factor_bytes", "output_bytes",
                                  "dense_bytes", "scratch_bytes", "decoder_bytes", "cache_bytes",
                                  "copies_bytes"))
    check(parts + plan["slot_count"] * plan["slot_bytes"] == plan["total_bytes"],
          f"the parts do not add up: {plan}")
    check(plan["minimum_bytes"] <= plan["total_bytes"] <= plan["budget_bytes"] == 1 << 30, plan)
    out, messages = sluice("plan", store, "-r", 4, "--memory", "1MiB", "--json", status=4)
    check(json.loads(out)["feasible"] is False, out)
    check(messages.startswith("sluice: "), messages)
    out, _ = sluice("plan", store, "-r", 4, "--mode", 2)
    check("MTTKRP of mode 2" in out, out)
    sluice("plan", store, "-r", 4, "--mode", 4, status=2)


def reported(folder):
    """The report has SPLATT's form, and run.json the same numbers."""
    store, results = small_store(folder), os.path.join(folder, "out")
    out, messages = sluice("cpd", store, "-r", 3, "-i", 4, "--tol", 0, "-o", results, "-v",
                           "--progress", "never")
    check(messages == "", f"standard error: {messages}")
    order = ["Tensor information", "Factoring", "its =   1", "its =   4", "Final fit: ",
             "stopped by iterations after 4 iterations", "Results", "Timing information", "Resources"]
    places = [out.find(part) for part in order]
    check(-1 not in places and places == sorted(places), f"{dict(zip(order, places))}\n{out}")
    check(len(re.findall(r"^     mode = \d \(", out, re.M)) == 12, "-v: a line per mode")
    record = load_json(os.path.join(results, "run.json"))
    check(record["schema"] == "sluice-run-1" and record["rank"] == 3, record)
    check(record["command"][:3] == ["sluice", "cpd", store], record["command"])
    check(record["options"]["iters"] == 4 and record["options"]["seed"] == 0, record["options"])
    check(len(record["iterations"]) == record["iterations_done"] == 4, "iterations")
    check(record["reason"] == "iterations", record["reason"])
    check(record["peak_memory_bytes"] <= record["plan"]["budget_bytes"], "memory")
    fit = re.search(r"Final fit: ([\d.-]+)", out)[1]
    check(abs(float(fit) - record["fit"]) < 1e-8, f"{fit} and {record['fit']}")
    for n, rows in enumerate((30, 20, 10)):
        check(npy_header(os.path.join(results, f"mode-{n + 1}.npy")) == ("<f8", (rows, 3)), "npy")
    check(npy_header(os.path.join(results, "lambda.npy")) == ("<f8", (3,)), "lambda.npy")
    _, messages = sluice("cpd", store, "-r", 3, "-i", 1, "-o", results, "--precision", "f32")
    check(f"run.json belongs to an earlier run (seed 0, fit {record['fit']:.6g})" in messages, messages)
    check("earlier run" not in sluice("cpd", store, "-r", 3, "-i", 1, "-o", results + "2")[1], "a fresh folder")
    check(npy_header(os.path.join(results, "mode-1.npy")) == ("<f4", (30, 3)), "f32 npy")


def outputs(folder):
    """-s, --ktensor, the default folder, --nowrite; an unwritable output is reported first."""
    store = small_store(folder)
    stem, kten = os.path.join(folder, "s_"), os.path.join(folder, "k.txt")
    sluice("cpd", store, "-r", 2, "-i", 2, "-s", stem, "--ktensor", kten, "-q")
    for name in ("s_mode1.mat", "s_mode2.mat", "s_mode3.mat", "s_lambda.mat", "k.txt", "s_run.json"):
        check(os.path.exists(os.path.join(folder, name)), f"{name} is missing")
    with open(kten) as file:
        check(file.readline().strip() == "ktensor", "no ktensor")
    before = set(os.listdir(folder))
    sluice("cpd", "t.slc", "-r", 2, "-i", 1, "-q", cwd=folder)
    check(set(os.listdir(folder)) - before == {"t.r2"}, "the default folder is t.r2")
    check(set(os.listdir(os.path.join(folder, "t.r2"))) ==
          {"mode-1.npy", "mode-2.npy", "mode-3.npy", "lambda.npy", "run.json"}, "files of t.r2")
    before = set(os.listdir(folder))
    sluice("cpd", "t.slc", "-r", 2, "-i", 1, "-q", "--nowrite", cwd=folder)
    check(set(os.listdir(folder)) == before, "--nowrite wrote")
    out, messages = sluice("cpd", store, "-r", 2, "-o", os.path.join(folder, "no", "where"), status=5)
    check("its =" not in out, "the fault was found after the work")
    _, messages = sluice("cpd", store, "-r", 2, "-o", kten, status=2)
    check("is a file" in messages, messages)


def quiet_and_progress(folder):
    store = small_store(folder)
    args = ("cpd", store, "-r", 2, "-i", 3, "--tol", 0, "--nowrite")
    check(sluice(*args, "-q") == ("", ""), "-q speaks")
    out, messages = sluice(*args)
    check(len(re.findall(r"^its = ", messages, re.M)) == 3, f"no plain lines: {messages}")
    check("\r" not in messages and "\033" not in messages, "a live line without a terminal")
    check(sluice(*args, "--progress", "never")[1] == "", "--progress never")
    done = subprocess.run([SLUICE, *map(str, args)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    check(done.stdout.count("its =   1") == 1, "the same line twice in one stream")
    check("its =   1" in sluice(*args, "--progress", "always")[1], "--progress always")


def terminal():
    """A pseudo terminal, which a minimal chroot may not have."""
    try:
        return pty.openpty()
    except OSError as reason:
        raise Skip(f"no pseudo terminal here: {reason}") from reason


def live_line(folder):
    """On a terminal a live line, erased before the report continues; NO_COLOR is respected."""
    store = small_store(folder, nnz=1500000, dims="3000x2000x1000")
    for environment, colour in (({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True)):
        master, slave = terminal()
        child = subprocess.Popen([SLUICE, "cpd", store, "-r", "256", "-i", "1000", "--tol", "0",
                                  "--nowrite", "--no-cache", "-t", "1"], stdout=subprocess.DEVNULL,
                                 stderr=slave, env={**os.environ, **environment})
        os.close(slave)
        text, asked = b"", False
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            text += piece
            # Waits until the line is visible and then stops the run, so that the speed of the
            # machine does not matter.
            if not asked and b"block " in text and b"its = " in text:
                child.send_signal(signal.SIGINT)
                asked = True
        os.close(master)
        check(child.wait() == 130, "exit")
        check(b"block " in text and b"nnz/s" in text and b"ETA" in text, f"no live line: {text[:200]}")
        before, message, after = text.partition(b"sluice: stopping")
        check(message and before.endswith(b"\r\x1b[K"), f"not wiped: {before[-80:]}")
        check(after.endswith((b"once\r\n", b"\r\x1b[K")), f"not wiped: {after[-80:]}")
        master, slave = terminal()
        child = subprocess.Popen([SLUICE, "cpd"], stderr=slave, env={**os.environ, **environment})
        os.close(slave)
        child.wait()
        message = os.read(master, 65536)
        os.close(master)
        check((b"\x1b[31m" in message) == colour, f"colour: {message}")


def load_first(path):
    with open(path) as file:
        return json.loads(file.readline())


def json_log(folder):
    store, path = small_store(folder), os.path.join(folder, "log")
    sluice("cpd", store, "-r", 2, "-i", 3, "--tol", 0, "-o", os.path.join(folder, "o"), "-q",
           "--log-json", path)
    with open(path) as file:
        events = [event for event in map(json.loads, file) if event["event"] != "progress"]
    check([e["event"] for e in events] == ["start", "plan"] + ["iteration"] * 3 + ["results", "end"], events)
    check(all(e["schema"] == "sluice-log-1" for e in events), "schema")
    for number, event in enumerate(events[2:5], 1):
        check(event["iteration"] == number and event["seconds"] > 0, event)
        check(isinstance(event["fit"], float) and event["bytes_read"] >= 0, event)
    check(events[-1]["reason"] == "iterations" and events[-1]["iterations"] == 3, events[-1])
    other = os.path.join(folder, "input.tns")
    for text in ("1 1 1 1\n", "{\"schema\":\"sluice-run-1\"", "\0"):
        with open(other, "w") as file:
            file.write(text)
        _, messages = sluice("cpd", store, "-r", 2, "-i", 1, "--nowrite", "-q", "--log-json", other, status=2)
        with open(other) as file:
            check(file.read() == text and "not a log of sluice" in messages, f"{text!r}: {messages}")
    for text in ("", "{\"schema\":"):  # empty, or torn
        with open(other, "w") as file:
            file.write(text)
        sluice("cpd", store, "-r", 2, "-i", 1, "--nowrite", "-q", "--log-json", other)
        check(load_first(other)["event"] == "start", "not begun anew")
    check("/dev/stdout" in sluice("cpd", store, "-r", 2, "--nowrite", "--log-json", "-", status=2)[1], "-")
    _, messages = sluice("cpd", store, "-r", 2, "--log-json", folder, "--nowrite", status=5)
    check(folder in messages, messages)
    sluice("cpd", store, "-r", 2, "-i", 2, "--nowrite", "-q", "--log-json", path, "--memory", "1MiB",
           status=4)
    with open(path) as file:
        started, ended = map(json.loads, file.readlines()[-2:])
    check(started["event"] == "start" and ended["reason"] == "budget" and ended["exit_code"] == 4, "the end of a refused run")


def starts(folder):
    """Effects of --seed, --init and --mode-order."""
    store = small_store(folder)

    def fits(*more):
        out = os.path.join(folder, "o")
        sluice("cpd", store, "-r", 3, "--tol", 0, "-o", out, "-q", "--deterministic", *more)
        return [i["fit"] for i in load_json(os.path.join(out, "run.json"))["iterations"]]

    check(fits("-i", 3) == fits("-i", 3, "--seed", 0, "-t", 1), "the default seed is 0")
    check(fits("-i", 3) != fits("-i", 3, "--seed", 1), "the seed is ignored")
    check(fits("-i", 3, "--mode-order", "1,2,3") == fits("-i", 3), "the default order is 1,2,3")
    check(fits("-i", 3, "--mode-order", "3,1,2") != fits("-i", 3), "the mode order is ignored")
    check(fits("--maxiters", 2) == fits("-i", 3)[:2], "--maxiters is --iters")
    ten = fits("-i", 10)
    fits("-i", 5)
    shutil.copytree(os.path.join(folder, "o"), os.path.join(folder, "start"))
    more = fits("-i", 5, "--init", os.path.join(folder, "start"))
    check(abs(more[-1] - ten[-1]) < 1e-6, f"going on from a folder: {more[-1]}, {ten[-1]}")
    said = sluice("cpd", store, "-r", 4, "--init", os.path.join(folder, "start"), "--nowrite", status=3)[1]
    check("start has a model of rank 3, but this run has rank 4" in said, said)
    sluice("cpd", store, "-r", 3, "--init", os.path.join(folder, "absent"), "--nowrite", status=5)
    sluice("cpd", store, "-r", 3, "--mode-order", "1,2", "--nowrite", status=2)
    sluice("cpd", store, "-r", 3, "--mode-order", "1,2,4", "--nowrite", status=2)


def check_seconds_told(modes, out):
    """Forecasts and trials of every second MTTKRP are in run.json, and -v prints the same once."""
    for mode in modes:
        check(mode["second"]["chosen"] in [c["conflict"] for c in mode["second"]["candidates"]], mode)
        told = re.findall(rf"mode = {mode['mode']} conflicts as second mode of a pass: (.*)", out)
        check(len(told) == 1 and told[0].endswith("; " + mode["second"]["chosen"]), told)
        for candidate in mode["second"]["candidates"]:
            text = f"{candidate['conflict']} {candidate['predicted_ns']:.2f}"
            if candidate["measured_ns"] is not None:
                text += f" (measured {candidate['measured_ns']:.2f})"
            check(text in told[0], f"{text!r} is not in {told[0]!r}")


def two_modes_a_pass(folder):
    """--passes: fewer passes, the same fit, reported by plan, report and run.json."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "300x200x250", "--nnz", 80000, "--rank", 3, "--seed", 5)
    sluice("cpd", store, "-r", 3, "--passes", "both", status=2)
    _, messages = sluice("plan", store, "-r", 3, "--passes", "fused", "--copies", "always", status=2)
    check("replicas make no passes" in messages, messages)
    sluice("layout", store, "--sorted", "all", "-q")

    def run(*more):
        out, _ = sluice("cpd", store, "-r", 3, "-i", 4, "--tol", 0, "-t", 2, "--no-cache",
                        "-o", os.path.join(folder, "o"), "-v", *more)
        return out, load_json(os.path.join(folder, "o", "run.json"))

    out, plain = run("--passes", "plain")
    check("fused" not in out.split("Timing")[0], out)
    out, fused = run("--passes", "fused")
    check("  fused        1+2 (" in out and "two modes per pass" in out, out)
    check("in 2 passes at" in out and "in 1 pass at" in out, out)
    _, auto = run()
    check([i["passes"] for i in plain["iterations"]] == [3] * 4, plain["iterations"])
    check([i["passes"] for i in fused["iterations"]] == [2, 1, 2, 1], fused["iterations"])
    check(fused["plan"]["passes"] == auto["plan"]["passes"] == 1.5, auto["plan"])
    check(fused["plan"]["fused"]["modes"] == [1, 2, 3], fused["plan"]["fused"])
    check(plain["plan"]["fused"]["reason"] == "not asked", plain["plan"]["fused"])
    check([mode["second"] for mode in plain["conflicts"]] == [None] * 3, plain["conflicts"])
    check_seconds_told(fused["conflicts"], out)
    check(fused["plan"]["fused"]["other_read_bytes"] == plain["plan"]["iteration_read_bytes"],
          fused["plan"]["fused"])
    check(fused["counters"]["bytes_read"] == 4 * fused["plan"]["iteration_bytes"] <
          plain["counters"]["bytes_read"], "bytes read")
    for a, b in zip(plain["iterations"], fused["iterations"]):
        check(abs(a["fit"] - b["fit"]) < 1e-10, f"another fit: {a}, {b}")
    out, _ = sluice("plan", "--no-probe", store, "-r", 3, "--copies", "never")
    check("fused        no: two modes per pass would read 0 B per iteration" in out, out)
    plan = json.loads(sluice("plan", "--no-probe", store, "-r", 3, "--passes", "fused", "--mode-order", "2,3,1",
                             "--json")[0])
    check(plan["fused"]["mode_order"] == [2, 3, 1], plan["fused"])
    parts = sum(plan[k] for k in ("process_bytes", "index_bytes", "factor_bytes", "output_bytes",
                                  "dense_bytes", "scratch_bytes", "decoder_bytes", "cache_bytes"))
    check(parts + plan["slot_count"] * plan["slot_bytes"] + plan["fused"]["second_bytes"] ==
          plan["total_bytes"], f"the parts do not add up: {plan}")


def stops(folder):
    store = small_store(folder)
    out, _ = sluice("cpd", store, "-r", 2, "-i", 500, "--tol", 1e-3, "--nowrite")
    check("stopped by tol" in out, out)
    out, _ = sluice("cpd", store, "-r", 2, "-i", 1000000, "--tol", 0, "--maxsecs", 0.5, "-o",
                    os.path.join(folder, "o"), status=75)
    check(load_json(os.path.join(folder, "o", "run.json"))["reason"] == "time", "reason")


def check_copies_told(record, out, after):
    """Times of passes and the sort of replicas, in run.json and with -v."""
    for n, mode in enumerate(record["conflicts"], 1):
        check((mode["chosen"] == "owned") == (after == 0), f"{mode}")
        check((mode["candidates"] == []) == (after == 0), f"{mode}")
        check((record["plan"]["conflicts"][n - 1] == "owned") == (after == 0), f"{record['plan']}")
        copy = mode["copy"]
        check((copy is None) == (after is None), f"{mode}")
        if copy is None:
            continue
        check(copy["from_iteration"] == after + 1, f"{copy}")
        check(set(copy["varying"]) < {1, 2, 3} and copy["nnz_per_run"] >= 1, f"{copy}")
        check(copy["tried"] == 0, f"{copy}: too few nonzeros to try forms on")
        form = "plain; " if copy["varying"] == [] else \
            f"runs of {copy['nnz_per_run']:.2f} nonzeros, in which "
        varying = re.search(f"mode = {n} copy: {re.escape(form)}(?:modes? ([\\d,]+) var(?:y|ies); )?", out)
        check(varying and (varying[1] or "") == ",".join(map(str, copy["varying"])), f"{copy} {out}")


def copies(folder):
    """Replicas per mode: when they are created, how they are reported, and the same fit."""
    store = small_store(folder)
    fits = {}
    for when, after in (("never", None), ("auto", 10), ("always", 0)):
        target = os.path.join(folder, f"copies-{when}")
        out, _ = sluice("cpd", store, "-r", 4, "-i", 25, "--tol", 0, "--copies", when, "-o", target, "-v")
        record = load_json(os.path.join(target, "run.json"))
        check(record["copies_after"] == after, f"{when}: {record['copies_after']}")
        check((record["plan"]["copies_bytes"] > 0) == (when != "never"), f"{record['plan']}")
        check(("one per mode, after iteration" in out) == (after is not None), out)
        told = re.findall(r"replicas are complete[^\n]*\n(?: +mode = \d copy: [^\n]*\n){3} +its = +(\d+)", out)
        check(told == ([] if after is None else [str(after + 1)]), f"{told}")
        check_copies_told(record, out, after)
        check(("conflicts 1:owned 2:owned 3:owned\n" in out) == (when == "always"), out)
        fits[when] = record["fit"]
    check(abs(fits["auto"] - fits["never"]) < 1e-9, f"{fits}")
    check(abs(fits["always"] - fits["never"]) < 1e-9, f"{fits}")
    # With half of the memory that replicas need, -v and `plan` report for a long run what is
    # missing.
    plan = json.loads(sluice("plan", "--no-probe", store, "-r", 4, "--json")[0])
    tight = ("-r", 4, "--memory", plan["total_bytes"] - plan["copies_bytes"] // 2)
    missed = r"copies +none: replicas need [\d.]+ [KMG]iB, the budget has [\d.]+ [KMG]iB left"
    check(re.search(missed, sluice("plan", "--no-probe", store, *tight)[0]), "missing in the plan")
    for more, tells in (("-v -i 25", True), ("-i 25", False), ("-v -i 20", False)):
        out, _ = sluice("cpd", store, *tight, "--tol", 0, "--nowrite", *more.split())
        check(bool(re.search(missed, out)) == tells, f"{more}: {out}")
    plan = json.loads(sluice("plan", "--no-probe", store, *tight, "--json")[0])
    check(plan["copies_wanted_bytes"] > plan["copies_room_bytes"] > plan["copies_bytes"] == 0, f"{plan}")
    # No replicas: there are too few iterations for them, or caching is off.
    for more in (("-i", 20), ("-i", 25, "--no-cache"), ("-i", 25, "--deterministic")):
        out, _ = sluice("cpd", store, "-r", 4, "--tol", 0, "--nowrite", *more)
        check("one per mode, after" not in out, out)
    _, messages = sluice("cpd", store, "-r", 4, "--copies", "always", "--deterministic", status=2)
    check("deterministic" in messages, messages)
    _, messages = sluice("cpd", store, "-r", 4, "--copies", "always", "--no-cache", status=2)
    check("caching is disabled" in messages, messages)


def pinned(folder):
    """--pin binds threads as run.json reports, if there are enough processors, and does not change
    the result."""
    store, allowed = small_store(folder), sorted(os.sched_getaffinity(0))
    threads = min(len(allowed), 4)
    fits = set()
    for pin in ("never", "always", "auto"):
        results = os.path.join(folder, pin)
        out, _ = sluice("cpd", store, "-r", 2, "-i", 2, "-t", threads, "--pin", pin, "-o", results,
                        "--deterministic")
        record = load_json(os.path.join(results, "run.json"))
        places, machine = record["plan"]["pinned_to"], record["machine"]
        fits.add(record["fit"])
        check(machine["processors"] == len(allowed), f"{machine}")
        check(1 <= machine["numa_nodes"] <= machine["cores"] <= machine["processors"], f"{machine}")
        check(record["plan"]["pin"] == pin, record["plan"])
        check(pin != "never" or places is None, f"{pin}: {places}")
        check(pin != "always" or len(set(places)) == threads and set(places) <= set(allowed),
              f"{pin}: {places}")
        check(("not pinned" in out) == (places is None), out)
    check(len(fits) == 1, f"fits {fits}")

    def one_processor():
        os.sched_setaffinity(0, allowed[-1:])

    for threads, places in ((0, allowed[-1:]), (1, allowed[-1:]), (3, None)):
        done = subprocess.run([SLUICE, "cpd", store, "-r", "2", "-i", "1", "-t", str(threads), "--pin",
                               "always", "-o", results], preexec_fn=one_processor, capture_output=True)
        check(done.returncode == 0, done.stderr)
        check(load_json(os.path.join(results, "run.json"))["plan"]["pinned_to"] == places,
              f"{threads} threads")


def imagined(folder):
    """hwloc describes a machine of two nodes; workers are bound to those of its processors that
    exist here."""
    if "by hwloc" not in sluice("--version")[0]:
        raise Skip("built without hwloc")
    if not {0, 1} <= os.sched_getaffinity(0):
        raise Skip("processors 0 and 1 are not both allowed")
    store, results = small_store(folder), os.path.join(folder, "out")
    for pin in ("auto", "never"):
        sluice("cpd", store, "-r", 2, "-i", 2, "-t", 2, "--pin", pin, "-o", results,
               env={**os.environ, "HWLOC_SYNTHETIC": "node:2 core:1 pu:1"})
        record = load_json(os.path.join(results, "run.json"))
        check(record["machine"]["numa_nodes"] == 2, f"{record['machine']}")
        check(record["plan"]["pinned_to"] == ([0, 1] if pin == "auto" else None), record["plan"])


def conflicts(folder):
    """Choice of strategies: forecast, tried if it pays off, reported by -v and stored in run.json."""
    store = small_store(folder)
    for more in ((), ("--deterministic",)):
        target = os.path.join(folder, "small")
        out, _ = sluice("cpd", store, "-r", 4, "-i", 2, "-t", 2, "-v", "-o", target, *more)
        modes = load_json(os.path.join(target, "run.json"))["conflicts"]
        check([m["mode"] for m in modes] == [1, 2, 3], f"{modes}")
        check("measured" not in out, out)
        for mode in modes:
            names = [c["conflict"] for c in mode["candidates"]]
            check(sorted(names) == ([] if more else ["locked", "private"]), f"{mode}")
            check(all(c["measured_ns"] is None for c in mode["candidates"]), f"{mode}")
            check(mode["chosen"] == ("ordered" if more else names[0]), f"{mode}")
        check(out.count("conflicts: ") == (0 if more else 3), out)

    # A large mode, and enough tiles with narrow windows of it.
    store = small_store(folder, "long.slc", "600000x20x50", 8500000)
    base = ("-r", 8, "-t", 2)
    plan = json.loads(sluice("plan", "--no-probe", store, *base, "--json")[0])
    check(plan["trials"] in (["locked", None, None], ["private", None, None]), f"{plan}")
    check(plan["untried"] == [None] * 3, f"{plan}")
    check(": measured first)" in sluice("plan", "--no-probe", store, *base)[0], "no trial in the plan")
    least = json.loads(sluice("plan", "--no-probe", store, *base, "--json", "--memory", "400MiB")[0])
    check(least["trials"] == [None] * 3 and least["untried"][0] is not None, f"{least}")
    check("(no memory to measure" in sluice("plan", "--no-probe", store, *base, "--memory", "400MiB")[0], "not reported")
    # With replicas from the start there are no passes for trials.
    check(": measured first)" not in sluice("plan", "--no-probe", store, *base, "--copies", "always")[0], "nothing to try")
    plan = json.loads(sluice("plan", "--no-probe", store, *base, "--copies", "always", "--json")[0])
    check(plan["conflicts"] == ["owned"] * 3 and plan["trials"] == [None] * 3, f"{plan}")
    target = os.path.join(folder, "long")
    out, _ = sluice("cpd", store, *base, "-i", 2, "--tol", 0, "-v", "-o", target)
    mode = load_json(os.path.join(target, "run.json"))["conflicts"][0]
    times = {c["conflict"]: c["measured_ns"] for c in mode["candidates"]}
    check(min(times.values()) == times[mode["chosen"]] > 0, f"{mode}")
    check(re.search(r"mode = 1 conflicts: .*measured.*measured.*; " + mode["chosen"], out), out)
    out, _ = sluice("cpd", store, *base, "-i", 1, "--nowrite", "-v", "--deterministic")
    check("measured" not in out and "conflicts: " not in out, out)
    out, _ = sluice("mttkrp", store, "--mode", 1, "--factors", target, "-t", 2, "-o",
                    os.path.join(folder, "m.npy"))
    check(re.search(r"mode = 1 conflicts: .*measured.*measured", out), out)


def no_threads_of_blas(folder):
    """The command ends the threads started by OpenBLAS: it waits for its input with as many threads
    as without them."""
    runs = []
    for threads in ("1", "4"):
        runs.append(subprocess.Popen([SLUICE, "convert", "-", os.path.join(folder, threads + ".slc"), "-q", "-t", "1"],
                                     stdin=subprocess.PIPE, env=dict(os.environ, OPENBLAS_NUM_THREADS=threads)))
    alike = 0  # consecutive equal observations; remaining threads never reach it
    for _ in range(400):
        counts = [len(os.listdir(f"/proc/{run.pid}/task")) for run in runs]
        alike = alike + 1 if counts[0] == counts[1] else 0
        if alike == 10:
            break
        time.sleep(0.05)
    for run in runs:
        run.communicate(b"1 1 1 1\n")
    check([run.returncode for run in runs] == [0, 0], f"{[run.returncode for run in runs]}")
    check(alike == 10, f"threads: {counts}")


def mttkrp(folder):
    """The sums of mode 1 of a tensor with few nonzeros equal those computed by hand."""
    store, factors = os.path.join(folder, "t.slc"), os.path.join(folder, "f")
    sluice("convert", "-", store, input="1 1 1 2\n1 2 3 3\n2 1 3 5\n")
    sluice("cpd", store, "-r", 2, "-i", 0, "-o", factors, "-q")
    other = os.path.join(folder, "other.tns")
    with open(other, "w") as file:
        file.write("1 1 1 1\n")
    for args in (("mttkrp", store, "--mode", 1, "--factors", factors, "-o", other), ("cpd", store, "-r", 2, "--ktensor", other)):
        _, messages = sluice(*args, status=2)
        with open(other) as file:
            check(file.read() == "1 1 1 1\n" and "not overwritten" in messages, messages)

    def matrix(path):
        _, shape = npy_header(path)
        with open(path, "rb") as file:
            data = file.read()[-8 * shape[0] * shape[1]:]
        flat = struct.unpack(f"<{shape[0] * shape[1]}d", data)
        return [flat[i * shape[1]:(i + 1) * shape[1]] for i in range(shape[0])]

    b, c = (matrix(os.path.join(factors, f"mode-{n}.npy")) for n in (2, 3))
    result = os.path.join(folder, "m.npy")
    out, messages = sluice("mttkrp", store, "--mode", 1, "--factors", factors, "-o", result)
    check("Timing information" in out and "Resources" in out, out)
    got = matrix(result)
    for r in range(2):
        want = (2 * b[0][r] * c[0][r] + 3 * b[1][r] * c[2][r], 5 * b[0][r] * c[2][r])
        check(abs(got[0][r] - want[0]) < 1e-12 and abs(got[1][r] - want[1]) < 1e-12, f"{got} {want}")
    npy(os.path.join(factors, "lambda.npy"), [2, -0.75], 2)
    weighted = os.path.join(folder, "weighted.npy")
    sluice("mttkrp", store, "--mode", 1, "--factors", factors, "-o", weighted, "--weights", "-q")
    check(matrix(weighted) == [(2 * a, -0.75 * b) for a, b in got], f"{matrix(weighted)} {got}")
    os.remove(os.path.join(factors, "lambda.npy"))
    _, messages = sluice("mttkrp", store, "--mode", 1, "--factors", factors, "-o", weighted, "--weights", status=2)
    check("no lambda.npy" in messages, messages)
    os.remove(os.path.join(factors, "mode-1.npy"))
    check(sluice("mttkrp", store, "--mode", 1, "--factors", factors, "-o", result, "-q") == ("", ""),
          "-q speaks, or the factor of the mode itself is read")
    sluice("mttkrp", store, "--mode", 2, "--factors", factors, "-o", result, status=5)
    sluice("mttkrp", store, "--mode", 4, "--factors", factors, "-o", result, status=2)
    shutil.copy(os.path.join(factors, "mode-2.npy"), os.path.join(factors, "mode-3.npy"))
    _, messages = sluice("mttkrp", store, "--mode", 1, "--factors", factors, "-o", result, status=3)
    check("mode-3.npy" in messages, messages)


def checked(folder):
    """check: valid stores, damaged ones with file, block and offset, paths that are no stores."""
    store = small_store(folder)
    check("is sound" in sluice("check", store)[0], "check")
    check("is sound" in sluice("check", "--fast", store)[0], "check --fast")
    path = os.path.join(store, "blco.blk")
    with open(path, "r+b") as file:
        file.seek(5000)
        byte = file.read(1)[0]
        file.seek(5000)
        file.write(bytes([byte ^ 4]))
    for command in (("check", store), ("check", "--fast", store)):
        out, messages = sluice(*command, status=5)
        check("blco.blk: block 0, offset" in out, out)
        check("blco.blk: block 0, offset" in messages, messages)
    out, messages = sluice("cpd", store, "-r", 2, "--nowrite", status=5)
    check("blco.blk: block 0, offset" in messages and "its =" not in out, messages)
    sluice("info", os.path.join(folder, "absent.slc"), status=5)
    sluice("check", folder, status=3)


def not_finite(folder):
    """ttv, ttm, mttkrp and cpd all reject a NaN in their operands and report its position."""
    store, start, out = small_store(folder, dims="4x3x2", nnz=9), os.path.join(folder, "f"), os.path.join(folder, "o")
    os.mkdir(start)
    for mode, rows in ((1, 4), (2, 3), (3, 2)):
        npy(f"{start}/mode-{mode}.npy", [1.0] * rows, rows, 1)
    npy(f"{start}/mode-2.npy", [1.0, 1.0, float("nan")], 3, 1)
    wide = os.path.join(folder, "u.npy")
    npy(wide, [1.0, 1.0, float("inf"), 1.0, 1.0, 1.0], 3, 2)
    for arguments, part in ((["ttv", store, "--mode", 2, "--vector", f"{start}/mode-2.npy", out], "number 3 of the"),
                            (["ttm", store, "--mode", 2, "--matrix", wide, out], "row 2, column 1, counting"),
                            (["mttkrp", store, "--mode", 1, "--factors", start, "-o", out], "number 3 of the"),
                            (["cpd", store, "-r", 1, "--init", start, "-o", out], "number 3 of the")):
        _, message = sluice(*arguments, status=3)
        check(part in message and "finite" in message and ".npy" in message, f"{arguments}: {message}")
        check(not os.path.exists(out), f"{arguments} left something")
    sluice("mttkrp", store, "--mode", 2, "--factors", start, "-o", out, "-q")  # the factor of the mode itself is not read


def long_mode(folder):
    """For ttm in a mode of more than 2^24 indices, the budget that the error names suffices, also
    if few indices occur."""
    store, matrix, out = (os.path.join(folder, name) for name in ("h.slc", "u.npy", "y"))
    length = (1 << 24) + 1000
    sluice("generate", store, "--dims", f"{length}x30x20", "--nnz", 40, "-q", "--fibers", "none")
    sums = {}
    npy(matrix, [], length, 2)
    with open(matrix, "r+b") as file:  # a row for each nonzero; all other rows are zeros
        for number, line in enumerate(sluice("export", store, "-")[0].splitlines()):
            i, j, k, value = line.split()
            file.seek(128 + 16 * (int(i) - 1))
            file.write(struct.pack("<2d", number, -1.0))
            row = sums.setdefault((int(j) - 1, int(k) - 1), [0.0, 0.0])
            row[0] += number * float(value)
            row[1] -= float(value)
        file.truncate(128 + 16 * length)
    command = ["ttm", store, "--mode", 1, "--matrix", matrix, out, "-q"]
    _, message = sluice(*command, status=3)
    check(sluice(*command, "--dry-run", status=3)[1] == message, message)
    products = json.loads(sluice("plan", "--no-probe", store, "-r", 2, "--json")[0])["products"]
    check([(p["ttm_needs_layout"], p["ttm_sorts"]) for p in products]
          == [(True, False), (False, True), (False, True)], f"{products}")
    check(f"ttm needs sluice layout {store} --fiber 1" in sluice("plan", "--no-probe", store, "-r", 2)[0], "plan")
    check("fibers of mode 1" in message and "add the layout first (sluice layout --fiber)" in message, message)
    sluice("layout", store, "--fiber", 1, "-q")
    sluice(*command)
    with open(os.path.join(out, "coords.npy"), "rb") as file:
        coords = list(struct.iter_unpack("<2q", file.read()[128:]))
    with open(os.path.join(out, "rows.npy"), "rb") as file:
        rows = [list(row) for row in struct.iter_unpack("<2d", file.read()[128:])]
    check(len(coords) == len(sums) and dict(zip(coords, rows)) == sums, f"{dict(zip(coords, rows))}, {sums}")


def outputs_in_stores(folder):
    """No command writes its results into a store; its files are unchanged."""
    store, spare = os.path.join(folder, "x.slc"), os.path.join(folder, "y.slc")
    for name in (store, spare):
        sluice("generate", name, "--dims", "9x8x7", "--nnz", 50, "-q")
    factors = os.path.join(folder, "start")
    sluice("cpd", spare, "-r", 1, "-i", 0, "-q", "-o", factors)
    inside = os.path.join(store, "out")
    for arguments in (["cpd", spare, "-r", 1, "-o", store], ["cpd", store, "-r", 1, "-o", inside],
                      ["cpd", store, "-r", 1, "--stem", inside], ["cpd", store, "-r", 1, "--ktensor", inside],
                      ["cpd", store, "-r", 1, "--nowrite", "--log-json", inside],
                      ["ttm", spare, "--mode", 1, "--matrix", factors + "/mode-1.npy", store],
                      ["ttm", store, "--mode", 1, "--matrix", factors + "/mode-1.npy", inside + "/"],
                      ["ttv", spare, "--mode", 1, "--vector", factors + "/mode-1.npy", inside],
                      ["ttv", spare, "--mode", 1, "--vector", factors + "/mode-1.npy", inside, "--dry-run"],
                      ["mttkrp", spare, "--mode", 1, "--factors", factors, "-o", store + "/" + "blco.blk"],
                      ["mttkrp", store, "--mode", 1, "--factors", factors, "-o", inside],
                      ["export", spare, inside, "-f"], ["export", spare, os.path.join(store, "tensor.json"), "-f"],
                      ["convert", "-", inside], ["generate", inside, "--dims", "9x9", "--nnz", 5],
                      ["bench", "roofline", spare, "-r", 1, "--svg", inside]):
        _, message = sluice(*arguments, status=2, input="1 1 1\n")
        check("store, which holds only its own files: name a" in message, f"{arguments}: {message}")
    _, message = sluice("ttv", spare, "--mode", 1, "--vector", factors + "/mode-1.npy", store, "--dry-run", status=5)
    check("the output exists" in message, message)
    sluice("generate", os.path.join(store, "relabelled.slc"), "--dims", "9x9", "--nnz", 5, status=2)
    _, message = sluice("export", spare, store, "-f", status=5)
    check("the output is a folder" in message, message)
    link = os.path.join(folder, "link")
    for name, status in (("blco.blk", 2), ("new", 5)):  # the log is written in place, through links
        os.symlink(os.path.join(store, name), link)
        sluice("cpd", spare, "-r", 1, "-i", 0, "--nowrite", "--log-json", link, status=status)
        os.remove(link)
    check(sorted(os.listdir(store)) == ["blco.blk", "tensor.json"], os.listdir(store))
    sluice("check", store, "-q")


def leftovers(folder):
    """check reports the leftovers of an interrupted layout, and its advice is right."""
    store = small_store(folder)
    sluice("layout", store, "--sorted", 1, "--fiber", 2, "-q")
    with open(os.path.join(store, "tensor.json")) as file:
        whole = file.read()
    sluice("layout", store, "--drop", "sorted-1", "-q")
    for name in ("sorted-1.blk", "sorted-3.blk.tmp", "tensor.json.tmp"):
        with open(os.path.join(store, name), "w") as file:
            file.write(whole)
    out, _ = sluice("check", store)
    check(out.count("left by an interrupted run") == 3 and "is sound: 3 files" in out, out)
    for command in re.findall(r"'sluice (layout .*)' completes the layout", out):
        sluice(*command.split(), "-q")
    out, _ = sluice("check", store)
    check("left by" not in out and "is sound: 5 files" in out, out)
    shutil.copy(os.path.join(store, "blco.blk"), os.path.join(store, "fiber-1.blk"))
    out, _ = sluice("check", store)
    sluice("layout", store, "--drop", re.search(r"--drop (fiber-1)' removes it", out).group(1), "-q")
    check("left by" not in sluice("check", store)[0] and not os.path.exists(os.path.join(store, "fiber-1.blk")), out)


def names_of_files(folder):
    """In names that are not UTF-8, JSON has U+FFFD for each invalid byte, and nothing is lost."""
    odd, told = os.path.join(folder, "a\udcff\n<b>"), os.path.join(folder, "a\ufffd\n<b>")
    try:
        os.mkdir(odd)
    except OSError as refused:
        raise Skip(f"the file system has no such names: {refused}") from refused
    store, out, log, page = (os.path.join(odd, name) for name in ("t.slc", "r", "log", "r.html"))
    sluice("generate", store, "--dims", "30x20x10", "--nnz", 200, "--log-json", log, "-q")
    sluice("cpd", store, "-r", 2, "-i", 2, "-o", out, "-q")
    record = load_json(os.path.join(out, "run.json"))
    check(record["command"][2] == os.path.join(told, "t.slc") == record["tensor"]["path"], f"{record['command']}")
    check(record["options"]["output"] == os.path.join(told, "r") == record["checkpoint"]["folder"], f"{record['options']}")
    check(json.loads(sluice("info", store, "--json")[0])["path"] == os.path.join(told, "t.slc"), "info")
    top = json.loads(sluice("top", out, "--json")[0])
    check(top["run"] == os.path.join(told, "r") and len(top["components"]) == 2, f"{top}")
    sluice("report", out, "-o", page, "-q")
    sluice("watch", out, "--once", "-q")
    text = os.path.join(odd, "t.tns")
    sluice("export", store, text, "-q")
    check(json.loads(sluice("predict", out, text, "--json")[0])["coords"] == os.path.join(told, "t.tns"), "predict")


# Omitted under sanitizers: the tensors are large, and unit tests cover the same code with smaller
# ones.
LONG = ("ttm in a long mode", "conflict strategies")

TESTS = [
    ("generate", generated),
    ("plan", planned),
    ("report and run.json", reported),
    ("outputs", outputs),
    ("outputs in stores", outputs_in_stores),
    ("numbers that are not finite", not_finite),
    ("ttm in a long mode", long_mode),
    ("-q and plain progress", quiet_and_progress),
    ("the live line", live_line),
    ("--log-json", json_log),
    ("starts and orders", starts),
    ("two modes a pass", two_modes_a_pass),
    ("why it stops", stops),
    ("copies per mode", copies),
    ("--pin", pinned),
    ("--pin on an imagined machine", imagined),
    ("conflict strategies", conflicts),
    ("no threads of BLAS", no_threads_of_blas),
    ("mttkrp", mttkrp),
    ("names of files that are not UTF-8", names_of_files),
    ("check and info", checked),
    ("leftovers of interrupted runs", leftovers),
]

run([test for test in TESTS if not QUICK or test[0] not in LONG])
