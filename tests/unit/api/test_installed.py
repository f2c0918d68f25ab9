#!/usr/bin/env python3
"""The installed libsluice: the output of pkg-config suffices to compile the examples, as C and as
C++, and to run them. Everything installed is uninstalled."""

import glob
import os
import shlex
import shutil
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "..", name) for name in ("lib", "oracle")]
from installing import BUILD, in_turn, install  # noqa: E402
from tap import SOURCE, Skip, call, check, run  # noqa: E402

EXAMPLES = sorted(glob.glob(os.path.join(SOURCE, "examples", "*.c")))
TINY = "1 1 1 2\n2 2 2 3\n3 1 2 1\n"


def need(*tools):
    for tool in tools:
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}")


def install_library(folder):
    """Installs into its own folder; returns the environment for using it."""
    need("meson", "pkg-config")
    with in_turn():
        install(folder, "runtime", "devel")
    found = glob.glob(os.path.join(folder, "**", "sluice.pc"), recursive=True)
    check(len(found) == 1, f"sluice.pc: {found}")
    return os.environ | {"PKG_CONFIG_PATH": os.path.dirname(found[0]), "PKG_CONFIG_SYSROOT_DIR": folder,
                         "LD_LIBRARY_PATH": os.path.dirname(os.path.dirname(found[0]))}


def compile_all(folder, compiler, *options):
    """Compiles every example with pkg-config's flags only; returns the programs."""
    if not compiler:
        raise Skip("there is no such compiler")
    env = install_library(folder)
    flags = shlex.split(call("pkg-config", "--cflags", "--libs", "sluice", env=env))
    check(any(flag.startswith(f"-I{folder}") for flag in flags), f"{flags} is not of the tree")
    for example in EXAMPLES:
        call(*shlex.split(compiler), *options, "-Wall", "-Werror", example, "-x", "none", *flags, "-o",
             os.path.join(folder, os.path.splitext(os.path.basename(example))[0]), env=env)
    return env


def use(folder, env):
    """The programs factorize a text, read the names of a CSV, and sum over a mode."""
    with open(os.path.join(folder, "tiny.tns"), "w") as file:
        file.write(TINY)
    said = call("./factorize", "tiny.tns", "2", "factors", cwd=folder, env=env)
    check("fit " in said and os.path.exists(os.path.join(folder, "factors", "mode-3.npy")), said)
    with open(os.path.join(folder, "drinks.csv"), "w") as file:
        file.write("who,what\nann,tea\nbob,milk\n")
    said = call("./read_table", "drinks.csv", "who,what", "drinks.slc", cwd=folder, env=env)
    check(said == "who (2): ann, bob\nwhat (2): tea, milk\n", said)
    said = call("./sum_mode", "tiny.tns.slc", "3", "sums.slc", cwd=folder, env=env)
    check(said == "3 sums of 3 nonzeros\n", said)


def as_c(folder):
    use(folder, compile_all(folder, os.environ.get("CC", "cc"), "-std=c11", "-Wextra", "-D_POSIX_C_SOURCE=200809L"))


def as_cpp(folder):
    use(folder, compile_all(folder, os.environ.get("CXX", "c++"), "-x", "c++", "-std=c++20"))


def uninstalled(folder):
    """`ninja uninstall` removes exactly the installed files and folders."""
    need("meson", "ninja")
    tree = os.path.join(folder, "tree")
    with in_turn():
        install(tree)
        files = {os.path.basename(path) for path in glob.glob(os.path.join(tree, "**"), recursive=True)}
        wanted = {"sluice", "libsluice.so", "libsluice.a", "sluice.h", "sluice.pc", "sluice.bash", "_sluice", "sluice.fish"}
        if shutil.which("scdoc"):
            wanted |= {"sluice-cpd.1", "sluice_cpd.3", "sluice-store.5"}
        check(wanted <= files, f"not installed: {sorted(wanted - files)}")
        other = os.path.join(os.path.dirname(glob.glob(os.path.join(tree, "**", "sluice.pc"), recursive=True)[0]), "other.pc")
        with open(other, "w"):
            pass
        said = call("ninja", "-C", BUILD, "uninstall")
    left = [path for path in glob.glob(os.path.join(tree, "**"), recursive=True) if not os.path.isdir(path)]
    check(left == [other], f"left: {left}\n{said}")
    kept = {os.path.relpath(path, tree) for path, folders, _ in os.walk(tree) if not folders}
    check(kept == {os.path.relpath(os.path.dirname(other), tree)}, f"folders left: {kept}")


run([
    ("the examples compile and run as C", as_c),
    ("the examples compile and run as C++", as_cpp),
    ("all that is installed is uninstalled", uninstalled),
])
