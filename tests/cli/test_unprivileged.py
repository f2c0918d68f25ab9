#!/usr/bin/env python3
"""Everything runs for an unprivileged user who can lock 8 MiB of memory, 64 KiB or none, with the
same results as for a user without a limit; and with read-only stores.

If run by root, the commands run as another user ("nobody"), with a copy of the program in a folder
of that user; otherwise only the limit applies, and the test reports that."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, QUICK, SLUICE, Skip, check, npy, run, tree  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
NOBODY = 65534
IO = ("uring", "pread", "mmap")
DIMS = (3000, 2000, 50)


def can_drop():
    """Whether commands can run as another user."""
    return os.geteuid() == 0 and subprocess.run(["true"], user=NOBODY, group=NOBODY, extra_groups=[], check=False
                                                ).returncode == 0


def prepare(folder):
    """A folder accessible to any user, with the program in it; returns the path of a new one for
    results."""
    os.chmod(folder, 0o755)
    shutil.copy(SLUICE, os.path.join(folder, "sluice"))
    return os.path.join(folder, "")


def execute(folder, program, args, locked=None):
    """Runs the command in `folder`: as the test's user, or with a limit on locked bytes and, if
    possible, as nobody."""
    def bound():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (locked, locked))

    user = dict(user=NOBODY, group=NOBODY, extra_groups=[]) if locked is not None and os.geteuid() == 0 else {}
    return subprocess.run([program + "sluice", *map(str, args)], cwd=folder, capture_output=True, text=True,
                          timeout=300, check=False, preexec_fn=bound if locked is not None else None, **user)


def owned(folder):
    """A new read-only folder."""
    os.mkdir(folder)
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)
    return os.path.join(folder, "")


def operands(folder):
    npy(folder + "v.npy", [1 + i % 7 for i in range(DIMS[1])], DIMS[1])
    os.mkdir(folder + "factors")
    for mode, length in enumerate(DIMS, 1):
        npy(f"{folder}factors/mode-{mode}.npy", [1 + i % 5 for i in range(4 * length)], length, 4)
    for here, _, _ in os.walk(folder):
        os.chmod(here, 0o755)
        if os.geteuid() == 0:
            os.chown(here, NOBODY, NOBODY)


def makers():
    """Returns commands that create a text, a store of several blocks, and layouts."""
    return [("generate", "t.tns", "--dims", "x".join(map(str, DIMS)), "--nnz", 150000, "-r", 3, "--noise", 0.2),
            ("convert", "t.tns", "t.slc", "--block-bytes", "64KiB"),
            ("generate", "g.slc", "--dims", "300x200x50", "--nnz", 30000),
            ("layout", "t.slc", "--sorted", 1, "--fiber", 2)]


def readers(io, out="", store="t.slc"):
    """Commands that read the store by this method and write results to the folder `out`."""
    how = ("--io", io, "-t", 3)
    return [("cpd", store, "-r", 5, "-i", 2, "--tol", 0, "--deterministic", "--checkpoint-interval", 0,
             "--pin", "always", "-o", f"{out}cpd-{io}", *how),
            ("mttkrp", store, "--mode", 2, "--factors", "factors", "--deterministic", "-o", f"{out}mttkrp-{io}.npy",
             *how),
            ("ttv", store, f"{out}ttv-{io}.slc", "--mode", 2, "--vector", "v.npy", *how),
            ("ttm", store, f"{out}ttm-{io}", "--mode", 2, "--matrix", "factors/mode-2.npy", *how),
            ("ttm", store, f"{out}sorting-{io}", "--mode", 1, "--matrix", "factors/mode-1.npy", *how)]


def others(out="", store="t.slc"):
    return [("check", store), ("info", store), ("plan", store, "-r", 5), ("export", store, f"{out}e.tns"),
            ("bench", "codec", store, "--repeat", 1), ("bench", "io", store, "--repeat", 1)]


def done(folder, program, commands, locked):
    """All succeed; returns their messages about memory that could not be locked: (command,
    message)."""
    told = []
    for args in commands:
        ended = execute(folder, program, args, locked)
        what = f"{' '.join(map(str, args))}, {locked} bytes to lock"
        refused = "the system refuses io_uring" in ended.stderr and "use pread" in ended.stderr
        if refused and "uring" in args and locked is not None and locked < 8 * MIB:
            # Some systems need locked memory for the ring itself; unless it was requested
            # explicitly, a working method is used.
            check(ended.returncode == 3, f"{what}: exit {ended.returncode}")
            args = [arg if arg != "uring" else "auto" for arg in args]
            ended = execute(folder, program, args, locked)
        check(ended.returncode == 0, f"{what}: exit {ended.returncode}: {ended.stderr}")
        said = re.findall(r"not all buffers are registered|reading by pread threads", ended.stdout + ended.stderr)
        check(len(said) <= 1, f"{what}: said {len(said)} times: {ended.stdout}{ended.stderr}")
        told += [args[0] for _ in said]
    return told


def locked_memory(folder):
    program = prepare(folder)
    if not can_drop():
        if os.geteuid() == 0:
            raise Skip("no other user's processes can be made here")
        print("# not root: the limit alone")
    commands = [*makers(), *(args for io in IO[:1 if QUICK else 3] for args in readers(io)), *others()]
    want = os.path.join(folder, "want", "")
    os.mkdir(want)
    operands(want)
    done(want, program, commands, None)
    for locked in (8 * MIB,) if QUICK else (8 * MIB, 64 * KIB, 0):
        here = owned(os.path.join(folder, f"locked-{locked}"))
        operands(here)
        # A smaller limit affects reading: in the plain form, one command of each kind.
        some = commands if FULL or locked == 8 * MIB else [*makers(), *readers("uring")[:2]]
        told = done(here, program, some, locked)
        got, expected = tree(here), tree(want)
        for path in got:
            check(got[path] == expected.get(path), f"{locked} bytes to lock: other bytes in {path}")
        check(some is not commands or got.keys() == expected.keys(), f"other files: {got.keys() ^ expected.keys()}")
        check(locked == 8 * MIB or "cpd" in told, f"{locked} bytes to lock: no message that less memory was registered")
        print(f"# {locked >> 10} KiB to lock: {len(some)} commands; less registered than asked, or pread instead, said "
              f"by {', '.join(sorted(set(told))) or 'none'}")


def larger_ring(folder):
    """Slots of more than 8 MiB: as many as possible are locked, with one message."""
    if QUICK:
        raise Skip("takes a minute under sanitizers")
    program = prepare(folder)
    here = owned(os.path.join(folder, "here"))
    make = ("generate", "t.slc", "--dims", "5000x4000x3000", "--nnz", 2000000, "-r", 2, "--noise", 0.5, "-q")
    check(done(here, program, [make], 8 * MIB) == [], "")
    told = done(here, program, [("cpd", "t.slc", "-r", 3, "-i", 1, "--no-cache", "--io", "uring", "-o", "r")], 8 * MIB)
    check(told == ["cpd"] or os.geteuid() != 0, f"no message that less memory was registered: {told}")


def read_only(folder):
    """A read-only store: commands that read it work; those that write to it, or next to it, report
    an error."""
    if os.geteuid() == 0 and not can_drop():
        raise Skip("no other user's processes can be made here")
    program = prepare(folder)
    made = os.path.join(folder, "made", "")
    os.mkdir(made)
    done(made, program, makers(), None)
    here = owned(os.path.join(folder, "here"))
    operands(here)
    locked, store = 8 * MIB, made + "t.slc"
    before = tree(made)
    for path, _, _ in os.walk(made):
        os.chmod(path, 0o555)
    try:
        done(here, program, [*(args for io in (IO if FULL else IO[1:2]) for args in readers(io, store=store)),
                             *others(store=store), ("layout", store),
                             ("layout", store, "--sorted", 2, "--drop", "fiber-2", "--dry-run")], locked)
        writing = [("layout", store, "--sorted", 2), ("layout", store, "--drop", "fiber-2"),
                   ("layout", store, "--fiber", 1),
                   ("convert", made + "t.tns", store, "-f"), ("convert", made + "t.tns", made + "new.slc"),
                   ("generate", made + "new.slc", "--dims", "9x9", "--nnz", 9),
                   ("generate", made + "new.tns", "--dims", "9x9", "--nnz", 9),
                   *readers("pread", made, store), ("export", store, made + "e.tns")]
        for args in writing:
            ended = execute(here, program, args, locked)
            what = " ".join(map(str, args))
            check(ended.returncode == 5, f"{what}: exit {ended.returncode}: {ended.stderr}")
            said = rf"^sluice: {made[:-1]}\S*: .*Permission denied\nsluice: .*then repeat the command$"
            check(re.search(said, ended.stderr, re.M), f"{what}: no place or remedy in: {ended.stderr}")
            check(tree(made) == before, f"{what}: something was left or altered")
    finally:
        for path, _, _ in os.walk(made):
            os.chmod(path, 0o755)


def no_threads(folder):
    """Threads of either team fail to start: an error message, not an abort by OpenMP."""
    if not can_drop():
        raise Skip("the limit on processes does not bind this user, or the user has others")
    program = prepare(folder)
    here = owned(os.path.join(folder, "here"))
    make = ("generate", "t.tns", "--dims", "30x20x10", "--nnz", 300)
    done(here, program, [make], None)

    def bound():
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))

    for kind in "openmp", "pool":
        ended = subprocess.run([program + "sluice", "convert", "t.tns", "t.slc", "-t", "4"], cwd=here, text=True,
                               capture_output=True, timeout=60, check=False, preexec_fn=bound, user=NOBODY, group=NOBODY,
                               extra_groups=[], env={**os.environ, "SLUICE_TEAM": kind, "OPENBLAS_NUM_THREADS": "1"})
        check(ended.returncode == 1, f"{kind}: exit {ended.returncode}: {ended.stderr}")
        check(re.search(r"^sluice: (?:starting|cannot start) .*raise the limit on processes \(ulimit -u\)$", ended.stderr, re.M), ended.stderr)


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
run([
    ("little memory to lock", locked_memory),
    ("a ring of more than may be locked", larger_ring),
    ("a store that may not be written to", read_only),
    ("threads that cannot start", no_threads),
])
