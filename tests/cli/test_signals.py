#!/usr/bin/env python3
"""Signals: the first one stops with the factors written, SIGUSR1 reports the state, conversions
that cannot be resumed leave no files (test_convert.py has those that can)."""

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, SLUICE, check, load_json, run, sluice  # noqa: E402


templates = tempfile.TemporaryDirectory(dir=os.environ.get("SLC_TEST_DIR"))


def made(folder, dims, nnz):
    """Makes the store of the test case by copying a store that is generated once."""
    store, template = os.path.join(folder, "t.slc"), os.path.join(templates.name, f"{nnz}.slc")
    if not os.path.exists(template):
        sluice("generate", template, "--dims", dims, "--nnz", nnz, "-q")
    shutil.copytree(template, store, dirs_exist_ok=True)
    return store


def large(folder):
    """A store that takes a while to read."""
    return made(folder, "3000x2000x1000", 1000000 if QUICK else 3000000)


def long_run(folder, *more):
    """A factorization that runs until it is interrupted, after its first iteration."""
    store = made(folder, "300x200x100", 200000)
    child = subprocess.Popen([SLUICE, "cpd", store, "-r", "4", "-i", "100000000", "--tol", "0", *more],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    for line in child.stdout:
        if "its =   2" in line:
            return child
    raise AssertionError("it ended by itself: " + child.stderr.read())


def stopped(number, code):
    def test(folder):
        child = long_run(folder, "-o", "out")
        start = time.monotonic()
        child.send_signal(number)
        out, messages = child.communicate(timeout=60)
        check(child.returncode == code, f"exit {child.returncode}, not {code}: {messages}")
        check(time.monotonic() - start < 10, "it took more than ten seconds to stop")
        check("stopped by signal" in out, out[-2000:])
        record = load_json(os.path.join(folder, "out", "run.json"))
        check(record["reason"] == "signal" and record["iterations_done"] >= 2, record["reason"])
        for name in ("mode-1.npy", "mode-2.npy", "mode-3.npy", "lambda.npy"):
            check(os.path.exists(os.path.join(folder, "out", name)), f"{name} is missing")
        sluice("cpd", os.path.join(folder, "t.slc"), "-r", 4, "-i", 1, "--nowrite", "-q", "--init",
               os.path.join(folder, "out"))
    return test


def state(folder):
    child = long_run(folder, "--nowrite", "--progress", "never")
    child.send_signal(signal.SIGUSR1)
    line = child.stderr.readline()
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    check(re.match(r"sluice: after [\d.]+s: its = +\d+ of \d+(, mode \d: block \d+ of \d+| done), .*ETA", line), line)
    check(child.returncode == 130, f"exit {child.returncode}")


def twice(folder):
    """Two signals at once count as one (timeout(1) signals process and group); a later one ends the
    run at once."""
    child = long_run(folder, "-o", "out")
    # A stopped process receives both when it continues, however late the second is sent.
    for number in (signal.SIGSTOP, signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        child.send_signal(number)
    child.communicate(timeout=60)
    check(child.returncode in (130, 143), f"exit {child.returncode}")
    check(os.path.exists(os.path.join(folder, "out", "run.json")), "two at once lost the factors")
    child = long_run(folder, "--nowrite")
    child.send_signal(signal.SIGTERM)
    time.sleep(0.7)
    child.send_signal(signal.SIGTERM)
    child.communicate(timeout=60)
    check(child.returncode == 143, f"exit {child.returncode}")


def ignored(folder):
    """A signal that was ignored from the start (nohup, background jobs) stays ignored."""
    store = made(folder, "300x200x100", 200000)
    child = subprocess.Popen([SLUICE, "cpd", store, "-r", "4", "-i", "100000000", "--tol", "0",
                              "--nowrite"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    for line in child.stdout:
        if b"its =   2" in line:
            break
    child.send_signal(signal.SIGINT)
    seen = 0
    for line in child.stdout:
        seen += b"its = " in line
        if seen == 3:
            break
    check(seen == 3, "SIGINT ended it although it was ignored")
    child.terminate()
    child.communicate(timeout=60)
    check(child.returncode == 143, f"exit {child.returncode}")


def wait_for(condition, what):
    deadline = time.monotonic() + 30
    while not condition():
        check(time.monotonic() < deadline, what)
        time.sleep(0.01)


def catches(child, number):
    """Whether the process has a handler for the signal."""
    with open(f"/proc/{child.pid}/status") as file:
        return int(re.search(r"SigCgt:\s*(\w+)", file.read())[1], 16) >> number - 1 & 1


def conversion(folder):
    """A conversion of input that cannot be read again leaves neither a store nor a temporary
    folder."""
    feed = subprocess.Popen([SLUICE, "convert", "-", "out.slc"], stdin=subprocess.PIPE,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=folder)
    feed.stdin.write(b"".join(b"%d %d 1 1\n" % (i % 991 + 1, i + 1) for i in range(300000)))
    feed.stdin.flush()
    wait_for(lambda: os.listdir(folder), "nothing is written")
    feed.send_signal(signal.SIGINT)
    feed.wait(timeout=60)
    feed.stdin.close()
    check(feed.returncode == 130, f"exit {feed.returncode}: {feed.stderr.read()}")
    check(os.listdir(folder) == [], f"leftovers: {os.listdir(folder)}")


def what_is_anothers(folder):
    """A signal to a conversion that has not created its output yet removes no foreign files."""
    output, foreign = os.path.join(folder, "out.slc"), os.path.join(folder, "mine.slc.part")
    os.mkdir(foreign)
    with open(os.path.join(foreign, "work.txt"), "w") as file:
        file.write("dear")
    first = subprocess.Popen([SLUICE, "convert", "-", output, "-q"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    first.stdin.write(b"".join(b"%d %d 1 1\n" % (i % 991 + 1, i + 1) for i in range(300000)))
    first.stdin.flush()
    wait_for(lambda: os.path.exists(output + ".part"), "nothing is written")
    for name in (output, os.path.join(folder, "mine.slc")):
        with open(name + ".tmp", "w") as file:
            file.write("dear")
        second = subprocess.Popen([SLUICE, "convert", "-", name], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for(lambda: catches(second, signal.SIGTERM), "no signal is caught")
        second.send_signal(signal.SIGTERM)
        second.wait(timeout=60)  # the input of the second command is closed only after the signal
        _, messages = second.communicate()
        check(second.returncode == 143 and b"repeat the command" not in messages, f"exit {second.returncode}: {messages}")
        check(os.path.exists(name + ".tmp"), f"{name}.tmp is gone")
    check(os.listdir(foreign) == ["work.txt"], f"left of a folder of others: {os.listdir(foreign)}")
    _, messages = first.communicate(timeout=60)
    check(first.returncode == 0, f"the other run was disturbed: {messages}")
    sluice("check", output)


def product(folder):
    """An interrupted product with a vector leaves no files, like an interrupted conversion."""
    vector = os.path.join(folder, "v.npy")
    large(folder)
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }".ljust(117) + b"\n"
    with open(vector, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
                   + struct.pack("<f", 1.5) * 1000)
    for _ in range(20):
        child = subprocess.Popen([SLUICE, "ttv", "t.slc", "--mode", "3", "--vector", "v.npy", "-q",
                                  "out.slc"], cwd=folder, stderr=subprocess.PIPE)
        while not os.path.exists(os.path.join(folder, "out.slc.part")) and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=60)
        if child.returncode != 0:
            break
        shutil.rmtree(os.path.join(folder, "out.slc"))  # it finished before the signal came
    check(child.returncode == 130, f"exit {child.returncode}")
    check(sorted(os.listdir(folder)) == ["t.slc", "v.npy"], f"leftovers: {os.listdir(folder)}")


def stopped_while_it_writes(args, text):
    """The exit code of a command that is interrupted once it has started to write TEXT."""
    for _ in range(50):
        child = subprocess.Popen([SLUICE, *args], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not os.path.exists(text + ".tmp") and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGTERM)
        child.communicate(timeout=60)
        if child.returncode != 0:
            break
        # The command finished before the signal arrived.
        with open(text, "w") as file:
            file.write("before")
    return child.returncode


def text_outputs(folder):
    """generate of text and export: the unfinished file is removed, the earlier one is kept."""
    store = large(folder)
    for name, args in (("out.tns", ("generate", "--dims", "3000x2000x1000", "--nnz", "2000000000")),
                       ("out.tns", ("export", store)), ("out.bin", ("export", store)), ("out.npz", ("export", store))):
        output = os.path.join(folder, name)
        with open(output, "w") as file:
            file.write("before")
        check(stopped_while_it_writes([*args, output, "-f", "-q", "-t", "1"], output) == 143,
              f"{args[0]} {name} did not end by the signal")
        check(sorted(os.listdir(folder)) == [name, "t.slc"], f"left: {os.listdir(folder)}")
        with open(output) as file:
            check(file.read() == "before", f"{args[0]}: the old file was touched")
        os.remove(output)


def benchmark(folder):
    """The folder of an interrupted benchmark is removed."""
    text, store = os.path.join(folder, "in.tns"), os.path.join(folder, "in.slc")
    temp = os.path.join(folder, "temp")
    os.mkdir(temp)
    sluice("generate", text, "--dims", "3000x2000x1000", "--nnz", 300000, "-q")
    sluice("convert", text, store, "-q")
    for args in (["convert", text], ["roofline", store, "-r", "1", "--bounds", "--kernel",
                                     "mttkrp-stream", "--warm-up", "0", "--memory-set", "1MiB"]):
        child = subprocess.Popen([SLUICE, "bench", *args, "-n", "50", "--temp-dir", temp],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for(lambda: any(os.listdir(os.path.join(temp, name)) for name in os.listdir(temp)), "no store is written")
        child.send_signal(signal.SIGINT)
        _, messages = child.communicate(timeout=60)
        check(child.returncode == 130, f"{args[0]}: exit {child.returncode}: {messages}")
        check(os.listdir(temp) == [], f"{args[0]} left: {os.listdir(temp)}")


run([
    ("SIGINT stops with the factors written", stopped(signal.SIGINT, 130)),
    ("SIGTERM stops with the factors written", stopped(signal.SIGTERM, 143)),
    ("SIGUSR1 reports the state", state),
    ("a second signal ends at once", twice),
    ("an ignored signal stays ignored", ignored),
    ("a stopped conversion of a pipe leaves nothing", conversion),
    ("foreign files are kept", what_is_anothers),
    ("a stopped product with a vector leaves nothing", product),
    ("stopped text outputs leave nothing", text_outputs),
    ("a stopped benchmark leaves nothing", benchmark),
])
