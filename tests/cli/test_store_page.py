#!/usr/bin/env python3
"""sluice-store(5): its limits, magic numbers and offsets agree with the sources and with a store
written by the command."""

import glob
import json
import os
import re
import struct
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SOURCE, check, load_json, run, sluice, source_text  # noqa: E402

FORMS = {"u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f64": "d"}
# The page's names of limits, and their constants.
LIMITS = {
    "modes": "SLC_MAX_ORDER", "mode size": "SLC_MAX_MODE_LENGTH", "bits of a key": "SLC_MAX_KEY_BITS",
    "bits of a fiber run": "SLC_FIBER_BITS_MAX", "nonzeros of a tile": "SLC_TILE_NNZ",
    "nonzeros between bases": "SLC_BASE_NNZ", "nonzeros of a group": "SLC_GROUP_NNZ",
    "bytes of a block, with padding": "SLC_MAX_BLOCK_BYTES", "bytes of a name": "SLC_NAME_BYTES_MAX",
    "stripes of a block file": "SLC_MAX_STRIPES", "rank of a decomposition": "SLC_MAX_RANK",
}


PAGE = source_text("docs", "man", "sluice-store.5.scd")


def sources():
    paths = (glob.glob(os.path.join(SOURCE, folder, "**", "*.[ch]"), recursive=True) for folder in ("base", "storage"))
    return "\n".join(source_text(os.path.relpath(path, SOURCE)) for found in paths for path in sorted(found))


def table(part, number=0):
    """Returns the rows of a table of the page: {field: (offset, type and count, description)}. N in
    a count means the order."""
    block = PAGE.split(f"\n# {part}\n")[1].split("\n# ")[0].split("```")[2 * number + 1]
    rows = re.findall(r"^ *(\d+)  (\w+(?: x \w+| bytes)?) +(.*)$", block, re.M)
    check(len(rows) > 10, block)
    return {re.split("[:;,]", field)[0]: (int(offset), kind, field) for offset, kind, field in rows}


def read(data, rows, field, at=0):
    offset, kind, _ = rows[field]
    return struct.unpack_from("<" + FORMS[kind.split()[0]], data, at + offset)[0]


def limits(_folder):
    code = sources()
    block = PAGE.split("\n# LIMITS\n")[1].split("```")[1]
    told = dict(re.findall(r"^(.*?) {2,}(.*)$", block, re.M))
    check(set(told) == set(LIMITS), sorted(set(told) ^ set(LIMITS)))
    for name, constant in LIMITS.items():
        value = re.search(rf"\b{constant} (?:= )?(?:\(UINT64_C\(1\) << (\d+)\)|(\d+))", code)
        value = f"2^{value[1]}" if value[1] else value[2]
        check(told[name].split(" to ")[-1] == value, f"{name}: {told[name]}, {constant} is {value}")


def beginnings(_folder):
    """The page lists exactly the magic numbers of the sources, in bytes and in words."""
    code = {magic.encode().decode("unicode_escape") for magic in re.findall(r'"(\\x89SLC[^"]*)"', sources())}
    told = re.findall(r"((?:[0-9A-F]{2} ){7}[0-9A-F]{2})[^\n]*?(\\x89SLC[\w\\]*)", PAGE.replace("\\\\", "\\"))
    for octets, word in told:
        check(bytes.fromhex(octets).decode("latin-1") == word.encode().decode("unicode_escape"), f"{octets} is not {word}")
    check({word.encode().decode("unicode_escape") for _, word in told} == code and len(code) >= 7, f"{told}, sources {code}")


def specified(_folder):
    """The tables are rows of docs/FORMAT.md."""
    whole = source_text("docs", "FORMAT.md")
    for section, number in (("### 4.1 Header", 0), ("### 4.2 Index", 1)):
        rows = {(int(offset), kind) for offset, kind in
                re.findall(r"^\| (\d+) \| ([^|]+?) \|", whole.split(section)[1].split("\n### ")[0], re.M)}
        rows |= {(offset, "u64 x 2") for offset, kind in rows if kind == "u64, u64"}
        told = {(offset, kind) for offset, kind, _ in table("BLOCK FILES", number).values()}
        check(told <= rows, f"{section}: {sorted(told - rows)}")


def read_back(folder):
    """A new store, read by the page's tables, agrees with `sluice info`."""
    head, index = table("BLOCK FILES"), table("BLOCK FILES", 1)
    names = {name: {int(number): word for number, word in re.findall(r"(\d) (\w+)", head[name][2])}
             for name in ("layout", "value type", "codec")}
    for codec in ("packed", "lz4", "blco"):
        store = os.path.join(folder, codec + ".slc")
        sluice("generate", store, "--dims", "300x200x100", "--nnz", 70000, "--codec", codec, "--block-bytes", "64KiB", "-q")
        sluice("layout", store, "--sorted", 2, "-q")
        told = {each["file"]: each for each in load_json(os.path.join(store, "tensor.json"))["layouts"]}
        info = json.loads(sluice("info", store, "--json")[0])
        for name, layout in told.items():
            with open(os.path.join(store, name), "rb") as file:
                data = file.read()
            check(data[:8] == bytes.fromhex("89534C430D0A1A0A"), data[:8])
            order, blocks = read(data, head, "order N"), read(data, head, "block count")
            check((read(data, head, "major version"), read(data, head, "minor version")) == (1, 0), "version")
            check(names["layout"][read(data, head, "layout")] == layout["layout"]
                  and read(data, head, "mode of the layout") + (layout["layout"] != "blco") == layout["mode"], layout)
            check(names["codec"][read(data, head, "codec")] == codec and names["value type"][read(data, head, "value type")]
                  == info["value_type"], "codec and values")
            check(list(struct.unpack_from(f"<{order}Q", data, head["dims"][0])) == info["dims"] == [300, 200, 100], "dims")
            check(read(data, head, "nnz") == info["nnz"] and blocks == layout["block_count"] > 1, "counts")
            check(read(data, head, "file bytes") == len(data) == layout["file_bytes"], "file bytes")
            check(f"{read(data, head, 'hash of the bytes before'):016x}" == layout["header_hash"], "hash")
            at, entry = read(data, head, "index offset"), 88 + 16 * order
            check(read(data, head, "index bytes") == -(-blocks * entry // 4096) * 4096, "index bytes")
            check(sum(read(data, index, "nnz", at + n * entry) for n in range(blocks)) == info["nnz"], "nnz of blocks")
            check(sum(read(data, index, "tile count", at + n * entry) for n in range(blocks))
                  == read(data, head, "tile count"), "tiles of blocks")
            places = [read(data, index, "file offset", at + n * entry) for n in range(blocks)]
            check(all(data[place:place + 4] == b"SBLK" for place in places) and places[0] == 4096, places)
            check(names["codec"][read(data, index, "codec", at)] == codec, "codec of a block")
            check(data[-4096:-4088] == bytes.fromhex("89534C43454E440A"), "closing page")


run([
    ("limits are the sources'", limits),
    ("beginnings of files are the sources'", beginnings),
    ("tables are those of docs/FORMAT.md", specified),
    ("a store matches the page", read_back),
])
