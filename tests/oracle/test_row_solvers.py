#!/usr/bin/python3
"""Methods that update rows (non-negative, Poisson, completion) against the references of this folder,
known answers and planted models."""

import os
import subprocess
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import completion  # noqa: E402
import cp_als  # noqa: E402
import nonnegative  # noqa: E402
import planted  # noqa: E402
import poisson  # noqa: E402
from tap import FULL, QUICK, Skip, bundled, check, load_json, names_of, run, sluice, unpacked  # noqa: E402

AMINO_ACIDS_FIT = 0.974858884  # fit of non-negative factors of rank 3
COUNTS_OPTIMUM = 8794116.73  # log-likelihood of SparTen's test tensor at rank 5


def sparten():
    """Returns SparTen's test tensor of counts, 10 x 10 x 10."""
    with open(bundled("sparten-poisson-10", ".sptensor.txt"), encoding="ascii") as file:
        rows = np.array([line.split() for line in file.read().splitlines()[4:]], dtype=float)
    return (10, 10, 10), (rows[:, :3].astype(int) - 1).T.copy(), rows[:, 3].copy()


def some_flights(count):
    """Returns a sample of the flights, in the box that they fill."""
    dims, coords, values = cp_als.read_tns(unpacked("flights-4d"))
    kept = np.sort(np.random.default_rng(2).choice(len(values), count, replace=False))
    coords, values = coords[:, kept], values[kept]
    coords = np.array([np.unique(row, return_inverse=True)[1] for row in coords])
    return tuple(int(row.max()) + 1 for row in coords), coords, values


def start_of(dims, rank, seed):
    rng = np.random.default_rng(seed)
    return [rng.random((size, rank)) for size in dims]


def known_optimum(_folder):
    """The reference of PDNR finds the optimum of SparTen's tensor, and that of MU approaches it."""
    dims, coords, values = sparten()
    for seed in (0, 1, 2) if FULL else (0,):
        start = start_of(dims, 5, seed)
        found = poisson.pdnr(dims, coords, values, start, 100, tolerance=1e-8)[0][-1]["log_likelihood"]
        check(abs(found - COUNTS_OPTIMUM) < 0.01, f"seed {seed}: PDNR ends at {found}")
        found = poisson.mu(dims, coords, values, start, 60)[0][-1]["log_likelihood"]
        check(COUNTS_OPTIMUM - 4 < found < COUNTS_OPTIMUM + 0.01, f"seed {seed}: MU reaches {found}")


def known_fit(_folder):
    """The HALS reference finds the non-negative fit of the amino acids; exact rows are optimal."""
    dims, coords, values = cp_als.read_tns(unpacked("genten-aminoacid_data"))
    fits, factors = nonnegative.als(dims, coords, values, start_of(dims, 3, 0), 200)
    check(abs(fits[-1] - AMINO_ACIDS_FIT) < 1e-6, f"fit {fits[-1]}")
    check(all(f.min() >= 0 for f in factors), "a negative element")
    rng = np.random.default_rng(1)
    for rank in range(1, 9):
        base = rng.standard_normal((30, rank))
        gram, sides = base.T @ base, rng.standard_normal((12, 30)) @ base
        rows = nonnegative.exact(gram, sides)
        slopes = rows @ gram - sides
        check(rows.min() >= 0 and slopes.min() > -1e-9 and abs(rows * slopes).max() < 1e-9, f"not optimal: {rows}")
        apart_by = np.abs(rows - nonnegative.swept(gram, sides, np.ones((12, rank)), 500)).max()
        check(apart_by < 1e-9, f"HALS sweeps end {apart_by} from the minimum")


def known_cells(_folder):
    """The references of completion find a planted tensor from a part of its cells; their Newton steps
    are the normal equations for squares, and end where the gradient of other losses is 0."""
    rng = np.random.default_rng(3)
    dims = (40, 30, 25)
    factors, coords, values = planted.part_of_cells(dims, 3, 0.1, rng)
    rows, products = cp_als.sorted_by(coords, values, 0)[0][0], poisson.products_of(coords, factors, 0, 3)
    start = [rng.standard_normal((size, 3)) for size in dims]
    for update, inner in ((completion.by_als, 1), (completion.by_ccd, 4)):
        reached = completion.fitted(dims, coords, values, start, 60, update, inner)[0][-1]["rmse"]
        check(reached < 1e-9 * values.std(), f"{update.__name__}: RMSE {reached}")
    two = [[r["loss"] for r in completion.fitted(dims, coords, values, start, 5, update, 1, 0.1)[0]]
           for update in (completion.by_als, completion.by_newton(completion.Squares()))]
    check(apart(*two) < 1e-12, f"Newton steps for squares differ by {apart(*two)}")
    for loss, cells in ((completion.Bernoulli(), (values > 0) * 1.0), (completion.Huber(0.5), values)):
        x = completion.by_newton(loss)(rows, cells, products, np.zeros((40, 3)), 0.1, 200)
        first = loss.derivatives(cells, (products * x[rows]).sum(axis=1))[0]
        slope = np.abs(poisson.row_sums(rows, products * first[:, None], 40) + 0.2 * x).max()
        check(slope < 1e-6, f"{type(loss).__name__}: gradient {slope}")
        nearby = loss(cells, (products * (x[rows] + 1e-6)).sum(axis=1)) - loss(cells, (products * x[rows]).sum(axis=1))
        numeric = poisson.row_sums(rows, nearby[:, None], 40)[:, 0]
        exact = poisson.row_sums(rows, first[:, None] * products.sum(axis=1)[:, None] * 1e-6, 40)[:, 0]
        check(np.abs(numeric - exact).max() < 1e-8, f"{type(loss).__name__}: derivatives")
    sizes = np.abs(products)
    for loss in (completion.Poisson(), completion.Gamma()):
        x = completion.by_newton(loss)(rows, np.ceil(np.abs(values)), sizes, np.ones((40, 3)), 0.0, 200)
        first = loss.derivatives(np.ceil(np.abs(values)), (sizes * x[rows]).sum(axis=1))[0]
        slope = poisson.row_sums(rows, sizes * first[:, None], 40)
        check(x.min() >= 0 and np.abs(np.minimum(x, slope)).max() < 1e-6, f"{type(loss).__name__}: {np.abs(np.minimum(x, slope)).max()}")


# Runs in the environment with the packages; reads tensors and starts, writes objectives per iteration.
PEERS = r"""
import sys, warnings
import numpy as np
import pyttb
import tensorly
from tensorly.decomposition import non_negative_parafac_hals

warnings.simplefilter("ignore")
given = np.load(sys.argv[1])
dims, coords, values = given["dims"], given["coords"], given["values"]
iterations, inner, tolerance = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[5])
start = [given[f"start{n}"] for n in range(len(dims))]
found = {}
sparse = pyttb.sptensor(coords.T.copy(), values[:, None].copy(), tuple(map(int, dims)))
for method in ("mu", "pdnr"):
    reached, violations, raised = [], [], []
    for count in range(1, iterations + 1):
        told = pyttb.cp_apr(sparse, start[0].shape[1], algorithm=method, init=pyttb.ktensor([f.copy() for f in start]),
                            stoptol=tolerance, maxiters=count, maxinneriters=inner, printitn=0,
                            inexact=tolerance > 0)[2]
        reached.append(told["obj"])
        violations.append(told["kktViolations"].ravel()[-1])
        raised.append(told.get("nViolations", np.zeros(1)).sum())
    found[method], found[method + "_kkt"], found[method + "_raised"] = reached, violations, raised
if np.prod([float(d) for d in dims]) < 2e6:
    dense = np.zeros(dims)
    dense[tuple(coords)] = values
    begin = tensorly.cp_tensor.CPTensor((None, [f.copy() for f in start]))
    errors = non_negative_parafac_hals(tensorly.tensor(dense), start[0].shape[1], n_iter_max=300, init=begin,
                                       tol=1e-300, return_errors=True)[1]
    found["hals"] = 1 - np.array(errors)
np.savez(sys.argv[4], **found)
"""


def peers_python(folder):
    """Returns the path of a Python with pyttb and tensorly."""
    if not FULL:
        raise Skip("only in the long form: it installs packages from PyPI")
    venv = os.environ.get("SLC_PEERS_VENV", os.path.join(folder, "venv"))
    python = os.path.join(venv, "bin", "python3")
    if not os.path.exists(python):
        for command in ((sys.executable, "-m", "venv", venv),
                        (python, "-m", "pip", "install", "-q", "pyttb==1.8.6", "tensorly==0.10.0")):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Skip(f"the packages cannot be installed: {done.stderr[-200:]}")
    return python


def three_tensors():
    found = {"SparTen's counts": (*sparten(), 5), "200 flights": (*some_flights(200), 2)}
    return found | ({"3000 flights": (*some_flights(3000), 3)} if FULL else {})


def peer_results(folder, python, tensor, start, iterations, inner, tolerance=1e-4):
    """Returns the objectives per iteration by pyttb and tensorly."""
    dims, coords, values = tensor
    given, out = os.path.join(folder, "given.npz"), os.path.join(folder, "found.npz")
    np.savez(given, dims=dims, coords=coords, values=values, **{f"start{n}": f for n, f in enumerate(start)})
    done = subprocess.run([python, "-c", PEERS, given, str(iterations), str(inner), out, str(tolerance)],
                          capture_output=True, text=True, check=False)
    check(done.returncode == 0, done.stderr)
    return dict(np.load(out))


def apart(one, two):
    return float(np.abs(np.asarray(one) / np.asarray(two) - 1).max())


def references_and_peers(folder):
    """The references have the objectives of pyttb and tensorly after each iteration. pyttb increases
    all zeros with phi > 0, not only inadmissible ones."""
    python = peers_python(folder)
    for name, (dims, coords, values, rank) in three_tensors().items():
        start = start_of(dims, rank, 4)
        peer = peer_results(folder, python, (dims, coords, values), start, 8, 10)
        ours = {"mu": poisson.mu(dims, coords, values, start, 8, least_phi=0.0)[0],
                "pdnr": poisson.pdnr(dims, coords, values, start, 8)[0]}
        for method, records in ours.items():
            objective = apart([r["log_likelihood"] for r in records], peer[method][:len(records)])
            violation = apart([r["kkt"] for r in records], peer[method + "_kkt"][:len(records)])
            print(f"# {name}, {method}: objective {objective:.1e}, KKT violation {violation:.1e}")
            check(objective < 1e-8, f"{name}, {method}: the objective differs by {objective}")
        if "hals" in peer:
            fits = apart(nonnegative.als(dims, coords, values, start, 8)[0], peer["hals"][:8])
            print(f"# {name}, HALS: fit {fits:.1e}")
            check(fits < 1e-8, f"{name}: the fit by HALS differs by {fits}")


def converted(folder, dims, coords, values, name="t", layouts=(), options=()):
    """Makes a store of a tensor, with further layouts."""
    store = os.path.join(folder, name + ".slc")
    sluice("convert", planted.saved(os.path.join(folder, name + ".npz"), dims, coords, values), store, "-q", *options)
    if layouts:
        sluice("layout", store, *layouts, "-q")
    return store


def decomposed(folder, store, start, iterations, *options, rank=None):
    """Runs `cpd` from the factors `start` and returns (factors, record); the weights are in the factor of
    the first mode. `rank`: without the components of biases."""
    out, given = os.path.join(folder, "run"), os.path.join(folder, "start")
    os.makedirs(given, exist_ok=True)
    for n, factor in enumerate(start, 1):
        np.save(os.path.join(given, f"mode-{n}.npy"), factor)
    order = ",".join(str(n + 1) for n in range(len(start)))
    sluice("cpd", store, "-r", rank or start[0].shape[1], "-i", iterations, "--tol", 0, "--init", given, "--mode-order", order,
           "-o", out, "--restart", "-q", *options)
    return model_of(out, len(start)), load_json(os.path.join(out, "run.json"))


def model_of(out, order):
    factors = [np.load(os.path.join(out, f"mode-{n + 1}.npy")) for n in range(order)]
    factors[0] = factors[0] * np.load(os.path.join(out, "lambda.npy")).reshape(-1)
    return factors


STEPS = (1, 2, 3, 5, 8) if FULL else (1, 2, 4)  # iterations after which results are compared
LAYOUTS = ((), ("--sorted", "all"))


def same_objectives(name, wanted, found, bound=1e-8):
    """Compares the objectives after STEPS iterations with those of all iterations of a reference."""
    worst = apart(found, [wanted[k - 1] for k in STEPS])
    print(f"# {name}: objective {wanted[-1]:.10g}, worst difference {worst:.1e}")
    check(worst < bound, f"{name}: {found}, wanted {[wanted[k - 1] for k in STEPS]}")


def nonnegative_rows(folder):
    """HALS has the fit of the reference after each iteration, for all and for some modes; three starts
    end at the known fit of the amino acids."""
    for name, rank in (("genten-aminoacid_data", 3), ("flights", 4)):
        dims, coords, values = cp_als.read_tns(unpacked(name)) if name != "flights" else some_flights(3000)
        store = converted(folder, dims, coords, values, name)
        for options, modes in (((), None), (("--nonnegative=1,3",), (0, 2))):
            start = start_of(dims, rank, 5)
            wanted = nonnegative.als(dims, coords, values, start, STEPS[-1], 100, nonnegative.swept_to(1e-8), modes)[0]
            found = [decomposed(folder, store, start, k, *(options or ("--nonnegative",)), "--method", "hals")
                     for k in STEPS]
            same_objectives(f"{name}, modes {modes}", wanted, [record["fit"] for _, record in found])
            factors, record = found[-1]
            model = poisson.products_of(coords, factors, -1, rank).sum(axis=1)
            square = np.prod([f.T @ f for f in factors], axis=0).sum()
            fit = 1 - np.sqrt(values @ values - 2 * values @ model + square) / np.linalg.norm(values)
            check(abs(fit - record["fit"]) < 1e-9, f"{name}: fit {fit} of the factors, {record['fit']} reported")
            check(all(factors[n].min() >= 0 for n in modes or range(len(dims))), f"{name}: a negative element")
    dims = cp_als.read_tns(unpacked("genten-aminoacid_data"))[0]
    for seed in (0, 1, 2):
        fit = decomposed(folder, os.path.join(folder, "genten-aminoacid_data.slc"), start_of(dims, 3, seed), 400,
                         "--nonnegative")[1]["fit"]
        check(abs(fit - AMINO_ACIDS_FIT) < 1e-6, f"seed {seed}: fit {fit}")


def poisson_rows(method):
    def test(folder):
        """CP-APR has the log-likelihood of the reference after each iteration."""
        reference = {"mu": poisson.mu, "pdnr": poisson.pdnr}[method]
        for name, (dims, coords, values, rank) in three_tensors().items():
            start = start_of(dims, rank, 4)
            options = {"inexact": False} if method == "pdnr" else {}
            records = reference(dims, coords, values, start, STEPS[-1], tolerance=0, **options)[0]
            for layouts in LAYOUTS:
                store, found = converted(folder, dims, coords, values, f"t{rank}-{len(layouts)}", layouts), []
                for k in STEPS:
                    factors, record = decomposed(folder, store, start, k, "--loss", "poisson", "--method", method)
                    check(all(f.min() >= 0 for f in factors), f"{name}: a negative element")
                    found.append(poisson.log_likelihood(coords, values, factors, np.ones(rank)))
                    check(abs(record["objective"] / found[-1] - 1) < 1e-10, f"{name}: {record['objective']}, not {found[-1]}")
                same_objectives(f"{name}, {method} {layouts}", [r["log_likelihood"] for r in records], found)
    return test


def counts_optimum(folder):
    """PDNR ends at the known optimum of SparTen's tensor, MU near it."""
    if QUICK:
        raise Skip("the release build finds it")
    dims, coords, values = sparten()
    store = converted(folder, dims, coords, values)
    for seed in (0, 1, 2):
        start = start_of(dims, 5, seed)
        found = decomposed(folder, store, start, 150, "--loss", "poisson", "--method", "pdnr")[1]["objective"]
        check(abs(found - COUNTS_OPTIMUM) < 0.01, f"seed {seed}: PDNR ends at {found}")
        found = decomposed(folder, store, start, 400, "--loss", "poisson", "--method", "mu")[1]["objective"]
        check(COUNTS_OPTIMUM - 0.6 < found < COUNTS_OPTIMUM + 0.01, f"seed {seed}: MU ends at {found}")


def completed(method):
    def test(folder):
        """Completion has the RMSE of the reference after each iteration."""
        update = {"als": completion.by_als, "ccd": completion.by_ccd}[method]
        for dims, rank, ridge in (((30, 25, 20), 4, 0.3), ((12, 10, 9, 8), 3, 0.05)):
            rng = np.random.default_rng(6)
            _, coords, values = planted.part_of_cells(dims, rank, 0.15, rng)
            values = values + 0.2 * rng.standard_normal(len(values))
            start = start_of(dims, rank, 1)
            wanted = completion.fitted(dims, coords, values, start, STEPS[-1], update, 3, ridge)[0]
            for layouts in LAYOUTS:
                store, found = converted(folder, dims, coords, values, f"t{len(dims)}-{len(layouts)}", layouts), []
                for k in STEPS:
                    factors, _ = decomposed(folder, store, start, k, "--observed", "--biases", "none", "--method", method,
                                            "--inner", 3, "--reg", ridge)
                    found.append(completion.rmse(coords, values, (factors, 0.0, [])))
                same_objectives(f"{method}, {len(dims)} modes {layouts}", [r["rmse"] for r in wanted], found)
    return test


def with_biases(folder):
    """Components of biases: ones in all modes but one, after the other components; the last is the mean."""
    dims, rank = (40, 30, 10), 2
    rng = np.random.default_rng(7)
    factors, coords, values = planted.part_of_cells(dims, rank, 0.2, rng)
    values = 3.5 + 0.5 * values + sum(rng.normal(0, 0.4, d)[rows] for d, rows in zip(dims, coords))
    values += 0.1 * rng.standard_normal(len(values))
    store, start = converted(folder, dims, coords, values), start_of(dims, rank, 2)
    wanted = completion.fitted(dims, coords, values, start, STEPS[-1], ridge=0.1, biases=True)[0]
    columns = [np.column_stack([f, np.ones((d, len(dims) + 1))]) for f, d in zip(start, dims)]
    for n in range(len(dims)):
        columns[n][:, rank + n] = 0
    columns[0][:, -1] = values.mean()
    found = [decomposed(folder, store, columns, k, "--observed", "--biases", "all", "--reg", 0.1, rank=rank)[0] for k in STEPS]
    check(np.ptp(found[-1][1][:, -1]) == 0 and np.ptp(found[-1][2][:, rank + 1]) == 0, "biases have other columns")
    same_objectives("biases", [r["rmse"] for r in wanted], [completion.rmse(coords, values, (f, 0.0, [])) for f in found])


def other_losses(folder):
    """Losses of listed cells have the reference's value after each iteration: rows are solved exactly."""
    dims, rank, rng = (16, 13, 10), 3, np.random.default_rng(8)
    _, coords, values = planted.part_of_cells(dims, rank, 0.4, rng)
    positive = np.exp(0.3 * values)
    spiked = values + 5 * rng.standard_normal(len(values)) * (rng.random(len(values)) < 0.1)
    for name, loss, cells, ridge, bound in (("huber", completion.Huber(1.0), spiked, 0.2, 1e-7),
                                            ("poisson", completion.Poisson(), np.ceil(3 * positive), 0.2, 1e-7),
                                            ("gamma", completion.Gamma(), positive, 0.2, 1e-3),
                                            ("bernoulli", completion.Bernoulli(), (values > 0) * 1.0, 0.2, 1e-7)):
        store = converted(folder, dims, coords, cells, name, options=() if cells.all() else ("--keep-zeros",))
        start = start_of(dims, rank, 3)
        wanted = completion.fitted(dims, coords, cells, start, STEPS[-1], completion.by_newton(loss), 200, ridge, loss=loss)[0]
        found = []
        for k in STEPS:
            factors, _ = decomposed(folder, store, start, k, "--loss", name, "--observed", "--biases", "none",
                                    "--inner", 200, "--reg", ridge)
            found.append(loss(cells, completion.predicted(coords, (factors, 0.0, []))).sum())
        same_objectives(name, [r["loss"] for r in wanted], found, bound)


def command_and_peers(folder):
    """The command from the starts of pyttb and tensorly: the same objective after each iteration, by MU
    until pyttb increases zeros that are admissible. With two inner iterations and without a tolerance,
    pyttb makes as many steps of PDNR as the command. The fit of HALS is at least as good at the end."""
    python = peers_python(folder)
    for number, (name, (dims, coords, values, rank)) in enumerate(three_tensors().items()):
        store, start = converted(folder, dims, coords, values, f"t{number}"), start_of(dims, rank, 4)
        peer = peer_results(folder, python, (dims, coords, values), start, 12, 2, 0.0)
        for method in ("mu", "pdnr"):
            found = [decomposed(folder, store, start, k + 1, "--loss", "poisson", "--method", method, "--inner", 2)[1]["objective"]
                     for k in range(12)]
            same = int((peer[method + "_raised"] == 0).sum())
            difference, gain = apart(found[:same], peer[method][:same]), found[-1] - peer[method][-1]
            print(f"# {name}, {method}: {same} iterations {difference:.1e}, gain at the end {gain:.3g} of {found[-1]:.8g}")
            check(difference < 1e-8, f"{name}, {method}: the objective differs by {difference}")
            check(gain > -1e-4 * abs(found[-1]), f"{name}, {method}: {found[-1]}, but pyttb reaches {peer[method][-1]}")
        if "hals" in peer:
            gain = decomposed(folder, store, start, 300, "--nonnegative")[1]["fit"] - peer["hals"][-1]
            print(f"# {name}, HALS: gain at the end {gain:.3g}")
            check(gain > -1e-6, f"{name}: the fit is {-gain} less than tensorly's")


def with_names(store, mode, form, factor):
    """Rows of a factor in the order of the planted indices, whose names are form % index."""
    rows = {name: i for i, name in enumerate(names_of(store, mode))}
    return factor[[rows[form % i] for i in range(len(rows))]]


def planted_counts(folder):
    """Counts drawn from a non-negative model: Poisson models have its components."""
    dims, rank, events = ((1000, 800, 600), 8, 5_450_000) if FULL else ((60, 50, 40), 3, 60_000)
    rng = np.random.default_rng(1)
    model = planted.sparse_model(dims, rank, events, rng)
    coords, values = planted.counted(dims, planted.events_of(model, rng))
    print(f"# {len(values)} nonzeros")
    store, out = converted(folder, dims, coords, values), os.path.join(folder, "run")
    sluice("layout", store, "--sorted", "all", "-q")
    for options in (("--loss", "poisson", "--method", "mu"), ("--loss", "poisson", "--method", "pdnr"), ("--nonnegative",)):
        # The first of three starts that finds all components.
        scores = []
        for seed in range(3):
            sluice("cpd", store, "-r", rank, *options, "--seed", seed, "-o", out, "--restart", "-q")
            scores.append(planted.matched(model[0], model_of(out, 3)).mean())
            if scores[-1] >= 0.95:
                break
        print(f"# {' '.join(options)}: match score {', '.join(f'{score:.4f}' for score in scores)}")
        check(scores[-1] >= 0.95, f"{options}: match scores {scores}")


def planted_cells(folder):
    """A tensor of rank 5 from 2 % of its cells: the error of held-out cells is below 1e-6 of their
    norm."""
    dims, rank, part = ((300, 250, 200), 5, 0.02) if FULL else ((60, 50, 40), 3, 0.06)
    _, coords, values = planted.part_of_cells(dims, rank, part, np.random.default_rng(3))
    store, out = converted(folder, dims, coords, values), os.path.join(folder, "run")
    found = []
    for seed in range(3):
        sluice("cpd", store, "-r", rank, "--observed", "--biases", "none", "-i", 300, "--tol", 1e-9, "--holdout",
               "5%", "--seed", seed, "-o", out, "--restart", "-q")
        held = load_json(os.path.join(out, "run.json"))["holdout"]
        found.append(held["rmse"] * np.sqrt(held["count"]) / held["norm"])
        if found[-1] < 1e-6:
            break
    print(f"# relative error of held-out cells: {found}")
    check(found[-1] < 1e-6, f"errors {found}")


def error_of_biases(coords, values, held, ridge=5.0):
    """Returns the held-out RMSE of the mean and of biases of both modes."""
    mean, sizes = values[~held].mean(), coords.max(axis=1) + 1
    biases, kept = [np.zeros(size) for size in sizes], coords[:, ~held]
    for n in (0, 1) * 10:
        rest = values[~held] - mean - biases[1 - n][kept[1 - n]]
        biases[n] = np.bincount(kept[n], rest, sizes[n]) / (np.bincount(kept[n], minlength=sizes[n]) + ridge)
    return np.sqrt(((values - mean - biases[0][coords[0]] - biases[1][coords[1]])[held] ** 2).mean())


def planted_ratings(folder):
    """Ratings of movies with noise 0.7, as a new user would decompose them: the held-out error is that
    of the noise within 2 %, and below that of biases alone."""
    sizes = {} if FULL else {"rows": 60_000, "users": 400, "movies": 250}
    path, coords, ratings = planted.write_ratings(folder, **sizes)
    store, out = os.path.join(folder, "r.slc"), os.path.join(folder, "run")
    sluice("convert", path, store, "--columns", "user,movie", "--value", "rating", "-q")
    sluice("cpd", store, "-r", 4, "--observed", "--holdout", "5%", "-o", out, "-q")
    held = load_json(os.path.join(out, "run.json"))["holdout"]
    sample = np.random.default_rng(0).random(len(ratings)) < 0.05
    alone = error_of_biases(coords, ratings, sample)
    print(f"# held-out RMSE {held['rmse']:.4f}, biases alone {alone:.4f}")
    check(held["rmse"] < (1.02 if FULL else 1.1) * 0.7 and held["rmse"] < 0.95 * alone, f"{held}, {alone}")


def planted_trips(folder):
    """For trips of four kinds and a uniform background, four of five starts with default options
    find the kinds and a flat background."""
    if QUICK:
        raise Skip("the release build finds them")
    path, model = planted.write_trips(folder, 3_000_000 if FULL else 300_000)
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "run")
    sluice("convert", path, store, "--columns", "pickup,dropoff,hour,weekday", "-q")
    forms = ("zone%03d", "zone%03d", "%02d", "day%d")
    for options in (("--loss", "poisson"), ("--nonnegative",)):
        good, seeds = 0, 5 if FULL else 1
        for seed in range(seeds):
            sluice("cpd", store, "-r", 5, *options, "--seed", seed, "-o", out, "--restart", "-q")
            found = [with_names(store, n + 1, forms[n], f) for n, f in enumerate(model_of(out, 4))]
            scores = planted.matched(model[0], found)
            print(f"# {' '.join(options)}, seed {seed}: kinds {scores[:4].min():.4f}, background {scores[4]:.4f}")
            good += scores[:4].min() >= 0.95 and scores[4] >= 0.95
        check(good >= (4 if FULL else 1), f"{options}: {good} of {seeds} starts")


if __name__ == "__main__":
    run([("known optimum of counts", known_optimum),
         ("known non-negative fit", known_fit),
         ("known cells", known_cells),
         ("references and peers", references_and_peers),
         ("completion: ALS", completed("als")),
         ("completion: CCD", completed("ccd")),
         ("completion with biases", with_biases),
         ("Poisson: MU", poisson_rows("mu")),
         ("Poisson: known optimum", counts_optimum),
         ("planted counts", planted_counts),
         ("planted cells", planted_cells),
         ("planted ratings", planted_ratings),
         ("planted trips", planted_trips),
         ("other losses", other_losses),
         ("non-negative rows", nonnegative_rows),
         ("Poisson: PDNR", poisson_rows("pdnr")),
         ("command and peers", command_and_peers)])
