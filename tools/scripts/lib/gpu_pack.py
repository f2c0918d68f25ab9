"""Builds sluice and its device tests, and packs them for a machine without compilers."""

import lzma
import os
import re
import shutil
import subprocess
import tarfile

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
# Libraries that are not packed, because the C library must match the loader of the system on which
# programs run.
SYSTEM = re.compile(r"^(ld-linux|libc\.|libm\.|libpthread|libdl|librt)")
ARCHIVE = ".tar.xz"
# With this option, programs and libraries find the packed libraries in their own folder. It sets
# DT_RPATH, because DT_RUNPATH would apply only to the program.
OWN_FOLDER = "-Wl,--disable-new-dtags,-rpath,$ORIGIN"
# All programs contain the same kernels. The dictionary of this preset is larger than several
# programs and so finds the copies.
XZ_PRESET = 9


class CannotBuild(Exception):
    """sluice cannot be built. The message has the reason and a remedy."""


class NotPacked(Exception):
    """A folder or an archive cannot be run. The message has the reason."""


def run(*command):
    if subprocess.run(command, check=False).returncode != 0:
        raise CannotBuild(f"{' '.join(command[:2])} failed: see above; README.md lists the build requirements")


def build(folder, archs):
    """Builds the command and the device tests. Returns their paths."""
    missing = [name for name in ("meson", "ninja") if not shutil.which(name)]
    if missing:
        raise CannotBuild(f"{' and '.join(missing)} not found: build on another machine with --pack, and run here with --packed")
    settings = ["--buildtype=release", "-Dcuda=enabled", "-Ddevice_tests=true", "-Dgpu_archs=" + archs,
                "-Dc_link_args=" + OWN_FOLDER, "-Dcpp_link_args=" + OWN_FOLDER]
    # Unlike `meson configure`, this writes the build file, from which the targets are read below.
    again = ["--reconfigure"] if os.path.exists(os.path.join(folder, "build.ninja")) else []
    run("meson", "setup", *again, folder, SOURCE, *settings)
    targets = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    programs = re.findall(r"^(tests/gpu/device/(?:device_\w+|planted_race)): ", targets, re.M)
    if not programs:
        raise CannotBuild(f"{folder}/build.ninja has no device tests")
    run("ninja", "-C", folder, "tools/sluice", *programs)
    return [os.path.join(folder, name) for name in ["tools/sluice", *programs]]


def libraries(program):
    found = []
    for line in subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout.splitlines():
        if "not found" in line:
            raise CannotBuild(f"{program}: {line.strip()}")
        path = re.search(r"=> (/\S+)", line)
        if path and not SYSTEM.match(os.path.basename(path.group(1))):
            found.append(path.group(1))
    return found


def commit():
    """Returns the commit that is built, marked "dirty" if there are uncommitted changes."""
    done = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def pack(programs, folder):
    """Copies stripped programs, their libraries and tools/gpu-acceptance to a folder: all that a
    run needs except Python."""
    os.makedirs(os.path.join(folder, "tools", "scripts", "lib"), exist_ok=True)
    for program in programs:
        target = os.path.join(folder, os.path.basename(program))
        shutil.copy(program, target)
        if shutil.which("strip"):
            subprocess.run(["strip", target], check=True)
        for library in libraries(program):
            shutil.copy(library, folder)
    with open(os.path.join(folder, "commit"), "w", encoding="utf-8") as file:
        file.write(commit() + "\n")
    shutil.copy(os.path.join(SOURCE, "tools", "gpu-acceptance"), os.path.join(folder, "tools"))
    for name in os.listdir(os.path.dirname(__file__)):
        if name.startswith("gpu_") and name.endswith(".py"):
            shutil.copy(os.path.join(os.path.dirname(__file__), name), os.path.join(folder, "tools", "scripts", "lib"))


def archive(folder, path):
    """Archives a folder. The folder in the archive has the name of the archive."""
    with tarfile.open(path, "w:xz", preset=XZ_PRESET) as file:
        file.add(folder, os.path.basename(path)[:-len(ARCHIVE)])


def safe_members(file):
    """Yields the members of an archive. Fails if a member is not a file or folder inside the folder
    of the archive, because older versions of tarfile do not check this."""
    for member in file.getmembers():
        if not (member.isfile() or member.isdir()) or member.name.startswith("/") or ".." in member.name.split("/"):
            raise tarfile.TarError(f"{file.name}: {member.name} is not a file or folder inside this archive")
        yield member


def unpack(path, folder):
    """Unpacks an archive into a new folder. Returns the folder that was in the archive."""
    try:
        with tarfile.open(path) as file:
            if hasattr(tarfile, "data_filter"):
                file.extractall(folder, filter="data")
            else:
                file.extractall(folder, members=safe_members(file))
    except (tarfile.TarError, lzma.LZMAError, EOFError, OSError) as reason:
        raise NotPacked(f"{path}: {reason or type(reason).__name__}") from None
    names = os.listdir(folder)
    if len(names) != 1:
        raise NotPacked(f"{path}: must contain one folder, but contains {len(names)} names")
    return os.path.join(folder, names[0])


def packed_programs(path, work):
    """Returns the folder of packed programs. Unpacks an archive in `work` first."""
    folder = path
    if path.endswith(ARCHIVE):
        folder = os.path.join(work, "packed")
        os.mkdir(folder)
        folder = unpack(path, folder)
    program = os.path.join(folder, "sluice")
    if not os.path.isfile(program) or not os.access(program, os.X_OK):
        raise NotPacked(f"{path}: no program sluice found")
    return folder
