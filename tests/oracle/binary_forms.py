"""Writers of the binary tensor formats of other programs, based only on their format descriptions;
references for `sluice convert`. Coordinates are an array of N rows, from 0. Run directly, it
rewrites the files of tests/golden/binary."""

import os
import struct
import sys

import numpy as np


def splatt(dims, coords, values, index_bytes=4, value_bytes=8):
    """Returns the tensor in SPLATT's form: a header of 20 bytes with unaligned numbers, and lists
    of indices, mode by mode."""
    index, value = f"<u{index_bytes}", f"<f{value_bytes}"
    out = struct.pack("<iQQ", 0, index_bytes, value_bytes)
    out += np.array([len(dims), *dims, len(values)], index).tobytes()
    for row in coords:
        out += np.asarray(row).astype(index).tobytes()
    return out + np.asarray(values).astype(value).tobytes()


def genten(dims, coords, values, float_bits=64, index_bits=None):
    """GenTen: records with as many bits per index as its mode needs, or the bits in `index_bits`."""
    bits = index_bits or [16 if d < 1 << 16 else 32 if d < 1 << 32 else 64 for d in dims]
    out = b"sptn" + struct.pack("<II", len(dims), float_bits)
    out += struct.pack(f"<{2 * len(dims) + 1}Q", *dims, *bits, len(values))
    record = np.dtype([(f"i{m}", f"<u{b // 8}") for m, b in enumerate(bits)] + [("value", f"<f{float_bits // 8}")])
    records = np.empty(len(values), record)
    for m, row in enumerate(coords):
        records[f"i{m}"] = np.asarray(row).astype(f"<u{bits[m] // 8}")
    records["value"] = values
    return out + records.tobytes()


def alto(dims, coords, values, value_bytes=8):
    """Returns the tensor in ALTO's form: words of 8 bytes without a signature."""
    out = struct.pack(f"<{len(dims) + 2}Q", len(dims), *dims, len(values))
    out += b"".join(np.asarray(row).astype("<u8").tobytes() for row in coords)
    return out + np.asarray(values).astype(f"<f{value_bytes}").tobytes()


def tns(coords, values):
    """Returns the tensor as text, with indices from 1."""
    columns = [(np.asarray(row).astype(np.uint64) + 1).tolist() for row in coords] + [np.asarray(values, float).tolist()]
    line = "%d " * len(coords) + "%r\n"
    return "".join([line % row for row in zip(*columns)])


TINY = ((3, 4, 70000), [[0, 2, 1, 0], [3, 0, 1, 3], [69999, 0, 5, 1]], [1.5, -2.0, 3.0, 0.25])


def tiny():
    """Returns the name and the bytes of every golden file."""
    return {
        "splatt-4-8.bin": splatt(*TINY), "splatt-8-4.bin": splatt(*TINY, 8, 4), "genten-64.bin": genten(*TINY),
        "genten-32.bin": genten(*TINY, 32, [64, 16, 32]), "alto.bin": alto(*TINY), "alto-f32.bin": alto(*TINY, 4),
    }


if __name__ == "__main__":
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "golden", "binary")
    os.makedirs(folder, exist_ok=True)
    for name, content in tiny().items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)
