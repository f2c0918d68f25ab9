#!/usr/bin/env python3
"""Runs the examples in the docstrings of the Python module, and those of its pages."""

import contextlib
import doctest
import importlib.util
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
from xml.dom import minidom

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import SLUICE, SOURCE, Skip, call, check, run, source_text  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "python"))
sys.dont_write_bytecode = True
import sluice  # noqa: E402


@contextlib.contextmanager
def inside(folder):
    before = os.getcwd()
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def public():
    """Lists of (name, object) that run together: a function, a class with its methods or, for Tensor, whose methods change
    the store, the class with one method."""
    for name in sluice.__all__:
        given = getattr(sluice, name)
        members = [(f"{name}.{member}", found) for member, found in inspect.getmembers(given) if not member.startswith("_") and
                   (inspect.isfunction(found) or isinstance(found, property))] if inspect.isclass(given) else []
        if given is sluice.Tensor:
            yield from ([(name, given), member] for member in members)
        else:
            yield [(name, given), *members]


def examples_of(name, given):
    """The examples of a docstring, without those that need an absent package."""
    text = inspect.getdoc(given) or ""
    check(">>> " in text, f"{name} has no example")
    return [example for example in doctest.DocTestParser().get_examples(text)
            if not (needed := re.search(r"# needs (\w+)", example.source)) or importlib.util.find_spec(needed[1])]


def docstrings(folder):
    """Every public name has examples, which run."""
    os.environ["MPLBACKEND"] = "Agg"
    faults, ran = [], 0
    for names in public():
        with inside(os.path.join(folder, names[-1][0])):
            examples = [example for name, given in names for example in examples_of(name, given)]
            said = io.StringIO()
            test = doctest.DocTest(examples, {"sluice": sluice, "np": np}, names[-1][0], None, None, None)
            outcome = doctest.DocTestRunner(verbose=False).run(test, out=said.write)
            ran += outcome.attempted
            if outcome.failed:
                faults.append(said.getvalue())
    check(not faults, "\n".join(faults))
    check(ran > 120, f"{ran} examples")


def run_blocks(folder, page, blocks):
    """Runs pieces of Python code in order in one namespace, except those that import an absent package."""
    os.environ["MPLBACKEND"] = "Agg"
    space = {}
    with inside(folder), contextlib.redirect_stdout(io.StringIO()):
        for block in blocks:
            if all(importlib.util.find_spec(name) for name in re.findall(r"^(?:import|from) (\w+)", block, re.M)):
                exec(compile(block, page, "exec"), space)
    return space


def recipes(folder):
    """The recipes of docs/PYTHON.md run in order, and find what the page says."""
    page = source_text("docs/PYTHON.md")
    space = run_blocks(folder, "PYTHON.md", re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S))
    result, tensor = space["r"], space["t"]
    targets = {row.name for component in (0, 1) for row in sluice.load(os.path.join(folder, "trips.r2")).top(component, 1, modes=[3])[0]}
    check(targets == {"docks", "bars"} and tensor.nnz > 0, f"the habits {targets}")
    check(space["model"] is not None and space["scores"].shape[1] == 2, "scores")
    check(result.stop == "stopped" and len(result.fits) == 10, result)
    # The score also compares weights, which have grown with the rows.
    check([match.similarity > 0.9 for match in space["after"].matches] == [True, True], space["after"])
    check(space["found"].nonzeros[0].names == ("Sunday", "03", "farm", "docks"), space["found"].nonzeros)
    check(all(film % 2 == 1 for film in space["ranked"][:5]), f"films {space['ranked'][:5]} for an odd user")
    check(page.split("\n")[2].startswith("**Numbering:"), "the numbering is not at the top")


NOTEBOOK = os.path.join(SOURCE, "examples", "parquet_to_plots.ipynb")


def notebook(folder):
    """The notebook's code runs in order and finds the planted habits; it is stored without outputs."""
    with open(NOTEBOOK, encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    check(len(code) > 8 and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code), "outputs")
    space = run_blocks(folder, "the notebook", ["".join(cell["source"]) for cell in code])
    check(space["s"].rank == 3, space["s"])
    found = space["found"]
    check(found.keys() == {"docks", "bars", "airport"} and "08" in found["docks"] and "21" in found["bars"], found)
    check(space["model"].row_names_ == ["island"] and space["model"].result_.top(space["strongest"], 1, modes=[3])[0][0].name == "bars",
          space["scores"])
    check(os.path.getsize(os.path.join(folder, "trips.html")) > 1000, "no report")


def jupyter(folder):
    """The notebook also runs in Jupyter."""
    if importlib.util.find_spec("nbconvert") is None or importlib.util.find_spec("ipykernel") is None:
        raise Skip("there is no nbconvert, which the long form of test_module_results.py installs")
    shutil.copy(NOTEBOOK, folder)
    said = call(sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "run.ipynb", os.path.basename(NOTEBOOK),
                cwd=folder, env=os.environ | {"PYTHONPATH": os.path.join(SOURCE, "python"), "MPLBACKEND": ""})
    with open(os.path.join(folder, "run.ipynb"), encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    check(not any(output["output_type"] == "error" for output in outputs), said)
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    check("text/html" in kinds and ("image/png" in kinds or importlib.util.find_spec("matplotlib") is None), kinds)


def gallery(folder):
    """The commands of docs/GALLERY.md run, and make the pictures that the page shows."""
    page = source_text("docs/GALLERY.md")
    os.symlink(os.path.join(SOURCE, "data"), os.path.join(folder, "data"))
    os.symlink(os.path.join(SOURCE, "tools"), os.path.join(folder, "tools"))
    env = os.environ | {"PATH": os.path.dirname(SLUICE) + ":" + os.environ["PATH"]}
    for block in re.findall(r"^```\n(.*?)^```$", page, re.M | re.S):
        call("bash", "-e", "-c", block.replace("--runs 4", "--runs 2 --iters 9"), cwd=folder, env=env)
    shown = re.findall(r"\(gallery/([\w.]+)\)", page)
    check(sorted(shown) == sorted(os.listdir(os.path.join(SOURCE, "docs", "gallery"))) and len(shown) == 4, shown)
    for name in shown:
        made, kept = (minidom.parse(os.path.join(*path, name)).documentElement for path in ((folder,), (SOURCE, "docs", "gallery")))
        for one in (made, kept):
            check(one.tagName == "svg" and len(one.getElementsByTagName("path")) > 1, name)
        check(made.getAttribute("height") == kept.getAttribute("height") and
              len(made.getElementsByTagName("svg")) == len(kept.getElementsByTagName("svg")), f"{name} has another form now")
    fault = subprocess.run(["tools/scripts/report-picture", "amino.html", "Fat"], cwd=folder, capture_output=True, text=True, check=False)
    check(fault.returncode == 1 and "there are: Fit after each iteration" in fault.stderr, fault.stderr)


run([
    ("examples in docstrings", docstrings),
    ("recipes of docs/PYTHON.md", recipes),
    ("the notebook finds the planted habits", notebook),
    ("the notebook runs in Jupyter", jupyter),
    ("pictures of docs/GALLERY.md", gallery),
])
