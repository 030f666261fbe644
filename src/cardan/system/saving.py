"""The method ``save`` of results that have no pictures."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from cardan import contents
from cardan.calls import explains
from cardan.errors import ModelError
from cardan.system import atomic

SUFFIXES: Final = (".npz", ".json")  # of saved results


def to_bytes(suffix: str, result: Any, mechanism: Any) -> bytes:
    """The bytes of a file with a result, by the ending of its name.  mechanism: that of the result, or None."""
    # Imported by name when it is needed: results must not import the layer above.
    return import_module("cardan.files.results").to_bytes(suffix, result, mechanism)


@explains()
class Saved:
    """A result that can be saved."""

    __slots__ = ()

    def save(self, path: str | Path, *, mechanism: Any = None) -> None:
        """Write the result to a file ``.npz`` or ``.json``, for :func:`cardan.load_result`; an old one is replaced.

        The model is in the file too.  mechanism: that of the result, if it was pickled.
        """
        target = contents.file_path(path)
        suffix = target.suffix.lower()
        if suffix not in SUFFIXES:
            raise ModelError(f"the file is {str(path)!r}; its name must end in {', '.join(SUFFIXES)}")
        atomic.write(target, to_bytes(suffix, self, mechanism))
