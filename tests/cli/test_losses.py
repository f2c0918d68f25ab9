#!/usr/bin/env python3
"""Losses of cpd: known answers of Poisson models, planted completions, refusals, and the bits of runs
that are killed, stopped or have other numbers of threads."""

import array
import json
import math
import os
import random
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from methods import METHODS  # noqa: E402
from tap import FULL, QUICK, SLUICE, check, load_json, npy as packed, run, run_command, sluice  # noqa: E402

SEED = int(os.environ.get("SLC_TEST_SEED", "1"))


def write(folder, name, rows, *more):
    """Converts rows of indices from 0 and a value to a store."""
    text = os.path.join(folder, name + ".tns")
    with open(text, "w") as file:
        for index, value in rows:
            file.write(" ".join(str(i + 1) for i in index) + f" {value!r}\n")
    path = os.path.join(folder, name + ".slc")
    sluice("convert", text, path, "-q", *more)
    return path


def uniform(draw, size, rank, low=-1.0, high=1.0):
    return [[draw.uniform(low, high) for _ in range(rank)] for _ in range(size)]


def value(factors, index):
    return sum(math.prod(factor[i][r] for factor, i in zip(factors, index)) for r in range(len(factors[0][0])))


def cells(draw, dims, count):
    found = set()
    while len(found) < count:
        found.add(tuple(draw.randrange(size) for size in dims))
    return sorted(found)


def cpd(path, folder, *args):
    """Runs cpd, and returns its run.json."""
    out = os.path.join(folder, "out")
    sluice("cpd", path, "-o", out, "-q", "--restart", *args)
    return load_json(os.path.join(out, "run.json"))


def poisson(draw, mean):
    limit, count, product = math.exp(-mean), 0, draw.random()
    while product > limit:
        count, product = count + 1, product * draw.random()
    return count


def counts(folder, name="counts", dims=(30, 25, 20)):
    """Returns counts of a planted model of rank 3."""
    draw = random.Random(SEED)
    factors = [uniform(draw, size, 3, 0.0, 1.0) for size in dims]
    rows = []
    for i in range(dims[0]):
        for j in range(dims[1]):
            for k in range(dims[2]):
                count = poisson(draw, value(factors, (i, j, k)))
                rows += [((i, j, k), float(count))] if count > 0 else []
    return write(folder, name, rows)


def npy(path):
    """Returns the rows of a .npy file of doubles."""
    with open(path, "rb") as file:
        head = file.read(10)
        text = file.read(int.from_bytes(head[8:10], "little")).decode()
        shape = [int(one) for one in text[text.index("(") + 1:text.index(")")].split(",") if one.strip()]
        numbers = array.array("d", file.read())
    columns = shape[1] if len(shape) > 1 else 1
    return [list(numbers[i * columns:(i + 1) * columns]) for i in range(shape[0])]


def likelihood(path, folder):
    """Returns the log-likelihood of the written model, computed from the counts."""
    out = os.path.join(folder, "out")
    weights = [row[0] for row in npy(os.path.join(out, "lambda.npy"))]
    factors = [npy(os.path.join(out, f"mode-{n}.npy")) for n in (1, 2, 3)]
    factors[0] = [[w * a for w, a in zip(weights, row)] for row in factors[0]]
    sums = [[sum(row[r] for row in factor) for r in range(len(weights))] for factor in factors]
    total = -sum(math.prod(column[r] for column in sums) for r in range(len(weights)))
    for line in open(path.replace(".slc", ".tns")):
        *index, count = line.split()
        total += float(count) * math.log(value(factors, [int(i) - 1 for i in index]))
    return total


def finds_the_likelihood_of_counts(folder):
    """mu and pdnr reach the same log-likelihood from all starts; it rises in every iteration, and is
    that of the factors that are written."""
    path = counts(folder)
    best = {}
    for method, tolerance in (("mu", 2e-4), ("pdnr", 1e-5)):
        for seed in range(3):
            record = cpd(path, folder, "-r", 3, "--loss", "poisson", "--method", method, "-i", 3000, "--seed", seed,
                         "--tol", tolerance)
            series = [one["objective"] for one in record["iterations"]]
            check(record["reason"] == "tol", f"{method} {seed}: {record['reason']}, {record['violation']}")
            check(record["method"] == method and record["loss"] == "poisson", f"{record['method']}")
            # mu may lose a little when it releases a zero that should be positive.
            check(method == "mu" or all(b >= a - 1e-9 * abs(a) for a, b in zip(series, series[1:])), f"{method} {seed}: {series}")
            check(record["violation"] <= tolerance, f"violation {record['violation']}")
            best.setdefault(method, []).append(record["objective"])
            check(abs(record["objective"] - likelihood(path, folder)) < 1e-6 * abs(record["objective"]), "of the factors")
    check(abs(max(best["mu"]) - max(best["pdnr"])) < 0.1, f"{best}")


def refuses_what_is_no_count(folder):
    """A negative or fractional value is refused with its place."""
    negative = write(folder, "negative", [((0, 0, 0), 1.0), ((1, 2, 3), -4.0), ((1, 2, 4), -1.0)])
    fraction = write(folder, "fraction", [((0, 0, 0), 1.0), ((1, 0, 0), 2.5)])
    for path, words in ((negative, "nonzero (2,3,4) is -4"), (fraction, "nonzero (2,1,1) is 2.5")):
        _, stderr = sluice("cpd", path, "-r", 2, "--loss", "poisson", "--nowrite", status=3)
        check(words in stderr and "loss 'ls'" in stderr, stderr)
    _, stderr = sluice("cpd", fraction, "-r", 2, "--loss", "bernoulli", "--observed", "--nowrite", status=3)
    check("is 2.5" in stderr and "0 and 1" in stderr, stderr)


def refuses_what_does_not_fit(folder):
    path = write(folder, "t", [((0, 0, 0), 1.0), ((1, 1, 1), 2.0)])
    for args, words in (
            (["--loss", "poisson", "--method", "als"], "'mu' or 'pdnr'"),
            (["--method", "mu"], "'als', 'hals' or 'admm'"),
            (["--observed", "--method", "hals"], "'als', 'ccd' or 'newton'"),
            (["--loss", "huber"], "unlisted cells are unknown"),
            (["--loss", "huber", "--observed", "--method", "als"], "newton"),
            (["--biases", "all"], "unknown"),
            (["--loss", "poisson", "--observed", "--biases", "mean"], "'ls', 'huber' or 'bernoulli'"),
            (["--loss", "poisson", "--l1", "1"], "constraints"),
            (["--loss", "poisson", "--reg", "1"], "regularization"),
            (["--observed", "--simplex"], "constraints")):
        _, stderr = sluice("cpd", path, "-r", 2, "--nowrite", *args, status=2)
        check(words in stderr, f"{args}: {stderr}")


def completes_a_planted_tensor(folder):
    """Every method completes a noise-free tensor of rank 3 from part of its cells."""
    draw = random.Random(SEED)
    dims = (40, 30, 20)
    factors = [uniform(draw, size, 2) for size in dims]
    rows = [(index, value(factors, index)) for index in cells(draw, dims, 6000)]
    path = write(folder, "planted", rows)
    norm = math.sqrt(sum(one * one for _, one in rows) / len(rows))
    for method in ("als", "ccd", "newton"):
        errors = []
        for seed in range(3):
            record = cpd(path, folder, "-r", 2, "--observed", "--method", method, "--holdout", "5%", "-i", 200,
                         "--seed", seed, "--biases", "none", "--inner", 20)
            errors.append(record["holdout"]["rmse"] / norm)
        check(min(errors) < 1e-6, f"{method}: {errors}")


def finds_biases_of_ratings(folder):
    """Biases plus rank 1 with noise: the held-out error is near the noise, and the biases are named
    in the record and are the last components."""
    draw = random.Random(SEED)
    dims, noise = (120, 100), 0.5
    biases = [[draw.gauss(0, 0.7) for _ in range(size)] for size in dims]
    factors = [[[draw.gauss(0, 1)] for _ in range(size)] for size in dims]
    rows = [(index, 3.5 + biases[0][index[0]] + biases[1][index[1]] + value(factors, index) + draw.gauss(0, noise))
            for index in cells(draw, dims, 6000)]
    path = write(folder, "ratings", rows)
    record = cpd(path, folder, "-r", 1, "--observed", "--holdout", "10%", "-i", 60)
    check(record["biases"] == [1, 2, "mean"] and record["rank"] == 4, f"{record['biases']}, {record['rank']}")
    check(record["holdout"]["rmse"] < 1.06 * noise, f"{record['holdout']}")
    check(record["best_iteration"] >= 1, f"{record['best_iteration']}")
    stdout, _ = sluice("top", os.path.join(folder, "out"), "--rows", 1)
    labels = [line.split(", ")[2:] for line in stdout.splitlines() if line.startswith("Component")]
    check(sorted(labels) == [[], ["bias of mode 1"], ["bias of mode 2"], ["mean"]], f"{labels}")
    zeros = cpd(path, folder, "-r", 1, "--holdout", "10%")["holdout"]["rmse"]
    check(zeros > 2.0, f"{zeros}")


def fits_other_losses(folder):
    """Newton's method reduces the other losses in every iteration."""
    draw = random.Random(SEED)
    dims = (40, 30, 20)
    factors = [uniform(draw, size, 2, 0.3, 1.3) for size in dims]
    listed = cells(draw, dims, 4000)
    values = {"bernoulli": lambda m: float(draw.random() < 1 / (1 + math.exp(-3 * (m - 1.2)))),
              "gamma": lambda m: draw.gammavariate(5.0, m / 5.0) + 1e-3,
              "huber": lambda m: m + draw.gauss(0, 0.1) + (50.0 if draw.random() < 0.02 else 0.0),
              "poisson": lambda m: float(poisson(draw, 3 * m) + 1)}
    for loss, make in values.items():
        rows = [(index, make(value(factors, index))) for index in listed]
        path = write(folder, loss, [row for row in rows if row[1] != 0.0])
        record = cpd(path, folder, "-r", 2, "--observed", "--loss", loss, "-i", 15, "--tol", 0,
                     *(["--biases", "mean"] if loss == "bernoulli" else []))
        series = [one["objective"] for one in record["iterations"]]
        check(record["method"] == "newton", f"{record['method']}")
        check(series[-1] <= series[0] and all(math.isfinite(one) for one in series), f"{loss}: {series}")


def resumes_only_the_same_run(folder):
    """A checkpoint of another method, loss, parameter or set of biases is refused, and the message names
    the option, also if the number of components is the same."""
    path, out = counts(folder), os.path.join(folder, "out")
    stopped = ["cpd", path, "-o", out, "-q", "--tol", 0, "--maxsecs", "0.000001"]
    huber = ["-r", 3, "--observed", "--loss", "huber"]
    for first, others in (
            (["-r", 4, "--loss", "poisson"], (("method", ["-r", 4, "--loss", "poisson", "--method", "pdnr"]),
                                              ("inner", ["-r", 4, "--loss", "poisson", "--inner", 5]),
                                              ("method", ["-r", 4, "--nonnegative"]))),
            (["-r", 7, "--observed", "--biases", "none"], (("biases", ["-r", 3, "--observed"]),
                                                           ("biases", ["-r", 6, "--observed", "--biases", "mean"]),
                                                           ("ridge", ["-r", 7, "--observed", "--biases", "none", "--reg", "1=0"]))),
            (huber, (("huber", [*huber, "--huber", 2]), ("method", ["-r", 3, "--observed"]),
                     ("loss", ["-r", 3, "--observed", "--method", "newton"])))):
        sluice(*stopped, "--restart", *first, status=75)
        for name, args in others:
            _, stderr = sluice(*stopped, *args, status=2)
            check(f"ckpt: {name}" in stderr and "--restart" in stderr, f"{first}, {args}: {stderr}")
        sluice(*stopped, *first, status=75)


def refuses_bad_starts(folder):
    """Starts that are negative, not finite, or too large are refused; no run ends with a model that
    its loss forbids."""
    path, start = write(folder, "t", [((i, i, i), float(i + 1)) for i in range(4)]), os.path.join(folder, "start")
    os.mkdir(start)
    for bad, poisson, unknown in ((-1.0, "negative number -1", ""), (math.nan, "is nan", "is nan"), (1e200, "not finite", "too large")):
        for mode in (1, 2, 3):
            # Only the 1e200 of all modes overflow together.
            number = bad if mode == 2 or bad == 1e200 else 1.0
            packed(os.path.join(start, f"mode-{mode}.npy"), [1.0, number] * 4, 4, 2)
        for args, words in ((["--loss", "poisson"], poisson), (["--observed", "--loss", "gamma"], poisson if bad < 0 else unknown),
                            (["--observed", "--loss", "poisson"], poisson if bad < 0 else unknown),
                            (["--observed", "--biases", "none"], unknown)):
            done = run_command(["cpd", path, "-r", "2", "--nowrite", "-q", "--init", start, *args])
            check(done.returncode == (3 if words and bad != 1e200 else 1 if words else 0) and words in done.stderr,
                  f"{bad}, {args}: {done.returncode} {done.stderr}")
    _, stderr = sluice("cpd", path, "-r", 2, "--nowrite", "--observed", "--loss", "huber", "--huber", 0, status=2)
    check("above 0" in stderr, stderr)


def survives_degenerate_tensors(folder):
    """Results are finite for tensors with empty slices, for ranks above mode sizes, and for order
    1."""
    rows = [((i, 2 * i % 5, 7), float(1 + i)) for i in range(6)]
    wide = write(folder, "wide", rows, "--dims", "9x9x9")
    line = write(folder, "line", [((i,), float(1 + i)) for i in range(5)], "--dims", "8")
    for path in (wide, line):
        for args in (["--loss", "poisson"], ["--loss", "poisson", "--method", "pdnr"], ["--observed"],
                     ["--observed", "--method", "ccd"], ["--observed", "--reg", "0"]):
            for rank in (1, 12):
                record = cpd(path, folder, "-r", rank, "-i", 5, *args)
                check(all(math.isfinite(one) for one in record["lambda"]), f"{args} {rank}: {record['lambda']}")
                check(math.isfinite(record["fit"]), f"{args} {rank}: {record['fit']}")


def bytes_of(out):
    return [open(os.path.join(out, name), "rb").read() for name in sorted(os.listdir(out)) if name.endswith(".npy")]


# bernoulli needs other values, and has the solver of huber.
KILLED = [method for method in METHODS if method != "bernoulli"] if FULL else ["mu", "pdnr", "completion als", "ccd", "huber"]


def keeps_bits(method):
    """Deterministic runs have the same bits for any number of threads, and after kills."""
    def test(folder):
        path = counts(folder, dims=(60, 40, 30))
        sluice("layout", path, "--sorted", "all", "-q")
        draw = random.Random(SEED)

        def command(out, threads):
            return [SLUICE, "cpd", path, "-r", "4", "-i", "8", "--tol", "0", "--deterministic", "-t", str(threads),
                    "--checkpoint-interval", "0", "-q", "-o", os.path.join(folder, out), *METHODS[method]]

        start = time.monotonic()
        subprocess.run(command("one", 1), check=True)
        seconds = time.monotonic() - start
        whole = bytes_of(os.path.join(folder, "one"))
        for threads in (2, 7):
            subprocess.run(command(f"t{threads}", threads), check=True)
            check(bytes_of(os.path.join(folder, f"t{threads}")) == whole, f"{threads} threads")
        for _ in range(20 if FULL else 1 if QUICK else 3):
            child = subprocess.Popen(command("killed", draw.randint(1, 3)))
            time.sleep(draw.uniform(0, seconds))
            child.send_signal(draw.choice([signal.SIGKILL, signal.SIGINT]))
            child.wait()
        subprocess.run(command("killed", 2), check=True)
        check(bytes_of(os.path.join(folder, "killed")) == whole, "after kills")
    test.__doc__ = f"{method}: {keeps_bits.__doc__}"
    return test


def reports_objectives(folder):
    """The page of a run shows its objective and, for held-out nonzeros, the deviance."""
    path = counts(folder, dims=(30, 20, 10))
    for words, shown, absent in (
            (("--loss", "poisson", "--holdout", "10%"), ("log-likelihood", "Deviance of held-out nonzeros", "Mean deviance"), ()),
            (("--observed", "--holdout", "10%"), ("RMSE", "Error on held-out nonzeros"), ("Deviance of held-out",)),
            (("--l1", "0.1"), ("Objective after each iteration",), ("held-out",)), ((), (), ("Objective after each iteration",))):
        out = os.path.join(folder, "page" + str(len(words)) + words[0][2:] if words else "page")
        sluice("cpd", path, "-r", 2, "-i", 3, "-o", out, "-q", *words)
        sluice("report", out, "-o", out + ".html", "-q")
        with open(out + ".html", encoding="utf-8") as file:
            page = file.read()
        for text in (*shown, *(("Objective after each iteration",) if words else ())):
            check(text in page, f"{words}: no {text}")
        check(not any(text in page for text in absent), (words, absent))


def plans_what_runs(folder):
    """`plan` of each method is the plan of its run, and its estimate is near the run's time; layouts that
    a run would build do not change the store."""
    store = os.path.join(folder, "p.slc")
    sluice("generate", store, "--dims", "90x60x40", "--nnz", 20000, "--seed", 2, "-q")
    totals = set()
    for words in ((), ("--nonnegative",), ("--smooth", "1=2"), ("--loss", "poisson"), ("--loss", "poisson", "--method", "pdnr"),
                  ("--observed",), ("--observed", "--method", "ccd"), ("--observed", "--loss", "huber")):
        out = os.path.join(folder, "p" + str(len(totals)) + str(len(words)))
        planned = json.loads(sluice("plan", store, "-r", 5, "--no-probe", "--json", *words)[0])
        sluice("cpd", store, "-r", 5, "-i", 2, "-o", out, "-q", *words)
        plan = load_json(os.path.join(out, "run.json"))["plan"]
        for name in ("total_bytes", "minimum_bytes", "row_bytes", "factor_bytes", "iteration_bytes"):
            check(planned[name] == plan[name], (words, name, planned[name], plan[name]))
        totals.add(planned["total_bytes"])
    check(len(totals) > 4, f"methods differ in memory, but their plans have only {totals}")
    said = sluice("plan", store, "-r", 5, "--loss", "poisson", "--probe-seconds", "0.5")[0]
    check("Plan of CP-APR by multiplicative updates of rank 5" in said and "for 50 iterations" in said, said)
    check("names mode 4" in sluice("plan", store, "-r", 5, "--nonnegative=4", status=2)[1], "a mode that does not exist")


run([
    ("finds the likelihood of counts", finds_the_likelihood_of_counts),
    ("refuses what is no count", refuses_what_is_no_count),
    ("refuses what does not fit", refuses_what_does_not_fit),
    ("completes a planted tensor", completes_a_planted_tensor),
    ("finds biases of ratings", finds_biases_of_ratings),
    ("fits other losses", fits_other_losses),
    ("resumes only the same run", resumes_only_the_same_run),
    ("refuses bad starts", refuses_bad_starts),
    ("survives degenerate tensors", survives_degenerate_tensors),
    ("plans what runs", plans_what_runs),
    ("reports objectives", reports_objectives),
] + [(f"keeps bits: {method}", keeps_bits(method)) for method in KILLED])
