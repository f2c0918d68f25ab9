#!/usr/bin/env python3
"""Text input: errors name file, line and column, exit with 3 and leave no files."""

import bz2
import gzip
import json
import lzma
import os
import re
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SLUICE, bundled, check, run, sluice  # noqa: E402

GOOD = "1 1 1 1.5\n2 3 4 2\n"
# name: (text, line, column or None for any, extra arguments, part of the message)
BAD = {
    "too few fields": (GOOD + "1 2 3\n", 3, None, (), ""),
    "too many fields": (GOOD + "1 2 3 4 5\n", 3, None, (), ""),
    "letters for an index": (GOOD + "1 a 3 4\n", 3, 3, (), ""),
    "letters for a value": (GOOD + "1 2 3 four\n", 3, 7, (), ""),
    "an index above 64 bits": (GOOD + "1 99999999999999999999999 3 4\n", 3, 3, (), ""),
    "a value that overflows": (GOOD + "1 2 3 1e999\n", 3, 7, (), ""),
    "NaN": (GOOD + "1 2 3 nan\n", 3, 7, (), ""),
    "infinity": (GOOD + "1 2 3 -inf\n", 3, 7, (), ""),
    "index 0 in base 1": (GOOD + "1 0 3 4\n", 3, None, ("--index-base", "1"), "0"),
    "a negative index": (GOOD + "1 -2 3 4\n", 3, 3, (), ""),
    "an index beyond --dims": (GOOD + "1 4 3 4\n", 3, None, ("--dims", "9x3x9"), "3"),
    "an index beyond the header": ("3\n9 3 9\n" + GOOD + "1 4 3 4\n", 5, None, (), "3"),
    "binary garbage": (GOOD.encode() + bytes(range(256)) * 4, 3, None, (), ""),
    "a zero byte": (GOOD.encode() + b"1 2 3 4\0\n", 3, None, (), ""),
    "a line of 10 MB": (GOOD + "1 " * 5_000_000 + "\n", 3, None, (), ""),
    "an empty file": ("", None, None, (), ""),
    "comments only": ("# nothing\n# here\n", None, None, (), ""),
}


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def nothing_left(folder, *kept):
    left = set(os.listdir(folder)) - set(kept)
    check(not left, f"leftovers: {sorted(left)}")


def bad(text, line, column, more, part):
    def test(folder):
        forms = {"bad.tns": as_bytes(text), "bad.tns.gz": gzip.compress(as_bytes(text), 1)}
        for name, data in forms.items():
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            out, messages = sluice("convert", path, os.path.join(folder, "out.slc"), *more, status=3)
            first = messages.splitlines()[-1]
            check(out == "", f"standard output: {out}")
            check(name in first and part in first, messages)
            found = re.search(re.escape(name) + r":(\d+):(\d+): \S", first)
            if line is not None:
                check(found, f"no line and column: {messages}")
                check(int(found[1]) == line, f"line {found[1]}, not {line}: {messages}")
                check(column in (None, int(found[2])), f"column {found[2]}, not {column}: {messages}")
            nothing_left(folder, *forms)
        with open(os.path.join(folder, "bad.tns")) as file:
            messages = subprocess.run([SLUICE, "convert", "-", "out.slc", *more], stdin=file,
                                      capture_output=True, text=True, cwd=folder)
        check(messages.returncode == 3, f"from standard input: exit {messages.returncode}")
        nothing_left(folder, *forms)
    return test


def store_of(folder, data, *more):
    path, store = os.path.join(folder, "in.tns"), os.path.join(folder, "out.slc")
    with open(path, "wb") as file:
        file.write(as_bytes(data))
    out, messages = sluice("convert", path, store, "-f", *more)
    sluice("check", store)
    back = os.path.join(folder, "back.tns")
    sluice("export", store, back, "-f")
    with open(back) as file:
        rows = sorted(tuple(line.split()) for line in file)
    return rows, out, messages


WANT = [("1", "1", "1", "1.5"), ("2", "3", "4", "2")]


def accepted(folder):
    for name, data in {"plain": GOOD, "no final newline": GOOD[:-1], "CRLF": GOOD.replace("\n", "\r\n"),
                       "tabs, blanks": "  1\t1  1   1.5 \n\t2 3 4 2\t\n",
                       "comments, empty lines": "# c\n\n" + GOOD + "\n# end\n",
                       "parti": "3\n2 3 4\n" + GOOD,
                       "extended FROSTT": "# extended FROSTT format\n3 2\n2 3 4\n" + GOOD,
                       "taco": "%%MatrixMarket tensor coordinate real general\n2 3 4 2\n" + GOOD,
                       }.items():
        rows, _, _ = store_of(folder, data)
        check(rows == WANT, f"{name}: {rows}")
    rows, _, _ = store_of(folder, "%%MatrixMarket matrix coordinate real symmetric\n3 3 2\n"
                                  "1 1 5\n3 1 2\n")
    check(rows == [("1", "1", "5"), ("1", "3", "2"), ("3", "1", "2")], f"Matrix Market: {rows}")


def bases(folder):
    rows, out, _ = store_of(folder, "0 1 1 1\n2 3 4 2\n")
    check(rows == [("1", "2", "2", "1"), ("3", "4", "5", "2")], f"0-based: {rows}")
    check("index base   from 0" in out, out)
    rows, out, messages = store_of(folder, "2 1 1 1\n2 3 4 2\n")
    check(rows[0] == ("2", "1", "1", "1") and "index base   from 1" in out, out)
    check("mode 1" in messages and "--index-base" in messages, f"no hint: {messages}")
    _, _, messages = store_of(folder, "0 1 0 1\n2 3 4 2\n")
    check("smallest index of mode 2 is 1, but indices start at 0 (index 0 occurs in mode 1" in messages and "mode 3" not in messages, messages)
    check("note" not in store_of(folder, "0 1 0 1\n2 3 4 2\n", "--index-base", "0")[2], "the base was given")
    path = os.path.join(folder, "amb.txt")
    with open(path, "w") as file:
        file.write("sptensor\n3\n9 9 9\n2\n" + GOOD)
    _, messages = sluice("convert", path, os.path.join(folder, "amb.slc"), status=3)
    check("--index-base" in messages, messages)
    check(not os.path.exists(os.path.join(folder, "amb.slc")), "an ambiguous file made a store")
    sluice("convert", path, os.path.join(folder, "amb.slc"), "--index-base", "1")
    with open(path, "w") as file:
        file.write("sptensor indices-start-at-one\n3\n2 3 4\n2\n" + GOOD)
    sluice("convert", path, os.path.join(folder, "amb.slc"), "-f")


def compressed(folder):
    for name, pack in (("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)):
        rows, out, _ = store_of(folder, pack(GOOD.encode()))
        check(rows == WANT, f"{name}: {rows}")
        check("compression" in out and "none" not in out, out)
    for zeros in (1, 512, 100000):  # as on tapes
        check(store_of(folder, gzip.compress(GOOD.encode()) + bytes(zeros))[0] == WANT, f"{zeros} zeros after a member")
        check(store_of(folder, gzip.compress(GOOD[:10].encode()) + bytes(zeros) + gzip.compress(GOOD[10:].encode()))[0] == WANT, "two members")
    with open(os.path.join(folder, "rest.gz"), "wb") as file:
        file.write(gzip.compress(GOOD.encode()) + bytes(9) + b"rest")
    sluice("convert", os.path.join(folder, "rest.gz"), os.path.join(folder, "rest.slc"), status=3)
    data = gzip.compress(GOOD.encode() * 1000)
    path = os.path.join(folder, "cut.gz")
    with open(path, "wb") as file:
        file.write(data[:len(data) // 2])
    _, messages = sluice("convert", path, os.path.join(folder, "cut.slc"), status=3)
    check("cut.gz" in messages, messages)
    check(not os.path.exists(os.path.join(folder, "cut.slc")), "a cut file made a store")


def standard_input(folder):
    path = os.path.join(folder, "p.slc")
    sluice("convert", "-", path, input=GOOD)
    out, _ = sluice("export", path, "-")
    check(sorted(tuple(line.split()) for line in out.splitlines()) == WANT, out)


def duplicates_and_zeros(folder):
    data = "1 1 1 1\n2 2 2 5\n1 1 1 2\n2 2 2 -5\n3 3 3 0\n"
    rows, out, _ = store_of(folder, data)
    check(rows == [("1", "1", "1", "3")], f"sum: {rows}")
    check("duplicates   2 (policy sum)" in out and "zeros        2 dropped" in out, out)
    check(store_of(folder, data, "--duplicates", "keep-first")[0]
          == [("1", "1", "1", "1"), ("2", "2", "2", "5")], "keep-first")
    check(store_of(folder, data, "--duplicates", "keep-last")[0]
          == [("1", "1", "1", "2"), ("2", "2", "2", "-5")], "keep-last")
    for policy, want in (("mean", "1.5"), ("min", "1"), ("max", "2")):
        rows, out, _ = store_of(folder, data, "--duplicates", policy)
        check(rows[0] == ("1", "1", "1", want) and f"(policy {policy})" in out, f"{policy}: {rows}")
        check(rows[1:] == {"mean": [], "min": [("2", "2", "2", "-5")], "max": [("2", "2", "2", "5")]}[policy], f"{policy}: {rows}")
    # A coordinate with more entries than fit a bucket; the sum has the rounding of the input order.
    values = [0.1 * (i % 7) + 1e9 * (i % 11 == 0) for i in range(9000)]
    many = "".join(f"1 1 1 {v!r}\n{i % 90 + 2} 3 {i % 7 + 1} 1\n" for i, v in enumerate(values))
    for policy, want in (("mean", sum(values) / len(values)), ("min", min(values)), ("max", max(values))):
        rows, _, _ = store_of(folder, many, "--duplicates", policy, "-t", 2)
        found = {row[:3]: float(row[3]) for row in rows}
        check(found.get(("1", "1", "1"), 0) == want, f"{policy}: {rows[0]}, {want!r}")
    _, messages = sluice("convert", os.path.join(folder, "in.tns"), os.path.join(folder, "e.slc"),
                         "--duplicates", "error", status=3)
    check("in.tns" in messages, messages)


def values_survive(folder):
    values = ["0.1", "1e-308", "1.7976931348623157e308", "-3", "123456789012345678", "2.5e-320",
              "3.141592653589793", "1e22", "9007199254740993"]
    data = "".join(f"{i + 1} 1 {v}\n" for i, v in enumerate(values))
    rows, _, _ = store_of(folder, data)
    got = {int(r[0]): float(r[2]) for r in rows}
    for i, v in enumerate(values):
        check(got[i + 1] == float(v), f"{v} became {got[i + 1]}")


def outputs_are_kept(folder):
    """An existing output is not replaced without -f, and not changed by a failed -f."""
    store_of(folder, GOOD)
    path, store = os.path.join(folder, "in.tns"), os.path.join(folder, "out.slc")
    _, messages = sluice("convert", path, store, status=5)
    check("exists" in messages and "--overwrite" in messages, messages)
    with open(path, "w") as file:
        file.write(GOOD + "oops\n")
    sluice("convert", path, store, "-f", status=3)
    sluice("check", store)
    sluice("convert", path, store, "--overwrite", "--index-base", "1", status=3)
    sluice("convert", os.path.join(folder, "missing.tns"), os.path.join(folder, "m.slc"), status=5)
    sluice("export", store, path, status=5)
    with open(path) as file:
        check(file.read().endswith("oops\n"), "export replaced a file")


def read_back(folder):
    """Exported text whose mode sizes or base cannot be found in it: a note states the options that
    read it back, and a header makes them unnecessary."""
    stores = {"full": ("1 1 1 1\n3 4 5 2\n", "3x4x5"), "empty ends": ("2 2 2 1\n3 3 3 2\n", "3x4x5"),
              "no index 0": ("2 2 2 1\n3 4 5 2\n", "3x4x5"), "no nonzeros": ("", "3x4x5"),
              "one mode": ("2 1.5\n", "7"), "relabelled": ("2 1 1 1\n2 2 2 1\n4 1 3 2\n4 2 1 2\n4 4 5 1\n", "6x4x5")}
    path, store, back = (os.path.join(folder, name) for name in ("back.tns", "in.slc", "back.slc"))
    for name, (text, dims) in stores.items():
        with open(os.path.join(folder, "in.tns"), "w") as file:
            file.write(text)
        sluice("convert", os.path.join(folder, "in.tns"), store, "-f", "--index-base", 1, "--dims", dims, "-q",
               "--relabel", "frequency" if name == "relabelled" else "none")
        for base in (0, 1):
            for header in ([], ["--header"]):
                _, said = sluice("export", store, path, "-f", "--index-base", base, *header)
                advice = re.search(r"use convert((?: --\S+ \S+)+),", said)
                check(bool(advice) == ("note" in said), said)
                options = advice[1].split() if advice else []
                if header:
                    check(not options, f"{name}: {said}")
                else:
                    check(("--dims" in options) == (name not in ("full", "no index 0")), f"{name}: {said}")
                    check(("--index-base" in options) == (base == 0 and name in ("empty ends", "no index 0", "one mode")),
                          f"{name}, base {base}: {said}")
                sluice("convert", path, back, "-f", "-q", *options)
                want, have = (json.loads(sluice("info", s, "--json")[0]) for s in (store, back))
                check([want[key] for key in ("dims", "nnz", "content_sum")] == [have[key] for key in ("dims", "nnz", "content_sum")],
                      f"{name}, base {base}, {header}: {have}")
    # generate prints the same note.
    for dims, nnz, lost in (("3000x2000x100", 90, True), ("3x2x2", 12, False)):
        for out in (path, "-"):
            text, said = sluice("generate", out, "-f", "--dims", dims, "--nnz", nnz)
            advice = re.search(r"mode sizes: to read it back, use convert --dims (\S+)", said)
            check((advice[1] == dims) if lost else (advice is None and "note" not in said), said)
        sluice("convert", path, back, "-f", "-q", *(["--dims", advice[1]] if advice else []))
        check("x".join(map(str, json.loads(sluice("info", back, "--json")[0])["dims"])) == dims, dims)
    _, said = sluice("export", store, os.path.join(folder, "t.npz"), "--header", status=2)
    check("--header" in said and "npz" in said, said)
    _, said = sluice("export", store, "-", "--index-base", 0, "-q")
    check(said == "", said)


def two_at_once(folder):
    """A second run that would write the same text is rejected, and does not disturb the first."""
    path = os.path.join(folder, "out.tns")
    args = ["generate", path, "--dims", "3000x2000x1000", "-q", "--nnz"]
    first = subprocess.Popen([SLUICE, *args, "1000000000"], stderr=subprocess.PIPE)
    while not os.path.exists(path + ".tmp") or os.path.getsize(path + ".tmp") == 0:
        check(first.poll() is None, "it ended by itself")
        time.sleep(0.01)
    _, message = sluice(*args, 10, status=5)
    check("another run is writing this output" in message, message)
    check(os.path.getsize(path + ".tmp") > 0, "the first run's text was cut")
    first.terminate()
    first.communicate(timeout=60)
    check(os.listdir(folder) == [], f"left: {os.listdir(folder)}")
    sluice(*args, 10)
    check(os.listdir(folder) == ["out.tns"], f"left: {os.listdir(folder)}")


def real(name):
    def test(folder):
        store = os.path.join(folder, "t.slc")
        out, _ = sluice("convert", bundled(name), store)
        check("bytes per nonzero" in out and "compression xz" in out, out)
        sluice("check", store)
        info = json.loads(sluice("info", store, "--json")[0])
        check(info["nnz"] > 0 and info["schema"] == "sluice-info-1", info)
    return test


def foreign(folder):
    """Files of other formats are named, with a way to read them: as tensors, tables and names."""
    good = os.path.join(folder, "good.tns")
    with open(good, "w", encoding="ascii") as file:
        file.write(GOOD)
    zipped = b"PK\x03\x04" + bytes(26)
    for data, part in ((b"PAR1\x15\x04\0", "a Parquet file; save it as CSV, or pass it to python3 -m sluice convert or append"), (b"ARROW1\0\0", "an Arrow file (Feather)"),
                       (b"\xff\xff\xff\xff\x10\0\0\0", "an Arrow stream"), (b"\x89HDF\r\n\x1a\n\0", "an HDF5 file"),
                       (b"MATLAB 5.0 MAT-file\0", "a MAT-file"), (b'[{"a": 1}]', "a JSON file"), (b'\n{"a": [1]}', "a JSON file"),
                       ("a,b\n".encode("utf-16"), "a UTF-16 text; convert it to UTF-8"), ("a\n".encode("utf-32"), "a UTF-32 text"),
                       (b"MATLAB 7.3 MAT-file\0", "a MAT-file"), (b"\x80\x02]q\0", "a Python pickle"), (b"[[1, 2], [3, 4]]", "a JSON file"), (b"SQLite format 3\0", "an SQLite database"),
                       (zipped + b"[Content_Types].xml", "an Excel file"), (zipped + b"a.csv", "a ZIP archive")):
        path = os.path.join(folder, "other")
        for name, content in ((path, data), (path + ".gz", gzip.compress(data))):
            with open(name, "wb") as file:
                file.write(content)
            for arguments in ((name,), (name, "--columns", "a"), (good, "--labels", f"1={name}", "--dims", "2x3x4")):
                if data.startswith(b"PK") and arguments == (name,) or "JSON" in part and "--labels" in arguments:
                    continue  # an .npz file; names may be JSON
                _, said = sluice("convert", *arguments, os.path.join(folder, "o.slc"), status=3)
                check(part in said and os.path.basename(name) in said, f"{arguments}: {said}")
    for head in ("ORCID", "PAR10", "ARROW1", "%PDF-1.4", "[a]", "{a}", "[[x]]", "[{x}]", '[\t[\t5'):
        with open(path, "w", encoding="ascii") as file:
            file.write(f"{head}\n(\t)\t3\n" if "\t" in head else f"{head},x\n1,2\n")
        sluice("convert", path, os.path.join(folder, "o.slc"), "--columns", "1,2" if "\t" in head else f'"{head}",x', "--overwrite", "-q",
               *(("--no-header", "--delimiter", "tab", "--missing", "name") if "\t" in head else ()))


def variants(folder):
    """Notations of other writers are read; text that looks like another format is rejected with
    advice."""
    path, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")

    def converted(text, *more, status=0):
        with open(path, "wb") as file:
            file.write(as_bytes(text))
        out, said = sluice("convert", path, store, "--overwrite", *more, status=status)
        return sluice("export", store, "-", "-q")[0] if status == 0 else said
    rows = converted("3 2\n2 3 4\n" + GOOD, "--format", "frostt-ext")
    mlir = "; extended FROSTT format\n;; written by MLIR\n3 2\n2 3 4\n; rows\n" + GOOD
    check(converted(mlir) == rows and converted(mlir.replace("\n", "\r\n")) == rows, "MLIR")
    check(converted(mlir.split("\n", 1)[1], "--format", "frostt-ext") == rows, "MLIR without its first comment")
    check(converted("\n# empty lines\n\n%%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 1.5\n") ==
          converted("%%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 1.5\n"), "empty lines before the banner")
    market = "  %%MatrixMarket matrix coordinate real general\n2 3 1\n2 3 1.5\n"
    check(converted(market) == converted(market.strip() + "\n"), "blanks before the banner")
    check(converted(b"\xef\xbb\xbf" + GOOD.encode()) == converted(GOOD), "a byte order mark")
    said = converted("3 2\n2 3 4\n" + GOOD, status=3)
    check(":1:1: " in said and "extended FROSTT" in said and "--format" in said, said)
    said = converted("1,2,3,4.5\n", status=3)
    check("found 1 field" in said and "--columns" in said, said)
    converted("2 3\n2 3\n2 3\n")  # rows of a vector


def dense(folder):
    """The text of a dense tensor: the first mode changes fastest, zeros are omitted."""
    values = [0, 1.5, 0, -2, 1e-3, 0, 7, 0, 0, 0, 0, 3]
    rows = sorted((str(i % 2 + 1), str(i // 2 % 3 + 1), str(i // 6 + 1), repr(v) if v % 1 else str(int(v)))
                  for i, v in enumerate(values) if v)
    for text in ("tensor\n3\n2 3 2\n" + "\n".join(f"{v:.16e}" for v in values) + "\n",
                 "TENSOR\r\n3\r\n2 3 2\r\n" + "\r\n".join(map(str, values)),
                 "tensor\n3\n2 3 2\n# values\n" + " ".join(map(str, values[:7])) + "\n\n" + "\t".join(map(str, values[7:])) + "\n\n"):
        found, out, _ = store_of(folder, text, "--threads", 2)
        check(found == rows and "2 x 3 x 2 (declared)" in out and "12 elements" in out, f"{found}\n{out}")
        found, _, _ = store_of(folder, gzip.compress(text.encode()), "--format", "tensor")
        check(found == rows, f"{found}")
    many = [(i * 7919) % 11 - 5 for i in range(200 * 300 * 4)]
    found, _, _ = store_of(folder, "tensor\n3\n200 300 4\n" + "\n".join(map(str, many)))
    check(found == sorted((str(i % 200 + 1), str(i // 200 % 300 + 1), str(i // 60000 + 1), str(v)) for i, v in enumerate(many) if v), "many")
    for text, part in (("tensor\n2\n2 2\n1\n2\n3\n", "need 4 values, found 3"), ("tensor\n2\n2 2\n1\n2\n3\n4\n 5\n", ":8:2: expected the end"),
                       ("tensor\n2\n2 2\n1 x\n3\n4\n", ":4:3: expected a finite value, found 'x'"),
                       ("tensor\n2\n2 2\n1 2\n3 nan\n", ":5:3: expected a finite value"), ("tensor\n2\n2 0\n", ":3:3: "),
                       ("tensor\n2\n4000000000 4000000000\n1\n", "more values than a file can hold"),
                       ("ktensor\n3\n2 3 4\n2\n1 1\n", ":1:1: this is a ktensor, the weights and factors of a model"),
                       ("matrix\n2\n2 2\n1 2\n3 4\n", "dense matrix of the Tensor Toolbox")):
        path, out = os.path.join(folder, "bad.txt"), os.path.join(folder, "bad.slc")
        with open(path, "w") as file:
            file.write(text)
        _, said = sluice("convert", path, out, status=3)
        check(part in said and "bad.txt" in said and not os.path.exists(out), f"{part}: {said}")
    sluice("generate", os.path.join(folder, "g.slc"), "--dims", "2x3x2", "--nnz", 9, "-q")
    sluice("cpd", os.path.join(folder, "g.slc"), "-r", 2, "-o", os.path.join(folder, "run"), "-q", "--maxiters", 2)
    with open(path, "w") as file:
        file.write("tensor\n3\n2 3 2\n" + "1\n" * 12)
    _, said = sluice("predict", os.path.join(folder, "run"), path, status=3)
    check("this is a dense tensor" in said, said)


run([(f"bad text: {name}", bad(*case)) for name, case in BAD.items()] + [
    ("accepted forms", accepted),
    ("index bases", bases),
    ("compressed by content; a cut file", compressed),
    ("standard input and output", standard_input),
    ("duplicates and zeros", duplicates_and_zeros),
    ("values survive the round trip", values_survive),
    ("exported text is read back with its sizes and base", read_back),
    ("existing outputs are kept", outputs_are_kept),
    ("files of other formats", foreign),
    ("notations of other writers", variants),
    ("dense text", dense),
    ("two runs with one text", two_at_once),
    ("a bundled tensor: cmudict-wpp", real("cmudict-wpp")),
    ("a bundled tensor: genten-aminoacid_data", real("genten-aminoacid_data")),
])
