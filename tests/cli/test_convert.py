#!/usr/bin/env python3
"""sluice convert after a kill, an interrupt or changes to its leftovers: the same command line
resumes, and the store has the bytes of an uninterrupted conversion."""

import gzip
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, QUICK, SLUICE, check, crowded, ended, read_bytes, run, sluice  # noqa: E402

LEFT = ("pushed.state", "sorted.state", "spill.tmp", "blco.blk", "blco.blk.journal")
# Several pieces of text, and several blocks.
NNZ = 250000 if QUICK else 400000
templates = tempfile.TemporaryDirectory(dir=os.environ.get("SLC_TEST_DIR"))


def made(folder, seed=1):
    """Makes the text of the test case by copying a text that is generated once."""
    text, template = os.path.join(folder, "in.tns"), os.path.join(templates.name, f"{seed}.tns")
    if not os.path.exists(template):
        sluice("generate", template, "--dims", "3000x2000x90", "--nnz", NNZ, "--seed", seed, "-q")
    shutil.copyfile(template, text)
    return text


def store(path):
    return {name: read_bytes(os.path.join(path, name)) for name in sorted(os.listdir(path))}


def command(*more, source="in.tns"):
    return ["convert", source, "out.slc", "--checkpoint-interval", "0.01", "--block-bytes", "64KiB", "--memory",
            "96MiB" if QUICK else "64MiB", "-t", "2", *more]


def start(folder, *more, source="in.tns", **kw):
    return subprocess.Popen([SLUICE, *command(*more, source=source)], cwd=folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **kw)


def finish(folder, *more, source="in.tns"):
    """Runs the command to its end; returns the contents of the store, and the output. Removes the
    store."""
    out, messages = sluice(*command(*more, source=source), cwd=folder)
    check(not os.path.exists(os.path.join(folder, "out.slc.part")), "OUT.slc.part is left")
    made_store = store(os.path.join(folder, "out.slc"))
    for name in made_store:
        os.remove(os.path.join(folder, "out.slc", name))
    os.rmdir(os.path.join(folder, "out.slc"))
    return made_store, out + messages


def leave(folder, *more, source="in.tns", until="pushed.state", number=signal.SIGKILL):
    """Kills a conversion as soon as a file exists in its folder; returns the exit code and the
    output."""
    while True:
        code, messages = ended(command(*more, source=source), folder, os.path.join("out.slc.part", until), number)
        if code != 0:
            return code, messages
        sluice("check", "out.slc", "-q", cwd=folder)  # it finished before the signal came
        for name in os.listdir(os.path.join(folder, "out.slc")):
            os.remove(os.path.join(folder, "out.slc", name))
        os.rmdir(os.path.join(folder, "out.slc"))


def named(folder, expected):
    """A complete store is only renamed, or its mark of completeness removed."""
    result, said = finish(folder)
    check("resuming an interrupted run: the store is complete" in said, said)
    check(result == expected, "other bytes than without kills")
    return 1


def killed(folder):
    """A conversion that is killed at random moments, again and again, completes."""
    made(folder)
    begun = time.monotonic()
    expected, _ = finish(folder)
    seconds = time.monotonic() - begun
    draw = random.Random(1)
    kills = resumed = 0
    while kills < (200 if FULL else 3 if QUICK else 8):
        child = start(folder)
        time.sleep(draw.uniform(0, seconds))
        child.kill()
        child.communicate()
        kills += child.returncode == -signal.SIGKILL
        if os.path.exists(os.path.join(folder, "out.slc", "complete.state")):
            resumed += named(folder, expected)
        elif os.path.exists(os.path.join(folder, "out.slc")) or draw.random() < 0.4:
            if os.path.exists(os.path.join(folder, "out.slc")):
                check(store(os.path.join(folder, "out.slc")) == expected, "other bytes after kills")
                for name in expected:
                    os.remove(os.path.join(folder, "out.slc", name))
                os.rmdir(os.path.join(folder, "out.slc"))
            result, said = finish(folder)
            check(result == expected, "other bytes after kills")
            resumed += "resuming an interrupted run" in said
    result, _ = finish(folder)
    check(result == expected, "other bytes after kills")
    print(f"# {kills} kills, {resumed} times gone on with")


def last_steps(folder):
    """Killed when the store is complete: the next run only renames it."""
    made(folder)
    expected, _ = finish(folder)
    places = [os.path.join(folder, name, "complete.state") for name in ("out.slc.part", "out.slc")]
    met = 0
    for draw in range(60 if FULL else 4 if QUICK else 10):
        child = start(folder)
        while not any(map(os.path.exists, places)) and child.poll() is None:
            time.sleep(0.0002)
        if draw % 2 == 1:
            time.sleep(0.002)
        child.kill()
        child.communicate()
        if any(map(os.path.exists, places)):
            met += named(folder, expected)
        else:
            check(store(os.path.join(folder, "out.slc")) == expected, "other bytes")
            shutil.rmtree(os.path.join(folder, "out.slc"))
    print(f"# {met} times killed between the note that the store is complete and the end")


def complete(folder):
    """An error after the store is complete, here an existing file with its name, loses no work."""
    made(folder)
    expected, first = finish(folder)
    told = ("input ", "index base", "dims", "duplicates", "nonzeros", "store ", "size", "fibers")
    for more in ([], ["--temp-dir", "."], ["--relabel", "frequency"]):
        if more:
            expected, first = finish(folder, *more)
        code, said = crowded(command(*more), folder, "out.slc")
        check(code == 5 and "the output exists" in said, said)
        check("progress is kept in out.slc.part: the same command resumes from it" in said, said)
        left = os.listdir(os.path.join(folder, "out.slc.part"))
        check("complete.state" in left and not set(left) & {"pushed.state", "spill.tmp", "relabelled.slc"}, left)
        result, said = finish(folder, *more)
        check("resuming an interrupted run: the store is complete" in said and result == expected, said)
        for line in first.splitlines():
            check(not line.strip().startswith(told) or line in said, f"not printed again: {line}\n{said}")
    for more, why in ((["--codec", "lz4"], "its options differ"), (["--restart"], "a restart was requested")):
        check(crowded(command(), folder, "out.slc")[0] == 5, "not left")
        result, said = finish(folder, *more)
        check(why in said and "resuming" not in said and result == finish(folder, *more)[0], said)
    check(crowded(command(), folder, "out.slc")[0] == 5, "not left")
    made(folder, seed=2)
    result, said = finish(folder)
    check("the input has changed" in said and result == finish(folder)[0], said)


def placed(folder):
    """A leftover mark of completeness is no damage; the same command line removes it."""
    made(folder)
    check(crowded(command(), folder, "out.slc")[0] == 5, "not left")
    part, out = os.path.join(folder, "out.slc.part"), os.path.join(folder, "out.slc")
    shutil.copytree(part, out)
    sluice("info", out)
    said, _ = sluice("check", out)
    check("complete.state: left by an interrupted run; not part of the store" in said, said)
    shutil.rmtree(part)
    _, said = sluice(*command("--codec", "lz4"), cwd=folder, status=5)
    check("the output exists" in said, said)
    sluice("layout", out, "--sorted", "1", "-q")
    _, said = sluice(*command(), cwd=folder, status=5)  # the store is another store than before
    check("the output exists" in said and "sorted-1.blk" in os.listdir(out), said)
    sluice("layout", out, "--drop", "sorted-1", "-q")
    _, said = sluice(*command(), cwd=folder)
    check("resuming an interrupted run" in said and "complete.state" not in os.listdir(out), said)
    _, said = sluice(*command(), cwd=folder, status=5)
    check("the output exists" in said, said)


def stopped(folder):
    """After a signal, a message says that the finished work is kept, and the same command line
    resumes."""
    made(folder)
    expected, said = finish(folder)
    share = re.search(r"commits +\d+\.\d\ds, (\d+\.\d) % of the time", said)
    check(share and 0 < float(share[1]) < 100, said)
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        for until in ("pushed.state", "sorted.state"):
            ended, said = leave(folder, until=until, number=number)
            check(ended == code, f"exit {ended}: {said}")
            check("the finished work is kept in out.slc.part; repeat the command to resume" in said, said)
            result, said = finish(folder)
            check(re.search(r"resuming an interrupted run: \w+", said), said)
            check(result == expected, f"other bytes after {until}")


def compressed(folder):
    """The committed part of a compressed file is decompressed once more, but nothing beyond it."""
    text = made(folder)
    with gzip.open(text + ".gz", "wb", compresslevel=1) as file:
        file.write(read_bytes(text))
    expected, _ = finish(folder, source="in.tns.gz")
    leave(folder, source="in.tns.gz")
    result, said = finish(folder, source="in.tns.gz")
    check("resuming an interrupted run" in said and result == expected, said)


def changed(folder):
    """With another input, other options, or --restart, a conversion begins anew and states the
    reason."""
    made(folder)
    leave(folder)
    made(folder, seed=2)
    result, said = finish(folder)
    check("the input has changed" in said, said)
    check(result == finish(folder)[0], "other bytes than of the new input")
    for more, why in ((["--codec", "lz4"], "its options differ"), (["--duplicates", "keep-last"], "its options differ"),
                      (["--restart"], "a restart was requested")):
        leave(folder)
        result, said = finish(folder, *more)
        check(why in said and "resuming" not in said, said)
        check(result == finish(folder, *more)[0], f"other bytes with {more}")
    leave(folder)
    result, said = finish(folder, "-t", "1", "--memory", "90MiB")
    check("resuming an interrupted run" in said and result == finish(folder)[0], said)


def altered(folder):
    """Leftovers are verified: torn or modified files do not change the resulting store."""
    made(folder)
    expected, _ = finish(folder)
    draw = random.Random(2)
    for number, name in enumerate(LEFT):
        for cut in ((False, True) if FULL else (number % 2 == 1,)):
            leave(folder, until="sorted.state")
            path = os.path.join(folder, "out.slc.part", name)
            data = bytearray(read_bytes(path)) or bytearray(1)
            at = draw.randrange(len(data))
            data[at] ^= 16
            with open(path, "wb") as file:
                file.write(data[:at] if cut else data)
            result, said = finish(folder)
            check(result == expected, f"other bytes after {name} was altered at {at}: {said}")


def pipe(folder):
    """Input from a pipe cannot be read again: no files are left."""
    child = start(folder, source="-", stdin=subprocess.PIPE)
    child.stdin.write("".join(f"{i % 991 + 1} {i + 1} 1 1\n" for i in range(300000)))
    child.stdin.flush()
    deadline = time.monotonic() + 30
    while not os.listdir(folder) and time.monotonic() < deadline:
        time.sleep(0.001)
    child.send_signal(signal.SIGINT)
    child.wait(timeout=60)
    check(child.returncode == 130 and os.listdir(folder) == [], f"left: {os.listdir(folder)}")


def two(folder):
    """A second run does not resume the work of a running one."""
    made(folder)
    first = start(folder)
    while not os.path.exists(os.path.join(folder, "out.slc.part", "pushed.state")) and first.poll() is None:
        time.sleep(0.0005)
    first.send_signal(signal.SIGSTOP)
    if os.path.exists(os.path.join(folder, "out.slc.part")):
        _, refused = sluice(*command(), cwd=folder, status=5)
        check("another run is writing this output" in refused, refused)
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=60)
    check(first.returncode == 0, f"exit {first.returncode}")
    # Started together: one makes the store, and the others state why they do not.
    with open(os.path.join(folder, "one.tns"), "w", encoding="ascii") as file:
        file.write("1 1 1 1\n")
    for number in range(5 if QUICK else 20):
        many = [subprocess.Popen([SLUICE, "convert", "one.tns", f"{number}.slc", "-q"], cwd=folder, stderr=subprocess.PIPE, text=True)
                for _ in range(4)]
        said = [child.communicate(timeout=60)[1] for child in many]
        codes = sorted(child.returncode for child in many)
        check(codes == [0, 5, 5, 5], f"exits {codes}: {said}")
        reasons = ("another run is writing this output", "another run is changing this store", "the output exists")
        check(all(any(reason in one for reason in reasons) for one in said if one), said)


run([
    ("kills at any moment", killed),
    ("kills when the store is complete", last_steps),
    ("a complete store that cannot get its name", complete),
    ("a complete store that has its name", placed),
    ("a signal keeps finished work", stopped),
    ("a compressed input", compressed),
    ("another input, other options", changed),
    ("altered leftovers", altered),
    ("a pipe begins anew", pipe),
    ("two at once", two),
])
