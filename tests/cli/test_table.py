#!/usr/bin/env python3
"""CSV and TSV: compared with Python's csv module, names included; errors have line and column."""

import collections
import csv
import datetime
import gzip
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, QUICK, SLUICE, check, names_of, run, run_command, sluice  # noqa: E402


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def doubtful_times(folder):
    """A warning if numbers are probably not seconds since 1970."""
    for rows, rule, part in ((("20230401", "20230402"), "date(t)", "from 1970-08-23 to 1970-08-23, because numbers are seconds since 1970; write dates such as 20230401 as 2023-04-01"),
                             (("12.5", "7"), "hour(t)", "from 1970-01-01 to 1970-01-01, because numbers are seconds since 1970: does the column contain times?"),
                             (("1680356730", "1680356731"), "date(t)", None), (("1970-01-01", "1970-01-02"), "date(t)", None),
                             (("12.5", "2023-04-01"), "date(t)", None)):
        path = write(folder, "t.csv", "t,x\n" + "".join(f"{row},a\n" for row in rows) * 40)
        _, said = sluice("convert", path, os.path.join(folder, "t.slc"), "--columns", f"{rule},x", "--overwrite")
        check("warning" not in said if part is None else f"{rule}: all times are {part}" in said, said)
    path = write(folder, "t.csv", "t,x\n1680356730000,a\n")
    _, said = sluice("convert", path, os.path.join(folder, "t.slc"), "--columns", "date(t),x", "--overwrite", status=3)
    check("divide milliseconds by 1000" in said, said)


def named(folder, store, order):
    """Returns the contents of a store, {names: value}, from its export, with indices replaced by
    the names in its files."""
    out = os.path.join(folder, "back.tns")
    sluice("export", store, out, "-f", "-q")
    names = [names_of(store, m + 1) for m in range(order)]
    cells = {}
    with open(out) as file:
        for line in file:
            if line[0] not in "#\n":
                *index, value = line.split()
                cells[tuple(names[m][int(i) - 1] for m, i in enumerate(index))] = float(value)
    return cells


def against_csv(folder):
    """Random CSV with quotes, delimiters and line ends in fields are read like Python's csv does."""
    rng = random.Random(7)
    for turn in range(6 if QUICK else 25):
        path, delimiter = os.path.join(folder, "t.csv"), rng.choice(",;\t|")
        alphabet = ["a", "b", "\u00e9", " ", '"', delimiter, "\n", "x" * 50, "'", "1"]
        words = ["".join(rng.choices(alphabet, k=rng.randint(1, 6))) for _ in range(20)]
        words = [w for w in words if w.strip()] + ["plain"]
        with open(path, "w", newline="", encoding=rng.choice(("utf-8", "utf-8-sig"))) as file:
            writer = csv.writer(file, delimiter=delimiter, lineterminator=rng.choice(("\n", "\r\n")),
                                quoting=rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)))
            writer.writerow(["who", "not used", "what, then", "n"])
            for _ in range(rng.randint(1, 400)):
                writer.writerow([rng.choice(words), rng.choice(words), rng.choice(words), rng.randint(1, 9)])
        want = collections.Counter()
        with open(path, newline="", encoding="utf-8-sig") as file:
            for row in csv.DictReader(file, delimiter=delimiter):
                want[row["who"], row["what, then"]] += int(row["n"])
        store = os.path.join(folder, "t.slc")
        sluice("convert", path, store, "--columns", 'who,"what, then"', "--value", "n", "--delimiter",
               "tab" if delimiter == "\t" else delimiter, "-f", "-q", "--threads", rng.randint(1, 3))
        check(named(folder, store, 2) == dict(want), f"turn {turn}")


def times(folder):
    """Parts of times and consecutive bins agree with Python's datetime, names included."""
    rng = random.Random(11)
    rules = {"minute": "%M", "hour": "%H", "weekday": "%A", "day": None, "month": "%B", "year": None, "yearmonth": "%Y-%m",
             "date": "%Y-%m-%d", "datehour": "%Y-%m-%d %H:00", "dateminute": "%Y-%m-%d %H:%M"}
    for years in ((1968, 1972), (2023, 2025)):
        begin, end = (datetime.datetime(y, 1, 1) for y in years)
        rows = [begin + datetime.timedelta(seconds=rng.randrange(int((end - begin).total_seconds()))) for _ in range(300)]
        rows += [datetime.datetime(years[0], 12, 31, 23, 59, 59), datetime.datetime(years[0] + 1, 1, 1)]
        path = os.path.join(folder, "when.tsv.gz")
        with gzip.open(path, "wt") as file:
            file.write("when\tn\n")
            for t in rows:
                form = rng.choice(("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y/%m/%d %H:%M:%S.250", "epoch"))
                file.write((str(int(t.replace(tzinfo=datetime.timezone.utc).timestamp())) if form == "epoch" else
                            t.strftime(form)) + "\t1\n")
        for rule, form in rules.items():
            if QUICK and rule == "dateminute" or years[0] == 2023 and rule == "dateminute":
                continue
            store = os.path.join(folder, "when.slc")
            sluice("convert", path, store, "--columns", f"{rule}(when)", "-f", "-q")
            want = collections.Counter((t.strftime(form) if form else str(getattr(t, rule)),) for t in rows)
            check(named(folder, store, 1) == dict(want), f"{rule}: {named(folder, store, 1)} {want}")


def numbers(folder):
    """Integers are kept, numbers binned; without values rows are counted; without a header columns
    have numbers."""
    path, store = os.path.join(folder, "n.csv"), os.path.join(folder, "n.slc")
    with open(path, "w") as file:
        file.write("3,-0.5,1,x\n0,12.5,1000,\n3,9.999,999.9,y\n3,-5,10,x\n")
    out, _ = sluice("convert", path, store, "--columns", "int(1),bin(2,5),log(3)", "--no-header")
    check("50 B in 4 rows" in out and "index base" not in out and "4x4x4" in out.replace(" ", ""), out)
    check("(found in the data)" in out and "declared" not in out, out)
    check(named(folder, store, 3) == {("3", "[-5, 0)", "[1, 10)"): 1, ("0", "[10, 15)", "[1000, 10000)"): 1,
                                      ("3", "[5, 10)", "[100, 1000)"): 1, ("3", "[-5, 0)", "[10, 100)"): 1},
          named(folder, store, 3))
    told = json.loads(sluice("info", store, "--json")[0])
    check([m["title"] for m in told["modes"]] == ["int(1)", "bin(2,5)", "log(3)"], told["modes"])
    out, _ = sluice("convert", path, store, "--columns", "int(1),4", "--no-header", "-f", "--missing", "skip")
    check("1 further rows" in out and named(folder, store, 2) == {("3", "x"): 2, ("3", "y"): 1}, out)
    sluice("convert", path, store, "--columns", "int(1),4", "--no-header", "-f", "-q", "--missing", "name")
    check(named(folder, store, 2) == {("3", "x"): 2, ("0", ""): 1, ("3", "y"): 1}, named(folder, store, 2))
    with open(path, "rb") as file:
        done = subprocess.run([SLUICE, "convert", "-", store, "--columns", "int(1)", "--no-header", "-f", "-q"], stdin=file,
                              capture_output=True)
    check(done.returncode == 0 and named(folder, store, 1) == {("0",): 1, ("3",): 3}, done.stderr)


def null_words(folder):
    """Words in --null are empty fields, in every column, in quotes and in appended tables."""
    words = ["NULL", "\\N", "NA", "not known"]
    store, want = os.path.join(folder, "n.slc"), os.path.join(folder, "w.slc")
    for missing in ("skip", "name"):
        stores = []
        for empty in (False, True):
            text, more = (os.path.join(folder, f"{name}{empty}.csv") for name in ("first", "more"))
            for path, seed in ((text, 1), (more, 2)):
                # Every 50th record has a line end in quotes and is read by itself.
                rows = [[f"who {(i * seed) % 7}", "NULLS" if i % 5 else "a\nb", str(i % 24), str(i / 4)] for i in range(1000)]
                for i, row in enumerate(rows):
                    at = i % (4 if missing == "skip" else 2)
                    if i % 9 == seed:
                        row[at] = "" if empty else words[i % 4] if i % 2 else f'"{words[i % 4]}"'
                    row[1] = f'"{row[1]}"' if "\n" in row[1] else row[1]
                write(folder, os.path.basename(path), "who,what,hour,fare\n" + "".join(",".join(row) + "\n" for row in rows))
            stores.append(want if empty else store)
            sluice("convert", text, stores[-1], "--columns", "who,what,int(hour)", "--value", "fare", "--missing", missing,
                   "-f", "-q", "--threads", 2, *(() if empty else ("--null", ",".join(words))))
            sluice("append", stores[-1], more, "-q")
        check(same_files(store, want), missing)
        check(("",) in {names[:1] for names in named(folder, store, 3)} or missing == "skip", "no empty name")
    path = write(folder, "v.csv", "o,n\na,1\nNA,NA\n")
    for more, part in (((), "column o has 'NA', expected a nonempty field; skip omits such rows, name"),
                       (("--missing", "name"), "column n has 'NA', expected a nonempty field; skip omits such rows (--missing)"),
                       (("--null", "NA,,x"), "words separated by commas (--null)"), (("--null", '"'), "(--null)")):
        _, said = sluice("convert", path, store, "--columns", "o", "--value", "n", "-f", *(more if "--null" in more else ("--null", "NA", *more)),
                         status=2 if "--null" in more else 3)
        check(part in said, said)
    sluice("convert", path, store, "-f", "--null", "NA", status=2)


def in_order(names):
    """Returns the names in the order of sorted(NAME), by its description."""
    def key(name):
        try:
            value = float(name) if re.fullmatch(r" *[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)? *", name) else math.inf
        except ValueError:
            value = math.inf
        # Digits are before the other characters where ASCII has them.
        parts = [(int(part or 0), 1) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
        flat = []
        for part in parts:
            flat += [(48, part[0])] if isinstance(part, tuple) else [(byte, 0) for byte in part.encode()]
        return (math.isinf(value), value if not math.isinf(value) else 0, flat, name.encode())
    return sorted(names, key=key)


def sorted_strings(folder):
    """sorted(NAME) numbers strings in order, with any threads and memory; appended names follow."""
    cases = [[str(i) for i in range(1, 13)], ["week 9", "week 10", "week 1", "week", "week 09", "Week 2", "wee!k", "wee:k"],
             ["-3", "2.5", "10", "1e2", "", "a", "00", "0", "-0", "0.0", "-1e300", "1e999", " 7", "nan", "b\u00fccher", "7"],
             [f"{i % 2 and 'user ' or ''}{i * 7919 % 2000}" for i in range(2000)]]
    for number, names in enumerate(cases):
        rng = random.Random(number)
        rows = [rng.choice(names) for _ in range(2000)] + names
        path = write(folder, "s.csv", "x,y\n" + "".join(f'"{name}",{i % 9}\n' for i, name in enumerate(rows)))
        store, plain = os.path.join(folder, "s.slc"), os.path.join(folder, "p.slc")
        for threads in (1, 3):
            sluice("convert", path, store, "--columns", "sorted(x),sorted(y),x", "--missing", "name", "-f", "-q", "--threads", threads)
            check(names_of(store, 1) == in_order(names), f"{names_of(store, 1)[:40]}, {in_order(names)[:40]}")
        check(names_of(store, 2) == [str(i) for i in range(9)] and names_of(store, 3) == list(dict.fromkeys(rows)), "other modes")
        sluice("convert", path, plain, "--columns", "x,y,x", "--missing", "name", "-f", "-q")
        check(named(folder, store, 3) == named(folder, plain, 3), "other values")
        more = write(folder, "more.csv", "x,y\nweek 3,10\nzebra,1\n13,9\n" + f'"{names[0]}",3\n')
        sluice("append", store, more, "-q")
        new = in_order({"week 3", "zebra", "13"} - set(names))
        check(names_of(store, 1) == in_order(names) + new, f"appended: {names_of(store, 1)[-9:]}")
        check(names_of(store, 2) == [str(i) for i in range(11)] and sluice("check", store, "-q")[0] == "", names_of(store, 2))
    # More strings than fit the memory of their texts.
    count = 200000 if FULL else 15000
    write(folder, "s.csv", "x\n" + "".join(f"a rather long name that begins alike {i * 7919 % count:x} {'z' * 400}\n" for i in range(count)))
    sluice("convert", path, store, "--columns", "sorted(x)", "-f", "-q", "--memory", "60MiB")
    found = names_of(store, 1)
    check(found == in_order(found) and len(found) == count, "long names")


def refused(folder):
    """Invalid CSV is reported with file, line, column and name, and no files are left."""
    path = os.path.join(folder, "bad.csv")
    for text, columns, words, status in (
            ("origin,n\na,1\n\"b\nc\",1\n,2\n", "origin", ("bad.csv:5:1", "column origin", "--missing"), 3),
            ("origin,n\na,1\nb\n", "origin", ("bad.csv:3:1", "1 fields, expected 2"), 3),
            ("origin,n\na,1\n", "orgin", ("no column 'orgin'", "the most similar is 'origin'; there are 'origin', 'n'\n"), 2),
            ("origin,n\na,1\n", "hr(origin)", ("no column 'hr(origin)'", "no rule 'hr'", "hour(NAME)"), 2),
            ("orig,dest\na,1\n", "time", ("no column 'time' among the 2", "there are 'orig', 'dest'"), 2),
            (",".join(f"column {i}" for i in range(99)) + "\n", "time",
             ("; there are " + ", ".join(f"'column {i}'" for i in range(40)), "', ..\n"), 2),
            ("o;n\na;1\n", "o", ("the delimiter ';' would give several columns (--delimiter)",), 2),
            ("o\tn\na\t1\n", "o", ("the delimiter tab would give several columns (--delimiter)",), 2),
            ("o,n\ra,1\r", "o,n", ("end in CR alone",), 2),
            ("o,n\na,1\n".encode("utf-16").decode("latin-1"), "o", ("UTF-16",), 3),
            ("o,n\na,4611686018427387904\n", "int(n)", ("bad.csv:2:3", "2^62"), 3),
            ("o,n\na,1\n", "bin(n,1e-300)", ("bad.csv:2:3", "increase WIDTH"), 3),
            ("o,n\na,-1\n", "log(n)", ("bad.csv:2:3", "from 2.3e-308"), 3),
            ("o,n\na,1e400\n", "log(n)", ("bad.csv:2:3", "'1e400', expected a number from 2.3e-308 to 1.8e308"), 3),
            ("o,n\na,1e400\n", "bin(n,1)", ("bad.csv:2:3", "'1e400', expected a number within 2^52 bins"), 3),
            ("o,n\na,x\n", "bin(n,1)", ("bad.csv:2:3", "'x', expected a number"), 3),
            ("o,n\na,1\n".encode("utf-16-le").decode("latin-1"), "o", ("UTF-16", "without a byte order mark", "UTF-16LE"), 3),
            ("o,n\na,1\n".encode("utf-16-be").decode("latin-1"), "o", ("UTF-16", "UTF-16BE"), 3),
            ("o,n\na,1\n", "bin(n,0)", ("item 1 of the columns", "WIDTH"), 2),
            ("o,n\na,1\n", "o,log(n,1)", ("item 2 of the columns", "BASE", "from 1.000001"), 2),
            ("o,o\na,1\n", "o", ("more than one column 'o'",), 2),
            ("o,n\na,1\nb,\"2\n\n", "o", ("bad.csv:3:3", "not closed"), 3),
            ("o,n\n\"a\"b,1\n", "o", ("bad.csv:2:1", "text after a closing quote"), 3),
            ("o,n\na,1\nb,2.5\n", "int(n)", ("bad.csv:3:3", "'2.5'", "integer"), 3),
            ("o,n\na,2023-02-29\n", "date(n)", ("bad.csv:2:3", "'2023-02-29'", "seconds since 1970"), 3),
            ("o,n\na,nan\n", "bin(n,1)", ("bad.csv:2:3", "'nan'", "empty field", "(--null)"), 3),
            ("o,n\na,0\na,1e12\n", "bin(n,1)", ("bins from the lowest",), 3),
            ("o,n\n" + "a" * 5000 + ",0\n", "o", ("bad.csv:2:1", "column o has a string of 5000 bytes"), 3),
            ("o\0p,n\nb,1\n", "n,o", ("bad.csv:1:1", "no column 'o'", "the name of column 1 has a zero byte"), 2),
            ("o,n\nb,1\na\0b,2\n", "n,o", ("bad.csv:3:1", "column o has a string of 3 bytes with a zero byte"), 3),
            ("o,n\n", "o", ("no rows",), 3),
            ("o,n\na,1\n", "bin(n)", ("item 1 of the columns",), 2),
            ("o,n\na,1\n", "o,,n", ("item 2 of the columns",), 2)):
        with open(path, "w", encoding="latin-1", newline="") as file:
            file.write(text)
        _, messages = sluice("convert", path, os.path.join(folder, "bad.slc"), "--columns", columns, "-q", status=status)
        check(all(w in messages for w in words), f"{words}: {messages}")
        check(sorted(os.listdir(folder)) == ["bad.csv"], os.listdir(folder))
        if words == ("bins from the lowest",):  # a dry run reports the same
            _, again = sluice("convert", path, os.path.join(folder, "bad.slc"), "--columns", columns, "--dry-run", "--no-probe", status=status)
            check(all(w in again for w in words), f"dry run: {words}: {again}")
    write(folder, "bad.csv", "o,n\na,1\nb,1e400\n")
    _, messages = sluice("convert", path, os.path.join(folder, "bad.slc"), "--columns", "o", "--value", "n", status=3)
    check(":3:3: column n has '1e400', expected a number below 1.8e308" in messages, messages)
    for more in (("--missing", "skip"), ("--value", "n"), ("--columns", "o", "--delimiter", "ab"),
                 ("--columns", "o", "--index-base", "0")):
        sluice("convert", path, os.path.join(folder, "bad.slc"), *more, status=2)


def pieces(folder):
    """The result does not depend on the number of threads, with quotes, delimiters and line ends
    across the borders of pieces."""
    rng, path, n = random.Random(5), os.path.join(folder, "p.csv"), 40000 if FULL else 6000
    wide = ["no\n" * 300, '"' * 400, "a,b\r\n" * 200, "plain", "5\" pipe", ""]
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "note", "when", "fare"])
        for i in range(n):
            note = rng.choice(wide) if i % 7 == 0 else "ok"
            writer.writerow([f"user {rng.randrange(1 + i // 3)}", note, f"2024-02-{1 + i % 29:02} {i % 24:02}:00", i % 90])
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    want = collections.Counter((r["who"], r["when"][11:13], r["note"]) for r in rows)
    for threads in (1, 3):
        sluice("convert", path, os.path.join(folder, f"{threads}.slc"), "--columns", "who,hour(when),note", "--missing", "name",
               "-q", "--threads", threads)
    for name in os.listdir(os.path.join(folder, "1.slc")):
        with open(os.path.join(folder, "1.slc", name), "rb") as one, open(os.path.join(folder, "3.slc", name), "rb") as three:
            check(one.read() == three.read(), f"{name} depends on threads")
    check(named(folder, os.path.join(folder, "3.slc"), 3) == dict(want), "rows")
    order = list(dict.fromkeys(r["who"] for r in rows))
    check(names_of(os.path.join(folder, "3.slc"), 1) == order, "names are not in the order of the input")
    # The first fault is reported for any number of threads, with its line, even after records of
    # several lines.
    with open(path, "ab") as file:
        lines = open(path, "rb").read().count(b"\n")
        file.write(b"z,ok,2024-02-01,1\nz,ok,2024-02-30,1\nz,ok\n" + b"z,ok,x,1\n" * 50000 + b'"')
    for threads in (1, 2, 4):
        _, messages = sluice("convert", path, os.path.join(folder, "f.slc"), "--columns", "who,date(when)", "--threads", threads,
                             "-q", status=3)
        check(f"p.csv:{lines + 2}:6" in messages and "2024-02-30" in messages, f"{threads}: {messages}")
    with open(path, "w") as file:
        file.write("who,note\n" + "a,b\n" * 100000 + 'c,"' + "x\n" * 600000 + 'd,"\n')
    for threads in (1, 3):
        _, messages = sluice("convert", path, os.path.join(folder, "f.slc"), "--columns", "who", "--threads", threads, status=3)
        check("p.csv:100002:3" in messages and "1048576 bytes" in messages, messages)


def same_files(one, other):
    """Whether layouts and names of two stores have the same bytes."""
    names = [n for n in sorted(os.listdir(one)) if n != "tensor.json"]
    check(names == [n for n in sorted(os.listdir(other)) if n != "tensor.json"], f"{names} {sorted(os.listdir(other))}")
    for name in names:
        with open(os.path.join(one, name), "rb") as a, open(os.path.join(other, name), "rb") as b:
            if a.read() != b.read():
                return False
    return True


def rides(path, seed, begin, days, count, seen):
    """Writes a CSV of rides on some days, of which the earlier ones contain only some of its
    names."""
    rng = random.Random(seed)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["note", "to", "when", "from", "fare", "n"])
        for i in range(count):
            who = rng.randrange(1 + seen + 30 * i // count)
            writer.writerow(["x", f"zone; {who % 37}", f"2024-01-{begin + i * days // count:02} {i % 24:02}:10", f"street \"{who}\"\n{seed % 2}",
                             5 + i % 50, 1 + i % 3])
    return path


COLUMNS = ("--columns", "from,to,date(when),bin(fare,5),hour(when)", "--value", "n", "--delimiter", ";")


def two_tables(folder, count):
    """Makes two CSV files, their stores, and the store of both concatenated."""
    first, more = rides(os.path.join(folder, "1.csv"), 1, 1, 9, count, 5), rides(os.path.join(folder, "2.csv"), 3, 4, 20, count, 40)
    with open(first) as one, open(more) as two, open(os.path.join(folder, "both.csv"), "w") as both:
        both.write(one.read() + "".join(two.readlines()[1:]))
    store, want = os.path.join(folder, "x.slc"), os.path.join(folder, "both.slc")
    sluice("convert", first, store, *COLUMNS, "-q")
    sluice("convert", os.path.join(folder, "both.csv"), want, *COLUMNS, "-q")
    return first, more, store, want


def appended(folder):
    """Appending rows yields the store of both CSV files: names and indices are kept, new ones
    follow; never twice."""
    first, more, store, want = two_tables(folder, 2000)
    names = names_of(store, 1)
    out, _ = sluice("append", store, more, "--threads", 3)
    check("2,000 read" in out and "csv" in out and "index base" not in out, out)
    check(same_files(store, want) and names_of(store, 1)[:len(names)] == names, "not the store of both tables")
    check(len(names_of(store, 1)) > len(names) and named(folder, store, 5) == named(folder, want, 5), "names")
    sluice("check", store, "-q")
    shutil.copy(more, os.path.join(folder, "copy"))
    with open(more) as file:
        piped = subprocess.run([SLUICE, "append", store, "-", "--table"], stdin=file, capture_output=True, text=True)
    for done in (run_command(["append", store, more]), run_command(["append", store, os.path.join(folder, "copy"), "--table"]), piped):
        check(done.returncode == 0 and "was appended" in done.stderr and same_files(store, want), done)
    # Values below the first bin, a missing column, growth that is not allowed; the store is
    # unchanged.
    _, messages = sluice("append", store, rides(os.path.join(folder, "3.csv"), 6, 1, 2, 50, 9), "--grow-modes", "none", "-q", status=3)
    check("must not grow" in messages, messages)
    with open(os.path.join(folder, "3.csv"), "a") as file:
        file.write("x;a;2023-12-31 01:00;b;7;1\n")
    _, messages = sluice("append", store, os.path.join(folder, "3.csv"), "-q", status=3)
    check("column when has '2023-12-31 01:00'" in messages and "3.csv:" in messages and "first bin" in messages, messages)
    with open(os.path.join(folder, "4.csv"), "w") as file:
        file.write("to;when;fare;n\n")
    _, messages = sluice("append", store, os.path.join(folder, "4.csv"), "-q", status=2)
    check("no column 'from'" in messages, messages)
    check(same_files(store, want) and not os.path.exists(store + ".part"), "the store changed")
    # A store with coordinates has no names or columns: strings and coordinates cannot be appended
    # to each other.
    with open(os.path.join(folder, "more.tns"), "w") as file:
        file.write("5000 1 1 1 1 2\n")
    sluice("append", store, os.path.join(folder, "more.tns"), "-q")
    _, messages = sluice("append", store, first, "-q", status=3)
    check("mode 1 has 5000 indices" in messages, messages)
    sluice("convert", os.path.join(folder, "more.tns"), os.path.join(folder, "t.slc"), "-q")
    _, messages = sluice("append", os.path.join(folder, "t.slc"), first, "--table", "-q", status=3)
    check("columns of a table" in messages, messages)
    sluice("append", store, first, "--table", "--format", "tns", status=2)


def killed(folder):
    """Killed at any moment and run again, the conversion of a CSV and an append to it equal
    undisturbed runs."""
    first, more, store, want = two_tables(folder, 60000 if FULL else 3000)
    rng, alone = random.Random(9), os.path.join(folder, "alone.slc")
    shutil.copytree(store, alone)
    for line, begin, end in ((["convert", first, store, *COLUMNS], None, alone), (["append", store, more], alone, want)):
        done = 0
        for turn in range(40 if FULL else 4):
            shutil.rmtree(store, ignore_errors=True)
            if begin is not None:
                shutil.copytree(begin, store)
            child = subprocess.Popen([SLUICE, *line, "-q", "--threads", "2"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                child.wait(timeout=rng.random() * (0.6 if FULL else 0.05))
            except subprocess.TimeoutExpired:
                child.kill()
            child.wait()
            there = os.path.exists(os.path.join(store, "tensor.json"))
            check(there or begin is None, "the old store is gone")
            check(not there or same_files(store, end) or same_files(store, begin), f"turn {turn}: neither old nor new")
            if there and begin is None:
                done += 1
                continue
            sluice(*line, "-q")
            check(same_files(store, end), f"turn {turn}: another store")
            check(not os.path.exists(store + ".part"), "something is left")


def smallest(path, store):
    """Returns the least budget for converting a CSV, plus a margin, because the resident size of
    libraries varies."""
    memory = 1
    for _ in range(10):
        done = run_command(["convert", path, store, "--columns", "name,int(day)", "--memory", f"{memory}MiB", "-t", "1", "-q", "-f"])
        if done.returncode == 0:
            shutil.rmtree(store)
            return f"{memory + 2}MiB"
        needed = re.search(r"needs (\d+) MiB of memory or more", done.stderr)
        check(done.returncode == 4 and needed and int(needed[1]) > memory, f"{memory} MiB: {done.returncode} {done.stderr}")
        memory = int(needed[1])
    raise AssertionError(f"{memory} MiB were named, and are not enough")


def dictionary(folder):
    """A dictionary larger than the budget converts within the budget, with the same bits for any
    budget and number of threads."""
    path, stores = os.path.join(folder, "big.csv"), []
    count = 8000 if QUICK else 40000
    with open(path, "w") as file:
        file.write("name,day\n")
        for i in range(count + count // 4):
            file.write(f"{(i * 7919) % count:01600d},{i % 31}\n")
    for memory, threads in ((smallest(path, os.path.join(folder, "least.slc")), 1), ("1GiB", 3)):
        stores.append(os.path.join(folder, f"{memory}.slc"))
        out, _ = sluice("convert", path, stores[-1], "--columns", "name,int(day)", "--memory", memory, "--threads", threads,
                        "--max-temp", "200MiB")
        peak = re.search(r"memory +peak ([0-9.]+) MiB", out)
        check(peak, out)
        check(QUICK or "G" in memory or int(memory.rstrip("MiB")) * 1.1 < 1600 * count / 1e6, f"{memory} holds the dictionary")
        # Not checked under sanitizers, whose own memory is not in the budget.
        check(QUICK or float(peak.group(1)) <= int(memory.rstrip("MGiB")) * (1024 if "G" in memory else 1), out)
    for name in ("blco.blk", "names-1.bin", "names-2.bin"):
        contents = []
        for store in stores:
            with open(os.path.join(store, name), "rb") as file:
                contents.append(file.read())
        check(contents[0] == contents[1], f"{name} depends on memory or threads")
    check(names_of(stores[0], 1) == [f"{(i * 7919) % count:01600d}" for i in range(count)], "names")
    sluice("convert", path, os.path.join(folder, "u.slc"), "--columns", "name", "--max-temp", "1MiB", "-q", status=4)
    check(len(os.listdir(folder)) == 3, os.listdir(folder))


def foreseen(folder):
    """--dry-run of a CSV estimates rows, strings, memory, bytes and disk from a part of it, within
    bounds; so does a starting run."""
    rng = random.Random(11)
    path, store, log = (os.path.join(folder, name) for name in ("orders.csv", "orders.slc", "log"))
    rows = 30000 if QUICK else 100000
    with open(path, "w") as file:
        file.write("order,when,user,word,sum\n")
        for i in range(rows):
            word = int(rng.paretovariate(0.7)) % 10**6
            file.write(f"ORDER-{i:012d},2024-0{1 + i * 9 // rows}-{1 + i % 28:02d} 12:30:00,user{rng.randrange(rows // 4):07d},"
                       f"\"w, {word}\",{rng.randrange(900) / 100:.2f}\n")
    columns = ["--columns", "order,date(when),user,word", "--value", "sum"]
    command = ["convert", path, store, *columns]
    before = sorted(os.listdir(folder))
    told = json.loads(sluice(*command, "--dry-run", "--json")[0])
    words = sluice(*command, "--dry-run")[0]
    check("expected, from a sample" in words and "temporary files" in words, words)
    check(sorted(os.listdir(folder)) == before, "a dry run wrote")
    out, _ = sluice(*command, "--log-json", log)
    with open(log) as file:
        estimate = json.loads(file.readlines()[-1])["estimate"]
    actual = estimate["actual"]
    for what in ("final_bytes", "read_bytes", *(() if QUICK else ("memory_bytes",))):
        for expected in (told, estimate):
            check(0.75 * actual[what] <= expected[what] <= 1.25 * actual[what], (what, expected[what], actual[what]))
    check(told["final_most_bytes"] >= actual["final_bytes"], (told, actual))
    with open(os.path.join(store, "tensor.json")) as file:
        dims = json.load(file)["dims"]
    length = re.search(r"dims +([\d,x ]+) \(", words)[1].replace(",", "").split("x")
    check(all(abs(int(a) - b) <= 0.25 * b for a, b in zip(length, dims)), (length, dims))
    shutil.rmtree(store)
    # A sorted column keeps the labels and places of its strings: 12 bytes per string.
    ordered = json.loads(sluice("convert", path, store, "--columns", "sorted(order),date(when),user,word", "--value", "sum",
                                "--dry-run", "--json")[0])
    for phase in ("reading", "sorting"):
        # All sizes include the same memory of the process, which differs between two runs.
        more, base = (one["buffers"][phase] - one["buffers"]["table"] for one in (ordered, told))
        check(12 * rows <= more - base <= 13 * rows + 32768, (phase, more, base, rows))
    # A dry run never names a budget that is too small.
    memory = 1
    while memory < 1000:
        refused = run_command([*command, "--dry-run", "--memory", f"{memory}MiB", "-t", "1"])
        if refused.returncode == 0:
            break
        check(refused.returncode == 4, refused)
        memory = int(re.search(r"needs (\d+) MiB of memory", refused.stderr)[1])
    sluice(*command, "--memory", f"{memory + QUICK * 100}MiB", "-t", 1, "-q")
    shutil.rmtree(store)
    check("--max-temp" in sluice(*command, "--dry-run", "--max-temp", "1MiB", status=4)[1], "temporary files")
    # A compressed CSV is estimated from its beginning, a pipe not at all, and errors are those of a
    # run.
    with open(path, "rb") as plain, gzip.open(path + ".gz", "wb", 1) as packed:
        shutil.copyfileobj(plain, packed)
    told = json.loads(sluice("convert", path + ".gz", store, *columns, "--dry-run", "--json")[0])
    check(0.6 * actual["final_bytes"] <= told["final_bytes"] <= 1.6 * actual["final_bytes"], (told, actual))
    check("no column 'wort'" in sluice("convert", path, store, "--columns", "wort", "--dry-run", status=2)[1], "a column that is not there")
    with open(path, "w") as file:
        file.write("a,b\n\n")
    check("no rows" in sluice("convert", path, store, "--columns", "a", "--dry-run", status=3)[1], "no rows")
    # Tiles span at most 2^32 indices of a mode: they end early if ids are drawn from far more.
    for bits in (36, 62):
        with open(path, "w") as file:
            file.write("a,id\n")
            file.writelines(f"{i % 7},{rng.getrandbits(bits)}\n" for i in range(10000))
        command = ["convert", path, store, "--columns", "a,int(id)", "-f"]
        told = json.loads(sluice(*command, "--dry-run", "--json")[0])
        sluice(*command, "--memory", "100MiB", "-q")
        actual = sum(os.path.getsize(os.path.join(store, name)) for name in os.listdir(store))
        check(0.75 * actual <= told["final_bytes"] <= 1.25 * actual <= 1.25 * told["final_most_bytes"], (bits, told, actual))


run([("against csv", against_csv), ("times", times), ("numbers", numbers), ("pieces", pieces), ("appended", appended), ("killed", killed),
     ("null words", null_words), ("sorted strings", sorted_strings), ("refused", refused), ("dictionary", dictionary), ("foreseen", foreseen), ("doubtful times", doubtful_times)])
