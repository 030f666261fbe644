"""The workbench: a mechanism in the browser, whose parts can be dragged.  ``cardan.view(mechanism)`` opens it."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _View(ModuleType):
    """This package can be called, as ``cardan.view(…)``: a function of that name would hide the package."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        from cardan.view.server import view

        return view(*args, **options)


sys.modules[__name__].__class__ = _View
