#!/usr/bin/env python3
"""Runs every command of docs/TUTORIAL.md and README.md, in order and unchanged, and examples/demo. In the short form, the
tutorial's table is truncated. tests/oracle/test_module.py runs the README's example of the Python module."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, SLUICE, SOURCE, Skip, check, load_json, run  # noqa: E402

ROWS = 40000


def code_blocks(*path):
    """Returns the code blocks of a page as (language, text)."""
    with open(os.path.join(SOURCE, *path)) as file:
        return re.findall(r"^```(\w*)\n(.*?)^```$", file.read(), re.M | re.S)


def run_in(folder, *command):
    env = os.environ | {"PATH": os.path.dirname(SLUICE) + ":" + os.environ["PATH"]}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)
    check(done.returncode == 0, f"{command[-1]}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def followed(folder):
    if not shutil.which("xz") or not shutil.which("awk"):
        raise Skip("there is no xz or no awk")
    os.symlink(os.path.join(SOURCE, "data"), os.path.join(folder, "data"))
    said = {}
    for _, command in code_blocks("docs", "TUTORIAL.md"):
        said[command.split("\n")[0]] = run_in(folder, "bash", "-o", "pipefail", "-c", command)
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


def readme(folder):
    """Runs the commands of README.md except those that build, package or test sluice."""
    os.symlink(os.path.join(SOURCE, "data"), os.path.join(folder, "data"))
    with open(os.path.join(folder, "trips.csv"), "w") as file:
        file.write("pickup_time,origin,destination,count\n")
        file.writelines(f"2023-04-0{n % 9 + 1} {n % 24:02}:15,from {n % 7},to {n % 5},{n % 4 + 1}\n" for n in range(2000))
    ran = 0
    for language, block in code_blocks("README.md"):
        if language == "python" and "flights-4d.r16" in block and importlib.util.find_spec("numpy"):
            run_in(folder, sys.executable, "-c", block)
        for line in block.splitlines():
            command = line.removeprefix("build/tools/")
            if language == "" and command.startswith("sluice "):
                run_in(folder, "bash", "-c", command)
                ran += 1
    check(ran >= 10, f"{ran} commands")
    check(os.path.getsize(os.path.join(folder, "trips.html")) > 1000, "no report")


def demo(folder):
    """The demo creates the files that it announces, and no others."""
    env = os.environ | {"SLUICE": SLUICE, "TMPDIR": folder}
    script, results = os.path.join(SOURCE, "examples", "demo"), os.path.join(folder, "results")
    done = subprocess.run([script, results], capture_output=True, text=True, env=env)
    check(done.returncode == 0 and "fit = " in done.stdout and "Component 1" in done.stdout, done.stdout + done.stderr)
    check(sorted(os.listdir(results)) == ["flights-4d.html", "flights-4d.r16", "flights-4d.slc"], os.listdir(results))
    done = subprocess.run([script], capture_output=True, text=True, env=env | {"SLUICE": os.path.join(folder, "none")})
    check(done.returncode == 127 and os.listdir(folder) == ["results"], f"without a command: {done.returncode}")


run([
    ("every command of the tutorial", followed),
    ("every command of the README", readme),
    ("the demo", demo),
])
