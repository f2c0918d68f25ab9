#!/usr/bin/env python3
"""The machine code of gpu/: no kernel spills registers or exceeds its limit in ceilings.txt, and
the assembly has the intended wide loads and reductions.

    test_assembly.py REPORT.. PTX..            the tests
    test_assembly.py --write REPORT.. PTX..    rewrites ceilings.txt from the current code"""

import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "..", name) for name in ("lib", "oracle")]
from tap import check, run  # noqa: E402

CEILINGS = os.path.join(os.path.dirname(__file__), "ceilings.txt")
COMPILING = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'")
SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")

# Required instructions per source file, and why.
WANTED = {
    "dense_gram": {r"ld\.shared\.v2\.f64": "a square's columns come two at a time"},
    "dense_update": {r"ld\.global\.nc\.v2\.f64": "a strip of the triangle comes by 16 bytes",
                     r"fma\.rn\.f64": "sums are fused on every device alike"},
    "measure": {r"ld\.global\.v4": "memory is read by 16 bytes"},
    "measure_fma": {r"fma\.rn\.f64": "a peak is that of fused operations",
                    r"fma\.rn\.f32": "a peak is that of fused operations"},
    "mttkrp_exact": {r"ld\.global\.nc\.v2\.f64": "rows of factors come by 16 bytes",
                     r"ld\.global\.nc\.v4\.f32": "rows of factors come by 16 bytes",
                     r"atom\.global\.add\.u64": "words are added where memory is"},
    "mttkrp_ordinary": {r"ld\.global\.nc\.v2\.f64": "rows of factors come by 16 bytes",
                   r"ld\.global\.nc\.v4\.f32": "rows of factors come by 16 bytes",
                   r"match\.any\.sync": "nonzeros of a bucket are counted together"},
    "product_kernels": {r"ld\.global\.v2\.f64": "rows of matrices are read by 16 bytes",
                        r"ld\.global\.v4\.f32": "rows of matrices are read by 16 bytes"},
    "ttm": {r"ld\.global\.v2\.f64": "rows of the matrix are read by 16 bytes",
            r"ld\.global\.v4\.f32": "rows of the matrix are read by 16 bytes"},
}
# Instructions that a source file must not have, and why; the second file has them.
UNWANTED = {"xplat": (r"\b(atom|red)\.", "baseline_atomic", "units of work share no element of the output")}


def demangled(names):
    """Returns the names of kernels as in the source: slc_sum<float, 4>."""
    done = subprocess.run(["c++filt", "-p"], input="\n".join(names), capture_output=True, text=True, check=True)
    return [re.sub(r"^void ", "", name).replace("(anonymous namespace)::", "") for name in done.stdout.splitlines()]


def kernels(reports):
    """{(kernel, architecture): (registers, stack bytes, spilled bytes)}"""
    found = {}
    for path in reports:
        with open(path) as file:
            lines = file.read().splitlines()
        at = None
        for line in lines:
            if COMPILING.search(line):
                at = COMPILING.search(line).groups()
                stack = spilled = None
            elif at and SPILLS.search(line):
                numbers = [int(n) for n in SPILLS.search(line).groups()]
                stack, spilled = numbers[0], numbers[1] + numbers[2]
            elif at and USED.search(line):
                check(stack is not None, f"{path}: no stack frame reported for {at[0]}")
                found[at] = (int(USED.search(line).group(1)), stack, spilled)
                at = None
    names = sorted({name for name, _ in found})
    readable = dict(zip(names, demangled(names)))
    return {(readable[name], arch): numbers for (name, arch), numbers in found.items()}


def ceilings():
    """{(kernel, architecture): registers}"""
    with open(CEILINGS) as file:
        rows = [line.split("|") for line in file if line.strip() and not line.startswith("#")]
    archs = [cell.strip() for cell in rows[0][1:]]
    return {(row[0].strip(), arch): int(cell) for row in rows[1:] for arch, cell in zip(archs, row[1:])
            if cell.strip()}


def write(found):
    archs = sorted({arch for _, arch in found}, key=int)
    names = sorted({name for name, _ in found})
    width = max(len(name) for name in names)
    with open(CEILINGS, "w") as file:
        file.write("# Registers of a thread that each kernel may take, by architecture: test_assembly.py holds them.\n"
                   "# Written by test_assembly.py --write; a higher number needs a reason in the change that brings it.\n")
        file.write(" | ".join([f"{'kernel':{width}}", *(f"{arch:>3}" for arch in archs)]) + "\n")
        for name in names:
            # In steps of 8, the unit in which registers are allocated.
            cells = [f"{(found[name, arch][0] + 7) // 8 * 8 if (name, arch) in found else '':>3}" for arch in archs]
            file.write(" | ".join([f"{name:{width}}", *cells]) + "\n")


def main():
    paths = [path for path in sys.argv[1:] if path != "--write"]
    reports = [path for path in paths if path.endswith(".ptxas")]
    assembly = {os.path.splitext(os.path.basename(path))[0]: path for path in paths if path.endswith(".ptx")}
    found = kernels(reports)
    if "--write" in sys.argv:
        write(found)
        return

    def spills(_folder):
        for (name, arch), (_, stack, spilled) in found.items():
            check(spilled == 0, f"{name} spills {spilled} bytes on sm_{arch}")
            check(stack == 0, f"{name} has a stack frame of {stack} bytes on sm_{arch}")

    def registers(_folder):
        limits = ceilings()
        for (name, arch), (used, _, _) in found.items():
            check((name, arch) in limits, f"{name} has no ceiling for sm_{arch}: ceilings.txt")
            check(used <= limits[name, arch], f"{name}: {used} registers on sm_{arch}, at most {limits[name, arch]}")
        for name in sorted({name for name, _ in limits} - {name for name, _ in found}):
            check(False, f"ceilings.txt names {name}, which does not exist")

    def instructions(_folder):
        for source, wanted in WANTED.items():
            with open(assembly[source]) as file:
                text = file.read()
            for instruction, why in wanted.items():
                check(re.search(instruction, text), f"{source}.ptx has no {instruction}: {why}")

        for source, (instruction, other, why) in UNWANTED.items():
            text, control = (open(assembly[name]).read() for name in (source, other))
            check(re.search(instruction, text) is None, f"{source}.ptx has {instruction}, but {why}")
            check(re.search(instruction, control), f"{other}.ptx has no {instruction}")

    check(found, "no kernels in the reports")
    sys.argv[1:] = []
    run([("no kernel spills", spills), ("registers are below their ceilings", registers),
         ("wide loads and reductions are there", instructions)])


main()
