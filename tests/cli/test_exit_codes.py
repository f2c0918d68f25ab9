#!/usr/bin/env python3
"""Exit codes: the help's table equals those of README.md and sluice(1), and real commands end with
each of the codes."""

import os
import re
import resource
import signal
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SLUICE, SOURCE, check, run, sluice, source_text  # noqa: E402

# Code to meaning, from `sluice --help`.
TABLE = {int(code): meaning for code, meaning in
         re.findall(r"^  (\d+) +(.*)$", sluice("--help")[0].split("\nExit codes:\n")[1], re.M)}


def one_table(_folder):
    """Every list has the same codes with the same words."""
    check(sorted(TABLE) == list(TABLE) and len(TABLE) > 5, TABLE)
    rows = source_text("README.md").split("| exit code | meaning |\n|---|---|\n")[1].split("\n\n")[0]
    told = {int(code): meaning for code, meaning in re.findall(r"^\| (\d+) \| (.*) \|$", rows, re.M)}
    check(told == TABLE, f"README.md {told}, help {TABLE}")
    section = source_text("docs", "man", "sluice.1.scd").split("# EXIT STATUS\n")[1].split("\n# ")[0]
    told = {int(code): re.split("[:.]", words)[0] for code, words in re.findall(r"^\*(\d+)\*\n\t(.*)", section, re.M)}
    words = {code: meaning[0].upper() + meaning[1:] for code, meaning in TABLE.items()}
    check(told == words, f"sluice(1) {told}, help {words}")


def no_others(_folder):
    """The man pages of the commands mention only exit codes of the table."""
    folder = os.path.join(SOURCE, "docs", "man")
    for name in sorted(os.listdir(folder)):
        page = source_text("docs", "man", name)
        if not name.endswith(".1.scd"):
            continue
        section = page.split("# EXIT STATUS\n")[1].split("\n# ")[0]
        codes = {int(code) for code in re.findall(r"\b\d+\b", re.sub(r"\([135]\)", "", section))}
        check(codes <= set(TABLE), f"{name}: {sorted(codes - set(TABLE))}")


def written(folder, name, rows):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(rows)
    return path


def stopped(store, number):
    """The exit code of a decomposition that runs until it is interrupted."""
    child = subprocess.Popen([SLUICE, "cpd", store, "-r", "2", "-i", "1000000000", "--tol", "0", "--nowrite"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
    for line in child.stdout:
        if b"its =   2" in line:
            break
    child.send_signal(number)
    child.communicate(timeout=60)
    return child.returncode


def each(folder):
    """Real commands, each made to end with one of the codes: exactly those of the table."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "30x20x10", "--nnz", 3000, "-q")
    large = os.path.join(folder, "large.slc")
    sluice("convert", written(folder, "large.tns", "1 1 1e200\n2 2 1e200\n"), large, "-q")
    bad = written(folder, "bad.tns", "1 1 x\n")
    endless = [store, "-r", 2, "-i", 1000000000, "--tol", 0, "--nowrite"]
    codes = {
        0: ["check", store],
        1: ["cpd", large, "-r", 1, "--nowrite"],
        2: ["cpd", store],
        3: ["convert", bad, os.path.join(folder, "bad.slc")],
        4: ["cpd", store, "-r", 2, "--memory", "1MiB", "--nowrite"],
        5: ["cpd", os.path.join(folder, "none.slc"), "-r", 2, "--nowrite"],
        75: ["cpd", *endless, "--maxsecs", 0.2],
    }
    for code, command in codes.items():
        _, messages = sluice(*command, status=code)
        check(messages.startswith("sluice: ") == (code not in (0, 75)), f"{code}: {messages}")
    signals = {128 + number: stopped(store, number) for number in (signal.SIGINT, signal.SIGTERM)}
    check(all(code == got for code, got in signals.items()), signals)
    check(sorted([*codes, *signals]) == sorted(TABLE), f"{sorted([*codes, *signals])}, the table {sorted(TABLE)}")


run([
    ("one table in the help, README.md and sluice(1)", one_table),
    ("pages of commands list no other code", no_others),
    ("each code by a real command", each),
])
