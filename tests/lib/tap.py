"""A small TAP harness, and helpers that run the command under test."""

import hashlib
import importlib.util
import json
import lzma
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.dirname(__file__))
from served import Server  # noqa: E402

# A shell without job control starts background commands with SIGINT ignored, and the commands that
# tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

SLUICE = os.environ.get("SLUICE", "sluice")
SERVED = os.environ.get("SLUICE_SERVED")  # path of the command that is a server (tests/cli/served.c)
EMULATED = os.environ.get("SLUICE_EMULATED")  # path of the command that is built with an emulated device
SOURCE = os.environ.get("SLC_SOURCE", os.path.join(os.path.dirname(__file__), "..", ".."))
FULL = os.environ.get("SLC_TEST_FULL") == "1"
# Set for builds under sanitizers, which are several times slower.
QUICK = os.environ.get("SLC_TEST_QUICK") in ("1", "2") and not FULL
# NumPy would lose a fifth of its speed if malloc and free filled memory. Only the command under
# test runs with the fill.
if os.environ.get("MALLOC_PERTURB_") == "0":
    os.environ["MALLOC_PERTURB_"] = str(random.randint(1, 255))
    print(f"# MALLOC_PERTURB_={os.environ['MALLOC_PERTURB_']}")


class Skip(Exception):
    """Raised, with the reason, by a test that cannot run here."""


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def fails(kind, part, function, *args, **kw):
    """Checks that a call raises an exception of a kind with `part` in its message, and returns it."""
    try:
        function(*args, **kw)
    except kind as fault:
        check(part in str(fault), f"{fault!r} has no {part!r}")
        return fault
    raise AssertionError(f"no {kind.__name__} with {part!r}")


def need(name):
    """Imports an optional package, or skips the test."""
    if importlib.util.find_spec(name) is None:
        raise Skip(f"there is no {name}")
    return importlib.import_module(name)


def call(*command, **kw):
    """Runs a program, checks that it succeeds, and returns its output."""
    done = subprocess.run(command, capture_output=True, text=True, **kw)
    check(done.returncode == 0, f"{' '.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


SERVER = Server(SERVED) if SERVED else None
EMULATED_SERVER = Server(EMULATED) if EMULATED else None


def run_command(args, timeout=None, cwd="."):
    """Like subprocess.run for the command; uses its server if there is one."""
    if SERVER:
        return SERVER.run(args, timeout, cwd)
    return subprocess.run([SLUICE, *args], capture_output=True, text=True, timeout=timeout, cwd=cwd)


def sluice(*args, status=0, cwd=".", **kw):
    """Runs the command, checks the exit status and returns (stdout, stderr). Runs with `kw` bypass
    the server."""
    args = list(map(str, args))
    done = subprocess.run([SLUICE, *args], capture_output=True, text=True, cwd=cwd, **kw) if kw else \
        run_command(args, cwd=cwd)
    if done.returncode != status:
        raise AssertionError(f"sluice {' '.join(map(str, args))}: exit {done.returncode}, wanted "
                             f"{status}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def emulated(*args, status=0, fault=None):
    """Runs the command on an emulated device, checks the exit status and returns its output."""
    args = list(map(str, args))
    done = subprocess.run([EMULATED, *args], capture_output=True, text=True, timeout=300,
                          env=os.environ | {"SLC_EMULATION_FAULT": fault}) if fault else EMULATED_SERVER.run(args, 300)
    check(done.returncode == status, f"{args}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def interrupted(args, folder, begun):
    """Runs the command on an emulated device in `folder`, interrupts it when the path `begun`
    exists, and checks that it leaves no files."""
    before = sorted(os.listdir(folder))
    child = subprocess.Popen([EMULATED, *map(str, args)], cwd=folder, stderr=subprocess.PIPE)
    while not os.path.exists(os.path.join(folder, begun)) and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    check(child.returncode == 130, f"exit {child.returncode}")
    check(sorted(os.listdir(folder)) == before, f"leftovers: {os.listdir(folder)}")


def names_of(store, mode):
    """The names in names-K.bin, by FORMAT.md: pieces of 1024 ends and the bytes, a table, a
    trailer."""
    with open(os.path.join(store, f"names-{mode}.bin"), "rb") as file:
        data = file.read()
    word = lambda at, n=8: int.from_bytes(data[at:at + n], "little")  # noqa: E731
    count, table, names = word(len(data) - 64), word(len(data) - 56), []
    for piece in range((count + 1023) // 1024):
        at = word(table + 16 * piece)
        some = min(1024, count - 1024 * piece)
        ends = [word(at + 4 * i, 4) for i in range(some)]
        base = at + 4 * some
        for i in range(some):
            names.append(data[base + (ends[i - 1] if i else 0):base + ends[i]].decode())
    return names


def holds(path, size):
    """Returns whether a file or folder with at least this many bytes exists at the path."""
    try:
        return os.stat(path).st_size >= size
    except FileNotFoundError:
        return False


def ended(args, folder, begun, number=signal.SIGKILL, size=0):
    """Runs the command in `folder` and signals it once the path `begun` exists with `size` bytes;
    returns the exit code (0 if it finished before) and its output."""
    child = subprocess.Popen([SLUICE, *map(str, args)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    while not holds(os.path.join(folder, begun), size) and child.poll() is None:
        time.sleep(0.0005)
    child.send_signal(number)
    _, messages = child.communicate(timeout=60)
    return child.returncode, messages


def crowded(args, folder, output):
    """Runs the command in `folder` and puts a folder in the place of its output when it is nearly
    finished, so that only the final rename remains; returns the exit code and its output."""
    child = subprocess.Popen([SLUICE, *map(str, args)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True)
    while not os.path.exists(os.path.join(folder, output + ".part")) and child.poll() is None:
        time.sleep(0.0005)
    if not os.path.exists(os.path.join(folder, output)):
        os.mkdir(os.path.join(folder, output))
    out, messages = child.communicate(timeout=60)
    if os.listdir(os.path.join(folder, output)) == []:
        os.rmdir(os.path.join(folder, output))
    return child.returncode, out + messages


def bundled(name, suffix=".tns.xz"):
    """Returns the path of a real tensor, either bundled or in the shared data next to the
    checkout."""
    for folder in (os.path.join(SOURCE, "data"), os.path.join(SOURCE, "..", "shared", "data")):
        path = os.path.join(folder, name + suffix)
        if os.path.exists(path):
            return path
    raise Skip(f"{name} is neither bundled nor next to the checkout")


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def source_text(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def generate_store(folder, dims, nnz, *options):
    """Returns the path of a store that the command generates at random."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", dims, "--nnz", nnz, "-q", "-f", *options)
    return store


def tree(folder):
    """Contents of all files below a folder; for run.json, which contains times, only its presence."""
    found = {}
    for here, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(here, name), "rb") as file:
                found[os.path.relpath(os.path.join(here, name), folder)] = \
                    "" if name.endswith("run.json") else hashlib.md5(file.read()).hexdigest()
    return found


def npy(path, numbers, *shape):
    """Writes a .npy file of f64 in C order, built from the format's specification."""
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode()
                   + struct.pack(f"<{len(numbers)}d", *numbers))


UNPACKED = tempfile.TemporaryDirectory(dir=os.environ.get("SLC_TEST_DIR"))


def unpacked(name):
    """Path of the text of a real tensor, decompressed once for tests that read it several times."""
    packed, text = bundled(name), os.path.join(UNPACKED.name, name + ".tns")
    if not os.path.exists(text):
        with lzma.open(packed) as source, open(text, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 20)
    return text


def processor_seconds():
    """Returns the processor time of this process and of its children."""
    own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own + sum(server.seconds() for server in (SERVER, EMULATED_SERVER) if server)


def run(tests):
    """Runs [(name, function(folder))] and prints TAP. A name on the command line selects tests."""
    chosen = [t for t in tests if len(sys.argv) < 2 or sys.argv[1] in t[0]]
    print(f"1..{len(chosen)}")
    failed = 0
    for number, (name, function) in enumerate(chosen, 1):
        start = processor_seconds()
        folder = tempfile.mkdtemp(prefix="slc-py-", dir=os.environ.get("SLC_TEST_DIR"))
        try:
            function(folder)
            result = f"ok {number} - {name}"
        except Skip as reason:
            result = f"ok {number} - {name} # SKIP {reason}"
        except Exception:
            failed += 1
            for line in traceback.format_exc().splitlines():
                print(f"# {line}")
            result = f"not ok {number} - {name}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if processor_seconds() - start >= 1:
            print(f"# {processor_seconds() - start:.1f} s of processor time:")
        print(result, flush=True)
    sys.exit(1 if failed else 0)


def load_json(path):
    with open(path) as file:
        return json.load(file)
