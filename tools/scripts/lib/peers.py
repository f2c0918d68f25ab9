"""Runs MTTKRP of other programs, for tools/bench-peers and tools/papers. A run returns the time of
one MTTKRP of every mode, in ms, from what the program prints; tools/bench-peers lists what that
is."""

import json
import os
import re

from bench_tables import Failed, call, sluice

NUMBER = r"([\d.]+(?:e[+-]?\d+)?)"


class Tensor:
    """A tensor as a store, and as text with the header that a program needs.

    Converts and exports to `work` at the first use. Texts stay there until `work` is removed.
    """

    def __init__(self, path, work):
        self.name = re.sub(r"\.(slc|tns)(\.\w+)?$", "", os.path.basename(path.rstrip("/")))
        self.store, self.stem = path, os.path.join(work, self.name)
        if not os.path.isdir(path):
            self.store = self.stem + ".slc"
            sluice("convert", path, self.store, "-q")
        info = json.loads(sluice("info", self.store, "--json"))
        self.dims, self.nnz = info["dims"], info["nnz"]

    def text(self, kind="tns"):
        """Returns the path of a text: "tns", "parti" (order and mode sizes in front) or "genten"
        (a title, the order, the mode sizes and the number of nonzeros in front)."""
        plain, path = self.stem + ".tns", f"{self.stem}.{kind}"
        if not os.path.exists(plain):
            sluice("export", self.store, plain, "-q")
        if not os.path.exists(path):
            sizes = f"{len(self.dims)}\n{' '.join(map(str, self.dims))}\n"
            with open(plain, encoding="ascii") as source, open(path, "w", encoding="ascii") as file:
                file.write(sizes if kind == "parti" else f"sptensor\n{sizes}{self.nnz}\n")
                file.writelines(line for line in source if not line.startswith("#"))
        return path


def figures(pattern, output, program):
    """Returns the numbers in all matches of a pattern. Fails if there are none."""
    found = [float(number) for number in re.findall(pattern, output, re.M)]
    if not found:
        raise Failed(f"{program}: no time in its output, which ends: {output.strip()[-200:]}")
    return found


def run_splatt(program, tensor, rank, threads, iterations):
    output = call(program, "cpd", tensor.text(), "-r", rank, "-i", iterations, "--tol", 0, "-t", threads,
                  "--seed", 1, "--nowrite", "-v")
    iterations = len(figures(r"^\s*its = +(\d+) \(", output, program))
    return 1e3 * figures(rf"^\s*MTTKRP +{NUMBER}s", output, program)[0] / iterations


def run_alto(program, tensor, rank, threads, iterations):
    output = call(program, "-i", tensor.text(), "-r", rank, "-m", iterations, "-p", threads=threads)
    return 1e3 * figures(rf"ALTO runtime: +{NUMBER}", output, program)[0] / iterations


def run_genten(program, tensor, rank, threads, iterations):
    output = call(program, "--input", tensor.text("genten"), "--index-base", 1, "--rank", rank, "--maxiters",
                  iterations, "--tol", 0, "--timings", threads=threads)
    return 1e3 * figures(rf"MTTKRP total time = .*average time = +{NUMBER}", output, program)[0] * len(tensor.dims)


def run_parti(program, tensor, rank, threads, iterations):
    output = call(program, "-i", tensor.text("parti"), "-s", 1, "-d", -1, "-r", rank, "-t", threads)
    modes = figures(rf"MTTKRP MODE \d+\W+{NUMBER} s", output, program)
    if len(modes) != len(tensor.dims):
        raise Failed(f"{program}: printed {len(modes)} times for {len(tensor.dims)} modes")
    return 1e3 * sum(modes)


PEERS = {"SPLATT": run_splatt, "ALTO": run_alto, "GENTEN": run_genten, "PARTI": run_parti}


def parse_peers(items):
    """Divides arguments into programs, as {NAME: PATH}, and the rest. Fails if a NAME is unknown or
    its PATH is no program."""
    named = dict(item.split("=", 1) for item in items if re.match(r"[A-Z]+=", item))
    for name, path in named.items():
        if name not in PEERS:
            raise Failed(f"{name}: unknown program; use one of {', '.join(PEERS)}")
        if not os.access(path, os.X_OK) or os.path.isdir(path):
            raise Failed(f"{name}={path}: no program that can be run; name the program that {name} builds")
    return named, [item for item in items if not re.match(r"[A-Z]+=", item)]
