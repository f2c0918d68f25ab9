#!/usr/bin/env python3
"""tools/gpu-acceptance from outside, on an emulated device: every row runs, whatever it finds of speed; and on none."""

import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "python"))
from tap import SOURCE, check, run  # noqa: E402

SCRIPT = os.path.join(SOURCE, "tools", "gpu-acceptance")


def accept(folder, program, *arguments):
    """Exit status, output, and the record of a run over `program` as the packed command."""
    packed, out = os.path.join(folder, "packed"), os.path.join(folder, "results")
    os.makedirs(packed, exist_ok=True)
    shutil.copy(program, os.path.join(packed, "sluice"))
    done = subprocess.run([sys.executable, SCRIPT, "--packed", packed, "--out", out, "--work", folder, "--scale", "1e-5", *arguments],
                          capture_output=True, text=True, timeout=300)
    with open(os.path.join(out, "gpu-acceptance.json"), encoding="utf-8") as file:
        return done.returncode, done.stdout + done.stderr, json.load(file)


def rows(folder):
    """Marks of speed mean nothing here; that figures are there, and results agree, does."""
    wanted = [7] if os.environ.get("SLC_TEST_QUICK") else [1, 6, 7, 8, 9, 10]
    status, text, record = accept(folder, os.environ["SLUICE_EMULATED"], "--rows", ",".join(map(str, wanted)))
    found = {row["row"]: row for row in record["rows"]}
    check(status in (0, 1) and sorted(found) == wanted, text)
    for number, row in found.items():
        check(row["figures"] and f"{number:2} {row['verdict']}" in text, str(row))
        for word in ("not in time", "Error", "exit status", "differ from", "differs from", "other bits", " not "):
            check(all(word not in figure for figure in row["short"]), str(row))
    with open(os.path.join(folder, "results", "gpu-acceptance.txt"), encoding="utf-8") as file:
        check(len(file.readlines()) == len(wanted), "a line for each row")
    if 8 in wanted:
        check(found[9]["verdict"] == "PASS" or found[9]["short"][-1].startswith("adaptive"), str(found[9]))
        check("fits differ by" in found[8]["figures"][0] and found[8]["figures"][0] not in found[8]["short"], str(found[8]))
        check("all results agree with the CPU's" in found[10]["figures"], str(found[10]))


def late(folder):
    """Rows for which there is no time are left out."""
    status, text, record = accept(folder, os.environ["SLUICE_EMULATED"], "--rows", "1,3", "--seconds", "5")
    check(all("no time left" in row["figures"][0] for row in record["rows"]) and status == 77, text)


def without(folder):
    status, text, record = accept(folder, os.environ["SLUICE"])
    check(status == 77 and [row["verdict"] for row in record["rows"]] == ["SKIP"] * 10, text)
    check("nothing was measured: " in text and "CUDA" in text.splitlines()[-1], text)
    done = subprocess.run([sys.executable, SCRIPT, "--packed", folder], capture_output=True, text=True, timeout=60)
    check(done.returncode == 2 and "there is no program sluice" in done.stderr, done.stderr)


run([
    ("rows on an emulated device", rows),
    ("no time", late),
    ("no device", without),
])
