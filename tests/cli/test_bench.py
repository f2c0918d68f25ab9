#!/usr/bin/env python3
"""sluice bench: JSON that is valid and agrees with itself, bad options, stores of every shape.

Figures are never judged here: tests share their machine.
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from tap import SOURCE, check, run, sluice  # noqa: E402


def bench_names():
    """The benchmarks that `sluice bench --help` lists."""
    text = sluice("bench", "--help")[0].split("\nBenchmarks:\n")[1]
    return re.findall(r"^  (\w+) ", text, re.M)


def bench(*args):
    """Runs a benchmark with --json; checks what all records have; returns the record."""
    out, messages = sluice("bench", *args, "--json")
    record = json.loads(out)
    check(record["schema"] == "sluice-bench-1", record["schema"])
    check(record["bench"] == args[0], record["bench"])
    check(record["versions"]["sluice"] and record["machine"]["processors"] >= 1, f"{record}")
    check(len(record["machine"]["cache_bytes"]) == 3, f"{record['machine']}")
    check(record["options"]["json"] is True, f"{record['options']}")
    check(messages == "", messages)
    return record


def helps_and_man_page(_folder):
    """Every benchmark has a help, and a section of the man page with exactly its options."""
    with open(os.path.join(SOURCE, "docs", "man", "sluice-bench.1.scd")) as file:
        page = file.read()
    names = bench_names()
    check(names, "no benchmark is listed")
    for name in names:
        out, _ = sluice("bench", name, "--help")
        check(out.startswith(f"Example: sluice bench {name} "), out)
        check(sluice("help", "bench", name)[0] == out, "help bench NAME differs")
        check(max(map(len, out.splitlines())) <= 100, f"{name}: the help is too wide")
        check(f"\n# {name.upper()}\n" in page, f"the man page has no section {name.upper()}")
        section = page.split(f"\n# {name.upper()}\n")[1].split("\n# ")[0]
        wanted = set(re.findall(r"^(?:  -\w,|     ) --([\w-]+)", out, re.M)) - {"help"}
        there = set(re.findall(r"^(?:\*-\w\*, )?\*--([\w-]+)\*", section, re.M))
        check(wanted == there, f"{name}: help {sorted(wanted)}, man page {sorted(there)}")


def usage(_folder):
    out, messages = sluice("bench", status=2)
    check("Benchmarks:" in out and messages == "", messages)
    for part, args in (("unknown benchmark 'strem'; did you mean stream?", ["strem"]),
                       ("see sluice bench --help", ["xyzzy"]),
                       ("see sluice bench stream --help", ["stream", "--xyzzy"]),
                       ("stream takes none", ["stream", "x.slc"]),
                       ("not a multiple of 64", ["stream", "--row-bytes", "72"]),
                       ("not between 64", ["stream", "--row-bytes", "8"]),
                       ("not between 1 and 1000", ["stream", "--repeat", "0"]),
                       ("not between 1 and 1000", ["stream", "--repeat", "1001"])):
        out, messages = sluice("bench", *args, status=2)
        check(out == "", out)
        check(part in messages, f"{part!r} is not in {messages!r}")


def stream(_folder):
    record = bench("stream", "-t", 2, "--isa", "best", "-n", 1, "--warm-up", 0)
    check({row["threads"] for row in record["rows"]} == {1, 2}, f"{record['rows']}")
    check("memory" in {row["level"] for row in record["rows"]}, f"{record['rows']}")
    for row in record["rows"]:
        for kind in ("read", "copy", "triad", "gather"):
            check(row[f"{kind}_gb_per_s"] > 0, f"{row}")
        check(row["set_bytes"] % 4096 == 0, f"{row}")


run([
    ("helps and man page agree", helps_and_man_page),
    ("usage faults", usage),
    ("bench stream", stream),
])
