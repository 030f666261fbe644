"""Write the tree of a file again, with names, colours and unit, and other placements of its parts."""

from __future__ import annotations

from typing import Any

from cardan.cad.kernel.common import MM, Failure, collection
from cardan.cad.kernel.document import (
    Document,
    components_of,
    definition_of,
    entry_of,
    name_of,
    new_document,
    open_step,
)

UNITS = {  # of FileUnits, and of the writer
    "micrometre": "UM",
    "millimetre": "MM",
    "centimetre": "CM",
    "metre": "M",
    "kilometre": "KM",
    "inch": "INCH",
    "foot": "FT",
    "mile": "MI",
    "mil": "MIL",
    "microinch": "UIN",
}


def write(path: str, poses: list[list[float]], out: str) -> None:
    """Write a file again; poses: position [m] and quaternion in world of every part, in the order of its tree.

    Assemblies keep their placements in their parents; an assembly that is used twice becomes two.  A part that is in no
    assembly gets into one, since only instances have placements.
    """
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.Interface import Interface_Static
    from OCP.STEPCAFControl import STEPCAFControl_Writer

    _, shapes, _ = new = new_document()
    copy = _Copy(open_step(path), new, poses)
    copy.roots()
    shapes.UpdateAssemblies()
    writer = STEPCAFControl_Writer()
    Interface_Static.SetCVal_s("write.step.unit", UNITS.get(copy.old.unit.lower(), "MM"))
    Interface_Static.SetIVal_s("write.stepcaf.subshapes.name", 1)
    writer.SetNameMode(True)
    writer.SetColorMode(True)
    if not writer.Transfer(new[0]) or writer.Write(out) != IFSelect_RetDone:
        raise Failure("its parts cannot be written")


class _Copy:
    """Copies labels of one document to another; definitions of parts once, assemblies for every instance."""

    def __init__(self, old: Document, new: tuple[Any, Any, Any], poses: list[list[float]]) -> None:
        self.old = old
        _, self.shapes, self.colors = new
        self._poses, self._next = poses, 0
        self._known: dict[str, Any] = {}

    def roots(self) -> None:
        from OCP.gp import gp_Trsf

        alone = []
        for label in self.old.roots:
            definition = definition_of(self.old.shapes, label)
            if components_of(self.old.shapes, definition) is None:
                alone.append((self._part(definition), self._pose(), label))
            else:
                self._assembly(definition, gp_Trsf())
        if alone:
            root = self._empty("assembly")
            for part, pose, label in alone:
                self._named(self.shapes.AddComponent(root, part, _location(pose)), label)
        if self._next != len(self._poses):
            raise Failure(f"it has {self._next} parts now, and had {len(self._poses)} when it was read")

    def _assembly(self, definition: Any, world: Any) -> Any:
        """A copy of an assembly whose placement in world is ``world``."""
        made = self._empty(name_of(definition))
        self._paint(definition, made)
        for label in components_of(self.old.shapes, definition) or []:
            own = definition_of(self.old.shapes, label)
            place = self.old.shapes.GetShape_s(label).Location().Transformation()
            if components_of(self.old.shapes, own) is None:
                part = self._part(own)
                place = world.Inverted().Multiplied(self._pose())
            else:
                part = self._assembly(own, world.Multiplied(place))
            self._named(self.shapes.AddComponent(made, part, _location(place)), label)
        return made

    def _empty(self, name: str) -> Any:
        from OCP.BRep import BRep_Builder
        from OCP.TopoDS import TopoDS_Compound

        compound = TopoDS_Compound()
        BRep_Builder().MakeCompound(compound)
        made = self.shapes.AddShape(compound, True)
        _set_name(made, name)
        return made

    def _part(self, definition: Any) -> Any:
        """The copy of the definition of a part, with the colours of its faces."""
        key = entry_of(definition)
        if key not in self._known:
            made = self._known[key] = self.shapes.AddShape(self.old.shapes.GetShape_s(definition), False)
            self._named(made, definition)
            inner = collection("TDF.TDF_LabelSequence")
            self.old.shapes.GetSubShapes_s(definition, inner)
            for k in range(inner.Length()):
                own = inner.Value(k + 1)
                self._named(self.shapes.AddSubShape(made, self.old.shapes.GetShape_s(own)), own)
        return self._known[key]

    def _named(self, made: Any, label: Any) -> None:
        """Give a copy the name and the colours of a label."""
        _set_name(made, name_of(label))
        self._paint(label, made)

    def _paint(self, label: Any, made: Any) -> None:
        from OCP.Quantity import Quantity_Color
        from OCP.XCAFDoc import XCAFDoc_ColorType as Kind

        color = Quantity_Color()
        for kind in (Kind.XCAFDoc_ColorGen, Kind.XCAFDoc_ColorSurf, Kind.XCAFDoc_ColorCurv):
            if not made.IsNull() and self.old.colors.GetColor_s(label, kind, color):
                self.colors.SetColor(made, color, kind)

    def _pose(self) -> Any:
        """The placement of the next part in world."""
        from OCP.gp import gp_Quaternion, gp_Trsf, gp_Vec

        self._next += 1
        if self._next > len(self._poses):
            raise Failure(f"it has more parts now than the {len(self._poses)} when it was read")
        x, y, z, w, i, j, k = self._poses[self._next - 1]
        found = gp_Trsf()
        found.SetRotation(gp_Quaternion(i, j, k, w))
        found.SetTranslationPart(gp_Vec(x / MM, y / MM, z / MM))
        return found


def _location(place: Any) -> Any:
    from OCP.TopLoc import TopLoc_Location

    return TopLoc_Location(place)


def _set_name(label: Any, name: str) -> None:
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDataStd import TDataStd_Name

    if name and not label.IsNull():
        TDataStd_Name.Set_s(label, TCollection_ExtendedString(name, True))
