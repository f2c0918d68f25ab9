#!/usr/bin/python3
"""Numerical results: MTTKRP and CP-ALS against NumPy, and the published fits of the amino acid
data."""

import itertools
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import cp_als  # noqa: E402
from tap import FULL, QUICK, Skip, unpacked, check, load_json, run, sluice  # noqa: E402

TENSORS = ("splatt-small", "splatt-small4", "parti-3d_dense", "genten-aminoacid_data",
           "tkg-icews14", "splatt-med4", "kg-fb15k-237", "uber-part", "wordnet30-srs",
           "gitlog-petsc-5d", "cmudict-wpp", "flights-4d")
CODECS, IOS = ("packed", "lz4", "blco"), ("uring", "pread", "mmap")
RANKS = (1, 7, 16, 33)
COMBOS = list(itertools.product(CODECS, IOS, (1, 2)))


def usable_ios():
    """io_uring may be unavailable here; the other two always work."""
    return IOS if os.environ.get("SLC_NO_URING") != "1" else IOS[1:]


def write_factors(folder, factors):
    os.makedirs(folder, exist_ok=True)
    for n, factor in enumerate(factors, 1):
        np.save(os.path.join(folder, f"mode-{n}.npy"), np.ascontiguousarray(factor))


def product(dims, coords, values, factors, mode):
    """Returns NumPy's result, and the sums of the magnitudes of its terms."""
    # Factors are positive, so with positive values the magnitude of a sum is the sum of magnitudes.
    scale = None if values.min() > 0 else np.zeros((dims[mode], factors[0].shape[1]))
    want = cp_als.mttkrp(dims, coords, values, factors, mode, scale)
    return want, want if scale is None else scale


def mttkrp_of(name):
    def test(folder):
        path = unpacked(name)
        dims, coords, values = cp_als.read_tns(path)
        if QUICK and len(values) > 500_000:
            raise Skip("a large tensor: in the run without sanitizers")
        stores = {}
        for codec in CODECS:
            stores[codec] = os.path.join(folder, codec + ".slc")
            sluice("convert", path, stores[codec], "--codec", codec, "--block-bytes", "256KiB")
        # Ranks use the first columns of one matrix, so that the slow NumPy product is computed
        # once.
        drawn = [np.random.default_rng(3 + n).random((d, max(RANKS))) for n, d in enumerate(dims)]
        products = {}
        turn = 0
        worst = {"f64": 0.0, "f32": 0.0}
        for r, rank in reversed(list(enumerate(RANKS))):
            for p, (precision, bound) in enumerate((("f64", 1e-12), ("f32", 1e-5))):
                kind = np.float64 if precision == "f64" else np.float32
                given = os.path.join(folder, "factors")
                write_factors(given, [f[:, :rank].astype(kind) for f in drawn])
                for mode in range(len(dims)):
                    # Large tensors alternate the precisions; the largest use two ranks per mode,
                    # but every rank over all modes.
                    if not FULL and len(values) > 100_000 and (mode + r + p) % 2:
                        continue
                    if not FULL and len(values) > 500_000 and (r + mode // 2) % 2:
                        continue
                    combos = COMBOS if FULL else [COMBOS[(turn * 7) % len(COMBOS)]]
                    turn += 1
                    if mode not in products:
                        products[mode] = product(dims, coords, values, [f[:, :rank].copy() for f in drawn], mode)
                    want, scale = (part[:, :rank] for part in products[mode])
                    for codec, io, threads in combos:
                        if io not in usable_ios():
                            continue
                        out = os.path.join(folder, "m.npy")
                        sluice("mttkrp", stores[codec], "--mode", mode + 1, "--factors", given,
                               "-o", out, "--io", io, "--threads", threads,
                               "--precision", precision)
                        got = np.load(out)
                        check(got.shape == want.shape and got.dtype == kind, "shape or type")
                        error = float((abs(got - want) / np.where(scale == 0, 1, scale)).max())
                        worst[precision] = max(worst[precision], error)
                        check(error <= bound, f"mode {mode + 1}, R = {rank}, {codec}, {io}, "
                              f"{threads} threads, {precision}: relative error {error:.2e}")
        print(f"# {name}: worst relative error {worst['f64']:.1e} (f64), {worst['f32']:.1e} (f32)")
    return test


def cpd(store, folder, rank, iterations, tolerance, init, *more):
    out = os.path.join(folder, "run")
    sluice("cpd", store, "-r", rank, "-i", iterations, "--tol", tolerance, "--init", init,
           "-o", out, *more)
    report = load_json(os.path.join(out, "run.json"))
    fits = [entry["fit"] for entry in report["iterations"]]
    return fits, out


def end_by_tolerance(fits, tolerance):
    """The number of iterations after which a run with these fits stops: the third small change in a
    row."""
    small = 0
    for k in range(1, len(fits)):
        least = min(abs(fits[k]), 1 - fits[k])
        small = small + 1 if abs(fits[k] - fits[k - 1]) < tolerance * least else 0
        if small == 3:
            return k + 1
    return None


def amino_acids(folder):
    """Rank 3 from leading singular vectors yields the answers of the Tensor Toolbox
    documentation."""
    path = unpacked("genten-aminoacid_data")
    dims, coords, values = cp_als.read_tns(path)
    store = os.path.join(folder, "a.slc")
    sluice("convert", path, store)
    init = os.path.join(folder, "init")
    write_factors(init, [cp_als.nvecs(dims, coords, values, n, 3) for n in range(3)])
    fits, _ = cpd(store, folder, 3, 100, 0, init)
    for iteration, fit in ((10, 0.9334888), (20, 0.9604549), (30, 0.9712518), (40, 0.9741285)):
        check(abs(fits[iteration - 1] - fit) < 5e-8, f"fit {fits[iteration - 1]} at {iteration}")
    # The Tensor Toolbox stops after the first change of the fit below 1e-4.
    last = 1 + int(np.flatnonzero(np.abs(np.diff(fits)) < 1e-4)[0])
    check(last == 42 and abs(fits[last] - 0.9744312) < 5e-8, f"{last + 1} its, {fits[last]}")
    fits, _ = cpd(store, folder, 3, 100, 0, init, "--mode-order", "2,3,1")
    last = 1 + int(np.flatnonzero(np.abs(np.diff(fits)) < 1e-4)[0])
    check(last == 38 and abs(fits[last] - 0.9743928) < 5e-8, f"{last + 1} its, {fits[last]}")
    fits, _ = cpd(store, folder, 3, 1000, 1e-3, init)
    check(len(fits) == end_by_tolerance(fits, 1e-3), f"stopped after {len(fits)} its")
    fits, _ = cpd(store, folder, 3, 3000, 0, init)
    check(abs(fits[-1] - 0.97495148) < 5e-9, f"converges to {fits[-1]}")
    norm_x = float(np.sqrt(values @ values))
    check(abs(norm_x - 47991.95013) < 1e-5, f"norm {norm_x}")


def follows(name, rank):
    def test(folder):
        path = unpacked(name)
        dims, coords, values = cp_als.read_tns(path)
        store = os.path.join(folder, "t.slc")
        sluice("convert", path, store)
        rng = np.random.default_rng(11)
        factors = [rng.random((d, rank)) for d in dims]
        init = os.path.join(folder, "init")
        write_factors(init, factors)
        count = 20 if FULL or len(values) < 100_000 else 6
        want, _, _, _ = cp_als.cp_als(dims, coords, values, factors, count)
        for more in ((), ("--deterministic",)):
            got, _ = cpd(store, folder, rank, count, 0, init, *more)
            check(len(got) == count, f"{len(got)} iterations")
            worst = max(abs(a - b) for a, b in zip(got, want))
            print(f"# {name}, rank {rank}: fit {got[-1]:.6f}, worst difference {worst:.1e}")
            check(worst <= 1e-9, f"fit differs by {worst:.2e}")
    return test


def factors_reproduce_the_fit(folder):
    """The written model, evaluated by NumPy, has the reported fit; its columns are normalized."""
    path = unpacked("genten-aminoacid_data")
    dims, coords, values = cp_als.read_tns(path)
    store = os.path.join(folder, "a.slc")
    sluice("convert", path, store)
    out = os.path.join(folder, "run")
    sluice("cpd", store, "-r", 4, "-i", 30, "--tol", 0, "-o", out)
    weights = np.load(os.path.join(out, "lambda.npy"))
    factors = [np.load(os.path.join(out, f"mode-{n}.npy")) for n in (1, 2, 3)]
    dense = np.zeros(dims)
    dense[tuple(coords)] = values
    model = np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    fit = 1 - np.linalg.norm(dense - model) / np.linalg.norm(dense)
    reported = load_json(os.path.join(out, "run.json"))["iterations"][-1]["fit"]
    check(abs(fit - reported) < 1e-10, f"fit {fit}, reported {reported}")
    check((np.diff(weights) <= 0).all() and (weights >= 0).all(), "weights are not sorted")
    for factor in factors:
        check(abs(np.linalg.norm(factor, axis=0) - 1).max() < 1e-12, "columns are not unit")


def fit_of(coords, values, folder):
    """Returns the fit of the factors in `folder`, computed with the values and the weights divided
    by the same number."""
    unit = abs(values).max()
    values = values / unit
    weights = np.load(os.path.join(folder, "lambda.npy")) / unit
    factors = [np.load(os.path.join(folder, f"mode-{n + 1}.npy")).astype(float) for n in range(len(coords))]
    at = np.prod([f[rows] for f, rows in zip(factors, coords)], axis=0) @ weights
    square = weights @ np.prod([f.T @ f for f in factors], axis=0) @ weights
    return 1 - np.sqrt(values @ values + square - 2 * values @ at) / np.linalg.norm(values)


def fit_near_one(folder):
    """In f32, the square of 1 - fit is that of the factors to within 3e-8, as sluice-cpd(1) states."""
    store = os.path.join(folder, "near.slc")
    worst = 0
    for noise in (0, 1e-4, 1e-3):
        sluice("generate", store, "--dims", "30x25x20", "--nnz", 15000, "--rank", 4, "--noise", noise, "-f")
        text, out = os.path.join(folder, f"{noise}.tns"), os.path.join(folder, "near")
        sluice("export", store, text, "-f")
        _, coords, values = cp_als.read_tns(text)
        sluice("cpd", store, "-r", 4, "-i", 100, "--tol", 0, "--precision", "f32", "-o", out, "--restart")
        fit = fit_of(coords, values, out)
        worst = max(worst, abs((1 - load_json(os.path.join(out, "run.json"))["fit"]) ** 2 - (1 - fit) ** 2))
        check(fit > 0.99, f"noise {noise}: fit {fit}")
    print(f"# error of the square of 1 - fit in f32: {worst:.1e}")
    check(worst < 3e-8, f"{worst}")


def every_scale(folder):
    """Values times 1e-300 to 1e300: the reported fit is that of the factors, and the fit and the
    components do not depend on the scale; or the run is refused and writes nothing."""
    rng = np.random.default_rng(0)
    dims = (30, 25, 20)
    coords = np.array(np.unravel_index(rng.choice(np.prod(dims), 3000, replace=False), dims))
    values = rng.random(coords.shape[1]) + 0.5
    text, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")
    usual, errors = {}, []
    for power in (0, -300, -140, -30, -28, -22, -11, 35, 39, 300):
        scaled = values * 10.0 ** power
        np.savetxt(text, np.column_stack([coords.T + 1, scaled]), fmt=["%d"] * 3 + ["%.17g"])
        sluice("convert", "-f", text, store)
        for precision, more in (("f64", ()), ("f32", ()), ("f32", ("--holdout", 0.01))):
            out = os.path.join(folder, f"{power}-{precision}-{len(more)}")
            command = ("cpd", store, "-r", 5, "-i", 20, "--tol", 0, "--precision", precision, "-o", out, *more)
            if not {"f64": abs(power) <= 140, "f32": -28 <= power <= 35}[precision]:
                check("scale" in sluice(*command, status=1)[1], f"1e{power}, {precision}: no advice")
                check(not os.path.exists(os.path.join(out, "run.json")), f"1e{power}, {precision}: results")
                continue
            sluice(*command)
            record, bound = load_json(os.path.join(out, "run.json")), 1e-10 if precision == "f64" else 1e-5
            if more:
                errors.append(record["holdout"]["rmse"] / 10.0 ** power)
                continue
            fit, direct = record["fit"], fit_of(coords, scaled, out)
            usual.setdefault(precision, fit)
            check(abs(fit / usual[precision] - 1) < bound, f"1e{power}, {precision}: fit {fit}, not {usual[precision]}")
            check(abs(fit / direct - 1) < bound, f"1e{power}, {precision}: fit {fit}, but {direct} from the factors")
    # MTTKRP in f32 of scaled values: the product, or an error if f32 cannot hold the values.
    for power in (-42, -20, 39):
        np.savetxt(text, np.column_stack([coords.T + 1, values * 10.0 ** power]), fmt=["%d"] * 3 + ["%.17g"])
        sluice("convert", "-f", text, store)
        write_factors(folder, [np.ones((length, 2)) for length in dims])
        done = "mttkrp", store, "--mode", 1, "--factors", folder, "--precision", "f32", "-o", os.path.join(folder, "m.npy")
        if power == -20:
            sluice(*done)
            want = np.bincount(coords[0], values) * 10.0 ** power
            check(np.allclose(np.load(done[-1])[:, 0], want, rtol=1e-6), "MTTKRP of small values in f32")
        else:
            check("scale" in sluice(*done, status=1)[1], f"MTTKRP of values near 1e{power} in f32")
    check(len(errors) == 5 and np.ptp(errors) < 1e-5 * errors[0], f"errors of held-out nonzeros: {errors}")


def signs(folder):
    """The top row is positive in every mode but the one whose extremes are most alike. The signs
    of the starting factors do not matter."""
    rng = np.random.default_rng(5)
    dims, rank = (12, 9, 10, 7), 3
    planted = [rng.random((d, rank)) + 0.1 for d in dims]
    planted[1] -= 0.9
    planted[1][0], planted[1][1], planted[2][0, 0] = 0.6, -0.85, -0.05
    dense = np.einsum("ar,br,cr,dr->abcd", *planted)
    text, store, init = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "init"))
    np.savetxt(text, np.column_stack([np.argwhere(dense) + 1, dense[dense != 0]]), fmt=["%d"] * 4 + ["%.17g"])
    sluice("convert", text, store)
    start, seen = [rng.standard_normal((d, rank)) for d in dims], set()
    for turn in range(4):
        write_factors(init, [f * (rng.integers(0, 2, rank) * 2 - 1 if turn else 1) for f in start])
        out = os.path.join(folder, "run")
        sluice("cpd", store, "-r", rank, "-i", 60, "--tol", 0, "--init", init, "--deterministic", "-o", out)
        seen.add(b"".join(open(os.path.join(out, f"mode-{n}.npy"), "rb").read() for n in range(1, 5)))
    check(len(seen) == 1, f"{len(seen)} results for starts that differ in signs only")
    factors = [np.load(os.path.join(out, f"mode-{n}.npy")) for n in range(1, 5)]
    check(load_json(os.path.join(out, "run.json"))["fit"] > 0.999, "not the planted components")
    for r in range(rank):
        negative = [n for n, f in enumerate(factors) if f[abs(f[:, r]).argmax(), r] < 0]
        check(negative == [1], f"component {r + 1}: modes {negative} are negative at their strongest row")


def default_tolerance(folder):
    """A start from which the fit stays for some iterations near 0.2745, before it rises to that of the
    planted components: the default rule continues, but a rule of one small change would stop there."""
    store = os.path.join(folder, "t.slc")
    sluice("convert", cp_als.planted_counts(folder), store)
    out = os.path.join(folder, "run")
    sluice("cpd", store, "-r", 5, "-i", 100, "--seed", 5, "-o", out)
    record = load_json(os.path.join(out, "run.json"))
    fits = [entry["fit"] for entry in record["iterations"]]
    single = 1 + int(np.flatnonzero(np.abs(np.diff(fits)) < 1e-5)[0])
    check(fits[single] < 0.276, f"a single small change ends at {fits[single]}: the start has lost its point")
    check(record["fit"] > 0.2839 and record["reason"] == "tol", f"{record['fit']}, {record['reason']}")
    check(len(fits) == end_by_tolerance(fits, 1e-5), f"stopped after {len(fits)} iterations")
    check(record["diagnosis"]["fit_rising"] is False and record["diagnosis"]["notes"] == [], record["diagnosis"])


def notes_of(store, out, *options):
    """The diagnosis in run.json; its notes are in the output and in the report."""
    said = sluice("cpd", store, "-o", out, "--restart", *options)[0]
    record = load_json(os.path.join(out, "run.json"))
    sluice("report", out, "-o", os.path.join(out, "r.html"), "-f")
    with open(os.path.join(out, "r.html"), encoding="utf-8") as file:
        page = file.read()
    for note in record["diagnosis"]["notes"]:
        check(f"\nNote: {note}" in said and note in page, f"{note} is missing:\n{said}")
    check(said.count("\nNote: ") == len(record["diagnosis"]["notes"]), said)
    return record, said


def diagnosis(folder):
    """Congruence and condition numbers equal NumPy's; one note per fault, and none without."""
    rng = np.random.default_rng(3)
    a, b = np.linalg.qr(rng.standard_normal((10, 2)))[0].T
    border = sum(np.einsum("i,j,k->ijk", *which) for which in ((a, a, b), (a, b, a), (b, a, a)))
    text, store, out = (os.path.join(folder, name) for name in ("t.tns", "t.slc", "run"))
    np.savetxt(text, np.column_stack([np.argwhere(border) + 1, border[border != 0]]), fmt=["%d"] * 3 + ["%.17g"])
    sluice("convert", text, store)
    # Two components approach the tensor only by growing and cancelling each other.
    record, said = notes_of(store, out, "-r", 2, "-i", 1000, "--tol", 0)
    found = record["diagnosis"]
    factors = [np.load(os.path.join(out, f"mode-{n}.npy")) for n in (1, 2, 3)]
    congruence = float(np.prod([f[:, 0] @ f[:, 1] for f in factors]))
    check(congruence < -0.95 and abs(found["smallest_congruence"] - congruence) < 1e-12, (found, congruence))
    check(found["cancelling"] == [1, 2] and "components 1 and 2 nearly cancel" in found["notes"][0], found)
    check("--reg" in said and "--transform log1p" in said, said)
    for mode, factor in enumerate(factors):
        want = np.linalg.cond(factor)
        check(abs(found["condition"][mode] / want - 1) < 1e-6, (found["condition"], want))
    record, _ = notes_of(store, out, "-r", 2, "-i", 1000, "--tol", 0, "--reg", 0.1)
    check(record["diagnosis"]["cancelling"] is None, record["diagnosis"])
    # Two equal columns in one mode, and a mode with fewer rows than components.
    planted = [rng.standard_normal((d, 3)) for d in (15, 12, 2)]
    planted[0][:, 1] = planted[0][:, 0] + 1e-4 * planted[0][:, 1]
    dense = np.einsum("ar,br,cr->abc", *planted)
    np.savetxt(text, np.column_stack([np.argwhere(dense) + 1, dense[dense != 0]]), fmt=["%d"] * 3 + ["%.17g"])
    sluice("convert", "-f", text, store)
    init = os.path.join(folder, "init")
    write_factors(init, planted)
    record, said = notes_of(store, out, "-r", 3, "-i", 1, "--init", init)
    found = record["diagnosis"]
    check(found["condition"][0] > 1e4 and found["condition"][2] is None, found)
    # The components differ in the other modes, so they are not collinear.
    factors = [np.load(os.path.join(out, f"mode-{n}.npy")) for n in (1, 2, 3)]
    cosines = np.prod([f.T @ f for f in factors], axis=0)[np.triu_indices(3, 1)]
    want = np.linalg.cond(np.einsum("ar,br,cr->abcr", *factors).reshape(-1, 3))
    check(abs(found["joint_condition"] / want - 1) < 1e-6 and found["joint_condition"] < 1000, (found, want))
    check(abs(found["largest_congruence"] - cosines.max()) < 1e-12 and found["collinear"] is None, (found, cosines))
    check("collinear" not in said, said)
    # Components that differ in no mode.
    write_factors(init, [np.repeat(f[:, :1], 2, axis=1) for f in planted])
    record, said = notes_of(store, out, "-r", 2, "-i", 1, "--init", init)
    check(record["diagnosis"]["collinear"] == [1, 2] and record["diagnosis"]["joint_condition"] > 1e6, record["diagnosis"])
    check("components 1 and 2 are nearly collinear (congruence 1.000)" in said, said)
    # Three components of which one is the sum of the others in mode 1, with equal columns in the other modes.
    sums = [np.column_stack([f[:, 0], f[:, 0], f[:, 0]]) for f in planted]
    sums[0] = np.column_stack([planted[0][:, 0], planted[0][:, 2], planted[0][:, 0] + planted[0][:, 2]])
    write_factors(init, sums)
    record, said = notes_of(store, out, "-r", 3, "-i", 1, "--init", init)
    check(record["diagnosis"]["joint_condition"] > 1000 and "collinear" in said, record["diagnosis"])
    # A tensor of noise: the fit rises until the last iteration, and the model predicts worse than
    # zeros.
    cells = rng.choice(8000, 700, replace=False)
    np.savetxt(text, np.column_stack([np.array(np.unravel_index(cells, (20, 20, 20))).T + 1, rng.standard_normal(700)]),
               fmt=["%d"] * 3 + ["%.17g"])
    sluice("convert", "-f", text, store)
    record, said = notes_of(store, out, "-r", 30, "-i", 10, "--holdout", 0.1)
    check(record["diagnosis"]["fit_rising"] and "may still be rising" in said, record["diagnosis"])
    zeros = record["holdout"]["norm"] / np.sqrt(record["holdout"]["count"])
    check(record["diagnosis"]["heldout_no_better_than_zeros"] == (record["holdout"]["rmse"] >= zeros), record["holdout"])
    check("wrong for ratings" in said, f"{record['holdout']}, {zeros}")
    record, said = notes_of(store, out, "-r", 1, "-i", 200)
    check(record["diagnosis"]["notes"] == [] and record["diagnosis"]["smallest_congruence"] == 1, record["diagnosis"])


def start_of(store, folder, init, *more):
    """The starting factors of a run, without updates, and the notes."""
    out = os.path.join(folder, "started")
    notes = sluice("cpd", store, "-r", 4, "-i", 0, "--init", init, "-o", out, *more)[1]
    count = len([name for name in os.listdir(out) if name.startswith("mode-")])
    return [np.load(os.path.join(out, f"mode-{n + 1}.npy")) for n in range(count)], notes


def grown(folder):
    """A start from the model of a tensor that has grown since: old rows keep their values, new rows are
    random numbers of the same size, and the fit of a cold start needs fewer iterations."""
    rng = np.random.default_rng(1)
    dims, rank = (40, 30, 50), 4
    dense = rng.poisson(0.5 * np.einsum("ar,br,cr->abc", *(rng.gamma(0.5, 1, (d, rank)) for d in dims))).astype(float)
    dense[39, :, :40] = 0  # the last row of mode 1 has nonzeros only in the new days
    days, later = os.path.join(folder, "days.tns"), os.path.join(folder, "later.tns")
    coords = np.argwhere(dense)
    rows = np.column_stack([coords + 1, dense[dense != 0]])
    np.savetxt(days, rows[coords[:, 2] < 40], fmt="%d")
    np.savetxt(later, rows[coords[:, 2] >= 40], fmt="%d")
    for more in ((), ("--relabel", "frequency")):
        store, old, cold, warm = (os.path.join(folder, name + str(len(more))) for name in ("t.slc", "old", "cold", "warm"))
        sluice("convert", days, store, *more)
        sluice("cpd", store, "-r", rank, "-i", 300, "-o", old)
        sluice("append", store, later)
        options = ("-r", rank, "-i", 300, "--deterministic", "--tol", 1e-4, "--seed", 3)
        sluice("cpd", store, *options, "-o", cold)
        notes = sluice("cpd", store, *options, "--init", old, "-o", warm)[1]
        check("mode 1 has 1 new row" in notes and "mode 3 has 10 new rows" in notes and "mode 2" not in notes, notes)
        fits = [[entry["fit"] for entry in load_json(os.path.join(out, "run.json"))["iterations"]] for out in (cold, warm)]
        reached = next(k for k, fit in enumerate(fits[1], 1) if fit >= fits[0][-1])
        check(2 * reached < len(fits[0]), f"a warm start reached {fits[0][-1]} after {reached} of {len(fits[0])} iterations")
        start, _ = start_of(store, folder, old)
        weights = np.load(os.path.join(old, "lambda.npy"))
        for n, (factor, length) in enumerate(zip(start, (39, 30, 40))):
            kept = np.load(os.path.join(old, f"mode-{n + 1}.npy"))
            # The result of no iterations is normalized and sorted.
            norms = np.sqrt((kept ** 2).sum(axis=0) / (factor[:length] ** 2).sum(axis=0))
            if length < dims[n]:
                new = factor[length:] * norms * np.sqrt(length)
                check((new >= 0).all() and 0.3 < new.mean() < 3 * np.sqrt(3), f"mode {n + 1}: new rows {new}")
            # Columns are in another order if new rows change the weights.
            likeness = abs(kept.T @ factor[:length]) / np.linalg.norm(factor[:length], axis=0)
            check(np.allclose(likeness.max(axis=0), 1, rtol=1e-12), f"mode {n + 1}: old rows have changed")
        again = ("cpd", store, *options, "--init", old, "-o", os.path.join(folder, "again" + str(len(more))))
        sluice(*again, "--maxsecs", 1e-6, status=75)
        check("seed 3" in sluice(*again[:-6], "--seed", 4, *again[-4:], status=2)[1], "another seed for new rows")
        sluice(*again)
        check(open(os.path.join(again[-1], "mode-3.npy"), "rb").read() == open(os.path.join(warm, "mode-3.npy"), "rb").read(),
              "a resumed warm start has other bits")
    os.remove(os.path.join(old, "lambda.npy"))
    check("39 x 4" in sluice("cpd", store, "-r", rank, "--init", old, "-o", warm, status=3)[1], "factors without weights")


def renamed(folder):
    """For another store with names in another order, rows start from the rows of the same names."""
    rng = np.random.default_rng(2)
    people, things = [f"p{k}" for k in range(20)], [f"t{k}" for k in range(12)]
    lines = [f"{people[a]},{things[b]},{1 + (a * b) % 5}" for a in range(20) for b in rng.permutation(12)[:9]]
    stores = []
    for name, chosen in (("a", [line for line in lines if not line.startswith(("p3,", "p7,"))]),
                         ("b", [line for line in reversed(lines) if not line.startswith("p5,")])):
        with open(os.path.join(folder, name + ".csv"), "w", encoding="utf-8") as file:
            file.write("\n".join(["person,thing,v"] + chosen) + "\n")
        stores.append(os.path.join(folder, name + ".slc"))
        sluice("convert", file.name, stores[-1], "--columns", "person,thing", "--value", "v")
    old = os.path.join(folder, "old")
    sluice("cpd", stores[0], "-r", 4, "-i", 20, "-o", old)
    start, notes = start_of(stores[1], folder, old)
    check("mode 1 has 2 new rows" in notes and "17 rows start from" in notes and notes.count("by name") == 2, notes)
    names = []
    for store in stores:
        seen = {}
        with open(store[:-3] + "csv", encoding="utf-8") as file:
            for line in file.read().split()[1:]:
                for mode, word in enumerate(line.split(",")[:2]):
                    seen.setdefault(mode, {}).setdefault(word, len(seen[mode]))
        names.append(seen)
    for mode in (0, 1):
        kept = np.load(os.path.join(old, f"mode-{mode + 1}.npy"))
        both = [word for word in names[0][mode] if word in names[1][mode]]
        ours = start[mode][[names[1][mode][word] for word in both]]
        theirs = kept[[names[0][mode][word] for word in both]]
        likeness = abs(theirs.T @ ours) / np.linalg.norm(ours, axis=0) / np.linalg.norm(theirs, axis=0)[:, None]
        check(np.allclose(likeness.max(axis=0), 1, rtol=1e-12), f"mode {mode + 1}: rows of other names")
    # Without the store of the run, names are unknown.
    os.rename(stores[0], stores[0] + ".moved")
    notes = start_of(stores[1], folder, old, "--restart")[1]
    check("mode 1 has 1 new row" in notes and "by index" in notes and "by name" not in notes, notes)


def same_bits(folder):
    """With --deterministic, factors are the same for any threads, I/O, block size, codec, budget
    and cache."""
    path = unpacked("gitlog-petsc-5d")
    stores = []
    for codec, size in (("packed", "256KiB"), ("lz4", "1MiB"), ("blco", "64KiB")):
        stores.append(os.path.join(folder, codec + ".slc"))
        sluice("convert", path, stores[-1], "--codec", codec, "--block-bytes", size)
    seen = {}
    runs = [(s, io, t, more) for s in range(3) for io in usable_ios() for t in (1, 2, 3)
            for more in ((), ("--no-cache",))]
    for turn, (s, io, threads, more) in enumerate(runs):
        if not FULL and turn % 5:
            continue
        out = os.path.join(folder, "run")
        sluice("cpd", stores[s], "-r", 8, "-i", 4, "--tol", 0, "--deterministic", "--io", io,
               "--threads", threads, "-o", out, *more)
        bits = b"".join(open(os.path.join(out, f"mode-{n}.npy"), "rb").read() for n in range(1, 6))
        seen.setdefault(bits, []).append((s, io, threads, more))
    check(len(seen) == 1, f"{len(seen)} different results: {list(seen.values())}")


tests = [
    ("amino acids: the published fits", amino_acids),
    ("amino acids: the model on disk has the reported fit", factors_reproduce_the_fit),
    ("a fit near 1 in f32 has the documented error", fit_near_one),
    ("values of every scale: the reported fit is that of the factors, or an error", every_scale),
    ("signs: the strongest rows are positive in all modes but one", signs),
    ("the default tolerance does not stop where the fit only rests", default_tolerance),
    ("diagnosis: cancelling and collinear components, a rising fit, held-out values", diagnosis),
    ("a start from a model before the tensor grew", grown),
    ("a start from a model of a store with names in another order", renamed),
    ("CP-ALS follows NumPy: uber-part, rank 4", follows("uber-part", 4)),
    ("CP-ALS follows NumPy: gitlog-petsc-5d, rank 3", follows("gitlog-petsc-5d", 3)),
    ("CP-ALS follows NumPy: cmudict-wpp, rank 5", follows("cmudict-wpp", 5)),
    ("CP-ALS follows NumPy: splatt-med4, rank 2", follows("splatt-med4", 2)),
    ("CP-ALS follows NumPy: wordnet30-srs, rank 4", follows("wordnet30-srs", 4)),
    ("deterministic runs have the same bits", same_bits),
]
tests += [(f"MTTKRP of every mode: {name}", mttkrp_of(name)) for name in TENSORS]
run(tests)
