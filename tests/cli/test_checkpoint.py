#!/usr/bin/env python3
"""Checkpoints of cpd: a run that is killed, interrupted or out of time resumes with the same
command line, and a deterministic one ends with the bytes of an uninterrupted run."""

import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SLUICE, check, load_json, run, run_command, sluice  # noqa: E402

SEED = int(os.environ.get("SLC_TEST_SEED", "1"))
KILLS = 200 if os.environ.get("SLC_TEST_FULL") else 2 if os.environ.get("SLC_TEST_QUICK") else 4


def store(folder):
    path = os.path.join(folder, "t.slc")
    sluice("generate", path, "--dims", "300x200x100", "--nnz", 40000, "-q")
    return path


def command(path, out, *more):
    return [SLUICE, "cpd", path, "-r", "6", "-i", "12", "--tol", "0", "--deterministic", "-t", "2", "-o", out,
            "--checkpoint-interval", "0", *more]


def ran(args, folder="."):
    """Runs the command without an interruption."""
    return run_command(args[1:], cwd=folder)


def factors(out):
    names = sorted(name for name in os.listdir(out) if name.endswith(".npy"))
    check(names == ["lambda.npy", "mode-1.npy", "mode-2.npy", "mode-3.npy"], f"{out}: {os.listdir(out)}")
    return [open(os.path.join(out, name), "rb").read() for name in names]


def checkpoints(out):
    return sorted(name for name in os.listdir(out) if name.endswith(".ckpt"))


def killed_in(*more):
    return lambda folder: killed(folder, *more)


def killed(folder, *more):
    """kill -9 at random moments; runs resume with other numbers of threads."""
    path = store(folder)
    if more:
        sluice("layout", path, "--sorted", "1,2,3", "-q")
    whole, out = os.path.join(folder, "whole"), os.path.join(folder, "out")
    start = time.monotonic()
    subprocess.run(command(path, whole, "-q", *more), check=True)
    seconds = time.monotonic() - start
    check(checkpoints(whole) == [], f"left: {os.listdir(whole)}")
    draw = random.Random(SEED)
    print(f"# seed {SEED} (SLC_TEST_SEED), {KILLS} kills")
    kills = 0
    for _ in range(4 * KILLS):
        child = subprocess.Popen(command(path, out, "-q", *more, "-t", str(draw.randint(1, 3))))
        time.sleep(draw.uniform(0, seconds))
        child.kill()
        if child.wait() == -signal.SIGKILL:
            kills += 1
            if kills == KILLS:
                break
            continue
        check(child.returncode == 0, f"exit {child.returncode}")
        check(factors(out) == factors(whole), "other bytes than those of a run that was left alone")
    check(ran(command(path, out, "-q", *more)).returncode == 0, "the run failed")
    check(factors(out) == factors(whole), "other bytes than those of a run that was left alone")
    check(checkpoints(out) == [], f"left: {os.listdir(out)}")
    fits = [[i["fit"] for i in load_json(os.path.join(name, "run.json"))["iterations"]] for name in (whole, out)]
    check(len(fits[0]) == 12 and fits[0] == fits[1], f"other fits: {fits}")


def began(args, folder):
    """Starts a run, and returns it when it has written a checkpoint after its second iteration."""
    child = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)
    for line in child.stdout:
        if "its =   2" in line:
            return child
    raise AssertionError("it ended by itself: " + child.stderr.read())


def stopped(folder):
    """SIGTERM leaves a checkpoint, also with default options; the messages say so, and the run
    resumes."""
    path = store(folder)
    args = [SLUICE, "cpd", path, "-r", "6", "-i", "100000", "--tol", "0", "-o", "out", "--log-json", "log"]
    child = began(args, folder)
    child.terminate()
    _, messages = child.communicate(timeout=60)
    check(child.returncode == 143, f"exit {child.returncode}: {messages}")
    check("repeat the command to resume at iteration" in messages, messages)
    out = os.path.join(folder, "out")
    check(checkpoints(out) == ["checkpoint-1.ckpt", "checkpoint-2.ckpt"], os.listdir(out))
    record = load_json(os.path.join(out, "run.json"))
    check(record["checkpoint"]["count"] == 1 and record["checkpoint"]["resumes"] == 0, record["checkpoint"])
    with open(os.path.join(folder, "log")) as file:
        events = [json.loads(line) for line in file]
    kept = [event for event in events if event["event"] == "checkpoint"]
    check(len(kept) == 1 and kept[0]["path"] == "out", kept)

    info = json.loads(sluice("info", out, "--json")[0])
    check(info["schema"] == "sluice-checkpoint-1" and info["identity"]["rank"] == "6", info)
    check((info["iteration"], info["mode"]) == (kept[0]["iteration"], kept[0]["mode"]), info)
    _, message = sluice("info", os.path.join(out, "run.json"), status=3)
    check("not a checkpoint; a store would be a folder" in message, message)
    text = sluice("info", os.path.join(out, "checkpoint-1.ckpt"))[0]
    check(f"iteration {info['iteration']}, mode {info['mode']}" in text and "mode order" in text, text)

    args[args.index("100000")] = str(info["iteration"] + 2)
    done = ran(args, folder)
    check(done.returncode == 0, done.stderr)
    check(f"resumed at iteration {info['iteration']}, mode {info['mode']}" in done.stdout, done.stdout)
    record = load_json(os.path.join(out, "run.json"))
    check(record["checkpoint"]["resumes"] == 1, record["checkpoint"])
    with open(os.path.join(folder, "log")) as file:
        added = [json.loads(line) for line in file][len(events):]
    # Progress events appear if an iteration takes longer than a second.
    check([event["event"] for event in added if event["event"] != "progress"] ==
          ["start", "plan", "resume", "iteration", "iteration", "iteration", "results", "end"], added)
    check([i["iteration"] for i in record["iterations"]] == list(range(1, info["iteration"] + 3)), "iterations")
    check(checkpoints(out) == [], os.listdir(out))


def out_of_time(folder):
    """--maxsecs ends with exit code 75; two parts equal one run."""
    path = store(folder)
    whole, out = os.path.join(folder, "whole"), os.path.join(folder, "out")
    check(ran(command(path, whole, "-q")).returncode == 0, "the run failed")
    for _ in range(50):
        code = ran(command(path, out, "-q", "--maxsecs", "0.02")).returncode
        check(code in (0, 75), f"exit {code}")
        if code == 0:
            break
        check(os.path.exists(os.path.join(out, "run.json")), "no results were written")
    else:
        check(ran(command(path, out, "-q")).returncode == 0, "the run failed")
    check(factors(out) == factors(whole), "other bytes than those of a run that was left alone")


def other_options(folder):
    """Options that affect the result must match, and errors name the mismatch; --restart begins
    anew; damage is reported."""
    path = store(folder)
    out = os.path.join(folder, "out")
    stop = ran(command(path, out, "-q", "--maxsecs", "0.000001"))
    check(stop.returncode == 75, f"exit {stop.returncode}")
    for more, what in ((["-r", "7"], "rank is 7, but the checkpoint has 6"),
                       (["--seed", "1"], "start is random, seed 1, but the checkpoint has random, seed 0"),
                       (["--reg", "0.5"], "regularization is 0.5"),
                       (["--mode-order", "3,2,1"], "mode order is 3,2,1"),
                       (["--precision", "f32"], "precision is f32")):
        done = ran(command(path, out, "-q", *more))
        check(done.returncode == 2 and what in done.stderr and "--restart" in done.stderr, (more, done.stderr))
    check(checkpoints(out) != [], "a refused run has removed the checkpoint")
    sluice("generate", path, "--dims", "300x200x100", "--nnz", 30000, "-q", "-f")
    done = ran(command(path, out, "-q"))
    check(done.returncode == 2 and "tensor nonzeros" in done.stderr, done.stderr)
    done = ran(command(path, out, "--restart"))
    check(done.returncode == 0 and "resumed" not in done.stdout, done.stderr)

    ran(command(path, out, "-q", "--maxsecs", "0.000001"))
    for name in checkpoints(out):
        with open(os.path.join(out, name), "r+b") as file:
            if file.read(1) != b"\0":
                file.seek(9000)
                file.write(b"?????")
    done = ran(command(path, out, "-q"))
    check(done.returncode == 5 and "--restart" in done.stderr and ".ckpt" in done.stderr, done.stderr)
    done = run_command(["info", os.path.join(out, "checkpoint-1.ckpt")])
    check(done.returncode == 5 and "damaged" in done.stderr, done.stderr)
    check(ran(command(path, out, "-q", "--restart")).returncode == 0, "not begun anew")


def order_of_modes(folder):
    """A choice of the plan is kept, even if the available memory would now lead to another one."""
    path, out = os.path.join(folder, "t.slc"), os.path.join(folder, "out")
    sluice("generate", path, "--dims", "300x200x20x10", "--nnz", 50000, "--block-bytes", "8KiB", "-q")
    sluice("layout", path, "--sorted", "1,2", "-q")
    base = [SLUICE, "cpd", path, "-r", "3", "-i", "2", "--tol", "0", "-t", "2", "-o", out]

    def fits():
        return [i["fit"] for i in load_json(os.path.join(out, "run.json"))["iterations"]]

    check(ran([*base, "-q", "--mode-order", "1,3,2,4"]).returncode == 0, "the run failed")
    wanted = fits()
    stop = ran([*base, "--no-cache", "--maxsecs", "0.000001"])
    check(stop.returncode == 75 and "1,3,2,4 (chosen by the plan" in stop.stdout, stop.stdout + stop.stderr)
    for more in (["--mode-order", "1,2,3,4"], ["--deterministic"]):
        done = ran([*base, "-q", *more])
        check(done.returncode == 2 and "mode order is 1,2,3,4" in done.stderr, (more, done.stderr))
    check("mode order" not in sluice("plan", "--no-probe", path, "-r", 3, "-t", 2)[0], "memory does not matter")
    done = ran(base)
    check(done.returncode == 0 and "resumed at iteration 1" in done.stdout, done.stderr)
    check(max(abs(a - b) for a, b in zip(wanted, fits(), strict=True)) < 1e-10, (wanted, fits()))


def two_at_once(folder):
    """A second run with the same output is rejected while the first runs, with any location of the
    checkpoints, or none."""
    path = store(folder)
    args = [SLUICE, "cpd", path, "-r", "6", "-i", "1000000", "--tol", "0"]
    for output, first, second in ((["-o", "out"], "auto", "auto"), (["-o", "out"], "none", "none"),
                                  (["-o", "out"], "none", "auto"), (["-o", "out"], "a", "./out"),
                                  (["-s", "stem-"], "none", "auto"), (["--ktensor", "k.txt"], "auto", "none")):
        child = began([*args, *output, "--checkpoint", first], folder)
        before = sorted(os.listdir(folder))
        done = ran([*args, *output, "--checkpoint", second, "--seed", "1"], folder)
        check(done.returncode == 5 and "another sluice" in done.stderr, (output, first, second, done.stderr))
        check(sorted(os.listdir(folder)) == before, os.listdir(folder))
        child.terminate()
        child.communicate(timeout=60)
        check(child.returncode == 143, (output, first, second))
        done = ran([*args, *output, "--checkpoint", first, "-i", "1", "-q"], folder)
        check(done.returncode == 0, (output, first, done.stderr))
    check(not {"stem-checkpoint", "k.txt.checkpoint"} & set(os.listdir(folder)), os.listdir(folder))


def planned(folder):
    """The disk space in the plan is what the run reserves, for passes of one and of two modes, with
    and without layouts."""
    path = store(folder)
    for more in ([], ["--precision", "f32", "-r", "9"], ["--layouts", "sorted"], ["--passes", "fused"]):
        if "sorted" in more:
            sluice("layout", path, "--sorted", "1,2,3", "-q")
        plan = json.loads(sluice("plan", "--no-probe", path, "-r", "6", "--json", *more, "--no-cache")[0])
        out = os.path.join(folder, f"out-{len(os.listdir(folder))}")
        done = run_command(["cpd", path, "-r", "6", "-o", out, "-q", "--maxsecs", "0.000001", *more, "--no-cache"])
        check(done.returncode == 75, done.stderr)
        sizes = [os.path.getsize(os.path.join(out, name)) for name in checkpoints(out)]
        check(len(sizes) == 2 and plan["checkpoint_bytes"] == sum(sizes), (more, sizes, plan["checkpoint_bytes"]))
        check("of checkpoints until the results are written" in sluice("plan", "--no-probe", path, "-r", "6", *more)[0], more)
    check(json.loads(sluice("plan", "--no-probe", path, "-r", "6", "--mode", "1", "--json")[0])["checkpoint_bytes"] == 0, "of an MTTKRP")


def places(folder):
    """Checkpoints are next to each kind of result, in a named folder, or nowhere."""
    path = store(folder)
    base = [SLUICE, "cpd", path, "-r", "3", "-q", "--maxsecs", "0.000001"]
    for more, place in ((["-s", "a-"], "a-checkpoint"), (["--ktensor", "b.txt"], "b.txt.checkpoint"),
                        (["-o", "c/"], "c"), (["-o", "d", "--checkpoint", "e//"], "e"),
                        (["--nowrite", "--checkpoint", "f"], "f")):
        done = ran([*base, *more], folder)
        check(done.returncode == 75, (more, done.returncode, done.stderr))
        check(checkpoints(os.path.join(folder, place)) != [], f"{more}: nothing in {place}")
        done = ran([*base[:-2], "-i", "2", *more], folder)
        check(done.returncode == 0, (more, done.stderr))
        check(not os.path.exists(os.path.join(folder, place)) or checkpoints(os.path.join(folder, place)) == [],
              f"{more}: left in {place}")
        check(place == "c" or not os.path.exists(os.path.join(folder, place)), f"{place} is left")
    # A user's own folder is kept, even if the run's checkpoint was moved into it.
    nowrite = ["--nowrite", "--checkpoint", "own"]
    os.mkdir(os.path.join(folder, "own"))
    check(ran([*base, *nowrite], folder).returncode == 75, "not stopped")
    check(ran([*base[:-2], "-i", "2", *nowrite], folder).returncode == 0, "not resumed")
    check(os.listdir(os.path.join(folder, "own")) == [], "somebody's folder was removed, or is not empty")
    check(ran([*base, "--nowrite", "--checkpoint", "made"], folder).returncode == 75, "not stopped")
    for name in checkpoints(os.path.join(folder, "made")):
        os.rename(os.path.join(folder, "made", name), os.path.join(folder, "own", name))
    check(ran([*base[:-2], "-i", "2", *nowrite], folder).returncode == 0, "not resumed")
    check(os.listdir(os.path.join(folder, "own")) == [], "somebody's folder was removed, or is not empty")
    # The run's own folder is removed even if its contents were discarded.
    check(ran([*base, "--nowrite", "--checkpoint", "new"], folder).returncode == 75, "not stopped")
    anew = [*base[:-2], "-i", "2", "--nowrite", "--checkpoint", "new", "--restart"]
    check(ran(anew, folder).returncode == 0 and not os.path.exists(os.path.join(folder, "new")), "new is left")
    before = sorted(os.listdir(folder))
    for more in (["--nowrite"], ["-o", "c", "--checkpoint", "none"]):
        done = ran([*base, *more], folder)
        check(done.returncode == 75, done.stderr)
        check(sorted(os.listdir(folder)) == before and checkpoints(os.path.join(folder, "c")) == [], more)
    os.symlink("nowhere", os.path.join(folder, "link"))
    for option in ("-o", "--checkpoint"):
        done = ran([*base, option, "link"], folder)
        check(done.returncode == 5 and "dangling symbolic link" in done.stderr, done.stderr)
    done = ran([*base, "--checkpoint", path], folder)
    check(done.returncode == 2, f"a checkpoint was put into a store: {done.stderr}")
    done = ran([*base, "--checkpoint-interval", "-3"], folder)
    check(done.returncode == 2 and "--checkpoint-interval" in done.stderr, done.stderr)


run([
    ("killed runs go on to the same bytes", killed_in()),
    ("and with two modes in a pass", killed_in("--passes", "fused", "--no-cache")),
    ("a stopped run resumes", stopped),
    ("a run that is out of time resumes", out_of_time),
    ("other options are refused", other_options),
    ("an order of modes that the plan has chosen", order_of_modes),
    ("two runs with one output", two_at_once),
    ("plans of checkpoints", planned),
    ("places for checkpoints", places),
])
