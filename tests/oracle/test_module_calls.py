#!/usr/bin/env python3
"""Long calls of the Python module: progress, Ctrl-C, and output equal to the command's."""

import concurrent.futures
import ctypes
import copy
import inspect
import json
import os
import pickle
import re
import shutil
import signal
import sys
import threading
import time

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import SOURCE, check, run, sluice as command  # noqa: E402

sys.path.insert(0, os.path.join(SOURCE, "python"))
sys.dont_write_bytecode = True
import sluice  # noqa: E402
from sluice import _structs  # noqa: E402

SHAPE = (600, 50, 40)


def tree(folder):
    """Returns all files with their sizes."""
    return sorted((os.path.relpath(os.path.join(root, name), folder), os.path.getsize(os.path.join(root, name)))
                  for root, _, names in os.walk(folder) for name in names)


def long_calls(folder):
    """Returns the name of each long call and the call, which takes an output and a progress
    callback."""
    text = os.path.join(folder, "in.tns")
    generator = np.random.default_rng(5)
    coords = np.array([generator.integers(0, n, 200000) for n in SHAPE])
    values = generator.random(200000)
    tensor = sluice.convert(coords, os.path.join(folder, "in.slc"), values, shape=SHAPE, block_bytes="4KiB")
    tensor.export(text)
    grown = tensor.permute(os.path.join(folder, "grown.slc"), (0, 1, 2))
    model = tensor.cpd(2, 1)
    matrix = np.ones((SHAPE[1], 2))
    parts = [tensor.ttv({0: np.ones(SHAPE[0])}, os.path.join(folder, f"part{i}.slc"), part=(i, 2)).path for i in range(2)]
    return [
        ("convert", lambda to, tell: sluice.convert(text, to, progress=tell)),
        ("arrays", lambda to, tell: sluice.convert(coords, to, values, progress=tell)),
        ("table", lambda to, tell: sluice.convert(text, to, columns="1,int(2)", value_column="4", delimiter=" ",
                                                  header=False, progress=tell)),
        ("generate", lambda to, tell: sluice.generate(to + ".slc", SHAPE, 50000, progress=tell)),
        ("append", lambda to, tell: grown.append(text, progress=tell)),
        ("slice", lambda to, tell: tensor.slice(to, {0: slice(3, None)}, progress=tell)),
        ("permute", lambda to, tell: tensor.permute(to, (2, 0, 1), progress=tell)),
        ("export", lambda to, tell: tensor.export(to, progress=tell)),
        ("check", lambda to, tell: tensor.check(progress=tell)),
        ("add_layout", lambda to, tell: tensor.add_layout("sorted", 0, progress=tell)),
        ("ttv", lambda to, tell: tensor.ttv({0: np.ones(SHAPE[0])}, to, progress=tell)),
        ("ttm", lambda to, tell: tensor.ttm(matrix, 1, to, progress=tell)),
        ("join", lambda to, tell: sluice.join(parts, to, progress=tell)),
        ("mttkrp", lambda to, tell: tensor.mttkrp([np.ones((n, 2)) for n in SHAPE], 1, progress=tell)),
        ("export_model", lambda to, tell: model.export(to, form="csv", progress=tell)),
        ("cpd", lambda to, tell: tensor.cpd(3, 200, tol=0, threads=1, progress=tell)),
        ("predict_file", lambda to, tell: model.predict_file(text, to, progress=tell)),
    ]


def interrupted(folder):
    """Ctrl-C during a progress callback raises KeyboardInterrupt and leaves nothing, and the same
    call then succeeds."""
    for name, call in long_calls(folder):
        output = os.path.join(folder, name)
        told = []

        def interrupt(phase, done, total):
            told.append((phase, done, total))
            signal.raise_signal(signal.SIGINT)

        before = tree(folder)
        try:
            call(output, interrupt)
            check(name in ("mttkrp", "cpd") or not told, f"{name} continued after {told}")
        except KeyboardInterrupt:
            check(isinstance(told[0][1], int), f"{name}: {told}")
            after = tree(folder)
            check(after == before or name == "add_layout", f"{name} left {set(after) - set(before)}")
            call(output, None)


def generated(folder):
    """Distributions and stand-ins are those of the command."""
    def path(name):
        return os.path.join(folder, name)

    for given, python in ((["--dims", "9x8x50", "--nnz", 300, "--dist", "fibers:2:90"],
                           {"shape": (9, 8, 50), "nnz": 300, "distribution": "fibers", "mode": 1, "fiber_count": 90}),
                          (["--dims", "9x8x50", "--nnz", 300, "--dist", "dense-slices:3"],
                           {"shape": (9, 8, 50), "nnz": 300, "distribution": "dense-slices", "mode": 2}),
                          (["--like", "uber", "--scale", "0.0001"], {"like": "uber", "scale": 0.0001})):
        command("generate", path("command.slc"), *given, "--seed", 4, "-f", "-q")
        sluice.generate(path("python.slc"), seed=4, overwrite=True, **python)
        with open(path("command.slc/blco.blk"), "rb") as want, open(path("python.slc/blco.blk"), "rb") as got:
            check(want.read() == got.read(), python)
    for part, python in (("not a tensor", {"like": "uber-x"}), ("omit", {"like": "uber", "nnz": 3}),
                         ("scale", {"like": "uber", "scale": 0}), ("in mode 4", {"shape": (3, 3), "nnz": 1, "mode": 3,
                                                                                "distribution": "dense-fibers"})):
        try:
            sluice.generate(path("refused.slc"), **python)
        except sluice.UsageError as error:
            check(part in str(error), error)
        else:
            check(False, f"{python} was accepted")


def asked(folder):
    """Properties of a store equal the output of the command."""
    made = [sluice.generate(os.path.join(folder, "in.slc"), SHAPE, 5000, fibers=(1, 3)),
            sluice.generate(os.path.join(folder, "none.slc"), SHAPE, 5000, fibers="none", codec="lz4")]
    text = os.path.join(folder, "in.tns")
    made[1].export(text)
    check(made[0].append(text, fibers=2) and not made[0].append(text), "appended")
    made[0].add_layout("sorted", 1)
    for tensor in made:
        info = tensor.info()
        want = json.loads(command("info", tensor.path, "--json")[0])
        for ours, theirs in (("nnz", "nnz"), ("norm", "norm"), ("store_bytes", None), ("key_bits", "key_bits"),
                             ("tile_count", "tile_count"), ("max_block_bytes", "max_block_bytes"),
                             ("value_type", "value_type"), ("total_bytes", "store_bytes")):
            check(theirs is None or getattr(info, ours) == want[theirs], f"{ours}: {info}, {want}")
        check(list(info.shape) == want["dims"] and f"{info.content_sum:016x}" in want["content_sum"], want)
        check(len(info.layouts) == len(want["layouts"]) and info.layouts[0].file_bytes == info.store_bytes, info)
        origin = want["origin"]
        for name in ("source", "dialect", "index_base", "duplicates", "explicit_zeros", "duplicate_policy", "transforms", "writer"):
            check(getattr(info, name) == origin[name], f"{name}: {info}, {origin}")
        check(list(info.appended) == [(one["source"], one["entries"]) for one in origin["appended"]], info)
    check(made[0].info().fibers == (2, 6) and made[1].info().fibers is None, [tensor.info() for tensor in made])
    check(made[1].info().codec == "lz4" and made[0].info().appended == ((text, 5000),), made[0].info())


def named(folder):
    """Names are appended with a labelled tensor or a table; values belong to no column."""
    def text(name, said):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(said)
        return path

    tensor = sluice.convert(text("in.tns", "1 1 2\n2 2 3\n"), os.path.join(folder, "in.slc"), labels={0: text("old", "a\nb\n")})
    more = text("more.tns", "3 1 5\n")
    try:
        tensor.append(more, labels={0: text("wrong", "a\nx\nc\n")})
        check(False, "a name has changed")
    except sluice.InputError as fault:
        check(fault.line == 2 and list(tensor.labels(0)) == ["a", "b"], fault)
    check(tensor.append(more, labels={0: text("new", "a\nb\nc\n")}) and list(tensor.labels(0)) == ["a", "b", "c"], tensor.labels(0))
    for sort in (False, True):
        left = tensor.ttv({1: [1, 1]}, os.path.join(folder, f"left-{sort}.slc"), sort=sort)
        check(list(left.labels(0)) == ["a", "b", "c"] and left.titles == tensor.titles[:1], left.labels(0))
    rows = sluice.convert(text("in.csv", "who,what\nann,tea\n"), os.path.join(folder, "rows.slc"), columns="who,what")
    check(rows.append(text("rows.txt", "who,what\nbob,tea\n"), table=True) and list(rows.labels(0)) == ["ann", "bob"], rows)
    for wrong in (lambda: sluice.convert(os.path.join(folder, "in.csv"), os.path.join(folder, "x.slc"), "v.npy", columns="who"),
                  lambda: rows.append(os.path.join(folder, "in.csv"), "v.npy", table=True)):
        try:
            wrong()
            check(False, "values of a table")
        except sluice.UsageError as fault:
            check("values" in str(fault), fault)
    np.save(os.path.join(folder, "c.npy"), np.array([[0, 1], [1, 0]]))
    np.save(os.path.join(folder, "v.npy"), np.array([2.5, 4]))
    check(tensor.append(os.path.join(folder, "c.npy"), os.path.join(folder, "v.npy"), format="npy-rows") and tensor.nnz == 5, tensor)


def striped(folder):
    """A layout in two other folders is read from there, and moved back."""
    tensor = sluice.generate(os.path.join(folder, "in.slc"), SHAPE, 5000)
    drives = [os.path.join(folder, name) for name in ("a", "b")]
    for drive in drives:
        os.mkdir(drive)
    alone = tensor.mttkrp([np.ones((n, 2)) for n in SHAPE], 0)
    tensor.stripe_layout(drives)
    found = tensor.layouts[0].stripes
    check([os.path.dirname(stripe) for stripe in found] == drives and all(map(os.path.exists, found)), found)
    check(np.array_equal(tensor.mttkrp([np.ones((n, 2)) for n in SHAPE], 0), alone), "products differ")
    # The functions that remove stripes keep them if the store is a copy.
    tensor.add_layout("sorted", 0)
    tensor.stripe_layout(drives, "sorted", 0)
    before = tree(drives[0]) + tree(drives[1])
    for change in (lambda copy: copy.gather_layout(), lambda copy: copy.drop_layout("sorted", 0),
                   lambda copy: copy.stripe_layout(drives[:1]),
                   lambda copy: sluice.generate(copy.path, (5, 5), 5, overwrite=True)):
        path = shutil.copytree(tensor.path, os.path.join(folder, "copy.slc"))
        change(sluice.open(path))
        check(set(before) <= set(tree(drives[0]) + tree(drives[1])), "a copy removed stripes")
        shutil.rmtree(path)
    tensor.check()
    tensor.drop_layout("sorted", 0)
    tensor.gather_layout()
    check(tensor.layouts[0].stripes == () and not any(map(os.path.exists, found)), tensor.layouts)
    try:
        tensor.stripe_layout(drives, "sorted", 1)
        check(False, "there is none")
    except sluice.UsageError:
        pass


def same_files(one, other):
    """Checks that two files, or two folders of files, are equal."""
    names = [""] if os.path.isfile(one) else sorted(os.listdir(one))
    check(os.path.isfile(one) or names == sorted(os.listdir(other)), (one, other))
    for name in names:
        with open(os.path.join(one, name) if name else one, "rb") as ours, \
             open(os.path.join(other, name) if name else other, "rb") as theirs:
            check(ours.read() == theirs.read(), f"{one}, {other}: {name}")


def exported(folder):
    """Tensors and models exported in every format equal those of the command."""
    text = os.path.join(folder, "in.tns")
    with open(text, "w") as file:
        file.write("".join(f"{i % 6 + 1} {i % 5 + 1} {i % 7 + 1} {i}\n" for i in range(1, 100)))
    tensor = sluice.convert(text, os.path.join(folder, "in.slc"), labels=None)
    flat = tensor.ttv({2: np.ones(7)}, os.path.join(folder, "flat.slc"))
    for of, name, form in ((tensor, "out.tns", None), (tensor, "out.bin", None), (tensor, "out.npz", None),
                           (tensor, "out.mat", None), (flat, "scipy.npz", "scipy"), (tensor, "named", "splatt-bin")):
        ours, theirs = os.path.join(folder, name), os.path.join(folder, "command-" + name)
        check(of.export(ours, form=form) == of.nnz, name)
        command("export", of.path, theirs, *(["--format", form] if form else []), "-q")
        if not name.endswith(".mat"):  # .mat files contain the time
            same_files(ours, theirs)
    for base in (0, 1):
        tensor.export(text, index_base=base, header=True, overwrite=True)
        back = sluice.convert(text, os.path.join(folder, "back.slc"), overwrite=True)
        check(back.shape == tensor.shape and back.norm == tensor.norm, f"{back.shape}, {tensor.shape}")
    check(refused(tensor.export, os.path.join(folder, "no.npz"), header=True), "a header of .npz")
    stay = tensor.cpd(2, 5, output=os.path.join(folder, "run"))
    alone = tensor.cpd(2, 5)
    for name, form in (("m.mat", None), ("m.ktensor", None), ("m-csv", "csv")):
        paths = [os.path.join(folder, who + name) for who in ("stay-", "alone-", "command-")]
        stay.export(paths[0], form=form)
        alone.export(paths[1], form=form)
        command("export", stay.folder, paths[2], *(["--format", form] if form else []), "-q")
        if not name.endswith(".mat"):
            same_files(paths[0], paths[1])
            same_files(paths[0], paths[2])
        check(all(map(os.path.exists, paths)), paths)
        try:
            alone.export(paths[1], form=form)
            check(False, "written over")
        except sluice.StorageError as fault:
            check("exists" in str(fault) and "--" not in str(fault), fault)
    # Names that a spreadsheet would run as formulas.
    with open(os.path.join(folder, "f.csv"), "w", encoding="utf-8") as file:
        file.write("who,what\n=1,x\n-2,y\n")
    named = sluice.convert(os.path.join(folder, "f.csv"), os.path.join(folder, "f.slc"), columns="who,what").cpd(1, 1)
    for escape, name in ((True, "'=1"), (False, "=1")):
        named.export(os.path.join(folder, f"f-{escape}"), form="csv", escape=escape)
        with open(os.path.join(folder, f"f-{escape}", "mode-1.csv"), encoding="utf-8") as file:
            check([line.split(",")[1] for line in file][1:] == [f'"{name}"', '"-2"'], name)
    # A store whose path is not UTF-8 is found again by its run.
    store = shutil.copytree(os.path.join(folder, "f.slc"), os.path.join(folder, os.fsdecode(b"f\xff.slc")))
    sluice.open(store).cpd(1, 1, output=os.path.join(folder, "f-run"))
    again = sluice.load(os.path.join(folder, "f-run"))
    check(again.store == store and {row.name for row in again.top(0, 2)[0]} == {"=1", "-2"}, again.top(0, 2))
    alone.export(os.path.join(folder, "npy"), form="npy")
    check(np.array_equal(tensor.load(os.path.join(folder, "npy")).factors[0], alone.factors[0]), "npy")
    for what in (lambda: alone.export(text + "x"), lambda: alone.export("x", form="tns"), lambda: tensor.export("x", form="csv")):
        try:
            what()
            check(False, "no such form")
        except sluice.UsageError:
            pass


# Counterparts of commands in Python and C: the function, the structs, and the names of options; ""
# marks options without one, because they concern the program: its output and estimates. Many
# vectors (--batch of ttv) have a function of their own, which keeps the tensor in memory.
OWN = dict.fromkeys(("log-json", "quiet", "dry-run", "no-probe", "probe-seconds", "json", "help", "verbose"), "")
BUILT = {"temp-dir": "temp_folder"}
COMPUTED = {"no-cache": "cache"}
PARITY = {
    "convert": (sluice.convert, {"dims": "shape", "value-column": "value_column", "no-header": "header"} | BUILT),
    "append": (sluice.Tensor.append, {"grow-modes": "fixed_modes", "layouts": "drop_layouts"} | BUILT),
    "generate": (sluice.generate, {"dims": "shape", "dist": "distribution"} | BUILT),
    "export": (sluice.Tensor.export, {"format": "form", "no-escape": ""}),  # Result.export has escape
    "check": (sluice.Tensor.check, {}),
    "slice": (sluice.Tensor.slice, {"mode": "ranges"} | BUILT),
    "permute": (sluice.Tensor.permute, {"order": "modes"} | BUILT),
    "ttv": (sluice.Tensor.ttv, {"mode": "vectors", "vector": "vectors", "batch": ""} | BUILT),
    "ttm": (sluice.Tensor.ttm, {"kernel": "nonzeros"} | BUILT),
    "join": (sluice.join, {} | BUILT),
    "mttkrp": (sluice.Tensor.mttkrp, {"output": "", "device-name": ""} | COMPUTED),
    "plan": (sluice.Tensor.plan, {"unlisted": "observed", "iters": "", "mode-order": ""} | COMPUTED),
    "cpd": (sluice.Tensor.cpd, {"unlisted": "observed", "maxsecs": "max_seconds", "checkpoint-interval": "checkpoint_interval",
                                "device-name": "", "max-disk": "", "runs": "", "keep": "", "consistency": "", "stem": "", "ktensor": "", "nowrite": ""} | COMPUTED),
    "predict": (sluice.Result.predict_file, {"write": "output", "value": "value_column"}),
    "top": (sluice.Result.top, {"mode": "modes", "order": "", "csv": ""}),
    "residuals": (sluice.residuals, {"csv": ""}),
}
FIELDS = {
    "convert": (_structs.ConvertOptions, {"format": "dialect", "value-column": "value_column", "checkpoint-interval":
                                          "commit_seconds", "memory": "memory_bytes", "temp-dir": "temp_folder",
                                          "max-temp": "max_temp_bytes"}),
    "append": (_structs.AppendOptions, {"format": "dialect", "grow-modes": "fixed_modes", "layouts": "drop_layouts", "memory":
                                        "memory_bytes", "temp-dir": "temp_folder", "max-temp": "max_temp_bytes"}),
    "generate": (_structs.GenerateOptions, {"dims": "", "nnz": "", "dist": "distribution", "memory": "memory_bytes", "temp-dir":
                                            "temp_folder", "max-temp": "max_temp_bytes"}),
    "export": (_structs.ExportOptions, {"format": "form", "memory": "memory_bytes", "no-escape": ""}),
    "check": (_structs.CheckOptions, {"memory": "memory_bytes"}),
    "slice": (_structs.ReshapeOptions, {"mode": "", "memory": "memory_bytes", "temp-dir": "temp_folder", "max-temp":
                                        "max_temp_bytes"}),
    "residuals": (_structs.ResidualsOptions, {"by": "score", "csv": "", "memory": "memory_bytes"}),
    "predict": (_structs.PredictTextOptions, {"write": "form", "output": "", "format": "dialect", "value": "value_column",
                                              "memory": "memory_bytes"}),
    "mttkrp": (_structs.MttkrpOptions, {"mode": "", "factors": "", "output": "", "memory": "memory_bytes", "device-memory":
                                        "memory_bytes", "device-name": "chip", "devices": "numbers"}),
}


def members(struct):
    """Returns the names of all members of a struct, including nested and referenced structs."""
    found = set()
    for name, kind in struct._fields_:
        found.add(name)
        part = getattr(kind, "_type_", kind)
        if isinstance(part, type) and issubclass(part, ctypes.Structure):
            found |= members(part)
    return found


def zeros(folder):
    """Zeros of arrays, tables and files are kept on request; info has the statistics of values."""
    def path(name):
        return os.path.join(folder, name)

    coords, values = np.array([[0, 1, 2, 0, 0], [0, 1, 2, 3, 3]]), np.array([1.5, 0, -0.0, 2, -2])
    table = {"a": coords[0], "b": coords[1], "v": values}
    with open(path("in.tns"), "w") as file:
        file.writelines(f"{i + 1} {j + 1} {v}\n" for i, j, v in zip(*coords, values))
    of_file = sluice.convert(path("in.tns"), path("file.slc"), keep_zeros=True, index_base=1)
    stores = [of_file, sluice.convert(coords, path("array.slc"), values, keep_zeros=True),
              sluice.convert(table, path("table.slc"), columns=["int(a)", "int(b)"], value_column="v", keep_zeros=True)]
    command("convert", path("in.tns"), path("command.slc"), "--keep-zeros", "--index-base", 1, "-q")
    for tensor in stores:
        info = tensor.info()
        check((info.nnz, info.listed_zeros, info.keep_zeros, info.value_range, info.all_integers, info.distinct_values)
              == (4, 3, True, (0, 1.5), False, (0, 1.5)), info)
        with open(path("command.slc/blco.blk"), "rb") as want, open(os.path.join(tensor.path, "blco.blk"), "rb") as got:
            check(want.read() == got.read(), tensor.path)
    info = sluice.convert(coords, path("none.slc"), values).info()
    check((info.nnz, info.listed_zeros, info.keep_zeros, info.explicit_zeros) == (1, 0, False, 3), info)
    info = sluice.convert([np.arange(20)], path("many.slc"), np.arange(20) - 3.0).info()
    check((info.value_range, info.all_integers, info.distinct_values, info.nnz) == ((-3, 16), True, None, 19), info)
    info = sluice.convert([np.zeros(0, np.int64)], path("empty.slc"), np.zeros(0), shape=(4,)).info()
    check((info.nnz, info.listed_zeros, info.value_range, info.distinct_values) == (0, None, None, None), info)


def parity(folder):
    """Every option of the command is a keyword in Python and a field in C."""
    for name, (function, called) in PARITY.items():
        told = command(name, "--help")[0]
        options = re.findall(r"^ +(?:-\w, )?--([a-z][a-z0-9-]*)", told, re.M)
        check(len(options) > 5, told)
        keywords = inspect.signature(function).parameters
        for option in options:
            want = (OWN | called).get(option, option.replace("-", "_"))
            check(want == "" or want in keywords, f"{name} --{option} is no keyword of {function.__qualname__}")
            if name in FIELDS and option not in OWN:
                struct, fields = FIELDS[name]
                want = fields.get(option, option.replace("-", "_"))
                check(want == "" or want in members(struct), f"{name} --{option} is no field of {struct.__name__}")


def damaged(folder):
    """check returns all faults of a store, the same as the command finds."""
    tensor = sluice.generate(os.path.join(folder, "in.slc"), SHAPE, 150000, block_bytes="4KiB")
    check(tensor.faults() == [], "it is sound")
    size = os.path.getsize(os.path.join(tensor.path, "blco.blk"))
    with open(os.path.join(tensor.path, "blco.blk"), "r+b") as file:
        for place in (size // 4, size // 4 * 3):
            file.seek(place)
            byte = file.read(1)[0]
            file.seek(place)
            file.write(bytes([byte ^ 1]))
    found = tensor.faults()
    check(len(found) == 2 and all(isinstance(one, sluice.StorageError) and one.status == "damaged" for one in found), found)
    check(len({one.block for one in found}) == 2 and len(tensor.faults(most=1)) == 1, found)


def wanted_no_more(folder):
    """A progress callback that returns True ends the call with an error that states this."""
    try:
        sluice.generate(os.path.join(folder, "out.slc"), SHAPE, 90000, progress=lambda *_: True)
        check(False, "it did not stop")
    except sluice.SluiceError as fault:
        check(fault.status == "interrupted", vars(fault))
    check(os.listdir(folder) == [], os.listdir(folder))


def prompt(folder):
    """Ctrl-C ends a long call promptly at any time, and the GIL is released meanwhile."""
    begun = []
    killer = threading.Timer(0.3, lambda: (begun.append(time.monotonic()), os.kill(os.getpid(), signal.SIGINT)))
    killer.start()
    try:
        sluice.generate(os.path.join(folder, "huge.slc"), (100000, 100000, 100000), 400000000, memory="512MiB")
        check(False, "it did not stop")
    except KeyboardInterrupt:
        took = time.monotonic() - begun[0]
        check(took < 5, f"{took:.1f} s to end")
        print(f"# {took:.2f} s to end")
    check(os.listdir(folder) == [], os.listdir(folder))


def refused(function, *args, **keywords):
    """Returns whether a call rejects its arguments."""
    try:
        function(*args, **keywords)
    except sluice.UsageError:
        return True
    return False


def duplicates(folder):
    """Arrays with equal coordinates: each policy; a mean is not appended to a store of means."""
    coords, values = [[0, 1, 0, 2, 0], [1, 1, 1, 0, 1]], [3.0, 5.0, -1.0, 2.0, 0.5]
    for policy, want in (("sum", 2.5), ("mean", 2.5 / 3), ("min", -1), ("max", 3), ("keep-first", 3), ("keep-last", 0.5)):
        tensor = sluice.convert(coords, os.path.join(folder, "d.slc"), values, duplicates=policy, value="f64", overwrite=True)
        check(tensor.nnz == 3 and abs(tensor.norm - np.sqrt(want**2 + 25 + 4)) < 1e-12, f"{policy}: {tensor.norm}")
    more = os.path.join(folder, "more.tns")
    with open(more, "w") as file:
        file.write("1 2 1\n")
    try:
        tensor.append(more, duplicates="mean")
        check(False, "appended to a store with duplicates")
    except sluice.InputError as error:
        check("convert all inputs together" in str(error), str(error))


def small(folder):
    generator = np.random.default_rng(3)
    return sluice.convert(generator.integers(0, 20, (3, 300)), os.path.join(folder, "in.slc"), generator.random(300))


def out_of_range(folder):
    """Integers outside the range of the library's types, and texts with a zero byte, are rejected,
    not truncated."""
    tensor, to = small(folder), os.path.join(folder, "to.slc")
    for rank in (-1, 2**32 + 2):
        check(refused(tensor.cpd, rank) and refused(tensor.plan, rank) and refused(tensor.sweep, [2, rank]), rank)
    for option in ({"iters": -1}, {"threads": -1}, {"threads": 2**32 + 1}, {"memory": -1}, {"memory": 2**64 + 2**30}, {"seed": 2**64}):
        check(refused(tensor.cpd, 2, **option), option)
    check(refused(tensor.label, 0, 2**64) and refused(tensor.label, 0, -1), "label")
    check(refused(sluice.generate, to, (2**64 + 5, 5), 3) and refused(sluice.generate, to, (5, 5), -1), "generate")
    check(refused(sluice.convert, [[0], [0]], to, [1.0], shape=(2**64 + 5, 5)), "shape")
    check(refused(tensor.export, os.path.join(folder, "a\0b")) and refused(sluice.open, tensor.path + "\0x"), "paths")
    check(refused(sluice.convert, tensor.path, to, columns="a\0,b"), "columns")
    for name in ("a\0", "a\ud800"):
        check(refused(sluice.convert, [[0], [0]], to, [1.0], labels={0: [name]}), name)
    for value in (2**53 + 1, 2**64 + 1, -2**53 - 1, 10**400):
        check(refused(sluice.convert, [[0, 1], [0, 1]], to, np.array([value, 1], object)), value)
    check(sorted(os.listdir(folder)) == ["in.slc"], os.listdir(folder))
    check(sluice.convert([[0], [0]], to, np.array([2**64], object)).norm == 2.0**64, "an exact value")
    check(tensor.cpd(np.int64(2), np.int64(3), memory=np.int64(2**30)).rank == 2, "integers of NumPy")


def in_use(folder):
    """A store that is closed during a call, copied or pickled; paths of bytes."""
    tensor = small(folder)
    result = tensor.cpd(2, 5, tol=0, callback=lambda _: tensor.close())
    check(result.iterations == 5 and refused(tensor.cpd, 2), "closed in the middle")
    tensor = sluice.open(tensor.path)
    for other in (copy.copy(tensor), copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        other.close()
        check(tensor.cpd(2, 1).rank == 2, "closed with a copy")
    grown = tensor.permute(os.path.join(folder, "grown.slc"), (0, 1, 2))
    source = os.path.join(folder, "in.tns")
    tensor.export(source)
    grown.cpd(2, 3, tol=0, callback=lambda at: at.iteration == 1 and not grown.append(source))
    check(grown.nnz == tensor.nnz and grown.cpd(2, 1).rank == 2, "appended to in the middle")
    place = os.fsencode(folder)
    check(tensor.cpd(2, 2, output=place + b"/run").folder == os.path.join(folder, "run"), "a run")
    check(tensor.load(place + b"/run").rank == 2, "loaded")
    check(sluice.convert(place + b"/in.tns", place + b"/two.slc").nnz == tensor.nnz, "converted")
    check(len(tensor.ttm(np.ones((20, 2)), 0, place + b"/ttm")) == 2, "ttm")
    check(len(pickle.loads(pickle.dumps(result)).factors) == 3, "a result")


def read_at_once(folder):
    """Threads read the names of one tensor; names that are not UTF-8 differ."""
    names = [f"n{i}" * (1 + i % 5) for i in range(9000)]
    tensor = sluice.convert([[0], [0]], os.path.join(folder, "n.slc"), [1.0], labels={0: names}, shape=(9000, 1))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda all_names: list(tensor.labels(0)) if all_names else
                              [tensor.label(0, 4 * i) for i in range(2250)], [True, False] * 4):
            check(found == names if len(found) == 9000 else found == names[::4], "names")
    other = sluice.convert([[0], [0]], os.path.join(folder, "o.slc"), [1.0], labels={0: ["a\udce9", "a\udce8"]}, shape=(2, 1))
    check(list(other.labels(0)) == ["a\\xe9", "a\\xe8"] and other.index(0, "a\\xe8") == 1, list(other.labels(0)))
    check(other.cpd(1, 2).top(0, 1)[0][0].name == other.label(0, 0) == "a\\xe9", "top")


run([
    ("integers and texts that do not fit", out_of_range),
    ("a store in use", in_use),
    ("names in several threads", read_at_once),
    ("Ctrl-C ends every long call", interrupted),
    ("generated tensors are those of the command", generated),
    ("a store reports the same as the command", asked),
    ("appended nonzeros bring their names", named),
    ("layouts move to other folders", striped),
    ("exports are the command's", exported),
    ("policies for duplicates", duplicates),
    ("zeros are kept", zeros),
    ("options are keywords and fields", parity),
    ("all faults of a store", damaged),
    ("a progress callback ends a call", wanted_no_more),
    ("Ctrl-C ends a call soon", prompt),
])
