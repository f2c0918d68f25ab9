"""Independent non-negative ALS in NumPy: rows by HALS sweeps [Gillis2012] or exactly, by active sets
[Bro1997]. Both accept the Gram matrix and the right-hand sides of all rows of a mode."""

import numpy as np

from cp_als import mttkrp


def swept(gram, sides, rows, sweeps, low=0.0, least=0.0):
    """Returns the rows after HALS sweeps, which set each element in turn to its minimum above
    `low`. A row ends early if a sweep gains at most `least` times its largest gain."""
    rows, largest, active = rows.copy(), np.zeros(len(rows)), np.ones(len(rows), bool)
    for _ in range(sweeps):
        gains = np.zeros(len(rows))
        for r in np.flatnonzero(np.diag(gram) > 0):
            before = rows[:, r].copy()
            best = np.maximum(before + (sides[:, r] - rows @ gram[r]) / gram[r, r], low)
            rows[active, r] = best[active]
            gains += gram[r, r] * (rows[:, r] - before) ** 2
        largest = np.maximum(largest, gains)
        active &= gains > least * largest
        if not active.any():
            break
    return rows


def swept_to(least):
    return lambda gram, sides, rows, sweeps, low: swept(gram, sides, rows, sweeps, low, least)


def exact_row(gram, side, tolerance=1e-12):
    """Returns the minimum of x'Gx/2 - b'x over x >= 0 for one row."""
    x, passive = np.zeros(len(gram)), np.zeros(len(gram), bool)
    scale = tolerance * max(1e-300, np.abs(side).max())
    for _ in range(30 * len(gram)):
        slope = np.where(passive, -np.inf, side - gram @ x)
        if slope.max() <= scale:
            return x
        passive[slope.argmax()] = True
        while True:
            at = np.flatnonzero(passive)
            trial = np.zeros_like(x)
            trial[at] = np.linalg.lstsq(gram[np.ix_(at, at)], side[at], rcond=None)[0]
            below = passive & (trial <= 0)
            if not below.any():
                x = trial
                break
            length = (x[below] / np.maximum(x[below] - trial[below], 1e-300)).min()
            x = x + length * (trial - x)
            passive &= x > scale * 1e-3
            x[~passive] = 0
            if not passive.any():
                break
    return x


def exact(gram, sides):
    return np.array([exact_row(gram, side) for side in sides])


def als(dims, coords, values, factors, iterations, sweeps=5, solve=swept, modes=None):
    """Returns (fits, factors). Modes that are not in `modes` (None: all modes are) may be negative.
    Factors are not normalized: HALS and least squares do not depend on the scale of columns."""
    factors, order = [f.copy() for f in factors], len(dims)
    square, fits = values @ values, []
    for _ in range(iterations):
        for n in range(order):
            grams = [f.T @ f for f in factors]
            gram = np.prod(grams[:n] + grams[n + 1:], axis=0)
            sides = mttkrp(dims, coords, values, factors, n)
            factors[n] = solve(gram, sides, factors[n], sweeps, 0.0 if modes is None or n in modes else -np.inf)
        model = (gram * (factors[-1].T @ factors[-1])).sum()
        fits.append(1 - np.sqrt(max(0.0, square + model - 2 * (sides * factors[-1]).sum())) / np.sqrt(square))
    return fits, factors
