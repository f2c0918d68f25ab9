#!/usr/bin/python3
"""Writes the stores of tests/golden with the second writer. Run once per format version."""

import os
import shutil
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import slc_format  # noqa: E402

DIMS = [4, 2, 3]
COORDS = np.array([[0, 0, 1, 2, 3], [0, 1, 0, 1, 1], [0, 2, 1, 0, 2]], dtype=np.uint64)
# Mode 2 keeps the indices of the input.
LABELS = {0: [2, 0, 3, 1], 2: [1, 2, 0]}
VALUES = np.array([1.0, 3.0, 2.0, 7.0, 1.0])

golden = os.path.join(os.path.dirname(__file__), "..", "golden")
for codec in ("packed", "lz4", "blco"):
    folder = os.path.join(golden, f"tiny-{codec}.slc")
    shutil.rmtree(folder, ignore_errors=True)
    slc_format.write_store(folder, DIMS, COORDS, VALUES, codec)
# The layout of mode 1 has two rows in one partition, that of mode 2 has a row in two pieces.
folder = os.path.join(golden, "tiny-sorted.slc")
shutil.rmtree(folder, ignore_errors=True)
slc_format.write_store(folder, DIMS, COORDS, VALUES, sorted_by={0: 2, 1: 2})
# The layout of mode 2 has keys with runs of mode 1, unlike blco, so nonzeros of a partition have
# another order.
folder = os.path.join(golden, "tiny-runs.slc")
shutil.rmtree(folder, ignore_errors=True)
slc_format.write_store(folder, DIMS, COORDS, VALUES, run=(2, 1), sorted_by={0: 2, 1: 3},
                       sorted_runs={0: (0, 0), 1: (0, 2)})
# Whole fibers of modes 1 and 2.
folder = os.path.join(golden, "tiny-fibers.slc")
shutil.rmtree(folder, ignore_errors=True)
slc_format.write_store(folder, DIMS, COORDS, VALUES, fibers_of=(0, 1))
folder = os.path.join(golden, "tiny-relabelled.slc")
shutil.rmtree(folder, ignore_errors=True)
slc_format.write_store(folder, DIMS, COORDS, VALUES, labels=LABELS)
