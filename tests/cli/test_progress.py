#!/usr/bin/env python3
"""Progress of a run on a terminal (tmux), in a pipe and in its JSON log, and its end: every exit
code."""

import bz2
import gzip
import json
import lzma
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, SLUICE, Skip, check, npy, run, sluice  # noqa: E402

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f]")


def generated(folder, nnz=3000, dims="30x20x10"):
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", dims, "--nnz", nnz, "-q")
    return store


def on_terminal(folder, command, wanted, seconds=60):
    """The terminal's contents while the command runs, once all of `wanted` are visible, and at the
    end."""
    if shutil.which("tmux") is None:
        raise Skip("no tmux here")
    done = os.path.join(folder, "done")
    environment = {**os.environ, "TMUX_TMPDIR": folder, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    environment.pop("TMUX", None)
    tmux = ["tmux", "-f", "/dev/null", "-S", os.path.join(folder, "s")]
    line = f"{command}; echo code=$? > {shlex.quote(done)}; sleep 600"
    started = subprocess.run([*tmux, "new-session", "-d", "-x", "160", "-y", "50", line], env=environment,
                             capture_output=True, text=True)
    if started.returncode != 0:
        raise Skip(f"tmux does not start here: {started.stderr}")
    seen, found, end = "", False, time.monotonic() + seconds
    try:
        while time.monotonic() < end and not os.path.exists(done):
            shown = subprocess.run([*tmux, "capture-pane", "-p"], env=environment, capture_output=True, text=True).stdout
            seen = shown if all(word in shown for word in wanted) else seen
            if seen and not found:
                found = True
                subprocess.run([*tmux, "send-keys", "C-c"], env=environment)
            time.sleep(0.02)
        last = subprocess.run([*tmux, "capture-pane", "-p"], env=environment, capture_output=True, text=True).stdout
    finally:
        subprocess.run([*tmux, "kill-server"], env=environment, capture_output=True)
    check(os.path.exists(done), f"it did not end: {last}")
    with open(done) as file:
        return seen, last, file.read().strip()


def terminal_and_pipe(folder):
    """A terminal shows a live line; a pipe gets a plain line for each iteration, without control
    characters."""
    store = generated(folder, nnz=300000 if QUICK else 1500000, dims="3000x2000x1000")
    # An iteration takes longer than the interval of the live line, which shows blocks only within passes.
    args = ["cpd", store, "-r", "256", "--tol", "0", "--nowrite", "--no-cache", "-t", "1", "--copies", "never"]
    command = " ".join(map(shlex.quote, [SLUICE, *args, "-i", "1000"]))
    live, last, code = on_terminal(folder, command, ["of 1000, mode", "block", "nnz/s", "B/s", "ETA"])
    check(re.search(r"its = +\d+ of 1000, mode \d: block \d+ of \d+, .*B/s, .*nnz/s, ETA", live), f"no live line: {live}")
    check("Final fit" in last and "ETA" not in last, f"not wiped: {last}")
    check(code == "code=130", code)
    out, messages = sluice(*args, "-i", 3)
    check(len(re.findall(r"^its = ", messages, re.M)) == 3, messages)
    check(not CONTROL.search(out + messages), f"control characters: {out + messages!r}")


def shown_by_pty(command, term):
    """Returns all bytes that a terminal of this kind receives on standard error."""
    near, far = os.openpty()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=far, env={**os.environ, "TERM": term})
    os.close(far)
    said = b""
    try:
        while piece := os.read(near, 65536):
            said += piece
    except OSError:
        pass  # Linux reports in this way that the other end is closed
    os.close(near)
    check(process.wait(timeout=60) == 0, said)
    return said.decode()


def plain_terminal(folder):
    """A terminal that cannot move its cursor gets lines; one that can gets a live line."""
    store = generated(folder, nnz=200000, dims="3000x2000x1000")
    command = [SLUICE, "cpd", store, "-r", "32", "--tol", "0", "--nowrite", "-t", "1", "-i", "4", "--progress"]
    for term, progress, live in (("dumb", "auto", False), ("xterm", "always", True), ("xterm", "never", False)):
        said = shown_by_pty([*command, progress], term)
        check(bool(CONTROL.search(said.replace("\r\n", "\n"))) == live, f"{term}, {progress}: {said!r}")


def short_runs(folder):
    """A short run writes no lines of phases to a file, unless it is asked to."""
    store, text = generated(folder, nnz=100), os.path.join(folder, "t.tns")
    for args in (("export", store, text, "-f"), ("convert", text, os.path.join(folder, "c.slc"), "-f"), ("check", store)):
        check(sluice(*args)[1] == "", f"{args}: {sluice(*args)[1]}")
        said = sluice(*args, "--progress", "always")[1]
        check(re.match(r"(sluice: after 0\.\ds: \w+\n)+$", said), f"{args}: {said!r}")


def narrow_terminal(folder):
    """A live line stays in its row on 40 columns, over Ctrl-Z and fg, and when the window gets
    narrower."""
    if QUICK or shutil.which("tmux") is None or shutil.which("bash") is None:
        raise Skip("the same as without a sanitizer, or no tmux or bash here")
    store = generated(folder, nnz=300000, dims="3000x2000x1000")
    environment = {**os.environ, "TMUX_TMPDIR": folder, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    environment.pop("TMUX", None)

    def tmux(*words):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", os.path.join(folder, "s"), *words], env=environment,
                              capture_output=True, text=True)

    def until(wanted):
        end = time.monotonic() + 60
        while not wanted(rows := tmux("capture-pane", "-p").stdout.rstrip("\n").split("\n")):
            check(time.monotonic() < end, "\n".join(rows))
            time.sleep(0.05)
        return rows

    def live(rows):
        return [row for row in rows if row.startswith("its =")]

    if tmux("new-session", "-d", "-x", "40", "-y", "12", "bash --norc -i").returncode != 0:
        raise Skip("tmux does not start here")
    try:
        words = [SLUICE, "cpd", store, "-r", "32", "--tol", "0", "--nowrite", "--no-cache", "-t", "1", "-i", "9999"]
        tmux("send-keys", "clear; " + " ".join(map(shlex.quote, words)) + "; echo code=$?", "Enter")
        check(len(live(until(lambda rows: live(rows[-1:])))) == 1, "more than one live line")
        tmux("send-keys", "C-z")
        until(lambda rows: any("Stopped" in row for row in rows))
        tmux("send-keys", "clear; fg; echo code=$?", "Enter")
        check(len(live(until(lambda rows: live(rows[-1:])))) == 1, "more than one live line after fg")
        tmux("resize-window", "-x", "30", "-y", "12")
        time.sleep(1)
        check(len(live(until(lambda rows: live(rows[-1:])))) == 1, "more than one live line in a narrower window")
        tmux("send-keys", "C-c")
        until(lambda rows: "code=130" in rows)
    finally:
        tmux("kill-server")


def every_command(folder):
    """All long commands print progress in plain lines without control characters, are silent with
    -q, and write a log."""
    store, text, log = os.path.join(folder, "t.slc"), os.path.join(folder, "t.tns"), os.path.join(folder, "log")
    npy(os.path.join(folder, "v.npy"), [1.0] * 20, 20)
    npy(os.path.join(folder, "u.npy"), [1.0] * 40, 20, 2)
    path = {name: os.path.join(folder, name) for name in ("v.npy", "u.npy", "f", "out.slc", "out", "m.npy", "again.tns")}
    commands = [
        (["generate", text, "--dims", "30x20x10", "--nnz", 3000, "-f"], ["generate"]),
        (["convert", text, store, "-f"], ["sort"]),
        (["check", store], ["check"]),
        (["layout", store, "--sorted", 1], ["counting fibers", "gathering"]),
        (["cpd", store, "-r", 2, "-i", 3, "-o", path["f"], "--tol", 0], []),
        (["mttkrp", store, "--mode", 1, "--factors", path["f"], "-o", path["m.npy"]], []),
        (["ttv", store, path["out.slc"], "--mode", 2, "--vector", path["v.npy"], "-f"], ["multiply"]),
        (["ttm", store, path["out"], "--mode", 2, "--matrix", path["u.npy"]], []),
        (["export", store, path["again.tns"], "-f"], ["export"]),
    ]
    for args, phases in commands:
        out, messages = sluice(*args, "--progress", "always", "--log-json", log)
        check(not CONTROL.search(out + messages), f"{args[0]}: control characters: {messages!r}")
        for phase in phases:
            check(re.search(rf"^sluice: after [\d.]+s: {phase}$", messages, re.M), f"{args[0]}: no line for {phase}: {messages!r}")
        with open(log) as file:
            events = [json.loads(line) for line in file]
        check(events[0]["event"] == "start" and events[0]["name"] == args[0], f"{args[0]}: {events[0]}")
        check(events[0]["command"][:2] == ["sluice", args[0]] and events[0]["pid"] > 0, events[0])
        check(events[-1]["event"] == "end" and events[-1]["exit_code"] == 0, f"{args[0]}: {events[-1]}")
        check({e["phase"] for e in events if e["event"] == "phase"} >= set(phases), f"{args[0]}: {events}")
        check(all(e["schema"] == "sluice-log-1" for e in events), "schema")
        again = [*args, "--drop", "sorted-1"][:2] + ["--drop", "sorted-1"] if args[0] == "layout" else args
        check(sluice(*again, "-q") == ("", ""), f"{args[0]} -q speaks")


def log_of_the_end(folder):
    """The log reports the progress every second, and the end of a failed or interrupted run."""
    store, log = generated(folder, 200000, "300x200x100"), os.path.join(folder, "log")
    sluice("check", os.path.join(folder, "none.slc"), "--log-json", log, status=5)
    with open(log) as file:
        end = json.loads(file.readlines()[-1])
    check(end["event"] == "end" and end["exit_code"] == 5 and end["reason"] == "io", end)
    child = subprocess.Popen([SLUICE, "cpd", store, "-r", "8", "-i", "100000000", "--tol", "0", "--nowrite", "-q",
                              "--log-json", log])
    deadline = time.monotonic() + 60
    progress = []
    while not progress and time.monotonic() < deadline:
        time.sleep(0.1)
        with open(log) as file:
            progress = [line for line in file if '"progress"' in line and line.endswith("\n")]
    child.send_signal(signal.SIGTERM)
    check(child.wait(60) == 143, "exit")
    check(progress, "no progress in the log")
    now = json.loads(progress[0])
    check(now["completed"] > 0 and 0 < now["fit"] < 1 and now["seconds_left"] > 0, now)
    with open(log) as file:
        end = json.loads(file.readlines()[-1])
    check(end["exit_code"] == 143 and end["reason"] == "signal" and end["iterations"] > 0, end)


def state_of_a_check(folder):
    """SIGUSR1 makes a check report its position, and SIGINT ends it."""
    store = generated(folder, 400000 if QUICK else 3000000, "3000x2000x1000")
    for _ in range(20):
        child = subprocess.Popen([SLUICE, "check", store, "-t", "1", "--progress", "always"], stderr=subprocess.PIPE,
                                 stdout=subprocess.PIPE, text=True)
        child.stderr.readline()
        child.send_signal(signal.SIGUSR1)
        line = child.stderr.readline()
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        if line:
            check(re.match(r"sluice: after [\d.]+s: check: .*B of .*B, .*B/s, ETA", line), line)
            check(child.returncode in (0, 130), f"exit {child.returncode}")
        if line and child.returncode == 130:
            return
    raise Skip("it is through before a signal comes")


def estimates(folder):
    """plan and --dry-run start the work that they estimate, write nothing, and come close to the
    run, which compares by itself."""
    store = generated(folder, 40000, "200x150x100")
    before = sorted(os.listdir(folder))
    plan = json.loads(sluice("plan", store, "-r", 4, "-i", 8, "--json", "--probe-seconds", 60)[0])
    estimate = plan["estimate"]
    check(estimate["iterations"] == 8 and estimate["seconds"] > 0, estimate)
    check(estimate["memory_bytes"] <= estimate["memory_most_bytes"] == plan["total_bytes"], estimate)
    check(estimate["bottleneck"] in ("reading", "computing"), estimate)
    check(json.loads(sluice("plan", store, "-r", 4, "--no-probe", "--json")[0])["estimate"] is None, "--no-probe")
    refused = json.loads(sluice("plan", store, "-r", 4, "--memory", "1MiB", "--json", status=4)[0])
    check(refused["estimate"] is None and not refused["feasible"], refused)
    hasty = json.loads(sluice("plan", store, "-r", 4, "--probe-seconds", 0, "--json")[0])["estimate"]
    check(hasty["seconds"] is None and hasty["judged_after_seconds"] == 0, hasty)
    check(hasty["read_bytes"] == json.loads(sluice("plan", store, "-r", 4, "--json")[0])["estimate"]["read_bytes"], hasty)
    out, messages = sluice("cpd", store, "-r", 4, "-i", 8, "--tol", 0, "-o", os.path.join(folder, "o"), "--dry-run",
                           "--probe-seconds", 60)
    check("Estimate from the first" in out and "bottleneck" in out and "its =" not in out + messages, out)
    check("Estimate" not in sluice("cpd", store, "-r", 4, "--nowrite", "--dry-run", "--no-probe")[0], "--no-probe")
    sluice("cpd", store, "-r", 4, "--nowrite", "--dry-run", "--memory", "1MiB", status=4)
    check(sorted(os.listdir(folder)) == before, f"written: {os.listdir(folder)}")
    log = os.path.join(folder, "log")
    out, _ = sluice("cpd", store, "-r", 4, "-i", 8, "--tol", 0, "-o", os.path.join(folder, "o"), "-v", "--log-json", log)
    check("and actual values" in out, out)
    with open(os.path.join(folder, "o", "run.json")) as file:
        record = json.load(file)
    actual = record["estimate"]["actual"]
    check(actual["read_bytes"] == record["counters"]["bytes_read"] and actual["seconds"] > 0, record["estimate"])
    # Bytes are known in advance; memory follows from the size of a process of the same kind.
    check(estimate["read_bytes"] == record["estimate"]["read_bytes"] == actual["read_bytes"], (estimate, record["estimate"]))
    check(abs(record["estimate"]["memory_bytes"] - actual["memory_bytes"]) <= actual["memory_bytes"] / 4, record["estimate"])
    with open(log) as file:
        check(json.loads(file.readlines()[-1])["estimate"]["actual"] == actual, "the log")
    before = sorted(os.listdir(folder))
    args = ("mttkrp", store, "--mode", 2, "--factors", os.path.join(folder, "o"), "-o", os.path.join(folder, "m.npy"), "--dry-run")
    check("for 1 iteration," in sluice(*args, "--probe-seconds", 60)[0] and "Estimate" not in sluice(*args, "--no-probe")[0], "mttkrp --dry-run")
    sluice(*args, "--memory", "1MiB", status=4)
    check(sorted(os.listdir(folder)) == before, f"written: {os.listdir(folder)}")
    out, _ = sluice(*args[:-1], "--log-json", log)
    check("from the plan) and actual values" in out, out)
    with open(log) as file:
        estimate = json.loads(file.readlines()[-1])["estimate"]
    check(estimate["read_bytes"] == estimate["actual"]["read_bytes"] > 0, estimate)
    # The estimate of the plan alone agrees with that of a trial run: it has no safety margins.
    told = float(re.search(r"memory +([0-9.]+) MiB expected", sluice(*args, "--probe-seconds", 60)[0])[1]) * 2**20
    for memory in (told, estimate["memory_bytes"]):
        check(0.75 * estimate["actual"]["memory_bytes"] <= memory <= 1.25 * estimate["actual"]["memory_bytes"], (told, estimate))
        check(memory <= estimate["memory_most_bytes"] + 2**17, (told, estimate))
    check(estimate["actual"]["memory_bytes"] <= estimate["memory_most_bytes"], estimate)


def unprobed(folder):
    """A plan continues without an estimate if its tensor cannot be factorized, and fails like the
    run if it cannot be read."""
    text, store = os.path.join(folder, "o.tns"), os.path.join(folder, "o.slc")
    for rows in ("1 1 0\n2 2 0\n", "1 1 1e200\n2 2 1e200\n"):
        with open(text, "w") as file:
            file.write(rows)
        sluice("convert", text, store, "-f", "-q")
        out, messages = sluice("plan", store, "-r", 2, "--json")
        check(json.loads(out)["estimate"] is None and "time not estimated" in messages, (out, messages))
    store = generated(folder)
    blocks = os.path.join(store, "blco.blk")
    with open(blocks, "r+b") as file:
        file.seek(4096 + 100)
        byte = file.read(1)
        file.seek(4096 + 100)
        file.write(bytes([byte[0] ^ 1]))
    sluice("plan", store, "-r", 2, status=5)
    sluice("plan", store, "-r", 2, "--no-probe")


def exported(folder, store, ending):
    """The size of this form of a store or run."""
    path = os.path.join(folder, "sized" + ending)
    sluice("export", store, path, "-q")
    size = os.path.getsize(path)
    os.remove(path)
    return size


def sliced(folder, store, *args):
    """Returns the size of a slice of a store, made with these options."""
    path = os.path.join(folder, "sized.slc")
    sluice("slice", store, path, *args, "-q")
    size = sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))
    shutil.rmtree(path)
    return size


def dry_runs(folder):
    """--dry-run of commands that process whole files: nothing is written, budgets and free space
    are checked, bytes are close to the actual ones."""
    text, store, out = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "out"))
    sluice("generate", text, "--dims", "3000x2000x100", "--nnz", 60000, "-q")
    sluice("convert", text, store, "-q")
    size = sum(os.path.getsize(os.path.join(store, name)) for name in os.listdir(store))
    run = os.path.join(folder, "run")
    sluice("cpd", store, "-r", 4, "-i", 2, "-o", run, "-q")
    factors = sum(os.path.getsize(os.path.join(run, f"mode-{n}.npy")) for n in (1, 2, 3))
    listed = {path: os.stat(os.path.join(folder, path)).st_mtime_ns for path in os.listdir(folder)}
    commands = [(["convert", text, out + ".slc"], os.path.getsize(text), size), (["check", store], size, 0),
                (["export", store, out + ".tns"], size, os.path.getsize(text)),
                (["slice", store, out + ".slc", "--mode", "2=1..1000"], size, sliced(folder, store, "--mode", "2=1..1000")),
                (["slice", store, out + ".slc", "--transform", "binarize"], size, sliced(folder, store, "--transform", "binarize")),
                (["append", store, text], size + os.path.getsize(text), 2 * size),
                (["permute", store, out + ".slc", "--order", "3,1,2"], size, size),
                *((["export", run, out + ending], factors, exported(folder, run, ending)) for ending in (".mat", ".ktensor")),
                *((["export", store, out + ending], size, exported(folder, store, ending)) for ending in (".bin", ".npz", ".mat")),
                (["generate", out + ".slc", "--dims", "3000x2000x100", "--nnz", 60000], 0, size),
                (["generate", out + ".tns", "--dims", "3000x2000x100", "--nnz", 60000], 0, os.path.getsize(text))]
    for command, read, written in commands:
        told = json.loads(sluice(*command, "--dry-run", "--json")[0])
        check(told["command"] == command[0] and told["seconds"] > 0 and told["bottleneck"], told)
        check(0.75 * read <= told["read_bytes"] <= 1.25 * read, (told, read))
        check(written / 2 <= told["written_bytes"] <= 2 * written, (told, written))
        check(told["memory_bytes"] > 2**20 and 0 < sum(told["buffers"].values()), told)
        words = sluice(*command, "--dry-run", "--no-probe")[0]
        check("Would " in words and "not estimated" in words and "passes" in words, words)
        check("--memory" in sluice(*command, "--dry-run", "--memory", "1MiB", status=4)[1], "a budget that is too small")
    if not QUICK:
        large = os.path.join(folder, "large.tns")
        sluice("generate", large, "--dims", "3000x2000x1000", "--nnz", 1000000, "-q")
        listed["large.tns"] = os.stat(large).st_mtime_ns
        tight = ["convert", large, out + ".slc", "--dry-run", "-t", 1]
        least = re.search(r"needs (\d+) MiB of memory", sluice(*tight, "--memory", "1MiB", status=4)[1])[1] + "MiB"
        tight += ["--memory", least]
        check("temporary file" in sluice(*tight)[0], "no temporary file")
        check("--max-temp" in sluice(*tight, "--max-temp", "1KiB", status=4)[1], "--max-temp")
    sluice("convert", text, store, "--dry-run", status=5)
    sluice("convert", text, store, "--dry-run", "-f")
    check(listed == {path: os.stat(os.path.join(folder, path)).st_mtime_ns for path in os.listdir(folder)}, "written")


def expected(folder):
    """A starting run is estimated, and compared with the actual values at its end, in its summary
    and its log."""
    text, store, out, log = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "out", "log"))
    sluice("generate", text, "--dims", "3000x2000x100", "--nnz", 60000, "-q")
    matrix = os.path.join(folder, "u.npy")
    npy(matrix, [1.5] * 8000, 2000, 4)
    for command, made in ((["convert", text, store], store), (["check", store], None), (["export", store, out + ".bin"], out + ".bin"),
                          (["slice", store, out + ".slc", "--mode", "1=..2000"], out + ".slc"), (["append", store, text, "--again"], store),
                          (["generate", out + ".g.slc", "--dims", "3000x2000x100", "--nnz", 100000], out + ".g.slc"),
                          (["layout", store, "--sorted", "1"], os.path.join(store, "sorted-1.blk")),
                          (["layout", store, "--drop", "sorted-1", "--fiber", "2"], os.path.join(store, "fiber-2.blk")),
                          (["ttm", store, out + ".u", "--mode", "2", "--matrix", matrix], out + ".u")):
        told = sluice(*command, "--log-json", log)[0]
        check("  expected     memory " in told and " of " in told, told)
        with open(log) as file:
            estimate = json.loads(file.readlines()[-1])["estimate"]
        actual = estimate["actual"]
        # Wide bounds: sanitizers and small stores change the size of processes.
        check(actual["memory_bytes"] / 2 <= estimate["memory_bytes"] <= 2 * actual["memory_bytes"], estimate)
        check(actual["seconds"] > 0 and estimate["seconds"] > 0, estimate)
        check(command[0] == "generate" or 0.7 * actual["read_bytes"] <= estimate["read_bytes"] <= 1.3 * actual["read_bytes"], estimate)
        size = 0 if made is None else os.path.getsize(made) if os.path.isfile(made) else sum(
            os.path.getsize(os.path.join(made, name)) for name in os.listdir(made))
        check(actual["final_bytes"] == size and (size > 0) == (made is not None), estimate)
    check("expected" not in sluice("check", store, "-q")[0], "quiet, and without a log")
    # The factors of a run; a compressed text whose size is in its trailer or header, or estimated
    # from its beginning.
    sluice("cpd", store, "-r", 16, "-i", 1, "-o", out, "-q", "--checkpoint", "none")
    with open(text, "rb") as file:
        rows = file.read()
    for ending, opened in ((".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)):
        with opened(text + ending, "wb") as file:
            file.write(rows)
    for command, made in ((["export", out, out + ".mat"], out + ".mat"),
                          *((["convert", text + ending, store, "-f"], store) for ending in (".gz", ".bz2", ".xz"))):
        sluice(*command, "--log-json", log)
        with open(log) as file:
            estimate = json.loads(file.readlines()[-1])["estimate"]
        for what, near in (("read_bytes", 0.9), ("final_bytes", 0.7)):
            check(near * estimate["actual"][what] <= estimate[what] <= (2 - near) * estimate["actual"][what], (command, what, estimate))


def followed(folder):
    """watch: started before the run, it ends with the run's exit code; a killed run is reported;
    --once and --json."""
    store, log = generated(folder, 200000, "300x200x100"), os.path.join(folder, "log")
    sluice("watch", log, "--once", status=5)
    _, messages = sluice("watch", log, "--lost-after", 0.3, status=5)
    check("no run has written to it within" in messages and "--lost-after" in messages, messages)
    for number, code in ((signal.SIGTERM, 143), (signal.SIGKILL, 1)):
        if os.path.exists(log):
            os.remove(log)
        watching = subprocess.Popen([SLUICE, "watch", log], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = subprocess.Popen([SLUICE, "cpd", store, "-r", "8", "-i", "100000000", "--tol", "0", "--nowrite", "-q",
                                  "--log-json", log])
        for line in watching.stdout:
            if "its =   3" in line:
                break
        check("running" if watching.poll() is None else "", "watching ended before the run")
        now = json.loads(sluice("watch", log, "--once", "--json")[0])
        check(now["alive"] and now["completed"] >= 3 and now["pid"] == child.pid and now["exit_code"] is None, now)
        child.send_signal(number)
        child.wait(60)
        out, messages = watching.communicate(timeout=60)
        check(watching.returncode == code, f"exit {watching.returncode}, not {code}: {messages}")
        check("\r" not in out + messages and "\033" not in out + messages, "control characters in a pipe")
        check(("the run died" in messages) == (number == signal.SIGKILL), messages)
        check(("signal, exit code 143" in out) == (number == signal.SIGTERM), out[-200:])
    sluice("watch", log, "--once", status=1)
    # A run on another machine that has been silent for long; an incomplete line, an invalid event,
    # and a long line.
    with open(log, "w") as file:
        file.write('{"schema":"sluice-log-1","event":"start","name":"check","pid":1,"host":"elsewhere","boot":"x"}\n'
                   + "nonsense\n" + "x" * (2 << 20) + "\n" + '{"schema":"sluice-log-1","event":"phase","phase":"check","seconds":1}\n{"sch')
    check("check: check" in sluice("watch", log, "--once")[0], "the state of one elsewhere")
    _, messages = sluice("watch", log, "--lost-after", 0.3, status=1)
    check("elsewhere" in messages, messages)
    with open(log, "a") as file:
        file.write('ema":"sluice-log-1"}\n{"schema":"sluice-log-1","event":"end","reason":"done","exit_code":0,"seconds":2}\n')
    lines = [json.loads(line) for line in sluice("watch", log, "--json")[0].splitlines()]
    check([(line["ended"], line["exit_code"]) for line in lines] == [(False, None), (False, None), (True, 0)], lines)
    check("not the folder of a run" in sluice("watch", folder, status=3)[1], "a folder without a run")


def followed_by_folder(folder):
    """watch of a run's folder: its checkpoints while it runs, its end, and a killed run."""
    store, out = generated(folder, 20000, "300x200x100"), os.path.join(folder, "out")
    sluice("cpd", store, "-r", 2, "-i", 3, "--tol", 0, "-o", out, "-q")
    state = json.loads(sluice("watch", out, "--once", "--json")[0])
    check(state["ended"] and state["reason"] == "iterations" and state["completed"] == 3 and state["exit_code"] == 0, state)
    check("ended after" in sluice("watch", out)[0], "the end")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, 1)):
        shutil.rmtree(out)
        child = subprocess.Popen([SLUICE, "cpd", store, "-r", "2", "-i", "100000000", "--tol", "0", "-o", out, "-q",
                                  "--checkpoint-interval", "0"])
        while not os.path.exists(out) or not [name for name in os.listdir(out) if name.endswith(".ckpt")]:
            check(child.poll() is None, "it has ended")
            time.sleep(0.02)
        watching = subprocess.Popen([SLUICE, "watch", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = watching.stdout.readline()
        check(re.match(r"cpd: \d+ iterations done, fit", line), line)
        now = json.loads(sluice("watch", out, "--once", "--json")[0])
        check(now["alive"] and now["pid"] == child.pid and not now["ended"], now)
        child.send_signal(number)
        child.wait(60)
        out_text, messages = watching.communicate(timeout=60)
        check(watching.returncode == code, f"exit {watching.returncode}, not {code}: {messages}")
        check(("the run died" in messages) == (number == signal.SIGKILL), messages)
        check((f"signal, exit code {code}" in out_text) == (number != signal.SIGKILL), out_text)
    sluice("watch", out, "--once", status=1)


run([
    ("a run is followed", followed),
    ("a run is followed by its folder", followed_by_folder),
    ("plans estimate, and runs compare", estimates),
    ("plans of runs that cannot start", unprobed),
    ("dry runs of whole files", dry_runs),
    ("forecast and actual values", expected),
    ("a live line on a terminal, plain ones in a pipe", terminal_and_pipe),
    ("progress of every command", every_command),
    ("short runs", short_runs),
    ("a plain terminal", plain_terminal),
    ("a narrow terminal", narrow_terminal),
    ("the log has progress and the end", log_of_the_end),
    ("the state of a check", state_of_a_check),
])
