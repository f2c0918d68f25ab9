"""An independent CP-ALS and MTTKRP in NumPy, the reference for numerical results.

Plain formulas (Kolda and Bader, SIAM Review 2009, sections 2.6 and 3.4) on coordinate arrays, with
the conventions of docs: 2-norm in the first iteration, max(1, max-norm) after."""

import functools
import lzma
import os

import numpy as np

# Nonzeros per step of MTTKRP: their products fit in the L2 cache at the ranks of the tests, which
# takes a fifth of the time of one step for all.
PIECE = 4096


@functools.lru_cache(maxsize=None)
def read_tns(path):
    """FROSTT text, 1-based, duplicates summed, zeros dropped. Returns (dims, coords, values), which
    must not be modified."""
    with lzma.open(path) if path.endswith(".xz") else open(path, "rb") as file:
        text = file.read().decode()
    # Reading a list of lines takes half the time of reading a compressed file.
    rows = np.loadtxt(text.splitlines(), comments="#", ndmin=2)
    coords = rows[:, :-1].astype(np.int64) - 1
    dims = [int(d) + 1 for d in coords.max(axis=0)]
    # Sorts with the first mode most significant; equal coordinates stay in file order.
    keys = numbered(dims, coords.T)
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    values = np.add.reduceat(rows[order, -1], starts)
    keep = values != 0
    coords, values = coords[order[starts[keep]]].T.copy(), values[keep]
    coords.flags.writeable = values.flags.writeable = False
    return dims, coords, values


def numbered(dims, coords):
    """Returns a number per column, so that columns can be sorted ten times as fast: the first row
    is most significant."""
    assert np.prod([float(d) for d in dims]) < 2.0 ** 63
    keys = np.zeros(coords.shape[1], dtype=np.int64)
    for length, row in zip(dims, coords):
        keys = keys * int(length) + row.astype(np.int64)
    return keys


def distinct(dims, coords):
    """Returns the distinct columns of `coords`, ascending by the first row and so on, and the index
    of each column among them."""
    _, first, which = np.unique(numbered(dims, coords), return_index=True, return_inverse=True)
    return coords[:, first], which.reshape(-1)


SORTED = {}  # mode: (coordinates, values, both sorted by the mode) of the most recent tensor


def sorted_by(coords, values, mode):
    if mode not in SORTED or SORTED[mode][0] is not coords or SORTED[mode][1] is not values:
        if (coords[mode][1:] >= coords[mode][:-1]).all():
            SORTED[mode] = coords, values, coords.astype(np.int64, copy=False), values
        else:
            order = np.argsort(coords[mode], kind="stable")
            SORTED[mode] = coords, values, coords[:, order].astype(np.int64, copy=False), values[order]
    return SORTED[mode][2:]


def mttkrp(dims, coords, values, factors, mode, scale=None):
    """Returns the product; adds the sums of the magnitudes of its terms to `scale`, if given."""
    rank = next(f.shape[1] for n, f in enumerate(factors) if n != mode) if len(dims) > 1 else 1
    out = np.zeros((dims[mode], rank))
    if len(values) == 0:
        return out
    coords, values = sorted_by(coords, values, mode)
    buffers = np.empty((2, PIECE, rank))
    for begin in range(0, len(values), PIECE):
        piece = coords[:, begin:begin + PIECE]
        terms, taken = buffers[:, :piece.shape[1]]
        terms[:] = values[begin:begin + PIECE, None]
        for n in range(len(dims)):
            if n != mode:
                # mode="clip" avoids a copy by NumPy, and changes nothing: all coordinates are in
                # range.
                terms *= np.take(factors[n], piece[n], axis=0, out=taken, mode="clip")
        rows = piece[mode]
        starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
        out[rows[starts]] += np.add.reduceat(terms, starts, axis=0)
        if scale is not None:
            scale[rows[starts]] += np.add.reduceat(np.abs(terms, out=taken), starts, axis=0)
    return out


def nvecs(dims, coords, values, mode, rank):
    """Returns the leading left singular vectors of the mode-n unfolding, from its dense Gram
    matrix."""
    other = [n for n in range(len(dims)) if n != mode]
    columns = np.ravel_multi_index([coords[n] for n in other], [dims[n] for n in other])
    _, columns = np.unique(columns, return_inverse=True)
    dense = np.zeros((dims[mode], columns.max() + 1))
    dense[coords[mode], columns] = values
    weights, vectors = np.linalg.eigh(dense @ dense.T)
    return vectors[:, np.argsort(weights)[::-1][:rank]]


def cp_als(dims, coords, values, factors, iterations, tolerance=0.0, mode_order=None):
    """Returns (list of fits, factors, lambda, iterations done)."""
    factors = [f.copy() for f in factors]
    rank = factors[0].shape[1]
    order = len(dims)
    modes = list(range(order)) if mode_order is None else mode_order
    grams = [f.T @ f for f in factors]
    norm_x = np.sqrt(np.dot(values, values))
    fits, fit_before = [], 0.0
    for iteration in range(iterations):
        for n in modes:
            m = mttkrp(dims, coords, values, factors, n)
            v = np.ones((rank, rank))
            for k in range(order):
                if k != n:
                    v *= grams[k]
            # Row-major, because np.take would copy a transposed array for every piece of mttkrp.
            a = np.ascontiguousarray(np.linalg.solve(v, m.T).T)
            if iteration == 0:
                weights = np.sqrt((a * a).sum(axis=0))
            else:
                weights = np.maximum(1.0, abs(a).max(axis=0))
            a = a / np.where(weights == 0, 1, weights)
            factors[n], grams[n] = a, a.T @ a
        g = np.ones((rank, rank))
        for k in range(order):
            g *= grams[k]
        norm_m2 = weights @ g @ weights
        inner = ((m * factors[modes[-1]]).sum(axis=0) * weights).sum()
        residual2 = max(0.0, norm_x ** 2 + norm_m2 - 2 * inner)
        fit = 1 - np.sqrt(residual2) / norm_x
        fits.append(fit)
        if iteration > 0 and abs(fit - fit_before) < tolerance:
            break
        fit_before = fit
    return fits, factors, weights, len(fits)


def planted_counts(folder):
    """Writes counts of 400,000 events of five kinds to an .npz file, and returns its path. A kind is a
    component; its events are independent in all modes."""
    rng = np.random.default_rng(7)
    dims, rank, draws = (24, 31, 120, 100), 5, 400000
    planted = []
    for length in dims:
        uneven = rng.gamma(0.25, 1, (length, rank)) + 1e-3
        planted.append(rng.gamma(1.0, 1, (length, rank)) if length < 100 else uneven)
        planted[-1] /= planted[-1].sum(axis=0)
    component = rng.choice(rank, draws, p=[0.35, 0.25, 0.2, 0.12, 0.08])
    drawn = np.empty((4, draws), int)
    for r in range(rank):
        at = component == r
        for n in range(4):
            drawn[n, at] = rng.choice(dims[n], at.sum(), p=planted[n][:, r])
    keys, counts = np.unique(np.ravel_multi_index(drawn, dims), return_counts=True)
    path = os.path.join(folder, "counts.npz")
    np.savez(path, coords=np.array(np.unravel_index(keys, dims)), data=counts.astype(float), shape=np.array(dims),
             fill_value=np.array(0.0))
    return path
