#!/usr/bin/env python3
"""predict: dialects, index bases, rejected input and its position, budgets."""

import csv
import gzip
import json
import math
import os
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SLUICE, check, npy, run, sluice  # noqa: E402


def model(folder):
    """Of rank 1: the value at (i, j) is 2 * (10 + i) * (100 + j), from 0."""
    out = os.path.join(folder, "m")
    os.makedirs(out)
    npy(os.path.join(out, "mode-1.npy"), [10.0, 11, 12], 3, 1)
    npy(os.path.join(out, "mode-2.npy"), [100.0, 101, 102, 103], 4, 1)
    npy(os.path.join(out, "lambda.npy"), [2.0], 1)
    return out


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(text)
    return path


def values(folder):
    out = model(folder)
    cases = {
        "t.tns": ("# two\n1 1 2000\n3 4 2472.5\r\n", "1 1 2000 2000 0\n3 4 2472.5 2472 0.5\n"),
        "zero.tns": ("0 0 2000\n2 3 1\n", "0 0 2000 2000 0\n2 3 1 2472 -2471\n"),
        "alone.tns": ("1 1\n3 4\n", "1 1 2000\n3 4 2472\n"),
        "parti.tns": ("2\n3 4\n1 1 2000\n", "1 1 2000 2000 0\n"),
        "toolbox.txt": ("sptensor\n2\n3 4\n1\n3 4 2472\n", "3 4 2472 2472 0\n"),
        "genten.txt": ("sptensor indices-start-at-zero\n2\n3 4\n1\n1 1 1\n", "1 1 1 2222 -2221\n"),
        "m.mtx": ("%%MatrixMarket matrix coordinate real general\n3 4 1\n3 4 2472\n", "3 4 2472 2472 0\n"),
        "pattern.mtx": ("%%MatrixMarket matrix coordinate pattern general\n3 4 1\n3 4\n", "3 4 2472\n"),
        "empty.tns": ("", ""),
    }
    for name, (text, want) in cases.items():
        path = write(folder, name, text)
        got, said = sluice("predict", out, path)
        check(got == want, f"{name}: {got!r}, wanted {want!r}")
        packed = os.path.join(folder, name + ".gz")
        with gzip.open(packed, "wb") as file:
            file.write(text.encode())
        check(sluice("predict", out, packed, "-q") == (want, ""), f"{name}: another result compressed")
        done = subprocess.run([SLUICE, "predict", out, "-", "-q"], input=text, capture_output=True, text=True)
        check(done.returncode == 0 and done.stdout == want, f"{name} through a pipe: {done}")
    said, _ = sluice("predict", out, os.path.join(folder, "t.tns"), "--json")
    got = json.loads(said)
    check(got["count"] == 2 and got["mae"] == 0.25 and got["largest_error"] == 0.5 and got["rmse"] == (0.125) ** 0.5, got)
    said, _ = sluice("predict", out, os.path.join(folder, "alone.tns"), "--json")
    check(json.loads(said)["rmse"] is None, said)
    # Errors and values whose squares are below the smallest number, or above the largest.
    for size in (1e-170, 1e170):
        npy(os.path.join(out, "lambda.npy"), [2.0 * size], 1)
        path = write(folder, "size.tns", f"1 1 {2003 * size!r}\n3 4 {2468 * size!r}\n")
        got = json.loads(sluice("predict", out, path, "--json")[0])
        check(abs(got["rmse"] / size / 12.5 ** 0.5 - 1) < 1e-9, got)
        check(abs(got["values_norm"] / size / (2003 ** 2 + 2468 ** 2) ** 0.5 - 1) < 1e-12, got)
    npy(os.path.join(out, "lambda.npy"), [2.0], 1)
    # The convention of the format if the base is ambiguous; an explicit option always wins.
    path = write(folder, "one.tns", "1 1 5\n")
    check(sluice("predict", out, path, "-q")[0].startswith("1 1 5 2000"), "not from 1")
    check(sluice("predict", out, path, "-q", "--index-base", 0)[0].startswith("1 1 5 2222"), "not from 0")


def numbered_as_the_input(folder):
    """Held-out nonzeros with an ambiguous index base use that of the store's input, if the format
    is the same."""
    whole = write(folder, "whole.tns", "".join(f"{i} {j} {(1 + i) * (1 + j)}\n" for i in range(4) for j in range(5)))
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "r")
    sluice("convert", whole, store, "-q")
    sluice("cpd", store, "-r", 1, "-o", out, "-q")
    held = write(folder, "held.tns", "1 2 6\n3 3 16\n")
    said = json.loads(sluice("predict", out, held, "--json")[0])
    check(said["index_base"] == 0 and said["largest_error"] < 1e-6, f"{said}")
    check(json.loads(sluice("predict", out, held, "--json", "--index-base", 1)[0])["largest_error"] > 1, "asked for")
    # Text whose base is clear, or of another format, is unaffected.
    check(json.loads(sluice("predict", out, write(folder, "end.tns", "4 5 20\n"), "--json")[0])["largest_error"] < 1e-6, "end")
    matrix = write(folder, "m.mtx", "%%MatrixMarket matrix coordinate real general\n4 5 1\n2 3 6\n")
    check(json.loads(sluice("predict", out, matrix, "--json")[0])["largest_error"] < 1e-6, "another format")


def refused(folder):
    out = model(folder)
    cases = [("1 1 1\n4 1 1\n", ":2:1: index 4 of mode 1 is out of range"), ("1 1 1\n1 5 1\n", ":2:3: index 5 of mode 2"),
             ("0 1 1\n3 1 1\n", ":2:1: index 3 of mode 1 is out of range"), ("1 1 1\n1 x 1\n", ":2:3:"), ("1 1.5\n", "is not an index"),
             ("1 1 1\n1 1\n", ":2:"), ("1 1 1 1 1\n", "4 indices"), ("2\n3 5\n1 1 1\n", "mode 2"),
             ("sptensor\n2\n3 4\n2\n1 1 1\n1 1 1\n", "--index-base"), ("sptensor\n2\n3 4\n3\n3 4 1\n", "declares 3"),
             ("1 1 nan\n", ":1:5:"), ("1 -1\n", "not an index")]
    for number, (text, word) in enumerate(cases):
        path = write(folder, f"bad{number}.tns", text)
        _, messages = sluice("predict", out, path, "-o", os.path.join(folder, "p.txt"), status=3)
        check(word in messages, f"{text!r}: {messages!r} lacks {word!r}")
        check(not os.path.exists(os.path.join(folder, "p.txt")), "refused, but something was written")
    # A fault after the first two megabytes is also reported with its line number.
    path = write(folder, "late.tns", "1 1 1\n" * 500000 + "0 1 1\n")
    _, messages = sluice("predict", out, path, "-q", "-o", os.path.join(folder, "p.txt"), status=3)
    check(":500001:1: index 0 of mode 1" in messages and "set the index base (--index-base)" in messages, messages)
    path = write(folder, "t.tns", "1 1 1\n")
    for options, word in ((("--write", "npy"), "--output"), (("--json", "--write", "text"), "--output"),
                          (("-o", "x", "--write", "none"), "none"), (("--format", "alto-bin"), "alto-bin")):
        _, messages = sluice("predict", out, path, *options, status=2)
        check(word in messages, messages)
    _, messages = sluice("predict", out, path, "--memory", "1MiB", status=4)
    check("--memory" in messages, messages)
    existing = write(folder, "there.csv", "mine")
    _, messages = sluice("predict", out, path, "-o", existing, status=5)
    check("--overwrite" in messages and open(existing).read() == "mine", messages)
    sluice("predict", out, path, "-o", existing, "-f", "-q")
    check(open(existing).read() == "mode_1,mode_2,value,model,residual\n1,1,1,2000,-1999\n", open(existing).read())
    for name in ("mode-1.npy", "mode-3.npy", "lambda.npy", "run.json"):
        place = os.path.join(out, name)
        before = open(place, "rb").read() if os.path.exists(place) else None
        for options in ((), ("--write", "csv")):
            _, messages = sluice("predict", out, path, "-o", place, "-f", *options, status=2)
            check("file of the results of a run" in messages, messages)
        check((open(place, "rb").read() if os.path.exists(place) else None) == before, f"{name} changed")
    sluice("predict", out, path, "-o", os.path.join(out, "values.npy"), "-q")
    sluice("predict", out, path, "-o", os.path.join(folder, "mode-1.npy"), "-q")
    sluice("predict", os.path.join(folder, "nothing"), path, status=5)
    sluice("predict", out, os.path.join(folder, "nothing.tns"), status=5)


def foreseen(folder):
    """--dry-run reports memory, bytes and the size of the output, and writes nothing; a run
    compares at its end."""
    out, log = model(folder), os.path.join(folder, "log")
    npy(os.path.join(out, "lambda.npy"), [0.12345678901234], 1)
    rows = "".join(f"{1 + i % 3} {1 + i % 4} {i % 977 / 7:.6g}\n" for i in range(20000))
    path, made = write(folder, "t.tns", rows), os.path.join(folder, "p.csv")
    before = sorted(os.listdir(folder))
    told = json.loads(sluice("predict", out, path, "-o", made, "--dry-run", "--json")[0])
    words = sluice("predict", out, path, "-o", made, "--dry-run", "--no-probe")[0]
    check("Would predict" in words and "not estimated" in words and told["seconds"] > 0, words)
    check(sorted(os.listdir(folder)) == before, "a dry run wrote")
    said = sluice("predict", out, path, "-o", made, "--log-json", log)[0]
    check("  expected     memory " in said, said)
    with open(log) as file:
        estimate = json.loads(file.readlines()[-1])["estimate"]
    actual = estimate["actual"]
    check(actual["final_bytes"] == os.path.getsize(made), (actual, os.path.getsize(made)))
    for expected in (told, estimate):
        for what in ("final_bytes", "read_bytes"):
            check(0.75 * actual[what] <= expected[what] <= 1.25 * actual[what], (what, expected, actual))
        # Wide bounds: sanitizers change the size of processes.
        check(0.5 * actual["memory_bytes"] <= expected["memory_bytes"] <= 2 * actual["memory_bytes"], (expected, actual))
    check(json.loads(sluice("predict", out, path, "-o", made + ".npy", "--dry-run", "--json")[0])["final_bytes"] == 20000 * 24 + 128,
          "the size of an array")
    sluice("predict", out, path, "--dry-run", "--memory", "1MiB", status=4)
    sluice("predict", out, write(folder, "wide.tns", "1 1 1 1 1\n"), "--dry-run", status=3)


def stores_and_tables(folder):
    """The nonzeros of a store, and rows of a table whose names are those of the store."""
    rows = [("b", 2, 3, 1), ('a "x"', 7, 4, 2), ("c", 8, 3, 5), ("b", 8, 4, 4)]
    table = write(folder, "t.csv", "who,t,k,n\n" + "".join(f'"{w.replace(chr(34), chr(34) * 2)}",{t},{k},{n}\n' for w, t, k, n in rows))
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "m")
    sluice("convert", table, store, "--columns", "who,bin(t,5),int(k)", "--value", "n", "--relabel", "frequency", "-q")
    sluice("cpd", store, "-r", 2, "-i", 3, "-o", out, "-q")
    path = os.path.join(folder, "p.csv")

    def predicted(*args):
        sluice("predict", out, *args, "-o", path, "-f", "-q")
        with open(path, newline="") as file:
            return list(csv.DictReader(file))

    nonzeros, lines = predicted(store), predicted(table)
    check(list(nonzeros[0]) == ["mode_1", "name_1", "mode_2", "name_2", "mode_3", "name_3", "value",
                                  "model", "residual"], nonzeros[0])
    check([row["name_1"] for row in lines] == [row[0] for row in rows] and [row["name_2"] for row in lines] ==
          ["[0, 5)", "[5, 10)", "[5, 10)", "[5, 10)"] and [float(row["value"]) for row in lines] == [1, 2, 5, 4], lines)
    key = lambda row: tuple(row.values())  # noqa: E731
    check(sorted(nonzeros, key=key) == sorted(lines, key=key), (nonzeros, lines))
    # The same numbers as at coordinates in a text.
    text = write(folder, "t.tns", "".join(f"{row['mode_1']} {row['mode_2']} {row['mode_3']} {row['value']}\n" for row in lines))
    want = [line.split() for line in sluice("predict", out, text, "--index-base", 1, "-q")[0].splitlines()]
    check([[row["mode_1"], row["mode_2"], row["mode_3"], row["value"], row["model"], row["residual"]] for row in lines] == want, want)
    summary = json.loads(sluice("predict", out, store, "--json")[0])
    worst = json.loads(sluice("residuals", out, "--json")[0])
    check(summary["count"] == 4 and abs(summary["rmse"] - worst["rmse"]) < 1e-14, (summary, worst))
    # Other heads of columns, another order, new names, no values.
    other = write(folder, "o.csv", "K,T,WHO\n3,8,c\n4,1,new\n9,8,c\n4,99,c\n")
    got = predicted(other, "--columns", "WHO,bin(T,5),int(K)", "--value", "none")
    check(got[0]["model"] == lines[2]["model"] and "value" not in got[0], got)
    check([row["model"] for row in got[1:]] == ["", "", ""] and (got[1]["mode_1"], got[1]["name_1"]) == ("", "") and
          got[2]["mode_3"] == "" and got[3]["mode_2"] == "", got)
    said, messages = sluice("predict", out, other, "--columns", "WHO,bin(T,5),int(K)", "--value", "none")
    check("3 of 4 rows have a name that the model does not have" in messages and said.splitlines()[1].split()[-1] == "-", (said, messages))
    check(json.loads(sluice("predict", out, other, "--columns", "WHO,bin(T,5),int(K)", "--value", "none", "--json")[0])["unknown"] == 3, "count")
    check("only the names of columns may differ" in sluice("predict", out, other, "--columns", "WHO,bin(T,6),int(K)", status=2)[1], "a rule")
    check("no column 'who'" in sluice("predict", out, other, status=2)[1], "columns")
    # The store records which words count as empty fields, and how rows with such fields are
    # treated.
    sluice("convert", table, os.path.join(folder, "s.slc"), "--columns", "who,bin(t,5),int(k)", "--value", "n", "--missing", "skip", "-q")
    sluice("cpd", os.path.join(folder, "s.slc"), "-r", 2, "-i", 3, "-o", os.path.join(folder, "ms"), "-q")
    gaps = write(folder, "gaps.csv", "who,t,k,n\nc,8,3,5\nNA,8,3,1\nc,8,3,?\nb,2,NA,1\n")
    check("has '?'" in sluice("predict", os.path.join(folder, "ms"), gaps, "--null", "NA", status=3)[1], "a word that is not listed")
    got = sluice("predict", os.path.join(folder, "ms"), gaps, "--null", "NA,?", "-q")[0].splitlines()
    check(len(got) == 1 and got[0].split()[:3] == [lines[2][f"mode_{n}"] for n in (1, 2, 3)], got)
    check("column who has 'NA'" in sluice("predict", out, gaps, "--null", "NA,?", status=3)[1], "rows with gaps are errors")
    for words in ((text,), (store,), ("-",)):
        said = sluice("predict", out, *words, "--null", "NA", status=2)[1]
        check("apply to tables" in said and "(--null, --columns)" in said, said)
    check("words separated by commas (--null)" in sluice("predict", out, gaps, "--null", "NA,,x", status=2)[1], "words")
    check("no forecast" in sluice("predict", out, store, "--dry-run", status=3)[1], "a forecast")
    check("--memory" in sluice("predict", out, table, "--memory", "20MiB", status=4)[1], "the budget")
    # Names that a spreadsheet would run as formulas are protected in every table; numbers are not.
    formulas = write(folder, "f.csv", "who,k\n=1+2,1\n-5,2\n")
    sluice("convert", formulas, os.path.join(folder, "f.slc"), "--columns", "who,k", "-q")
    sluice("cpd", os.path.join(folder, "f.slc"), "-r", 1, "-o", os.path.join(folder, "f"), "-q")
    sluice("predict", os.path.join(folder, "f"), formulas, "-o", path, "-f", "-q")
    with open(path) as file:
        for said in (file.read(), *(sluice(command, os.path.join(folder, "f"), "--csv")[0] for command in ("top", "residuals"))):
            check('"\'=1+2"' in said and '"-5"' in said, said)
    odd = write(folder, "odd.csv", "who,k\n\u202ex\x1b[2J,1\nz,2\n")
    sluice("convert", odd, os.path.join(folder, "odd.slc"), "--columns", "who,k", "-q")
    sluice("cpd", os.path.join(folder, "odd.slc"), "-r", 1, "-o", os.path.join(folder, "odd"), "-q")
    for command in (["residuals"], ["top"], ["compare", os.path.join(folder, "odd")]):
        said = sluice(*command, os.path.join(folder, "odd"))[0]
        check("\u202e" not in said and "\x1b" not in said and "x" in said, said)
    # The output is the table; a field is empty; the store has grown.
    for name in (formulas, os.path.join(folder, ".", "f.csv")):
        said = sluice("predict", os.path.join(folder, "f"), formulas, "-o", name, "-f", status=2)[1]
        check("the output is the file of the coordinates" in said, said)
    with open(formulas) as file:
        check(file.read() == "who,k\n=1+2,1\n-5,2\n", "the input was replaced")
    more = write(folder, "more.csv", "who,k\n,1\n")
    for command in (["predict", os.path.join(folder, "f")], ["append", os.path.join(folder, "f.slc")]):
        said = sluice(*command, more, status=3)[1]
        check("column who has ''" in said and "remove the row" in said and "--missing" not in said, said)
    sluice("append", os.path.join(folder, "f.slc"), write(folder, "more.csv", "who,k\nnew,1\n"), "-q")
    said = sluice("predict", os.path.join(folder, "f"), os.path.join(folder, "f.slc"), status=3)[1]
    check("the store has index 3 in mode 1, but the model has 2 rows: if the store has grown" in said, said)
    sluice("convert", text, os.path.join(folder, "plain.slc"), "-q")
    sluice("cpd", os.path.join(folder, "plain.slc"), "-r", 1, "-o", os.path.join(folder, "plain"), "-q")
    said = sluice("predict", os.path.join(folder, "plain"), table, status=3)[1]
    check("does not record the columns of a table" in said and "(--columns)" in said, said)


def residuals_refused(folder):
    """Residuals of an empty tensor are zero; models that do not match or are not finite are rejected."""
    store, out = os.path.join(folder, "t.slc"), model(folder)
    sluice("convert", write(folder, "none.tns", ""), store, "--dims", "3x4", "-q")
    got = json.loads(sluice("residuals", out, store, "--json")[0])
    check(got["nnz"] == 0 and got["norm"] == 0 and got["nonzeros"] == [] and got["quantiles"]["0.5"] == 0, got)
    said = sluice("residuals", out, status=3)[1]
    check("specify the store" in said, said)
    text = write(folder, "t.tns", "1 1 2000\n3 4 2472.5\n")
    sluice("convert", text, store, "-q", "-f")
    said = sluice("residuals", out, store)[0]
    check("largest 0.5\n" in said and said.splitlines()[-2].split() == ["0.5", "2472.5", "2472", "3", "4"], said)
    sluice("append", store, write(folder, "more.tns", "4 1 5\n"), "-q")
    said = sluice("residuals", out, store, status=3)[1]
    check("mode 1 has 4 indices in the store, but 3 in the model: if the store has grown" in said, said)
    check("cannot be combined" in sluice("residuals", out, store, "--csv", "--json", status=2)[1], "two formats")
    npy(os.path.join(out, "mode-1.npy"), [1e200] * 4, 4, 1)
    # A relative residual beyond the range of numbers; nothing is listed.
    sluice("convert", write(folder, "tiny.tns", "1 1 1e-200\n4 4 1\n"), os.path.join(folder, "tiny.slc"), "-q")
    got = json.loads(sluice("residuals", out, os.path.join(folder, "tiny.slc"), "--top", "0", "--by", "relative", "--json")[0])
    check(abs(got["norm"] / math.hypot(2e202, 2.06e202) - 1) < 1e-12 and got["values_norm"] == 1, got)
    check(abs(got["rmse"] / got["norm"] - 0.5 ** 0.5) < 1e-12 and abs(got["largest"] / 2.06e202 - 1) < 1e-12, got)
    npy(os.path.join(out, "mode-1.npy"), [1e-300] * 4, 4, 1)
    sluice("convert", write(folder, "tiny.tns", "1 1 3e-200\n4 4 4e-200\n"), os.path.join(folder, "tiny.slc"), "-q", "-f")
    got = json.loads(sluice("residuals", out, os.path.join(folder, "tiny.slc"), "--json")[0])
    check(abs(got["norm"] - 5e-200) < 1e-212 and got["values_norm"] == got["norm"], got)
    # A norm above the largest number.
    npy(os.path.join(out, "mode-1.npy"), [8e305] * 4, 4, 1)
    said = sluice("residuals", out, os.path.join(folder, "tiny.slc"), status=1)[1]
    check("the norm of the residuals is inf, and that of the values 5e-200: scale" in said, said)
    # A sum above the largest number, whose norm is not.
    huge = write(folder, "huge.tns", "".join(f"{i} {j} 3e307\n" for i in range(1, 5) for j in range(1, 5)))
    sluice("convert", huge, os.path.join(folder, "huge.slc"), "-q")
    npy(os.path.join(out, "mode-1.npy"), [0] * 4, 4, 1)
    for options in ([], ["--json"]):
        said = sluice("residuals", out, os.path.join(folder, "huge.slc"), *options, status=1)
        check(said[0] == "" and "sum of the magnitudes of the residuals is inf: scale" in said[1], said)
    npy(os.path.join(out, "mode-1.npy"), [1e300] * 4, 4, 1)
    npy(os.path.join(out, "mode-2.npy"), [1e300] * 4, 4, 1)
    said = sluice("residuals", out, store, status=1)[1]
    check("is not finite: its value is" in said and "the model is inf" in said, said)
    check("residuals of this store needs" in sluice("residuals", out, store, "--memory", "1MiB", status=4)[1], "the budget")
    # The store of the run exists, but is damaged: this is reported, not that there is none in the current folder.
    sluice("cpd", "t.slc", "-r", 1, "-i", 1, "-o", "made", "-q", cwd=folder)
    sluice("residuals", os.path.join(folder, "made"), "-q", cwd=os.path.dirname(folder))
    write(store, "tensor.json", "{")
    said = sluice("residuals", os.path.join(folder, "made"), cwd=os.path.dirname(folder), status=5)[1]
    check(os.path.realpath(store) in said and "No such file" not in said, said)


if __name__ == "__main__":
    run([("foreseen", foreseen), ("values in every dialect", values), ("numbered as the input of the store", numbered_as_the_input),
         ("errors and their positions", refused),
         ("stores and tables", stores_and_tables), ("residuals: empty tensors, models that do not match", residuals_refused)])
