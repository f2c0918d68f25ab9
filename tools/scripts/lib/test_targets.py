#!/usr/bin/env python3
"""Prints the ninja targets that the named tests of a build folder need, one per line.

    test_targets.py FOLDER [--alone] < NAMES

NAMES are test names as `meson test --list` prints them, without the project. Prints the programs
and modules that these tests depend on. Without --alone, also prints all default targets outside
tests/.
"""

import json
import os
import subprocess
import sys


def introspected(folder, what):
    return json.loads(subprocess.run(["meson", "introspect", folder, what], check=True, stdout=subprocess.PIPE).stdout)


def main(folder, alone, names):
    folder = os.path.realpath(folder)
    tests = introspected(folder, "--tests")
    unknown = names - {test["name"] for test in tests}
    if unknown:
        sys.exit(f"{folder} has no test {min(unknown)}")
    needed = {target for test in tests if test["name"] in names for target in test["depends"]}
    for target in introspected(folder, "--targets"):
        tested = os.sep + "tests" + os.sep in target["defined_in"]
        if target["id"] in needed or (not alone and not tested and target["build_by_default"]):
            for path in target["filename"]:
                print(os.path.relpath(os.path.realpath(path), folder))


if __name__ == "__main__":
    main(sys.argv[1], "--alone" in sys.argv[2:], {line.strip() for line in sys.stdin if line.strip()})
