"""Runs `sluice` for the scripts that compare it with other programs and with papers, and prints
tables in Markdown. The environment variable SLUICE names the command (default: sluice in PATH)."""

import json
import os
import subprocess

SLUICE = os.environ.get("SLUICE", "sluice")


class Failed(Exception):
    """A program did not succeed; the message has its name and the end of its messages."""


def call(*command, threads=None):
    """Runs a program to its end, with `threads` OpenMP threads if given. Returns its standard
    output. Fails if the program cannot be started or its exit status is not 0."""
    command = [str(part) for part in command]
    environment = dict(os.environ)
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError as reason:
        raise Failed(f"{command[0]}: {reason.strerror}") from None
    if done.returncode != 0:
        raise Failed(f"{' '.join(command)}: exit status {done.returncode}; {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def sluice(*args):
    return call(SLUICE, *args)


def bench(*args):
    """Returns the JSON record of `sluice bench`."""
    return json.loads(sluice("bench", *args, "--json"))


def three_digits(number):
    """Formats a number with three significant digits, without an exponent."""
    text = f"{number:#.3g}"
    return f"{number:.0f}" if "e" in text else text.rstrip(".")


def table(header, rows):
    """Returns a table in Markdown. Cells that are numbers get three significant digits."""
    def line(cells):
        return "| " + " | ".join(three_digits(cell) if isinstance(cell, float) else str(cell) for cell in cells) + " |"

    return "\n".join([line(header), "|" + "---|" * len(header), *map(line, rows)])
