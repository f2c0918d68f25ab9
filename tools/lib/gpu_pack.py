"""Building sluice and its tests for a device, and packing them for a machine where nothing can be built."""

import os
import re
import shutil
import subprocess
import tarfile

SOURCE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
# The C library belongs to the system that programs run on: packed, it would not fit the loader there.
SYSTEM = re.compile(r"^(ld-linux|libc\.|libm\.|libpthread|libdl|librt)")
ARCHIVE = ".tar.xz"


class CannotBuild(Exception):
    """Why, and what to do."""


def run(*command):
    if subprocess.run(command, check=False).returncode != 0:
        raise CannotBuild(f"{' '.join(command[:2])} failed: see above; README.md names what a build needs")


def build(folder, archs):
    """The command and the tests for a device. Returns their paths."""
    missing = [name for name in ("meson", "ninja") if not shutil.which(name)]
    if missing:
        raise CannotBuild(f"{' and '.join(missing)} not found: build elsewhere with --pack, and run here with --packed")
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run("meson", "setup", folder, SOURCE, "--buildtype=release", "-Dcuda=enabled", "-Ddevice_tests=true",
            "-Dgpu_archs=" + archs)
    targets = subprocess.run(["ninja", "-C", folder, "-t", "targets", "all"], capture_output=True, text=True, check=True).stdout
    programs = re.findall(r"^(tests/device/(?:device_\w+|planted_race)): ", targets, re.M)
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


def pack(programs, folder):
    """Programs without their symbols, the libraries that they load, and this script: all that a run takes beside Python."""
    os.makedirs(os.path.join(folder, "tools", "lib"), exist_ok=True)
    for program in programs:
        target = os.path.join(folder, os.path.basename(program))
        shutil.copy(program, target)
        if shutil.which("strip"):
            subprocess.run(["strip", target], check=True)
        for library in libraries(program):
            shutil.copy(library, folder)
    shutil.copy(os.path.join(SOURCE, "tools", "gpu-acceptance"), os.path.join(folder, "tools"))
    for name in os.listdir(os.path.dirname(__file__)):
        if name.startswith("gpu_") and name.endswith(".py"):
            shutil.copy(os.path.join(os.path.dirname(__file__), name), os.path.join(folder, "tools", "lib"))


def archive(folder, path):
    """A fifth of the folder's size; its one folder is named as the archive is."""
    with tarfile.open(path, "w:xz") as file:
        file.add(folder, os.path.basename(path)[:-len(ARCHIVE)])


def unpack(path, folder):
    """Returns the folder that the archive holds."""
    with tarfile.open(path) as file:
        name = file.getnames()[0]
        file.extractall(folder)
    return os.path.join(folder, name)
