#!/usr/bin/env python3
"""Runs the examples in the docstrings of the Python module, and those of its pages."""

import contextlib
import doctest
import importlib.util
import inspect
import io
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import SOURCE, check, run, source_text  # noqa: E402

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


def blocks_of(page):
    """The Python code of a page, in order, without blocks that import an absent package."""
    for block in re.findall(r"^```python\n(.*?)^```$", source_text(page), re.M | re.S):
        needed = re.findall(r"^(?:import|from) (\w+)", block, re.M)
        if all(importlib.util.find_spec(name) for name in needed):
            yield block


def recipes(folder):
    """The recipes of docs/PYTHON.md run in order, and find what the page says."""
    space = {}
    with inside(folder), contextlib.redirect_stdout(io.StringIO()):
        for block in blocks_of("docs/PYTHON.md"):
            exec(compile(block, "PYTHON.md", "exec"), space)
    result, tensor = space["r"], space["t"]
    targets = {row.name for component in (0, 1) for row in sluice.load(os.path.join(folder, "trips.r2")).top(component, 1, modes=[3])[0]}
    check(targets == {"docks", "bars"} and tensor.nnz > 0, f"the habits {targets}")
    check(space["model"] is not None and space["scores"].shape[1] == 2, "scores")
    check(result.stop == "stopped" and len(result.fits) == 10, result)
    check(all(film % 2 == 1 for film in space["ranked"][:5]), f"films {space['ranked'][:5]} for an odd user")
    check(source_text("docs/PYTHON.md").split("\n")[2].startswith("**Numbering:"), "the numbering is not at the top")


run([
    ("examples in docstrings", docstrings),
    ("recipes of docs/PYTHON.md", recipes),
])
