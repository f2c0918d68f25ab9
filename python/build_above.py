"""PEP 517 build backend for `pip install ./python`: runs meson-python in the project root."""

import os

from mesonpy import build_sdist, build_wheel, get_requires_for_build_sdist, get_requires_for_build_wheel  # noqa: F401

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
