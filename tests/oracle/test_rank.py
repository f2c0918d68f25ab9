#!/usr/bin/python3
"""Criteria for choosing a rank, against NumPy: core consistency, factor match score, and the amino
acid data."""

import itertools
import json
import lzma
import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
from tap import check, load_json, run, sluice, unpacked  # noqa: E402


def model(folder, order):
    factors = [np.load(os.path.join(folder, f"mode-{n + 1}.npy")) for n in range(order)]
    return factors, np.load(os.path.join(folder, "lambda.npy")).reshape(-1)


def dense(path):
    dims, coords, values = cp_als.read_tns(path)
    tensor = np.zeros(dims)
    np.add.at(tensor, tuple(coords), values)
    return tensor


def core_consistency(tensor, factors, weights):
    """Bro and Kiers (2003) with the weights spread evenly, by NumPy's pseudo-inverses and products."""
    order, rank = len(factors), len(weights)
    core = tensor
    for factor in factors:
        inverse = np.linalg.pinv(factor * weights ** (1 / order))
        core = np.tensordot(core, inverse, axes=(0, 1))
    wanted = np.zeros((rank,) * order)
    wanted[(np.arange(rank),) * order] = 1
    return 100 * (1 - ((core - wanted) ** 2).sum() / rank)


def match_score(one, two):
    """Computes `score` of the Tensor Toolbox, by trying all permutations."""
    (first, weights), (second, others) = one, two
    rank = len(weights)
    gains = 1 - np.abs(weights[:, None] - others) / np.maximum(weights[:, None], others)
    for a, b in zip(first, second):
        gains = gains * np.abs(a.T @ b)
    return max(sum(gains[r, p[r]] for r in range(rank)) for p in itertools.permutations(range(rank))) / rank


def compare(out, tensor, order):
    record = load_json(os.path.join(out, "sweep.json"))
    for rank in record["ranks"]:
        runs = [r for r in record["runs"] if r["rank"] == rank["rank"]]
        models = {r["seed"]: model(os.path.join(out, r["folder"]), order) for r in runs}
        best = models[rank["best_seed"]]
        want = core_consistency(tensor, *best)
        check(abs(rank["core_consistency"] - want) <= 1e-6 * max(100, abs(want)), (rank, want))
        scores = []
        for one in runs:
            want = match_score(best, models[one["seed"]])
            check(abs(one["match_with_best"] - want) < 1e-10, (one, want))
            if one["seed"] != rank["best_seed"] and one["fit"] >= rank["fit"] - 1e-4:
                scores.append(want)
            largest = max(np.linalg.cond(f) for f in models[one["seed"]][0] if f.shape[0] >= rank["rank"])
            check(abs(one["condition"] / largest - 1) < 1e-4, (one, largest))
        check(rank["reached"] == 1 + len(scores), rank)
        check(abs(rank["agreement"] - np.mean(scores)) < 1e-10 if scores else rank["agreement"] is None, rank)
    return record


def amino_acids(folder):
    """With three components, every start finds a model with a core consistency of nearly 100 %; not
    with more."""
    path = unpacked("genten-aminoacid_data")
    store, out = os.path.join(folder, "a.slc"), os.path.join(folder, "s")
    sluice("convert", path, store)
    said, _ = sluice("cpd", store, "--rank", "2,3,4,5", "--runs", 3, "-i", 600, "--tol", 1e-7, "--deterministic", "--keep",
                     "all", "-o", out)
    record = compare(out, dense(path), 3)
    ranks = {r["rank"]: r for r in record["ranks"]}
    check(ranks[3]["core_consistency"] > 99 and ranks[3]["agreement"] > 0.99, ranks[3])
    check(abs(ranks[3]["fit"] - 0.97495148) < 1e-6, ranks[3])
    check((ranks[4]["agreement"] or 0) < 0.9 and ranks[5]["core_consistency"] < 50, (ranks[4], ranks[5]))
    check(record["suggestion"]["rank"] == 3 and "Suggested rank: 3," in said, record["suggestion"])


def shared_columns(folder):
    """Three planted components that share a column in two modes, such as days and homes: noise makes
    the core consistency of the planted rank negative, but this rank is suggested."""
    rng = np.random.default_rng(1)
    days, times, homes, works, bars = (rng.random(size) for size in (14, 5, 8, 7, 4))

    def part(size, start, values):
        out = np.zeros(size)
        out[start:start + len(values)] = values / values.sum()
        return out

    planted = [(days, 0, part(19, 0, homes), part(15, 0, works)), (days, 5, part(19, 8, works), part(15, 7, homes)),
               (rng.random(14), 10, part(19, 15, bars), part(15, 7, homes))]
    mean = sum(np.einsum("i,j,k,l", part(14, 0, day), part(15, at, times), start, end) for day, at, start, end in planted)
    counts = rng.poisson(2e5 * mean)
    text, store, out = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "s"))
    np.savetxt(text, np.column_stack([np.argwhere(counts > 0) + 1, counts[counts > 0]]), fmt="%d")
    sluice("convert", text, store, "-q")
    said, _ = sluice("cpd", store, "--rank", "1,2,3,4", "--runs", 4, "-o", out)
    record = load_json(os.path.join(out, "sweep.json"))
    planted_rank, best = record["ranks"][2], load_json(os.path.join(out, record["suggestion"]["best"], "run.json"))
    check(planted_rank["core_consistency"] < 0 and record["ranks"][0]["core_consistency"] > 99, record["ranks"])
    check(record["suggestion"]["rank"] == 3 and best["fit"] > 0.9, (record["suggestion"], record["ranks"]))
    check("explains much more than rank" in said and "nearly dependent (condition " in said, said)


def local_optimum(folder):
    """Five planted components, of which one of three starts finds four: it does not count."""
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "s")
    sluice("convert", cp_als.planted_counts(folder), store)
    said, _ = sluice("cpd", store, "--rank", 5, "--runs", 3, "--seed", 4, "-i", 30, "--tol", 0, "--consistency", "never",
                     "-o", out)
    record = load_json(os.path.join(out, "sweep.json"))
    rank = record["ranks"][0]
    mine = [r for r in record["runs"] if r["rank"] == 5]
    check(rank["reached"] == 2 and rank["agreement"] > 0.99 and rank["compared"] == 2, rank)
    check(np.mean(sorted(r["match_with_best"] for r in mine)[:2]) < 0.9, mine)
    check(record["suggestion"]["rank"] == 5 and "(2 of 3 reached its best fit)" in said, said)


def four_modes(folder):
    """A sweep over a sparse, relabelled tensor of four modes, in f64 and f32, agrees with NumPy;
    its records are equal for another number of threads."""
    text, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")
    sluice("generate", text, "--dims", "12x30x9x20", "--nnz", 4000, "--seed", 2, "--dist", "zipf-shuffled:1.2", "-q")
    sluice("convert", text, store, "--relabel", "frequency", "-q")
    out = os.path.join(folder, "s")
    sluice("cpd", store, "--rank", "1,3,5", "--runs", 3, "-i", 20, "--keep", "all", "-o", out, "-q")
    compare(out, dense(text), 4)
    records = []
    for threads in (1, 3):
        out = os.path.join(folder, f"t{threads}")
        sluice("cpd", store, "--rank", "2,4", "--runs", 2, "-i", 5, "--deterministic", "-t", threads, "-o", out, "-q")
        records.append(load_json(os.path.join(out, "sweep.json"))["ranks"])
    check(records[0] == records[1], records)
    out = os.path.join(folder, "f32")
    sluice("cpd", store, "--rank", "2,3", "-i", 5, "--runs", 2, "--precision", "f32", "--keep", "all", "-o", out, "-q")
    record = load_json(os.path.join(out, "sweep.json"))
    for rank in record["ranks"]:
        factors, weights = model(os.path.join(out, f"r{rank['rank']}-seed{rank['best_seed']}"), 4)
        want = core_consistency(dense(text), [f.astype(float) for f in factors], weights.astype(float))
        check(abs(rank["core_consistency"] - want) < 1e-3 * max(100, abs(want)), (rank, want))


def predicted(folder):
    """Values, residuals and errors at the coordinates of a text, in every format, agree with
    NumPy."""
    text, store, out = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "r"))
    sluice("generate", text, "--dims", "40x30x20", "--nnz", 20000, "--seed", 4, "--rank", 3, "--noise", 0.3, "-q")
    sluice("convert", text, store, "--relabel", "frequency", "-q")
    sluice("cpd", store, "-r", 300, "-i", 2, "-o", out, "-q")
    factors, weights = model(out, 3)
    coords = np.loadtxt(text)[:, :3].astype(int)
    values = np.loadtxt(text)[:, 3]
    want = (weights * np.prod([f[c - 1] for f, c in zip(factors, coords.T)], axis=0)).sum(axis=1)
    scale = (np.abs(weights) * np.prod([np.abs(f[c - 1]) for f, c in zip(factors, coords.T)], axis=0)).sum(axis=1)
    npy = os.path.join(folder, "p.npy")
    summary = json.loads(sluice("predict", out, text, "-o", npy, "--json")[0])
    got = np.load(npy)
    check(got.dtype == np.float64 and got.shape == (20000, 3), (got.dtype, got.shape))
    check((got[:, 0] == values).all() and (got[:, 2] == values - got[:, 1]).all(), "values or residuals are others")
    check((np.abs(got[:, 1] - want) <= 1e-13 * scale).all(), "the model's values are others")
    residuals = values - want
    for name, number in (("rmse", np.sqrt((residuals ** 2).mean())), ("mae", np.abs(residuals).mean()),
                         ("largest_error", np.abs(residuals).max()), ("values_norm", np.linalg.norm(values))):
        check(abs(summary[name] - number) <= 1e-12 * number, (name, summary, number))
    check(summary["count"] == 20000 and summary["index_base"] == 1, summary)
    # The same numbers as text and as CSV, from one thread and from several, and to standard output.
    lines, said = sluice("predict", out, text, "-t", 1)
    check("RMSE" in said, said)
    table = np.array([line.split() for line in lines.splitlines()], dtype=float)
    check((table[:, :3] == coords).all() and (table[:, 3:] == got).all(), "the text has other numbers")
    sluice("predict", out, text, "-t", 3, "-o", os.path.join(folder, "p.csv"))
    with open(os.path.join(folder, "p.csv")) as file:
        check(file.readline() == "mode_1,mode_2,mode_3,value,model,residual\n", "the names are others")
        check(file.read() == lines.replace(" ", ","), "the CSV has other numbers than the text")
    # A compressed text with coordinates only, from 0.
    alone = os.path.join(folder, "c.tns")
    np.savetxt(alone, coords - 1, fmt="%d")
    with open(alone, "rb") as file, lzma.open(alone + ".xz", "wb") as packed:
        packed.write(file.read())
    sluice("predict", out, alone + ".xz", "--index-base", 0, "-o", npy, "-f", "-q")
    check((np.load(npy) == got[:, 1]).all(), "coordinates alone have other values")
    lines, said = sluice("predict", out, alone)
    check("an index 0 occurs" in said and "without values" in said, said)
    check((np.array([line.split()[3] for line in lines.splitlines()], dtype=float) == got[:, 1]).all(), "others from 0")
    # Held-out nonzeros have the error of the fit on the rest.
    sluice("cpd", store, "-r", 3, "-i", 20, "-o", os.path.join(folder, "r3"), "-q")
    small = json.loads(sluice("predict", os.path.join(folder, "r3"), text, "--json")[0])
    fit = load_json(os.path.join(folder, "r3", "run.json"))["fit"]
    check(small["rmse"] < np.sqrt((values ** 2).mean()), small)
    check(0 < fit < 1, fit)


def mix(h):
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xff51afd7ed558ccd)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xc4ceb9fe1a85ec53)
    return h ^ (h >> np.uint64(33))


def held_out(coords, part, seed):
    """The nonzeros that are held out, by their indices from 0."""
    golden = np.uint64(0x9e3779b97f4a7c15)
    with np.errstate(over="ignore"):
        h = np.full(len(coords), mix(np.uint64(seed) + golden), np.uint64)
        for n, column in enumerate(coords.T):
            h += column.astype(np.uint64) * (mix(golden * np.uint64(n + 1)) | np.uint64(1))
        return mix(h) < np.uint64(int(part * 2.0 ** 64))


def held_back(folder):
    """Held-out nonzeros are selected by the hash and do not affect the fit, on any device; their
    error is the model's."""
    text, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")
    dims = "50x40x30"
    sluice("generate", text, "--dims", dims, "--nnz", 15000, "--seed", 4, "--rank", 3, "--noise", 0.1, "-q")
    sluice("convert", text, store, "--dims", dims, "--block-bytes", "16KiB", "-q")
    sluice("layout", store, "--sorted", "all", "-q")
    table = np.loadtxt(text)
    coords, values = table[:, :3].astype(int) - 1, table[:, 3]
    for part, seed in ((0.05, 0), (0.5, 7)):
        held = held_out(coords, part, seed)
        check(abs(held.mean() - part) < 0.02, held.mean())
        rest, alone = os.path.join(folder, "rest.tns"), os.path.join(folder, "rest.slc")
        with open(text) as file, open(rest, "w") as out:
            out.writelines(line for line, left in zip(file, held) if not left)
        sluice("convert", rest, alone, "--dims", dims, "-f", "-q")
        base = ("-r", 4, "-i", 8, "--tol", 0, "--mode-order", "1,2,3")
        sluice("cpd", alone, *base, "--deterministic", "-o", os.path.join(folder, "alone"), "-q", "--restart")
        wanted, weights = model(os.path.join(folder, "alone"), 3)
        bits = {}
        for name, more in (("plain", ("--deterministic",)), ("one thread", ("--deterministic", "-t", 1, "--io", "pread")),
                           ("fused", ("--passes", "fused")), ("sorted", ("--layouts", "sorted")),
                           ("copies", ("--copies", "always")), ("uncached", ("--no-cache",))):
            out = os.path.join(folder, "r")
            said, _ = sluice("cpd", store, *base, *more, "--holdout", part, "--holdout-seed", seed, "-o", out, "--restart")
            record = load_json(os.path.join(out, "run.json"))
            factors, lam = model(out, 3)
            check(np.allclose(lam, weights, rtol=1e-7), f"{name}: other weights than without what is held out")
            for ours, theirs in zip(factors, wanted):
                check(np.allclose(ours, theirs, atol=1e-6), f"{name}: other factors than without what is held out")
            fit = load_json(os.path.join(folder, "alone", "run.json"))["fit"]
            check(abs(record["fit"] - fit) < 1e-9, f"{name}: fit {record['fit']}, {fit} without")
            guess = (lam * np.prod([f[c] for f, c in zip(factors, coords[held].T)], axis=0)).sum(axis=1)
            errors = values[held] - guess
            rmse = np.sqrt((errors ** 2).mean())
            told = record["holdout"]
            check(told["count"] == held.sum(), (name, told, held.sum()))
            check(abs(told["rmse"] - rmse) < 1e-9 * rmse and abs(told["mae"] - np.abs(errors).mean()) < 1e-9 * rmse,
                  (name, told, rmse))
            check(abs(told["norm"] - np.linalg.norm(values[held])) < 1e-9 * told["norm"], told)
            check(abs(record["iterations"][-1]["heldout_rmse"] - rmse) < 1e-9 * rmse, record["iterations"][-1])
            check("held out: RMSE" in said and "Held out: " in said, said)
            bits[name] = (told, [f.tobytes() for f in factors])
        check(bits["plain"] == bits["one thread"], "other bits with one thread")


def held_back_and_stopped(folder):
    """A resumed run holds out the same nonzeros; another choice is rejected; f32, and invalid
    options."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "60x50x40", "--nnz", 20000, "--seed", 4, "-q")
    base = ("cpd", store, "-r", 3, "--tol", 0, "--deterministic", "--checkpoint-interval", 0)
    out, whole = os.path.join(folder, "r"), os.path.join(folder, "whole")
    sluice(*base, "-i", 30, "--holdout", "3%", "-o", whole, "-q")
    for number in range(100):
        done = subprocess.run([os.environ["SLUICE"], *map(str, base), "-i", "30", "--holdout", "0.03", "-o", out, "-q",
                               *(("--maxsecs", "0.05") if number < 8 else ())], capture_output=True)
        if done.returncode != 75:
            break
        for more, word in ((("--holdout", "4%"), "held out"), (("--holdout", "3%", "--holdout-seed", 1), "held out"),
                           ((), "--holdout")) if number == 0 else ():
            _, messages = sluice(*base, "-i", 30, *more, "-o", out, "-q", status=2)
            check(word in messages, messages)
    check(done.returncode == 0, done)
    for name in ("mode-1.npy", "mode-2.npy", "mode-3.npy", "lambda.npy"):
        with open(os.path.join(out, name), "rb") as ours, open(os.path.join(whole, name), "rb") as theirs:
            check(ours.read() == theirs.read(), f"{name}: other bits after stops")
    told = [load_json(os.path.join(at, "run.json"))["holdout"] for at in (out, whole)]
    check(told[0] == told[1], told)
    sluice("cpd", store, "-r", 3, "-i", 3, "--precision", "f32", "--holdout", "10%", "-o", os.path.join(folder, "f"), "-q")
    told = load_json(os.path.join(folder, "f", "run.json"))["holdout"]
    check(told["count"] > 1500 and told["rmse"] > 0, told)
    for part in ("0", "0.6", "51%", "x", "-1%", "1%%", "nan"):
        _, messages = sluice("cpd", store, "-r", 3, "--holdout", part, "-o", os.path.join(folder, "x"), status=2)
        check("--holdout" in messages, messages)
    _, messages = sluice("cpd", store, "-r", 3, "--holdout", "1%", "--devices", 2, "--split", "nnz", "-o",
                         os.path.join(folder, "x"), status=2)
    check("held out" in messages, messages)
    _, messages = sluice("cpd", store, "-r", 3, "--holdout", "0.00000001", "-o", os.path.join(folder, "x"), status=2)
    check("none of the nonzeros" in messages, messages)
    sluice("cpd", store, "-r", "2,3", "-i", 3, "--holdout", "10%", "-o", os.path.join(folder, "s"), "-q")
    runs = load_json(os.path.join(folder, "s", "sweep.json"))["runs"]
    check(all(one["heldout_rmse"] > 0 for one in runs), runs)


def padded(one, rank):
    """Returns the model with components of zeros appended up to a rank."""
    factors, weights = one
    more = rank - len(weights)
    return [np.hstack([f, np.zeros((len(f), more))]) for f in factors], np.concatenate([weights, np.zeros(more)])


def compared(folder):
    """`compare` of runs with other seeds, ranks and numbers of rows, against NumPy."""
    text, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")
    sluice("generate", text, "--dims", "20x15x10", "--nnz", 1500, "--seed", 2, "--rank", 3, "--noise", 0.2, "-q")
    sluice("convert", text, store, "-q")
    outs = [os.path.join(folder, name) for name in "abc"]
    for out, rank, seed in zip(outs, (3, 3, 5), (0, 1, 2)):
        sluice("cpd", store, "-r", rank, "-i", 30, "--seed", seed, "-o", out, "-q")
    got = json.loads(sluice("compare", *outs, "--json")[0])["runs"]
    first = model(outs[0], 3)
    for out, one in zip(outs[1:], got[1:]):
        other = model(out, 3)
        rank = max(len(first[1]), len(other[1]))
        want = match_score(padded(first, rank), padded(other, rank)) * rank / min(len(first[1]), len(other[1]))
        check(abs(one["score"] - want) < 1e-10, (one["score"], want))
        for pair in one["matches"]:
            cosines = [abs(a[:, pair["first_component"] - 1] @ b[:, pair["component"] - 1]) /
                       np.linalg.norm(a[:, pair["first_component"] - 1]) / np.linalg.norm(b[:, pair["component"] - 1])
                       for a, b in zip(first[0], other[0])]
            check(abs(pair["similarity"] - np.prod(cosines)) < 1e-12, (pair, cosines))
        check(one["fit"] == load_json(os.path.join(out, "run.json"))["fit"] and len(one["matches"]) == 3, one)
    check("score" not in got[0] and set(got[2]["options"]) == {"rank", "seed"}, got)
    said = sluice("compare", *outs)[0]
    check("  --seed" in said and "Components of run 3 matched with run 1" in said and said.count("    mode 1: ") == 6, said)
    check(len(sluice("compare", *outs, "--csv")[0].splitlines()) == 7, "the table")
    # A table whose rows come in another order, with one more name: rows correspond by name.
    rng = np.random.default_rng(5)
    rows = [(f"u{i}", f"v{j}", f"w{k}", i + j * k + 1) for i in range(6) for j in range(5) for k in range(4)]
    for name, order in (("one", range(120)), ("two", rng.permutation(120))):
        with open(os.path.join(folder, name + ".csv"), "w") as file:
            file.write("u,v,w,n\n")
            file.writelines(",".join(map(str, rows[i])) + "\n" for i in order)
            if name == "two":
                file.write("u9,v0,w0,0.001\n")
        at = os.path.join(folder, name)
        sluice("convert", at + ".csv", at + ".slc", "--columns", "u,v,w", "--value", "n", "-q")
        sluice("cpd", at + ".slc", "-r", 2, "-i", 200, "--tol", 0, "-o", at, "-q")
    one, two = os.path.join(folder, "one"), os.path.join(folder, "two")
    found = json.loads(sluice("compare", one, two, "--json")[0])["runs"][1]
    check(found["score"] > 0.99 and found["rows"] == [6, 5, 4], found)
    check("u9" not in sluice("compare", one, two)[0], "a row that only one run has")
    short = os.path.join(folder, "short")
    sluice("cpd", one + ".slc", "-r", 2, "-i", 200, "-o", short, "-q")
    found = sluice("compare", one, short)[0]
    check("1e-5" in found and "1.0000000" not in found, f"the default of --tol: {found}")
    check("and no names that show which rows correspond" in sluice("compare", one, outs[0], status=3)[1], "other modes")
    os.rename(two + ".slc", two + ".moved")
    check("mode 1 has 6 rows" in sluice("compare", one, two, status=3)[1], "names that are gone")


if __name__ == "__main__":
    run([("held back", held_back), ("held back, and stopped", held_back_and_stopped), ("values at coordinates", predicted), ("amino acids have three components", amino_acids), ("four modes, relabelled", four_modes),
         ("components that share columns", shared_columns), ("a start that ends in a local optimum does not count", local_optimum),
         ("runs compared", compared)])
