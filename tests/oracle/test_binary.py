#!/usr/bin/python3
"""Binary tensors of other programs: each yields the same store as its text, to the last byte, in
every form (plain, compressed, through a pipe, interrupted); errors name the fault."""

import gzip
import hashlib
import json
import lzma
import os
import signal
import struct
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import binary_forms as forms  # noqa: E402
from tap import SLUICE, SOURCE, check, ended, run, sluice  # noqa: E402

GOLDEN = os.path.join(SOURCE, "tests", "golden", "binary")


def write(path, content):
    with open(path, "wb" if isinstance(content, bytes) else "w") as file:
        file.write(content)
    return path


def content_of(store):
    """Identifies the tensor of a store: every file's hash, and the manifest except for its origin."""
    hashes = {}
    for name in sorted(os.listdir(store)):
        with open(os.path.join(store, name), "rb") as file:
            hashes[name] = hashlib.sha256(file.read()).hexdigest()
    with open(os.path.join(store, "tensor.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    hashes["tensor.json"] = {key: manifest[key] for key in manifest if key not in ("origin", "checksum", "created")}
    return hashes


def converted(folder, source, *more, **kw):
    """Returns the contents of the store that is made from one or several files; removes the
    store."""
    store = os.path.join(folder, "made.slc")
    sluice("convert", *([source] if isinstance(source, str) else source), store, "-q", *more, **kw)
    made = content_of(store)
    for name in os.listdir(store):
        os.remove(os.path.join(store, name))
    os.rmdir(store)
    return made


def tensor(dims, nnz, seed=0, whole=False):
    """Returns random coordinates, some duplicate, and values, some zero."""
    random = np.random.default_rng(seed)
    coords = np.array([random.integers(0, d, nnz) for d in dims])
    if nnz > 10:
        coords[:, nnz // 2:nnz // 2 + 5] = coords[:, :5]
    values = random.integers(-9, 10, nnz).astype(float)
    return dims, coords, values if whole else values / 8


def as_text(folder, dims, coords, values, *more):
    path = write(os.path.join(folder, "same.tns"), forms.tns(coords, values))
    return converted(folder, path, "--index-base", 1, "--dims", "x".join(map(str, dims)), *more)


def agree(folder):
    """Files of any order and index width, and with modes beyond 32 bits, yield the store of their
    text: plain, compressed, through a pipe, with any threads."""
    shapes = ((7,), (100, 1 << 40), (30, 40, 50), (5, 6, 7, 8), (2,) * 16, (70000, 3, 900))
    for seed, dims in enumerate(shapes):
        given = tensor(dims, 3000, seed)
        want = as_text(folder, *given)
        wide = max(dims) > 1 << 32
        for number, (name, content, more) in enumerate((
                ("splatt-8", forms.splatt(*given, 8, 4), ()), ("splatt-4", None if wide else forms.splatt(*given, 4, 8), ()),
                ("genten", forms.genten(*given), ()), ("genten-32", forms.genten(*given, 32, [64] * len(dims)), ()),
                ("alto", forms.alto(*given), ("--format", "alto-bin")),
                ("alto-32", forms.alto(*given, 4), ("--dialect", "alto-bin")))):
            if content is None:
                continue
            path = write(os.path.join(folder, name), content)
            check(converted(folder, path, *more) == want, f"{dims}, {name}: another store")
            if (number + seed) % 2 == 0:
                packed = write(path + ".gz", gzip.compress(content, 1))
                check(converted(folder, packed, *more, "-t", 1) == want, f"{dims}, {name}.gz: another store")
            else:
                with open(path, "rb") as pipe:
                    check(converted(folder, "-", *more, stdin=pipe) == want, f"{dims}, {name} by a pipe: another store")


def pieces(folder):
    """Several pieces, budgets that spill, duplicate policies and relabelling yield the same store
    as from text."""
    given = tensor((3000, 2000, 90), 120000, 5, True)
    paths = [write(os.path.join(folder, "a.bin"), forms.splatt(*given)),
             write(os.path.join(folder, "b.bin.xz"), lzma.compress(forms.genten(*given), preset=0))]
    for more in ((), ("--duplicates", "keep-first", "-t", 3), ("--duplicates", "keep-last", "--memory", "48MiB", "-t", 1),
                 ("--relabel", "frequency")):
        want = as_text(folder, *given, *more)
        for path in paths:
            check(converted(folder, path, *more) == want, f"{os.path.basename(path)} {more}: another store")
    check(sorted(os.listdir(folder)) == ["a.bin", "b.bin.xz", "same.tns"], f"leftovers: {os.listdir(folder)}")


def golden(folder):
    """Golden files of these writers still yield their contents."""
    want = as_text(folder, *forms.TINY)
    for name, content in forms.tiny().items():
        path = os.path.join(GOLDEN, name)
        with open(path, "rb") as file:
            check(file.read() == content, f"{name} is not what its writer writes")
        more = ("--format", "alto-bin") if name.startswith("alto") else ()
        check(converted(folder, path, *more) == want, f"{name}: another store")


def goes_on(folder, names, want):
    """After a kill, the same command line resumes, and the store is the same."""
    command = ["convert", *names, "made.slc", "--block-bytes", "64KiB", "--checkpoint-interval", "0.005", "--memory", "96MiB",
               "-t", "2"]
    code, said = ended(command, folder, os.path.join("made.slc.part", "pushed.state"), signal.SIGKILL)
    check(code in (0, -signal.SIGKILL), f"{names}: exit {code} {said}")
    if code != 0:
        done = subprocess.run([SLUICE, *command], cwd=folder, capture_output=True, text=True, check=False)
        check(done.returncode == 0 and "resumed" in done.stdout, f"{names}: {done.returncode} {done.stdout}{done.stderr}")
    check(content_of(os.path.join(folder, "made.slc")) == want, f"{names}: another store")
    for left in os.listdir(os.path.join(folder, "made.slc")):
        os.remove(os.path.join(folder, "made.slc", left))
    os.rmdir(os.path.join(folder, "made.slc"))


def resumed(folder):
    """Interrupted conversions of plain and compressed files resume."""
    given = tensor((3000, 2000, 90), 400000, 7, True)
    want = as_text(folder, *given, "--block-bytes", "64KiB")
    for name, content in (("k.bin", forms.splatt(*given)), ("k.gz", gzip.compress(forms.genten(*given), 1))):
        write(os.path.join(folder, name), content)
        goes_on(folder, [name], want)


def refused_with(folder, what, content, words, *more, status=3):
    path = write(os.path.join(folder, "bad"), content)
    for source in (path, write(path + ".gz", gzip.compress(content, 1))):
        _, messages = sluice("convert", source, os.path.join(folder, "bad.slc"), *more, status=status)
        check(words in messages and os.path.basename(source) in messages, f"{what}: {messages}")
        check(not any(name.startswith("bad.slc") for name in os.listdir(folder)), f"{what}: something is left")


def refused(folder):
    """For false header fields and impossible nonzeros, errors name the fault and the number of the
    nonzero."""
    dims, coords, values = forms.TINY
    coords = np.array(coords)
    good = {"splatt": forms.splatt(*forms.TINY), "genten": forms.genten(*forms.TINY), "alto": forms.alto(*forms.TINY)}
    at = {"splatt": 20, "genten": 12, "alto": 8}  # offset of the mode sizes, which follow the order
    for name, content in good.items():
        more = ("--format", name + "-bin")
        number = "<I" if name == "splatt" else "<Q"
        size = struct.calcsize(number)
        first = at[name] + (4 if name == "splatt" else 0)

        def forged(offset, value, code=number, source=content):
            return source[:offset] + struct.pack(code, value) + source[offset + struct.calcsize(code):]

        refused_with(folder, f"{name} cut", content[:-1], "the header requires", *more)
        refused_with(folder, f"{name} too long", content + b"\0", "the header requires", *more)
        refused_with(folder, f"{name} within its header", content[:first + 5], "ends within its header", *more)
        refused_with(folder, f"{name}, a length of 0", forged(first, 0), "size 0", *more)
        order = {"splatt": (20, "<I"), "genten": (4, "<I"), "alto": (0, "<Q")}[name]
        for count in (0, 17, 0xffffffff):
            refused_with(folder, f"{name} of {count} modes", forged(order[0], count, order[1]), "modes: 1 to 16", *more)
        nnz = first + 3 * size + (24 if name == "genten" else 0)
        refused_with(folder, f"{name}, more nonzeros", forged(nnz, 5), "the header requires", *more)
        if size == 8:
            refused_with(folder, f"{name}, 2^60 nonzeros", forged(nnz, 1 << 60), "declares 1152921504606846976", *more)
        refused_with(folder, f"{name}, a shorter mode", forged(first, 2), "nonzero 2: index 2 of mode 1 is beyond the "
                     "declared mode size 2", *more)
        writer = getattr(forms, name)
        for bad, words in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")):
            some = list(values)
            some[2] = bad
            refused_with(folder, f"{name}, {bad}", writer(dims, coords, some), f"nonzero 3: value {words} is not finite", *more)
    wide = forms.splatt(*forms.TINY, 8)
    refused_with(folder, "2^60 nonzeros", wide[:20 + 32] + struct.pack("<Q", 1 << 60) + wide[60:], "declares")
    refused_with(folder, "indices of 24 bits", forms.genten(*forms.TINY).replace(struct.pack("<Q", 32),
                 struct.pack("<Q", 24)), "24 bits")
    refused_with(folder, "another format", good["genten"], "not a binary SPLATT tensor", "--format", "splatt-bin")
    refused_with(folder, "a base that is not", good["splatt"], "nonzero 1: index 0 of mode 1, but indices start at 1",
                 "--index-base", 1)
    refused_with(folder, "nothing said", good["alto"], "alto-bin (--format)")


def temporary(folder):
    """Decompression to a temporary file obeys --max-temp and --temp-dir, and leaves nothing."""
    given = tensor((300, 200, 90), 20000, 3)
    packed = write(os.path.join(folder, "t.gz"), gzip.compress(forms.splatt(*given), 1))
    _, messages = sluice("convert", packed, os.path.join(folder, "o.slc"), "--max-temp", "100KiB", status=4)
    check("--max-temp" in messages, messages)
    temp = os.path.join(folder, "temp")
    os.mkdir(temp)
    check(converted(folder, packed, "--temp-dir", temp) == as_text(folder, *given), "another store")
    check(os.listdir(temp) == [] and sorted(os.listdir(folder)) == ["same.tns", "t.gz", "temp"], "leftovers")


if __name__ == "__main__":
    run([
        ("the same store as from text", agree),
        ("pieces", pieces),
        ("golden files", golden),
        ("interrupted", resumed),
        ("refused", refused),
        ("temporary file", temporary),
    ])
