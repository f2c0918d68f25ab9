#!/usr/bin/env python3
"""tap_total.py BROKEN LOG..: adds up the TAP points of the test logs of meson. Prints the output of
failed tests, and last the line `N passed, N failed, N skipped`. The exit status is 0 only if
nothing failed and something passed.

A program that fails without a failing point (a crash, a timeout, too few points) counts as one
failure. BROKEN is the number of builds that did not reach their tests; each of them also counts as
one failure.
"""

import json
import re
import sys

POINT = re.compile(r"^(not )?ok\b[^#]*(#\s*(SKIP|TODO)\b.*)?", re.IGNORECASE)
PLAN = re.compile(r"^1\.\.(\d+)")


def points(text):
    """Returns (passed, failed, skipped, planned) of the TAP of a program."""
    passed = failed = skipped = 0
    planned = None
    for line in text.splitlines():
        plan = PLAN.match(line)
        if plan:
            planned = int(plan.group(1))
            if planned == 0:
                skipped += 1
        point = POINT.match(line)
        if not point:
            continue
        if point.group(2):
            skipped += 1
        elif point.group(1):
            failed += 1
        else:
            passed += 1
    return passed, failed, skipped, planned


def show_failure(log, test):
    print(f"\n--- {log}: {test['name']}: {test['result']} (exit status {test.get('returncode')})")
    for stream in ("stdout", "stderr"):
        lines = (test.get(stream) or "").splitlines()
        for line in lines[-200:]:
            print("    " + line)


def main():
    totals = [0, int(sys.argv[1]), 0]
    for log in sys.argv[2:]:
        with open(log) as file:
            tests = [json.loads(line) for line in file if line.strip()]
        here = [0, 0, 0]
        for test in tests:
            passed, failed, skipped, planned = points(test.get("stdout") or "")
            result = test["result"]
            if planned is None and result == "SKIP":
                skipped += 1
            elif planned is None and result == "OK":
                passed += 1
            short = planned is not None and passed + failed + skipped < planned
            bad = result not in ("OK", "SKIP", "EXPECTEDFAIL")
            if failed == 0 and (bad or short):
                failed = 1
            if failed:
                show_failure(log, test)
            for i, number in enumerate((passed, failed, skipped)):
                here[i] += number
        print(f"{log}: {len(tests)} programs, {here[0]} passed, {here[1]} failed, {here[2]} skipped")
        totals = [a + b for a, b in zip(totals, here)]
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped")
    return 1 if totals[1] or not totals[0] else 0


sys.exit(main())
