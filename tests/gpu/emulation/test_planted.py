#!/usr/bin/env python3
"""Checks that each planted fault of test_emulation is reported: by the emulation itself or by the
sanitizer of the build. If neither can detect it, the order of work shows it for some seed. Correct
kernels run under the same sanitizers in test_emulation."""

import subprocess
import sys

PROGRAM, SANITIZER = sys.argv[1:3]
SEEDS = 4
# Fault: its reporter, by the sanitizer of the build; "always": the emulation itself.
REPORTED = {
    "missing __syncthreads": {"thread": "data race"},
    "missing __syncwarp": {"thread": "data race"},
    "missing __syncwarp between others": {"thread": "data race"},
    "write after read": {"thread": "data race"},
    "plain add": {"thread": "data race"},
    "beyond shared memory": {"address": "heap-buffer-overflow"},
    "beyond a part of memory": {"address": "use-after-poison"},
    "torn warp": {"always": "a thread of its mask waits elsewhere, or has ended"},
    "torn block": {"always": "other threads of the block have ended"},
    "missing event": {"thread": "data race", "always": "out of order"},
    "reused buffer": {"thread": "data race"},
    "host touches device": {"address": "use-after-poison"},
    "kernel reads unwritten memory": {"none": "thread 63: byte 0 of the 4 that it reads"},
    "copy reads unwritten memory": {"none": "that a copy reads was never written"},
}


def outputs(fault):
    """Yields the output of the program for each seed."""
    for seed in range(1, SEEDS + 1):
        done = subprocess.run([PROGRAM, fault, str(seed)], capture_output=True, text=True, timeout=120)
        yield done.stdout + done.stderr


def expected(fault):
    """Returns the report of the fault that this build must make; None if the build cannot detect
    the fault."""
    kinds = REPORTED[fault]
    for kind, text in kinds.items():
        if kind != "always" and kind in SANITIZER:
            return text
    return kinds.get("always")


def main():
    faults = [fault for fault in REPORTED if expected(fault) is not None]
    unseen = [fault for fault in REPORTED if fault not in faults]
    if unseen:
        print(f"# left to builds under other sanitizers: {', '.join(unseen)}")
    print(f"1..{len(faults)}")
    failed = 0
    for number, fault in enumerate(faults, 1):
        text = expected(fault)
        said = list(outputs(fault))
        seen = [text in one for one in said]
        # The order is random: it shows the fault for some seeds; all other reports for every seed.
        good = any(seen) if text == "out of order" else all(seen)
        if not good:
            failed += 1
            for line in said[seen.index(False)].splitlines()[:40]:
                print(f"# {line}")
        print(f"{'ok' if good else 'not ok'} {number} - planted: {fault}")
    sys.exit(1 if failed else 0)


main()
