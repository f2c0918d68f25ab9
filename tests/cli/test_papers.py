#!/usr/bin/env python3
"""tools/papers at a tiny scale: prints every figure and table that docs/PAPERS.md lists, without an
empty table; counts and formulas equal those of the papers. Times are not checked."""

import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, SLUICE, SOURCE, Skip, check, run  # noqa: E402

SCRIPT = os.path.join(SOURCE, "tools", "papers")
DOCUMENT = os.path.join(SOURCE, "docs", "PAPERS.md")


def papers(*args, status=0):
    done = subprocess.run([sys.executable, SCRIPT, *map(str, args)], capture_output=True, text=True, check=False,
                          env=os.environ | {"SLUICE": SLUICE})
    check(done.returncode == status, f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout if status == 0 else done.stderr


def tables_of(text):
    """Returns the tables of a section, as lists of rows of cells without the header."""
    found = re.findall(r"((?:^\|.*\n)+)", text, re.M)
    return [[line.strip("| ").split(" | ") for line in table.splitlines()[2:]] for table in found]


def sections_of(paper, folder, scale):
    """Runs a paper. Checks that its sections have tables or a reason, and that docs/PAPERS.md lists
    the same figures and tables with their command. Returns {title before the colon: text}."""
    out = papers(paper, "--scale", scale, "--repeat", 1, "--threads", 1, "--memory-set", "1MiB", "--work", folder)
    check(re.search(r"^Ended after \d+ s\.$", out, re.M), out)
    check(os.listdir(folder) == [], f"left behind: {os.listdir(folder)}")
    parts = re.split(r"^## (.*?):.*\n", out, flags=re.M)[1:]
    sections = dict(zip(parts[::2], parts[1::2]))
    for title, text in sections.items():
        tables = tables_of(text)
        check(tables or "Empty: " in text, f"{title} has neither a table nor a reason:\n{text}")
        for table in tables:
            check(table and len({len(row) for row in table}) == 1, f"{title}: {table}")
            check(any(re.search(r"\d", cell) for row in table for cell in row[1:]), f"{title}: no number in {table}")
    with open(DOCUMENT, encoding="utf-8") as file:
        listed = re.search(rf"^## .*?`tools/papers {paper}\b.*?`.*?(?=^## |\Z)", file.read(), re.M | re.S)
    check(listed, f"docs/PAPERS.md has no section with the command of {paper}")
    for title in sections:
        check(re.search(rf"^\| {re.escape(title)} \|", listed[0], re.M), f"docs/PAPERS.md does not list {title} of {paper}")
    return sections


def crossplatform(folder):
    if not FULL:
        raise Skip("takes 20 s; runs with SLC_TEST_FULL=1")
    sections = sections_of("crossplatform", folder, 0.0001)
    for row in tables_of(sections["Tables 2 and 3"])[0]:
        check(row[2] == row[3] and row[4] == row[5], f"bounds differ from the paper: {row}")
    check([row[:5] for row in tables_of(sections["Section 5.3"])[0]] ==
          [["ttm", "16", "16", "527", "527"], ["ttm-on-chip", "16", "16", "1549", "1551"], ["mttkrp", "32", "32", "590", "561"]],
          sections["Section 5.3"])


def sptv(folder):
    sections = sections_of("sptv", folder, 0.001)
    with_empty, _ = tables_of(sections["Table 2"])
    check([row[3] == row[4] for row in with_empty if row[0].startswith("ratings")] == [True, True], sections["Table 2"])
    for row in tables_of(sections["Figure 10"])[1]:
        check(float(row[1]) >= 1, f"two parts read less than one run: {row}")


def genten(folder):
    if not FULL:
        raise Skip("takes 1 minute; runs with SLC_TEST_FULL=1")
    sections = sections_of("genten", folder, 0.0001)
    check(len(tables_of(sections["Figure 7"])[0]) == 32, sections["Figure 7"])


def blco(folder):
    if not FULL:
        raise Skip("takes 1 minute; runs with SLC_TEST_FULL=1")
    sections = sections_of("blco", folder, 0.0002)
    check(len(tables_of(sections["Figure 10"])[0]) == 9, sections["Figure 10"])


def amped(folder):
    if not FULL:
        raise Skip("takes 1 minute; runs with SLC_TEST_FULL=1")
    sections = sections_of("amped", folder, 0.0005)
    check([row[1] for row in tables_of(sections["Figure 7"])[0]] == ["below 1"] * 4, sections["Figure 7"])


def usage(_folder):
    for part, args in (("invalid choice: 'tucker'", ["tucker"]), ("not between 0 and 1", ["sptv", "--scale", "2"]),
                       ("OTHER: unknown program", ["sptv", "OTHER=/bin/true"]), ("not of the form NAME=PATH", ["sptv", "x.slc"])):
        check(part in papers(*args, status=2), part)


run([("usage", usage), ("sptv", sptv), ("crossplatform", crossplatform), ("genten", genten), ("blco", blco),
     ("amped", amped)])
