#!/usr/bin/env python3
"""Tables through Arrow streams: stores, names and errors equal those of the CSV of the table. The short
form uses streams of NumPy arrays; the long form uses pyarrow, polars, DuckDB and pandas from PyPI."""

import contextlib
import ctypes
import io
import os
import subprocess
import sys
import threading
import types as types_module
import warnings
from unittest import mock

import numpy as np
import same_table
from same_table import same

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import FULL, SOURCE, Skip, call, check, fails, run  # noqa: E402

PACKAGE = os.path.join(SOURCE, "python")
sys.path.insert(0, PACKAGE)
sys.dont_write_bytecode = True
import sluice  # noqa: E402
from sluice import __main__ as main  # noqa: E402
from sluice import _arrow  # noqa: E402


def text_of(one):
    """The field of an element, as programs that write CSV write it."""
    if one is None or one is np.ma.masked or one != one:
        return ""
    if isinstance(one, np.datetime64):
        day, _, clock = str(one).partition("T")
        clock, _, fraction = clock.partition(".")
        fraction = fraction.rstrip("0")
        return day + (" " + clock if clock else "") + ("." + fraction if fraction else "")
    if isinstance(one, (float, np.floating)):
        return repr(float(str(one)))  # the shortest decimal that float32 needs
    return str(one).lower() if isinstance(one, (bool, np.bool_)) else str(one)


def write(path, columns):
    same_table.write(path, columns, ([text_of(one) for one in column] for column in columns.values()))


def table(rows, seed=0):
    """Returns a table with a column of each type of NumPy."""
    rng = np.random.default_rng(seed)
    seconds = rng.integers(0, 2 * 10**9, rows)
    words = np.array(["ann", "bob, jr.", 'c "d"', "é\nf", "x" * 300, "-1", "12345678", "nan"])
    columns = {"word": words[rng.integers(0, len(words), rows)],
               "object": np.array([f"o{i % 97}" for i in rng.integers(0, 1000, rows)], object),
               "flag": rng.integers(0, 2, rows).astype(bool), "id": rng.integers(-10**12, 10**12, rows),
               "big": rng.integers(2**63, 2**64 - 1, rows, dtype=np.uint64),
               "day": seconds.astype("M8[s]").astype("M8[D]"), "second": seconds.astype("M8[s]"),
               "milli": (1000 * seconds + seconds % 7).astype("M8[ms]"), "micro": (10**6 * seconds + 250).astype("M8[us]"),
               "nano": (10**9 * seconds // 3).astype("M8[ns]"), "price": np.round(100 * rng.random(rows), 2),
               "single": rng.random(rows).astype("f4"), "half": np.arange(rows).astype("u2").view("f2"),
               "value": rng.standard_normal(rows)}
    columns["half"][~np.isfinite(columns["half"])] = 1
    for kind in ("i1", "i2", "i4", "u1", "u2", "u4"):
        columns[kind] = rng.integers(0, 120, rows).astype(kind)
    return columns


def both(folder, columns, items, name="both", **options):
    """Converts a table as CSV and as stream; returns the store of the stream, which is the same."""
    path = os.path.join(folder, name)
    write(path + ".csv", columns)
    sluice.convert(path + ".csv", path + "-csv.slc", columns=items, overwrite=True, **options).close()
    found = sluice.convert(columns, path + ".slc", columns=items, overwrite=True, **options)
    same(path + "-csv.slc", path + ".slc", items)
    return found


def types(folder):
    """Columns of every type work as names, in rules and as values."""
    columns = table(3000)
    names = list(columns)
    for at in range(0, len(names), 6):
        both(folder, columns, names[at:at + 6], value_column="value")
    rules = "hour(second),weekday(milli),date(day),bin(price,2.5),log(single,3),int(i2),bin(half,0.5),int(u4),yearmonth(nano)"
    for value in ("value", "single", "half", "id", "big", "u1"):
        both(folder, columns, rules, value_column=value)
    found = both(folder, columns, "hour(i4),id,second,second,hour(second),minute(second)")
    check(found.labels(1)[0] == str(columns["id"][0]) and found.shape[1] <= 3000, found)
    check(found.titles[0] == "hour(i4)" and len(found.labels(4)) == 24, found.titles)


def many_rows(folder):
    """A table with more rows than a batch and a piece hold is converted with any number of threads,
    and its rows are counted."""
    rng = np.random.default_rng(5)
    rows = 150000
    columns = {"a": rng.integers(0, 70000, rows), "b": np.array([f"name {i}" for i in range(997)])[rng.integers(0, 997, rows)],
               "t": rng.integers(0, 10**9, rows).astype("M8[s]"), "v": rng.random(rows)}
    items = "a,b,hour(t)"
    both(folder, columns, items, value_column="v", threads=1)
    for threads in (2, 5):
        sluice.convert(columns, os.path.join(folder, "n.slc"), columns=items, value_column="v", threads=threads,
                       overwrite=True).close()
        same(os.path.join(folder, "both-csv.slc"), os.path.join(folder, "n.slc"), threads)
    counted = both(folder, columns, "b,hour(t)")
    check(counted.shape == (997, 24), counted)
    # Rows whose fields exceed the text of a piece.
    wide = {"a": np.array(["x" * (1 << 19) + str(i % 3) for i in range(12)]), "b": np.arange(12)}
    fails(sluice.InputError, "column a has", sluice.convert, wide, os.path.join(folder, "w.slc"))
    wide["a"] = np.array([("%d " % (i % 3)) * 2000 for i in range(2000)])
    wide["b"] = np.arange(2000)
    both(folder, wide, "a,b")
    # Columns that together exceed the text of a piece, although each row fits.
    both(folder, {f"c{k}": np.array([f"{i} " * 300 for i in range(300)]) for k in range(10)}, ",".join(f"c{k}" for k in range(10)))
    # The fields before a fault fill the text of a piece.
    wide = {"a": np.array(["x" * 9000] * 300), "v": np.arange(1.0, 301)}
    for items, value, part in (("bin(a,1)", "v", "1:1: column a has 'xxx"), ("v", "a", "1:1: column a has 'xxx"),
                               ("bin(v,2),a", "v", "1:1: column a has a string of 9000 bytes")):
        fails(sluice.InputError, part, sluice.convert, wide, os.path.join(folder, "w.slc"), columns=items, value_column=value)


def gaps(folder):
    """None, NaN, NaT and masked elements are nulls."""
    columns = {"who": np.array(["b", None, "c", ""], object), "when": np.array(["2024-01-05T10", "NaT", "2024-01-06", "2024-01-07"], "M8[s]"),
               "n": np.array([1, 2, np.nan, 4.0]), "k": np.ma.MaskedArray([5, 6, 7, 8], [False, True, False, False])}
    output = os.path.join(folder, "g.slc")
    for name, row, items in (("who", 2, ["who"]), ("when", 2, "hour(when)"), ("k", 2, ["k"]), ("n", 2, ["other"])):
        some = {**columns, "other": np.arange(4)} if name != "n" else {"other": np.arange(2), "n": columns["n"][1:3]}
        fault = fails(sluice.InputError, f"column {name} has ''", sluice.convert, some, output, columns=items, value_column="n")
        check(fault.line == row and fault.field == "missing", vars(fault))
    for items in (["who", "k"], ["who", "hour(when)", "k"]):
        found = both(folder, columns, items, missing="skip", value_column="n")
        check(found.shape[0] == 1 and found.nnz == 1, found)
    both(folder, columns, ["who", "k", "when"], missing="name")
    arrays = np.array([None, np.arange(2), np.arange(3)], object)
    fails(sluice.InputError, "an element of a column is an array", sluice.convert, {"a": arrays}, output, missing="skip")
    if hasattr(np, "dtypes") and hasattr(np.dtypes, "StringDType"):
        texts = np.array(["x", np.nan], np.dtypes.StringDType(na_object=np.nan))
        found = sluice.convert({"a": texts}, output, missing="name")
        check(list(found.labels(0)) == ["x", ""], list(found.labels(0)))


def times(folder):
    """Times in units that Arrow does not have; times that its units cannot hold are errors."""
    output = os.path.join(folder, "t.slc")
    for unit, given, want in (("h", ["3000-01-01T05", "1600-05-05T07"], ["3000-01-01 05:00:00", "1600-05-05 07:00:00"]),
                              ("m", ["2900-01-01T05:01", "NaT"], ["2900-01-01 05:01:00", ""]),
                              ("10s", [3, 4], ["1970-01-01 00:00:30", "1970-01-01 00:00:40"]),
                              ("ps", [3000, 0], ["1970-01-01 00:00:00.000000003", "1970-01-01 00:00:00"]),
                              ("M", ["5000-02", "NaT"], ["5000-02-01", ""])):
        found = sluice.convert({"when": np.array(given, f"M8[{unit}]")}, output, missing="name", overwrite=True)
        check(list(found.labels(0)) == want, (unit, list(found.labels(0))))
    for unit, given in (("D", [0, 3 << 30]), ("Y", [0, 1 << 40]), ("h", [0, 1 << 60]), ("ps", [0, 1234])):
        fails(sluice.UsageError, "the time in row 2 has no exact", sluice.convert, {"when": np.array(given, f"M8[{unit}]")}, output)


def grown(folder):
    """append of a table equals append of its CSV, also for a store that was made from a CSV."""
    first, later = table(500, 1), table(700, 2)
    items = "word,hour(second),bin(price,10,-1000),id"
    write(os.path.join(folder, "later.csv"), later)
    two = [both(folder, first, items, name, value_column="value") for name in ("x", "y")]
    check(two[0].append(later) and not two[0].append(later), "the same rows were appended twice")
    two[1].append(os.path.join(folder, "later.csv"))
    other = sluice.open(os.path.join(folder, "x-csv.slc"))
    other.append(later)
    for store in (two[1].path, other.path):
        same(two[0].path, store, store)
    joined = {name: np.concatenate([first[name], later[name]]) for name in first}
    sluice.convert(joined, os.path.join(folder, "j.slc"), columns=items, value_column="value").close()
    check(sluice.open(os.path.join(folder, "j.slc")).nnz == two[0].nnz, two[0])
    fails(sluice.UsageError, "no column 'word'", two[0].append, {"wort": ["a"]})
    fails(sluice.UsageError, "index_base", two[0].append, later, index_base=1)


def names(folder):
    """Names of columns that need quotes; all columns as modes."""
    columns = {"a, b": ["x", "y"], 'c "d"': [1, 2], "hour(e)": [3, 4], 5: [6.5, 7]}
    found = sluice.convert(columns, os.path.join(folder, "n.slc"), value_column=5)
    check(found.titles == ('"a, b"', '"c ""d"""', '"hour(e)"') and found.shape == (2, 2, 2), found.titles)
    check(found.append({**columns, "a, b": ["x", "z"]}) and found.shape == (3, 2, 2), found)
    listed = sluice.convert(columns, os.path.join(folder, "l.slc"), columns=["hour(e)", "a, b"])
    check(listed.titles == ('"hour(e)"', '"a, b"') and list(listed.labels(0)) == ["3", "4"], listed.titles)
    fails(sluice.UsageError, "more than 16 columns", sluice.convert, {str(i): [1] for i in range(17)}, os.path.join(folder, "m.slc"))
    fails(sluice.UsageError, "no column 'z' among the 4 columns", sluice.convert, columns, os.path.join(folder, "m.slc"), columns="z", value_column=5)
    for items, name in (('"a, b",z', "z"), ('int(5),bin(y,2,1),"a, b"', "y"), ('hour("c ""e""")', 'c "e"')):
        fails(sluice.UsageError, f"no column '{name}' among the 4 columns", sluice.convert, columns, os.path.join(folder, "m.slc"), columns=items)
    fails(sluice.UsageError, "no column 'w' among the 4 columns", sluice.convert, columns, os.path.join(folder, "m.slc"),
          columns=["a, b"], value_column="w")
    fails(sluice.UsageError, "no column 'e'", sluice.convert, columns, os.path.join(folder, "m.slc"), columns="hour(e)")


class Capsules:
    """An object with __arrow_c_stream__, which returns the same stream each time."""

    def __init__(self, columns):
        self.stream = _arrow.ColumnStream([_arrow.Column(name, values) for name, values in columns.items()])
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.capsule = new(self.stream.pointer, b"arrow_array_stream", None)

    def __arrow_c_stream__(self, requested=None):
        return self.capsule


def faults(folder):
    """Errors name the row and the column; arrays are released; an output does not appear."""
    output = os.path.join(folder, "f.slc")
    given = Capsules({"a": np.arange(5), "b": np.arange(5.0)})
    sluice.convert(given, output, columns="a", value_column="b").close()
    check(not given.stream._held, given.stream._held)
    fails(sluice.UsageError, "released before", sluice.convert, given, os.path.join(folder, "g.slc"), columns="a")
    output = os.path.join(folder, "h.slc")
    values = np.ones(200000)
    values[150001] = np.inf
    given = Capsules({"a": np.arange(200000), "b": values})
    fault = fails(sluice.InputError, "column b has 'inf', expected a finite number", sluice.convert, given, output,
                  columns="a", value_column="b")
    check((fault.line, fault.column) == (150002, 2) and not given.stream._held, vars(fault))
    fails(sluice.InputError, "'NumPy complex128' is not supported", sluice.convert, {"a": [1j]}, output)
    fails(sluice.UsageError, "2 dimensions", sluice.convert, {"a": np.ones((2, 2))}, output)
    fails(sluice.UsageError, "equal numbers", sluice.convert, {"a": [1], "b": [1, 2]}, output)
    fails(sluice.InputError, "no rows", sluice.convert, {"a": np.array([], int)}, output)
    fails(sluice.UsageError, "apply only to files", sluice.convert, {"a": [1]}, output, delimiter=";")
    fails(sluice.UsageError, "value_column", sluice.convert, {"a": [1]}, output, values=[1.0])
    given = Capsules({"a": np.arange(200000)})
    take, calls = given.stream._next, []

    def next_batch(address):
        calls.append(threading.current_thread())
        if len(calls) > 2:
            raise ValueError("the disk has gone")
        take(address)

    given.stream._stream.get_next = given.stream.kept = _arrow.NEXT(given.stream._guard(next_batch))
    fails(sluice.InputError, "reports: ValueError: the disk has gone", sluice.convert, given, output)
    check(not given.stream._held and len(calls) == 3, calls)
    given = Capsules({"a": np.arange(3000000) % 1000})
    fault = fails(sluice.SluiceError, "", sluice.convert, given, output, progress=lambda *_: True)
    check(fault.status == "interrupted" and not given.stream._held, fault.status)
    check(not os.path.exists(output) and not os.path.exists(output + ".part"), os.listdir(folder))


def command(folder):
    """python3 -m sluice convert and append, without the packages that read its files."""
    env = os.environ | {"PYTHONPATH": PACKAGE}
    sluice.generate(os.path.join(folder, "x.slc"), (3, 2), 2).close()
    for arguments in (["convert", "x.csv", "y.slc"], ["append", "x.slc", "x.csv"]):
        done = subprocess.run([sys.executable, "-m", "sluice", *arguments], capture_output=True, text=True, env=env, cwd=folder)
        check(done.returncode == 2 and "ends in .parquet" in done.stderr, done.stderr)
    check("--value-column" in call(sys.executable, "-m", "sluice", "convert", "--help", env=env), "no help")
    kept = main.open_table
    try:
        main.open_table = lambda path: {"a": ["x", None], "n": [1, 2]}
        for part, arguments in (("replace it (--force)", ["--missing", "skip", "--value-column", "n"]), ("(--memory)", ["-f", "--memory", "x"]), ("(--memory)", ["-f", "--memory", "1MiB"]),
                                ("sluice: --threads -1 is not", ["-f", "-t", "-1"]), ("sluice: --duplicates 'x' is not", ["-f", "--duplicates", "x"]),
                                ("(--value-column)", ["-f", "--value-column", "x"]), ("(--missing)", ["-f", "--value-column", "n"]),
                                ("(--transform)", ["-f", "--transform", "x"])):
            with contextlib.redirect_stderr(io.StringIO()) as told:
                status = main.main(["convert", "x.parquet", os.path.join(folder, "x.slc"), *arguments])
            check(status != 0 and part in told.getvalue(), (arguments, told.getvalue()))
        with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as told:
            status = [main.main(["convert", "x.parquet", os.path.join(folder, "x.slc"), "-f", "--missing", "skip", *one])
                      for one in ((), ("--columns", "a,hour(n)"), ("--columns", "a", "--null", "x"))]
        check(status == [0, 0, 3] and printed.getvalue().count("\n1 rows with nulls were skipped\n") == 2, printed.getvalue())
        for part in ("note: every column is a mode (a, n); select modes with --columns", "sluice: warning: hour(n): all times", "no rows"):
            check(part in told.getvalue(), (part, told.getvalue()))
        main.open_table = _arrow.open_table
        with contextlib.redirect_stderr(io.StringIO()) as told:
            check(main.main(["append", os.path.join(folder, "x.slc"), "none.parquet"]) == 5, "no file")
        check(told.getvalue() == "sluice: none.parquet: No such file or directory\n", told.getvalue())
    finally:
        main.open_table = kept


def paths(folder):
    """convert and append open table files by their names; errors have the numbers of the columns in
    the file."""
    class Dataset:
        """A dataset of pyarrow: it reads only the columns that are asked for."""

        columns = names = ["n", "a", "b"]

        def __init__(self, path):
            self.schema, self.rows = self, {"n": [1.0, 2.0], "a": ["x", "y"], "b": ["u", "" if path.endswith("gaps.orc") else "v"]}

        def scanner(self, columns, **_):
            return Capsules({name: self.rows[name] for name in columns})

    kept, made = _arrow.open_table, os.path.join(folder, "x.slc")
    for module in (sluice._convert, sluice._stored):
        module.open_table = Dataset
    try:
        found = sluice.convert(os.path.join(folder, "x.parquet"), made, columns="a,b")
        check((found.shape, found.info().source, found.skipped_rows) == ((2, 2), os.path.join(folder, "x.parquet"), 0), found.info())
        check(found.append(os.path.join(folder, "y.orc")) is True, "append")
        os.makedirs(os.path.join(folder, "parts", "year=2024"))
        fails(sluice.InputError, "this is a folder, not a file", sluice.convert, os.path.join(folder, "parts"), made, columns="a")
        open(os.path.join(folder, "parts", "year=2024", "1.parquet"), "w").close()
        check(sluice.convert(os.path.join(folder, "parts"), made, columns="a", overwrite=True).shape == (2,), "folder")
        gaps = sluice.convert(os.path.join(folder, "gaps.orc"), made, columns="b,a", missing="skip", overwrite=True)
        check((gaps.shape, gaps.skipped_rows) == ((1, 1), 1), gaps.skipped_rows)
        check(gaps.append(os.path.join(folder, "more-gaps.orc")) and gaps.skipped_rows == 1, gaps.skipped_rows)
        fault = fails(sluice.InputError, "column b has ''", sluice.convert, os.path.join(folder, "gaps.orc"), made, columns="b", overwrite=True)
        check((fault.line, fault.column) == (2, 3), vars(fault))
        fails(sluice.UsageError, "among the 3 columns", sluice.convert, os.path.join(folder, "x.orc"), made, columns="hours(a),b", overwrite=True)
    finally:
        for module in (sluice._convert, sluice._stored):
            module.open_table = kept
    relation = types_module.SimpleNamespace(columns=["when", "a"], types=["TIMESTAMP WITH TIME ZONE", "VARCHAR"])
    answer = types_module.SimpleNamespace(fetchall=lambda: [("Etc/UTC",)])
    with mock.patch.dict(sys.modules, duckdb=types_module.SimpleNamespace(sql=lambda _: answer)), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        check(_arrow._zoned(relation) is relation, "another relation")
    check([str(one.message)[:54] for one in told] == ["duckdb reads the times of when in the zone Etc/UTC; wi"], told)
    lazy = type("Lazy", (), {"collect": None})()
    fails(sluice.UsageError, "Lazy is not a table yet: collect it first", sluice.convert, lazy, made, columns="a", missing="skip")
    fails(sluice.UsageError, "not to int", sluice.convert, 3, made, missing="skip")


def sources(folder):
    """Stores name the file of a table; names of sources do not hide that the same rows are appended
    again."""
    made = os.path.join(folder, "made.slc")
    rows, kept = {"a": ["x", "y"], "n": [1, 2]}, main.open_table
    files = [os.path.join(folder, name) for name in ("first.parquet", "second.parquet")]
    try:
        main.open_table = lambda path: {files[0]: rows, files[1]: {"a": ["z"], "n": [3]}}.get(path, rows)
        with contextlib.redirect_stdout(io.StringIO()):
            check(main.main(["convert", files[0], made, "--value-column", "n"]) == 0, "convert")
            check(main.main(["append", made, files[1]]) == 0, "append")
            check(main.main(["append", made, os.path.join(folder, "copy.parquet")]) == 0, "append again")
    finally:
        main.open_table = kept
    found = sluice.open(made)
    check((found.info().source, found.info().appended) == (files[0], ((files[1], 1), (os.path.join(folder, "copy.parquet"), 2))), found.info())
    check(not found.append({"a": ["z"], "n": [3]}, source_name="other") and not found.append(rows), "the same rows were appended twice")
    plain = sluice.convert(rows, os.path.join(folder, "plain.slc"), value_column="n")
    check(plain.info().source == "the Arrow table", plain.info())
    fault = fails(sluice.InputError, "", sluice.convert, {"a": ["x"], "n": ["?"]}, os.path.join(folder, "f.slc"), value_column="n", source_name="f.orc")
    check(fault.file == "f.orc", fault.file)
    for call_it in (lambda: sluice.convert("x.csv", os.path.join(folder, "f.slc"), source_name="f.orc"),
                    lambda: found.append(os.path.join(folder, "x.csv"), source_name="f.orc")):
        fails(sluice.UsageError, "source_name applies only to", call_it)


def memory(folder):
    """A conversion of a table imports NumPy only for its columns: an import needs 11 MiB of the
    budget."""
    code = """
import sys, sluice
class Stream:
    def __arrow_c_stream__(self, requested=None):
        raise ValueError("numpy" in sys.modules)
try:
    sluice.convert(Stream(), "x.slc", columns="a", memory="100MiB")
except ValueError as fault:
    print(fault)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": PACKAGE}, cwd=folder)
    check(done.stdout == "False\n", (done.stdout, done.stderr))


def packages(folder):
    """pyarrow, polars, DuckDB and pandas from PyPI."""
    if not FULL:
        raise Skip("installs packages from PyPI; SLC_TEST_FULL=1 does")
    python = os.path.join(folder, "venv", "bin", "python")
    try:
        call(sys.executable, "-m", "venv", os.path.join(folder, "venv"))
        call(python, "-m", "pip", "install", "-q", "numpy", "pyarrow", "polars", "duckdb", "pandas")
    except AssertionError as fault:
        raise Skip(f"PyPI cannot be reached: {str(fault)[-200:]}") from None
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "arrow_packages.py")
    print("# " + call(python, script, folder, env=os.environ | {"PYTHONPATH": PACKAGE}).strip().replace("\n", "\n# "))


run([
    ("columns of every type", types),
    ("many rows, threads and pieces", many_rows),
    ("nulls", gaps),
    ("times in other units", times),
    ("tables are appended", grown),
    ("names of columns", names),
    ("errors", faults),
    ("python3 -m sluice", command),
    ("paths of table files", paths),
    ("the names of sources", sources),
    ("NumPy is not imported", memory),
    ("tables of pyarrow, polars, DuckDB and pandas", packages),
])
