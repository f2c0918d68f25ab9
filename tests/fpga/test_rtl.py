#!/usr/bin/env python3
"""The SystemVerilog of fpga/rtl: simulated by Verilator and compared with the C designs and the
model of fpga/, and synthesized by Yosys."""

import functools
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import namedtuple

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import FULL, SOURCE, Skip, check, run  # noqa: E402

HERE = os.path.join(SOURCE, "tests", "fpga")
RTL = os.path.join(SOURCE, "fpga", "rtl")
CASES = os.environ.get("SLC_ELEMENT_CASES", "element_cases")
SHARED = tempfile.TemporaryDirectory(dir=os.environ.get("SLC_TEST_DIR"))
SEED = int(os.environ.get("SLC_TEST_SEED", "1"))

# designs, numbered as enum slc_fpga_design: module, rows of its on-chip matrix
TTM, TTM_ON_CHIP, MTTKRP = range(3)
MODULES = ("ttm", 0), ("ttm", 64), ("mttkrp", None)
Element = namedtuple("Element", "design cols lanes beat_words memory multiply add")


def output_of(*command, **options):
    """Returns what a command prints; raises an error with its output if it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def need(tool):
    if not shutil.which(tool):
        raise Skip(f"{tool} is not installed")


@functools.lru_cache(maxsize=None)
def compiler():
    """Returns a command that compiles simulations, and the compiled runtime of Verilator, which they
    share: compiling it takes longer than the rest."""
    include = os.path.join(output_of("verilator", "--getenv", "VERILATOR_ROOT").strip(), "include")
    command = (*os.environ.get("CXX", "c++").split(), "-std=c++17", "-ffp-contract=off", "-w", "-I", include,
               "-I", os.path.join(include, "vltstd"), "-DVM_COVERAGE=0", "-DVM_SC=0", "-DVM_TRACE=0")
    objects = [os.path.join(SHARED.name, name + ".o") for name in ("verilated", "verilated_threads")]
    for path in objects:
        output_of(*command, "-c", os.path.join(include, os.path.basename(path)[:-2] + ".cpp"), "-o", path)
    return command, objects


def simulation(folder, top, harness, flags=(), **parameters):
    """Compiles a simulation of the module `top` with a C++ harness; returns the path of the program.
    Any warning of Verilator is an error."""
    need("verilator")
    output_of("verilator", "--cc", "--exe", "-Wall", "--Mdir", folder, "-y", RTL, "-y", HERE,
              *(f"-G{name}={value}" for name, value in parameters.items()), "--top-module", top, f"{top}.sv")
    # One source for the compiler, because reading the headers of Verilator takes most of its time.
    everything, program = os.path.join(folder, "all.cpp"), os.path.join(folder, "simulation")
    with open(everything, "w") as file:
        for source in (*sorted(glob.glob(os.path.join(folder, "V*.cpp"))), os.path.join(HERE, harness)):
            file.write(f'#include "{source}"\n')
    command, objects = compiler()
    output_of(*command, "-O1", *flags, "-I", folder, everything, *objects, "-lpthread", "-o", program)
    return program


def parameters_of(element):
    """Returns the parameters of the module of an element."""
    rows = MODULES[element.design][1]
    return {"COLUMNS": element.cols, "LANES": element.lanes, "BEAT": element.beat_words,
            "MULTIPLY_LATENCY": element.multiply, "ADD_LATENCY": element.add,
            **({} if rows is None else {"MATRIX_ROWS": rows})}


def arithmetic(folder):
    """The adder and the multiplier return the bits of this processor's f32, at every latency."""
    for latency in (0, 1, 2, 3, 5, 9) if FULL else (4,):
        program = simulation(os.path.join(folder, str(latency)), "f32_units", "f32_units.cpp", LATENCY=latency)
        print("#", output_of(program, latency, 5000000 if FULL else 200000, SEED).strip())


def made_cases(folder, element, nnz, count):
    """Makes cases with the C design. Returns the DSPs of the model and the cases: file, cycles of the
    model, cycles and beats of the C design."""
    output_of(CASES, folder, *element, nnz, SEED, count)
    with open(os.path.join(folder, "cases"), encoding="utf-8") as file:
        lines = [line.split() for line in file]
    check(len(lines) == 1 + count, f"{lines}")
    return int(lines[0][0]), [(path, *map(int, counts)) for path, *counts in lines[1:]]


def simulated(program, cases, stall):
    """Simulates cases and checks the bits of their outputs and the beats of the memory; returns the
    cycles. `stall` / 256 is the probability that the memory stalls in a cycle."""
    lines = [line.split() for line in output_of(program, stall, *(case[0] for case in cases)).splitlines()]
    check(len(lines) == len(cases), f"{lines} for {cases}")
    for (path, _, _, wanted), (cycles, beats, wrong) in zip(cases, lines):
        check(wrong == "0", f"{program}, {path}: {wrong} words are wrong after {cycles} cycles")
        check(int(beats) == wanted, f"{program}, {path}: {beats} beats, {wanted} in the C design")
    return [int(cycles) for cycles, _, _ in lines]


def compare(folder, element, nnz, **queues):
    """An element returns the bits of the C design, also for tiny tensors and if the memory stalls at
    random. Unless its queues are others, it needs the cycles of the model within 5 %."""
    top = MODULES[element.design][0]
    program = simulation(folder, top, "element.cpp", ["-DELEMENT_MTTKRP"] if element.design == MTTKRP else [],
                         **parameters_of(element), **queues)
    for tiny in (0, 1, 33):
        simulated(program, made_cases(folder, element, tiny, 4)[1], 0)
    cases = made_cases(folder, element, nnz, 20)[1]
    simulated(program, cases, 100)
    counts = simulated(program, cases, 0)
    if queues:
        return
    errors, errors_counted = ([100 * (cycles / case[other] - 1) for cycles, case in zip(counts, cases)] for other in (1, 2))
    worst, worst_counted = max(errors, key=abs), max(errors_counted, key=abs)
    print(f"# {element}: {len(cases)} tensors, cycles {worst:+.2f} % off the model, {worst_counted:+.2f} % off the C design")
    check(abs(worst) <= 5, f"{element}: {worst} % off the model")


def elements(folder):
    """All designs, with rows of one and of several beats, fewer lanes than columns, and adders whose
    latency exceeds the passes of a row."""
    chosen = [Element(MTTKRP, 5, 2, 4, 16, 3, 4)]
    if FULL:
        chosen += [Element(design, *sizes) for design in (TTM, TTM_ON_CHIP, MTTKRP)
                   for sizes in ((16, 16, 32, 16, 3, 1), (20, 6, 8, 16, 3, 1), (8, 8, 8, 16, 2, 4), (40, 40, 32, 16, 3, 1))]
    for number, element in enumerate(chosen):
        compare(os.path.join(folder, str(number)), element, 10000 if FULL else 4000)


def small_queues(folder):
    """Queues of one beat and one row slow an element down, but change no bit."""
    if not FULL:
        raise Skip("only in the long form")
    for design in (TTM, TTM_ON_CHIP, MTTKRP):
        compare(os.path.join(folder, str(design)), Element(design, 5, 2, 4, 16, 3, 1), 1000,
                QUEUE_WORDS=4, QUEUE_BEATS=2, QUEUE_ROWS=1)


def source_of(path):
    """Returns a source without its comments."""
    with open(path, encoding="utf-8") as file:
        return re.sub(r"//[^\n]*", "", file.read())


def synthesizable(_folder):
    """The sources have no constructs that only simulators understand."""
    sources = {os.path.basename(path): source_of(path) for path in glob.glob(os.path.join(RTL, "*.sv"))}
    check(len(sources) > 10, f"{RTL} has {len(sources)} modules")
    for name, source in sources.items():
        found = re.search(r"\b(real|shortreal|realtime|import|export|initial|final|force|fork|wait)\b|#\s*\d|\$(?!bits|clog2|signed)\w+", source)
        check(not found, f"{name}: {found and found[0]}")


def synthesized(top, parameters, steps):
    """Synthesizes a module up to the given steps of Yosys; returns what Yosys prints."""
    need("yosys")
    settings = " ".join(f"-set {name} {value}" for name, value in parameters.items())
    return output_of("yosys", "-p", f"read_verilog -sv {RTL}/*.sv; " + (f"chparam {settings} {top}; " if settings else "")
                     + f"hierarchy -check -top {top}; rename -top {top}; proc; flatten; {steps}; check -assert; stat")


def modules(_folder):
    """Every module becomes gates and flip-flops, without latches."""
    if not FULL:
        raise Skip("only in the long form")
    small = {"COLUMNS": 5, "LANES": 2, "BEAT": 4, "WORDS": 4, "WIDTH": 28, "DEPTH": 8, "ROWS": 8, "QUEUE_WORDS": 8,
             "QUEUE_BEATS": 4, "QUEUE_ROWS": 2}
    for path in sorted(glob.glob(os.path.join(RTL, "*.sv"))):
        names = re.findall(r"parameter int (\w+)", source_of(path))
        top = os.path.basename(path)[:-3]
        for rows in (0, 8) if "MATRIX_ROWS" in names else (None,):
            parameters = {name: small[name] for name in names if name in small}
            log = synthesized(top, {**parameters, **({} if rows is None else {"MATRIX_ROWS": rows})},
                              f"synth -top {top}; select -assert-none t:$_DLATCH* t:$mul t:$mem*")
            print(f"# {top} {rows or ''}: {re.findall(r'Number of cells: +([0-9]+)', log)[-1]} cells")


def resources(folder):
    """An element has as many multipliers as the model has DSPs, and the memory bits of its queues and
    of its matrix."""
    if not FULL:
        raise Skip("only in the long form")
    for design in (TTM, TTM_ON_CHIP, MTTKRP):
        for cols, lanes, beat_words in ((4, 4, 32), (16, 16, 32), (12, 5, 8)):
            element = Element(design, cols, lanes, beat_words, 16, 3, 1)
            dsps = made_cases(folder, element, 100, 0)[0]
            top, rows = MODULES[design]
            log = synthesized(top, parameters_of(element), "opt_clean")
            stages = 2 if design == MTTKRP else 1
            # [ends], [indices] and [values], beats of rows, rows of sums
            bits = 32 * (512 * (5 if design == MTTKRP else 3) + 32 * stages * cols
                         + (0 if rows else 512 * stages * min(cols, beat_words)) + (rows or 0) * cols)
            multipliers, stored = (sum(map(int, re.findall(pattern, log))) for pattern in (r"\$mul +(\d+)", r"memory bits: +(\d+)"))
            check(multipliers == dsps == stages * lanes, f"{element}: {multipliers} multipliers, {dsps} DSPs in the model")
            check(stored == bits, f"{element}: {stored} bits of memory, expected {bits}")
            print(f"# {element}: {multipliers} multipliers, {stored} bits of memory")


run([
    ("f32 adder and multiplier", arithmetic),
    ("elements compute and count as the C designs and the model", elements),
    ("small queues", small_queues),
    ("only synthesizable constructs", synthesizable),
    ("every module synthesizes", modules),
    ("multipliers and memory bits", resources),
])
