#!/usr/bin/env python3
"""Sweeps of cpd over ranks and starts: runs, kept files, reports, and resuming a sweep."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import FULL, QUICK, SLUICE, check, load_json, run, sluice  # noqa: E402

BASE = ("-i", 6, "--tol", 0, "--deterministic", "--io", "pread")


def store_in(folder, nnz=2000):
    store = os.path.join(folder, "t.slc")
    sluice("generate", store, "--dims", "30x20x10", "--nnz", nnz, "--seed", 3, "--rank", 2, "--noise", 0.1, "-q")
    return store


def files_of(folder):
    """Path and bytes of the factors, fits and seeds of all runs, without times."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(at, name)
            if name.endswith(".npy"):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, folder)] = file.read()
    record = load_json(os.path.join(folder, "sweep.json"))
    for one in record["runs"]:
        one.pop("seconds")
    found["record"] = [record[key] for key in ("complete", "suggestion", "ranks", "runs")]
    return found


def by_heldout(folder):
    """Completion and counts: the suggested rank is the smallest whose held-out deviance is near the
    lowest; without a hold-out, and without agreement, no rank is suggested."""
    draw, store, out = random.Random(4), os.path.join(folder, "r.slc"), os.path.join(folder, "s")
    factors = [[[draw.gauss(0, 1) for _ in range(2)] for _ in range(size)] for size in (40, 30, 6)]
    cells = draw.sample([(i, j, k) for i in range(40) for j in range(30) for k in range(6)], 4000)
    rows = [(*(n + 1 for n in at), sum(factors[0][at[0]][r] * factors[1][at[1]][r] * factors[2][at[2]][r] for r in (0, 1))
             + draw.gauss(0, 0.3)) for at in cells]
    sluice("convert", "-", store, "-q", "--dims", "40x30x6", input="".join("%d %d %d %.6f\n" % row for row in rows))
    base = ("cpd", store, "--rank", "1,2,3,4", "--runs", 2, "--observed", "--biases", "none", "-i", 40, "--deterministic")
    said, _ = sluice(*base, "--holdout", "10%", "-o", out)
    record = load_json(os.path.join(out, "sweep.json"))
    best = {}
    for one in record["runs"]:
        if one["rank"] not in best or one["fit"] > best[one["rank"]]["fit"]:
            best[one["rank"]] = one
    lowest = min(one["heldout_deviance"] for one in best.values())
    want = min(rank for rank, one in best.items() if one["heldout_deviance"] <= 1.01 * lowest)
    check(record["suggestion"]["rank"] == want == 2, (record["suggestion"], best))
    check("held-out deviance" in said and "Suggested rank: 2, the smallest rank whose mean deviance" in said, said)
    check(all(rank["core_consistency"] is None and "least squares over all cells" in rank["core_consistency_note"]
              for rank in record["ranks"]), record["ranks"])
    for one in record["runs"]:
        check(abs(one["heldout_deviance"] - one["heldout_rmse"] ** 2) <= 1e-9 * one["heldout_deviance"], one)
    sluice("report", out, "-o", os.path.join(folder, "s.html"), "-q")
    with open(os.path.join(folder, "s.html"), encoding="utf-8") as file:
        page = file.read()
    check("Deviance of held-out nonzeros" in page and "Core consistency" not in page, "other plots")
    again, _ = sluice(*base, "--holdout", "10%", "-o", out)
    check("Suggested rank: 2," in again, "a complete sweep suggests another rank")
    said, _ = sluice("cpd", store, "--rank", "1,2", "--runs", 2, "--observed", "-i", 2, "-o", out + "2")
    check("Suggested rank: none; no nonzeros were held out" in said, said)


def all_is_there(folder):
    """Each run equals a single run; table, plot and suggestion; the best run of each rank keeps its
    factors."""
    store, out = store_in(folder), os.path.join(folder, "s")
    said, _ = sluice("cpd", store, "--rank", "1,2,3", "--runs", 3, "--seed", 5, *BASE, "-o", out)
    for word in ("ranks 1,2,3; seeds 5 to 7", "Rank sweep", "core consistency", "agreement", "Suggested rank: ", "|===",
                 "best run", "sweep.json"):
        check(word in said, f"{word!r} is missing:\n{said}")
    record = load_json(os.path.join(out, "sweep.json"))
    check(record["schema"] == "sluice-sweep-1" and record["complete"] is True, record)
    check([(r["rank"], r["seed"]) for r in record["runs"]] == [(k, s) for k in (1, 2, 3) for s in (5, 6, 7)], record)
    check([r["rank"] for r in record["ranks"]] == [1, 2, 3], record["ranks"])
    for rank in record["ranks"]:
        mine = [r for r in record["runs"] if r["rank"] == rank["rank"]]
        best = max(mine, key=lambda r: (r["fit"], -r["seed"]))
        check(rank["best_seed"] == best["seed"] and rank["fit"] == best["fit"], (rank, mine))
        reached = [r for r in mine if r["fit"] >= best["fit"] - 1e-4]
        check(rank["compared"] == 2 and rank["reached"] == len(reached) and best["match_with_best"] == 1, rank)
        others = [r["match_with_best"] for r in reached if r is not best]
        check(rank["agreement"] == (sum(others) / len(others) if others else None), (rank, others))
        check(f"{len(reached)} of 3" in said and best["condition"] >= 1, (rank, said))
        for one in mine:
            at = os.path.join(out, one["folder"])
            kept = one is best
            check(one["factors_kept"] is kept, one)
            names = {"run.json"} | ({"lambda.npy", "mode-1.npy", "mode-2.npy", "mode-3.npy"} if kept else set())
            check(set(os.listdir(at)) == names, f"{at}: {os.listdir(at)}")
            alone = load_json(os.path.join(at, "run.json"))
            check((alone["rank"], alone["options"]["rank"], alone["options"]["seed"], alone["options"]["runs"])
                  == (one["rank"], one["rank"], one["seed"], 1), alone["options"])
            check(alone["fit"] == one["fit"] and alone["reason"] == one["reason"] == "iterations", one)
    check(os.path.isdir(os.path.join(out, record["suggestion"]["best"])), record["suggestion"])
    sluice("cpd", store, "--rank", 2, "--seed", 6, *BASE, "-o", os.path.join(folder, "alone"))
    sluice("cpd", store, "--rank", 2, "--runs", 3, "--seed", 5, *BASE, "-o", os.path.join(folder, "all"), "--keep", "all",
           "-q")
    for name in ("mode-1.npy", "mode-2.npy", "mode-3.npy", "lambda.npy"):
        both = [open(os.path.join(folder, where, name), "rb").read() for where in ("alone", "all/r2-seed6")]
        check(both[0] == both[1], f"a run of a sweep has other bits in {name} than by itself")


def nothing_to_sweep(folder):
    """A sweep that cannot start leaves no folder, and removes no existing one."""
    empty, out = os.path.join(folder, "e.slc"), os.path.join(folder, "out")
    sluice("generate", empty, "--dims", "5x4x3", "--nnz", 0, "-q")
    for there in (False, True):
        _, messages = sluice("cpd", empty, "-r", "1,2", "-o", out, "-q", status=1)
        check("no nonzeros" in messages and os.path.isdir(out) == there, f"{messages} {os.listdir(folder)}")
        os.makedirs(out, exist_ok=True)


def named_and_quiet(folder):
    """Without -o the folder is NAME.sweep here; -q prints nothing; --log-json has every run's
    events."""
    store = store_in(folder)
    said = sluice("cpd", store, "-r", "2,1", "-i", 2, "-q", "--log-json", "log.json", cwd=folder)
    check(said == ("", ""), said)
    check(sorted(os.listdir(os.path.join(folder, "t.sweep"))) == ["r1-seed0", "r2-seed0", "sweep.json"], folder)
    with open(os.path.join(folder, "log.json")) as file:
        events = [json.loads(line)["event"] for line in file]
    check(events.count("plan") == events.count("end") == 2 and events.count("iteration") == 4, events)
    record = load_json(os.path.join(folder, "t.sweep", "sweep.json"))
    check(record["ranks"][0]["agreement"] is None and record["ranks"][0]["compared"] == 0, record["ranks"])


def goes_on(folder):
    """More ranks and runs extend a sweep; other options are rejected by name; --restart begins
    anew."""
    store, out = store_in(folder), os.path.join(folder, "s")
    sluice("cpd", store, "--rank", "2,3", *BASE, "-o", out, "-q")
    before = os.stat(os.path.join(out, "r2-seed0", "run.json")).st_mtime_ns
    said, _ = sluice("cpd", store, "--rank", "1,2,3", "--runs", 2, *BASE, "-o", out)
    check(said.count("from an earlier part of the sweep") == 2, said)
    check(os.stat(os.path.join(out, "r2-seed0", "run.json")).st_mtime_ns == before, "a run was made again")
    sluice("cpd", store, "--rank", "1,2,3", "--runs", 2, *BASE, "-o", os.path.join(folder, "whole"), "-q")
    check(files_of(out)["record"] == files_of(os.path.join(folder, "whole"))["record"], "added, it is another sweep")
    # All options that affect the result of the runs of BASE.
    for more, word in ((("--reg", 0.5), "regularization"), (("-i", 7), "iterations"), (("--tol", 0.1), "tolerance"),
                       (("--precision", "f32"), "precision")):
        _, messages = sluice("cpd", store, "--rank", "1,2", *BASE, *more, "-o", out, status=2)
        check(messages.startswith(f"sluice: {word} is ") and "--restart" in messages, messages)
    said, _ = sluice("cpd", store, "--rank", "1,2", *BASE, "-i", 3, "-o", out, "--restart")
    check("earlier part" not in said, said)
    check(len(load_json(os.path.join(out, "sweep.json"))["runs"]) == 2, "what was before --restart is still there")


def refused(folder):
    store = store_in(folder)
    for more, word in ((("-s", "x"), "--stem"), (("--ktensor", "k"), "--ktensor"), (("--nowrite",), "--nowrite"),
                       (("--checkpoint", "c"), "--checkpoint"), (("--init", folder), "--init")):
        _, messages = sluice("cpd", store, "-r", "1,2", *more, cwd=folder, status=2)
        check(word in messages, messages)
    for ranks in ("2,2", "0,1", "1,", "2,99999", "x"):
        sluice("cpd", store, "-r", ranks, cwd=folder, status=2)
    sluice("cpd", store, "-r", 2, "--runs", 0, cwd=folder, status=2)
    _, messages = sluice("cpd", store, "-r", "2,3000", "--memory", "60MiB", cwd=folder, status=4)
    check("--memory" in messages, messages)
    check(os.listdir(folder) == ["t.slc"], f"refused, but there is {os.listdir(folder)}")
    out = os.path.join(folder, "s")
    sluice("cpd", store, "-r", "1,2", *BASE, "-o", out, "-q")
    path = os.path.join(out, "sweep.json")
    with open(path) as file:
        text = file.read()
    for wrong in ("", "{", "[]", "{}", text.replace('"rank": 1', '"rank": 0'), text.replace('"seed": 0', '"seed": -1'),
                  text.replace("sluice-sweep-1", "sluice-sweep-9"), text.replace('"iterations": 6', '"iterations": "6"')):
        with open(path, "w") as file:
            file.write(wrong)
        _, messages = sluice("cpd", store, "-r", "1,2", *BASE, "-o", out, status=3)
        check("sweep.json" in messages, messages)


def killed(folder):
    """A sweep that is killed at any moment, or stopped by time or a signal, yields the same bytes
    by the same command line."""
    store = store_in(folder, 5000)
    command = ["cpd", store, "--rank", "2,3", "--runs", 2, "-i", 30, "--tol", 0, "--deterministic", "--io", "pread",
               "--checkpoint-interval", 0, "-q"]
    start = time.monotonic()
    sluice(*command, "-o", os.path.join(folder, "whole"))
    whole = time.monotonic() - start
    want = files_of(os.path.join(folder, "whole"))
    for number in range(8 if FULL else 1 if QUICK else 3):
        out = os.path.join(folder, f"k{number}")
        words = [SLUICE, *map(str, command), "-o", out]
        tries = 0
        while True:
            done = subprocess.Popen(words)
            try:
                code = done.wait(timeout=whole * (0.15 + 0.11 * number))
                break
            except subprocess.TimeoutExpired:
                done.send_signal(signal.SIGKILL if number % 3 else signal.SIGTERM)
                code = done.wait()
                check(code in (0, -9, 143), f"exit code {code}")
                tries += 1
                if tries > 40:  # give up killing: on a busy machine, the loop might never end
                    code = subprocess.call(words)
                    break
        check(code == 0, f"exit code {code}")
        got = files_of(out)
        check(got == want, f"other bytes after {tries} kills: {[k for k in want if got.get(k) != want[k]]}")
        check(not any(name.endswith(".ckpt") for _, _, names in os.walk(out) for name in names), "a checkpoint stayed")
        shutil.rmtree(out)


def out_of_time(folder):
    """--maxsecs limits the whole sweep: exit code 75, and finished runs are kept."""
    store, out = store_in(folder), os.path.join(folder, "s")
    command = ("cpd", store, "--rank", "2,3", "--runs", 2, "-i", 100000, "--tol", 0, "-o", out, "--restart")
    _, messages = sluice(*command, "--maxsecs", 0.3, status=75)
    check("repeat the command to resume the sweep" in messages, messages)
    command = ("cpd", store, "--rank", "2,3", "--runs", 2, *BASE, "-o", out, "--restart", "-q")
    sluice(*command)


def without_memory(folder):
    """Runs that do not fit in memory are skipped with a message, and endless ones are not started."""
    store, out = os.path.join(folder, "t.slc"), os.path.join(folder, "s")
    sluice("generate", store, "--dims", "9x9x9x9x9x9", "--nnz", 2000, "--seed", 3, "-q")
    said, _ = sluice("cpd", store, "--rank", "2,60", "-i", 1, "--tol", 0, "-o", out)
    record = load_json(os.path.join(out, "sweep.json"))
    check(record["ranks"][0]["core_consistency"] is not None, record["ranks"])
    check(record["ranks"][1]["core_consistency"] is None, record["ranks"])
    check("set option consistency to always to compute it" in record["ranks"][1]["core_consistency_note"], record["ranks"])
    said, _ = sluice("cpd", store, "--rank", "2,60", "-i", 1, "--tol", 0, "-o", out, "--restart", "--consistency", "always",
                     "--memory", "300MiB")
    record = load_json(os.path.join(out, "sweep.json"))
    check("MiB of memory or more" in record["ranks"][1]["core_consistency_note"] and "MiB of memory or more" in said, record["ranks"])
    sluice("cpd", store, "--rank", "2,3", "-i", 1, "--tol", 0, "-o", out, "--restart", "--consistency", "never", "-q")
    record = load_json(os.path.join(out, "sweep.json"))
    check([r["core_consistency"] for r in record["ranks"]] == [None, None], record["ranks"])


def locked(folder):
    """A second sweep in the same folder is rejected while the first runs."""
    store, out = store_in(folder), os.path.join(folder, "s")
    first = subprocess.Popen([SLUICE, "cpd", store, "-r", "2,3", "-i", "1000000", "--tol", "0", "-o", out, "-q"])
    while not os.path.exists(os.path.join(out, "r2-seed0", "checkpoint-1.ckpt")) and first.poll() is None:
        time.sleep(0.01)
    _, messages = sluice("cpd", store, "-r", "2,3", "-i", 1000000, "--tol", 0, "-o", out, "-q", status=5)
    first.terminate()
    check(first.wait() == 143, "the first was disturbed")
    check("another process runs a sweep" in messages, messages)


if __name__ == "__main__":
    run([("all runs exist, and their reports", all_is_there),
         ("named after the store, and quiet", named_and_quiet),
         ("other losses suggest a rank by held-out nonzeros", by_heldout),
         ("a sweep that cannot begin", nothing_to_sweep),
         ("a sweep resumes and grows", goes_on),
         ("errors", refused),
         ("after a kill it yields the same bytes", killed),
         ("out of time", out_of_time),
         ("without memory", without_memory),
         ("one at a time", locked)])
