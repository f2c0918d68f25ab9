#!/usr/bin/python3
"""Residuals of a model at the nonzeros of a store, against NumPy: list, order, quantiles, norms."""

import csv
import io
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
from measured import works_as_named  # noqa: E402
from tap import check, run, sluice, unpacked  # noqa: E402

FRACTIONS = (0.5, 0.9, 0.99, 0.999)


def deviances(loss, x, m):
    """Returns the deviances of values `x` by NumPy, for model values `m` (log-odds for bernoulli)."""
    if loss == "poisson":
        return 2 * (m - x + np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / m), 0))
    if loss == "bernoulli":
        return 2 * np.logaddexp(0, np.where(x == 1, -m, m))
    return (x - m) ** 2


def expected(coords, values, folder, mean=lambda m: m):
    """Returns (expected value, residual) at the coordinates, by NumPy."""
    factors = [np.load(os.path.join(folder, f"mode-{n + 1}.npy")) for n in range(len(coords))]
    product = np.load(os.path.join(folder, "lambda.npy")).reshape(1, -1)
    for factor, index in zip(factors, coords):
        product = product * factor[index]
    model = mean(product.sum(axis=1))
    return model, values - model


def listed(coords, score, top):
    """Returns the positions of the largest scores; equal scores are in order of ascending
    coordinates."""
    keep = np.flatnonzero(score >= 0)
    return keep[np.lexsort((*coords[::-1, keep], -score[keep]))][:top]


def compare(coords, values, out, store=None, *options):
    """Compares a report, a CSV, and lists by all scores; returns the report."""
    where = (store,) if store else ()
    model, residual = expected(coords, values, out)
    report = json.loads(sluice("residuals", out, *where, "--json", "--top", 50, *options)[0])
    scale = np.abs(values).max()
    check(report["nnz"] == len(values), report)
    for name, want in (("norm", np.linalg.norm(residual)), ("values_norm", np.linalg.norm(values)),
                       ("rmse", np.sqrt(np.mean(residual ** 2))), ("mae", np.abs(residual).mean()),
                       ("mean", residual.mean()), ("largest", np.abs(residual).max())):
        check(abs(report[name] - want) <= 1e-12 * max(scale, abs(want)), f"{name}: {report[name]}, wanted {want}")
    ordered = np.sort(np.abs(residual))
    for fraction in FRACTIONS:
        want = ordered[max(int(np.ceil(fraction * len(ordered))) - 1, 0)]
        check(abs(report["quantiles"][str(fraction)] - want) <= 1e-12 * scale, (fraction, want, report["quantiles"]))
    scores = {"absolute": np.abs(residual), "relative": np.abs(residual / values),
              "above": np.where(residual > 0, residual, -1), "below": np.where(residual < 0, -residual, -1)}
    for name, score in scores.items():
        text = sluice("residuals", out, *where, "--csv", "--by", name, "--top", 50, *options)[0]
        rows = list(csv.DictReader(io.StringIO(text)))
        want = listed(coords, score, 50)
        check(len(rows) == len(want), f"{name}: {len(rows)} rows, wanted {len(want)}")
        for row, at in zip(rows, want):
            index = [int(row[f"mode_{n + 1}"]) - 1 for n in range(len(coords))]
            got = float(row["model"])
            # Scores that differ by rounding only may be in another order.
            check(index == list(coords[:, at]) or abs(scores[name][at] - score_at(row, name)) <= 1e-12 * scale, (name, row, coords[:, at]))
            check(abs(float(row["value"]) - got - float(row["residual"])) <= 1e-15 * scale, row)
    check([n["index"] for n in report["nonzeros"]] ==
          [[int(row[f"mode_{n + 1}"]) for n in range(len(coords))] for row in csv.DictReader(io.StringIO(
              sluice("residuals", out, *where, "--csv", "--top", 50, *options)[0]))], "JSON and CSV differ")
    return report


def score_at(row, name):
    residual = float(row["residual"])
    return abs(residual / float(row["value"])) if name == "relative" else abs(residual)


def real(folder):
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "r")
    path = unpacked("cmudict-wpp")
    sluice("convert", path, store, "-q", "--relabel", "frequency", "--block-bytes", "64KiB")
    sluice("cpd", store, "-r", 5, "-i", 2, "--tol", 0, "-o", out, "-q")
    _, coords, values = cp_als.read_tns(path)
    report = compare(coords, values, out)
    # Bits do not depend on threads, on the I/O method, or on the number of passes of a small budget.
    least = works_as_named(("residuals", out, "--top", 50, "-t", 1), 2)[1]
    for options in (("-t", 1, "--memory", least), ("-t", 3, "--io", "pread"), ("-t", 2, "--io", "mmap")):
        other = json.loads(sluice("residuals", out, "--json", "--top", 50, *options)[0])
        print(f"# {options}: {other['passes']} passes")
        check("--memory" not in options or other["passes"] > 1, "a small budget keeps all residuals in memory")
        check({**other, "passes": 0, "bytes_read": 0} == {**report, "passes": 0, "bytes_read": 0}, (options, other))


def losses(folder):
    """For other losses, models are expected values, and nonzeros have deviances, in residuals and in
    predict."""
    rng = np.random.default_rng(5)
    coords = np.array(np.unravel_index(np.sort(rng.choice(20 * 12 * 9, 1500, replace=False)), (20, 12, 9)))
    for loss, values, words, mean in (
            ("poisson", rng.poisson(3, 1500) + 1.0, (), lambda m: m),
            ("bernoulli", rng.integers(0, 2, 1500).astype(float), ("--observed",), lambda m: 1 / (1 + np.exp(-m)))):
        path, store, out = (os.path.join(folder, loss + end) for end in (".tns", ".slc", ".r"))
        np.savetxt(path, np.column_stack([*(coords + 1), values]), "%d")
        sluice("convert", path, store, "-q", "--keep-zeros")
        sluice("cpd", store, "-r", 2, "-i", 4, "--loss", loss, *words, "-o", out, "-q")
        m = expected(coords, values, out)[0]
        model, residual = expected(coords, values, out, mean)
        want = deviances(loss, values, m)
        report = json.loads(sluice("residuals", out, "--json", "--by", "deviance", "--top", 30)[0])
        check(report["loss"] == loss and report["by"] == "deviance", report)
        for name, number in (("deviance", want.mean()), ("rmse", np.sqrt((residual ** 2).mean()))):
            check(abs(report[name] - number) <= 1e-11 * number, (loss, name, report[name], number))
        got = [n["deviance"] for n in report["nonzeros"]]
        check(np.allclose(got, np.sort(want)[::-1][:30], rtol=1e-11), (loss, got))
        place = {tuple(at + 1): i for i, at in enumerate(coords.T)}
        for n in report["nonzeros"]:
            at = place[tuple(n["index"])]
            check(abs(n["model"] - model[at]) <= 1e-12 and abs(n["deviance"] - want[at]) <= 1e-11 * want[at], (loss, n))
        text = sluice("residuals", out, "--by", "deviance", "--top", 3)[0]
        check(f"on average, for the loss {loss}" in text and len(text.splitlines()[-1].split()) == 7, text)
        rows = np.loadtxt(io.StringIO(sluice("predict", out, path, "-q", "-o", "-")[0]))
        check(np.abs(rows[:, 4] - model).max() <= 1e-12 and np.abs(rows[:, 5] - residual).max() <= 1e-12, loss)
        found = json.loads(sluice("predict", out, path, "--json", "-o", os.path.join(folder, loss + ".out"))[0])
        check(abs(found["deviance"] - want.mean()) <= 1e-11 * want.mean(), (loss, found))
        # A value for which the loss is not defined has no deviance.
        odd = os.path.join(folder, loss + "-odd.tns")
        with open(odd, "w", encoding="ascii") as file:
            file.write("1 1 1 0.5\n2 2 2 1\n")
        check(json.loads(sluice("predict", out, odd, "--json", "--index-base", 1, "-o", os.path.join(folder, loss + ".odd"))[0])["deviance"] is None, loss)


def generated(folder):
    """Residuals agree for a rank above 64, a mode of size 1, four modes, and equal residuals."""
    path, store, out = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "r"))
    rng = np.random.default_rng(3)
    dims = (40, 1, 30, 7)
    keys = rng.choice(np.prod(dims), 2000, replace=False)
    coords = np.array(np.unravel_index(np.sort(keys), dims))
    values = rng.integers(1, 4, len(keys)).astype(float)
    np.savetxt(path, np.column_stack([*(coords + 1), values]), "%d")
    sluice("convert", path, store, "-q", "--dims", "x".join(map(str, dims)))
    sluice("cpd", store, "-r", 70, "-i", 1, "--tol", 0, "-o", out, "-q")
    compare(coords, values, out, store)
    # With zero factors, a residual is the value; equal residuals are in the order of coordinates.
    for n, size in enumerate(dims):
        np.save(os.path.join(out, f"mode-{n + 1}.npy"), np.zeros((size, 70)))
    compare(coords, values, out, store)


def transformed(folder):
    """Values are those of the store, after its transform; names are those of the table."""
    path, store, out = (os.path.join(folder, name) for name in ("t.csv", "t.slc", "r"))
    rng = np.random.default_rng(4)
    coords = np.array(np.unravel_index(np.sort(rng.choice(20 * 12 * 5, 300, replace=False)), (20, 12, 5)))
    counts = rng.integers(1, 1000, 300)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["who", "where", "when", "n"])
        writer.writerows([f'p "{i}"', f"q,{j}", f"r{k}", n] for (i, j, k), n in zip(coords.T, counts))
    sluice("convert", path, store, "-q", "--columns", "who,where,when", "--value", "n", "--transform", "log1p")
    sluice("cpd", store, "-r", 3, "-i", 3, "--tol", 0, "-o", out, "-q")
    # Names are numbered in order of appearance.
    ids = np.array([{v: i for i, v in reversed(list(enumerate(dict.fromkeys(c))))}[x] for c in coords for x in c]).reshape(3, -1)
    compare(ids, np.log1p(counts), out)
    rows = list(csv.DictReader(io.StringIO(sluice("residuals", out, "--csv", "--top", 300)[0])))
    known = {(f'p "{i}"', f"q,{j}", f"r{k}"): np.log1p(n) for (i, j, k), n in zip(coords.T, counts)}
    check(len(rows) == 300 and all(abs(known[row["who"], row["where"], row["when"]] - float(row["value"])) < 1e-12
                                   for row in rows), rows[:3])


run([
    ("a real tensor, relabelled; threads, I/O and budget", real),
    ("a high rank, a mode of size 1, ties", generated),
    ("a transform, names", transformed),
    ("other losses", losses),
])
