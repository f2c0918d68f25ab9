#!/usr/bin/python3
"""Forged stores: every field of every structure set to what docs/FORMAT.md forbids, with all
checksums made right again, so that the check behind the checksum is reached.

Each must be refused with the status the page gives (3: foreign or unsupported, 5: damaged), quickly
and within 64 MiB, and named by file; none may crash or hang.
"""

import os
import resource
import struct
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
import slc_format as f  # noqa: E402
from forged import PAGE, Forgery, write_manifest  # noqa: E402
from tap import FULL, QUICK, check, run, run_command, sluice  # noqa: E402

DIMS = [50, 40, 30]
CHANGES = (0x01, 0x80, 0xFF)


def make_store(folder, codec, gap=0):
    """A small store. With a `gap` in mode 1 above 2^32 it has two tiles in two blocks."""
    rng = np.random.default_rng(2)
    coords = np.unique(np.array([rng.integers(0, d, 900) for d in DIMS]).T, axis=0).T.copy()
    coords = coords.astype(np.uint64)
    coords[0, coords[0] >= DIMS[0] // 2] += np.uint64(gap)
    values = rng.integers(1, 50, coords.shape[1]) / 2.0
    store = os.path.join(folder, "s.slc")
    f.write_store(store, [DIMS[0] + gap] + DIMS[1:], coords, values, codec, tiles_per_block=1)
    sluice("check", store)
    return store


CPD = ("cpd", "-r", "2", "-i", "1", "--nowrite")


def refused(store, statuses, what, second=CPD):
    """check and a second command refuse with one of the statuses; nothing crashes or hangs."""
    for command in (["check", store], [second[0], store, *second[1:]]):
        done = run_command(command, timeout=60)
        check(done.returncode in statuses,
              f"{what}: {command[0]} exits {done.returncode}, wanted {statuses}: {done.stderr}")
        check("sluice:" in done.stderr or command[0] == "check", f"{what}: no message")


def header_fields(folder):
    """(offset, form, value, statuses). The manifest notices a changed header too: 5 is always
    possible when the block file's own status would be found later."""
    store = make_store(folder, "packed")
    forgery = Forgery(os.path.join(store, "blco.blk"))
    big = (1 << 60)
    cases = [
        (0, "Q", 0, {3}), (8, "H", 2, {3}), (8, "H", 0, {3}), (12, "I", 8192, {3, 5}),
        (16, "Q", 1, {5}), (16, "Q", 1 << 15, {3, 5}),
        (16, "Q", 1 << 16, {3}), (16, "Q", 1 << 17, {3}), (16, "Q", 1 << 63, {3}), (32, "B", 0, {3}), (32, "B", 9, {3}),
        (33, "B", 200, {3, 5}), (34, "B", 0, {3, 5}), (34, "B", 3, {3, 5}), (35, "B", 0, {3}),
        (35, "B", 17, {3}), (35, "B", 255, {3}), (36, "I", 0, {3}), (36, "I", 77, {3}),
        (40, "Q", big, {5}), (40, "Q", 0, {5}), (48, "d", 1.5, {5}), (48, "d", float("nan"), {5}),
        (56, "Q", big, {5}), (56, "Q", 0, {5}), (64, "Q", big, {5}), (64, "Q", 0, {5}),
        (72, "Q", big, {5}), (72, "Q", 4097, {5}), (80, "Q", big, {5}), (80, "Q", 0, {5}),
        (96, "Q", big, {5}), (104, "Q", 12345, {5}), (112, "Q", 1, {3, 5}),
        (114, "B", 1, {3, 5}), (115, "B", 1, {3, 5}), (116, "B", 1, {3, 5}),
        (128, "Q", 0, {3, 5}), (128, "Q", (1 << 62) + 1, {3, 5}), (128, "Q", (1 << 64) - 1, {3, 5}),
        (128, "Q", 2, {5}), (128 + 24, "Q", 7, {3, 5}), (300, "B", 1, {3, 5}),
        (4087, "B", 1, {3, 5}),
    ]
    for offset, form, value, statuses in cases:
        Forgery(forgery.path).set("header", offset, form, value).write()
        refused(store, statuses | {5}, f"header {offset} = {value}")
        forgery.restore()
    sluice("check", store)


def index_fields(folder):
    store = make_store(folder, "packed", gap=1 << 33)
    forgery = Forgery(os.path.join(store, "blco.blk"))
    export = ("export", os.path.join(folder, "out.tns"))
    n = len(DIMS)
    fields = [(0, "Q"), (8, "Q"), (16, "Q"), (24, "Q"), (32, "Q"), (40, "I"), (44, "I"), (48, "Q"),
              (56, "Q"), (64, "d"), (72, "Q"), (80, "Q")]
    fields += [(88 + 8 * k, "Q") for k in range(2 * n)]
    for entry in (1,) if QUICK else (0, 1):
        for offset, form in fields:
            for value in (0, 4097, 1 << 60) if QUICK else (0, 1, 4097, (1 << 31), (1 << 60), (1 << 64) - 1):
                if form == "I":
                    value &= 0xFFFFFFFF
                if form == "d":
                    value = float(value) + 0.25
                forged = Forgery(forgery.path)
                at = entry * forged.entry_bytes + offset
                before = bytes(forged.index)
                forged.set("index", at, form, value)
                if bytes(forged.index) == before:
                    continue
                if offset == 24:
                    forged.keep_hash.add("block")
                forged.write()
                refused(store, {5}, f"index entry {entry} field {offset} = {value}", export)
                forgery.restore()
    forged = Forgery(forgery.path)
    forged.index[-1] = 1
    forged.write()
    refused(store, {5}, "index padding", export)
    forgery.restore()
    sluice("check", store)


def partition_fields(folder):
    """Ordinals, flags and rows of a sorted layout. What nothing contradicts when the file is opened
    contradicts the blocks, so `check` finds it; `info` only opens the file."""
    rng = np.random.default_rng(3)
    # Wide enough that tiles are cut before they are full, and partitions have several blocks.
    coords = np.unique(np.array([rng.integers(0, 12, 200) ** 2 // 12,
                                 rng.integers(0, 1 << 36, 200)]).T, axis=0).T.copy().astype(np.uint64)
    store = os.path.join(folder, "s.slc")
    f.write_store(store, [12, 1 << 36], coords, np.ones(coords.shape[1]), "packed",
                  tiles_per_block=5, sorted_by={0: 40})
    layout = f.read_store(store)["layouts"][("sorted", 1)]
    check(any(p["continued"] for p in layout["partitions"])
          and any(p["last_row"] > p["first_row"] for p in layout["partitions"]), "no such sample")
    forgery = Forgery(os.path.join(store, "sorted-1.blk"))
    for entry in range(0, len(layout["block_nnz"]), 4 if QUICK else 1):
        at = entry * forgery.entry_bytes
        ordinal, flags = struct.unpack_from("<II", forgery.index, at + 80)
        rows = struct.unpack_from("<QQQQ", forgery.index, at + 88)
        for offset, form, value in [(80, "I", ordinal + 1), (80, "I", ordinal + 2),
                                    (80, "I", max(ordinal, 1) - 1), (80, "I", (1 << 32) - 1),
                                    (84, "I", flags ^ 1), (84, "I", flags | 2),
                                    (84, "I", flags | 1 << 31), (88, "Q", max(rows[0], 1) - 1),
                                    (104, "Q", rows[2] + 1)]:
            forged = Forgery(forgery.path)
            before = bytes(forged.index)
            forged.set("index", at + offset, form, value)
            if bytes(forged.index) != before:
                forged.write()
                second = ("info",) if offset == 84 and value > 1 else ("check",)
                refused(store, {5}, f"partition of entry {entry} field {offset} = {value}", second)
                forgery.restore()
    sluice("check", store)


def closing_fields(folder):
    store = make_store(folder, "packed")
    forgery = Forgery(os.path.join(store, "blco.blk"))
    for offset, form in ((0, "Q"), (8, "Q"), (16, "Q"), (24, "Q"), (32, "Q"), (40, "Q"), (48, "B"),
                         (4087, "B"), (4088, "Q")):
        forged = Forgery(forgery.path)
        forged.set("end", offset, form, 77)
        forged.keep_hash |= {"header", "index"} | ({"end"} if offset == 4088 else set())
        if offset not in (8, 32):
            forged.keep_hash -= {"header", "index"}
        forged.write()
        refused(store, {5}, f"closing page {offset}")
        forgery.restore()
    sluice("check", store)


def every_byte_of_a_block(codec):
    """Each byte of a block set to other values under a right checksum: refused, or - where the byte
    is a value or a key that stays legal - caught by the content sums."""
    def test(folder):
        store = make_store(folder, codec)
        forgery = Forgery(os.path.join(store, "blco.blk"))
        _, size = struct.unpack_from("<QQ", forgery.index, 0)
        step = 1 if FULL else 1 + size // 150
        for place in list(range(0, 64)) + list(range(64, f.round_up(size, PAGE), step)):
            # Starting the command takes longer than refusing the store: each byte one change, in turns.
            # The unit tests of codecs and verification make all of them within one process.
            if QUICK and place % 8 != 0:
                continue
            for change in CHANGES if FULL else CHANGES[place // 4 % 3:place // 4 % 3 + 1]:
                forged = Forgery(forgery.path)
                forged.blocks[place] ^= change
                forged.write()
                done = run_command(["check", store], timeout=60)
                check(done.returncode == 5, f"block byte {place} ^ {change}: exit "
                      f"{done.returncode}: {done.stdout}{done.stderr}")
                done = run_command(["cpd", store, "-r", "2", "-i", "1", "--nowrite"], timeout=60)
                check(done.returncode in (0, 5), f"block byte {place} ^ {change}: cpd exits "
                      f"{done.returncode}: {done.stderr}")
                forgery.restore()
        sluice("check", store)
    return test


def manifests(folder):
    """Manifests whose checksum is right and whose content is not."""
    store = make_store(folder, "packed")
    path = os.path.join(store, "tensor.json")
    with open(path, "rb") as file:
        good = file.read()

    changes = [
        (b'"sluice-store"', b'"other-store"', {3}), (b'"version":1', b'"version":3', {3}),
        (b'"version":1', b'"version":2', {3}),
        (b'"version":1', b'"version":"1"', {3, 5}), (b"[50,40,30]", b"[]", {3, 5}),
        (b"[50,40,30]", b"[50,40]", {3, 5}), (b"[50,40,30]", b"[50,40,-30]", {3, 5}),
        (b"[50,40,30]", b"[50,40,31]", {5}), (b"[50,40,30]", b"[50,40,1e3]", {3, 5}),
        (b"[50,40,30]", b'["a",40,30]', {3, 5}), (b"[50,40,30]", b"[" + b"2," * 16 + b"2]", {3, 5}),
        (b'"blco.blk"', b'"../../x"', {3, 5}), (b'"blco.blk"', b'"gone.blk"', {3, 5}),
        (b'"blco.blk"', b'""', {3, 5}), (b'"layout":"blco"', b'"layout":"odd"', {3, 5}),
        (b'"codec":"packed"', b'"codec":"lz4"', {5}), (b'"codec":"packed"', b'"codec":7', {3, 5}),
        (b'"value_type":"f32"', b'"value_type":"f64"', {5}),
        (b'"layouts":[', b'"layouts":[],"other":[', {3, 5}), (b'"origin"', b'"origin', {3, 5}),
    ]
    for old, new, statuses in changes:
        check(old in good, f"{old} is not in the manifest")
        write_manifest(path, good.replace(old, new, 1))
        refused(store, statuses, f"manifest {old} -> {new}")
    for text in (b"", b"{", b"\0" * 100, good[:len(good) // 2], good + b"x", b"[" * 100000):
        with open(path, "wb") as file:
            file.write(text)
        refused(store, {3, 5}, f"manifest of {len(text)} bytes")
    write_manifest(path, good.replace(b'"writer"', b'"more":{"a":[1,2,{}]},"writer"', 1))
    sluice("check", store)


# What crashes is told by its exit status.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
run([
    ("header fields", header_fields),
    ("index fields", index_fields),
    ("fields of partitions", partition_fields),
    ("closing page fields", closing_fields),
    ("every byte of a packed block", every_byte_of_a_block("packed")),
    ("every byte of an lz4 block", every_byte_of_a_block("lz4")),
    ("every byte of a blco block", every_byte_of_a_block("blco")),
    ("manifests", manifests),
])
