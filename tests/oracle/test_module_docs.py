#!/usr/bin/env python3
"""Runs the examples in the docstrings of the Python module."""

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
from tap import SOURCE, check, run  # noqa: E402

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


run([
    ("examples in docstrings", docstrings),
])
