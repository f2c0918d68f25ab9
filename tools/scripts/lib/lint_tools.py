"""Runs the tools of tools/scripts/lint and reads their findings."""

import concurrent.futures
import dataclasses
import json
import os
import re
import shutil
import subprocess

from lint_sources import SOURCE, CannotLint, bundles

TIDY = os.path.join(SOURCE, ".clang-tidy")
# Checks of .clang-tidy that the short form omits. For tests, the long form omits them too, because
# the analyzer does not know that assertions of CUnit end a test.
DEAREST = "-clang-analyzer-*"
# Checks that are omitted for C++, the language of the tests of gpu/. Checks cost more in C++,
# because each check also analyses the C++ library.
DEAREST_OF_TESTS = DEAREST + ",-bugprone-infinite-loop,-bugprone-use-after-move"
FINDING = re.compile(r"(/[^:]+):(\d+):(\d+): (?:warning|error|performance|portability|information): (.*) \[([^\]]+)\]")


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    column: int
    message: str
    check: str
    notes: tuple = dataclasses.field(default=(), compare=False)

    def lines(self):
        return [f"{self.path}:{self.line}:{self.column}: {self.message} [{self.check}]", *self.notes]


def read_findings(text):
    """Returns the findings that a tool printed as PATH:LINE:COLUMN: SEVERITY: MESSAGE [CHECK], each
    with the lines that follow it."""
    found = []
    for line in text.splitlines():
        begin = FINDING.fullmatch(line)
        if begin:
            path, row, column, message, check = begin.groups()
            path, notes = os.path.relpath(os.path.realpath(path), SOURCE), []
            found.append((Finding(path, int(row), int(column), message, check), notes))
        elif found:
            notes.append("    " + line)
    return [dataclasses.replace(finding, notes=tuple(notes)) for finding, notes in found]


class Tool:
    """A program that analyses a source, or several sources in a bundle."""

    name = None
    # names of checks that report a source that the tool cannot parse
    failures = ()

    def program(self):
        found = shutil.which(self.name)
        if not found:
            raise CannotLint(f"{self.name} not found: install the package {self.name} (on Debian, tools/check does)")
        return found

    def choose(self, wanted, full):
        """Returns the sources that the tool analyses."""
        return wanted

    def prepare(self, units, folder, full):
        """Prepares `folder` for the commands; called before `command`."""

    def command(self, unit, folder, full):
        raise NotImplementedError

    def look(self, units, folder, full):
        """Yields the findings in each of `units`, one unit per processor at a time."""
        def look_at(unit):
            done = subprocess.run(self.command(unit, folder, full), capture_output=True, text=True, errors="replace",
                                  cwd=SOURCE, check=False)
            found = read_findings(done.stdout + done.stderr)
            if done.returncode != 0 and not any(finding.check in self.failures for finding in found):
                raise CannotLint(f"{self.name} ended with status {done.returncode} at {unit.given}: "
                                 f"{done.stderr[-2000:]}")
            return found

        self.prepare(units, folder, full)
        with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            yield from pool.map(look_at, units)

    def run(self, planted, wanted, folder, full):
        """Returns the findings, each once. The long form analyses every source alone, like a
        compiler."""
        first = [planted, *(wanted if full else bundles(wanted, folder))]
        results, alone = set(), []
        for unit, found in zip(first, self.look(first, folder, full)):
            # The search for clashing names is not exact. If a bundle does not parse, its sources
            # are analysed one by one.
            if len(unit.members) > 1 and any(finding.check in self.failures for finding in found):
                alone += unit.members
            else:
                results.update(found)
        results.update(finding for found in self.look(alone, folder, full) for finding in found)
        return sorted(results)


class ClangTidy(Tool):
    name = "clang-tidy"
    failures = ("clang-diagnostic-error",)

    def prepare(self, units, folder, full):
        with open(os.path.join(folder, "compile_commands.json"), "w", encoding="utf-8") as file:
            json.dump([unit.entry(alone=full) for unit in units], file)

    def command(self, unit, folder, full):
        less = [] if full and unit.is_product else ["--checks=" + (DEAREST if full or unit.is_c else DEAREST_OF_TESTS)]
        return [self.program(), "--quiet", "-p", folder, "--config-file=" + TIDY, *less, unit.given]


class Cppcheck(Tool):
    name = "cppcheck"
    failures = ("syntaxError", "internalAstError", "internalError", "preprocessorErrorDirective", "unknownMacro")

    def choose(self, wanted, full):
        # The short form omits tests: they would double the run time, and their findings are less
        # important.
        return [source for source in wanted if full or source.is_product]

    def command(self, unit, folder, full):
        arguments = [word for word in unit.arguments if not word.startswith("-m")]
        return [self.program(), "--quiet", "--enable=warning,performance,portability", "--library=posix,gnu",
                "--suppressions-list=" + os.path.join(SOURCE, "tools", "scripts", "lib", "cppcheck-suppressions"),
                "--template={file}:{line}:{column}: {severity}: {message} [{id}]",
                "--template-location={file}:{line}: {info}",
                *(word.replace("-std=", "--std=") for word in arguments), *unit.includes(), unit.given]


TOOLS = (ClangTidy(), Cppcheck())
