"""Independent models of the listed cells in NumPy: completion by normal equations or coordinate descent
[Smith2018], and other losses by damped Newton steps [Hong2020].

A row minimizes the sum of the losses of its cells plus ridge times its square norm. Factors are not
normalized. With biases, the mean of the values is subtracted first, and rows have one more element,
with the product 1."""

import numpy as np

from cp_als import sorted_by
from poisson import TINY, products_of, row_sums


class Squares:
    """Squared error, (x - m)^2."""

    nonnegative = False

    def __call__(self, x, m):
        return (x - m) ** 2

    def derivatives(self, x, m):
        return 2 * (m - x), np.full(len(x), 2.0)


class Bernoulli:
    """Bernoulli loss, log(1 + e^m) - x m; m is the logarithm of the odds of 1."""

    nonnegative = False

    def __call__(self, x, m):
        return np.logaddexp(0, m) - x * m

    def derivatives(self, x, m):
        chance = 0.5 + np.tanh(m / 2) / 2
        return chance - x, chance * (1 - chance)


class Gamma:
    """Gamma loss, x / m + log(m); m is the mean, x and m are positive."""

    nonnegative = True

    def __call__(self, x, m):
        m = np.maximum(m, TINY)
        return x / m + np.log(m)

    def derivatives(self, x, m):
        """The second derivative is that of the expected loss, which is positive."""
        m = np.maximum(m, TINY)
        return (m - x) / (m * m), 1 / (m * m)


class Poisson:
    """Poisson loss, m - x log(m), on the listed cells only."""

    nonnegative = True

    def __call__(self, x, m):
        return m - x * np.log(np.maximum(m, TINY))

    def derivatives(self, x, m):
        m = np.maximum(m, TINY)
        return 1 - x / m, np.maximum(x, TINY) / (m * m)


class Huber:
    """Huber loss: (x - m)^2 up to |x - m| = delta, then linear."""

    nonnegative = False

    def __init__(self, delta=1.0):
        self.delta = delta

    def __call__(self, x, m):
        size = np.abs(x - m)
        return np.where(size <= self.delta, size ** 2, self.delta * (2 * size - self.delta))

    def derivatives(self, x, m):
        inside = np.abs(x - m) <= self.delta
        # Where the loss is linear, its second derivative is 0; this positive bound makes steps of
        # majorization.
        size = np.maximum(np.abs(x - m), 1e-300)
        return 2 * np.clip(m - x, -self.delta, self.delta), np.where(inside, 2.0, 2 * self.delta / size)


def squares_of(products):
    """Returns the products of all pairs of columns, one row per nonzero."""
    return (products[:, :, None] * products[:, None, :]).reshape(len(products), -1)


def normal_equations(rows, values, products, count):
    """Returns the matrices and right-hand sides of all rows."""
    rank = products.shape[1]
    return row_sums(rows, squares_of(products), count).reshape(-1, rank, rank), row_sums(rows, products * values[:, None], count)


def by_als(rows, values, products, x, ridge, _inner):
    matrices, sides = normal_equations(rows, values, products, len(x))
    matrices += ridge * np.eye(x.shape[1])
    return np.array([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(matrices, sides)])


def by_ccd(rows, values, products, x, ridge, inner):
    """Sweeps over the elements of a row; each is set to its minimum."""
    matrices, sides = normal_equations(rows, values, products, len(x))
    x = x.copy()
    for _ in range(inner):
        for r in range(x.shape[1]):
            own = matrices[:, r, r]
            rest = sides[:, r] - np.einsum("ij,ij->i", matrices[:, r], x) + own * x[:, r]
            x[:, r] = np.where(own + ridge > 0, rest / np.maximum(own + ridge, 1e-300), x[:, r])
    return x


def by_newton(loss):
    def update(rows, values, products, x, ridge, inner):
        """At most `inner` steps; a step is halved until it decreases the objective of its row. If rows
        are not negative, elements at zero with a positive gradient stay there."""
        rank, identity = x.shape[1], np.eye(x.shape[1])

        def objective(at):
            return row_sums(rows, loss(values, (products * at[rows]).sum(axis=1))[:, None], len(x))[:, 0] + \
                ridge * (at * at).sum(axis=1)

        now = objective(x)
        for _ in range(inner):
            first, second = loss.derivatives(values, (products * x[rows]).sum(axis=1))
            gradient = row_sums(rows, products * first[:, None], len(x)) + 2 * ridge * x
            matrices = row_sums(rows, squares_of(products) * second[:, None], len(x)).reshape(-1, rank, rank)
            matrices += 2 * ridge * identity
            free = ~((x <= 1e-12) & (gradient > 0)) if loss.nonnegative else np.ones(x.shape, bool)
            matrices *= free[:, :, None] & free[:, None, :]
            # Rows without nonzeros and without ridge have no equations.
            scale = np.trace(matrices, axis1=1, axis2=2)[:, None]
            matrices += (np.where(free, 1e-14 * scale, 1) + (scale == 0))[:, :, None] * identity
            step = -np.linalg.solve(matrices, (gradient * free)[:, :, None])[:, :, 0]
            length = np.ones((len(x), 1))
            for _ in range(40):
                trial = x + length * step
                trial = np.maximum(trial, 0) if loss.nonnegative else trial
                worse = ~(objective(trial) <= now)
                if not worse.any():
                    break
                length[worse] /= 2
            trial[worse] = x[worse]
            done = np.abs(trial - x).max() < 1e-13 * np.abs(x).max()
            x, now = trial, objective(trial)
            if done:
                break
        return x
    return update


def predicted(coords, model):
    factors, mean, biases = model
    out = products_of(coords, factors, -1, factors[0].shape[1]).sum(axis=1) + mean
    for bias, rows in zip(biases, coords):
        out += bias[rows]
    return out


def rmse(coords, values, model):
    return np.sqrt(((predicted(coords, model) - values) ** 2).mean())


def balanced(factors):
    """Returns the same model with the columns of a component scaled to equal norms in all modes."""
    norms = np.array([np.linalg.norm(f, axis=0) for f in factors])
    return [f * (norms.prod(axis=0) ** (1 / len(factors)) / norm) for f, norm in zip(factors, norms)]


def fitted(dims, coords, values, factors, iterations, update=by_als, inner=1, ridge=0.0, biases=False, loss=Squares()):
    """Returns (records, model). A record has the loss and the RMSE after an outer iteration; the model
    is (factors, mean, biases)."""
    factors, rank, records = balanced(factors), factors[0].shape[1], []
    mean, shifts = (values.mean(), [np.zeros(d) for d in dims]) if biases else (0.0, [])
    for _ in range(iterations):
        for n, size in enumerate(dims):
            own, sorted_values = sorted_by(coords, values, n)
            products, x = products_of(own, factors, n, rank), factors[n]
            rest = sorted_values - mean - sum(b[own[k]] for k, b in enumerate(shifts) if k != n)
            if biases:
                products, x = np.column_stack([products, np.ones(len(rest))]), np.column_stack([x, shifts[n]])
            x = update(own[n], rest, products, x, ridge, inner)
            x[np.bincount(own[n], minlength=size) == 0] = 0
            if biases:
                shifts[n], x = x[:, rank], x[:, :rank]
            factors[n] = x.copy()
        model = factors, mean, shifts
        records.append({"loss": loss(values, predicted(coords, model)).sum(), "rmse": rmse(coords, values, model)})
    return records, model
