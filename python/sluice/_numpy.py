"""NumPy, which is imported when it is first used: it needs 11 MiB, and a conversion of a table does not need it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:
    class _NumPy:
        def __getattr__(self, name: str) -> Any:
            found = getattr(importlib.import_module("numpy"), name)
            setattr(self, name, found)
            return found

    np = _NumPy()
