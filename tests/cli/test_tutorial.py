#!/usr/bin/env python3
"""docs/TUTORIAL.md: every command in it, in its order, as it stands; the table is cut short but in the long form. And
examples/demo, which packages have."""

import os
import re
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, SLUICE, SOURCE, Skip, check, load_json, run  # noqa: E402

ROWS = 40000


def commands():
    with open(os.path.join(SOURCE, "docs", "TUTORIAL.md")) as file:
        return re.findall(r"^```\n(.*?)^```$", file.read(), re.M | re.S)


def followed(folder):
    if not shutil.which("xz") or not shutil.which("awk"):
        raise Skip("there is no xz or no awk")
    os.symlink(os.path.join(SOURCE, "data"), os.path.join(folder, "data"))
    said = {}
    for command in commands():
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True, check=False,
                              env=os.environ | {"PATH": os.path.dirname(SLUICE) + ":" + os.environ["PATH"]})
        check(done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        said[command.split("\n")[0]] = done.stdout
        table = os.path.join(folder, "flights.csv")
        if "> flights.csv" in command:
            with open(table) as file:
                lines = file.readlines()
            check(lines[0] == "departure,origin,destination,flights\n" and len(lines) == 2607932, f"{len(lines)} lines")
            if not FULL:
                with open(table, "w") as file:
                    file.writelines(lines[:ROWS])
    check(len(said) >= 12, f"{len(said)} commands")
    told = "\n".join(said.values())
    for words in ("date(departure)", "2001-01-0", "hour(departure)", "mode 3 (origin)", "core consistency", "is sound"):
        check(words in told, f"{words!r} is never told")
    top = said["sluice top flights.r8 --rows 10 --component 1,3"]
    check(len(re.findall(r"^ +\S+  \d+  A\d+$", top, re.M)) == 40, top)
    check(load_json(os.path.join(folder, "flights.r8", "run.json"))["rank"] == 8, "the model")
    for name in ("flights.html", "flights-model/mode-3.csv", "flights-model.mat"):
        check(os.path.getsize(os.path.join(folder, name)) > 1000, name)


def demo(folder):
    """It makes what it tells of, and leaves nothing where it is not told to."""
    env = os.environ | {"SLUICE": SLUICE, "TMPDIR": folder}
    script, results = os.path.join(SOURCE, "examples", "demo"), os.path.join(folder, "results")
    done = subprocess.run([script, results], capture_output=True, text=True, env=env)
    check(done.returncode == 0 and "fit = " in done.stdout and "Component 1" in done.stdout, done.stdout + done.stderr)
    check(sorted(os.listdir(results)) == ["flights-4d.html", "flights-4d.r16", "flights-4d.slc"], os.listdir(results))
    done = subprocess.run([script], capture_output=True, text=True, env=env | {"SLUICE": os.path.join(folder, "none")})
    check(done.returncode == 127 and os.listdir(folder) == ["results"], f"without a command: {done.returncode}")


run([
    ("every command", followed),
    ("the demo", demo),
])
