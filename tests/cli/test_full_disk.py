#!/usr/bin/env python3
"""Disks that are full or read-only: exit code 5, a message that names the file and the remedy,
existing files unchanged, no partial result under its final name, no leftovers except those for
resuming, and the same bytes once there is space.

A limit on file sizes (ulimit -f) emulates the disk, and a tmpfs of a few pages if one can be
mounted."""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, QUICK, SLUICE, Skip, check, npy, run, run_command, sluice, tree  # noqa: E402

KIB = 1 << 10
DIMS = (3000, 2000, 50)
templates = tempfile.TemporaryDirectory()


def inputs():
    """Returns a folder with a text, its store and operands, which is made once."""
    if not os.listdir(templates.name):
        at = os.path.join(templates.name, "")
        sluice("generate", at + "t.tns", "--dims", "x".join(map(str, DIMS)), "--nnz", 100000, "-q")
        sluice("convert", at + "t.tns", at + "t.slc", "-q", "--block-bytes", "64KiB")
        shutil.copytree(at + "t.slc", at + "f.slc")
        sluice("layout", at + "f.slc", "--fiber", 1, "-q")
        npy(at + "v.npy", [1] * DIMS[0], DIMS[0])
        npy(at + "m.npy", [1] * 4 * DIMS[0], DIMS[0], 4)
        for number, length in enumerate(DIMS, 1):
            npy(f"{at}mode-{number}.npy", [1] * 4 * length, length, 4)
    return os.path.join(templates.name, "")


def commands(out):
    """Returns {name: (arguments, path of the result)}, with results in the folder `out`."""
    at = inputs()
    cpd = ("cpd", at + "t.slc", "-r", "4", "-i", "3", "--tol", "0", "--deterministic", "--checkpoint-interval", "0", "-q")
    return {
        "convert": (("convert", at + "t.tns", out + "a.slc", "-f"), "a.slc"),
        "convert, committing": (("convert", at + "t.tns", out + "a.slc", "-f", "--checkpoint-interval", "0.001"), "a.slc"),
        "generate a store": (("generate", out + "a.slc", "--dims", "300x200x50", "--nnz", "100000", "-f"), "a.slc"),
        "generate text": (("generate", out + "a.tns", "--dims", "300x200x50", "--nnz", "30000", "-f"), "a.tns"),
        "export": (("export", at + "t.slc", out + "a.tns", "-f"), "a.tns"),
        "export lists": (("export", at + "t.slc", out + "a.bin", "-f"), "a.bin"),
        "export sorted": (("export", at + "t.slc", out + "a.npz", "-f"), "a.npz"),
        "export factors": (("export", at, out + "a.mat", "-f"), "a.mat"),
        "export factors as text": (("export", at, out + "a.ktensor", "-f"), "a.ktensor"),
        "layout sorted": (("layout", out + "t.slc", "--sorted", "1"), "t.slc"),
        "layout fiber": (("layout", out + "t.slc", "--fiber", "1"), "t.slc"),
        "append": (("append", out + "t.slc", at + "t.tns"), "t.slc"),
        "slice": (("slice", at + "t.slc", out + "a.slc", "-f", "--mode", "1=2..2900"), "a.slc"),
        "cpd": ((*cpd, "-o", out + "r"), "r"),
        "cpd SPLATT text": ((*cpd, "-s", out + "r/"), "r"),
        "cpd ktensor": ((*cpd, "--ktensor", out + "r.ktns"), "r.ktns"),
        "mttkrp": (("mttkrp", at + "t.slc", "--mode", "1", "--factors", at, "-o", out + "a.npy"), "a.npy"),
        "ttv": (("ttv", at + "t.slc", out + "a.slc", "-f", "--mode", "1", "--vector", at + "v.npy"), "a.slc"),
        "ttm": (("ttm", at + "f.slc", out + "a", "--mode", "1", "--matrix", at + "m.npy"), "a"),
        "ttm, sorting": (("ttm", at + "t.slc", out + "a", "--mode", "1", "--matrix", at + "m.npy"), "a"),
    }


def prepared(name, out):
    """Returns the command, and makes the folder of its result if the command adds to one."""
    args, result = commands(out)[name]
    if name.startswith(("layout", "append")):
        shutil.copytree(inputs() + "t.slc", out + "t.slc", dirs_exist_ok=True)
    if result == "r" and name != "cpd":
        os.makedirs(out + "r", exist_ok=True)
    return args


def refused(args, what, limit=None):
    """Runs the command, with file sizes limited to `limit` bytes if given; returns True if it fit.
    Otherwise it must report the full disk."""
    def bound():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = run_command(args, 300) if limit is None else \
        subprocess.run([SLUICE, *args], capture_output=True, text=True, timeout=300, preexec_fn=bound)
    if done.returncode == 0:
        return True
    check(done.returncode == 5, f"{what}: exit {done.returncode}: {done.stderr}")
    reason = "File too large" if limit is not None else "No space left on device"
    lines = done.stderr.splitlines()
    told = [number for number, line in enumerate(lines) if line.startswith("sluice: /") and reason in line]
    check(len(told) == 1, f"{what}: no file is named: {done.stderr}")
    check("then repeat the command" in lines[told[0] + 1], f"{what}: no remedy in the message: {done.stderr}")
    return False


def looked_at(name, out, before, want, what):
    """After a failure: existing files are unchanged, new ones are complete, and the only leftovers
    are those for resuming."""
    after = tree(out)
    for path, content in before.items():
        check(after.get(path) in (content, want.get(path)), f"{what}: {path} is not what it was")
    for path, content in after.items():
        kept = ("checkpoint-" in path and name.startswith("cpd")
                or path.startswith("a.slc.part/") and name == "convert, committing"
                or path.endswith((".blk.tmp", ".blk.tmp.journal")) and name.startswith("layout"))
        check(kept or path in before or content == want.get(path),
              f"{what}: {path} was left")
    if os.path.exists(out + "t.slc"):
        sluice("check", out + "t.slc", "-q")


wanted = {}


def made_with_room(name, out):
    """Returns the result of the command with enough space and the sizes of its files, which are
    computed once."""
    if name not in wanted:
        check(refused(prepared(name, out), name), f"{name}: fails with room")
        found = tree(out)
        wanted[name] = found, [os.path.getsize(out + path) for path in found]
        emptied(out)
    return wanted[name]


def emptied(out):
    for path in os.listdir(out):
        (shutil.rmtree if os.path.isdir(out + path) else os.remove)(out + path)


def all_sizes(largest):
    """Disk sizes from 0 to one page less than needed, denser near both ends: headers and closing
    pages."""
    return sorted({0, 4 * KIB, largest // 4096 * 4096 - 4096} | {largest * k // 24 // 4096 * 4096 for k in range(1, 24)})


def by_limit(folder):
    """Runs with a limit that keeps the largest file from its full size."""
    for name in ("convert, committing", "layout sorted", "cpd", "ttm") if QUICK else commands(""):
        out = os.path.join(folder, name, "")
        os.mkdir(out)
        want, sizes = made_with_room(name, out)
        for limit in all_sizes(max(sizes)) if FULL else [max(sizes) // 8192 * 4096]:
            args = prepared(name, out)
            before, what = tree(out), f"{name}, files of {limit} bytes"
            if not refused(args, what, limit):
                looked_at(name, out, before, want, what)
                check(refused(args, what), f"{what}: fails with room")
            check(tree(out) == want, f"{what}: another result than without: {sorted(tree(out))}")
            emptied(out)


class Disk:
    """A tmpfs at `folder`; raises Skip if it cannot be mounted."""

    def __init__(self, folder):
        self.folder = folder
        os.mkdir(folder)
        try:
            done = subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True, check=False)
        except FileNotFoundError as error:
            raise Skip("no file system can be mounted here") from error
        if done.returncode != 0:
            raise Skip("no file system can be mounted here")

    def resize(self, size):
        """Resizes to `size` bytes, at least its contents; None: large."""
        subprocess.run(["mount", "-o", f"remount,size={size or 1 << 30}", self.folder], check=True)

    def protect(self, protected):
        subprocess.run(["mount", "-o", "remount," + ("ro" if protected else "rw"), self.folder], check=True)

    def held(self):
        stat = os.statvfs(self.folder)
        return (stat.f_blocks - stat.f_bfree) * stat.f_frsize

    def remove(self):
        subprocess.run(["umount", self.folder], check=True)


def by_disk(folder):
    """Less space than the command needs, next to an older result of another command."""
    if QUICK:
        raise Skip("sanitizers see as much where files may not grow")
    disk = Disk(os.path.join(folder, "disk"))
    out = os.path.join(disk.folder, "")
    try:
        for name in commands(""):
            disk.resize(None)
            want, sizes = made_with_room(name, out)
            for room in all_sizes(sum(sizes)) if FULL else [4 * KIB]:
                disk.resize(None)
                args = prepared(name, out)
                before, what = tree(out), f"{name}, {room} bytes of room"
                disk.resize(disk.held() + max(room, 4 * KIB))
                if not refused(args, what):
                    looked_at(name, out, before, want, what)
                    disk.resize(None)
                    check(refused(args, what), f"{what}: fails with room")
                check(tree(out) == want, f"{what}: another result than without: {sorted(tree(out))}")
                emptied(out)
    finally:
        disk.remove()


def read_only(folder):
    """A read-only disk is reported before any computation, for results, checkpoints and logs."""
    disk = Disk(os.path.join(folder, "disk"))
    out, at = os.path.join(disk.folder, ""), inputs()
    elsewhere = os.path.join(folder, "elsewhere", "")
    os.mkdir(elsewhere)
    lines = {name: prepared(name, out) for name in commands(out)}
    cpd = (*commands(elsewhere)["cpd"][0], "--progress", "always")
    lines |= {"a checkpoint": (*cpd, "--checkpoint", out + "c"), "a log": (*cpd, "--log-json", out + "log")}
    try:
        shutil.copytree(at + "f.slc", out + "f.slc")
        before = tree(out)
        disk.protect(True)
        for name, args in lines.items():
            done = run_command(args, 300)
            check(done.returncode == 5, f"{name}: exit {done.returncode}: {done.stderr}")
            check(any(line.startswith("sluice: " + disk.folder) and "Read-only file system" in line
                      for line in done.stderr.splitlines()), f"{name}: no place in: {done.stderr}")
            check("its =" not in done.stdout + done.stderr, f"{name}: iterations before {done.stderr}")
            check(tree(elsewhere) == {}, f"{name}: {sorted(tree(elsewhere))} was left")
        # Existing files can still be read.
        for args in (("check", out + "f.slc"), ("info", out + "f.slc"), ("export", out + "f.slc", elsewhere + "f.tns"),
                     ("cpd", out + "f.slc", "-r", "2", "-i", "1", "-q", "-o", elsewhere + "r"),
                     ("ttm", out + "f.slc", elsewhere + "p", "--mode", "1", "--matrix", at + "m.npy")):
            sluice(*args)
        disk.protect(False)
        check(tree(out) == before, f"written to: {sorted(tree(out))}")
    finally:
        disk.remove()


def spilling(folder):
    """The arguments of a conversion that exceeds its memory budget and so needs its temporary
    file."""
    text, out = os.path.join(folder, "big.tns"), os.path.join(folder, "out", "big.slc")
    sluice("generate", text, "--dims", "3000x2000x1000", "--nnz", 1200000, "-q")
    args = ["convert", text, out, "-t", "1", "-q", "--memory"]
    least = re.search(r"needs (\d+) MiB of memory", sluice(*args, "1MiB", status=4)[1])
    return (*args, f"{int(least[1]) + 2}MiB")


def temporary_files(folder):
    """No space for temporary files, or a read-only place: the message names it, and no files are
    left."""
    if QUICK:
        raise Skip("sanitizers see as much where files may not grow")
    disk = Disk(os.path.join(folder, "disk"))
    os.mkdir(os.path.join(folder, "out"))
    args = spilling(folder)
    try:
        disk.resize(64 * KIB)
        for reason in ("No space left on device", "Read-only file system"):
            disk.protect(reason.startswith("Read-only"))
            done = run_command((*args, "--temp-dir", disk.folder), 300)
            check(done.returncode == 5 and
                  any(line.startswith("sluice: " + disk.folder) and reason in line for line in done.stderr.splitlines()),
                  f"exit {done.returncode}: {done.stderr}")
            check(os.listdir(disk.folder) == [] and os.listdir(os.path.join(folder, "out")) == [],
                  f"left: {os.listdir(disk.folder)} {os.listdir(os.path.join(folder, 'out'))}")
    finally:
        disk.remove()


def previous_results(folder):
    """A run without space keeps the results of the previous run, and a conversion the store that it
    would replace."""
    out = os.path.join(folder, "")
    for name in ("convert", "export", "export sorted", "export factors", "mttkrp", "ttv", "ttm", "cpd"):
        args = prepared(name, out)
        check(refused(args, name), name)
        before = tree(out)
        # Options of another result, so that a mixture of two results is detected.
        other = {"convert": ("--codec", "blco"), "cpd": ("--seed", "7"), "export": ("--precision", "3")}.get(name, ())
        for limit in (0,) if name.startswith("export") else (0, 4 * KIB):
            check(not refused(args if name.startswith("export") else (*args, *other), name, limit), f"{name}: no limit is felt")
            check(tree(out) == before, f"{name}: the result before is not what it was: {sorted(tree(out))}")


def few_open_files(folder):
    """With any limit on open files, a command is rejected before it computes anything, or completes."""
    at, out = inputs(), os.path.join(folder, "out")
    stripes, log = os.path.join(folder, "stripes"), os.path.join(folder, "log")
    with open(os.path.join(folder, "t.csv"), "w") as file:
        file.write("a,b\n" + "x,y\nz,y\n" * 50)
    sluice("generate", os.path.join(folder, "s.slc"), "--dims", "30x20x10", "--nnz", 3000, "-q")
    small, own = os.path.join(folder, "s.slc"), os.path.join(folder, "own.slc")
    model = os.path.join(folder, "model")
    sluice("cpd", small, "-r", 2, "-i", 1, "-o", model, "-q")
    os.mkdir(stripes)
    striped = shutil.copytree(small, os.path.join(folder, "striped.slc"))
    sluice("layout", striped, "--sorted", "all", "-q")
    sluice("layout", striped, "--stripe", stripes, "-q")
    cpd = ("-r", "2", "-i", "2", "--log-json", log, "-o", out)
    cases = [("cpd", small, *cpd), ("cpd", small, *cpd, "--checkpoint", "none"), ("cpd", striped, *cpd),
             ("cpd", small, "-r", "2,3", "-i", "2", "--consistency", "always", "-o", out), ("convert", at + "t.tns", out), ("convert", at + "t.tns", out, "--relabel", "frequency"),
             ("convert", os.path.join(folder, "t.csv"), out, "--columns", "a,b"), ("append", own, at + "t.tns", "--grow-modes", "all"),
             ("layout", own, "--sorted", "all"), ("layout", own, "--stripe", stripes), ("permute", small, out, "--order", "3,2,1"),
             ("export", small, out + ".npz"), ("export", model, out + ".mat"), ("export", model, out, "--format", "csv"),
             ("mttkrp", small, "--mode", "1", "--factors", model, "-o", out + ".npy")]
    kept = set(os.listdir(stripes))
    for case in cases:
        done = 0
        for limit in range(8, 65) if FULL else (8, 14, 19, 64):
            for path in (out, out + ".npz", out + ".mat", out + ".npy", own, log):
                shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
            for name in set(os.listdir(stripes)) - kept:
                os.remove(os.path.join(stripes, name))
            shutil.copytree(small, own)
            ran = subprocess.run([SLUICE, *case, "-q"], capture_output=True, text=True, check=False,
                                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)))  # pylint: disable=W1509
            what = f"{case} with {limit} files: exit {ran.returncode}: {ran.stderr}"
            done += ran.returncode == 0
            check(ran.returncode == 0 or (ran.returncode == 5 and "ulimit -n" in ran.stderr), what)
            check(ran.returncode == 0 or done == 0, f"{what}, but fewer were enough")
            results = [out + end for end in (".npy", "/mode-", "/lambda", "/run.json", "/blco")]
            late = case[0] != "export" and any(path in ran.stderr for path in results)  # export computes nothing
            check(ran.returncode == 0 or not late, f"{what}: too late")
            if log in case and ran.returncode != 0 and os.path.exists(log):
                with open(log, encoding="utf-8") as file:
                    check('"iteration"' not in file.read(), f"{what}: after iterations")
            if ran.returncode == 0 and case[0] in ("layout", "append"):
                sluice("check", own, "-q")
            if ran.returncode == 0 and case[0] == "cpd":
                check("run.json" in os.listdir(out) or "sweep.json" in os.listdir(out), what)
        check(done > 0, f"{case} with 64 files")


resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
run([
    ("files that may not grow", by_limit),
    ("a full disk", by_disk),
    ("a disk that may not be written to", read_only),
    ("temporary files", temporary_files),
    ("results of the run before stay", previous_results),
    ("few open files", few_open_files),
])
