"""The method ``save`` of results that have no pictures."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from cardan.calls import explains


@explains()
class Saved:
    """A result that can be saved."""

    __slots__ = ()

    def save(self, path: str | Path, *, mechanism: Any = None) -> None:
        """Write the result to a file ``.npz`` or ``.json``, for :func:`cardan.load_result`; an old one is replaced.

        The model is in the file too.  mechanism: that of the result, if it was pickled.
        """
        # Imported by name when it is needed: results must not import the layer above.
        import_module("cardan.files.results").save(self, path, mechanism)
