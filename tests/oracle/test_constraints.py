#!/usr/bin/python3
"""Decompositions with constraints: the published fit of nonnegative amino acids, constraints and
objectives checked by NumPy on the written factors, options of single modes, interruptions, errors."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
from tap import check, load_json, run, sluice, unpacked  # noqa: E402


def store_of(folder, name="genten-aminoacid_data"):
    path = os.path.join(folder, f"{name}.slc")
    if not os.path.exists(path):
        sluice("convert", unpacked(name), path, "-q")
    return path


def cpd(store, out, *options, rank=3, iterations=20, tolerance=0):
    """Runs the command; returns run.json, the weights and the factors."""
    sluice("cpd", store, "-r", rank, "-i", iterations, "--tol", tolerance, "-o", out, "-q", *options)
    record = load_json(os.path.join(out, "run.json"))
    count = len(record["tensor"]["dims"])
    return (record, np.load(os.path.join(out, "lambda.npy")),
            [np.load(os.path.join(out, f"mode-{n + 1}.npy")) for n in range(count)])


def squared_error(name, weights, factors):
    _, coords, values = cp_als.read_tns(unpacked(name))
    model = weights * np.prod([f[c] for f, c in zip(factors, coords)], axis=0)
    gram = np.prod([f.T @ f for f in factors], axis=0)
    return values @ values - 2 * values @ model.sum(axis=1) + weights @ gram @ weights


def amino_acids(folder):
    """Rank 3 without negative numbers has the same fit from every start and by both methods."""
    store, out = store_of(folder), os.path.join(folder, "out")
    for seed, method in ((1, "auto"), (2, "hals"), (3, "hals"), (4, "admm")):
        record, _, factors = cpd(store, out, "--nonnegative", "--seed", seed, "--method", method,
                                 iterations=2000, tolerance=1e-12)
        check(abs(record["fit"] - 0.974858884) <= 1e-6, f"{method}, seed {seed}: {record['fit']}")
        check(all(f.min() >= 0 for f in factors), f"{method}: negative numbers")
        check(record["method"] == ("hals" if method == "auto" else method), record["method"])
        fits = np.array([i["fit"] for i in record["iterations"]])
        check((np.diff(fits) >= -1e-12).all(), f"{method}: the fit falls by {np.diff(fits).min()}")
        check(record["objective"] is None, "an objective without penalties")


def objectives(folder):
    """Penalties: the recorded objective is that of the factors, and never rises."""
    name = "parti-3d_dense"
    store, out = store_of(folder, name), os.path.join(folder, "out")
    for method, more in (("hals", ()), ("admm", ()), ("hals", ("--precision", "f32")), ("hals", ("--devices", "2", "--split", "nnz"))):
        record, weights, factors = cpd(store, out, "--nonnegative=1,3", "--l1", "2=0.5", "--reg", "0.25", "--reg",
                                       "2=0", "--bounds", "1=-1,0.5", "--bounds", "3=0.125,2", "--method", method,
                                       "-t", "2", *more)
        label = f"{method} {more}"
        told = np.array([i["objective"] for i in record["iterations"]])
        slack = 1e-6 if "f32" in more else 1e-12
        check((np.diff(told) <= slack * told[1:]).all(), f"{label}: the objective rises: {told}")
        # Bounds of modes 1 and 3 keep their columns unnormalized, so the scale of a component is in
        # mode 2.
        check(factors[0].min() >= 0 and factors[0].max() <= 0.5, f"{label}: mode 1 exceeds its bounds")
        check(factors[2].min() >= 0.125 and factors[2].max() <= 2, f"{label}: mode 3 exceeds its bounds")
        want = (squared_error(name, weights, [f.astype(float) for f in factors]) / 2
                + 0.5 * np.abs(factors[1] * weights).sum() + 0.125 * sum((f.astype(float) ** 2).sum() for f in factors[::2]))
        check(abs(record["objective"] - want) <= (1e-5 if "f32" in more else 1e-9) * want, (label, record["objective"], want))
        check(record["options"]["nonnegative"] == [1, 3] and record["options"]["reg"] == ["0.25", "2=0"], record["options"])


def on_the_simplex(folder):
    """Rows have no negative numbers and add up to 1."""
    record, _, factors = cpd(store_of(folder), os.path.join(folder, "out"), "--simplex=2", "--nonnegative")
    check(record["method"] == "admm", record["method"])
    check(np.abs(factors[1].sum(axis=1) - 1).max() <= 1e-14 and factors[1].min() >= 0, "mode 2 is not on the simplex")
    check(np.abs(np.linalg.norm(factors[0], axis=0) - 1).max() <= 1e-12, "mode 1 is not normalized")


def smooth_columns(folder):
    """A penalty on differences of consecutive rows lowers these differences; it is refused for
    relabelled modes."""
    store, out = store_of(folder), os.path.join(folder, "out")
    differences = []
    for weight in (0.001, 1e6):
        # The bounds of the other modes keep the scale in mode 2.
        record, _, factors = cpd(store, out, "--smooth", f"2={weight}", "--nonnegative", "--bounds", "1=0,1",
                                 "--bounds", "3=0,1")
        check(record["method"] == "admm", record["method"])
        told = np.array([i["objective"] for i in record["iterations"]])
        check((np.diff(told) <= 1e-12 * told[1:]).all(), f"the objective rises: {told}")
        differences.append((np.diff(factors[1], axis=0) ** 2).sum())
    check(differences[1] < 0.5 * differences[0], differences)
    other = os.path.join(folder, "relabelled.slc")
    sluice("generate", other, "--dims", "3000x2000x500", "--nnz", 100000, "--dist", "zipf-shuffled:1.1", "--relabel",
           "frequency", "-q")
    mode = load_json(os.path.join(other, "tensor.json"))["permutations"][0]["mode"]
    _, err = sluice("cpd", other, "-r", 2, "--smooth", f"{mode}=1", "--nowrite", status=3)
    check("the store has relabelled it" in err, err)
    _, err = sluice("cpd", store, "-r", 2, "--smooth", "2=1", "--nowrite", "--devices", 2, "--split", "nnz", status=3)
    check("use one device" in err, err)


def sparse(folder):
    """A larger l1 penalty leaves fewer numbers."""
    store, out = store_of(folder), os.path.join(folder, "out")
    counts = [sum((f != 0).sum() for f in cpd(store, out, "--nonnegative", "--l1", l1)[2]) for l1 in (1, 3000, 30000)]
    check(counts[0] > counts[1] > counts[2] > 0, counts)


def single_modes(folder):
    """The same number for each mode is the number for all modes, to the bit."""
    store, out = store_of(folder), os.path.join(folder, "out")
    fits = [[i["fit"] for i in cpd(store, out, "--deterministic", *more, iterations=5)[0]["iterations"]]
            for more in (("--reg", "0.5"), ("--reg", "1=0.5", "--reg", "2=0.5", "--reg=3=0.5"), ("--reg", "2=0.5"))]
    check(fits[0] == fits[1] and fits[0] != fits[2], fits)


def interrupted(folder):
    """A run that was stopped again and again has the bits of one that was not; another constraint
    does not resume; a report repeats the options."""
    store, whole, out = store_of(folder), os.path.join(folder, "whole"), os.path.join(folder, "parts")
    command = ["cpd", store, "-r", "4", "-i", "30", "--tol", "0", "-q", "--deterministic", "--nonnegative", "--l1", "2=5",
               "--bounds", "1=0,1e6"]
    sluice(*command, "-o", whole)
    for threads in range(100):
        status = 75 if threads < 3 else 0
        sluice(*command, "-o", out, "-t", 1 + threads % 3, *(("--maxsecs", "0.000001") if status else ()), status=status)
        if threads == 0:
            _, err = sluice(*command, "--l1", "2=6", "-o", out, status=2)
            check("constraints is nonnegative; l1 0,6,0; bounds of mode 1 0,1000000, but the checkpoint has" in err, err)
            _, err = sluice(*command[:-5], "-o", out, status=2)
            check("--restart" in err, err)
        if not status:
            break
    for name in ("mode-1.npy", "mode-2.npy", "mode-3.npy", "lambda.npy"):
        with open(os.path.join(whole, name), "rb") as one, open(os.path.join(out, name), "rb") as other:
            check(one.read() == other.read(), f"other bytes in {name}")
    told = [[i["objective"] for i in load_json(os.path.join(each, "run.json"))["iterations"]] for each in (whole, out)]
    check(told[0] == told[1], "other objectives after a resume")


def sweeps(folder):
    """A sweep applies the constraints to all runs, and does not resume with others."""
    store, out = store_of(folder), os.path.join(folder, "sweep")
    command = ["cpd", store, "-r", "2,3", "-i", "5", "-q", "-o", out]
    sluice(*command, "--nonnegative", "--l1", "2=1")
    identity = load_json(os.path.join(out, "sweep.json"))["identity"]
    check(identity["method"] == "hals" and identity["constraints"] == "nonnegative; l1 0,1,0", identity)
    check(np.load(os.path.join(out, "r3-seed0", "mode-1.npy")).min() >= 0, "negative numbers")
    _, err = sluice(*command, status=2)
    check("--restart" in err, err)


def errors(folder):
    store = store_of(folder)
    for options, words in (
            (["--nonnegative", "--method", "als"], "use the method 'hals' or 'admm'"),
            (["--simplex", "--method", "hals"], "use the method 'admm'"),
            (["--smooth", "3=1", "--method", "hals"], "use the method 'admm'"),
            (["--method", "hal"], "did you mean hals?"),
            (["--nonnegative=4"], "--nonnegative names mode 4; the tensor has 3 modes"),
            (["--nonnegative="], "the value is empty"),
            (["--nonnegative=1,1"], "mode 1 is listed twice"),
            (["--l1", "4=1"], "--l1 names mode 4"),
            (["--l1", "x=1"], "'x' in 'x=1' is not a mode"),
            (["--l1", "-1"], "'-1' is not a number of 0 or more"),
            (["--reg", "2=nan"], "'nan' is not a number of 0 or more"),
            (["--bounds", "nan,1"], "'nan,1' is not a pair of numbers"),
            (["--bounds", "1"], "'1' is not a pair of numbers"),
            (["--bounds", "2=3,2"], "the bounds of mode 2 are 3 and 2"),
            (["--bounds", "inf,inf"], "no finite number is between the bounds of mode 1"),
            (["--nonnegative", "--bounds", "3=-2,-1"], "mode 3 cannot be nonnegative and at most -1"),
            (["--simplex=1", "--bounds", "1=2,3"], "cannot be on the simplex and between 2 and 3")):
        _, err = sluice("cpd", store, "-r", 2, "--nowrite", *options, status=2)
        check(words in err, (options, err))


if __name__ == "__main__":
    run([("amino acids: the published nonnegative fit", amino_acids), ("objectives", objectives),
         ("rows on the simplex", on_the_simplex), ("smooth columns", smooth_columns), ("an l1 penalty makes factors sparse", sparse),
         ("options of single modes", single_modes), ("interruptions", interrupted), ("sweeps", sweeps), ("errors", errors)])
