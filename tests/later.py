"""Modules that are slow to import, loaded at the first use of one of their names: collection needs none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Later:
    """A proxy of a module, ``sympy = Later("sympy")``."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # collection asks every value of a module whether it is a test
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
