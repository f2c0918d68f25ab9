"""Finds the sources that tools/scripts/lint analyses: those of a compile database, each once, alone
or in bundles."""

import collections
import functools
import json
import os
import re
import shlex

SOURCE = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
PLANTED = os.path.join(SOURCE, "tools", "scripts", "lib", "lint_planted.c.in")
MODEL = os.path.join(SOURCE, "tools", "scripts", "lib", "lint_model.h.in")
# Compiler arguments that can differ between sources. All other arguments are the same for all
# sources, do not affect findings, or are specific to gcc.
MATTERS = re.compile(r"-(D|U|std=|m)")
# Warnings of clang. The warnings of gcc are already errors in the build.
WARNINGS = ("-Wall", "-Wextra", "-Wimplicit-fallthrough", "-Wloop-analysis", "-Wcomma", "-Wunreachable-code-aggressive",
            "-Wshift-sign-overflow", "-Wformat=2", "-Wno-format-nonliteral", "-Wno-unused-function")
# Search path of the headers of the project, in addition to the folder of the including file. It
# does not have the folders of all sources of a bundle, because base/ would then supply <limits.h>.
INCLUDED_FROM = [os.path.join(SOURCE, folder).rstrip(os.sep)
                 for folder in ("", "include", "tests/lib", "tests/gpu/emulation")]
# Largest size of a bundle. Larger bundles cost more time than they save, because processors are
# idle while the last bundle is analysed.
BUNDLE_BYTES = 600_000
# Names that many sources define independently. A bundle appends a number to each.
NUMBERED = (("main", re.compile(r"^int main\(", re.M)),
            ("tests", re.compile(r"^static const struct slc_test tests\[", re.M)),
            ("LLVMFuzzerTestOneInput", re.compile(r"^int LLVMFuzzerTestOneInput\(", re.M)))
# Matches names at file scope: macros, tags, types, functions, initialised objects, other objects.
OWN_NAMES = re.compile(
    r"^#\s*define\s+(\w+)|^(?:struct|enum|union|class) (\w+) \{|^\} (\w+)[;[]"
    r"|^[A-Za-z_][\w \t*]*?[ *\n](?:(?:__\w+|SLC_\w+)\(.*\)\s*)?(\w+)\([^;{}]*\)[\w\s]*[{;]"
    r"|^[A-Za-z_][\w \t*]*[ *](\w+)(?:\[[^;={]*)?\s*=|^static [\w \t*]*[ *](\w+)(?:\[[^;={]*)?;", re.M)
TAGS = re.compile(r"^(struct|enum|union) (\w+)[ ;]", re.M)
CONSTANTS = re.compile(r"^enum(?: \w+)? \{([^}]*)\}", re.M)


class CannotLint(Exception):
    """The sources cannot be analysed. The message has the reason and a remedy."""


def is_ours(folder):
    return (folder + os.sep).startswith(SOURCE + os.sep)


class Source:
    """The file `path` of the repository, which is compiled as file `given`, with `arguments` and
    the include path `folders`."""

    def __init__(self, path, given, arguments, folders):
        self.path, self.given, self.arguments, self.folders = path, given, arguments, folders
        self.real = path and os.path.join(SOURCE, path)
        self.is_c = given is not None and given.endswith(".c")

    @property
    def members(self):
        return [self]

    @property
    def is_product(self):
        """True for a C source outside tests/. Sources of gpu/ are C++ here, for the emulated
        device."""
        return self.is_c and not self.path.startswith("tests" + os.sep)

    def includes(self):
        return [f"-I{folder}" for folder in [*INCLUDED_FROM, *self.folders] if is_ours(folder)]

    @property
    def model(self):
        """Returns the arguments for a tool that analyses one source at a time."""
        return ["-include", MODEL] if self.is_product and self.path != "base/error/error.c" else []

    def entry(self, alone=False):
        """Returns the entry of the source in a compile database."""
        return {"directory": SOURCE, "file": self.given,
                "arguments": ["cc" if self.is_c else "c++", *self.arguments, *(f"-I{f}" for f in INCLUDED_FROM),
                              *(f"{'-iquote' if is_ours(f) else '-isystem'}{f}" for f in self.folders), *WARNINGS,
                              *(self.model if alone else []), "-c", self.given]}


@functools.lru_cache(maxsize=None)
def own_names(path):
    """Returns {name: owner} of a file, its names that are numbered, and the files of the project
    that it includes."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    names = {name: path for names in OWN_NAMES.findall(text) for name in names if name}
    for constants in CONSTANTS.findall(text):
        names.update((name, path) for name in re.findall(r"(?:^|,)\s*(\w+)", constants))
    # Many files may declare the same structure, but no file may use its tag for an enumeration.
    names.update((f"tag {name}", kind) for kind, name in TAGS.findall(text))
    numbered = [name for name, defined in NUMBERED if defined.search(text)]
    for name in numbered:
        names.pop(name, None)
    included = []
    for name in re.findall(r'^#\s*include "([^"]+)"', text, re.M):
        candidates = (os.path.join(folder, name) for folder in (os.path.dirname(path), *INCLUDED_FROM))
        included += [os.path.normpath(candidate) for candidate in candidates if os.path.exists(candidate)][:1]
    return names, numbered, included


def all_names(path):
    """Returns {name: owners} of a source and of all files of the project that it includes."""
    found, todo, done = collections.defaultdict(set), [path], set()
    while todo:
        path = todo.pop()
        if path not in done:
            done.add(path)
            names, _, included = own_names(path)
            for name, owner in names.items():
                found[name].add(owner)
            todo += included
    return found


def compiled(path, build):
    """Returns the source of a file of the compile database: the file itself, or the only file that
    it includes."""
    if not path.startswith(build + os.sep):
        return path
    with open(path, encoding="utf-8") as file:
        found = re.fullmatch(r'#include "([^"]+)"\s*', file.read())
    return os.path.join(SOURCE, found.group(1)) if found else None


def sources(build, parts):
    """Returns the sources of the build folder whose paths contain one of `parts` (all sources if
    there are no parts), each with the arguments of its first entry."""
    build = os.path.realpath(build)
    listed = os.path.join(build, "compile_commands.json")
    try:
        with open(listed, encoding="utf-8") as file:
            entries = json.load(file)
    except OSError as reason:
        raise CannotLint(f"{listed}: {reason.strerror}; configure with meson first, or name another folder with "
                         "--build") from reason
    found = {}
    for entry in entries:
        given = os.path.realpath(os.path.join(entry["directory"], entry["file"]))
        real = compiled(given, build)
        path = real and os.path.relpath(real, SOURCE)
        if path is None or path.startswith("..") or path in found or not any(part in path for part in parts or [""]):
            continue
        words = shlex.split(entry["command"])
        folders = (os.path.realpath(os.path.join(entry["directory"], word[2:])) for word in words if word[:2] == "-I")
        found[path] = Source(path, given, [word for word in words if MATTERS.match(word)],
                             [folder for folder in folders if not (folder + os.sep).startswith(build + os.sep)])
    if not found:
        raise CannotLint(f"{listed} has no such source")
    return list(found.values())


class Bundle(Source):
    """Sources that are analysed as one file, which includes them, so that their headers are read
    once."""

    def __init__(self, first):
        super().__init__(None, None, first.arguments, [])
        self.is_c = first.is_c
        self.bundled, self.names, self.bytes = [], {}, 0

    @property
    def members(self):
        return self.bundled

    def takes(self, names, size):
        clash = any(owners.isdisjoint(self.names.get(name, owners)) for name, owners in names.items())
        return not self.bundled or (self.bytes + size <= BUNDLE_BYTES and not clash)

    def add(self, source, names, size):
        self.bundled.append(source)
        self.folders = list(dict.fromkeys([*self.folders, *source.folders]))
        self.bytes += size
        for name, owners in names.items():
            self.names.setdefault(name, set()).update(owners)

    def write(self, path):
        self.given = path
        with open(path, "w", encoding="utf-8") as file:
            for number, member in enumerate(self.bundled):
                numbered = own_names(member.real)[1]
                file.writelines(f"#define {name} {name}_{number}\n" for name in numbered)
                file.write(f'#include "{member.given}"\n')
                file.writelines(f"#undef {name}\n" for name in numbered)


def bundles(wanted, folder):
    """Returns the sources `wanted` in as few bundles as possible. Writes the bundles to
    `folder`."""
    groups = collections.defaultdict(list)
    for source in wanted:
        names, size = all_names(source.real), os.path.getsize(source.real)
        group = groups[source.is_c, tuple(sorted(source.arguments))]
        bundle = next((b for b in group if b.takes(names, size)), None)
        if bundle is None:
            bundle = Bundle(source)
            group.append(bundle)
        bundle.add(source, names, size)
    made = [bundle for group in groups.values() for bundle in group]
    for number, bundle in enumerate(made):
        bundle.write(os.path.join(folder, f"bundle_{number}.{'c' if bundle.is_c else 'cpp'}"))
    return made


class Planted(Source):
    """lint_planted.c.in, written to `folder` as a source. Its comments name the tool and the check
    that find each fault."""

    def __init__(self, folder):
        path = os.path.join(folder, "lint_planted.c")
        self.faults = []
        with open(PLANTED, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as copy:
            for number, line in enumerate(file, 1):
                copy.write(line)
                for tool, check, full in re.findall(r"/\* planted: (\S+) (\S+?)( full)? \*/", line):
                    self.faults.append((number, tool, check, bool(full)))
        super().__init__(os.path.relpath(path, SOURCE), path, ["-std=c11", "-D_GNU_SOURCE"], [])
