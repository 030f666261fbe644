"""Arrays of the output, units, and exploring shapes."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

MM = 1e-3  # OCP converts every file to millimetres


class Failure(Exception):
    """The file cannot be read; the text says why."""


class Arrays:
    """Arrays of the output; :meth:`put` returns the number of one.

    They are stored one after the other, all floats in one array and all integers in another: a file of thousands of
    small arrays takes longer to write and to read than a STEP file.
    """

    def __init__(self) -> None:
        self.shapes: list[list[Any]] = []  # of every array: "f" or "i", and its shape
        self._values: dict[str, list[Any]] = {"f": [np.zeros(0)], "i": [np.zeros(0, dtype=np.int64)]}

    def put(self, values: Any, kind: Any = float) -> int:
        array = np.array(values, dtype=kind)
        self.shapes.append([array.dtype.kind, *array.shape])
        self._values[array.dtype.kind].append(array.reshape(-1))
        return len(self.shapes) - 1

    def joined(self, kind: str) -> Any:
        """All values of a kind, "f" or "i", shape (values,)."""
        return np.concatenate(self._values[kind])


COLLECTIONS = {  # their names from OCP 8 on
    "TColStd.TColStd_SequenceOfAsciiString": "Sequence_TCollection_AsciiString",
    "TDF.TDF_LabelSequence": "Sequence_TDF_Label",
    "TopTools.TopTools_IndexedMapOfShape": "IndexedMap_TopoDS_Shape_TopTools_ShapeMapHasher",
}


def collection(name: str) -> Any:
    """A new collection of OCP, by the module and the name that it has up to version 7."""
    module, kind = name.split(".")
    made = getattr(import_module(f"OCP.{module}"), kind, None)
    return made() if made is not None else getattr(import_module("OCP.collections"), COLLECTIONS[name])()


def explored(shape: Any, kind: str, once: bool = False) -> Any:
    """Faces, edges or vertices of a shape; once: each only once, without its orientation."""
    from OCP import TopAbs, TopoDS
    from OCP.TopExp import TopExp, TopExp_Explorer

    wanted = getattr(TopAbs.TopAbs_ShapeEnum, f"TopAbs_{kind}")
    cast = getattr(TopoDS.TopoDS, f"{kind.title()}_s", None) or getattr(TopoDS.TopoDS, f"{kind.title()}")
    if once:
        known = collection("TopTools.TopTools_IndexedMapOfShape")
        TopExp.MapShapes_s(shape, wanted, known)
        for k in range(known.Extent()):
            yield cast(known.FindKey(k + 1))
        return
    explorer = TopExp_Explorer(shape, wanted)
    while explorer.More():
        yield cast(explorer.Current())
        explorer.Next()


def xyz(p: Any) -> list[float]:
    """A point [m]."""
    return [p.X() * MM, p.Y() * MM, p.Z() * MM]


def axes(position: Any) -> list[list[float]]:
    """Origin [m], z and x of a frame."""
    o, z, x = position.Location(), position.Direction(), position.XDirection()
    return [xyz(o), [z.X(), z.Y(), z.Z()], [x.X(), x.Y(), x.Z()]]


def knots(count: int, value: Any, times: Any) -> list[float]:
    """Knots with repetitions, from OCP's functions of their values and multiplicities."""
    return [value(k + 1) for k in range(count) for _ in range(times(k + 1))]
