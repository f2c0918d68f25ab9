#!/usr/bin/env python3
"""append, slice, permute and --transform: each equals the conversion of the corresponding text,
whose rows are selected here in plain Python; rejected input; a kill at any moment."""

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, QUICK, SLUICE, check, run, sluice  # noqa: E402

DIMS = (40, 30, 25)


def rows_of(count, seed, dims=DIMS, low=0):
    draw = random.Random(seed)
    return [([draw.randrange(low, d) for d in dims], draw.choice((1, 2, -3, 0.1, 0.7, 1e9))) for _ in range(count)]


def text(rows, base=1):
    return "".join(" ".join(str(i + base) for i in c) + f" {v!r}\n" for c, v in rows)


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(content)
    return path


def blocks(store):
    """Returns the bytes of all files except the manifest, which names the origin of the store."""
    return {name: open(os.path.join(store, name), "rb").read() for name in sorted(os.listdir(store)) if name != "tensor.json"}


def made(folder, name, rows, *more, dims=None):
    """The store of a text; dims: its mode sizes, if the rows do not determine them."""
    out = os.path.join(folder, name + ".slc")
    lengths = ("--dims", "x".join(map(str, dims))) if dims else ()
    sluice("convert", write(folder, name + ".tns", text(rows)), out, "-q", "-f", "--index-base", 1, *lengths, *more)
    return out


def combined(rows):
    """Returns the sum of the rows at each coordinate, without zeros."""
    sums = {}
    for c, v in rows:
        sums[tuple(c)] = sums.get(tuple(c), 0) + v
    return [(list(c), v) for c, v in sums.items() if v != 0]


def appends(folder):
    first, more = rows_of(9000, 1), rows_of(7000, 2, (40, 45, 60))
    for name, options in (("plain", ()), ("lz4", ("--codec", "lz4")), ("relabelled", ("--relabel", "frequency"))):
        store = made(folder, name, first, *options)
        want = made(folder, name + "-all", first + more, *options)
        said, _ = sluice("append", store, write(folder, "more.tns", text(more)), "-t", 2)
        check(blocks(store) == blocks(want), f"{name}: not the store of both texts")
        check("7,815 in the store, 7,000 read" in said, said)
        sluice("check", store, "-q")
    # A text from 0 whose base is ambiguous, after one whose base is clear; through a pipe; with
    # little memory.
    store = os.path.join(folder, "zero.slc")
    sluice("convert", write(folder, "zero.tns", text(first, 0)), store, "-q")
    later = rows_of(500, 3, (40, 30, 70), 1)
    done = subprocess.run([SLUICE, "append", store, "-", "--memory", "96MiB"], input=text(later, 0), capture_output=True, text=True)
    check(done.returncode == 0 and "from 0: the base of the store's first input" in done.stdout, done)
    check(blocks(store) == blocks(made(folder, "zero-all", first + later)), "from 0: another store")
    # Policies treat the store's nonzeros as the first ones.
    for policy in ("keep-first", "keep-last", "mean", "min", "max"):
        store = made(folder, "p", combined(first))
        want = made(folder, "p-all", combined(first) + combined(more), "--duplicates", policy)
        sluice("append", store, write(folder, "more2.tns", text(combined(more))), "-q", "--duplicates", policy)
        check(blocks(store) == blocks(want), policy)
    # A mean needs the number of rows that each nonzero combines; it is unknown after duplicates and
    # in a slice.
    sluice("slice", made(folder, "c", combined(first)), os.path.join(folder, "cut.slc"), "-q")
    for store in (made(folder, "d", first), os.path.join(folder, "cut.slc")):
        before = blocks(store)
        _, messages = sluice("append", store, write(folder, "more2.tns", text(combined(more))), "--duplicates", "mean", status=3)
        check("convert all inputs together (--duplicates)" in messages and blocks(store) == before, messages)
    store = made(folder, "e", first)
    before = blocks(store)
    _, messages = sluice("append", store, write(folder, "again.tns", text(first[:1])), "--duplicates", "error", status=3)
    check("occurs more than once" in messages and blocks(store) == before, messages)


def remembered(folder):
    """The same rows are not appended twice: not by the same command, nor under another name or from
    a pipe."""
    first, more = rows_of(3000, 10), rows_of(2000, 11, (40, 30, 25))
    path = write(folder, "more.tns", text(more))
    store = made(folder, "x", first)
    want = blocks(made(folder, "want", first + more))
    sluice("append", store, path, "-q")
    check(blocks(store) == want, "not appended")
    shuffled = more[:]
    random.Random(1).shuffle(shuffled)
    for name, content in (("more.tns", text(more)), ("copy.tns", text(more)), ("shuffled.tns", text(shuffled)), ("-", text(more))):
        if name in ("copy.tns", "shuffled.tns"):
            write(folder, name, content)
        given = name if name == "-" else os.path.join(folder, name)
        done = subprocess.run([SLUICE, "append", store, given], input=content, capture_output=True, text=True)
        check(done.returncode == 0 and "--again" in done.stderr and "2,000 nonzeros" in done.stderr, done)
        check(blocks(store) == want, f"{name}: appended twice")
        check(not os.path.exists(store + ".part"), "something is left")
    sluice("append", store, path, "-q", "--again")
    twice = blocks(store)
    check(twice == blocks(made(folder, "twice", first + more + more)), "--again did not append")
    # The same coordinates with another value are different rows.
    other = [(more[0][0], more[0][1] + 1)] + more[1:]
    sluice("append", store, write(folder, "other.tns", text(other)), "-q")
    check(blocks(store) != twice, "other entries are taken for known ones")
    origin = json.loads(sluice("info", store, "--json")[0])["origin"]
    check([a["entries"] for a in origin["appended"]] == [2000, 2000, 2000] and origin["entries_read"] == 9000, origin)
    check(origin["source"].endswith("x.tns") and origin["appended"][2]["source"].endswith("other.tns"), origin)
    check("3 inputs, last: " in sluice("info", store)[0], "missing in info")
    # Only a limited number of inputs is remembered; the oldest are forgotten first.
    store = made(folder, "y", first[:50])
    count = 130 if FULL else 3
    small = [write(folder, f"s{i}.tns", f"1 1 1 {i + 1}\n") for i in range(count)]
    for name in small:
        sluice("append", store, name, "-q")
    known = min(count, 128)
    check(len(json.loads(sluice("info", store, "--json")[0])["origin"]["appended"]) == known, f"not {known} are remembered")
    before = blocks(store)
    sluice("append", store, small[count - known], "-q")
    check(blocks(store) == before, "the oldest that is remembered is appended again")
    if count > known:
        sluice("append", store, small[count - known - 1], "-q")
        check(blocks(store) != before, "one that is forgotten is taken for known")
    sluice("check", store, "-q")


def growth(folder):
    """Modes grow within their limits."""
    first = rows_of(500, 12) + [([39, 29, 24], 1.0)]
    store = made(folder, "x", first)
    before = blocks(store)
    for modes, row, line in (("3", "41 1 1 2", 1), ("none", "1 1 26 2", 1), ("1,3", "41 1 26 1\n1 31 1 1", 2), ("2,3", "40 31 30 1\n41 1 1 1", 2)):
        path = write(folder, "more.tns", row + "\n")
        _, messages = sluice("append", store, path, "--grow-modes", modes, status=3)
        check("--grow-modes" in messages and f"more.tns:{line}:" in messages, messages)
        check(blocks(store) == before, "changed all the same")
    # From 0: index 40 is out of range for size 40.
    _, messages = sluice("append", store, write(folder, "zero.tns", "40 1 1 1\n0 1 1 1\n"), "--grow-modes", "3", status=3)
    check("zero.tns" in messages, messages)
    _, messages = sluice("append", store, write(folder, "dims.tns", "3\n41 30 25\n1 1 1 1\n"), "--grow-modes", "3", "--format", "parti", status=3)
    check("mode 1" in messages and "--grow-modes" in messages, messages)
    for bad in ("4x", "0", "1,,2", "17", ""):
        _, messages = sluice("append", store, path, "--grow-modes", bad, status=2)
        check("--grow-modes" in messages, messages)
    out, _ = sluice("append", store, write(folder, "more.tns", "40 1 33 1\n"), "--grow-modes", "3")
    check("33, before 40" in out, out)


def bases(folder):
    """The index base of the store's input does not apply to appended text of another format."""
    first = rows_of(500, 13)
    store = made(folder, "x", first)
    cut = os.path.join(folder, "cut.slc")
    sluice("slice", store, cut, "-q")
    out, _ = sluice("append", cut, write(folder, "more.tns", "2 2 2 5\n"))
    check("from 1: the convention of the tns format" in out, out)
    check(blocks(cut) == blocks(made(folder, "w", first + [([1, 1, 1], 5.0)])), "another base")


def layouts(folder):
    """Other layouts also get the new nonzeros before the store is changed, or are dropped on
    request."""
    first, more = rows_of(3000, 14), rows_of(2000, 15, (45, 30, 25))
    path = write(folder, "more.tns", text(more))
    for relabel in ((), ("--relabel", "frequency")):
        store = made(folder, "x", first, *relabel)
        want = made(folder, "want", first + more, *relabel)
        for x in (store, want):
            sluice("layout", x, "--sorted", 1, "--fiber", 3, "-q")
        out, messages = sluice("append", store, path)
        check(blocks(store) == blocks(want), f"other layouts: {sorted(blocks(store))}")
        check("sorted-1, fiber-3" in out and "note" not in messages, out + messages)
        sluice("check", store, "-q")
    before = blocks(store)
    sluice("append", store, path, "-q")
    check(blocks(store) == before, "layouts changed though nothing was done")
    _, messages = sluice("append", store, path, "--again", "--layouts", "drop")
    check(sorted(n for n in blocks(store) if n.endswith(".blk")) == ["blco.blk"] and "sluice layout" in messages, messages)


def refused(folder):
    store = made(folder, "x", rows_of(200, 4))
    before = blocks(store)
    for content, status, word in (("1 1 1\n", 3, "3"), ("1 1 1 x\n", 3, ":1:7"), ("", 3, "empty")):
        _, messages = sluice("append", store, write(folder, "bad.tns", content), status=status)
        check(word in messages, messages)
    _, messages = sluice("append", store, write(folder, "good.tns", "1 1 1 1\n"), "--memory", "1MiB", status=4)
    check("--memory" in messages, messages)
    sluice("append", os.path.join(folder, "none.slc"), os.path.join(folder, "good.tns"), status=5)
    out = os.path.join(folder, "out.slc")
    for options, word in (("--mode 4=1", "mode 4"), ("--mode 1=41", "41"), ("--mode 1=0", "1=0"), ("--mode 1=5..3", "5..3"),
                          ("--mode 1", "3=100..200"), ("--mode 1=2 --mode 1=3", "twice"), ("--mode 1=2,,3", "ranges"),
                          ("--transform sqrt", "sqrt"), ("--transform scale=0", "scale")):
        _, messages = sluice("slice", store, out, *options.replace("1=0", "1=0").split(), status=2)
        check(word in messages or "counted from 1" in messages, messages)
    for order in ("1,2", "1,1,2", "1,2,4"):
        sluice("permute", store, out, "--order", order, status=2)
    _, messages = sluice("slice", store, out, "--transform", "log1p", status=3)
    check("log1p" in messages and "coordinate" in messages, messages)
    check(blocks(store) == before and not os.path.exists(out) and not os.path.exists(out + ".part"), os.listdir(folder))


def nothing_left(folder):
    """A slice without nonzeros is an empty tensor, with a message."""
    text, store, out = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "o.slc"))
    with open(text, "w") as file:
        file.write("1 1 1\n3 3 2\n")
    sluice("convert", text, store, "-q")
    _, messages = sluice("slice", store, out, "--mode", "1=2")
    check("is an empty tensor" in messages, messages)
    check(sluice("slice", store, out, "--mode", "1=2", "-q", "-f")[1] == "", "-q")
    check(json.loads(sluice("info", out, "--json")[0])["nnz"] == 0, "not empty")


def slices(folder):
    rows = rows_of(15000, 5)
    sums = combined(rows)
    out = os.path.join(folder, "out.slc")
    for relabel in ((), ("--relabel", "frequency"), ("--codec", "lz4")):
        store = made(folder, "x", rows, *relabel)
        for modes in ({2: "5..12"}, {0: "40,1..3,2..7", 2: "..10,20.."}, {1: "30"}, {}):
            wanted = {}
            for mode, ranges in modes.items():
                wanted[mode] = set()
                for part in ranges.split(","):
                    low, _, high = part.partition("..")
                    high = high if ".." in part else low
                    wanted[mode] |= set(range(int(low or 1) - 1, int(high or DIMS[mode])))
            left = [(c, v) for c, v in sums if all(c[m] in w for m, w in wanted.items())]
            options = [word for mode, ranges in modes.items() for word in ("--mode", f"{mode + 1}={ranges}")]
            sluice("slice", store, out, "-q", "-f", "--keep-indices", *options)
            check(blocks(out) == blocks(made(folder, "w", left, *relabel, dims=DIMS)), f"{modes}, indices kept")
            number = {m: {i: k for k, i in enumerate(sorted(w))} for m, w in wanted.items()}
            left = [([number[m][i] if m in number else i for m, i in enumerate(c)], v) for c, v in left]
            dims = [len(wanted[m]) if m in wanted else d for m, d in enumerate(DIMS)]
            sluice("slice", store, out, "-q", "-f", "-t", 3, *options)
            check(blocks(out) == blocks(made(folder, "w", left, *relabel, dims=dims)), f"{modes}, numbered anew")
        for order in ((2, 0, 1), (1, 0, 2), (0, 1, 2)):
            sluice("permute", store, out, "-q", "-f", "--order", ",".join(str(m + 1) for m in order))
            turned = [([c[m] for m in order], v) for c, v in sums]
            check(blocks(out) == blocks(made(folder, "w", turned, *relabel, dims=[DIMS[m] for m in order])), f"order {order}")
    # Codec and numbering are the store's unless specified otherwise.
    store = made(folder, "x", rows, "--relabel", "frequency", "--codec", "lz4")
    sluice("slice", store, out, "-q", "-f", "--relabel", "none", "--codec", "packed")
    check(blocks(out) == blocks(made(folder, "w", sums, dims=DIMS)), "not plain")


def transforms(folder):
    rows = rows_of(5000, 6)
    sums = combined(rows)
    out = os.path.join(folder, "out.slc")
    store = made(folder, "x", rows)
    for steps, apply in ((("abs", "log1p"), lambda v: math.log1p(abs(v))), (("binarize",), lambda v: 1.0), (("abs",), abs),
                         (("scale=0.5", "abs"), lambda v: abs(v * 0.5))):
        options = [word for step in steps for word in ("--transform", step)]
        want = blocks(made(folder, "w", [(c, apply(v)) for c, v in sums], dims=DIMS))
        sluice("slice", store, out, "-q", "-f", *options)
        check(blocks(out) == want, f"slice {steps}")
        check(blocks(made(folder, "c", rows, *options, dims=DIMS)) == want, f"convert {steps}: not of combined values")


def transformed(folder):
    """Transforms are reported, and raw values cannot be appended to a transformed store."""
    store, cut = made(folder, "x", [([0, 0, 0], 3.0)], "--transform", "log1p"), os.path.join(folder, "cut.slc")
    sluice("slice", store, cut, "--transform", "scale=0.5", "--transform", "binarize", "-q")
    for path, want in ((store, "log1p"), (cut, "log1p,scale=0.5,binarize")):
        check(json.loads(sluice("info", path, "--json")[0])["origin"]["transforms"] == want, want)
        check(want in sluice("info", path)[0], want)
        before = blocks(path)
        _, messages = sluice("append", path, write(folder, "more.tns", "1 1 1 1\n"), status=3)
        check(want in messages and "sluice slice" in messages and blocks(path) == before, messages)


def killed(folder):
    """After SIGKILL at any moment the old or the new store exists, and the same command ends with
    the new one."""
    first, more = rows_of(60000, 7, (4000, 300, 50)), rows_of(60000, 8, (4000, 300, 90))
    old = made(folder, "old", first)
    path = write(folder, "more.tns", text(more))
    new = os.path.join(folder, "new.slc")
    shutil.copytree(old, new)
    start = time.monotonic()
    sluice("append", new, path, "-q")
    whole = time.monotonic() - start
    states = [blocks(old), blocks(new)]
    check(states[1] == blocks(made(folder, "both", first + more)), "an append is not the conversion of both")
    store = os.path.join(folder, "x.slc")
    draw = random.Random(9)
    seen = [0, 0]
    for i in range(60 if FULL else 4 if QUICK else 12):
        shutil.rmtree(store, ignore_errors=True)
        shutil.rmtree(store + ".part", ignore_errors=True)
        shutil.copytree(old, store)
        process = subprocess.Popen([SLUICE, "append", store, path, "-q"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(draw.uniform(0, whole) if i > 0 else 0)
        except subprocess.TimeoutExpired:
            process.send_signal(draw.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
            process.wait()
            # A signal that arrives before the handlers are installed ends the process as usual.
            check(process.returncode in (0, -9, -2, -15, 130, 143), f"exit {process.returncode}")
        now = blocks(store)
        complete = now.pop("complete.state", None)
        check(now in states, "neither the old store nor the new one")
        seen[states.index(now)] += 1
        if process.returncode != 0:
            if now == states[0] or complete is not None:
                sluice("append", store, path, "-q")
            check(blocks(store) == states[1], "appended twice, or not at all")
    # The first kill, without a delay, always leaves the old store; some later kill must leave the
    # new one.
    check(seen[0] > (0 if QUICK else 1), f"killed too late: {seen}")


if __name__ == "__main__":
    run([("append is the conversion of both texts", appends), ("appended inputs are remembered", remembered),
         ("modes grow as they may", growth), ("bases", bases), ("layouts are built again", layouts),
         ("errors", refused), ("slice and permute", slices), ("a slice without nonzeros", nothing_left),
         ("transforms", transforms), ("what is transformed", transformed), ("append, killed", killed)])
