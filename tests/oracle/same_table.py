"""Writes the CSV of a table, and compares the stores that were made from it."""

import csv
import filecmp
import os


def write(path, names, columns):
    """Writes the fields of columns as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(zip(*columns))


def same(one, other, what):
    """Checks that both stores have the same blocks and names; returns the number of their files."""
    files, others = (sorted(name for name in os.listdir(store) if name.endswith((".blk", ".bin"))) for store in (one, other))
    if files != others or "blco.blk" not in files:
        raise AssertionError(f"{what}: {files} and {others}")
    differing = [name for name in files if not filecmp.cmp(os.path.join(one, name), os.path.join(other, name), shallow=False)]
    if differing:
        raise AssertionError(f"{what}: {differing} differ")
    return len(files)
