#!/usr/bin/python3
"""Hostile files with valid checksums: every count, length and offset of every file that sluice
reads is set to 2^60, or to as much as the field holds, alone and consistently with its copies.

Each must be rejected or harmless: within 64 MiB of resident memory and two seconds of processor
time, with a message, a documented exit code, and no leftovers. The plain form runs a sample
(SLC_TEST_SEED) of fields and commands; SLC_TEST_FULL=1 runs all."""

import bz2
import gzip
import json
import os
import random
import re
import resource
import shutil
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import slc_format as f  # noqa: E402
from forged import (PAGE, Forgery, Whole, agree, checkpoint_sections, seal_checkpoint, seal_chunks,  # noqa: E402
                    seal_journal, seal_state, write_manifest)
from measured import MIB, measured, named_budget  # noqa: E402
from tap import FULL, QUICK, check, crowded, ended, npy, run, sluice  # noqa: E402

DIMS = [80, 60, 40]
BIG = 1 << 60
MOST_RESIDENT, MOST_SECONDS = 64 * MIB, 2
SEED = int(os.environ.get("SLC_TEST_SEED", "1"))
DRAW = random.Random(SEED)


def sampled(cases, count):
    """Returns all cases, or a sample of this size."""
    cases = list(cases)
    return cases if FULL else DRAW.sample(cases, min(count, len(cases)))


def words(begin, end, halves=True):
    """Yields (offset, form, value) for every possible position of a count of 8 bytes and, if
    `halves`, of 4 bytes."""
    for at in range(begin, end - 3, 4):
        if (at - begin) % 8 == 0 and at + 8 <= end:
            yield from ((at, "Q", value) for value in (BIG, (1 << 64) - 1))
        yield from ((at, "I", value) for value in ((1 << 32) - 1, 1 << 30) if halves)


def harmless(args, what, statuses):
    """Runs the command; returns its exit status, which must be one of `statuses`."""
    done = measured(args, status=None)
    what = f"{what}: {args[0]}"
    check(done.status in statuses, f"{what}: exit {done.status}, wanted {statuses}: {done.output}{done.messages}")
    # Not checked under sanitizers, which use additional memory.
    check(QUICK or done.resident <= MOST_RESIDENT, f"{what}: {done.resident / MIB:.1f} MiB were resident")
    check(QUICK or done.seconds <= MOST_SECONDS, f"{what}: {done.seconds} s of a processor")
    check(done.status in (0, 75) or re.search(r"^sluice: .{20}", done.messages, re.M)
          or args[0] == "check" and done.output, f"{what}: no message: {done.messages}")
    worst["resident"] = max(worst["resident"], done.resident)
    worst["seconds"] = max(worst["seconds"], done.seconds)
    tries[args[0], done.status] = tries.get((args[0], done.status), 0) + 1
    return done.status


worst, tries = {"resident": 0, "seconds": 0}, {}


def told(test):
    """Wraps a test to print its highest memory and time."""
    def telling(folder):
        worst.update(resident=0, seconds=0)
        tries.clear()
        test(folder)
        ends = ", ".join(f"{name} {status}: {count}" for (name, status), count in sorted(tries.items()))
        print(f"# seed {SEED}: at most {worst['resident'] / MIB:.1f} MiB and {worst['seconds']:.2f} s; exit codes: "
              f"{ends}")
    return telling


class Store:
    """A store, an operand to multiply it with, and a copy to restore it from."""

    def __init__(self, folder, codec, nnz=900, **more):
        self.layouts = "sorted" if "sorted_by" in more else "blco"
        self.at = os.path.join(folder, codec, "")
        os.makedirs(self.at)
        rng = np.random.default_rng(2)
        coords = np.array(np.unravel_index(rng.choice(np.prod(DIMS), nnz, replace=False), DIMS))
        f.write_store(self.at + "good.slc", DIMS, coords, rng.integers(1, 50, coords.shape[1]) / 2.0, codec,
                      tiles_per_block=1, **more)
        os.mkdir(self.at + "factors")
        for mode, length in enumerate(DIMS, 1):
            npy(f"{self.at}factors/mode-{mode}.npy", [1] * 2 * length, length, 2)
        npy(self.at + "v.npy", [1] * DIMS[0], DIMS[0])
        with open(self.at + "one.tns", "w") as text:
            text.write(" ".join("1" for _ in DIMS) + " 2.5\n")
        self.path = self.at + "s.slc"
        self.restore()
        check(harmless(["check", self.path], "unaltered", {0}) == 0, "")

    def restore(self):
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(self.at + "good.slc", self.path)

    def commands(self):
        at, few = self.at, ("-t", 2, "-q")
        return {"check": ("check", self.path, "-t", 2),
                "info": ("info", self.path),
                "plan": ("plan", self.path, "-r", 2, "-t", 2),
                "cpd": ("cpd", self.path, "-r", 2, "-i", 1, "-o", at + "out", *few),
                "mttkrp": ("mttkrp", self.path, "--mode", 1, "--factors", at + "factors", "-o", at + "out",
                           "--layouts", self.layouts, *few),
                "ttv": ("ttv", self.path, at + "out.slc", "--mode", 1, "--vector", at + "v.npy", *few),
                "ttm": ("ttm", self.path, at + "out", "--mode", 2, "--matrix", at + "factors/mode-2.npy", *few),
                "export": ("export", self.path, at + "out", *few),
                "layout": ("layout", self.path, "--sorted", 2, *few),
                "append": ("append", self.path, at + "one.tns", *few),
                "slice": ("slice", self.path, at + "out.slc", "--mode", "1=2..", *few),
                "permute": ("permute", self.path, at + "out.slc", "--order", ",".join(map(str, range(len(DIMS), 0, -1))), *few)}

    def refused(self, what, unread=(), legal=False):
        """`check` and the other commands reject the forgery (all of them, or one of them); those in
        `unread` may not read the forged part. `legal`: the store may be valid."""
        before = sorted(os.listdir(self.at))
        for name in self.commands() if FULL else ["check", DRAW.choice(list(self.commands())[1:])]:
            allowed = {1, 2, 3, 4, 5, *([0] if legal or name in unread else ())} if name != "check" else \
                {3, 5, *([0] if legal else ())}
            status = harmless(self.commands()[name], what, allowed)
            after = sorted(os.listdir(self.at))
            check(status == 0 or after == before, f"{what}: {name} left {set(after) - set(before)}")
            for path in set(after) - set(before):
                (shutil.rmtree if os.path.isdir(self.at + path) else os.remove)(self.at + path)
        self.restore()


# These read only the manifest, headers and indexes of a store.
NO_BLOCKS = ("info", "plan")
ALL_BUT_CHECK = ("info", "plan", "cpd", "mttkrp", "ttv", "ttm", "export", "layout", "append", "slice", "permute")
# Commands that read a layout other than blco, if present.
READS = {"sorted-1.blk": ("mttkrp",), "fiber-2.blk": ("ttm",)}


def spans(forgery):
    """(part, begin, end, commands that do not read it) of a block file's structures."""
    last = (struct.unpack_from("<Q", forgery.header, 56)[0] - 1) * forgery.entry_bytes
    tile = 64 + f.round_up(64 + 12 * len(DIMS), 8)
    return [("header", 8, 256, ()), ("index", 0, forgery.entry_bytes, ()),
            ("index", last, last + forgery.entry_bytes, ()), ("end", 8, 48, ()), ("blocks", 0, 64, NO_BLOCKS),
            ("blocks", 64, tile, NO_BLOCKS), ("blocks", tile, tile + 64, ALL_BUT_CHECK)]


def ignored(part, at, form):
    """Optional bits, which a reader ignores, and the minor version; hashes, which are
    recomputed."""
    return part == "header" and (24 <= at < 32 or at in (88, 92)) or part == "end" and at in (8, 12, 32, 36) \
        or part == "index" and at % 136 in (24, 28)


def is_length(part, at):
    return part == "header" and 128 <= at < 128 + 8 * len(DIMS)


def block_files(codec, name="blco.blk", agreed=True, **more):
    """Changes each word of a block file's structures, with a manifest that agrees, so that later
    checks are reached. If not `agreed`, changes only the header, with a manifest that does not
    agree."""
    def test(folder):
        # Two tiles, each in its own block.
        store = Store(folder, codec, 66000 if codec == "packed" else 900, **more)
        forgery = Forgery(os.path.join(store.path, name))
        cases = [(part, *word, unread) for part, begin, end, unread in spans(forgery)
                 if part == "header" or agreed for word in words(begin, end)
                 # Mode sizes of 2^30 may be accepted, because a run may have enough memory for
                 # them.
                 if not (agreed and is_length(part, word[0]) and word[1] == "I")]
        for part, at, form, value, unread in sampled((c for c in cases if not ignored(*c[:3])), 8):
            forged = Forgery(forgery.path).set(part, at, form, value)
            forged.write()
            if agreed:
                agree(store.path, forged.header, name)
            if name in READS:
                unread = {*unread, *ALL_BUT_CHECK} - ({*READS[name]} - {*unread})
            # A larger mode size may be valid, because coordinates keep their places.
            store.refused(f"{name} {part} {at} = {value}", unread, agreed and is_length(part, at))
    return test


def written(forgery, *changes):
    for part, at, form, value in changes:
        forgery.set(part, at, form, value)
    forgery.write()
    return forgery


def together(folder):
    """Commands refuse a store whose counts are changed consistently in all their places."""
    store = Store(folder, "packed", 66000)
    path = os.path.join(store.path, "blco.blk")
    entry = Forgery(path).entry_bytes
    n = len(DIMS)
    for what, changes in {
            "2^60 nonzeros": [("header", 40, "Q", BIG), ("index", 16, "Q", BIG), ("blocks", 16, "Q", BIG)],
            "2^60 blocks": [("header", 56, "Q", BIG), ("header", 80, "Q", f.round_up(BIG * entry, PAGE) & f.MASK64),
                            ("end", 24, "Q", f.round_up(BIG * entry, PAGE) & f.MASK64)],
            "2^60 blocks of 8 bytes": [("header", 56, "Q", BIG), ("header", 80, "Q", BIG << 3),
                                       ("end", 24, "Q", BIG << 3)],
            "2^60 bytes of index": [("header", 80, "Q", BIG), ("end", 24, "Q", BIG), ("header", 96, "Q", BIG * 2),
                                    ("end", 40, "Q", BIG * 2)],
            "an index behind 2^60": [("header", 72, "Q", BIG), ("end", 16, "Q", BIG),
                                     ("header", 96, "Q", BIG + 2 * PAGE), ("end", 40, "Q", BIG + 2 * PAGE)],
            "2^60 tiles": [("header", 64, "Q", BIG), ("index", 40, "I", (1 << 32) - 1),
                           ("index", entry + 32, "Q", BIG)],
            "2^32 tiles of a block": [("index", 40, "I", (1 << 32) - 1), ("blocks", 24, "I", (1 << 32) - 1),
                                      ("header", 64, "Q", (1 << 32) - 1)],
            "2^60 bytes of a block": [("index", 8, "Q", BIG), ("index", entry, "Q", PAGE + BIG)],
            "2^30 bytes of a block": [("index", 8, "Q", 1 << 30), ("index", entry, "Q", PAGE + (1 << 30))],
            "a mode of 2^60": [("header", 128, "Q", BIG), ("index", 88 + 8 * n, "Q", BIG - 1)],
            "tile data at 2^60": [("blocks", 64, "Q", BIG)],
    }.items():
        agree(store.path, written(Forgery(path), *changes).header)
        store.refused(what, NO_BLOCKS if what in ("a mode of 2^60", "tile data at 2^60") else ())


def manifests(folder):
    """Changes each number of a manifest."""
    store = Store(folder, "lz4", labels={0: list(np.random.default_rng(1).permutation(DIMS[0]))}, sorted_by={1: 200},
                  fibers_of=(2,))
    path = os.path.join(store.path, "tensor.json")
    with open(path, "rb") as file:
        good = file.read()
    # Members that may have any value: the origin of the data and the size of coordinates.
    free = good.index(b'"origin"')
    places = [m for m in re.finditer(rb"(?<=[:\[,])\d+(?=[,\]}])", good) if m.start() < free
              and not good[:m.start()].endswith((b'"index_bytes":', b'"norm":'))]
    values = (str(BIG), "18446744073709551616", "1e300", "9" * 400)
    for place, value in sampled(((p, v) for p in places for v in values), 8):
        write_manifest(path, good[:place.start()] + value.encode() + good[place.end():])
        # Not every command reads every layout.
        other = good.index(b'"file":"sorted') < place.start() < good.index(b'"permutations"')
        store.refused(f"manifest at {place.start()}: {good[place.start() - 12:place.end()]} = {value}",
                      ALL_BUT_CHECK if other else ())
    layout = re.search(rb'"layouts":\[({.*?})', good)[1]
    for what, text in {"a million modes": good.replace(b'"dims":[', b'"dims":[' + b"7," * 1000000),
                       "10^5 layouts": good.replace(layout, b",".join([layout] * 100000)),
                       "nested": good.replace(b'"dims":[', b'"dims":' + b"[" * 1000000),
                       "64 MiB of spaces": good + b" " * (64 << 20)}.items() if FULL else {}.items():
        write_manifest(path, text)
        store.refused(what)


def permutations(folder):
    """Changes each word of a permutation's header, and its hash in the manifest."""
    store = Store(folder, "packed", labels={0: list(np.random.default_rng(1).permutation(DIMS[0]))})
    path, manifest = os.path.join(store.path, "perm-1.bin"), os.path.join(store.path, "tensor.json")
    for at, form, value in sampled(words(8, 64), 4):
        forged = Whole(path, lambda data: None).set(None, at, form, value)
        forged.write()
        with open(manifest, "rb") as file:
            text = json.loads(file.read())
        text["permutations"][0]["hash"] = f"{f.hash64(forged.data):016x}"
        write_manifest(manifest, json.dumps(text, separators=(",", ":")).encode())
        store.refused(f"permutation {at} = {value}", ("plan", "layout"))


def arrays(folder):
    """Changes shapes and headers of .npy files: vectors, matrices, factors and starts."""
    store = Store(folder, "packed")
    at = store.at

    def head(text, version=1, size=None):
        text = text.encode()
        length = struct.pack("<H" if version == 1 else "<I", size or len(text))
        return b"\x93NUMPY" + bytes((version, 0)) + length + text

    def shape(text, kind="<f8"):
        return head(f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {text}, }}".ljust(117) + "\n") + b"\0" * 800

    forged = {f"shape {text}": shape(text) for text in
              (f"({BIG},)", f"({BIG}, 2)", f"({DIMS[1]}, {BIG})", f"({BIG}, {BIG})", f"({(1 << 64) - 1},)",
               f"({1 << 64}, 2)", f"(50, {'9' * 60})", "(" + "50, " * 20 + ")", f"(-{BIG}, 2)")}
    forged |= {"a head of 4 GiB": head("{'descr': '<f8', ", 2, (1 << 32) - 1), "a head of 64 KiB": head("{", 1, 65535),
               "f1152921504606846976": shape("(50, 2)", f"<f{BIG}"), "nested": head("{'shape': " + "(" * 60000)}
    few = ("-t", 2, "-q")
    uses = {"ttv": ("v.npy", ("ttv", store.path, at + "out.slc", "--mode", 1, "--vector", at + "v.npy", *few)),
            "ttm": ("factors/mode-2.npy", store.commands()["ttm"]),
            "mttkrp": ("factors/mode-2.npy", store.commands()["mttkrp"]),
            "cpd": ("factors/mode-3.npy", ("cpd", store.path, "-r", 2, "-i", 1, "--init", at + "factors",
                                           "-o", at + "out", *few))}
    for what, use in sampled(((w, u) for w in forged for u in uses), 6):
        name, args = uses[use]
        with open(at + name, "rb") as file:
            good = file.read()
        with open(at + name, "wb") as file:
            file.write(forged[what])
        harmless(args, what, {2, 3, 5})
        check(not any(os.path.exists(at + out) for out in ("out", "out.slc")), f"{what}: {use} left a result")
        with open(at + name, "wb") as file:
            file.write(good)


def texts(folder):
    """Changes headers and lines of texts in every dialect, plain and compressed, and a text with
    its claimed length."""
    at, row = os.path.join(folder, ""), "1 1 1 1.5\n"
    forged = {
        "parti": {"lengths": f"3\n{BIG} {BIG} {BIG}\n{row}", "order": f"{BIG}\n2 2 2\n{row}",
                  "20 digits": f"3\n{1 << 64} 2 2\n{row}"},
        "genten": {"entries": f"sptensor\n3\n2 2 2\n{BIG}\n{row}", "order": f"sptensor\n{BIG}\n2 2 2\n1\n{row}",
                   "lengths": f"sptensor\n3\n{BIG} {BIG} {BIG}\n1\n{row}"},
        "tensortoolbox": {"entries": f"sptensor\n3\n2 2 2\n{BIG}\n{row}",
                          "order": f"sptensor\n{(1 << 64) - 1}\n2 2 2\n1\n{row}"},
        "frostt-ext": {"entries": f"3 {BIG}\n2 2 2\n{row}", "order": f"{BIG} 1\n2 2 2\n{row}"},
        "matrixmarket": {"entries": f"%%MatrixMarket matrix coordinate real general\n2 2 {BIG}\n1 1 1\n",
                         "lengths": f"%%MatrixMarket matrix coordinate real general\n{BIG} {1 << 64} 1\n1 1 1\n"},
        "tns": {"indices": f"{BIG} {BIG} {BIG} 1\n", "20 digits": f"{1 << 64} 1 1 1\n", "modes": "1 " * 100000 + "\n",
                "a number of 8 million digits": "1 1 1 " + "7" * (8 << 20) + "x\n", "a line of 256 MiB": None,
                "zeros without end": None},
        "taco": {"indices": f"{BIG} {BIG} {BIG} 1\n"},
    }
    cases = [(dialect, what, given) for dialect, some in forged.items() for what in some for given in ("auto", dialect)]
    for dialect, what, given in sampled(cases, 6):
        with open(at + "t.txt", "w", encoding="ascii") as file:
            if forged[dialect][what] is not None:
                file.write(forged[dialect][what])
            else:
                # A sparse file: the system reads zeros.
                file.write("1 1 1 1\n" if what.startswith("zeros") else "1 1 1 1\n1 1 1 ")
                file.truncate(1 << (40 if what.startswith("zeros") else 28))
        harmless(["convert", at + "t.txt", at + "o.slc", "--dialect", given, "-t", 2, "-q"], f"{dialect}, {what}",
                 {3, 4})
        check(sorted(os.listdir(folder)) == ["t.txt"], f"{dialect}, {what}: left {os.listdir(folder)}")
    binary = {"splatt-bin": struct.pack("<iQQ6Q", 0, 8, 8, 3, BIG, BIG, BIG, BIG, 0),
              "genten-bin": b"sptn" + struct.pack("<II7Q", 3, 64, 9, 9, 9, 16, 16, 16, BIG),
              "alto-bin": struct.pack("<5Q", 3, 9, 9, 9, BIG)}
    for form, content in binary.items():
        for packed in (False, True):
            with open(at + "t.txt", "wb") as file:
                file.write(gzip.compress(content) if packed else content)
            harmless(["convert", at + "t.txt", at + "o.slc", "--format", form, "-t", 2, "-q"], f"{form} of 2^60", {3})
            check(sorted(os.listdir(folder)) == ["t.txt"], f"{form}: left {os.listdir(folder)}")
    for name, opened in (("gz", gzip.open), ("bz2", bz2.open)) if FULL else ():
        with opened(at + f"t.{name}", "wb") as file:
            for _ in range(1024):
                file.write(b"1" * MIB)
        harmless(["convert", at + f"t.{name}", at + "o.slc", "-q"], f"1 GiB of digits as .{name}", {3})


def long_mode(folder):
    """A mode of size 2^60 is valid: such a store can be created, checked and exported; commands
    that need a row per index reject it."""
    at = os.path.join(folder, "")
    with open(at + "t.tns", "w", encoding="ascii") as file:
        file.write("".join(f"{i * BIG // 1000 + 1} {i % 7 + 1} 1\n" for i in range(1000)) + f"{BIG} 7 1\n")
    store, few = at + "t.slc", ("-t", 2, "-q")
    harmless(["convert", at + "t.tns", store, *few], "a mode of 2^60", {0})
    npy(at + "v.npy", [1] * 7, 7)
    npy(at + "w.npy", [1] * 7, 7)
    factors = at + "factors"
    os.mkdir(factors)
    for mode in (1, 2):
        npy(f"{factors}/mode-{mode}.npy", [1] * 14, 7, 2)
    for args, statuses in ((("check", store), {0}), (("info", store), {0}),
                           (("export", store, at + "o.tns", *few), {0}),
                           (("cpd", store, "-r", 2, "--nowrite", *few), {4}), (("plan", store, "-r", 2), {4}),
                           (("mttkrp", store, "--mode", 1, "--factors", factors, "-o", at + "m.npy", *few), {3, 4}),
                           (("mttkrp", store, "--mode", 2, "--factors", factors, "-o", at + "m.npy", *few), {3, 4}),
                           (("ttv", store, at + "a.slc", "--mode", 2, "--vector", at + "v.npy", *few), {0}),
                           (("ttv", store, at + "b.slc", "--mode", 1, "--vector", at + "w.npy", *few), {2, 3, 4}),
                           (("ttm", store, at + "c", "--mode", 2, "--matrix", factors + "/mode-2.npy", *few), {0}),
                           (("ttm", store, at + "d", "--mode", 1, "--matrix", factors + "/mode-1.npy", *few),
                            {2, 3, 4}),
                           (("layout", store, "--sorted", 1, *few), {0, 4}),
                           (("layout", store, "--fiber", 1, *few), {0, 4}),
                           (("convert", at + "t.tns", at + "r.slc", "--relabel", "frequency", *few), {0, 4})):
        harmless(args, "a mode of 2^60", statuses)


def checkpoints(folder):
    """Changes each word of a generation's header, table and state, and the first words of its other
    sections. info reads the generation, and cpd resumes from it."""
    store, at = Store(folder, "packed"), os.path.join(folder, "")
    cpd = ("cpd", store.path, "-r", 2, "--tol", 0, "-o", at + "run", "--checkpoint-interval", 0, "-t", 2, "-q")
    harmless([*cpd, "-i", 1000000, "--maxsecs", 0.02], "unaltered", {75})
    with open(at + "run/checkpoint-1.ckpt", "rb") as file:
        sections = checkpoint_sections(file.read())
    os.rename(at + "run", at + "good")
    seal = seal_checkpoint(sections)
    cases = [("header", *word) for word in words(8, 48)]
    cases += [("table", *word) for begin in (PAGE + 16, PAGE + 56) for word in words(begin, begin + 24)]
    for name, (offset, size, _) in sections.items():
        cases += [(name, *word) for word in words(offset, offset + min(size, 1024 if name == "state" else 64))]
    for name, place, form, value in sampled(cases, 8):
        shutil.copytree(at + "good", at + "run")
        if name == "header" and place in (40, 44) or name == "table" and (place - PAGE) % 40 >= 32:
            shutil.rmtree(at + "run")
            continue  # hashes
        for number in (1, 2):
            path = f"{at}run/checkpoint-{number}.ckpt"
            whole = Whole(path, seal)
            if checkpoint_sections(whole.data) == sections:
                whole.set(None, place, form, value).write()
            else:
                os.remove(path)
        what = f"checkpoint {name} {place} = {value}"
        # Descriptive fields of the run, and numbers of its model, may have any value: the run
        # resumes.
        harmless(["info", at + "run"], what, {0, 3, 5})
        harmless([*cpd, "-i", 2, "--maxsecs", 0.5], what, {0, 1, 2, 3, 5, 75})
        shutil.rmtree(at + "run")


def long_past(folder):
    """A checkpoint that counts more iterations than fit in the budget is rejected with the
    sufficient budget."""
    store, at = Store(folder, "packed"), os.path.join(folder, "")
    cpd = ("cpd", store.path, "-r", 2, "--tol", 0, "-o", at + "run", "--checkpoint-interval", 0, "-t", 2, "-q")
    harmless([*cpd, "-i", 1000000, "--maxsecs", 0.5], "unaltered", {75})
    os.remove(at + "run/checkpoint-2.ckpt")
    path, count = at + "run/checkpoint-1.ckpt", 20000
    with open(path, "rb") as file:
        data = file.read()
    sections = checkpoint_sections(data)
    begin, size, entry = sections["past"]
    behind, past = f.round_up(begin + size, PAGE), bytes(count * 72)
    grown = f.round_up(begin + len(past), PAGE) - behind
    data = bytearray(data[:begin] + past + bytes(-len(past) % PAGE) + data[behind:])
    for other, (offset, length, place) in sections.items():
        if other == "past":
            struct.pack_into("<Q", data, entry + 24, len(past))
            sections[other] = (begin, len(past), entry)
        elif offset > begin:
            struct.pack_into("<Q", data, place + 16, offset + grown)
            sections[other] = (offset + grown, length, place)
    struct.pack_into("<Q", data, 32, struct.unpack_from("<Q", data, 32)[0] + grown)
    for number in (2, 11):
        struct.pack_into("<Q", data, sections["state"][0] + 8 * number, count)
    seal_checkpoint(sections)(data)
    with open(path, "wb") as file:
        file.write(data)
    shutil.copytree(at + "run", at + "good")
    done = measured([*cpd, "-i", 2, "--memory", 60 * MIB], status=None)
    check(done.status == 4 and "20000 iterations" in done.messages, f"{done.status}: {done.messages}")
    named = named_budget(done.messages)
    done = measured([*cpd, "-i", 2, "--memory", named - MIB], status=None)
    check(done.status == 4, f"less than named is enough: {done.status}: {done.messages}")
    done = measured([*cpd, "-i", 2, "--memory", named], status=None)
    check(done.status == 0, f"what is named is refused: {done.status}: {done.messages}")
    print(f"# {done.resident / MIB:.1f} MiB resident of {named / MIB:.0f}")
    check(QUICK or done.resident <= named, f"{done.resident} bytes resident of {named}")
    # The section of iterations is 8 bytes too short for their number.
    shutil.rmtree(at + "run")
    shutil.copytree(at + "good", at + "run")
    struct.pack_into("<Q", data, entry + 24, len(past) - 8)
    seal_checkpoint(sections)(data)
    with open(path, "wb") as file:
        file.write(data)
    done = measured([*cpd, "-i", 2], status=None)
    check(done.status == 3 and "the checkpoint does not have the number of iteration records" in done.messages, f"{done.status}: {done.messages}")


def dropped(path):
    """Removes the output of a command that finished before it was killed."""
    if path.endswith("out.slc"):
        shutil.rmtree(path)
    else:
        sluice("layout", path, "--drop", "sorted-1", "-q")


def leftovers(args, places, expected):
    """Changes each word of the files that an interrupted command left at `places` ({path: (seal,
    first byte, bytes at each end, words that are always tried)}). The same command line then
    resumes, restarts or fails with an error."""
    def test(folder):
        at = os.path.join(folder, "")
        sluice("generate", at + "in.tns", "--dims", "3000x200x90", "--nnz", 200000, "-q")
        sluice("convert", at + "in.tns", at + "t.slc", "--block-bytes", "16KiB", "-q")
        sluice("export", at + "t.slc", at + "in.tns", "-f", "-q")
        for path, (seal, begin, length, always) in places.items():
            os.mkdir(at + "good")
            for source in ("in.tns", "t.slc"):
                (shutil.copytree if os.path.isdir(at + source) else shutil.copy)(at + source, at + "good/" + source)
            whole = path.endswith("complete.state")
            while (crowded(args, at + "good", expected) if whole else
                   ended(args, at + "good", path, size=begin + 64))[0] == 0:
                dropped(at + "good/" + expected)
            size = os.path.getsize(at + "good/" + path)
            halves = not path.endswith(".state")
            cases = [*words(begin, min(size, begin + length) // 4 * 4, halves),
                     *words(max(begin, size - length) // 8 * 8, size // 4 * 4, halves)]
            for place, form, value in (*sampled(cases, 3), *always):
                shutil.copytree(at + "good", at + "now", copy_function=shutil.copy2)
                Whole(f"{at}now/{path}", seal).set(None, place, form, value).write()
                os.chdir(at + "now")
                status = harmless(args, f"{path} {place} = {value}", {0, 3, 4, 5})
                os.chdir("/")
                if status == 0:
                    check(harmless(["check", at + "now/" + expected, "-q"], path, {0}) == 0, "")
                shutil.rmtree(at + "now")
            shutil.rmtree(at + "good")
    return told(test)


CONVERT = ("convert", "in.tns", "out.slc", "--checkpoint-interval", "0.001", "--block-bytes", "16KiB",
           "--memory", "60MiB", "-t", "2", "-q")
# Fields of the first record: size of the coordinates, nonzeros, and a largest row after which none
# can follow.
RECORDS = ((64 + 8, "Q", BIG), (64 + 40 + 16, "Q", BIG), (64 + 40 + 88 + 24, "Q", 2999))
LAYOUT = ("layout", "t.slc", "--sorted", "1", "--memory", "60MiB", "-t", "2", "-q")

# No core dumps: a crash shows in the exit status.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
run([
    *((f"block files, {codec}", told(block_files(codec))) for codec in ("packed", "lz4", "blco")),
    ("headers that the manifest contradicts", told(block_files("packed", agreed=False))),
    ("sorted layouts", told(block_files("packed", "sorted-1.blk", sorted_by={0: 30000}))),
    ("layouts of fibers", told(block_files("packed", "fiber-2.blk", fibers_of=(1,)))),
    ("counts that agree", told(together)),
    ("manifests", told(manifests)),
    ("permutations", told(permutations)),
    (".npy files", told(arrays)),
    ("texts", told(texts)),
    ("a mode of 2^60", told(long_mode)),
    ("checkpoints", told(checkpoints)),
    ("a long record in a checkpoint", told(long_past)),
    ("leftovers of conversions", leftovers(CONVERT, {
        "out.slc.part/pushed.state": (seal_state, 24, 1024, ()),
        "out.slc.part/sorted.state": (seal_state, 24, 1024, ()),
        "out.slc.part/complete.state": (seal_state, 24, 1024, ()),
        "out.slc.part/spill.tmp": (seal_chunks, 8, 64, ()),
        "out.slc.part/blco.blk.journal": (seal_journal(3), 8, 240, ())}, "out.slc")),
    ("leftovers of layouts", leftovers(LAYOUT, {
        "t.slc/sorted-1.blk.tmp.journal": (seal_journal(3), 8, 240, RECORDS)}, "t.slc")),
])
