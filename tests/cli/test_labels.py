#!/usr/bin/env python3
"""Names of indices and titles of modes: from maps next to a tensor to the reports of a run."""

import csv
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SLUICE, check, load_json, names_of, run, sluice  # noqa: E402

USERS = ["ann, \"b\"", "", "b\u00e9a", "evil\x1b[31m\u202e", "x" * 4095, "ann"]
WORDS = [f"word {i}" for i in range(3000)]


def made(folder, *more, name="t.slc", status=0):
    """A store of 6 x 3000 x 2000 with names for both modes: for mode 2 compressed, and with Windows
    line ends."""
    maps, text = os.path.join(folder, "maps"), os.path.join(folder, "t.tns")
    if not os.path.exists(maps):
        os.mkdir(maps)
        with open(os.path.join(maps, "mode-1-users.map"), "w", encoding="utf-8") as file:
            file.write("\n".join(USERS))  # the last line without a newline
        with gzip.open(os.path.join(maps, "mode-2.map.gz"), "wt", newline="") as file:
            file.write("".join(word + "\r\n" for word in WORDS))
        with open(os.path.join(maps, "mode-9-notes.txt"), "w") as file:
            file.write("no map\n")
        sluice("generate", text, "--dims", "6x3000x2000", "--nnz", 200000, "--dist", "zipf-shuffled:1.1", "--seed", 2, "-q")
    store = os.path.join(folder, name)
    return store, sluice("convert", text, store, "--labels", maps, "--dims", "6x3000x2000", "-f", *more, status=status)


def kept(folder):
    """In info, check and the manifest; after relabelling, the names stay with the indices of the
    input."""
    for more in ((), ("--relabel", "frequency")):
        store, _ = made(folder, *more, "-q")
        told = json.loads(sluice("info", store, "--json")[0])
        check(told["modes"] == [{"title": "users", "names": 6}, {"title": "", "names": 3000}, {"title": "", "names": 0}], told["modes"])
        check((2 in told["relabelled_modes"]) == bool(more), f"{told['relabelled_modes']}")
        out, _ = sluice("info", store)
        check("users, size 6" in out and "3,000 with names" in out, out)
        check(f"is sound: {4 + len(told['relabelled_modes'])} files" in sluice("check", store)[0], "check")
        check(set(os.listdir(store)) >= {"names-1.bin", "names-2.bin"}, os.listdir(store))
    path = os.path.join(store, "names-2.bin")
    with open(path, "r+b") as file:
        file.seek(20000)
        byte = file.read(1)[0]
        file.seek(20000)
        file.write(bytes([byte ^ 4]))
    _, messages = sluice("check", store, status=5)
    check("names-2.bin" in messages and "altered" in messages, messages)
    os.remove(path)
    check("missing" in sluice("check", store, status=5)[1], "a missing file")


def no_text(folder):
    """A store whose path is not UTF-8 is found again from run.json by top and report."""
    place = os.path.join(folder, os.fsdecode(b"p\xff\xe2\x80"))
    os.mkdir(place)
    store, out = os.path.join(place, "t.slc"), os.path.join(place, "r")
    with open(os.path.join(folder, "in.csv"), "w", encoding="utf-8") as file:
        file.write("who,what\n" + "".join(f"person {i % 5},thing {i % 3}\n" for i in range(15)))
    bypass = {"env": os.environ}
    sluice("convert", os.path.join(folder, "in.csv"), store, "--columns", "who,what", "-q", **bypass)
    sluice("cpd", store, "-r", 1, "-i", 2, "-o", out, "-q", "--log-json", os.path.join(folder, "log"), **bypass)
    record = load_json(os.path.join(out, "run.json"))
    tensor = record["tensor"]
    check(tensor["path"].endswith("p\ufffd\ufffd\ufffd/t.slc") and bytes.fromhex(tensor["path_bytes"]) == os.fsencode(store), tensor)
    check("directory_bytes" not in tensor, tensor)
    with open(os.path.join(folder, "log"), encoding="utf-8") as file:
        plans = [event for event in map(json.loads, file) if event["event"] == "plan"]
    check(bytes.fromhex(plans[0]["tensor_bytes"]) == os.fsencode(store), plans)
    shown = json.loads(sluice("top", out, "--json", **bypass)[0])
    check(bytes.fromhex(shown["store_bytes"]) == os.fsencode(store) and bytes.fromhex(shown["run_bytes"]) == os.fsencode(out), shown)
    check("person" in json.dumps(shown), "names were not found")
    page = os.path.join(folder, "r.html")
    sluice("report", out, "-o", page, "-q", **bypass)
    with open(page, encoding="utf-8") as file:
        check("person 1" in file.read(), "names are not in the report")
    check(bytes.fromhex(json.loads(sluice("info", store, "--json", **bypass)[0])["path_bytes"]) == os.fsencode(store), "info")
    shown = json.loads(sluice("residuals", out, store, "--json", **bypass)[0])
    check(bytes.fromhex(shown["store_bytes"]) == os.fsencode(store) and bytes.fromhex(shown["run_bytes"]) == os.fsencode(out), shown)
    shown = json.loads(sluice("compare", out, out, "--json", **bypass)[0])["runs"][1]
    check(bytes.fromhex(shown["run_bytes"]) == os.fsencode(out), shown)
    # In a folder that is not UTF-8, with a relative path.
    sluice("cpd", "t.slc", "-r", 1, "-i", 2, "-o", "r2", "-q", cwd=place, **bypass)
    shown = json.loads(sluice("top", os.path.join(place, "r2"), "--json", cwd=folder, **bypass)[0])
    check("store_bytes" not in shown and "person" in json.dumps(shown), shown)
    # Hexadecimal digits that do not encode a path.
    for digits in ("7", "zz", "00", "2f" * 5000):
        with open(os.path.join(out, "run.json"), "w", encoding="utf-8") as file:
            json.dump(record | {"tensor": tensor | {"path_bytes": digits}}, file)
        check("hexadecimal" in subprocess.run([SLUICE, "top", out], capture_output=True, text=True, errors="replace",
                                              check=False).stderr, digits)


def formulas(folder):
    """Names that a spreadsheet would run get an apostrophe in CSV; the rule can be undone, or switched off."""
    names = ["=1+1", "+a", "-a", "@a", "\tb", "\rb", "'=c", "''-d", "=HYPERLINK(\"x\")", "-5", "+1.5e-3", "-.5", "-5-1", "-", "+1e", "1-2",
             "'s-H", "plain", "", "1.5.", "--5", "-1e5x"]
    table, store, out = (os.path.join(folder, name) for name in ("in.csv", "t.slc", "r"))
    with open(table, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([["who", "what"], *([name, "x"] for name in names if name)])
    sluice("convert", table, store, "--columns", "who,what", "-q")
    sluice("cpd", store, "-r", 1, "-i", 1, "-o", out, "-q")
    stored = [name for name in names if name]
    for more, change in (((), lambda name: "'" + name if name[:1] and name.lstrip("'")[:1] in set("=+-@\t\r") and
                          not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", name) else name), (("--no-escape",), str)):
        tables = os.path.join(folder, "model" + "".join(more))
        sluice("export", out, tables, "--format", "csv", "-q", *more)
        with open(os.path.join(tables, "mode-1.csv"), newline="", encoding="utf-8") as file:
            written = [line[1] for line in csv.reader(file)][1:]
        check(written == [change(name) for name in stored], written)
        check(more or [re.sub(r"^'(?='*[=+\-@\t\r])", "", name) for name in written] == stored, "the rule cannot be undone")
    check(sum(a != b for a, b in zip(stored, map(lambda name: name.strip("'"), stored))) == 3, stored)
    # convert keeps the names of a table without escapes.
    sluice("convert", os.path.join(folder, "model--no-escape", "mode-1.csv"), os.path.join(folder, "again.slc"), "--columns", "name,index",
           "--value", "component-1", "-q")
    check(names_of(os.path.join(folder, "again.slc"), 1) == stored, "names after export and convert")


def text_in(folder, out, text):
    """The output of top for a run does not depend on the current folder, and a changed store is
    reported."""
    made_in = os.path.join(folder, "made_in")
    os.mkdir(made_in)
    sluice("cpd", os.path.join("..", "t.slc"), "-r", 2, "-i", 3, "--tol", 0, "-o", "r", "-q", cwd=made_in)
    for cwd, path in ((made_in, "r"), (folder, os.path.join("made_in", "r")), ("/", os.path.join(made_in, "r"))):
        got, messages = sluice("top", path, "-n", 6, cwd=cwd)
        check(got.splitlines()[1:] == text.splitlines()[1:] and messages == "", f"in {cwd}: {got} {messages}")
    # Store and run are moved together: the path in run.json is relative to the current folder.
    moved = os.path.join(folder, "moved")
    os.mkdir(moved)
    os.rename(os.path.join(folder, "t.slc"), os.path.join(moved, "t.slc"))
    os.rename(made_in, os.path.join(moved, "made_in"))
    got, _ = sluice("top", "r", "-n", 6, cwd=os.path.join(moved, "made_in"))
    check(got.splitlines()[1:] == text.splitlines()[1:], f"moved together: {got}")
    os.rename(os.path.join(moved, "t.slc"), os.path.join(folder, "t.slc"))
    changed = os.path.join(folder, "changed.slc")
    shutil.copytree(os.path.join(folder, "t.slc"), changed)
    sluice("cpd", changed, "-r", 2, "-i", 1, "-o", changed + ".r", "-q")
    with open(changed + ".tns", "w") as file:
        file.write("1 1 1 1\n")
    sluice("append", changed, changed + ".tns", "-q")
    got, messages = sluice("top", changed + ".r")
    check("word" in got and "has changed since the run" in messages, messages)


def told(folder):
    """top, its JSON and report print names next to indices; control characters in them are escaped."""
    store, _ = made(folder, "--relabel", "frequency", "-q")
    out = os.path.join(folder, "r")
    sluice("cpd", store, "-r", 2, "-i", 3, "--tol", 0, "-o", out, "-q")
    text, _ = sluice("top", out, "-n", 6)
    check("mode 1 (users), 6 rows" in text and "mode 2, " in text, text)
    check("\x1b" not in text and "\u202e" not in text and "evil\\x1b[31m" in text and "b\u00e9a" in text, repr(text))
    rows = json.loads(sluice("top", out, "-n", 40, "--json")[0])["components"]
    for component in rows:
        users, words, _ = component["modes"]
        check(users["title"] == "users" and "title" not in words, f"{component}")
        check([r["name"] for r in users["rows"]]
              == [USERS[r["index"] - 1] for r in users["rows"]], f"{users}")
        check([r["name"] for r in words["rows"]] == [WORDS[r["index"] - 1] for r in words["rows"]], f"{words}")
    check(f"    {'value':>13}  index  name" in text.splitlines() and f"    {'value':>13}  index" in text.splitlines(), text)
    flat = list(csv.DictReader(io.StringIO(sluice("top", out, "-n", 40, "--csv")[0])))
    want = [[c["component"], f"{c['weight']:.17g}", m["mode"], m.get("title", ""), k + 1, r["index"],
             r.get("name", ""), f"{r['value']:.17g}"]
            for c in rows for m in c["modes"] for k, r in enumerate(m["rows"])]
    check([[float(x).hex() if n in (1, 7) else x for n, x in enumerate(row.values())] for row in flat] ==
          [[float(x).hex() if n in (1, 7) else str(x) for n, x in enumerate(row)] for row in want], flat[:3])
    check("cannot be combined" in sluice("top", out, "--csv", "--json", status=2)[1], "two formats")
    page = os.path.join(folder, "r.html")
    sluice("report", out, "-o", page, "-q")
    with open(page, encoding="utf-8") as file:
        html = file.read()
    check("Mode 1: users<span>6 rows</span>" in html and '<td dir="auto">word ' in html and not set("\x1b\u202e") & set(html), "the page")
    # Names of files and modes in the output of info, check and of errors.
    odd = os.path.join(folder, "odd\u2066\x1b.tns")
    with open(odd, "w", encoding="utf-8") as file:
        file.write("1 1 1\n")
    sluice("convert", odd, os.path.join(folder, "odd.slc"), "-q", "-f")
    open(os.path.join(folder, "odd.slc", "x\u202e.blk.stripes"), "w", encoding="utf-8").close()
    for command in (["info", os.path.join(folder, "odd.slc")], ["check", os.path.join(folder, "odd.slc")]):
        said = "".join(sluice(*command))
        check(not set("\x1b\u202e\u2066") & set(said), repr(said))
    check("odd\u2066\x1b" in json.loads(sluice("info", os.path.join(folder, "odd.slc"), "--json")[0])["origin"]["source"], "JSON")
    said = "".join(sluice("convert", odd + "none", os.path.join(folder, "none.slc"), status=5))
    check("odd????.tnsnone" in said, repr(said))
    check("x" * 61 not in html and "x" * 60 + "&hellip;" in html, "a long name is not cut")
    model = os.path.join(folder, "model")
    sluice("export", out, model, "--format", "csv", "-q")
    for mode, want in ((1, USERS), (2, WORDS), (3, None)):
        with open(os.path.join(model, f"mode-{mode}.csv"), newline="", encoding="utf-8") as file:
            header, *lines = csv.reader(file)
        named = ["name"] if want else []
        check(header == ["index", *named, "component-1", "component-2"], f"{header}")
        check([line[0] for line in lines] == [str(i + 1) for i in range(len(lines))], "indices")
        check(not want or [line[1] for line in lines] == want, f"names of mode {mode}")
    text_in(folder, out, text)
    os.rename(store, store + ".moved")
    alone, messages = sluice("top", out)
    check("word" not in alone and "without their names" in messages, messages)
    check("without their names" in sluice("report", out, "-o", page, "-f")[1], "report of a missing store")
    check("without their names" in sluice("export", out, model, "--format", "csv", "-f")[1], "csv of a missing store")
    check(sluice("top", out, "-n", 6, "--store", store + ".moved")[0].splitlines()[1:] == text.splitlines()[1:], "--store")
    other = os.path.join(folder, "o.slc")
    sluice("generate", other, "--dims", "5x3000x2000", "--nnz", 9, "-q")
    check("whose modes differ" in sluice("top", out, "--store", other, status=3)[1], "another tensor's names")
    os.remove(os.path.join(store + ".moved", "names-1.bin"))
    check("names-1.bin" in sluice("top", out, "--store", store + ".moved", status=5)[1], "names that are gone")


def refused(folder):
    """Too few or too many names, invalid names, nonexistent modes: errors name file and line, and
    no files are left."""
    store, _ = made(folder, "-q")
    maps, text = os.path.join(folder, "maps"), os.path.join(folder, "t.tns")
    wrong = os.path.join(folder, "wrong.map")
    before = sorted(os.listdir(folder))
    for content, line, words in ((b"a\nb\n", 2, "2 names end here"), (b"a\n" * 7, 7, "more lines than the 6"),
                                 (b"a\nb\0c\n" + b"d\n" * 4, 2, "name of mode 1 contains a zero byte"), (b"a\n" + b"b" * 4096 + b"\n" * 5, 2, "4096 bytes")):
        with open(wrong, "wb") as file:
            file.write(content)
        _, messages = sluice("convert", text, os.path.join(folder, "u.slc"), "--dims", "6x3000x2000", "--labels",
                             f"1={wrong}", "-q", status=3)
        check(f"wrong.map:{line}" in messages and words in messages, messages)
        os.remove(wrong)
        check(sorted(os.listdir(folder)) == before, f"leftovers: {os.listdir(folder)}")
    one = os.path.join(maps, "mode-1-users.map")
    for where, status, words in ((f"4={one}", 2, "the tensor has 3 modes"), (f"17={one}", 2, "1 to 16"), ("1=", 2, "K=FILE"),
                                 (folder, 2, "no file of names"), (os.path.join(folder, "nowhere"), 5, "nowhere"),
                                 ("1=" + os.path.join(folder, "nowhere"), 5, "nowhere")):
        _, messages = sluice("convert", text, os.path.join(folder, "u.slc"), "--labels", where, "-q", status=status)
        check(words in messages, messages)
    _, messages = sluice("convert", text, store, "-f", "--labels", maps, "--labels", f"1={one}", "-q", status=2)
    check("two files of names for mode 1" in messages, messages)
    pipe = os.path.join(folder, "pipe")
    os.mkfifo(pipe)
    _, messages = sluice("convert", text, os.path.join(folder, "u.slc"), "--labels", f"1={pipe}", "-q", status=3, timeout=30)
    check("pipe" in messages and "not a regular file" in messages, messages)
    os.remove(pipe)
    check(sorted(os.listdir(folder)) == before, f"leftovers: {os.listdir(folder)}")


def grown(folder):
    """append --labels: a map of all indices names the new ones, and must not rename others."""
    store, _ = made(folder, "-q")
    more, maps = os.path.join(folder, "more.tns"), os.path.join(folder, "new-maps")
    with open(more, "w") as file:
        file.write("7 1 1 3\n8 3000 2 1\n")
    os.mkdir(maps)
    for users, status, part in ((USERS + ["g", "h", "i"], 3, "more lines than the 8 indices of mode 1"),
                                (["zoe"] + USERS[1:] + ["g", "h"], 3, "called 'zoe' here and 'ann"), (USERS + ["g", "h"], 0, "")):
        with open(os.path.join(maps, "mode-1-people.map"), "w", encoding="utf-8") as file:
            file.write("".join(user + "\n" for user in users))
        _, messages = sluice("append", store, more, "--labels", maps, "-q", status=status)
        check(part in messages, messages)
        told = json.loads(sluice("info", store, "--json")[0])
        check(told["modes"][0] == ({"title": "people", "names": 8} if status == 0 else {"title": "users", "names": 6}), told["modes"])
        check(told["modes"][1] == {"title": "", "names": 3000}, told["modes"])
    sluice("check", store)


def budget(folder):
    """The smallest accepted budget yields the same store."""
    store, _ = made(folder, "-q")
    want = {name: open(os.path.join(store, name), "rb").read() for name in sorted(os.listdir(store))}
    _, (_, messages) = made(folder, "--memory", "1MiB", "-q", name="small.slc", status=4)
    least = int(re.search(r"needs (\d+) MiB of memory", messages)[1])
    small, _ = made(folder, "--memory", f"{least + 2}MiB", "-q", "-t", 1, name="small.slc")
    got = {name: open(os.path.join(small, name), "rb").read() for name in sorted(os.listdir(small))}
    check(got == want, "another store within a small budget")
    check(load_json(os.path.join(small, "tensor.json"))["names"][1]["count"] == 3000, "the manifest")


def notations(folder):
    """A byte order mark is no part of the first name; line ends are LF or CR LF, also none at the end."""
    text, names = os.path.join(folder, "t.tns"), os.path.join(folder, "n.map")
    with open(text, "w", encoding="ascii") as file:
        file.write("1 1 1\n2 2 2\n3 1 4\n")

    def listed(data, status=0):
        with open(names, "wb") as file:
            file.write(data)
        _, said = sluice("convert", text, os.path.join(folder, "n.slc"), "--labels", f"1={names}", "-f", "-q", status=status)
        if status != 0:
            return said
        return names_of(os.path.join(folder, "n.slc"), 1)
    want = ["anna", "b\u00e9a", "carl"]
    for mark in (b"", b"\xef\xbb\xbf"):
        for line_end in ("\n", "\r\n"):
            for last in ("", line_end):
                data = mark + (line_end.join(want) + last).encode()
                check(listed(data) == want, f"{data}: {listed(data)}")
    check(listed(b"\xef\xbb\xbfa\n\xef\xbb\xbfb\nc\n") == ["a", "\ufeffb", "c"], "a mark in a later line belongs to its name")
    said = listed(b"anna\rbea\rcarl", status=3)
    check("n.map:1:5: a carriage return within a name" in said, said)
    check("zero byte" in listed(b"anna\nb\0a\ncarl\n", status=3), "a zero byte")
    check("UTF-16" in listed("anna\nbea\ncarl\n".encode("utf-16"), status=3), "UTF-16")


run([("kept", kept), ("no text", no_text), ("formulas", formulas), ("notations", notations), ("told", told), ("refused", refused), ("grown", grown), ("budget", budget)])
