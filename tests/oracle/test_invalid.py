#!/usr/bin/python3
"""Forged stores: every field of every structure set to values that docs/FORMAT.md forbids, with
recomputed checksums, so that the checks after the checksum are reached.

Each must be rejected with the status in docs/FORMAT.md (3: foreign or unsupported, 5: damaged),
quickly, within 64 MiB, and with the file name; none may crash or hang."""

import json
import os
import resource
import shutil
import struct
import subprocess
import sys
import threading

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import slc_format as f  # noqa: E402
from forged import PAGE, Forgery, write_manifest  # noqa: E402
from tap import FULL, QUICK, SLUICE, check, read_bytes, run, run_command, sluice  # noqa: E402

DIMS = [50, 40, 30]
CHANGES = (0x01, 0x80, 0xFF)


def make_store(folder, codec, gap=0):
    """A small store. A `gap` in mode 1 above 2^32 makes two tiles in two blocks."""
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
    """check and a second command fail with one of the statuses; nothing crashes or hangs."""
    for command in (["check", store], [second[0], store, *second[1:]]):
        done = run_command(command, timeout=60)
        check(done.returncode in statuses,
              f"{what}: {command[0]} exits {done.returncode}, wanted {statuses}: {done.stderr}")
        check("sluice:" in done.stderr or command[0] == "check", f"{what}: no message")


def header_fields(folder):
    """(offset, form, value, statuses). The manifest also detects a changed header: 5 is always
    possible if the block file's own status would be found later."""
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
    """Ordinals, flags and rows of a sorted layout. Fields that contradict nothing when the file is
    opened contradict the blocks, so `check` finds them; `info` only opens the file."""
    rng = np.random.default_rng(3)
    # Modes are so large that tiles end before they are full, and partitions have several blocks.
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
    """Sets each byte of a block to other values with a valid checksum: rejected, or - if the byte
    is a value or a key that stays legal - detected by the content sums."""
    def test(folder):
        store = make_store(folder, codec)
        forgery = Forgery(os.path.join(store, "blco.blk"))
        _, size = struct.unpack_from("<QQ", forgery.index, 0)
        step = 1 if FULL else 1 + size // 150
        for place in list(range(0, 64)) + list(range(64, f.round_up(size, PAGE), step)):
            # Starting the command takes longer than rejecting the store: one change per byte, in
            # rotation. The unit tests of codecs and verification make all changes within one
            # process.
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
    """Manifests with a valid checksum and invalid contents are refused."""
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
    # A file whose name another command writes is rejected; any other name is possible.
    for name in ("sorted-1.blk", "fiber-2.blk", "perm-1.bin", "names-1.bin", "blco.blk.tmp", "x.tmp", ".tmp", "x.journal",
                 "tensor.json", "tensor.json.tmp", "complete.state", "x.part", "x.blk.stripes", "..", "a/b", "a\x1bb",
                 "a\u202eb"):
        os.rename(os.path.join(store, "blco.blk"), os.path.join(folder, "blk"))
        if "/" not in name and not os.path.exists(os.path.join(store, name)):
            shutil.copy(os.path.join(folder, "blk"), os.path.join(store, name))
        write_manifest(path, good.replace(b'"blco.blk"', json.dumps(name).encode(), 1))
        for command in (("layout", store, "--sorted", "1"), ("layout", store, "--drop", "sorted-1"), ("check", store)):
            said = "".join(sluice(*command, status=3))
            check('"file" should be' in said, said)
        check(name in ("..", "a/b", "tensor.json") or
              read_bytes(os.path.join(store, name)) == read_bytes(os.path.join(folder, "blk")), f"{name} was overwritten")
        if name not in ("..", "a/b", "tensor.json"):
            os.remove(os.path.join(store, name))
        os.rename(os.path.join(folder, "blk"), os.path.join(store, "blco.blk"))
    for name in ("any.blk", "data", "sorted.blk"):
        os.rename(os.path.join(store, "blco.blk"), os.path.join(store, name))
        write_manifest(path, good.replace(b'"blco.blk"', json.dumps(name).encode(), 1))
        sluice("check", store)
        os.rename(os.path.join(store, name), os.path.join(store, "blco.blk"))
    write_manifest(path, good.replace(b'"writer"', b'"more":{"a":[1,2,{}]},"writer"', 1))
    sluice("check", store)


def pipes(folder):
    """Named pipes in place of a store's files and of its temporary files: no command waits for the
    other end. Symbolic links are not followed for writing."""
    store = make_store(folder, "packed")
    victim, init = os.path.join(folder, "victim"), os.path.join(folder, "init")
    os.mkdir(init)
    for name in ("mode-1.npy", "mode-2.npy", "mode-3.npy"):
        os.mkfifo(os.path.join(init, name))
    refused_in_time(("cpd", store, "-r", "2", "-i", "1", "--nowrite", "--checkpoint", "none", "--init", init), {3})
    refused_in_time(("ttv", store, "--mode", "1", "--vector", os.path.join(init, "mode-1.npy"), folder + "/o.slc"), {3})
    for name in ("tensor.json", "blco.blk"):
        path = os.path.join(store, name)
        os.rename(path, victim)
        os.mkfifo(path)
        for command in (("info", store), ("check", store), ("export", store, "-"), ("layout", store, "--sorted", "1")):
            refused_in_time(command, {3, 5})
        os.rename(victim, path)
    for name in ("tensor.json.tmp", "sorted-1.blk.tmp", "sorted-1.blk.tmp.journal"):
        path = os.path.join(store, name)
        os.mkfifo(path)
        refused_in_time(("layout", store, "--sorted", "1"), {5})
        if os.path.lexists(path):
            os.remove(path)
        with open(victim, "w") as file:
            file.write("precious")
        os.symlink(victim, path)
        refused_in_time(("layout", store, "--sorted", "1"), {5})
        with open(victim) as file:
            check(file.read() == "precious", f"{name}: written to where the link leads")
        for left in os.listdir(store):
            if left.startswith("sorted-1") or left == name:
                os.remove(os.path.join(store, left))
    sluice("check", store)


def refused_in_time(args, statuses):
    done = run_command(list(args), timeout=20)
    check(done.returncode in statuses, f"{args}: exit {done.returncode}, wanted {statuses}: {done.stderr}")
    check(not set(done.stderr + done.stdout) - {"\n"} & set(map(chr, range(32))), f"{args}: {done.stderr!r}")


class Hollow:
    """A store of sparse files: headers and an index that agree, and blocks of any size that were
    never written, so that enormous claims need no disk space. `index_blocks`: the index is sparse,
    too."""

    def __init__(self, store, dims, blocks, index_blocks=0, relabelled=0):
        n, at, tiles, index = len(dims), PAGE, 0, bytearray()
        for block in blocks:
            index += struct.pack("<QQQQQIIQQdQII", at, block["bytes"], block["nnz"], 0, tiles, block["tiles"], 1,
                                 block["key"], 0, 0.0, 0, 0, 0)
            index += struct.pack(f"<{2 * n}Q", *block["low"], *block["high"])
            at, tiles = at + f.round_up(block["bytes"], PAGE), tiles + block["tiles"]
        count, size, nnz = len(blocks), f.round_up(len(index), PAGE), sum(block["nnz"] for block in blocks)
        if index_blocks:
            count = nnz = tiles = index_blocks
            at, size = PAGE * (count + 1), f.round_up(count * (88 + 16 * n), PAGE)
        place = (at, size, f.hash64(index.ljust(size, b"\0")) if blocks else 0, at + size + PAGE)
        head, end = bytearray(PAGE), bytearray(PAGE)
        struct.pack_into("<8sHHIQ", head, 0, f.MAGIC, 1, 0, PAGE, relabelled)
        struct.pack_into("<BBBBIQdQQ4Q", head, 32, 1, 0, 1, n, 1, nnz, 0.0, count, tiles, *place)
        struct.pack_into(f"<{n}Q", head, 128, *dims)
        struct.pack_into("<Q", head, 4088, f.hash64(head[:4088]))
        struct.pack_into("<8s8s4Q", end, 0, f.END_MAGIC, head[4088:], *place)
        struct.pack_into("<Q", end, 4088, f.hash64(end[:4088]))
        os.makedirs(store)
        with open(os.path.join(store, "blco.blk"), "wb") as file:
            for offset, data in ((0, head), (at, index), (place[3] - PAGE, end)):
                file.seek(offset)
                file.write(data)
        self.manifest = {
            "format": "sluice-store", "version": 1, "dims": dims, "nnz": nnz, "value_type": "f32",
            "sum_of_squares": "0" * 16, "norm": 0.0, "content_sum": "0" * 16, "layouts": [
                {"file": "blco.blk", "layout": "blco", "mode": 0, "codec": "packed", "file_bytes": place[3],
                 "block_count": count, "index_bytes": 1, "header_hash": head[:4087:-1].hex()}],
            "origin": {"source": "\x1b[2J\x9b31m", "dialect": "tns", "index_base": 1, "entries_read": 1, "duplicates": 0,
                       "explicit_zeros": 0, "duplicate_policy": "sum", "writer": "none"}}
        self.store = store
        self.write_manifest()

    def write_manifest(self):
        raw = '{"checksum":"xxh3-64:' + "0" * 16 + '",' + json.dumps(self.manifest)[1:]
        with open(os.path.join(self.store, "tensor.json"), "w") as file:
            file.write(raw.replace("0" * 16, "%016x" % f.hash64(raw.encode()), 1))


def frugal(args, statuses, mib=100):
    """The command ends in time with one of the statuses, within the memory limit."""
    child = subprocess.Popen([SLUICE, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    timer = threading.Timer(20, child.kill)
    timer.start()
    said = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    timer.cancel()
    status = os.waitstatus_to_exitcode(status)
    check(status in statuses, f"{args}: exit {status}, wanted {statuses}: {said}")
    check(usage.ru_maxrss <= mib * 1024, f"{args}: {usage.ru_maxrss} KiB")
    check(not set(said) - {"\n"} & set(map(chr, range(32))) and "\x9b" not in said, f"{args}: {said!r}")
    return said


def holes(folder):
    """Claims without cost for an attacker: files whose blocks, index or permutation are sparse."""
    gib, rows = 1 << 30, 1 << 25
    tiles = (gib - 128) // 112
    # As many nonzeros as a block of that size can claim.
    hollow = Hollow(folder + "/nonzeros.slc", [rows, 2], [
        dict(bytes=gib, nnz=tiles << 16, tiles=tiles, key=b << 20, low=[b << 19, 0], high=[(b + 1 << 19) - 1, 1])
        for b in range(60)])
    frugal(("plan", hollow.store, "--no-probe", "-r", "1", "--memory", "4GiB"), {0})
    check("?[2J??31m" in frugal(("info", hollow.store), {0}), "the origin is missing")
    # The first block has rows up to the end, so it is in all ranges of rows.
    hollow = Hollow(folder + "/wide.slc", [1 << 18, 2], [
        dict(bytes=PAGE, nnz=30 << 16, tiles=30, key=b << 4, low=[8 * b, 0],
             high=[8 * b + 7 if b else (1 << 18) - 1, 1]) for b in range(20000)])
    frugal(("plan", hollow.store, "--no-probe", "-r", "1", "--memory", "4GiB"), {0})
    hollow = Hollow(folder + "/index.slc", [9, 9], [], index_blocks=gib // 120)
    frugal(("info", hollow.store), {5})
    length = 1 << (30 if FULL else 26)
    hollow = Hollow(folder + "/labels.slc", [length, 2], [
        dict(bytes=PAGE, nnz=1, tiles=1, key=0, low=[0, 0], high=[0, 0])], relabelled=1)
    size = f.permutation_bytes(length)
    hollow.manifest.update(version=2, permutations=[
        {"mode": 1, "file": "perm-1.bin", "file_bytes": size, "hash": "0" * 16}])
    hollow.write_manifest()
    with open(hollow.store + "/perm-1.bin", "wb") as file:
        file.truncate(size)
    frugal(("info", hollow.store), {5})
    # A start from endless files: they are rejected before they are hashed.
    init, store = folder + "/init", make_store(folder, "packed")
    os.mkdir(init)
    for mode in range(3):
        np.save(f"{init}/mode-{mode + 1}.npy", np.ones((DIMS[mode], 2)))
    os.truncate(init + "/mode-2.npy", 1 << 40)
    frugal(("cpd", store, "-r", "2", "-i", "1", "--nowrite", "--checkpoint", folder + "/c", "--init", init), {3})
    hollow.manifest["layouts"][0]["file"] = "a\x1b[2J"
    hollow.write_manifest()
    frugal(("info", hollow.store), {3})
    # jansson quotes the text in its message.
    with open(hollow.store + "/tensor.json", "wb") as file:
        raw = b'{"checksum":"xxh3-64:' + b"0" * 16 + b'","a":\x1b[2J}'
        file.write(raw.replace(b"0" * 16, b"%016x" % f.hash64(raw), 1))
    frugal(("info", hollow.store), {3})


def without_owner(folder):
    """Stripes without an owner are read, but kept; an owner forged in the list only is damage."""
    store, a, b = make_store(folder, "packed"), os.path.join(folder, "a"), os.path.join(folder, "b")
    os.mkdir(a)
    os.mkdir(b)
    sluice("layout", store, "--sorted", "1", "-q")
    sluice("layout", store, "--stripe", f"{a},{b}", "-q")
    lists = [os.path.join(store, name) for name in ("blco.blk", "sorted-1.blk")]
    files = lists + [os.path.join(path, name) for path in (a, b) for name in os.listdir(path)]

    def forge(path, owner):
        data = bytearray(read_bytes(path)[:PAGE])
        data[4064:4088] = owner
        data[4088:4096] = struct.pack("<Q", f.hash64(data[:4088]))
        with open(path, "r+b") as file:
            file.write(data)

    owner = read_bytes(lists[0])[4064:4088]
    check(int.from_bytes(owner[:8], "little") == os.stat(store).st_ino, owner)
    check(all(read_bytes(path)[4064:4088] == owner for path in files), "another owner")
    for path in files:
        forge(path, bytes(24))
    before = [read_bytes(path) for path in files[2:]]
    sluice("check", store, "-q")
    refused = sluice("convert", "-", store, "-q", "-f", input="1 1 1 1\n", status=5)[1]
    check("--gather" in refused, refused)
    forge(lists[1], owner)
    check("belongs to another store" in "".join(sluice("check", store, status=5)), "not damaged")
    said = sluice("layout", store, "--drop", "sorted-1")
    check([read_bytes(path) for path in files[2:]] == before and "is not the stripe" in "".join(said), said)
    said = sluice("layout", store, "--gather")
    check([read_bytes(path) for path in files[2:]] == before and "are kept" in "".join(said), said)
    sluice("check", store, "-q")


# No core dumps: a crash shows in the exit status.
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
    ("pipes and links in the place of files", pipes),
    ("files of holes", holes),
    ("stripes without an owner", without_owner),
])
