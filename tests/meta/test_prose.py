#!/usr/bin/env python3
"""Prose: plain words, narrow lines, citations that lead somewhere, file comments that say something."""

import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SOURCE, check, run  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
WIDTH = 100
WORDS_PER_1000_LINES = 8


def files(*endings):
    """Yields the paths below the source folder, without builds and test data."""
    for folder, folders, names in os.walk(SOURCE):
        top = os.path.abspath(folder) == os.path.abspath(SOURCE)
        folders[:] = sorted(d for d in folders if not d.startswith((".", "build", "data") if top else ".")
                            and d not in ("__pycache__", "corpus"))
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name), SOURCE)


def text(path):
    with open(os.path.join(SOURCE, path), errors="replace") as file:
        return file.read()


def documents():
    return list(files(".md", ".scd"))


def prose_of_document(path):
    """Yields (number, line) of a document, without code and tables."""
    fenced = False
    for number, line in enumerate(text(path).split("\n"), 1):
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and not line.startswith("|"):
            yield number, re.sub(r"`[^`]*`", "`x`", line)


def prose_of_source(path):
    """Yields (number, line) of comments and of messages, which are string literals of several
    words."""
    source = text(path)
    for found in re.finditer(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\])+'", source, re.S):
        if found[0][0] == "'" or (found[0][0] == '"' and " " not in found[0]):
            continue
        first = source.count("\n", 0, found.start()) + 1
        for number, line in enumerate(found[0].split("\n"), first):
            yield number, re.sub(r"`[^`]*`", "`x`", line)


def prose(path):
    return prose_of_document(path) if path.endswith((".md", ".scd")) else prose_of_source(path)


def retired_words():
    """The pattern of retired words, and the lines that may have one: path -> fragments."""
    patterns, allowed = [], {}
    with open(os.path.join(HERE, "retired_words.txt")) as file:
        for line in file.read().splitlines():
            if line.startswith("allow "):
                path, fragment = line[len("allow "):].split(": ", 1)
                allowed.setdefault(path, []).append(fragment)
            elif line and not line.startswith("#"):
                patterns.append(line)
    check(len(patterns) > 15, f"retired_words.txt has {len(patterns)} words")
    return re.compile(rf"\b(?:{'|'.join(patterns)})\b", re.I), allowed


def none(faults):
    check(not faults, "\n".join(faults))


def words(paths):
    """Checks that prose of the files has few retired words; each is named."""
    pattern, allowed = retired_words()
    lines, hits = 0, []
    for path in paths:
        lines += text(path).count("\n")
        for number, line in prose(path):
            if any(fragment in line for fragment in allowed.get(path, ())):
                continue
            hits += [f"{path}:{number}: {found}" for found in pattern.findall(line)]
    share = 1000 * len(hits) / lines
    print(f"# {len(hits)} retired words in {lines} lines, {share:.1f} in 1,000")
    check(lines > 1000 and share <= WORDS_PER_1000_LINES, "\n".join([f"{share:.1f} in 1,000 lines:"] + hits))


def words_of_documents(_folder):
    """Checks documents, man pages and headers."""
    words(documents() + list(files(".h")))


def words_of_sources(_folder):
    """Checks comments and messages of the library and the command."""
    words([path for path in files(".c", ".cu") if not path.startswith("tests/")])


def allowed_lines(_folder):
    """Every exception is still needed."""
    pattern, allowed = retired_words()
    for path, fragments in allowed.items():
        for fragment in fragments:
            check(any(fragment in line and pattern.search(line) for _, line in prose(path)),
                  f"retired_words.txt allows {fragment!r} in {path}, which does not need it")


def width(_folder):
    """No line of prose is over 100 columns: documents and comments of sources."""
    lines = [(path, number, line) for path in documents() for number, line in prose_of_document(path)
             if "](" not in line and "http" not in line]
    lines += [(path, number, line) for path in files(".c", ".h", ".cu", ".cpp")
              for number, line in enumerate(text(path).split("\n"), 1)]
    none([f"{path}:{number} has {len(line)} columns" for path, number, line in lines if len(line) > WIDTH])


# Documents that came with the assignment, or were renamed.
ABSENT = re.compile(r"\b(DESIGN|ENGLISH|USERS|GPU|ANCHORS|MANIFEST|BRIEF)\.md\b")
KEY = r"\[((?:RFC\d+|[A-Z][A-Za-z]+\d{4}[a-z]?|SPTV|XPLAT|XZ|MAT5|NEP1|IEEE754|Warren))\]"
AUTHORS = re.compile(r"\b([A-Z][a-z]+)(?:,? (?:and|&) [A-Z][a-z]+,? \(?| et al\.,? \(?| \()(19[3-9]\d|20[0-2]\d)\b(?!-)")


def citations(_folder):
    """Every citation is in docs/REFERENCES.md, and what that names as using a reference is there."""
    references = text("docs/REFERENCES.md")
    faults = []
    keys = set(re.findall(KEY, "\n".join(re.findall(r"^\| ([^|]*) \|", references, re.M))))
    check(len(keys) > 25, f"docs/REFERENCES.md has {len(keys)} keys")
    faults += [f"docs/REFERENCES.md names {path}, which is not there" for path in re.findall(r"`([\w/]+/\w+\.\w+)`", references)
               if not os.path.exists(os.path.join(SOURCE, path))]
    for path in documents() + list(files(".h", ".c", ".cu", ".cpp", ".py")):
        if path == "docs/REFERENCES.md" or path.startswith("tests/meta/"):
            continue
        for number, line in prose(path) if not path.endswith(".py") else enumerate(text(path).split("\n"), 1):
            cited = [key for key in re.findall(KEY, line) if key not in keys]
            cited += [f"{name} {year}" for name, year in AUTHORS.findall(line)
                      if not re.search(rf"\b{name}\b.*\b{year}\b", references)]
            cited += ABSENT.findall(line)
            faults += [f"{path}:{number} cites {one}, which docs/REFERENCES.md does not have" for one in cited]
    none(faults)


def file_comments(_folder):
    """A file's first comment says what the file does, not where to look."""
    faults = []
    for path in files(".c", ".h", ".cu", ".cpp"):
        first = re.match(r"\s*/\*(.*?)\*/", text(path), re.S)
        comment = re.sub(r"\s+\*?\s*", " ", first[1]).strip(" *") if first else "no comment to judge"
        rest = re.sub(r"[;,.]?\s*\(?[Ss]ee(?: also)? [\w/.,* ]+\)?\.?$", "", comment).strip()
        faults += [f"{path} only points elsewhere: {comment}"] if len(rest.split()) < 2 else []
    none(faults)


run([
    ("documents and headers have few retired words", words_of_documents),
    ("comments and messages have few retired words", words_of_sources),
    ("exceptions are needed", allowed_lines),
    ("lines of prose have at most 100 columns", width),
    ("citations lead to docs/REFERENCES.md", citations),
    ("file comments say what a file does", file_comments),
])
