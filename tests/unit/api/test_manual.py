#!/usr/bin/env python3
"""Holds the headers and the man pages of the C interface together.

Every function of include/sluice/ has a comment with the parts that sluice.h lists and a page of section 3 that declares
it as the header does, describes it, and lists its statuses. Pages name only functions, constants and members that exist.
"""

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
    """Returns {name: declaration on one line}."""
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


def names_of(page):
    """Returns the functions in the NAME of a page."""
    return re.search(r"# NAME\n\n(.*?) - ", page, re.S).group(1).replace("\n", " ").split(", ")


# The labelled parts of a comment, in order. Other labels may stand before "Errors:".
PARTS = ("Math", "Shapes", "Ownership", "Order", "Errors", "Cost")
OPAQUE = ("store", "builder", "model", "sweep", "ttv_operator")
LAST_USE = re.compile(r"_(?:destroy|close|abandon|finish)$")
NUMBERS = re.compile(r"(?:double|uint64_t|uint32_t|struct sluice_range) \*(?:const \*)?(?!ret_)\w+[,)]")


def documented():
    """Name to (comment in one line, declaration, statuses that "the common errors" of its header are)."""
    found = {}
    for path in glob.glob(os.path.join(SOURCE, "include", "sluice", "*.h")):
        source = text(path)
        found_comments = re.findall(r"/\*((?:(?!\*/).)*)\*/\nSLUICE_API [^;(]*?\b(sluice_\w+)\(", source, re.S)
        comments = {name: " ".join(comment.replace("\n *", "\n").split()) for comment, name in found_comments}
        top = " ".join(re.match(r"/\*(.*?)\*/", source, re.S).group(1).replace("\n *", " ").split())
        common = re.search(r"Common errors, to which function comments refer: (.*?)\. ", top + " ")
        for name, declaration in declarations(source).items():
            found[name] = (comments.get(name, ""), declaration, common.group(1) if common else "")
    return found


def parts(comment):
    """Returns the summary and the labelled parts of a comment."""
    split = re.split(rf"(?:^|(?<=[.] ))({'|'.join(PARTS)}): ", comment)
    return split[0], dict(zip(split[1::2], split[2::2])), split[1::2]


def outputs(declaration):
    """Returns the parameters that a function stores to."""
    found = re.findall(r"(?<!const )\b(struct sluice_\w+|double|char|u?int\d+_t) (\*+)(\w+)[,)]|\*\*(ret_\w+)",
                       declaration)
    return [name or ret for kind, stars, name, ret in found
            if ret or not (stars == "*" and (kind[len("struct sluice_"):] in OPAQUE or kind == "struct sluice_error"))]


def faults(name, comment, declaration):
    """Returns what the comment of a function lacks."""
    summary, found, order = parts(comment)
    first = re.match(r"([A-Z][a-z]+s\b.*?\.)(?: |$)", summary)
    lacks = []
    if not first or len(first.group(1)) > 100:
        lacks.append("a summary: one sentence of up to 100 characters that begins with a verb")
    needed = {"Cost"}
    if declaration.startswith("enum sluice_status "):
        needed.add("Errors")
        state = found.get("Errors", "").partition("On error, ")[2]
        if not re.search(r"SLUICE_ERR_|the common errors|those of sluice_", found.get("Errors", "")):
            lacks.append("the statuses")
        if not state:
            lacks.append("the state on error, as 'On error, '")
        lacks += [f"the state of {output} on error" for output in outputs(declaration)
                  if not re.search(rf"\b{output}\b", state)]
    if NUMBERS.search(declaration):
        needed |= {"Shapes", "Ownership"}
    # sluice.h states once that functions keep no pointers to paths and texts.
    arguments = declaration.split("(", 1)[1].replace("const char *", "")
    if (re.search(r"\*\*|\*const \*|\(\*|\bchar \*", arguments) or declaration.startswith("const char *")
            or LAST_USE.search(name)):
        needed.add("Ownership")
    if re.search(r"_bytes\b", declaration) and not re.search(r"\bbytes?\b", comment):
        lacks.append("the unit of its sizes")
    if order != [part for part in PARTS if part in order]:
        lacks.append(f"the order {PARTS}, not {order}")
    return lacks + [f"'{part}: '" for part in PARTS if part in needed and not found.get(part)]


def commented(_folder):
    """Each function has a comment with all parts."""
    functions = documented()
    check(sorted(functions) == sorted(headers()), sorted(set(functions) ^ set(headers())))
    for name, (comment, declaration, _common) in functions.items():
        check(not faults(name, comment, declaration), f"the comment of {name} lacks {faults(name, comment, declaration)}")


def checked(_folder):
    """The check of comments finds each part that is missing."""
    declaration = ("enum sluice_status sluice_x(const double *factor, uint64_t *ret_bytes, struct sluice_x **ret_x, "
                   "struct sluice_error *err)")
    whole = ("Makes an x of some bytes. Shapes: `factor` is rows x rank. Ownership: the caller's. "
             "Errors: SLUICE_ERR_USAGE. On error, *ret_bytes and *ret_x are unchanged. Cost: constant.")
    check(faults("sluice_x", whole, declaration) == [], faults("sluice_x", whole, declaration))
    for old, new in (("Makes an x", "An x"), ("Makes an x of some bytes. ", ""), ("some bytes", "some size"), ("Shapes: ", ""),
                     ("Ownership: ", ""), ("Errors: ", ""), ("SLUICE_ERR_USAGE", "some"), ("On error, ", ""),
                     ("*ret_bytes and ", ""), (" and *ret_x", ""), ("Cost: constant.", ""), ("Makes", "Makes " + 100 * "x")):
        check(len(faults("sluice_x", whole.replace(old, new), declaration)) > 0, f"nothing is missing without {old!r}")
    moved = whole.replace(" Cost: constant.", "").replace("Errors:", "Cost: constant. Errors:")
    check(len(faults("sluice_x", moved, declaration)) == 1, "a part in another place is not found")
    for name, declaration in (("sluice_x_close", "void sluice_x_close(struct sluice_store *x)"),
                              ("sluice_x", "const char *sluice_x(void)"),
                              ("sluice_x", "void sluice_x(void (*call)(void *context))")):
        lacks = faults(name, "Ends x. Cost: constant.", declaration)
        check(lacks == ["'Ownership: '"], f"{declaration}: {lacks}")


def statuses(name, functions, seen=()):
    """Returns the statuses that the comment of a function lists, itself or by reference."""
    comment, _declaration, common = functions[name]
    errors = parts(comment)[1].get("Errors", "").partition("On error, ")[0].replace("the common errors", common)
    found = set(re.findall(r"SLUICE_ERR_\w+", errors))
    for others in re.findall(r"those of (sluice_\w+(?:(?:,| and) sluice_\w+)*)", errors):
        for other in set(re.findall(r"sluice_\w+", others)) - {name, *seen}:
            found |= statuses(other, functions, (*seen, name))
    return found


def listed(_folder):
    """Each function is in the NAME of one page, whose DESCRIPTION describes it and whose ERRORS list its statuses."""
    functions = documented()
    known = set(re.findall(r"^    (SLUICE_ERR_\w+)", text(os.path.join(SOURCE, "include", "sluice", "status.h")), re.M))
    names = [name for page in pages().values() for name in names_of(page)]
    check(sorted(names) == sorted(headers()), sorted(set(names) ^ set(headers())) or sorted(names))
    for title, page in pages().items():
        for name in names_of(page):
            check(f"*{name}*" in page.split("# DESCRIPTION")[1].split("# ERRORS")[0], f"{title}: {name} is not described")
        shown = re.findall(r"^\*(SLUICE_ERR_\w+)\*\n\t", page.split("# ERRORS")[1], re.M)
        # This page describes the record of errors, and so all statuses.
        needed = known if title == "sluice_error_format" else set().union(
            *(statuses(name, functions) for name in names_of(page)))
        check(sorted(shown) == sorted(needed), f"{title}: ERRORS {sorted(set(shown) ^ needed)}")


def existing(_folder):
    """Pages name only what exists: functions, constants, arguments and members, other pages."""
    source = "\n".join(text(path) for path in glob.glob(os.path.join(SOURCE, "include", "sluice", "*.h")))
    words = set(re.findall(r"\w+", re.sub(r"/\*.*?\*/", "", source, flags=re.S)))
    manual = {os.path.basename(path)[:-len(".scd")] for path in glob.glob(os.path.join(SOURCE, "docs", "man", "*.scd"))}
    for title, page in pages().items():
        for name in re.findall(r"\b(?:sluice|SLUICE)_\w*[A-Za-z\d]", page):
            check(name in words, f"{title}: there is no {name}")
        for name, section in re.findall(r"\*(sluice_\w+)\*(\(3\))?", page):
            check(name in headers() and (section or name in names_of(page)),
                  f"{title}: {name} is no function of this page, and not marked (3)")
        for name, section in re.findall(r"\*(sluice-\w+)\*\((\d)\)", page):
            check(f"{name}.{section}" in manual, f"{title}: there is no {name}({section})")
        for name in re.findall(r"(?<![\w*])_([a-z]\w*(?:(?:->|\.|\[)\w+\]?)*)_(?!\w)", page.split("# DESCRIPTION")[1]):
            used = re.findall(r"[a-z]\w+", name)
            check(used[-1:] == ["json"] or words.issuperset(used), f"{title}: there is no {name}")


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
    ("comments of functions have all parts", commented),
    ("the check of comments can fail", checked),
    ("every function has a page", listed),
    ("pages name only what exists", existing),
    ("pages declare what headers declare", declared),
    ("every name is installed", installed),
])
