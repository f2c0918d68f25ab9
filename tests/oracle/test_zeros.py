#!/usr/bin/python3
"""Zeros that a store keeps (convert --keep-zeros): the nonzeros of every form of the input, and of
stores made from stores, against a dict; the statistics of values; later commands."""

import gzip
import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import binary_forms as forms  # noqa: E402
import forged  # noqa: E402
import slc_format as f  # noqa: E402
from tap import check, ended, run, sluice  # noqa: E402
from test_binary import as_text, content_of, converted, goes_on, write  # noqa: E402

KEEP = "--keep-zeros"


def tensor(dims, nnz, seed=0, scale=1.0):
    """Random coordinates, some duplicate, and values of which a third are zero, some of them -0;
    some duplicates cancel."""
    random = np.random.default_rng(seed)
    coords = np.array([random.integers(0, d, nnz) for d in dims])
    values = random.integers(-3, 4, nnz) * scale * (random.random(nnz) < 0.8)
    half = nnz // 2
    coords[:, half:half + nnz // 8] = coords[:, :nnz // 8]
    values[half:half + nnz // 16] = -values[:nnz // 16]
    return dims, coords, values


def cells_of(coords, values, policy="sum"):
    """Returns the combined values by coordinate."""
    lists = {}
    for key, value in zip(map(tuple, np.asarray(coords).T.tolist()), np.asarray(values).tolist()):
        lists.setdefault(key, []).append(value)
    combine = {"sum": sum, "mean": lambda v: sum(v) / len(v), "min": min, "max": max, "keep-first": lambda v: v[0],
               "keep-last": lambda v: v[-1]}[policy]
    return {key: combine(v) + 0.0 for key, v in lists.items()}


def check_store(store, want, keeps=True, dims=None):
    """Compares the nonzeros and the statistics with a dict; checks the store."""
    read = f.read_store(store)
    got = dict(zip(map(tuple, read["coords"].T.tolist()), read["values"].tolist()))
    check(got == want, f"{store}: {len(got)} nonzeros, wanted {len(want)}")
    check(dims is None or tuple(read["dims"]) == tuple(dims), read["dims"])
    values = np.array(list(want.values()))
    distinct = sorted(set(values.tolist()))
    info = json.loads(sluice("info", store, "--json")[0])
    check(info["nnz"] == len(want) and info["origin"]["keep_zeros"] is keeps, info)
    check(info["values"] == {"minimum": distinct[0], "maximum": distinct[-1], "integers": bool((values % 1 == 0).all()),
                             "zeros": int((values == 0).sum()), "distinct": distinct if len(distinct) <= 16 else None}, info)
    check(keeps is False or info["origin"]["explicit_zeros"] == 0, info["origin"])
    check(all(layout["header"]["zeros"] == ((values == 0).any()) for layout in read["layouts"].values()), "the bit of zeros")
    sluice("check", store)
    return info


def policies(folder):
    """Every policy for duplicates, codec and type of values works with and without zeros."""
    _, coords, values = tensor((30, 40, 50), 4000, 1, 0.25)
    path = write(os.path.join(folder, "in.tns"), forms.tns(coords, values))
    store = os.path.join(folder, "out.slc")
    for number, policy in enumerate(("sum", "mean", "min", "max", "keep-first", "keep-last")):
        more = ("--duplicates", policy, "--codec", ("packed", "lz4", "blco")[number % 3], "-q", "-f", "--index-base", 1)
        want = cells_of(coords, values, policy)
        sluice("convert", path, store, KEEP, *more)
        check_store(store, want)
        sluice("convert", path, store, *more)
        info = check_store(store, {key: value for key, value in want.items() if value != 0}, keeps=False)
        check(info["origin"]["explicit_zeros"] == sum(value == 0 for value in want.values()), info["origin"])
    said = sluice("convert", path, store, KEEP, "-f", "--value", "f32", "--transform", "binarize")[0]
    want = {key: float(value != 0) for key, value in cells_of(coords, values).items()}
    check(f"{sum(v == 0 for v in want.values())} of the nonzeros below" in said.replace(",", ""), said)
    check_store(store, want)
    text = sluice("info", store)[0]
    check("all integers, 2 distinct" in text and "zeros are kept" in text, text)


def all_forms(folder):
    """Every form of the input yields the same store, for any threads and memory, also through a
    pipe and after a kill."""
    given = dims, coords, values = tensor((60, 70, 30), 6000, 2, 0.5)
    want = as_text(folder, *given, KEEP)
    check(want != as_text(folder, *given), "zeros make no difference")
    for name, content, more in (
            ("a.bin", forms.splatt(*given), ()), ("genten.bin", forms.genten(*given), ()),
            ("b.alto", forms.alto(*given), ("--format", "alto-bin")), ("c.gz", gzip.compress(forms.splatt(*given)), ())):
        path = write(os.path.join(folder, name), content)
        check(converted(folder, path, KEEP, *more) == want, f"{name}: another store")
        with open(path, "rb") as pipe:
            check(converted(folder, "-", KEEP, *more, "-t", 1, stdin=pipe) == want, f"{name} through a pipe: another store")
    np.save(os.path.join(folder, "c.npy"), coords)
    np.save(os.path.join(folder, "v.npy"), values)
    pair = [os.path.join(folder, name) for name in ("c.npy", "v.npy")]
    check(converted(folder, pair, KEEP, "--dims", "60x70x30", "-t", 3) == want, "npy: another store")
    np.savez(os.path.join(folder, "s.npz"), coords=coords, data=values, shape=np.array(dims), fill_value=0.0)
    check(converted(folder, os.path.join(folder, "s.npz"), KEEP) == want, "npz: another store")
    table = "a,b,c,v\n" + "".join(f"{a},{b},{c},{v!r}\n" for (a, b, c), v in zip(coords.T.tolist(), values.tolist()))
    path, store = write(os.path.join(folder, "t.csv"), table), os.path.join(folder, "t.slc")
    sluice("convert", path, store, KEEP, "-q", "--columns", "int(a),int(b),int(c)", "--value-column", "v")
    check_store(store, cells_of(coords - coords.min(axis=1, keepdims=True), values))
    large = tensor((3000, 2000, 90), 300000, 7)
    write(os.path.join(folder, "k.bin"), forms.splatt(*large))
    want = as_text(folder, *large, KEEP, "--block-bytes", "64KiB")
    goes_on(folder, ["k.bin", KEEP], want)
    # An interrupted conversion without the option is not resumed with it.
    command = ["convert", "k.bin", "made.slc", "--block-bytes", "64KiB", "--checkpoint-interval", "0.005", "-t", "2"]
    ended(command, folder, os.path.join("made.slc.part", "pushed.state"))
    out = sluice(*command, "-f", KEEP, cwd=folder)[0]
    check("resumed" not in out and content_of(os.path.join(folder, "made.slc")) == want, out)


def dense(folder):
    """All cells of a dense input are kept, in .npy and in text; the forecast counts them."""
    random = np.random.default_rng(3)
    cells = random.integers(-1, 2, (40, 30, 20)) * 0.5
    want = {key: float(value) + 0.0 for key, value in np.ndenumerate(cells)}
    store = os.path.join(folder, "d.slc")
    for order in "CF":
        np.save(os.path.join(folder, "d.npy"), np.array(cells, order=order))
        sluice("convert", os.path.join(folder, "d.npy"), store, KEEP, "-q", "-f")
        check_store(store, want, dims=cells.shape)
    text = "tensor\n3\n40 30 20\n" + "\n".join(map(repr, cells.ravel(order="F").tolist())) + "\n"
    sluice("convert", write(os.path.join(folder, "d.txt"), text), store, KEEP, "-q", "-f", "--format", "tensor")
    check_store(store, want, dims=cells.shape)
    sizes = [json.loads(sluice("convert", os.path.join(folder, "d.npy"), "-f", store, "--dry-run", "--json", *more)[0]) for more in ((), (KEEP,))]
    check(sizes[0] != sizes[1], "the forecast does not depend on zeros")


def life(folder):
    """Stores made from a store that keeps zeros, and exports of it, keep them."""
    def path(name):
        return os.path.join(folder, name)

    _, coords, values = tensor((30, 40, 50), 5000, 4, 0.5)
    want = cells_of(coords, values)
    store = path("z.slc")
    sluice("convert", write(path("z.tns"), forms.tns(coords, values)), store, KEEP, "-q", "--index-base", 1)
    sluice("layout", store, "--sorted", "all", "--fiber", "2")
    check_store(store, want)
    sluice("slice", store, path("s.slc"), "-q", "--mode", "1=5..14", "--mode", "3=11..50")
    check_store(path("s.slc"), {(a - 4, b, c - 10): v for (a, b, c), v in want.items() if 4 <= a < 14 and c >= 10})
    sluice("permute", store, path("p.slc"), "--order", "3,1,2", "-q", "--relabel", "frequency")
    check_store(path("p.slc"), {(c, a, b): v for (a, b, c), v in want.items()})
    for name, more in (("r.slc", ("--relabel", "frequency")), ("l.slc", ("--codec", "lz4"))):
        sluice("convert", path("z.tns"), path(name), KEEP, "-q", "--index-base", 1, *more)
        check_store(path(name), want)
    for name in ("e.tns", "e.npz", "e.bin"):
        sluice("export", store, path(name), *(("--header",) if name == "e.tns" else ()))
        sluice("convert", path(name), path("back.slc"), KEEP, "-q", "-f")
        check_store(path("back.slc"), want)
    # A sum that cancels stays a listed zero, and an appended zero becomes one.
    key = next(key for key, value in want.items() if value != 0)
    more = write(path("more.tns"), forms.tns(np.array([key, (0, 0, 60), (1, 1, 61)]).T, np.array([-want[key], 0.0, 7.0])))
    sluice("append", store, more, "-q", "--index-base", 1)
    want.update({key: 0.0, (0, 0, 60): 0.0, (1, 1, 61): 7.0})
    check_store(store, want)
    sluice("append", path("s.slc"), more, "-q", "--index-base", 1)
    check(json.loads(sluice("info", path("s.slc"), "--json")[0])["values"]["zeros"] > 1, "zeros of an appended slice")


def computations(folder):
    """Zeros are nonzeros of hold-out, residuals and predict, and change neither norm nor model."""
    def path(name):
        return os.path.join(folder, name)

    _, coords, values = tensor((20, 30, 25), 3000, 5)
    want = cells_of(coords, values)
    text = write(path("z.tns"), forms.tns(coords, values))
    for name, more in (("z.slc", (KEEP,)), ("n.slc", ())):
        sluice("convert", text, path(name), "-q", "--index-base", 1, "--dims", "20x30x25", *more)
        sluice("cpd", path(name), "-r", 3, "-i", 5, "--tol", 0, "--seed", 3, "-o", path(name + ".run"))
    zeros, none = (np.load(path(name + ".run/lambda.npy")) for name in ("z.slc", "n.slc"))
    check(np.allclose(zeros, none, rtol=1e-9), (zeros, none))
    report = json.loads(sluice("residuals", path("z.slc.run"), "--json", "--by", "relative")[0])
    check(report["nnz"] == len(want), report["nnz"])
    predicted = json.loads(sluice("predict", path("z.slc.run"), path("z.slc"), "--json")[0])
    check(abs(predicted["rmse"] - report["rmse"]) <= 1e-9 * report["rmse"], (predicted, report))
    out = sluice("cpd", path("z.slc"), "-r", 2, "-i", 3, "--holdout", "0.2", "--nowrite")[0]
    check("Held out" in out, out)
    sluice("convert", write(path("0.tns"), "1 1 1 0\n2 1 2 0\n"), path("0.slc"), "-q", KEEP)
    for options in ((), ("--loss", "poisson"), ("--observed",)):
        _, refused = sluice("cpd", path("0.slc"), "-r", 1, "--nowrite", *options, status=1)
        check("all listed values of the tensor are 0" in refused, refused)


def ratings(folder):
    """The summary of cpd states how it treats cells that are not listed if the values look like
    ratings, and only then."""
    random = np.random.default_rng(6)
    dims, nnz = (60, 80, 9), 3000
    coords = np.array(np.unravel_index(random.choice(60 * 80, nnz, replace=False), dims[:2]) + (random.integers(0, 9, nnz),))
    stars = random.choice(5, nnz, p=(0.05, 0.1, 0.25, 0.35, 0.25)) + 1.0
    counts = np.minimum(random.geometric(0.6, nnz), 8).astype(float)
    repeated = np.concatenate((coords, coords), axis=1)
    with_zeros = np.where(random.random(nnz) < 0.1, 0, stars)
    cases = {"stars": (coords, stars, (), True), "half stars": (coords, stars - 0.5, (), True),
             "of two modes": (coords[:2], stars, ("--dims", "100x200"), True), "with zeros": (coords, with_zeros, (KEEP,), True),
             "counts": (coords, counts, (), False), "ones": (coords, np.ones(nnz), (), False),
             "measured": (coords, stars + 0.1, (), False), "large": (coords, stars * 4, (), False),
             "negative": (coords, stars - 3, (), False), "dense": (coords[:2], stars, (), False),
             "summed": (repeated, np.concatenate((stars, stars)), (), False),
             "transformed": (coords, stars, ("--transform", "scale=0.5"), False), "all": (coords, np.arange(nnz) % 17 + 1.0, (), False)}
    store, run_of = os.path.join(folder, "r.slc"), os.path.join(folder, "r.run")
    for name, (where, values, more, want) in cases.items():
        path = write(os.path.join(folder, "r.tns"), forms.tns(where, values))
        sluice("convert", path, store, "-q", "-f", "--index-base", 1, *more)
        out = sluice("cpd", store, "-r", 2, "-i", 1, "-o", run_of + name.replace(" ", "-"))[0]
        check(("look like ratings" in out) is want and ("counts cells that are not listed as zeros" in out) is want, f"{name}: {out}")
        with open(os.path.join(run_of + name.replace(" ", "-"), "run.json"), encoding="utf-8") as file:
            check(json.load(file)["tensor"]["looks_like_ratings"] is want, name)
    # A store of an older version has no statistics.
    sluice("convert", write(os.path.join(folder, "r.tns"), forms.tns(coords, stars)), store, "-q", "-f", "--index-base", 1)
    check("look like ratings" in sluice("cpd", store, "-r", 2, "-i", 1, "--nowrite")[0], "no note")
    manifest = f.read_manifest(store)
    del manifest["values"]
    forged.write_manifest(os.path.join(store, "tensor.json"), json.dumps(manifest, separators=(",", ":")).encode())
    check("look like ratings" not in sluice("cpd", store, "-r", 2, "-i", 1, "--nowrite")[0], "a note")
    info = json.loads(sluice("info", store, "--json")[0])
    check(info["values"] is None, info)
    sluice("check", store)


if __name__ == "__main__":
    run([
        ("policies, codecs and types", policies),
        ("every form of the input", all_forms),
        ("dense inputs", dense),
        ("stores from stores, exports, appends", life),
        ("computations", computations),
        ("ratings", ratings),
    ])
