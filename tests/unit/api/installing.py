"""Installs the build into a test's own folder."""

import contextlib
import fcntl
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "..", name) for name in ("lib", "oracle")]
from tap import call  # noqa: E402

BUILD = os.environ["SLC_BUILD"]


@contextlib.contextmanager
def in_turn():
    """A build folder has a single log of installed files, used to uninstall them: tests must run
    one at a time."""
    with open(os.path.join(BUILD, "meson-logs", "test-installs.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(folder, *tags):
    """Installs the files with one of the tags, or all files, below the folder. Needs: in_turn."""
    call("meson", "install", "-C", BUILD, "--no-rebuild", *(("--tags", ",".join(tags)) if tags else ()),
         env=os.environ | {"DESTDIR": folder})
