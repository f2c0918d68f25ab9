#!/usr/bin/env python3
"""Usage: help, versions, unknown options, values out of range; the man pages agree."""

import gzip
import json
import lzma
import os
import re
import resource
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import QUICK, SLUICE, SOURCE, Skip, check, load_json, npy, run, sluice  # noqa: E402

COMMANDS = re.findall(r"^  (\w+) ", sluice("--help")[0].split("Commands:\n")[1].split("\n\n")[0], re.M)


def help_starts_with_an_example(_folder):
    out, messages = sluice("--help")
    check(out.startswith("Example: sluice "), out)
    check(messages == "", messages)
    for command in COMMANDS:
        check(re.search(rf"^  {command} ", out, re.M), f"--help does not list {command}")
        text, messages = sluice(command, "--help")
        check(text.startswith(f"Example: sluice {command} "), text)
        check(messages == "", messages)
        check(sluice("help", command)[0] == text, "help COMMAND differs from COMMAND --help")
        check(sluice(command, "-h")[0] == text, "-h differs from --help")
        check(max(map(len, text.splitlines())) <= 100, f"{command}: the help is too wide")


def examples_parse(_folder):
    """The example of every help text parses: it fails because the file is missing, not because of
    the syntax."""
    for command in COMMANDS:
        example = sluice(command, "--help")[0].splitlines()[0].split()[2:]
        if command in ("generate", "completion", "watch"):
            continue  # these examples would run or wait for a run
        done = subprocess.run([SLUICE, *example], capture_output=True, text=True, cwd=_folder)
        check(done.returncode in (3, 5), f"{example}: exit {done.returncode}: {done.stderr}")


def examples_work(folder):
    """With a tensor of the shape of flights-4d, every example works."""
    def path(name):
        return os.path.join(folder, name)

    sluice("generate", path("t.slc"), "--dims", "182x24x229x228", "--nnz", 20000, "-q")
    sluice("export", path("t.slc"), path("held-out.tns"), "-q")
    with open(path("held-out.tns"), "rb") as file:
        text = file.read() + b"182 24 229 228 1\n"
    with lzma.open(path("flights-4d.tns.xz"), "wb", preset=0) as file:
        file.write(text)
    with gzip.open(path("february.tns.gz"), "wb", 1) as file:
        file.write(text[:4000].rsplit(b"\n", 1)[0] + b"\n")
    npy(path("v.npy"), [1.0] * 229, 229)
    npy(path("U.npy"), [1.0] * 229 * 2, 229, 2)
    first = ["convert", "cpd"]
    for command in first + [name for name in COMMANDS if name not in (*first, "generate", "completion", "watch", "bench")]:
        example = sluice(command, "--help")[0].splitlines()[0].split()[2:]
        if command == "compare":
            shutil.copytree(path("flights-4d.r16"), path("flights-4d.r8"))
        for part in ("1/3", "2/3", "3/3") if command == "join" else ():
            sluice("ttv", "flights-4d.slc", "--mode", 3, "--vector", "v.npy", f"P{part[0]}.slc", "--part", part, "-q", cwd=folder)
        more = {"cpd": ["--iters", "2", "-q"], "plan": ["--no-probe"]}.get(command, [])
        sluice(*example, *more, cwd=folder)
    check(json.loads(sluice("info", path("june.slc"), "--json")[0])["dims"] == [30, 18, 229, 228], "june")


def version_tells_features(_folder):
    """--version, as text and as JSON, reports the build configuration and versions of libraries."""
    out, _ = sluice("--version")
    check(re.match(r"sluice \d+\.\d+\.\d+\n", out) and out == sluice("-V")[0], out)
    told = dict(line.split(": ", 1) for line in out.splitlines()[1:] if ": " in line)
    info = json.loads(sluice("--version", "--json")[0])
    notes = os.path.join(os.path.dirname(SLUICE), "..", "meson-info")
    options = {each["name"]: each["value"] for each in load_json(os.path.join(notes, "intro-buildoptions.json"))}
    build = info["build"]
    check(build["type"] == options["buildtype"] and build["optimization"] == options["optimization"], build)
    check(build["sanitizers"] == options["b_sanitize"] and (build["sanitizers"] in told["build"] or
                                                            build["sanitizers"] == "none"), build)
    check(re.fullmatch(r"\w+ \d+\.[\d.]+", build["compiler"]) and build["compiler"] == told["compiler"], build)
    cuda = info["cuda"]
    check((cuda["toolkit"] or "none") in told["CUDA"] and cuda["devices"] == 0 and cuda["note"] in told["CUDA"], cuda)
    check(cuda["toolkit"] or options["cuda"] == "auto" or "-Dcuda=disabled" in cuda["note"], cuda)
    check(cuda["architectures"] == ("sm_" + ", sm_".join(options["gpu_archs"]) if cuda["toolkit"] else None), cuda)
    check(told["I/O methods"].split(", ") == info["io"] and {"pread", "mmap"} <= set(info["io"]), info["io"])
    for word, name in (("kernels", "kernels"), ("codecs", "codecs"), ("compressed input", "compressed_input")):
        check(told[word] == info[name] or told[word].split(", ") == info[name], f"{word}: {told[word]}, {info[name]}")
    built = {each["name"]: each["version"] for each in load_json(os.path.join(notes, "intro-dependencies.json"))}
    names = {"OpenBLAS": "openblas", "LAPACK": "lapacke", "liblzma": "liblzma", "zstd": "libzstd", "lz4": "liblz4",
             "xxHash": "libxxhash"}
    found = {each["name"]: each for each in info["libraries"]}
    check({"LAPACK", "libzip", "libarchive", "zlib", "bzip2", "zstd", "lz4", "jansson"} <= set(found), sorted(found))
    check(("liburing" in found) == ("uring" in info["io"]) and ("hwloc" in found) == (info["topology"] == "hwloc"), info)
    for name, library in found.items():
        check(names.get(name, name) not in built or library["built_with"] == built[names.get(name, name)], library)
        versions = [each for each in (library["built_with"], library["running_with"]) if each]
        line = re.search(rf"^  {name} +(.*)$", out, re.M)[1]
        check(versions and all(re.match(r"\d+\.\d", each) and each in line for each in versions), f"{library}: {line}")


def no_command(_folder):
    out, _ = sluice(status=2)
    check("Commands:" in out, out)
    _, messages = sluice("covert", status=2)
    check(messages == "sluice: unknown command 'covert'; did you mean convert?\n", messages)
    for word in ("xyzzy", "foo", "tip-of"):
        _, messages = sluice(word, status=2)
        check("see sluice --help" in messages, messages)


def wrong(part, *args):
    def test(_folder):
        out, messages = sluice(*args, status=2)
        check(out == "", f"standard output is not empty: {out}")
        check(messages.startswith("sluice: ") and messages.count("\n") == 1, repr(messages))
        check(part in messages, f"{part!r} is not in {messages!r}")
    return f"refused: sluice {' '.join(args)}", test


def forms_of_options(folder):
    """The command accepts -r 2, -r2, --rank 2, --rank=2, clustered flags, options after operands,
    and --."""
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "9x8x7", "--nnz", "100", "-q")
    want = None
    for form in (["-r", "2"], ["-r2"], ["--rank", "2"], ["--rank=2"]):
        for args in ([store, *form], [*form, store], [*form, "--", store]):
            out, _ = sluice("plan", "--json", "--no-probe", *args)
            want = want or out
            check(re.sub(r'"\w*_bytes.*', "", out) == re.sub(r'"\w*_bytes.*', "", want), f"{args}")
    out, messages = sluice("cpd", store, "-r2", "-vq", "--nowrite", "--iters=2")
    check(out == "" and messages == "", f"-q says {out}{messages}")
    for dims, nnz, want in (("1Kx0.05Kx2M", "2K", ([1000, 50, 2000000], 2000)), ("9x8x7", "0.012k", ([9, 8, 7], 12)),
                            ("30x40x1.5m", "1234", ([30, 40, 1500000], 1234))):
        sluice("generate", store, "--dims", dims, "--nnz", nnz, "-q", "-f")
        info = json.loads(sluice("info", store, "--json")[0])
        check((info["dims"], info["nnz"]) == want, f"{dims}, {nnz}: {info}")
    for nnz in ("1.5", "2.0", "0.0005K", "20000000000G", "2KK", "2.K", "K", "2T", "1e6"):
        _, said = sluice("generate", store, "--dims", "9x8x7", "--nnz", nnz, status=2)
        check(f"--nnz: '{nnz}' is not a whole number such as 2000, 2K, 1.5M or 3G" in said, said)


def mistaken_folders(folder):
    """A wrong operand instead of a store, a run or a file: the error names its kind and the right
    one."""
    store, out, sweep, text, table = (os.path.join(folder, name) for name in ("t.slc", "run", "sweep", "t.tns", "t.csv"))
    sluice("generate", store, "--dims", "9x8x7", "--nnz", "100", "-q")
    sluice("export", store, text, "-q")
    sluice("cpd", store, "-r", 2, "-i", 1, "-o", out, "-q")
    sluice("cpd", store, "-r", "1,2", "-i", 1, "-o", sweep, "-q")
    with open(table, "w", encoding="utf-8") as file:
        file.write("origin,destination\na,b\n")
    for words, status, *args in (
            ("which sluice convert makes", 3, "cpd", text, "-r", 2),
            ("results of a run: name the store", 3, "cpd", out, "-r", 2),
            ("runs of a sweep: name the store", 3, "info", sweep),
            ("a store: run sluice cpd on it", 3, "top", store),
            ("name the folder of one run", 3, "top", sweep),
            ("name the folder of one run", 3, "watch", sweep, "--once"),
            ("a store: run sluice cpd on it", 3, "watch", store, "--once"),
            ("name the folder of one run", 3, "export", sweep, os.path.join(folder, "x.mat")),
            ("a store already", 3, "convert", store, os.path.join(folder, "y.slc")),
            ("results of a run", 3, "predict", out, out),
            ("name the columns that become modes (--columns)", 3, "convert", table, os.path.join(folder, "y.slc")),
            ("without a column of values, rows are counted (--value)", 2, "convert", table, os.path.join(folder, "y.slc"), "--columns", "origin",
             "--value", "count"),
            ("the budget is 4 bytes", 4, "cpd", store, "-r", 2, "--memory", 4)):
        _, messages = sluice(*args, status=status)
        check(words in messages and messages.count("\n") == 1, f"{args}: {messages}")


def names_of_choices(folder):
    """Every choice of an option is accepted by the code that uses it."""
    text = os.path.join(folder, "t.tns")
    with open(text, "w") as file:
        file.write("1 1 1 1.5\n2 3 4 2\n2 3 4 1\n")
    for option, choices in (("--codec", ("packed", "lz4", "blco")), ("--value", ("auto", "f64", "f32")),
                            ("--duplicates", ("sum", "keep-first", "keep-last", "mean", "min", "max")),
                            ("--dialect", ("auto", "tns"))):
        for choice in choices:
            sluice("convert", text, os.path.join(folder, "t.slc"), "-f", option, choice)
    sluice("convert", text, os.path.join(folder, "t.slc"), "-f", "--duplicates", "error", status=3)
    for dialect in ("parti", "frostt-ext", "genten", "tensortoolbox", "taco", "matrixmarket"):
        _, messages = sluice("convert", text, os.path.join(folder, "u.slc"), "--dialect", dialect,
                             status=3)
        check("t.tns" in messages, messages)
    store = os.path.join(folder, "t.slc")
    for option, choices in (("--io", ("auto", "pread", "mmap")), ("--precision", ("f64", "f32")),
                            ("--schedule", ("auto", "largest", "file"))):
        for choice in choices:
            sluice("cpd", store, "-r", 1, "-i", 1, "--nowrite", option, choice)


def options_of_help(text):
    """Returns the help on each option: letter, value, second name, default."""
    found = {}
    for entry in re.findall(r"^  .*(?:\n {12,}.*)*", text.split("Options (defaults in brackets):\n")[1].split("\n\n")[0], re.M):
        head = re.match(r"  (?:-(\w), |    )--([\w-]+)(\[=\w+\]| \S+(?: \.\.)?)?(?: {2,}|\s*\n|$)", entry)
        entry = re.sub(r"\s+", " ", entry)
        alias, default = re.search(r"\(also --([\w-]+)\)", entry), re.search(r"\[([^\]]*)\]$", entry)
        found[head[2]] = (head[1], head[3], alias and alias[1], default and default[1])
    return found


def plain(text):
    return re.sub(r"[*_\\]", "", re.sub(r"\s+", " ", text))


def man_pages(_folder):
    """Every command has a man page with exactly the options of its help: names, letters, values and
    defaults."""
    for command in COMMANDS:
        with open(os.path.join(SOURCE, "docs", "man", f"sluice-{command}.1.scd")) as file:
            page = file.read()
        out, _ = sluice(command, "--help")
        section = page.split("# OPTIONS")[1].split("\n# ")[0]
        there = {}
        for head, text in re.findall(r"^((?:\*-\w\*, )?\*--[\w-]+\*.*)\n((?:\t.*\n?)+)", section, re.M):
            there[re.search(r"--([\w-]+)", head)[1]] = plain(head), plain(text)
        told = options_of_help(out)  # of benchmarks: test_bench.py
        check(set(told) == set(there), f"{command}: help {sorted(told)}, man page {sorted(there)}")
        for name, (letter, value, alias, default) in told.items():
            names = [f"-{letter}"] if letter else []
            names += [f"--{each}" + plain(value or "") for each in (name, alias) if each]
            check(there[name][0] == ", ".join(names), f"{command}: man page {there[name][0]!r}, help {names}")
            said = re.findall(r"Default: (.*?)\.(?= |$)", there[name][1])
            check(not default or [re.split("[:,;]", each)[0] for each in said] == [default]
                  or said == [default], f"{command} --{name}: man page {said}, help {default}")
        example = out.splitlines()[0].removeprefix("Example: ")
        check(example in page, f"{command}: the man page has another example")
    with open(os.path.join(SOURCE, "docs", "man", "sluice.1.scd")) as file:
        page = file.read()
    for command in COMMANDS:
        check(f"*sluice-{command}*(1)" in page, f"sluice.1 does not list {command}")


def full_output(folder):
    """Reported like a full disk whenever the first write failed: at the end, or long before it."""
    if not os.path.exists("/dev/full"):
        return
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "9x8x7", "--nnz", "100", "-q")
    for args in (["--help"], ["cpd", store, "-r", "2", "-i", "2", "-o", os.path.join(folder, "r"), "--progress", "never"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run([SLUICE, *args], stdout=full, stderr=subprocess.PIPE, text=True)
        check(done.returncode == 5, f"exit {done.returncode}")
        check("standard output: cannot write the results: No space left" in done.stderr and "free some space" in done.stderr, done.stderr)


def closed_streams(folder):
    """Output is not written to files whose descriptors have the numbers of closed standard streams."""
    def close():
        for fd in range(3):
            os.close(fd)

    for name, status in (("open", 0), ("closed", 5)):
        out = os.path.join(folder, name)
        more = {"preexec_fn": close} if status else {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        for args in (["generate", out + ".tns", "--dims", "30x20x10", "--nnz", "1000", "--progress", "always"],
                     ["convert", out + ".tns", out + ".slc", "--progress", "always"],
                     ["cpd", out + ".slc", "-r", "2", "-i", "3", "--deterministic", "--progress", "always", "-o", out]):
            done = subprocess.run([SLUICE, *args], **more)
            check(done.returncode == status, f"{name} {args[0]}: exit {done.returncode}")
    for file in (".tns", ".slc/blco.blk", "/mode-1.npy", "/lambda.npy"):
        written = []
        for name in ("open", "closed"):
            with open(os.path.join(folder, name + file), "rb") as there:
                written.append(there.read())
        check(written[0] == written[1], f"{file} has other bytes")


def limited_address_space(folder):
    """Under a limit of the address space (ulimit -v), OpenBLAS, which hangs without memory, gets
    enough or is not called."""
    if QUICK:
        raise Skip("sanitizers need an address space without end")
    store = os.path.join(folder, "t.slc")
    model = os.path.join(folder, "m")
    sluice("generate", store, "--dims", "30x20x10", "--nnz", "500", "-q")
    sluice("cpd", store, "-r", "2", "-i", "1", "-o", model, "-q")
    env = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    for mib, args, status, words in ((220, ["--help"], 0, ""), (220, ["check", store, "-q", "-t", "2"], 0, ""),
                                     (220, ["cpd", store, "-r", "2", "-i", "2", "--nowrite", "-q", "-t", "4"], 1, "ulimit -v"),
                                     (120, ["compare", model, model], 1, "ulimit -v"),
                                     (1200, ["cpd", store, "-r", "2", "-i", "2", "--nowrite", "-q", "-t", "4"], 0, "")):
        done = subprocess.run([SLUICE, *args], capture_output=True, text=True, timeout=60, env=env, preexec_fn=lambda room=mib << 20:
                              resource.setrlimit(resource.RLIMIT_AS, (room, room)))
        check(done.returncode == status and words in done.stderr, f"{mib} MiB, {args}: {done}")
    done = subprocess.run([SLUICE, "plan", store, "-r", "2", "--no-probe", "--json"], capture_output=True, text=True, timeout=60,
                          env=env, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
    check(0.3 * 2**30 < json.loads(done.stdout)["budget_bytes"] <= 0.4 * 2**30, done.stdout)


def more_memory_than_there_is(folder):
    """A budget beyond the machine's memory is reduced with a warning; the command fails if the rest
    does not suffice. A plan keeps its budget, because it may be for another machine."""
    text, store = os.path.join(folder, "t.tns"), os.path.join(folder, "t.slc")
    sluice("generate", text, "--dims", "300x200x10", "--nnz", "500", "-q")
    def limited(*args, mib=256, status=0):
        return sluice(*args, "--memory", "512MiB", status=status, env=os.environ | {"SLUICE_MEMORY": str(mib << 20)})

    words = "warning: --memory 512 MiB is more than the 256 MiB of this machine or its cgroup"
    check(words + ", which is the budget instead" in limited("convert", text, store)[1], "convert")
    out, messages = limited("plan", store, "-r", "4", "--no-probe", "--json")
    check(words + "\n" in messages and json.loads(out)["budget_bytes"] == 512 << 20, (out, messages))
    out, messages = limited("cpd", store, "-r", "4", "-i", "1", "--nowrite")
    check(words in messages and "budget 256 MiB" in out, (out, messages))
    check(limited("cpd", store, "-r", "4", "-i", "1", "--nowrite", "-q")[1] == "", "not quiet")
    for args in (("cpd", store, "-r", "4", "--nowrite"), ("layout", store, "--sorted", "1"), ("convert", text, store + "2")):
        messages = limited(*args, mib=8, status=4)[1]
        check("512 MiB is more than the 8.00 MiB" in messages and "the budget is 8.0 MiB" in messages, (args, messages))
    check("more than" not in sluice("cpd", store, "-r", "4", "-i", "1", "--nowrite", "--memory", "64MiB")[1], "a small budget")


run([
    ("help starts with an example", help_starts_with_an_example),
    ("examples parse", examples_parse),
    ("examples work", examples_work),
    ("version lists the features", version_tells_features),
    ("no command, an unknown one", no_command),
    wrong("did you mean --rank?", "cpd", "x.slc", "--rnak", "3"),
    wrong("did you mean --memory?", "cpd", "x.slc", "--mem", "1G"),
    wrong("did you mean --tol?", "cpd", "x.slc", "--tolerance", "1"),
    wrong("did you mean --iters?", "cpd", "x.slc", "--itesr", "1"),
    wrong("unknown option --xyz; see sluice cpd --help", "cpd", "x.slc", "--xyz", "1"),
    wrong("empty argument; cpd accepts X.slc", "cpd", "", "-r", "3"),
    wrong("empty argument; convert accepts IN", "convert", "x.tns", ""),
    wrong("- | gzip > X.tns.gz", "export", "x.slc", "x.tns.gz"),
    wrong("a format in which a tensor cannot be written", "export", "x.slc", "x.csv"),
    wrong("a format in which a tensor cannot be written", "export", "x.slc", "x.parquet"),
    wrong("a format in which a tensor cannot be written", "export", "x.slc", "x.feather"),
    wrong("unknown option -Z", "cpd", "x.slc", "-Z"),
    wrong("unknown option -rank; did you mean --rank?", "cpd", "x.slc", "-rank", "3"),
    wrong("unknown option -output=r; did you mean --output?", "cpd", "x.slc", "-r", "3", "-output=r"),
    wrong("--rank R[,R..] must be given", "cpd", "x.slc"),
    wrong("needs X.slc", "cpd", "-r", "3"),
    wrong("unexpected argument 'y'", "cpd", "x.slc", "y", "-r", "3"),
    wrong("compare accepts at most 8 arguments, RUN RUN ..: compare the others", "compare", *"123456789"),
    wrong("report accepts at most 8 arguments", "report", *"123456789", "-o", "x.html"),
    wrong("name the folder that contains the runs", "report", *"123456789", "-o", "x.html"),
    wrong("bench roofline accepts at most 8 arguments, X.slc ..: repeat the command", "bench", "roofline", *"123456789"),
    wrong("--output - would mean standard output", "report", "x", "-o", "-"),
    wrong("--output - would mean standard output", "mttkrp", "x.slc", "--mode", "1", "--factors", "r", "-o", "-"),
    wrong("--output - would mean standard output", "cpd", "x.slc", "-r", "3", "-o", "-"),
    wrong("--ktensor - would mean standard output", "cpd", "x.slc", "-r", "3", "--ktensor", "-"),
    wrong("--rank needs a value", "cpd", "x.slc", "-r"),
    wrong("not between 1 and 4096", "cpd", "x.slc", "-r", "0"),
    wrong("not between 1 and 4096", "cpd", "x.slc", "-r", "5000"),
    wrong("is not a whole number", "cpd", "x.slc", "-r", "-3"),
    wrong("is not a whole number", "cpd", "x.slc", "-r", "3.5"),
    wrong("is not a whole number", "cpd", "x.slc", "-r", "99999999999999999999"),
    wrong("is not a number of 0 or more", "cpd", "x.slc", "-r", "3", "--tol", "-1"),
    wrong("is not a number of 0 or more", "cpd", "x.slc", "-r", "3", "--tol", "nan"),
    wrong("is not a number of 0 or more", "cpd", "x.slc", "-r", "3", "--reg", "1x"),
    wrong("'1e400' is out of range: the limit is 1e300", "cpd", "x.slc", "-r", "3", "--reg", "1e400"),
    wrong("'1.1e300' is out of range", "cpd", "x.slc", "-r", "3", "--maxsecs", "1.1e300"),
    wrong("is not a number of 0 or more", "cpd", "x.slc", "-r", "3", "--tol", "-1e400"),
    wrong("did you mean uring?", "cpd", "x.slc", "-r", "3", "--io", "uing"),
    wrong("listed twice in '1,2,1'", "cpd", "x.slc", "-r", "3", "--mode-order", "1,2,1"),
    wrong("not a list of modes", "cpd", "x.slc", "-r", "3", "--mode-order", "0,1"),
    wrong("not a list of modes", "cpd", "x.slc", "-r", "3", "--mode-order", "1,,2"),
    wrong("is not a size", "cpd", "x.slc", "-r", "3", "--memory", "3XB"),
    wrong("the value is empty", "cpd", "x.slc", "-r", "3", "--memory="),
    wrong("mode 2 is listed twice", "ttv", "x.slc", "y.slc", "--mode", "2", "--vector", "v.npy",
          "--mode", "2", "--vector", "v.npy"),
    wrong("the number of modes (2) and of vectors (1) must be equal", "ttv", "x.slc", "y.slc", "--mode", "1,2",
          "--vector", "v.npy"),
    wrong("--vector V.npy must be given", "ttv", "x.slc", "y.slc", "--mode", "1"),
    wrong("--batch needs exactly one --mode and no --vector", "ttv", "x.slc", "y-%d.slc", "--mode", "1,2", "--batch", "v.npy"),
    wrong("--batch needs an output with one %d", "ttv", "x.slc", "y.slc", "--mode", "1", "--batch", "v.npy,w.npy"),
    wrong("the path of vector 2 is empty", "ttv", "x.slc", "y-%d.slc", "--mode", "1", "--batch", "v.npy,,w.npy"),
    wrong("--version accepts only --json", "--version", "x"),
    wrong("'x': --version accepts only --json", "--version", "--json", "x"),
    wrong("has more than 16 numbers", "cpd", "x.slc", "-r", "3", "--devices", ",".join(["0"] * 17)),
    wrong("does not accept a value", "cpd", "x.slc", "-r", "3", "--quiet=1"),
    wrong("such as 100x200x300", "generate", "x.slc", "--dims", "0x3", "--nnz", "1"),
    wrong("such as 100x200x300", "generate", "x.slc", "--dims", "x".join(["2"] * 17), "--nnz", "1"),
    wrong("--dist", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--dist", "zip"),
    wrong("'0': use auto, none, or MODE[:BITS]", "generate", "x.slc", "--dims", "3x3", "--nnz", "1",
          "--fibers", "0"),
    wrong("1 to 24 bits", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--fibers", "1:25"),
    wrong("'2:'", "convert", "x.tns", "x.slc", "--fibers", "2:"),
    wrong("'longest'", "convert", "x.tns", "x.slc", "--fibers", "longest"),
    wrong("the tensor has modes 1 to 2", "generate", "x.slc", "--dims", "3x3", "--nnz", "1",
          "--fibers", "3:4"),
    wrong("--dist", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--dist", "zipf:-1"),
    wrong("'best:0'", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--dist", "best:0"),
    wrong("mode 3", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--dist", "best:3"),
    wrong("share no index", "generate", "x.slc", "--dims", "3x3", "--nnz", "4", "--dist", "worst"),
    wrong("--nnz N must be given", "generate", "x.slc", "--dims", "3x3"),
    wrong("--dims AxBxC must be given", "generate", "x.slc", "--nnz", "3"),
    wrong("--dims and --like cannot be combined", "generate", "x.slc", "--like", "nell-2", "--dims", "3x3"),
    wrong("--nnz and --like cannot be combined", "generate", "x.slc", "--like", "nell-2", "--nnz", "3"),
    wrong("--dist and --like cannot be combined", "generate", "x.slc", "--like", "nell-2", "--dist", "uniform"),
    wrong("did you mean nell-2?", "generate", "x.slc", "--like", "nell2"),
    wrong("--scale 1.5", "generate", "x.slc", "--like", "nell-2", "--scale", "1.5"),
    wrong("--scale 0", "generate", "x.slc", "--like", "nell-2", "--scale", "0"),
    wrong("--scale needs --like", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--scale", "0.5"),
    *[wrong(f"'{dist}' is not one of", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--dist", dist)
      for dist in ("uniform:1", "worst:1", "dense-fibers", "dense-slices:0", "dense-fibers:1:2", "fibers:1",
                   "fibers:1:0", "fibers:1:1.5", "fibers:17:1", "fibers::1", "best:")],
    wrong("dense slices in mode 3", "generate", "x.slc", "--dims", "3x3", "--nnz", "1", "--dist", "dense-slices:3"),
    wrong("2 to 3 nonempty fibers", "generate", "x.slc", "--dims", "3x3", "--nnz", "4", "--dist", "fibers:1:4"),
    wrong("0 of 2 operands were given", "convert"),
    wrong("--mode K must be given", "mttkrp", "x.slc"),
    ("forms of options", forms_of_options),
    ("names of choices", names_of_choices),
    ("a folder that is something else", mistaken_folders),
    ("man pages have the options of the help", man_pages),
    ("a full standard output is an error", full_output),
    ("standard streams that are closed", closed_streams),
    ("a limited address space", limited_address_space),
    ("more memory than the machine has", more_memory_than_there_is),
])
