#!/usr/bin/env python3
"""Checks the source tree itself: layers, self-contained headers, no dead files, no retired words."""

import functools
import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SOURCE, check, load_json, run  # noqa: E402

def files(*endings, under=""):
    for folder, folders, names in os.walk(os.path.join(SOURCE, under)):
        top = os.path.abspath(folder) == os.path.abspath(SOURCE)  # build folders, except convert/build/
        folders[:] = [d for d in folders if not d.startswith((".", "build") if top else ".") and d != "__pycache__"]
        for name in sorted(names):
            if name.endswith(endings):
                yield os.path.relpath(os.path.join(folder, name), SOURCE)


def text(path):
    with open(os.path.join(SOURCE, path), errors="replace") as file:
        return file.read()


def layers():
    """Folder -> folders that it may include, from the table of docs/ARCHITECTURE.md; rows include
    transitively."""
    rows = re.findall(r"^\| \d+ \| (`\w+/`(?:, `[\w/]+/`)*) \|.*\| ([^|]*) \|$", text("docs/ARCHITECTURE.md"), re.M)
    table = {}
    for folders, allowed in rows:
        for folder in re.findall(r"`(\w+)/", folders):
            table[folder] = set(allowed.split(", ")) - {"nothing"}
    check(len(table) > 8, f"docs/ARCHITECTURE.md has no table of layers: {table}")
    unknown = set().union(*table.values()) - set(table)
    check(not unknown, f"the table of layers has no row for {unknown}")
    return table


def layering(_folder):
    """A folder includes only lower layers of docs/ARCHITECTURE.md, and no two folders include each
    other."""
    table = layers()
    for floor, allowed in table.items():
        for path in files(".c", ".h", ".cu", under=floor):
            for name, target in re.findall(r'#include "((\w+)/[^"]+)"', text(path)):
                public = target == "sluice" and (floor in ("api", "include") or name == "sluice/arrow.h")
                check(target == floor or target in allowed or public, f"{path} includes {target}/")
    done = set()
    while len(done) < len(table):
        found = {folder for folder, allowed in table.items() if allowed <= done} - done
        check(found, f"the layers of {sorted(set(table) - done)} include one another")
        done |= found


def no_circle(graph):
    """Checks that a graph, node -> nodes, has no cycle."""
    state = {}

    def visit(node, trail):
        check(state.get(node) != "open", "circle: " + " -> ".join(trail + [node]))
        if node not in state and node in graph:
            state[node] = "open"
            for target in graph[node]:
                visit(target, trail + [node])
            state[node] = "done"

    for node in graph:
        visit(node, [])


def no_cycles(_folder):
    """Headers do not include each other in cycles."""
    no_circle({path: re.findall(r'#include "([^"]+)"', text(path)) for path in files(".h")})


# Top folders whose README.md files list every module; others group modules.
DESCRIBED = ("base", "storage", "cpu", "gpu", "fpga", "api")


@functools.lru_cache(maxsize=None)
def folders_of(top):
    """Returns {folder: (modules, included folders)} of all folders with sources, top folders
    included."""
    found = {}
    for path in files(".c", ".h", ".cu", under=top):
        modules, included = found.setdefault(os.path.dirname(path), (set(), set()))
        modules.add(os.path.splitext(os.path.basename(path))[0])
        included.update(os.path.dirname(target) for target in re.findall(r'#include "([^"]+)"', text(path)))
    return {folder: (modules, included - {folder, ""}) for folder, (modules, included) in found.items()}


def no_folder_circles(_folder):
    """No two folders include each other, directly or in cycles; subfolders and headers count."""
    no_circle({folder: included for top in layers() for folder, (_, included) in folders_of(top).items()})


def readmes(_folder):
    """Folders have a README.md; those of DESCRIBED name exactly their modules and every included
    folder."""
    for top in set(layers()) - {"python"}:
        for folder in folders_of(top):
            check(os.path.exists(os.path.join(SOURCE, folder, "README.md")), f"{folder}/ has no README.md")
    for top in DESCRIBED:
        for folder, (modules, included) in folders_of(top).items():
            path = os.path.join(folder, "README.md")
            named = set(re.findall(r"^\| `(\w+)` \|", text(path), re.M))
            check(named == modules, f"{path} does not name, or names in vain, {sorted(named ^ modules)}")
            allowed = re.findall(r"`([\w/]+)/`", text(path).split("may `#include`")[1].split("Begin with")[0])
            more = {one for one in included if not any((one + "/").startswith(a.removeprefix("include/") + "/") for a in allowed)}
            check(not more, f"{path} does not list that {folder}/ includes {sorted(more)}")


def engine_order(_folder):
    """Subfolders of engine/ include only those listed before them in docs/ARCHITECTURE.md."""
    row = re.search(r"^\| \d+ \| `engine/` \|(.*)\| [^|]* \|$", text("docs/ARCHITECTURE.md"), re.M)[1]
    order = re.findall(r"`(\w+)/`", row)
    for path in files(".c", ".h", under="engine"):
        folder = path.split(os.sep)[1]
        for target in re.findall(r'#include "engine/(\w+)/', text(path)):
            check(order.index(target) <= order.index(folder), f"{path} includes engine/{target}/")


INCLUDED_FROM = ("", "include", "tests/lib", "tests/gpu/emulation")


@functools.lru_cache(maxsize=None)
def begins_with(path):
    """Our header that a file includes first, after comments and a guard: compiling the file then
    compiles that header alone. None if the file starts with anything else."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text(path), flags=re.S)
    found = re.match(r'\s*(?:#ifndef (\w+)\s+#define \1\s+)?#include (["<])([^">]+)[">]', code)
    if not found:
        return None
    folders = (os.path.dirname(path), *INCLUDED_FROM) if found.group(2) == '"' else INCLUDED_FROM
    candidates = (os.path.normpath(os.path.join(folder, found.group(3))) for folder in folders)
    return next((name for name in candidates if os.path.exists(os.path.join(SOURCE, name))), None)


def trail(path):
    """Yields a header, the header that it includes first, and so on."""
    while path is not None:
        yield path
        path = begins_with(path)


@functools.lru_cache(maxsize=None)
def reaches(path, target):
    """Whether a header is `target` or includes it."""
    return path == target or any(reaches(name, target) for name in re.findall(r'#include "([^"]+)"', text(path))
                                 if os.path.exists(os.path.join(SOURCE, name)))


def built_alone():
    """Yields (header, standard) of the headers that a source of the build includes first; yields
    nothing without a build."""
    listed = os.path.join(os.environ.get("SLC_BUILD", ""), "compile_commands.json")
    for item in load_json(listed) if os.path.exists(listed) else []:
        path = os.path.relpath(os.path.join(item["directory"], item["file"]), SOURCE)
        standard = re.search(r" -std=(\S+)", item["command"])
        # A generated source starts with no header of ours, and may not exist yet.
        if standard and "-Werror" in item["command"] and os.path.exists(os.path.join(SOURCE, path)):
            yield begins_with(path), standard.group(1)


def headers_stand_alone(folder):
    """Every header compiles alone; the public ones also as C++. Headers that the build or this test
    already compiles alone in the same language, as the first include of a file, are not compiled
    again."""
    wanted = []
    for path in files(".h"):
        if path.endswith("_tmpl.h"):
            continue  # compiled once per element type by the file that includes it
        if path.startswith("tests/gpu/device/"):
            continue  # includes the CUDA header with the same name
        # CUDA and its emulation are C++ only.
        cuda = path.startswith(("tests/gpu/emulation/", "tests/unit/gpu/")) or reaches(path, "gpu/cuda/cuda.h")
        wanted.append((path, "c++17" if cuda else "c11"))
        if path.startswith("include/"):
            wanted.append((path, "c++11"))
    done = {*built_alone(), *((begins_with(path), standard) for path, standard in wanted)}
    # The first includes of nearly all of gpu/ dominate the time: they are precompiled once.
    begin = os.path.join(folder, "begin.h")
    compile_header(begin, "gpu/cuda/cuda.h", "c++17", "-x", "c++-header", "-o", begin + ".gch")
    for path, standard in wanted:
        if (path, standard) not in done:
            ahead = standard == "c++17" and "gpu/cuda/cuda.h" in trail(begins_with(path))
            compile_header(os.path.join(folder, "alone.c"), path, standard, "-fsyntax-only",
                           *(["-include", begin] if ahead else []))


def test_folders(path):
    """Returns the folders whose fixtures the unit tests next to the header `path` share."""
    top = re.match(r"tests/unit/\w+", path)
    return {os.path.dirname(other) for other in files(".h", under=top[0])} if top else set()


def compile_header(source, path, standard, *more):
    """Compiles the header `path` from a file `source` that only includes it."""
    with open(source, "w") as file:
        file.write(f'#include "{os.path.join(SOURCE, path)}"\nextern int slc_unused;\n')
    done = subprocess.run([*os.environ.get("CC", "cc").split(), "-x", standard.rstrip("1234567890"), f"-std={standard}",
                           *(f"-I{os.path.join(SOURCE, name)}" for name in (*INCLUDED_FROM, *test_folders(path))),
                           "-Wall", "-Wextra",
                           "-Wpedantic", "-Werror", "-D_GNU_SOURCE", '-DSLC_VERSION="0"', *more, source],
                          capture_output=True, text=True)
    check(done.returncode == 0, f"{path} as {standard}: {done.stderr}")


def no_dead_files(_folder):
    """Every source file is built, every header included, every test listed."""
    builds = {os.path.dirname(p): text(p) for p in files("meson.build")}
    everything = "\n".join(text(p) for p in files(".c", ".h", ".cu", ".cpp"))
    for path in files(".c", ".cu", ".cpp"):
        name = os.path.basename(path)
        stem = re.sub(r"^(test_|fuzz_)", "", os.path.splitext(name)[0])
        folder = os.path.dirname(path)
        listed = any(f"'{name}'" in build or f"'{stem}'" in build or f"/{name}'" in build or f"/{stem}'" in build
                     for where, build in builds.items()
                     if folder.startswith(where) or where == "")
        check(listed or f'"{path}"' in everything or f'/{name}"' in everything,
              f"{path} is not built")
    for path in files(".h"):
        short = path[len("include/"):] if path.startswith("include/") else path
        check(f'"{short}"' in everything or f'"{os.path.basename(path)}"' in everything
              or f"<{short}>" in everything or path.startswith("include/"),
              f"{path} is never included")


def words(_folder):
    """No unfinished work is left in the sources."""
    pattern = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|#if 0")
    for path in files(".c", ".h", ".cu", ".cpp"):
        found = pattern.search(text(path))
        check(not found, f"{path}: {found and found.group(0)}")


def retired(_folder):
    """No identifier or file name of the library contains a word that docs/GLOSSARY.md retires for
    every use."""
    rows = re.findall(r"^\|[^|]*\|[^|]*\| ([^|]+) \|$", text("docs/GLOSSARY.md").split("|---|---|---|")[1], re.M)
    gone = {word for row in rows for word in row.split(", ") if "(" not in word}
    check({"owned", "sheet", "tile_supply"} <= gone, f"the table of docs/GLOSSARY.md is not found: {gone}")
    pattern = re.compile(rf"(?<![^\W_])({'|'.join(sorted(gone))})(?![^\W_])", re.I)
    for floor in layers():
        if floor in ("tools", "python"):
            continue
        for path in files(".c", ".h", ".cu", under=floor):
            check(not pattern.search(path), f"{path}: retired, see docs/GLOSSARY.md")
            code = re.sub(r"/\*.*?\*/|\"(\\.|[^\"])*\"|//[^\n]*", "", text(path), flags=re.S)
            found = pattern.search(code)
            check(not found, f"{path}: {found and found[0]} is retired, see docs/GLOSSARY.md")


def only_tools_print(_folder):
    """The library neither prints nor exits."""
    pattern = re.compile(r"\b(printf|puts|putchar|exit|abort|perror)\s*\(|\b(stdout|stderr)\b")
    for floor in layers():
        if floor in ("tools", "python"):
            continue
        for path in files(".c", ".h", ".cu", under=floor):
            code = re.sub(r"/\*.*?\*/|\"(\\.|[^\"])*\"|//[^\n]*", "", text(path), flags=re.S)
            for line in code.splitlines():
                found = pattern.search(line)
                check(not found, f"{path}: {line.strip()}")


def options_of_command():
    """Returns the long and short option names in the tables of tools/."""
    tables = "\n".join(text(path) for path in files(".c", ".h", under="tools"))
    names = set(re.findall(r'[{(][\s\\]*"([\w-]+)",[\s\\]*OPTION_[A-Z]', tables)) | set(re.findall(r'\.alias = "([\w-]+)"', tables))
    letters = set(re.findall(r"\.letter = '(.)'", tables))
    check(len(names) > 100 and {"memory", "max-temp", "rank"} <= names and {"t", "o", "r"} <= letters,
          f"the option tables are not found: {len(names)} options, {len(letters)} letters")
    return names | {"help", "version"}, letters


def literals(path):
    """Returns the string literals of a source file."""
    return re.findall(r"/\*.*?\*/|//[^\n]*|'(?:\\.|[^'\\])+'|" r'"((?:\\.|[^"\\])*)"', text(path), re.S)


def no_options_in_library(_folder):
    """Messages of the library name no options: they have a field, which each interface spells."""
    names, letters = options_of_command()
    count = 0
    for floor in layers():
        if floor in ("tools", "python"):
            continue
        for path in files(".c", ".h", ".cu", under=floor):
            for literal in literals(path):
                count += 1
                found = re.findall(r"(?<![\w-])--([a-z][\w-]*)", literal)
                check(not names & set(found), f"{path} names an option: {literal}")
                found = re.findall(r"\(-([a-zA-Z])\b", literal)
                check(not letters & set(found), f"{path} names an option: {literal}")
    check(count > 5000, f"there are {count} string literals")


def fields(_folder):
    """Every error field has an option, command or operand, a C member, argument or function, and a
    Python keyword."""
    names, letters = options_of_command()
    operands = {word.strip("[]") for path in files(".c", under="tools/cmd")
                for one in re.findall(r'\.operands = "([^"]+)"', text(path)) for word in one.split()}
    known = re.findall(r"^    SLC_FIELD_(\w+)", text("base/error/status.h").split("enum slc_error_field {")[1].split("}")[0], re.M)
    python = "\n".join(text(path) for path in files(".py", under="python/sluice"))
    keywords = dict(re.findall(r'"([\w>-]+)": "(\w+)"', python.split("KEYWORDS = {")[1].split("}")[0]))
    headers = "\n".join(text(path) for path in files(".h", under="include/sluice"))
    tables = [dict(re.findall(r'\[SLC_FIELD_(\w+)\] = "([^"]+)"', text(path))) for path in ("tools/options/fields.c", "api/call.c")]
    check(known[0] == "NONE" and len(known) > 30, f"{known}")
    for table in tables:
        check(set(table) == set(known[1:]), f"fields without a name: {sorted(set(known[1:]) ^ set(table))}")
    for field in known[1:]:
        option, member = (table[field] for table in tables)
        found = re.search(r"(?:^|^sluice layout )-(?:-([\w-]+)|(\w))(?: |$)", option)
        check(found and (found[1] in names or found[2] in letters) or operands & set(option.split()),
              f"{field}: there is no option {option}")
        for name in member.split("->"):
            check(re.search(rf"\b{name}\b", headers), f"{field}: there is no {name}")
        keyword = keywords.get(member, member)
        # Python users cannot choose the slots of the ring.
        check(field == "SLOTS" or re.search(rf"\b{keyword}: |def {keyword}\(", python), f"{field}: Python has no {keyword}")


def sizes(_folder):
    """Files are short: about 600 lines at most."""
    for path in files(".c", ".h", ".cu", ".cpp"):
        count = text(path).count("\n")
        check(count <= 620, f"{path} has {count} lines")


def packages(_folder):
    """The Debian packages match the project's version, the symbols of the library and the build
    dependencies."""
    version = re.search(r"^  version: '([^']+)'", text("meson.build"), re.M)[1]
    check(text("debian/changelog").startswith(f"sluice-tensor ({version}) "), "debian/changelog has another version")
    shown = set(re.findall(r"^    (sluice_\w+);", text("api/libsluice.map"), re.M))
    told = set(re.findall(r"^ (sluice_\w+)@", text("debian/libsluice0.symbols"), re.M))
    check(shown == told and len(shown) > 40, f"libsluice0.symbols: {sorted(shown ^ told)}")
    needed = set(re.search(r"^slc_packages=\((.*?)\)", text("tools/scripts/lib/install.sh"), re.S | re.M)[1].split())
    listed = set(re.findall(r"^ ([\w.+-]+)", text("debian/control").split("Build-Depends:")[1].split("\n\n")[0], re.M))
    missing = needed - listed - {"gcc", "g++", "libc6-dev"}  # which build-essential brings
    check(not missing, f"debian/control does not build-depend on {sorted(missing)}")
    cross = set(re.search(r"--include=\\\n(.*?)\n    #", text("tools/scripts/cross-aarch64"), re.S)[1].replace("\\\n", "").split(","))
    missing = {name for name in needed if name.endswith("-dev")} - cross
    check(not missing, f"tools/scripts/cross-aarch64 does not install {sorted(missing)}")


run([
    ("folders include only layers below", layering),
    ("headers have no cycles", no_cycles),
    ("subfolders have no cycles", no_folder_circles),
    ("subfolders of engine/ are in the order of their table", engine_order),
    ("README.md of each folder", readmes),
    ("headers are self-contained", headers_stand_alone),
    ("no dead files", no_dead_files),
    ("no forgotten words", words),
    ("no retired words in identifiers", retired),
    ("only tools/ prints", only_tools_print),
    ("the library names no options", no_options_in_library),
    ("fields of errors have names", fields),
    ("file sizes", sizes),
    ("Debian packages", packages),
])
