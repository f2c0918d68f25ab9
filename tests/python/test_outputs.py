#!/usr/bin/python3
"""What leaves: the strongest rows of components against NumPy's sort, and every form of output by
the reader of its own ecosystem."""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(__file__))
from tap import check, load_json, run, sluice  # noqa: E402


def factored(folder, dims="60x50x40", rank=5, more=()):
    """A store and the folder of a run of it."""
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "run")
    sluice("generate", store, "--dims", dims, "--nnz", 3000, "-q")
    sluice("cpd", store, "-r", rank, "-i", 3, "--tol", 0, "-o", out, "-q", *more)
    return store, out


def factors_of(folder):
    record = load_json(os.path.join(folder, "run.json"))
    return (np.load(os.path.join(folder, "lambda.npy")),
            [np.load(os.path.join(folder, f"mode-{k + 1}.npy")) for k in range(len(record["tensor"]["dims"]))])


def check_top(told, weights, factors, order, rows, strength):
    check([c["component"] - 1 for c in told["components"]] == list(order), f"order {told}")
    for component in told["components"]:
        r = component["component"] - 1
        check(component["weight"] == weights[r], f"weight {component['weight']}")
        for mode in component["modes"]:
            column = factors[mode["mode"] - 1][:, r].astype(np.float64)
            best = np.argsort(-strength(column), kind="stable")[:rows]
            check(mode["length"] == len(column), f"length {mode['length']}")
            check([row["index"] - 1 for row in mode["rows"]] == best.tolist(), f"component {r + 1}, {mode}")
            check([row["value"] for row in mode["rows"]] == column[best].tolist(), f"values of {mode}")


def top(folder):
    """Components by weight, rows by absolute value or value, in both precisions; all of them, and some."""
    for precision in ("f64", "f32"):
        here = os.path.join(folder, precision)
        os.mkdir(here)
        _, out = factored(here, more=("--precision", precision))
        weights, factors = factors_of(out)
        by_weight = np.argsort(-np.abs(weights), kind="stable")
        told = json.loads(sluice("top", out, "--json")[0])
        check(told["schema"] == "sluice-top-1" and told["rank"] == 5, f"{told}")
        check_top(told, weights, factors, by_weight, 10, np.abs)
        told = json.loads(sluice("top", out, "--json", "--order", "number", "-n", 100, "--by", "value")[0])
        check_top(told, weights, factors, range(5), 100, lambda x: x)
        told = json.loads(sluice("top", out, "--json", "--component", "4,2", "--mode", "3,1", "-n", 1)[0])
        check_top(told, weights, factors, (3, 1), 1, np.abs)
        check([m["mode"] for m in told["components"][0]["modes"]] == [3, 1], "order of modes")


def top_text(folder):
    """The text tells the same rows, and says of what is asked wrongly what there is."""
    _, out = factored(folder)
    weights, factors = factors_of(out)
    text, messages = sluice("top", out, "-c", 3, "-m", 2, "-n", 4)
    best = np.argsort(-np.abs(factors[1][:, 2]), kind="stable")[:4]
    lines = text.splitlines()
    check(messages == "" and lines[2] == f"Component 3, weight {weights[2]:.6g}", text)
    check([int(line.split()[1]) - 1 for line in lines[4:]] == best.tolist(), text)
    check([line.split()[0] for line in lines[4:]] == [f"{x:.6g}" for x in factors[1][best, 2]], text)
    check("5 components" in sluice("top", out, "-c", 6, status=2)[1], "component 6")
    check("3 modes" in sluice("top", out, "-m", 4, status=2)[1], "mode 4")
    check("neither" in sluice("top", folder, status=3)[1], "a folder without factors")
    check("--memory" in sluice("top", out, "--memory", "1MiB", status=4)[1], "a budget that is too small")


def top_of_others(folder):
    """A folder of NumPy's own, without run.json and weights; one whose record and files disagree."""
    rng = np.random.default_rng(1)
    factors = [rng.standard_normal((n, 3)) for n in (20, 7)]
    np.save(os.path.join(folder, "mode-1.npy"), np.asfortranarray(factors[0]))
    np.save(os.path.join(folder, "mode-2.npy"), factors[1].astype(">f4"))
    factors[1] = factors[1].astype(np.float32)
    told = json.loads(sluice("top", folder, "--json", "-n", 8)[0])
    check_top(told, np.ones(3), factors, range(3), 8, np.abs)
    check(told["store"] is None, f"{told['store']}")
    check("weight" not in sluice("top", folder)[0], "weights that are not there")
    record = {"schema": "sluice-run-1", "tensor": {"path": "x", "dims": [20, 8], "content_sum": "0" * 16}}
    for change, part in ((record, "7 x 3, but 8 x 3"), (record | {"schema": "x"}, "schema"),
                         (record | {"tensor": {}}, "path"), ({}, "schema")):
        with open(os.path.join(folder, "run.json"), "w") as file:
            json.dump(change, file)
        check(part in sluice("top", folder, status=3)[1], part)


def top_in_a_budget(folder):
    """A factor of 64 MB within 32 MiB."""
    rng = np.random.default_rng(2)
    factors = [rng.standard_normal((1000000, 8)), rng.standard_normal((3, 8))]
    for k, factor in enumerate(factors):
        np.save(os.path.join(folder, f"mode-{k + 1}.npy"), factor)
    told = json.loads(sluice("top", folder, "--json", "--memory", "32MiB", "-n", 1000)[0])
    check_top(told, np.ones(8), factors, range(8), 1000, np.abs)


run([
    ("top: as NumPy sorts", top),
    ("top: text", top_text),
    ("top: folders of others", top_of_others),
    ("top: a factor larger than the budget", top_in_a_budget),
])
