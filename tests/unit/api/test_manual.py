#!/usr/bin/env python3
"""The manual of the C interface: every function of the headers has its page, and it is declared there as it is here."""

import glob
import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "..", name) for name in ("lib", "oracle")]
from installing import BUILD, in_turn, install  # noqa: E402
from tap import SOURCE, check, run  # noqa: E402

DECLARATION = re.compile(r"([^;{}#/]*?\b(sluice_\w+)\([^;{}]*?\))\s*;", re.S)


def text(path):
    with open(path) as file:
        return file.read()


def declarations(source):
    """Name to declaration, in one line."""
    source = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
    source = re.sub(r"^#.*$", "", source, flags=re.M)
    source = re.sub(r"\b(?:struct|enum)(?: \w+)? \{[^{}]*\};|extern \"C\" \{", "", source)
    return {name: " ".join(whole.replace("SLUICE_API", "").split()) for whole, name in DECLARATION.findall(source)}


def headers():
    found = {}
    for path in glob.glob(os.path.join(SOURCE, "include", "sluice", "*.h")):
        found.update(declarations(text(path)))
    check(len(found) > 30, f"only {sorted(found)} are declared")
    return found


def pages():
    return {os.path.basename(path)[:-len(".3.scd")]: text(path)
            for path in glob.glob(os.path.join(SOURCE, "docs", "man", "sluice_*.3.scd"))}


def listed(_folder):
    """Each function is in the NAME of one page, and told about there."""
    names = [name for page in pages().values()
             for name in re.search(r"# NAME\n\n(.*?) - ", page).group(1).split(", ")]
    check(sorted(names) == sorted(headers()), sorted(set(names) ^ set(headers())) or sorted(names))
    for page in pages().values():
        for name in re.search(r"# NAME\n\n(.*?) - ", page).group(1).split(", "):
            check(f"*{name}*" in page.split("# DESCRIPTION")[1], f"{name} is not told about")


def declared(_folder):
    """The SYNOPSIS has the declarations of the headers."""
    found = {}
    for page in pages().values():
        found.update(declarations(page.split("# SYNOPSIS")[1].split("```")[1]))
    for name, declaration in headers().items():
        check(found.get(name) == declaration, f"{name}: {found.get(name)!r}, declared {declaration!r}")


def installed(folder):
    """Each function's name leads to a page."""
    if not os.path.exists(os.path.join(BUILD, "docs", "sluice_cpd.3")):
        print("# there is no scdoc: nothing is installed")
        return
    with in_turn():
        install(folder, "devel")
    found = {os.path.basename(path)[:-2]: text(path)
             for path in glob.glob(os.path.join(folder, "**", "man3", "*.3"), recursive=True)}
    check(sorted(found) == sorted(headers()), sorted(set(found) ^ set(headers())))
    for name, page in found.items():
        check(name in page.replace("\\", ""), f"{name} is not in its page")


run([
    ("every function has a page", listed),
    ("pages declare what headers declare", declared),
    ("every name is installed", installed),
])
