#!/usr/bin/env python3
"""Runs the script of examples/slurm as Slurm does: cut by the time limit and by signals to its
shell, and started again each time it requests to be requeued, until it is done; the factors are
those of an uninterrupted run."""

import os
import shutil
import signal
import subprocess
import sys
import time

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", name) for name in ("lib", "oracle")]
from tap import SLUICE, check, run, sluice  # noqa: E402

SCRIPT = os.path.join(os.environ["SLC_SOURCE"], "examples", "slurm", "cpd.sbatch")
OPTIONS = ["-r", "4", "--tol", "0", "--deterministic", "-t", "2"]


def program(folder, name, text):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="ascii") as file:
        file.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


class Cluster:
    """A folder with the Slurm commands that the script calls, and a log of their calls."""

    def __init__(self, folder):
        self.folder, self.bin = folder, os.path.join(folder, "bin")
        os.mkdir(self.bin)
        self.requeues, self.pid = os.path.join(folder, "requeues"), os.path.join(folder, "pid")
        program(self.bin, "scontrol", f'echo "$*" >> {self.requeues}\n')
        program(self.bin, "squeue", 'echo "$SLURM_TEST_LEFT"\n')
        self.sluice = program(self.bin, "sluice", f'echo $$ > {self.pid}; exec {SLUICE} "$@"\n')
        self.store = os.path.join(folder, "x.slc")
        sluice("generate", self.store, "--dims", "300x200x90", "--nnz", 30000, "-q")

    def asked(self):
        """Returns the requests to scontrol since the last call."""
        lines = open(self.requeues, encoding="ascii").read().splitlines() if os.path.exists(self.requeues) else []
        if lines:
            os.unlink(self.requeues)
        return lines

    def start(self, run_folder, *options, **environment):
        env = os.environ | {"PATH": self.bin + ":" + os.environ["PATH"], "SLURM_JOB_ID": "77",
                            "SLUICE": self.sluice} | environment
        return subprocess.Popen(["bash", SCRIPT, self.store, run_folder, *OPTIONS, *options], env=env,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def factors(folder):
    return [open(os.path.join(folder, f"{name}.npy"), "rb").read() for name in ("mode-1", "mode-2", "mode-3", "lambda")]


def uninterrupted(cluster, iters):
    out = os.path.join(cluster.folder, "whole")
    sluice("cpd", cluster.store, "-o", out, *OPTIONS, "-i", iters, "-q")
    return factors(out)


def time_limits(folder):
    """Each job has little time: it stops by itself, requests to be requeued, and resumes."""
    cluster, out, jobs, iters = Cluster(folder), os.path.join(folder, "run"), 0, 250
    while True:
        job = cluster.start(out, "-i", str(iters), SLURM_TEST_LEFT="1:01", SLUICE_MARGIN="60")
        text, _ = job.communicate(timeout=300)
        if job.returncode == 75 or iters > 1000000:
            break
        check(job.returncode == 0 and cluster.asked() == [], text)
        shutil.rmtree(out)
        iters *= 2  # until the run takes longer than its second
    check(job.returncode == 75 and cluster.asked() == ["requeue 77"], text)
    # Each job computes for one second, the smallest limit, until the run is complete.
    while job.returncode == 75 and jobs < 500:
        jobs += 1
        job = cluster.start(out, "-i", str(iters), SLURM_JOB_END_TIME=str(int(time.time()) - 5))
        text, _ = job.communicate(timeout=300)
        check(cluster.asked() == ["requeue 77"] * (job.returncode == 75), text)
    check(job.returncode == 0, text)
    check(factors(out) == uninterrupted(cluster, iters), "other factors")


def signals(folder):
    """Signals to the shell alone reach the run at any moment; a finished job is not requeued."""
    cluster, out, cuts = Cluster(folder), os.path.join(folder, "run"), 0
    for number in range(100):
        job = cluster.start(out, "-i", "150", SLURM_TEST_LEFT="1-02:03:04")
        if number < 3:
            # Halt the run during its iterations, so that the signal arrives before the run ends.
            for line in job.stdout:
                if "its =" in line:
                    break
            child = int(open(cluster.pid, encoding="ascii").read())
            if job.poll() is None:
                try:
                    os.kill(child, signal.SIGSTOP)
                    job.send_signal(signal.SIGTERM)
                    time.sleep(0.05)
                    os.kill(child, signal.SIGCONT)
                except ProcessLookupError:
                    pass
        elif number == 3:
            job.send_signal(signal.SIGTERM)
        text, _ = job.communicate(timeout=300)
        if job.returncode == 0:
            break
        cuts += 1
        # A signal that arrives before the shell has set its trap ends the shell; Slurm then ends
        # the job.
        check(job.returncode == 143 and cluster.asked() == ["requeue 77"] or number == 3, (job.returncode, text))
    check(job.returncode == 0 and cuts >= 1 and cluster.asked() == [], (job.returncode, cuts, text))
    check(factors(out) == uninterrupted(cluster, 150), "other factors")


def scratch_and_sweep(folder):
    """An array: each task has its line of options and its folder; the store is read from a copy
    local to the job."""
    cluster, out, scratch = Cluster(folder), os.path.join(folder, "runs"), os.path.join(folder, "scratch")
    os.mkdir(scratch)
    lines = ["--seed 3 -i 4", "--seed 5 -i 3"]
    sweep = os.path.join(folder, "sweep.txt")
    with open(sweep, "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")
    for task, line in enumerate(lines, 1):
        job = cluster.start(out, SLUICE_SWEEP=sweep, SLURM_ARRAY_TASK_ID=str(task), SLUICE_SCRATCH=scratch)
        text, _ = job.communicate(timeout=300)
        check(job.returncode == 0 and cluster.asked() == [] and os.listdir(scratch) == [], text)
        alone = os.path.join(folder, f"alone-{task}")
        sluice("cpd", cluster.store, "-o", alone, *OPTIONS, *line.split(), "-q")
        check(factors(os.path.join(out, str(task))) == factors(alone), "other factors")
    for environment in ({"SLURM_ARRAY_TASK_ID": "3"}, {}):
        job = cluster.start(out, SLUICE_SWEEP=sweep, **environment)
        text, _ = job.communicate(timeout=300)
        check(job.returncode == 2 and cluster.asked() == [], text)


def no_job(folder):
    """Outside of Slurm, the script says so, runs, and resumes when it is started again."""
    cluster, out = Cluster(folder), os.path.join(folder, "run")
    os.unlink(os.path.join(cluster.bin, "squeue"))
    job = cluster.start(out, "-i", "2", SLURM_JOB_ID="")
    text, _ = job.communicate(timeout=300)
    check(job.returncode == 0 and "not a Slurm job: running here" in text and "unbound" not in text, text)
    job = cluster.start(out + "2", "-i", "1000000", SLURM_JOB_ID="", SLUICE_SCRATCH=folder)
    while not os.path.exists(os.path.join(out + "2", "checkpoint-0.bin")) and job.poll() is None and not os.path.exists(cluster.pid):
        time.sleep(0.01)
    time.sleep(0.5)
    job.send_signal(signal.SIGTERM)
    text, _ = job.communicate(timeout=300)
    check(job.returncode == 143 and "the same command line resumes" in text and cluster.asked() == [], text)


def errors(folder):
    """Permanent errors are not requeued."""
    cluster = Cluster(folder)
    out = os.path.join(folder, "run")
    for options, environment in ((["--memory", "1MiB"], {"SLURM_MEM_PER_NODE": "900"}), ([], {"SLURM_MEM_PER_NODE": "3"})):
        job = cluster.start(out, *options, "-i", "1", **environment)
        text, _ = job.communicate(timeout=300)
        check(job.returncode == 4 and cluster.asked() == [], text)
    check("2.0 MiB" in text, text)
    job = cluster.start(out, "-i", "1", SLURM_MEM_PER_NODE="1000", SLURM_CPUS_PER_TASK="7")
    text, _ = job.communicate(timeout=300)
    check(job.returncode == 0 and "budget 900 MiB" in text, text)


run([
    ("jobs that end at their time limit", time_limits),
    ("jobs that receive a signal", signals),
    ("an array, with scratch drives", scratch_and_sweep),
    ("no Slurm job", no_job),
    ("errors are not requeued", errors),
])
