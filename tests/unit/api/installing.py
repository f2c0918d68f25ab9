"""Installing the build into a folder of a test's own."""

import contextlib
import fcntl
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", "..", name) for name in ("lib", "oracle")]
from tap import call  # noqa: E402

BUILD = os.environ["SLC_BUILD"]


@contextlib.contextmanager
def in_turn():
    """A build folder has one log of what was installed, by which it is uninstalled: tests take turns."""
    with open(os.path.join(BUILD, "meson-logs", "test-installs.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(folder, *tags):
    """What has one of the tags, or everything, below the folder. Needs: in_turn."""
    call("meson", "install", "-C", BUILD, "--no-rebuild", *(("--tags", ",".join(tags)) if tags else ()),
         env=os.environ | {"DESTDIR": folder})
