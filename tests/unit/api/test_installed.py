#!/usr/bin/env python3
"""libsluice as installed: what pkg-config tells is enough to compile the examples, as C and as C++, and to run them."""

import glob
import os
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "python"))
from tap import SOURCE, Skip, check, run  # noqa: E402

BUILD = os.environ["SLC_BUILD"]
EXAMPLES = sorted(glob.glob(os.path.join(SOURCE, "examples", "*.c")))
TINY = "1 1 1 2\n2 2 2 3\n3 1 2 1\n"


def call(*command, **kw):
    done = subprocess.run(command, capture_output=True, text=True, **kw)
    check(done.returncode == 0, f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def install(folder):
    """Installs into a tree of its own; returns the environment to use it by."""
    for tool in ("meson", "pkg-config"):
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}")
    call("meson", "install", "-C", BUILD, "--no-rebuild", "--tags", "runtime,devel",
         env=os.environ | {"DESTDIR": folder})
    found = glob.glob(os.path.join(folder, "**", "sluice.pc"), recursive=True)
    check(len(found) == 1, f"sluice.pc: {found}")
    return os.environ | {"PKG_CONFIG_PATH": os.path.dirname(found[0]), "PKG_CONFIG_SYSROOT_DIR": folder,
                         "LD_LIBRARY_PATH": os.path.dirname(os.path.dirname(found[0]))}


def compile_all(folder, compiler, *options):
    """Every example, by what pkg-config says and nothing else; returns the programs."""
    if not compiler:
        raise Skip("there is no such compiler")
    env = install(folder)
    flags = shlex.split(call("pkg-config", "--cflags", "--libs", "sluice", env=env))
    check(any(flag.startswith(f"-I{folder}") for flag in flags), f"{flags} is not of the tree")
    for example in EXAMPLES:
        call(*shlex.split(compiler), *options, "-Wall", "-Werror", example, "-x", "none", *flags, "-o",
             os.path.join(folder, os.path.splitext(os.path.basename(example))[0]), env=env)
    return env


def use(folder, env):
    """From text to factors, and a sum over a mode, by the programs."""
    with open(os.path.join(folder, "tiny.tns"), "w") as file:
        file.write(TINY)
    said = call("./factorize", "tiny.tns", "2", "factors", cwd=folder, env=env)
    check("fit " in said and os.path.exists(os.path.join(folder, "factors", "mode-3.npy")), said)
    said = call("./sum_mode", "tiny.tns.slc", "3", "sums.slc", cwd=folder, env=env)
    check(said == "3 sums of 3 nonzeros\n", said)


def as_c(folder):
    use(folder, compile_all(folder, os.environ.get("CC", "cc"), "-std=c11", "-Wextra", "-D_POSIX_C_SOURCE=200809L"))


def as_cpp(folder):
    use(folder, compile_all(folder, os.environ.get("CXX", "c++"), "-x", "c++", "-std=c++20"))


run([
    ("the examples compile and run as C", as_c),
    ("the examples compile and run as C++", as_cpp),
])
