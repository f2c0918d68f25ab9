"""
Builds the wheel of sluice: the package, and libsluice where it is known at the time.

That is the file in SLUICE_LIBRARY, or else what was built in ../build. Without either the wheel is of Python alone,
and the library is looked for when it is imported. A backend of pip's (PEP 517), without anything but Python itself.
"""

import base64
import hashlib
import os
import sysconfig
import zipfile

NAME, VERSION = "sluice", "0.1.0"
HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARY = "libsluice.so.0"
METADATA = f"""Metadata-Version: 2.1
Name: {NAME}
Version: {VERSION}
Summary: Sparse tensors larger than memory, factorized while they stream from disk
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy>=1.20
"""


def library():
    """The library to put into the wheel, or None."""
    for path in (os.environ.get("SLUICE_LIBRARY"), os.path.join(HERE, "..", "build", "api", LIBRARY)):
        if path and os.path.exists(path):
            return path
    return None


def contents():
    """Pairs of a name in the wheel and its bytes."""
    folder = os.path.join(HERE, NAME)
    for name in sorted(os.listdir(folder)):
        if name.endswith(".py") or name == "py.typed":
            with open(os.path.join(folder, name), "rb") as file:
                yield f"{NAME}/{name}", file.read()
    found = library()
    if found:
        with open(found, "rb") as file:
            yield f"{NAME}/{LIBRARY}", file.read()


def digest(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel; returns its name."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"py3-none-{platform}" if library() else "py3-none-any"
    name = f"{NAME}-{VERSION}-{tag}.whl"
    info = f"{NAME}-{VERSION}.dist-info"
    pure = "false" if library() else "true"
    wheel = f"Wheel-Version: 1.0\nGenerator: sluice {VERSION}\nRoot-Is-Purelib: {pure}\nTag: {tag}\n"
    files = [*contents(), (f"{info}/METADATA", METADATA.encode()), (f"{info}/WHEEL", wheel.encode())]
    record = "".join(f"{path},{digest(data)},{len(data)}\n" for path, data in files) + f"{info}/RECORD,,\n"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in [*files, (f"{info}/RECORD", record.encode())]:
            archive.writestr(path, data)
    return name
