"""Random tensors and tables with a known model, and the similarity of a result to this model.

A planted model is (factors, weights): the columns of the factors have 1-norm 1, and a weight is the
number of events of a component."""

import itertools
import os

import numpy as np


def drawn(probabilities, count, rng):
    """Returns `count` random indices with these probabilities."""
    ends = np.cumsum(probabilities)
    return np.searchsorted(ends, rng.random(count) * ends[-1], side="right").astype(np.int64)


def events_of(model, rng):
    """Draws Poisson distributed events; returns their coordinates, one column per event, sorted by
    component."""
    factors, weights = model
    counts = rng.poisson(weights)
    events = np.empty((len(factors), counts.sum()), np.int64)
    for n, factor in enumerate(factors):
        events[n] = np.concatenate([drawn(factor[:, r], count, rng) for r, count in enumerate(counts)])
    return events


def counted(dims, events):
    """Returns distinct coordinates and the number of events of each."""
    keys, counts = np.unique(np.ravel_multi_index(events, dims), return_counts=True)
    return np.array(np.unravel_index(keys, dims)), counts.astype(float)


def sparse_model(dims, rank, events, rng, width=0.25):
    """Components with sparse, overlapping columns; small `width`s have fewer large elements."""
    factors = [rng.gamma(width, 1, (size, rank)) + 1e-4 for size in dims]
    shares = rng.random(rank) + 0.5
    return [f / f.sum(axis=0) for f in factors], events * shares / shares.sum()


def saved(path, dims, coords, values):
    """Writes a tensor to an .npz file that sluice reads, and returns its path."""
    np.savez(path, coords=coords, data=values, shape=np.array(dims), fill_value=np.array(0.0))
    return path


def part_of_cells(dims, rank, part, rng):
    """Returns factors with normal elements, and the exact values of a random part of the cells."""
    factors = [rng.standard_normal((size, rank)) for size in dims]
    cells = int(np.prod(dims))
    keys = np.unique(rng.integers(0, cells, int(cells * part * 1.02)))
    coords = np.array(np.unravel_index(keys, dims))
    return factors, coords, np.prod([f[rows] for f, rows in zip(factors, coords)], axis=0).sum(axis=1)


def fields(size, form):
    """Returns texts of equal width that name the indices of a mode."""
    return np.array([(form % i).encode() for i in range(size)])


def write_table(path, header, columns):
    """Writes a CSV. A column is an array of byte strings of equal width."""
    parts = []
    for column in columns:
        parts += [("", column.dtype), ("", "S1")]
    table = np.empty(len(columns[0]), dtype=[(f"f{i}", part[1]) for i, part in enumerate(parts)])
    for i, column in enumerate(columns):
        table[f"f{2 * i}"] = column
        table[f"f{2 * i + 1}"] = b"\n" if i + 1 == len(columns) else b","
    with open(path, "wb") as file:
        file.write(header.encode() + b"\n" + table.tobytes())


def write_ratings(folder, rows=1_200_000, users=4000, movies=2500, noise=0.7, seed=3):
    """Writes ratings: a mean, biases of users and movies, four components, and noise. Popular movies
    have more ratings. Returns (path, coordinates, ratings)."""
    rng = np.random.default_rng(seed)
    popularity = [rng.gamma(2.0, 1, size) + 0.1 for size in (users, movies)]
    keys = np.empty(0, np.int64)
    while len(keys) < rows:
        pairs = [drawn(p, rows, rng) for p in popularity]
        keys = np.unique(np.append(keys, pairs[0] * movies + pairs[1]))
    coords = np.array(np.divmod(rng.permutation(keys)[:rows], movies))
    biases = rng.normal(0, 0.4, users)[coords[0]] + rng.normal(0, 0.5, movies)[coords[1]]
    tastes = [rng.normal(0, 0.5, (size, 4)) for size in (users, movies)]
    ratings = 3.5 + biases + (tastes[0][coords[0]] * tastes[1][coords[1]]).sum(axis=1) + rng.normal(0, noise, rows)
    path = os.path.join(folder, "ratings.csv")
    texts = np.char.mod("%08.4f", ratings).astype("S8")
    write_table(path, "user,movie,rating", [fields(users, "u%04d")[coords[0]], fields(movies, "m%04d")[coords[1]], texts])
    return path, coords, np.array(texts, dtype=float)


def taxi_model(trips, background=0.25):
    """Four kinds of trips, and a uniform background as the last component. Modes: pickup zone, dropoff
    zone, hour, weekday."""
    zones, hours, days = 120, np.arange(24), np.arange(7)
    rng = np.random.default_rng(29)

    def places(first, last):
        weights = np.full(zones, 1e-3)
        weights[first:last] = rng.gamma(1.0, 1, last - first) + 0.1
        return weights

    def around(hour, width):
        apart = np.minimum((hours - hour) % 24, (hour - hours) % 24)
        return np.exp(-(apart / width) ** 2 / 2) + 1e-3

    homes, offices, bars, airport = places(0, 50), places(40, 70), places(65, 85), places(85, 88)
    workday, weekend = np.where(days < 5, 1.0, 0.05), np.where(days < 4, 0.1, 1.0)
    kinds = [(homes, offices, around(8, 1.5), workday), (offices, homes, around(18, 2), workday),
             (bars, homes, around(1, 2), weekend), (homes + offices, airport, around(14, 6), np.ones(7)),
             (np.ones(zones), np.ones(zones), np.ones(24), np.ones(7))]
    factors = [np.array([kind[n] / kind[n].sum() for kind in kinds]).T for n in range(4)]
    return factors, trips * np.append((1 - background) * np.array([0.35, 0.3, 0.2, 0.15]), background)


def write_trips(folder, trips=3_000_000, seed=11):
    """Writes a table with a row per trip. Returns (path, model)."""
    model = taxi_model(trips)
    rng = np.random.default_rng(seed)
    events = events_of(model, rng)
    events = events[:, rng.permutation(events.shape[1])]
    zones = fields(120, "zone%03d")
    path = os.path.join(folder, "trips.csv")
    write_table(path, "pickup,dropoff,hour,weekday",
                [zones[events[0]], zones[events[1]], fields(24, "%02d")[events[2]], fields(7, "day%d")[events[3]]])
    return path, model


def similarities(one, two):
    """Returns the products over the modes of the cosines of all pairs of columns."""
    out = 1.0
    for a, b in zip(one, two):
        out = out * np.abs((a / np.linalg.norm(a, axis=0)).T @ (b / np.linalg.norm(b, axis=0)))
    return out


def matched(one, two):
    """Returns the similarities of the components of `one` to components of `two`, in the best
    assignment for up to 6 components, else by the largest similarity first."""
    table, rank = similarities(one, two), one[0].shape[1]
    if rank <= 6:
        best = max(itertools.permutations(range(table.shape[1]), rank), key=lambda p: sum(table[r, c] for r, c in enumerate(p)))
        return table[np.arange(rank), list(best)]
    found, left = np.zeros(rank), table.copy()
    for _ in range(rank):
        r, c = np.unravel_index(left.argmax(), left.shape)
        found[r] = table[r, c]
        left[r], left[:, c] = -1, -1
    return found
