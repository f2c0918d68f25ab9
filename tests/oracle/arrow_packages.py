#!/usr/bin/env python3
"""Tables of pyarrow, polars, DuckDB and pandas, and Parquet files, in a folder: their stores equal those
of the CSV of the table. test_arrow.py runs this file with these packages."""

import os
import re
import subprocess
import sys
from decimal import Decimal

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet
import same_table

import sluice

FOLDER = sys.argv[1]
ZONE = "Europe/Berlin"
TOOL = os.environ["SLUICE"]


def path(name):
    return os.path.join(FOLDER, name)


def same(one, other, what):
    print(f"{what}: {same_table.same(path(one), path(other), what)} files are equal")


def text_of(one, kind):
    """The field of a value as programs write CSV: ISO 8601 with the digits that are not zero."""
    if one is None:
        return ""
    if isinstance(one, bytes):
        return one.decode()
    if isinstance(one, bool):
        return str(one).lower()
    if pa.types.is_floating(kind):
        return repr(float(str({16: np.float16, 32: np.float32, 64: np.float64}[kind.bit_width](one))))
    text = str(one)
    if pa.types.is_temporal(kind) and "." in text:
        head, _, rest = text.partition(".")
        digits = rest[:len(rest) - len(rest.lstrip("0123456789"))]
        fraction = digits.rstrip("0")
        text = head + ("." + fraction if fraction else "") + rest[len(digits):]
    return text[:10] if pa.types.is_date(kind) else text


def write(name, table):
    kinds = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in table.schema.types]
    same_table.write(path(name), table.column_names, ([text_of(one, kind) for one in column.to_pylist()]
                                                      for column, kind in zip(table.columns, kinds)))


def numbers(rows):
    rng = np.random.default_rng(1)
    columns = {str(kind): pa.array(rng.integers(0, 100, rows), kind) for kind in
               (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32())}
    columns["int64"] = pa.array(rng.integers(-10**12, 10**12, rows))
    columns["uint64"] = pa.array(rng.integers(2**63, 2**64 - 1, rows, dtype=np.uint64))
    columns["float"], columns["double"] = pa.array(rng.random(rows).astype("f4")), pa.array(rng.standard_normal(rows))
    columns["price"] = pa.array(np.round(rng.random(rows) * 100, 2))
    columns["bool"] = pa.array(rng.integers(0, 2, rows).astype(bool))
    cents = [Decimal(int(one)).scaleb(-2) for one in rng.integers(-10**7, 10**7, rows)]
    columns["decimal"] = pa.array(cents, pa.decimal128(12, 2))
    columns["half"] = pa.array(rng.random(rows).astype("f2"))
    columns["decimal256"] = pa.array(cents, pa.decimal256(50, 7))
    return pa.table(columns)


def times(rows):
    """Returns a table of dates, times and strings, with nulls."""
    rng = np.random.default_rng(2)
    seconds = rng.integers(1600000000, 1700000000, rows)
    lacks = rng.random(rows) < 0.1
    words = pa.array(["ann", "bob, jr.", 'c "d"', "é\nf", "a long string of a view", "-1", None])
    chosen = words.take(pa.array(rng.integers(0, 7, rows)))
    columns = {"s": pa.array(seconds, pa.timestamp("s")), "ms": pa.array(1000 * seconds + 120, pa.timestamp("ms"), mask=lacks),
               "us": pa.array(10**6 * seconds + seconds % 1000, pa.timestamp("us")),
               "zoned": pa.array(10**6 * seconds, pa.timestamp("us", ZONE), mask=lacks),
               "date": pa.array((seconds // 86400).astype("i4"), pa.date32(), mask=lacks),
               "time": pa.array(10**6 * (seconds % 86400) + 5, pa.time64("us")), "time32": pa.array((seconds % 86400).astype("i4"), pa.time32("s")),
               "utf8": chosen, "large": chosen.cast(pa.large_string()), "view": chosen.cast(pa.string_view()),
               "coded": chosen.dictionary_encode(), "binary": chosen.cast(pa.binary()), "null": pa.nulls(rows),
               "value": pa.array(rng.integers(1, 9, rows), pa.int32(), mask=lacks)}
    columns["date64"] = columns["date"].cast(pa.date64())
    columns["ns"] = pa.array(10**9 * seconds + seconds, pa.timestamp("ns"))
    return pa.table(columns).slice(3)


def taxi(rows):
    rng = np.random.default_rng(3)
    return pa.table({"pickup": pa.array(10**6 * rng.integers(1.6e9, 1.7e9, rows), pa.timestamp("us")),
                     "zone": pa.array([f"zone {i}" for i in range(250)]).take(pa.array(rng.integers(0, 250, rows))),
                     "driver": rng.integers(10**12, 10**12 + 3000, rows), "fare": np.round(rng.gamma(2, 9, rows), 2),
                     "tip": np.round(rng.gamma(2, 1, rows), 2)})


def kinds_of(table, lacking):
    """The table as each library has it, without columns of types that the library lacks."""
    frame = table.drop_columns([name for name in lacking if name in table.column_names])
    relation = duckdb.from_arrow(frame)
    yield "pyarrow table", table, table.column_names
    yield "pyarrow reader", table.to_reader(max_chunksize=1000), table.column_names
    yield "pyarrow scanner", pa.dataset.dataset(table).scanner(batch_size=777), table.column_names
    yield "polars", polars.from_arrow(frame), frame.column_names
    yield "DuckDB", relation, frame.column_names
    yield "pandas", table.to_pandas(types_mapper=pandas.ArrowDtype), table.column_names


def compare(name, table, lists, lacking, **options):
    write("t.csv", table)
    for number, columns in enumerate(lists):
        sluice.convert(path("t.csv"), path("csv.slc"), columns=columns, overwrite=True, **options).close()
        for kind, source, there in kinds_of(table, lacking):
            if isinstance(columns, list) and not set(columns) <= set(there):
                continue
            sluice.convert(source, path("x.slc"), columns=columns, overwrite=True, **options).close()
            same("csv.slc", "x.slc", f"{name} {number}, {kind}")


class OldFrame:
    """A frame of pandas before version 2.2, which has no Arrow stream."""

    def __init__(self, frame):
        self.frame, self.columns, self.to_numpy = frame, frame.columns, frame.to_numpy

    def __getitem__(self, name):
        return self.frame[name]


def own_writers(table):
    """Rules of the CSV that each library writes itself, and the one-line pipes to the command."""
    items, options = "hour(pickup),weekday(pickup),zone,driver,bin(fare,2.5)", {"value_column": "tip", "overwrite": True}
    frame, relation = polars.from_arrow(table), duckdb.from_arrow(table)
    writers = {"pyarrow": lambda to: pa.csv.write_csv(table, to), "polars": frame.write_csv, "DuckDB": relation.write_csv,
               "pandas": lambda to: table.to_pandas().to_csv(to, index=False)}
    pa.parquet.write_table(table, path("t.parquet"), row_group_size=10000)
    sluice.convert(pa.dataset.dataset(path("t.parquet")), path("x.slc"), columns=items, **options).close()
    for name, writer in writers.items():
        writer(path("own.csv"))
        sluice.convert(path("own.csv"), path("csv.slc"), columns=items, **options).close()
        same("csv.slc", "x.slc", f"CSV of {name}")
    for name, source in (("pandas with NumPy types", table.to_pandas()), ("pandas without Arrow", OldFrame(table.to_pandas()))):
        sluice.convert(source, path("csv.slc"), columns=items, **options).close()
        same("csv.slc", "x.slc", name)
    mixed = table.to_pandas().assign(zone=[n if n % 3 else f"zone {n % 7}" for n in range(len(table))])
    mixed.to_csv(path("own.csv"), index=False)
    sluice.convert(path("own.csv"), path("csv.slc"), columns="zone,driver", **options).close()
    sluice.convert(mixed, path("mixed.slc"), columns="zone,driver", **options).close()
    same("csv.slc", "mixed.slc", "pandas with a column of several types")
    arguments = ["--columns", items, "--value-column", "tip", "-f"]
    subprocess.run([sys.executable, "-m", "sluice", "convert", "t.parquet", "csv.slc", *arguments], check=True, cwd=FOLDER)
    same("csv.slc", "x.slc", "python3 -m sluice convert")
    sluice.convert(path("t.parquet"), path("csv.slc"), columns=items, **options).close()
    same("csv.slc", "x.slc", "the path of a Parquet file")
    subprocess.run([sys.executable, "-m", "sluice", "append", "csv.slc", "t.parquet"], check=True, cwd=FOLDER)
    with open(path("cut.parquet"), "wb") as file:
        file.write(b"PAR1")
    for name, status, part in (("cut.parquet", 3, "sluice: cut.parquet: "), ("none.parquet", 5, "No such file")):
        done = subprocess.run([sys.executable, "-m", "sluice", "append", "csv.slc", name], cwd=FOLDER, capture_output=True, text=True)
        assert done.returncode == status and part in done.stderr and "Traceback" not in done.stderr, done
    with sluice.Tensor(path("x.slc")) as tensor:
        assert tensor.append(pa.dataset.dataset(path("t.parquet"))), "not appended"
    same("csv.slc", "x.slc", "python3 -m sluice append")
    sluice.convert(pa.dataset.dataset(path("t.parquet")), path("x.slc"), columns=items, **options).close()
    pipes = {"DuckDB": "import duckdb; duckdb.read_parquet('t.parquet').write_csv('/dev/stdout')",
             "pyarrow": "import sys, pyarrow.csv as c, pyarrow.parquet as p; c.write_csv(p.read_table('t.parquet'), sys.stdout.buffer)"}
    for name, line in pipes.items():
        shell = f'"$PYTHON" -c "{line}" | "$SLUICE" convert - csv.slc --quiet ' + " ".join(f"'{one}'" for one in arguments)
        subprocess.run(["bash", "-o", "pipefail", "-c", shell], check=True, cwd=FOLDER, env=os.environ | {"PYTHON": sys.executable})
        same("csv.slc", "x.slc", f"pipe of {name}")


STREAMED = """
import re, sys
import duckdb, sluice
duckdb.sql("set threads = 1; set memory_limit = '24MiB'; set enable_progress_bar = false")
relation = duckdb.sql(f"select make_timestamp(1600000000000000 + (hash(range) % 100000000000000)::bigint) as pickup, "
                      "'zone ' || hash(range + 1) % 250 as zone, 1000000000000 + (hash(range + 2) % 30000)::bigint as driver, "
                      f"(hash(range + 3) % 1000) / 100 as tip from range({sys.argv[1]})")
store = sluice.convert(relation, "x.slc", columns="datehour(pickup),zone,driver", value_column="tip", memory=sys.argv[2], overwrite=True)
print(store.info().entries, store.nnz, int(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) >> 10)
"""


def streamed(rows, mib):
    """More rows than fit in the budget, which includes the interpreter and DuckDB. A budget that is
    too small is refused before a row is read, and the budget that the message states suffices; the
    batches of DuckDB may then exceed it."""
    def run(budget):
        return subprocess.run([sys.executable, "-c", STREAMED, str(rows), f"{budget}MiB"], check=False, cwd=FOLDER, capture_output=True,
                              text=True)

    refused = run(mib // 2)
    assert refused.returncode == 1 and "BudgetError" in refused.stderr, refused.stderr
    named = int(re.search(r"needs (\d+) MiB", refused.stderr)[1])
    assert named <= mib - 10, f"a budget of {mib} MiB leaves less than 10 MiB: {refused.stderr}"
    for budget, batches in ((named, 8), (mib, 0)):
        ran = run(budget)
        assert ran.returncode == 0, ran.stderr
        done = ran.stdout.split()
        print(f"{done[0]} rows, {done[1]} nonzeros in a budget of {budget} MiB; peak of the process: {done[2]} MiB")
        assert int(done[0]) >= rows and int(done[1]) > rows / 2 and int(done[2]) <= budget + batches, done


if __name__ == "__main__":
    print("pyarrow", pa.__version__, "polars", polars.__version__, "DuckDB", duckdb.__version__, "pandas", pandas.__version__)
    duckdb.sql(f"set timezone = '{ZONE}'")
    first = numbers(4000)
    compare("numbers", first, [first.column_names[at:at + 5] for at in range(0, 15, 5)] + [
        ["price", "bool", "decimal"], "int(int8),bin(price,2.5),log(price,3),bin(decimal,10),int(uint32)"],
        ["half", "decimal256"], value_column="float")
    second = times(4000)
    compare("times", second, [["s", "ms", "us", "date"], ["zoned"], ["time", "time32"], ["utf8", "large", "view", "coded", "binary"],
                              ["date64", "ns"], "hour(zoned),weekday(ms),date(date),minute(us),yearmonth(s)"],
            ["date64", "ns"], value_column="value", missing="skip")
    compare("nulls", second, [["utf8", "null", "zoned", "date"]], ["date64", "ns"], missing="name")
    own_writers(taxi(50000))
    streamed(5000000, 128)
