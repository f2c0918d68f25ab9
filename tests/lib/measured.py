"""Runs the command and measures its memory: peak resident size and, in a cgroup, all memory charged
to it."""

import os
import re
import subprocess
import tempfile
from dataclasses import dataclass

from tap import SLUICE, Skip, check

PEAK = os.environ.get("SLUICE_PEAK")  # tests/cli/peak.c
MIB = 1 << 20
# The environment of users: malloc does not fill memory, and OpenBLAS chooses its number of threads.
ENVIRONMENT = {name: value for name, value in os.environ.items()
               if name not in ("MALLOC_PERTURB_", "OPENBLAS_NUM_THREADS")}


@dataclass
class Measured:
    """Result of a finished run."""
    status: int  # negative: the signal that ended it
    resident: int  # peak resident bytes
    read: int  # bytes read from drives
    seconds: float  # processor time
    output: str
    messages: str


def put(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(text))


class Cgroup:
    """A new cgroup (version 1 or 2) that limits a process and the page cache of its files to
    `limit` bytes without swap; raises Skip if that is impossible."""

    def __init__(self, limit):
        for root, names in (("/sys/fs/cgroup/memory", ("memory.limit_in_bytes", "memory.max_usage_in_bytes",
                                                       "memory.oom_control", "memory.memsw.limit_in_bytes")),
                            ("/sys/fs/cgroup", ("memory.max", "memory.peak", "memory.events", "memory.swap.max"))):
            self.folder, self.names = os.path.join(root, f"slc-test-{os.getpid()}"), names
            try:
                os.mkdir(self.folder)
                put(self.file(names[0]), limit)
            except OSError:
                self.remove()
                continue
            try:
                put(self.file(names[3]), limit if "memsw" in names[3] else 0)
            except OSError:
                pass  # the system has no swap, or does not count it
            return
        raise Skip("no permission to make a memory cgroup here")

    def file(self, name):
        return os.path.join(self.folder, name)

    def processes(self):
        """Returns the file that lists the processes of the cgroup."""
        return self.file("cgroup.procs")

    def charged(self):
        """Peak of charged bytes; None if the system does not report it."""
        try:
            with open(self.file(self.names[1]), encoding="ascii") as file:
                return int(file.read())
        except OSError:
            return None

    def killed(self):
        """Returns the number of processes killed because memory ran out."""
        with open(self.file(self.names[2]), encoding="ascii") as file:
            return int(re.search(r"^oom_kill (\d+)", file.read(), re.MULTILINE)[1])

    def remove(self):
        for end in (lambda: put(self.file("memory.force_empty"), 0), lambda: os.rmdir(self.folder)):
            try:
                end()
            except OSError:
                pass  # version 2 of cgroups has no such file; a folder that was never created needs no removal


def measured(args, cgroup=None, status=0):
    """Runs sluice and checks the exit status unless `status` is None."""
    report, into = os.pipe()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as messages, os.fdopen(report) as told:
        try:
            helper = subprocess.run([PEAK, str(into), cgroup.processes() if cgroup else "", SLUICE, *map(str, args)],
                                    stdout=out, stderr=messages, stdin=subprocess.DEVNULL, pass_fds=[into],
                                    env=ENVIRONMENT, check=False)
        finally:
            os.close(into)
        out.seek(0)
        messages.seek(0)
        texts = out.read(), messages.read()
        check(helper.returncode == 0, f"{PEAK}: exit {helper.returncode}: {texts[1]}")
        ended, kibibytes, blocks, microseconds = map(int, told.read().split())
    done = Measured(os.waitstatus_to_exitcode(ended), kibibytes << 10, blocks << 9, microseconds / 1e6, *texts)
    check(status is None or done.status == status,
          f"sluice {' '.join(map(str, args))}: exit {done.status}, wanted {status}\n{done.messages}")
    return done


def named_budget(messages):
    """Returns the budget in bytes that an error message names."""
    found = re.search(r"needs (\d+) MiB of memory", messages)
    check(found, f"no budget is named: {messages}")
    return int(found[1]) * MIB


def works_as_named(args, tries, prepare=lambda: None):
    """Starts with 1 MiB and retries with the budget that the error names until it is sufficient;
    returns (largest rejected, smallest accepted). The named budget must suffice at the next try;
    with a larger `tries`, a later error, based on more information, may name more."""
    refused = budget = MIB
    for _ in range(tries + 1):
        prepare()
        done = measured([*args, "--memory", budget], status=None)
        if done.status == 0:
            break
        check(done.status == 4, f"{args}: exit {done.status}: {done.messages}")
        check(named_budget(done.messages) > budget, f"{args}: {budget} bytes are named and refused: {done.messages}")
        refused, budget = budget, named_budget(done.messages)
    check(done.status == 0, f"{args}: what was named does not work: {done.messages}")
    check(budget > MIB, f"{args}: 1 MiB is enough")
    return refused, budget
