#!/usr/bin/env python3
"""tools/bench-peers with programs that print fixed times in the formats of SPLATT, ALTO, GenTen and
ParTI: the table has these times and the fastest peer; failures are reported."""

import json
import os
import re
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SLUICE, SOURCE, check, run, sluice  # noqa: E402

SCRIPT = os.path.join(SOURCE, "tools", "bench-peers")
# Each program requires its input format, and prints the times of 2 iterations of 3 modes: 80, 50, 60
# and 70 ms for all modes. Only the lines that the script reads are printed.
PROGRAMS = {
    "SPLATT": """case "$*" in "cpd "*"/x.tns -r 4 -i 2 "*"-t 1"*) ;; *) exit 9;; esac
echo '  its =   1 (0.100s)  fit = 0.1  delta = +1e-1'; echo '     mode = 1 (0.010s)'
echo '  its =   2 (0.100s)  fit = 0.1  delta = +1e-2'; echo '  MTTKRP              0.160s'""",
    "ALTO": """[ "$OMP_NUM_THREADS" = 1 ] || exit 9
case "$*" in "-i "*"/x.tns -r 4 -m 2 -p") ;; *) exit 9;; esac
echo 'ALTO creation time:   9.000000'; echo 'ALTO runtime:   0.100000'""",
    "GENTEN": """[ "$(sed -n 1,4p "$2" | tr '\\n' ' ')" = 'sptensor 3 6 7 8 90 ' ] || exit 9
[ "$(wc -l <"$2")" = 94 ] || exit 9
printf '\\tMTTKRP total time = 1.20e-01 seconds, average time = 2.00e-02 seconds\\n'""",
    "PARTI": """[ "$(sed -n 1,2p "$2" | tr '\\n' ' ')" = '3 6 7 8 ' ] || exit 9
for mode in 0 1 2; do echo "[CPU  SpTns MTTKRP MODE $mode]: 0.0$((mode + 1))0000000 s"; done
echo 'Performance: 1.00 GFlop/s'""",
}


def program(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + text + "\n")
    os.chmod(path, 0o755)
    return f"{name}={path}"


def peers(*args, status=0):
    done = subprocess.run([sys.executable, SCRIPT, *args], capture_output=True, text=True, check=False,
                          env=os.environ | {"SLUICE": SLUICE})
    check(done.returncode == status, f"exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def store_of(folder):
    store = os.path.join(folder, "x.slc")
    sluice("generate", store, "--dims", "6x7x8", "--nnz", 90, "-q")
    check(json.loads(sluice("info", store, "--json")[0])["nnz"] == 90, "not 90 nonzeros")
    return store


def all_peers(folder):
    """All four peers: their times are in the table, and the ratio is that of the fastest."""
    named = [program(folder, name, text) for name, text in PROGRAMS.items()]
    out, messages = peers(*named, store_of(folder), "--rank", "4", "--threads", "1", "--iterations", "2", "--rounds", "1")
    check(messages == "", messages)
    row = re.search(r"^\| x \| 6 x 7 x 8 \| 90 \| 50 \(ALTO\) \| (\S+) \| (\S+) \|$", out, re.M)
    check(row, out)
    ours, ratio = float(row[1]), float(row[2])
    check(abs(ours * ratio / 50 - 1) < 0.02, f"{ours} ms and ratio {ratio} do not give 50 ms")
    check(re.search(r"^\| x \| 4 \| \S+ \| 80\.0 \| 50\.0 \| 60\.0 \| 60\.0 \|$", out, re.M), out)
    check("Geometric mean of the 1 ratios" in out, out)


def failing_peers(folder):
    """A program that fails, or prints no time, is named; the other programs are still compared."""
    named = [program(folder, "ALTO", "echo no such tensor >&2; exit 3"), program(folder, "PARTI", "echo nothing"),
             program(folder, "SPLATT", PROGRAMS["SPLATT"])]
    out, messages = peers(*named, store_of(folder), "--rank", "4", "--threads", "1", "--iterations", "2",
                          "--rounds", "2", status=1)
    check(messages.count("ALTO failed: ") == 1 and "exit status 3; no such tensor" in messages, messages)
    check("PARTI failed: " in messages and "no time in its output" in messages, messages)
    check(re.search(r"^\| x \| 4 \| \S+ \| failed \| failed \| 80\.0 \|$", out, re.M), out)
    out, _ = peers(named[0], os.path.join(folder, "x.slc"), "--rank", "4", "--rounds", "1", status=1)
    check("| failed |" in out and "Geometric" not in out, out)


def usage(folder):
    alto = program(folder, "ALTO", "exit 0")
    for part, args in (("name at least one program", ["x.slc"]), ("and at least one tensor", [alto]),
                       ("OTHER: unknown program; use one of SPLATT, ALTO, GENTEN, PARTI", ["OTHER=/bin/true", "x.slc"]),
                       ("no program that can be run", [f"ALTO={folder}", "x.slc"])):
        check(part in peers(*args, status=2)[1], part)
    check("bench-peers: " in peers(alto, os.path.join(folder, "none.tns"), status=1)[1], "a missing tensor is not reported")


run([("all peers", all_peers), ("failing peers", failing_peers), ("usage", usage)])
