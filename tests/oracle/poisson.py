"""An independent CP-APR in NumPy, the reference for Poisson models of counts.

Multiplicative updates as in [Chi2012], algorithm 3; projected damped Newton steps for rows as in
[Hansen2015], algorithms 3 and 4, with the infinity norm for KKT violations. Columns have 1-norm 1
outside the mode that is updated."""

import numpy as np

from cp_als import sorted_by

TINY = 1e-10  # least divisor


def log_likelihood(coords, values, factors, weights):
    """Without the sum of log(x!), which does not depend on the model."""
    model = np.ones((len(values), len(weights))) * weights
    for factor, rows in zip(factors, coords):
        model *= factor[rows]
    total = np.prod([f.sum(axis=0) for f in factors], axis=0) @ weights
    with np.errstate(divide="ignore"):
        return values @ np.log(model.sum(axis=1)) - total


def normalized(factor):
    sums = factor.sum(axis=0)
    return factor / np.where(sums == 0, 1, sums), sums


def started(factors):
    """Returns the normalized starting factors and the weights."""
    pairs = [normalized(f) for f in factors]
    return [f for f, _ in pairs], np.prod([s for _, s in pairs], axis=0)


def products_of(coords, factors, mode, rank):
    out = np.ones((coords.shape[1], rank))
    for n, factor in enumerate(factors):
        if n != mode:
            out *= factor[coords[n]]
    return out


def row_sums(rows, terms, count):
    """Returns the sums of the terms of each row. `rows` must ascend."""
    out = np.zeros((count, terms.shape[1]))
    if len(rows):
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        out[rows[starts]] = np.add.reduceat(terms, starts, axis=0)
    return out


def update_by_mu(rows, values, products, b, inner, tolerance):
    """Returns (Phi, B, KKT violation at the last Phi, steps)."""
    for step in range(inner):
        model = np.maximum((products * b[rows]).sum(axis=1), TINY)
        phi = row_sums(rows, products * (values / model)[:, None], len(b))
        violation = np.abs(np.minimum(b, 1 - phi)).max()
        if violation < tolerance:
            return phi, b, violation, step
        b = b * phi
    return phi, b, violation, inner


def mu(dims, coords, values, factors, iterations, inner=10, tolerance=1e-4, kappa=1e-2, kappa_tolerance=1e-10,
       least_phi=1.0):
    """Returns (records, factors, weights); a record has the log-likelihood, the KKT violation and the
    steps of an outer iteration."""
    factors, weights = started(factors)
    rank, records, phis = len(weights), [], [None] * len(dims)
    for iteration in range(iterations):
        violations, steps = [], 0
        for n in range(len(dims)):
            own, sorted_values = sorted_by(coords, values, n)
            b = factors[n]
            if iteration > 0:  # increase zeros that violate the KKT conditions
                b = b + kappa * ((b < kappa_tolerance) & (phis[n] > least_phi))
            b = b * weights
            products = products_of(own, factors, n, rank)
            phis[n], b, violation, count = update_by_mu(own[n], sorted_values, products, b, inner, tolerance)
            violations.append(violation)
            steps += count
            factors[n], weights = normalized(b)
        records.append({"log_likelihood": log_likelihood(coords, values, factors, weights), "kkt": max(violations),
                        "steps": steps})
        if max(violations) < tolerance:
            break
    return records, factors, weights


def row_objective(values, products, b):
    with np.errstate(divide="ignore"):
        return b.sum() - values @ np.log(products @ b)


def newton_direction(values, products, b, gradient, model, damping, active):
    """Returns the direction of the two-metric projection, and the predicted change of the
    objective."""
    near = min(active, np.linalg.norm(b - np.maximum(b - gradient, 0)))
    fixed = (b <= near) & (gradient > 0)
    direction = np.where(fixed & (b != 0), -gradient, 0)
    free = np.flatnonzero(~fixed)
    part = products[:, free]
    hessian = (part * (values / np.maximum(model * model, TINY))[:, None]).T @ part + damping * np.eye(len(free))
    step = np.linalg.solve(hessian, -gradient[free])
    direction[free] = step
    return direction, step @ gradient[free] + step @ hessian @ step / 2


def searched_line(values, products, b, gradient, direction, phi):
    """Halves the step until the decrease suffices. Returns the new row, and the decrease by the
    whole step (0 without a step)."""
    before = row_objective(values, products, b)
    length, whole, new, at = 1.0, None, b, np.inf
    for trial in range(10):
        new = np.maximum(b + length * direction, 0)
        slope = gradient @ (new - b)
        at = row_objective(values, products, new) if slope <= 0 and new.sum() >= 1e-7 else np.inf
        if trial == 0:
            whole = before - at if np.isfinite(at) else 0.0
        if at <= before + 1e-4 * slope:
            return new, whole
        length /= 2
    if at > before or new.sum() < 1e-7:
        return b * phi, 0.0
    return new, whole


def update_row_by_pdnr(values, products, b, inner, tolerance, damping=1e-5, active=1e-8):
    """Returns (row, KKT violation of the start, steps, whether it had converged at the start)."""
    first = 0.0
    for step in range(inner):
        model = products @ b
        phi = (values / np.maximum(model, TINY)) @ products
        gradient = 1 - phi
        violation = np.abs(np.minimum(b, gradient)).max()
        if step == 0:
            first = violation
        if violation < tolerance:
            return b, first, step, step == 0
        direction, predicted = newton_direction(values, products, b, gradient, model, damping, active)
        b, actual = searched_line(values, products, b, gradient, direction, phi)
        if predicted == 0:
            damping *= 10
        elif actual / -predicted < 1 / 4:
            damping *= 7 / 2
        elif actual / -predicted > 3 / 4:
            damping *= 2 / 7
    return b, first, inner, False


def pdnr(dims, coords, values, factors, iterations, inner=10, tolerance=1e-4, first=2, inexact=True):
    """Returns the same as mu(). Rows get at most `first` steps in the first iteration, then
    `inner`. With `inexact`, they are solved to a hundredth of the KKT violation of the iteration
    before."""
    factors = [f.copy() for f in factors]
    for factor in factors:
        factor[factor.sum(axis=1) == 0, 0] = 1e-8
    factors, weights = started(factors)
    rank, records, row_tolerance = len(weights), [], tolerance
    for iteration in range(iterations):
        worst, steps, done = 0.0, 0, True
        for n in range(len(dims)):
            own, sorted_values = sorted_by(coords, values, n)
            b = np.where(np.isin(np.arange(dims[n]), own[n])[:, None], factors[n] * weights, 0)
            products = products_of(own, factors, n, rank)
            starts = np.append(np.flatnonzero(np.diff(own[n], prepend=-1)), len(sorted_values))
            for begin, end in zip(starts[:-1], starts[1:]):
                row = own[n][begin]
                b[row], violation, count, settled = update_row_by_pdnr(
                    sorted_values[begin:end], products[begin:end], b[row], first if iteration == 0 else inner,
                    row_tolerance)
                worst, steps, done = max(worst, violation), steps + count, done and settled
            factors[n], weights = normalized(b)
        records.append({"log_likelihood": log_likelihood(coords, values, factors, weights), "kkt": worst,
                        "steps": steps})
        if inexact:
            row_tolerance = max(tolerance, worst / 100)
        if done and row_tolerance <= tolerance:
            break
    return records, factors, weights
