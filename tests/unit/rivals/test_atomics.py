#!/usr/bin/env python3
"""Machine code of the baselines: the kernels of [XPLAT] have no atomic instructions, in any
instruction set. Those of the lists of coordinates have some, which shows that the test finds them.

    test_atomics.py OBJDUMP XPLAT-LIBRARY.. -- COO-LIBRARY.."""

import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "..", name) for name in ("lib", "oracle")]
from tap import check, run  # noqa: E402

# x86: a lock prefix, or an exchange with memory, which locks without a prefix. ARM: exclusive and
# atomic accesses.
ATOMIC = re.compile(r"\t(lock\b.*|xchg\b.*\(.*|(?:ld|st)a?l?xr\w*\b.*|(?:cas|swp|ld(?:add|clr|eor|set|[su]m(?:ax|in)))a?l?[bh]?\b.*)$", re.M)
KERNELS = ("ttm_element", "ttm_fiber", "mttkrp_element", "mttkrp_row")


def disassembly(objdump, library):
    done = subprocess.run([objdump, "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True)
    return done.stdout


def main():
    objdump, libraries = sys.argv[1], sys.argv[2:]
    split = libraries.index("--")
    xplat, coo = libraries[:split], libraries[split + 1:]

    def none(_folder):
        check(xplat, "no libraries")
        for library in xplat:
            code = disassembly(objdump, library)
            for kernel in KERNELS:
                for element in ("f32", "f64"):
                    check(f"<xplat_{kernel}_{element}_" in code, f"{library} has no kernel {kernel} for {element}")
            found = ATOMIC.search(code)
            check(found is None, f"{library}: {found and found.group(1)}")

    def some(_folder):
        check(coo, "no libraries")
        for library in coo:
            check(ATOMIC.search(disassembly(objdump, library)), f"{library}: no atomic instruction was found")

    sys.argv[1:] = []
    run([("the kernels of XPLAT have no atomic instructions", none),
         ("the kernels over lists of coordinates have some", some)])


main()
