#!/usr/bin/env python3
"""Commands that read a store while another process replaces it, appends to it and changes its layouts,
again and again: each succeeds, and its result is that of one state of the store."""

import hashlib
import itertools
import os
import random
import shutil
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from served import Server  # noqa: E402
from tap import FULL, QUICK, SERVED, Skip, check, run  # noqa: E402

DIMS = (60, 50, 40)
METHODS = "uring", "pread", "mmap"
READERS = 2000 if FULL else 30 if QUICK else 60
THREADS = 3

CONVERT = {name: ("convert", name + ".tns", "x.slc", "-f", "-q") for name in "ab"}
ADD = ("layout", "x.slc", "--sorted", "all", "-q")
DROP = tuple(("layout", "x.slc", "--drop", f"sorted-{mode}", "-q") for mode in (3, 2, 1))
APPEND = ("append", "x.slc", "more.tns", "-q")
CHANGES = (CONVERT["a"], CONVERT["b"], CONVERT["a"], ADD, APPEND, CONVERT["b"], CONVERT["a"], CONVERT["b"], ADD, *DROP)
# What a reader runs; OUT is a new path.
READS = (
    ("cpd", "x.slc", "-o", "OUT", "-r", "2", "-i", "1", "--tol", "0", "--deterministic", "-t", "1", "--checkpoint",
     "none", "-q"),
    ("cpd", "x.slc", "-o", "OUT", "-r", "1,2", "--keep", "all", "--consistency", "never", "-i", "1", "--tol", "0",
     "--deterministic", "-t", "1", "--checkpoint", "none", "-q"),
    ("mttkrp", "x.slc", "--mode", "1", "--factors", "factors", "-o", "OUT", "--deterministic", "-t", "1", "-q"),
    ("ttv", "x.slc", "OUT", "--mode", "2", "--vector", "v.npy", "-t", "1", "-q"),
    ("ttm", "x.slc", "OUT", "--mode", "2", "--matrix", "v.npy", "-t", "1", "-q"),
    ("slice", "x.slc", "OUT", "--mode", "1=1..30", "-t", "1", "-q"),
    ("export", "x.slc", "OUT", "-t", "1", "-q"),
    ("info", "x.slc", "--json"),
    ("check", "x.slc"),
)


def write_inputs(folder):
    for seed, name in enumerate(("a", "b", "more")):
        draw = random.Random(seed)
        with open(os.path.join(folder, name + ".tns"), "w") as file:
            for _ in range(2000):
                file.write(" ".join(str(draw.randint(1, d)) for d in DIMS) + f" {draw.random():.3}\n")
            file.write(" ".join(map(str, DIMS)) + " 1\n")
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({DIMS[1]},), }}".ljust(117) + "\n"
    with open(os.path.join(folder, "v.npy"), "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{DIMS[1]}d", *(i % 5 for i in range(DIMS[1]))))


def digest(path):
    """Returns the bytes of the results, without the files that name paths and times."""
    if os.path.isfile(path):
        files = [path]
    else:
        files = sorted(os.path.join(at, name) for at, _, names in os.walk(path) for name in names
                       if not name.endswith(".json"))
    hashed = hashlib.sha256()
    for name in files:
        with open(name, "rb") as file:
            hashed.update(file.read())
    return hashed.hexdigest()


def read(call, folder, args, number):
    """Runs a reader and returns its result; `call` returns a CompletedProcess."""
    out = f"out{number}" + (".tns" if args[0] == "export" else ".slc" if args[0] in ("ttv", "slice") else "")
    done = call([out if arg == "OUT" else arg for arg in args], cwd=folder)
    check(done.returncode == 0, f"{' '.join(args)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    if "OUT" not in args:
        return done.stdout
    path = os.path.join(folder, out)
    found = digest(path)
    (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)
    return found


def with_method(args, number):
    return args + ("--io", METHODS[number % len(METHODS)]) if args[0] in ("cpd", "mttkrp") else args


def states(call, folder):
    """Returns the results of each reader in each state of the store."""
    known = {args: set() for args in READS}
    one_by_one = [("layout", "x.slc", "--sorted", mode, "-q") for mode in "123"]
    numbers = itertools.count()
    for change in (CONVERT["b"], *one_by_one, CONVERT["a"], *one_by_one, APPEND):
        done = call(change, cwd=folder)
        check(done.returncode == 0, f"{change}: exit {done.returncode}\n{done.stderr}")
        for args in READS:
            number = next(numbers)
            known[args].add(read(call, folder, with_method(args, number), number))
    return known


def constantly(folder):
    if not SERVED:
        raise Skip("no server of the command")
    write_inputs(folder)
    servers = [Server(SERVED) for _ in range(THREADS + 1)]
    call = servers[0].run
    check(call(CONVERT["a"], cwd=folder).returncode == 0, "the first conversion")
    args = ["cpd", "x.slc", "-o", "factors", "-r", "2", "-i", "1", "--tol", "0", "-q", "--checkpoint", "none"]
    check(call(args, cwd=folder).returncode == 0, args)
    known = states(call, folder)
    numbers, failures, stop = itertools.count(), [], threading.Event()
    counts = [0, 0]

    def replacer():
        while not stop.is_set():
            for change in CHANGES:
                done = call(change, cwd=folder)
                counts[0] += 1
                if done.returncode != 0:
                    failures.append(f"{change}: exit {done.returncode}\n{done.stderr}")

    def reader(server):
        number = next(numbers)
        while number < READERS:
            # Every method with every command.
            args = READS[number // len(METHODS) % len(READS)]
            try:
                result = read(server.run, folder, with_method(args, number), f"-{number}")
                if args[0] != "check" and result not in known[args]:
                    failures.append(f"{args}: a result of no state of the store: {result[:1000]}")
            except AssertionError as error:
                failures.append(str(error))
            counts[1] += 1
            number = next(numbers)

    threads = [threading.Thread(target=reader, args=(server,)) for server in servers[1:]]
    writer = threading.Thread(target=replacer)
    for thread in (writer, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    writer.join()
    print(f"# {counts[1]} readers, {counts[0]} changes of the store")
    check(counts[0] >= 4, "the store hardly changed")
    check(not failures, f"{len(failures)} failures: " + "\n".join(failures[:5]))


if __name__ == "__main__":
    run([("readers of a store that is replaced", constantly)])
