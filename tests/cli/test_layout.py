#!/usr/bin/env python3
"""sluice layout: layouts are added, listed and dropped; the file is the same after kills at any
moment; budgets hold; a signal stops it."""

import json
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
from tap import FULL, QUICK, SLUICE, check, npy, read_bytes, run, run_command, sluice  # noqa: E402


# Number of nonzeros, so large that building a layout takes a while even on the fastest machine.
MANY = 1000000
templates = tempfile.TemporaryDirectory()


def made(folder, nnz=300000):
    """Makes the store of the test case by copying a store that is generated once."""
    store, template = os.path.join(folder, "t.slc"), os.path.join(templates.name, f"{nnz}.slc")
    if not os.path.exists(template):
        sluice("generate", template, "--dims", "3000x200x9", "--nnz", nnz, "-q", "--block-bytes", "64KiB")
    shutil.copytree(template, store)
    return store


def begun(store):
    """A run that adds all layouts, halted when the first exists and the second does not."""
    while True:
        child = subprocess.Popen([SLUICE, "layout", store, "--sorted", "all", "--memory", "60MiB"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child.stdout.readline()
        child.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        if not os.path.exists(os.path.join(store, "sorted-2.blk")):
            return child
        # This process was not scheduled until the layout was complete; try again.
        child.send_signal(signal.SIGCONT)
        child.communicate(timeout=300)
        sluice("layout", store, "--drop", "sorted-1,sorted-2,sorted-3", "-q")


def layout(*arguments):
    return run_command(["layout", *map(str, arguments)], 300)


def add_list_drop(folder):
    store = made(folder)
    out = layout(store, "--sorted", "1,3", "-v").stdout
    check(re.search(r"^sorted-1: \d+ partitions, 0 rows split; .* bytes per nonzero", out, re.M), out)
    check(re.search(r"^sorted-3: \d+ partitions, 9 rows split; ", out, re.M), out)
    check("sorted-1: exists already" in layout(store, "--sorted", "all").stdout, "built again")
    names = [line.split()[0] for line in layout(store).stdout.splitlines()]
    check(names == ["blco.blk", "sorted-1.blk", "sorted-2.blk", "sorted-3.blk"], str(names))
    sluice("check", store, "-q")
    check("sorted-2: dropped" in layout(store, "--drop", "sorted-2,sorted-3").stdout, "not dropped")
    check(sorted(os.listdir(store)) == ["blco.blk", "sorted-1.blk", "tensor.json"], str(os.listdir(store)))
    sluice("convert", "-", store, "-q", "-f", input="1 1 1 1\n")
    check(sorted(os.listdir(store)) == ["blco.blk", "tensor.json"], str(os.listdir(store)))


def fibers(folder):
    """Layouts of whole fibers are listed, checked, reported, read and dropped."""
    store = made(folder)
    out = layout(store, "--fiber", "all", "--sorted", "2").stdout
    counts = [int(n.replace(",", "")) for n in re.findall(r"whole fibers of mode \d, ([\d,]+) of them", out)]
    check(len(counts) == 3, out)
    sluice("check", store, "-q")
    told = json.loads(sluice("info", store, "--json")[0])["layouts"]
    check([(t["layout"], t["mode"], t.get("fibers")) for t in told]
          == [("blco", 0, None), ("sorted", 2, None)] + [("fiber", n + 1, counts[n]) for n in range(3)], told)
    check("exists already" in layout(store, "--fiber", "1").stdout, "built again")
    out = layout(store, "--drop", "fiber-1,sorted-2,fiber-3").stdout
    check("fiber-1: dropped" in out and sorted(os.listdir(store))
          == ["blco.blk", "fiber-2.blk", "tensor.json"], os.listdir(store))
    sluice("cpd", store, "-r", "2", "-i", "1", "--nowrite", "-q")
    sluice("convert", "-", store, "-q", "-f", input="1 1 1 1\n")
    check(sorted(os.listdir(store)) == ["blco.blk", "tensor.json"], str(os.listdir(store)))


def dry_run(folder):
    store = made(folder)
    before = sorted(os.listdir(store))
    out = layout(store, "--sorted", "1", "--dry-run").stdout
    check("bytes" in out and "bottleneck" in out and "syncing" in out, out)
    check(re.search(r"sorted-1: \d+ partitions.*\n  scans +2 to count rows and fibers, 1 to gather", out), out)
    check("memory" in out and "disk" in out and sorted(os.listdir(store)) == before, out)


def wrong(folder):
    store = made(folder, nnz=1000)
    for arguments, code, part in ((["--sorted", "4"], 2, "modes from 1 to 3"),
                                  (["--sorted", "0"], 2, "modes from 1 to 3"),
                                  (["--sorted", "1,,2"], 2, "modes from 1 to 3"),
                                  (["--fiber", "4"], 2, "modes from 1 to 3"),
                                  (["--drop", "fiber-2"], 2, "no layout fiber-2"),
                                  (["--fiber", "2", "--drop", "fiber-2"], 2, "both add and drop a layout"),
                                  (["--drop", "blco"], 2, "sorted-K or fiber-K"),
                                  (["--drop", "sorted-1"], 2, "no layout sorted-1"),
                                  (["--sorted", "1", "--drop", "sorted-1"], 2, "both add and drop a layout"),
                                  (["--sorted", "1", "--memory", "1MiB"], 4, "(--memory)")):
        done = layout(store, *arguments)
        check(done.returncode == code and part in done.stderr, f"{arguments}: {done.returncode} {done.stderr}")
    check(layout(os.path.join(folder, "none.slc"), "--sorted", "1").returncode in (3, 5), "no such store")


def budget(folder):
    """The budget that an error names suffices, and yields the same bytes as plenty of memory."""
    store = made(folder, nnz=MANY)
    least = 1
    for _ in range(3):  # the process counts in steps of 4 MiB, and may have grown by one
        done = layout(store, "--sorted", "1", "--memory", f"{least}MiB", "-t", "1", "-v")
        if done.returncode == 0:
            break
        least = int(re.search(r"needs (\d+) MiB of memory", done.stderr).group(1))
    out = done.stdout
    check(done.returncode == 0 and least > 1, f"{least} MiB: {done.stderr}")
    # Six or seven if the program's resident size is the same as when the budget was rejected; it
    # may be smaller by then.
    check(int(re.search(r"(\d+) to gather", out).group(1)) > 1, out)
    peak = re.search(r"^peak memory ([\d.]+) MiB", out, re.M)
    check(peak and float(peak.group(1)) <= least, f"{least} MiB: {out}")
    small = read_bytes(os.path.join(store, "sorted-1.blk"))
    layout(store, "--drop", "sorted-1")
    layout(store, "--sorted", "1", "-t", "3")
    check(read_bytes(os.path.join(store, "sorted-1.blk")) == small, "other bytes with more memory and threads")


def killed(folder):
    """Killed at random moments, again and again: the store stays valid, and the file is the same in
    the end."""
    store = made(folder, nnz=MANY)
    begun_at = time.monotonic()
    sluice("layout", store, "--sorted", "2", "-q", "--memory", "60MiB")
    seconds = time.monotonic() - begun_at
    expected = read_bytes(os.path.join(store, "sorted-2.blk"))
    draw = random.Random(1)
    kills = finished = 0
    sluice("layout", store, "--drop", "sorted-2", "-q")
    while kills < (200 if FULL else 6 if QUICK else 12):
        child = subprocess.Popen([SLUICE, "layout", store, "--sorted", "2", "-q", "--memory", "60MiB"],
                                 stderr=subprocess.PIPE, text=True)
        time.sleep(draw.uniform(0, seconds))
        child.kill()
        child.communicate()
        kills += child.returncode == -signal.SIGKILL
        if "sorted-2.blk" in layout(store).stdout:
            finished += 1
            check(read_bytes(os.path.join(store, "sorted-2.blk")) == expected, "other bytes after kills")
            sluice("layout", store, "--drop", "sorted-2", "-q")
        elif not os.path.exists(os.path.join(store, "sorted-2.blk")):  # named, but not listed yet
            sluice("check", store, "-q")
    print(f"# {kills} kills, {finished} times it was done by then")
    sluice("layout", store, "--sorted", "2", "-q")
    sluice("check", store, "-q")
    check(read_bytes(os.path.join(store, "sorted-2.blk")) == expected, "other bytes after kills")
    check(sorted(os.listdir(store)) == ["blco.blk", "sorted-2.blk", "tensor.json"], str(os.listdir(store)))


def stopped(folder):
    store = made(folder, nnz=MANY)
    child = begun(store)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGCONT)
    _, messages = child.communicate(timeout=60)
    check(child.returncode == 130 and time.monotonic() - start < 10, f"exit {child.returncode}: {messages}")
    check("sorted-1.blk" in layout(store).stdout, "what was done is gone")
    check("sorted-1: exists already" in layout(store, "--sorted", "all").stdout, "not resumed")
    sluice("check", store, "-q")


def two(folder):
    store = made(folder, nnz=MANY)
    first = begun(store)
    second = layout(store, "--drop", "sorted-1")
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=300)
    check(first.returncode == 0 and second.returncode == 5, f"exits {first.returncode}, {second.returncode}")
    check("another run" in second.stderr, second.stderr)


def only_read(folder):
    """Read-only commands need no lock: they work during a build of another run, and the build does
    not wait for them."""
    store = made(folder, nnz=MANY)
    first = begun(store)
    names = sorted(os.listdir(store))
    listed, planned = layout(store), layout(store, "--sorted", "3", "--drop", "sorted-1", "--dry-run")
    check(listed.returncode == 0 and re.findall(r"^\S+", listed.stdout, re.M) == ["blco.blk", "sorted-1.blk"],
          listed.stdout + listed.stderr)
    check(planned.returncode == 0 and "would be dropped" in planned.stdout and "partitions" in planned.stdout,
          planned.stdout + planned.stderr)
    check(sorted(os.listdir(store)) == names, os.listdir(store))
    first.send_signal(signal.SIGCONT)
    first.communicate(timeout=300)
    check(first.returncode == 0, f"exit {first.returncode}")


def replaced(folder):
    """A store whose layouts are being changed is not replaced, and one that is being replaced is
    not changed."""
    store = made(folder, nnz=MANY)
    first = begun(store)
    _, refused = sluice("convert", "-", store, "-q", "-f", input="1 1 1 1\n", status=5)
    check("another run is changing this store" in refused, refused)
    first.kill()
    first.communicate()
    sluice("check", store, "-q")
    second = subprocess.Popen([SLUICE, "generate", store, "--dims", "3000x200x9", "--nnz", str(MANY), "-q", "-f"])
    while not os.path.exists(store + ".part") and second.poll() is None:
        time.sleep(0.001)
    out = layout(store, "--drop", "sorted-1")
    check(out.returncode == 5 and "replacing it" in out.stderr, out.stderr)
    check(second.wait(timeout=60) == 0 and sorted(os.listdir(store)) == ["blco.blk", "tensor.json"], os.listdir(store))


def stripes(*folders):
    return sorted(name for folder in folders for name in os.listdir(folder))


def striped(folder):
    """Layouts in stripes elsewhere: the same bits; missing or wrong stripes are rejected by name;
    and moved back."""
    store, a, b, c = made(folder, nnz=2000000), *(os.path.join(folder, name) for name in "abc")
    for path in (a, b, c):
        os.mkdir(path)
    sluice("layout", store, "--sorted", "1", "-q")
    before = {name: read_bytes(os.path.join(store, name)) for name in os.listdir(store)}
    bits = []
    for io in ("pread", "auto"):
        for name, more in (("in", []), ("out", ["--stripe", f"{a},{b}"])):
            if more:
                check(layout(store, *more).returncode == 0, "striping failed")
            out = os.path.join(folder, f"{name}-{io}")
            sluice("cpd", store, "-r", 3, "-i", 2, "--deterministic", "--memory", "80MiB", "--io", io, "-o", out, "-q")
            bits.append([read_bytes(os.path.join(out, f"mode-{m}.npy")) for m in (1, 2, 3)])
        check(bits[0] == bits[-1] == bits[-2], "other factors")
        check(len(stripes(a, b)) == 4 and sum(os.path.getsize(os.path.join(store, n)) for n in os.listdir(store)) < 20000,
              (os.listdir(store), stripes(a, b)))
        sluice("check", store, "-q")
        told = json.loads(sluice("info", store, "--json")[0])["layouts"]
        check([os.path.dirname(path) for path in told[0]["stripes"]] == [a, b], told)
        text = os.path.join(folder, "out.tns")
        sluice("export", store, text, "-q", "-f")
        kept = read_bytes(text)
        check(layout(store, "--gather").returncode == 0 and stripes(a, b, c) == [], stripes(a, b, c))
        check({name: read_bytes(os.path.join(store, name)) for name in os.listdir(store)} == before, "other bytes")
        sluice("export", store, text, "-q", "-f")
        check(read_bytes(text) == kept, "another export")
    # One layout on another drive; moved again; wrong, missing, swapped and moved stripes.
    sluice("layout", store, "--stripe", c, "--of", "sorted-1", "-q")
    sluice("layout", store, "--stripe", f"{a},{b}", "--of", "blco", "-q")
    check((len(stripes(a)), len(stripes(b)), len(stripes(c))) == (1, 1, 1), stripes(a, b, c))
    one, other = (os.path.join(path, stripes(path)[0]) for path in (a, b))
    refused = sluice("append", store, "-", "-q", input="1 1 1 1\n", status=5)[1]
    check("--gather" in refused, refused)
    refused = sluice("cpd", store, "-r", 2, "-i", 1, "--io", "mmap", "--layouts", "blco", "-o", os.path.join(folder, "m"), status=3)[1]
    check("use uring or pread (--io)" in refused, refused)
    os.rename(other, os.path.join(a, os.path.basename(other)))
    sluice("check", store, "-q")
    os.rename(os.path.join(a, os.path.basename(other)), os.path.join(folder, os.path.basename(other)))
    refused = sluice("check", store, status=5)
    check(other in "".join(refused) and "SLUICE_STRIPES" in "".join(refused), refused)
    sluice("check", store, "-q", env=os.environ | {"SLUICE_STRIPES": folder})
    shutil.copy(one, other)
    refused = "".join(sluice("check", store, status=5))
    check(other in refused and "stripe 1 of 2" in refused, refused)
    os.unlink(other)
    os.rename(os.path.join(folder, os.path.basename(other)), other)
    # Moved by hand, and listed again without a copy.
    moved = [os.path.join(folder, "moved", name) for name in "ab"]
    shutil.move(a, moved[0])
    shutil.move(b, moved[1])
    inodes = [os.stat(os.path.join(path, stripes(path)[0])).st_ino for path in moved]
    sluice("layout", store, "--stripe", ",".join(moved), "--of", "blco", "-q",
           env=os.environ | {"SLUICE_STRIPES": ":".join(moved)})
    check(inodes == [os.stat(os.path.join(path, stripes(path)[0])).st_ino for path in moved], "copied")
    sluice("check", store, "-q")
    # A killed change is reported, and the next change removes its stripes.
    shutil.copy(os.path.join(store, "sorted-1.blk"), os.path.join(store, "sorted-1.blk.unstripe"))
    out = "".join(sluice("check", store))
    check("sorted-1.blk.unstripe" in out and "removes this file and the stripes" in out, out)
    sluice("layout", store, "--gather", "--of", "blco", "-q")
    check(len(stripes(c)) == 1 and sorted(os.listdir(store)) == ["blco.blk", "sorted-1.blk", "tensor.json"], os.listdir(store))
    # Dropping a layout removes its stripes.
    sluice("layout", store, "--drop", "sorted-1", "-q")
    check(stripes(c) == [], stripes(c))
    for words in (["--of", "blco"], ["--stripe", c, "--gather"], ["--stripe", c, "--of", "sorted-1"], ["--stripe", ","]):
        check(layout(store, *words).returncode == 2, words)
    check(layout(store, "--stripe", os.path.join(folder, "none")).returncode == 5, "a folder that is not there")


def striped_store(folder):
    """Makes a small store with its two layouts in stripes in folders `a` and `b`."""
    store, a, b = (os.path.join(folder, name) for name in ("t.slc", "a", "b"))
    sluice("generate", store, "--dims", "30x20x9", "--nnz", 3000, "-q", "--seed", 3)
    os.mkdir(a)
    os.mkdir(b)
    sluice("layout", store, "--sorted", "1", "-q")
    sluice("layout", store, "--stripe", f"{a},{b}", "-q")
    return store, a, b


def tree(*folders):
    """Returns the bytes of all files in these folders."""
    return {os.path.join(root, name): read_bytes(os.path.join(root, name))
            for folder in folders for root, _, names in os.walk(folder) for name in names}


def copied(folder):
    """No command on a copy of a striped store changes the original's files; each says that the
    stripes belong to another store."""
    store, a, b = striped_store(folder)
    before = tree(store, a, b)
    copy, out, more, vector = (os.path.join(folder, name) for name in ("copy.slc", "out", "more.tns", "v.npy"))
    with open(more, "w") as file:
        file.write("1 1 1 5\n")
    generate = ["generate", copy, "--dims", "5x5x5", "--nnz", 10, "-f"]
    commands = [["layout", copy, *words] for words in (
        ["--gather"], ["--gather", "--of", "blco"], ["--drop", "sorted-1"], ["--stripe", f"{a},{b}"], ["--stripe", a],
        ["--stripe", b, "--of", "sorted-1"], ["--sorted", "all"], ["--fiber", "1"], [])]
    commands += [generate, ["convert", more, copy, "-f"], ["append", copy, more], ["slice", store, copy, "--mode", "1=1..5", "-f"],
                 ["slice", copy, out + ".slc", "--mode", "1=1..5"], ["permute", store, copy, "--order", "3,2,1", "-f"],
                 ["permute", copy, copy, "--order", "3,2,1", "-f"], ["cpd", copy, "-r", 2, "-i", 1, "-o", out],
                 ["export", copy, out + ".tns", "-f"], ["info", copy], ["check", copy], ["plan", copy, "-r", 2],
                 ["mttkrp", copy, "--mode", 1, "--factors", out, "-o", out + ".npy"], ["top", out], ["report", out, "-o", out + ".html"],
                 ["ttv", copy, out + "-v.slc", "--mode", 1, "--vector", vector], ["ttm", copy, out + "-m", "--mode", 1, "--matrix", vector],
                 ["cpd", copy, "-r", "1,2", "-i", 1, "-o", out + "-s"], ["predict", out, more]]
    npy(vector, [1] * 30, 30)
    quiet = [["layout", copy], *(command for command in commands if copy not in command)]  # read no blocks of the store
    own = os.path.join(folder, "own")
    os.mkdir(own)
    changed = 0
    for command in commands:
        shutil.copytree(store, copy)
        ran = run_command(list(map(str, command)), 300)
        said = ran.stdout + ran.stderr
        check(ran.returncode == 0 and ("another store folder owns" in said or command in quiet), (command, said))
        changed += tree(copy) != {path.replace(store, copy): data for path, data in before.items() if path.startswith(store)}
        if os.path.exists(copy) and command[:1] != ["generate"]:
            sluice("check", copy, "-q")
        now = tree(store, a, b)
        check({path: now.get(path) for path in before} == before, f"{command} changed the original")
        # Stripes of the copy itself are new files.
        for path in set(now) - set(before):
            os.unlink(path)
        shutil.rmtree(copy)
    check(changed >= 10, changed)
    sluice("check", store, "-q")
    # Text and JSON of `info` say that the stripes belong to the original store.
    shutil.copytree(store, copy)
    check("(owned by another store folder)" in sluice("info", copy)[0], "not said")
    for path, mine in ((copy, False), (store, True)):
        told = json.loads(sluice("info", path, "--json")[0])["layouts"]
        check([layout["own_stripes"] for layout in told] == [mine, mine], told)
    # Lists that an interrupted change left, in the copy.
    shutil.copy(os.path.join(copy, "blco.blk"), os.path.join(copy, "sorted-1.blk.unstripe"))
    shutil.copy(os.path.join(copy, "sorted-1.blk"), os.path.join(copy, "blco.blk.stripes"))
    sluice("layout", copy, "--drop", "sorted-1", "-q")
    check(tree(store, a, b) == before, "leftover lists of a copy removed stripes")
    # Once it is striped itself, the copy owns its stripes.
    sluice("layout", copy, "--stripe", own, "-q")
    check(len(stripes(own)) == 1 and tree(store, a, b) == before, stripes(own))
    sluice("layout", copy, "--gather", "-q")
    check(stripes(own) == [], stripes(own))
    shutil.rmtree(copy)
    # A renamed store still owns its stripes; a copy at its old path does not.
    os.rename(store, copy)
    shutil.copytree(copy, store)
    sluice("layout", store, "--gather", "-q")
    check(tree(a, b) == {path: data for path, data in before.items() if not path.startswith(store)}, "removed")
    sluice("layout", copy, "--gather", "-q")
    check(stripes(a, b) == [], stripes(a, b))


def rows_between(folder):
    """Large rows are divided by key while smaller rows between them are not."""
    store = os.path.join(folder, "few.slc")
    sluice("generate", store, "--dims", "16x1814x1814", "--nnz", 72000, "--dist", "zipf-shuffled:0.6", "--seed", 1, "-q")
    sluice("layout", store, "--sorted", "all", "-q")
    sluice("check", store, "-q")


def foreign_bytes(folder):
    """info --json is UTF-8 and loses no byte of the paths of a store and its stripes."""
    root = os.fsencode(folder)
    text, store, place = (os.path.join(root, name) for name in (b"t\xff.tns", b"s\xff.slc", b"d\xfe"))
    os.mkdir(place)
    with open(text, "w", encoding="utf-8") as file:
        file.write("1 1 1 2\n2 2 2 3\n")
    for words in ([b"convert", text, store, b"-q"], [b"layout", store, b"--stripe", place + b"," + root, b"-q"]):
        done = subprocess.run([os.fsencode(SLUICE), *words], capture_output=True, check=False)
        check(done.returncode == 0, done)
    done = subprocess.run([os.fsencode(SLUICE), b"info", store, b"--json"], capture_output=True, check=False)
    told = json.loads(done.stdout.decode("utf-8"))
    check(bytes.fromhex(told["path_bytes"]) == store and told["path"].endswith("s\ufffd.slc"), told)
    check(told["origin"]["source"].endswith("t\ufffd.tns"), told["origin"])
    layout = told["layouts"][0]
    paths = [bytes.fromhex(data) if data else path.encode() for path, data in zip(layout["stripes"], layout["stripes_bytes"])]
    check([data is None for data in layout["stripes_bytes"]] == [path.isascii() for path in paths], layout)
    check(sorted(paths) == sorted(os.path.join(at, name) for at in (place, root) for name in os.listdir(at)
                                  if name.endswith(b".stripe")), (layout, paths))


def built_by_cpd(folder):
    """cpd --layouts build adds the missing sorted layouts, as far as --max-disk permits, and keeps
    them; no other choice of layouts changes the store."""
    store, reference = made(folder), os.path.join(folder, "reference.slc")
    shutil.copytree(store, reference)
    sluice("layout", reference, "--sorted", "all", "-q")
    expected = tree(reference)

    def cpd(out, *words, status=0):
        return "".join(sluice("cpd", store, "-r", 2, "-i", 2, "--loss", "poisson", "-o", os.path.join(folder, out),
                              *words, status=status))

    check("--max-disk needs --layouts build" in cpd("a", "--max-disk", "1G", status=2), "accepted")
    cpd("a", "--layouts", "auto", "-q")
    check(sorted(os.listdir(store)) == ["blco.blk", "tensor.json"], os.listdir(store))
    said = cpd("b", "--layouts", "build", "--dry-run", "--no-probe")
    check(len(re.findall(r"^sorted-[123]: would be built first, with about ", said, re.M)) == 3, said)
    said = cpd("b", "--layouts", "build", "--max-disk", "1KiB")
    check(said.count("and --max-disk leaves 1.02 kB") == 3, said)
    check(sorted(os.listdir(store)) == ["blco.blk", "tensor.json"], os.listdir(store))
    # The sizes differ from the forecast: a layout that turns out too large is removed.
    sizes = [os.path.getsize(os.path.join(reference, f"{name}.blk")) for name in ("blco", "sorted-1", "sorted-2")]
    most = max(sizes[1], sizes[0])
    said = cpd("c", "--layouts", "build", "--max-disk", most, "--restart")
    check(sorted(os.listdir(store)) == ["blco.blk", "sorted-1.blk", "tensor.json"], (os.listdir(store), said))
    check(said.count("was not built") == 2, said)
    said = cpd("d", "--layouts", "build")
    check(len(re.findall(r"^sorted-[23]: \d+ partitions", said, re.M)) == 2 and "sorted-1: " not in said, said)
    check({path.replace(store, reference): data for path, data in tree(store).items()
           if path.endswith(".blk")} == {path: data for path, data in expected.items() if path.endswith(".blk")}, "other bytes")
    with open(os.path.join(folder, "d", "run.json"), encoding="utf-8") as file:
        check(json.load(file)["options"]["layouts"] == "build", "not recorded")
    inodes = {name: os.stat(os.path.join(store, name)).st_ino for name in os.listdir(store)}
    cpd("d", "--layouts", "build")
    check(inodes == {name: os.stat(os.path.join(store, name)).st_ino for name in os.listdir(store)}, "built again")
    check(all(read_bytes(os.path.join(folder, "a", f"mode-{m}.npy")) == read_bytes(os.path.join(folder, "d", f"mode-{m}.npy"))
              for m in (1, 2, 3)), "other factors of row updates")


run([
    ("layouts are added, listed and dropped", add_list_drop),
    ("paths that are not UTF-8", foreign_bytes),
    ("whole fibers", fibers),
    ("a dry run changes nothing", dry_run),
    ("cpd builds layouts", built_by_cpd),
    ("wrong words", wrong),
    ("the budget that is named is enough", budget),
    ("kills at any moment", killed),
    ("a signal stops it", stopped),
    ("two at once", two),
    ("read-only commands", only_read),
    ("a store that is being replaced", replaced),
    ("stripes in other folders", striped),
    ("copies of a striped store", copied),
    ("undivided rows between divided rows", rows_between),
])
