"""Building sluice and its tests for a device, and packing them for a machine where nothing can be built."""

import lzma
import os
import re
import shutil
import subprocess
import tarfile

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
# The C library belongs to the system that programs run on: packed, it would not fit the loader there.
SYSTEM = re.compile(r"^(ld-linux|libc\.|libm\.|libpthread|libdl|librt)")
ARCHIVE = ".tar.xz"
# Programs find the packed libraries next to themselves, and so do libraries that need others. This is a DT_RPATH: a
# DT_RUNPATH would hold for the program alone.
OWN_FOLDER = "-Wl,--disable-new-dtags,-rpath,$ORIGIN"
# All programs have the same kernels: a dictionary that holds several of them finds the copies.
XZ_PRESET = 9


class CannotBuild(Exception):
    """Why, and what to do."""


class NotPacked(Exception):
    """Why a folder or an archive cannot be run."""


def run(*command):
    if subprocess.run(command, check=False).returncode != 0:
        raise CannotBuild(f"{' '.join(command[:2])} failed: see above; README.md names what a build needs")


def build(folder, archs):
    """The command and the tests for a device. Returns their paths."""
    missing = [name for name in ("meson", "ninja") if not shutil.which(name)]
    if missing:
        raise CannotBuild(f"{' and '.join(missing)} not found: build elsewhere with --pack, and run here with --packed")
    settings = ["--buildtype=release", "-Dcuda=enabled", "-Ddevice_tests=true", "-Dgpu_archs=" + archs,
                "-Dc_link_args=" + OWN_FOLDER, "-Dcpp_link_args=" + OWN_FOLDER]
    if os.path.exists(os.path.join(folder, "build.ninja")):
        run("meson", "configure", folder, *settings)
    else:
        run("meson", "setup", folder, SOURCE, *settings)
    targets = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    programs = re.findall(r"^(tests/gpu/device/(?:device_\w+|planted_race)): ", targets, re.M)
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
    """What is built: the commit, and whether there are other changes."""
    done = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True,
                          check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def pack(programs, folder):
    """Programs without their symbols, the libraries that they load, and this script: all that a run needs but Python."""
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
    """Packs the folder; inside, it has the archive's name."""
    with tarfile.open(path, "w:xz", preset=XZ_PRESET) as file:
        file.add(folder, os.path.basename(path)[:-len(ARCHIVE)])


def safe_members(file):
    """Files and folders below one folder, for a Python whose tarfile does not check them."""
    for member in file.getmembers():
        if not (member.isfile() or member.isdir()) or member.name.startswith("/") or ".." in member.name.split("/"):
            raise tarfile.TarError(f"{file.name}: {member.name} is not a file or folder of this archive's own")
        yield member


def unpack(path, folder):
    """Unpacks an archive into a new folder. Returns the folder that it holds."""
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
        raise NotPacked(f"{path}: it has to hold one folder, and holds {len(names)} names")
    return os.path.join(folder, names[0])


def packed_programs(path, work):
    """The folder of what was packed into a folder or an archive, which is unpacked in `work`."""
    folder = path
    if path.endswith(ARCHIVE):
        folder = os.path.join(work, "packed")
        os.mkdir(folder)
        folder = unpack(path, folder)
    program = os.path.join(folder, "sluice")
    if not os.path.isfile(program) or not os.access(program, os.X_OK):
        raise NotPacked(f"{path}: there is no program sluice")
    return folder
