"""What the papers of tools/papers share: stand-ins of their tensors, measured times, sections of the
output.

A time is the fastest of the samples of a benchmark, because other load only makes samples slower.
"""

import json
import os

from bench_tables import bench, sluice, table
from peers import Tensor

# A cell without a number.
NONE = "-"


class Runner:
    """Options of a run, and the stand-ins that it has generated so far.

    `scale` multiplies the nonzeros of the papers' tensors, `repeat` is the number of samples,
    `memory_set` is the size of the set with which the bandwidth of memory is measured, and `peers`
    has paths of other programs by name (see tools/bench-peers).
    """

    def __init__(self, work, args):
        self.work, self.scale, self.threads, self.repeat = work, args.scale, args.threads, args.repeat
        self.memory_set, self.peers = args.memory_set, args.peers

    def generate(self, name, *args):
        """Returns the path of a store that `sluice generate` makes at the first use."""
        store = os.path.join(self.work, name + ".slc")
        if not os.path.exists(store):
            sluice("generate", store, *args, "--seed", 1, "-t", self.threads, "-q")
        return store

    def stand_in(self, name):
        """Returns the path of the stand-in of a paper's tensor: a random tensor with its order,
        number of nonzeros, and fibers or skew, shrunk by the scale of this run."""
        return self.generate(name, "--like", name, "--scale", self.scale)

    def layout(self, store, *args):
        sluice("layout", store, *args, "-t", self.threads, "-q")

    def bench(self, what, store, *args):
        """Returns the record of a benchmark with the threads and samples of this run."""
        return bench(what, store, "-t", self.threads, "-n", self.repeat, *args)

    def peer_tensor(self, store):
        return Tensor(store, self.work)


def info(store):
    return json.loads(sluice("info", store, "--json"))


def section(title, *tables_and_notes):
    """Prints a section: its title, then tables as (header, rows) and notes as text."""
    print(f"\n## {title}\n")
    for part in tables_and_notes:
        print(part if isinstance(part, str) else table(*part), end="\n\n", flush=True)


def rows_of(record, **wanted):
    """Returns the rows of a record whose members have these values."""
    return [row for row in record["rows"] if all(row.get(key) == value for key, value in wanted.items())]


def fastest_ms(record, **wanted):
    """Returns the time of all modes in ms: the fastest sample of each matching row, added. Returns
    None if there is no such row."""
    rows = rows_of(record, **wanted)
    return sum(row["min_ms"] for row in rows) if rows else None


def reduction(before, after):
    """Returns by how many percent a time has become shorter."""
    return 100 * (before - after) / before
