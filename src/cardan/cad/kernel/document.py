"""A STEP file as a document of names, colours and placements; its tree, and its description."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from cardan.cad.kernel.common import MM, Arrays, Failure, collection, explored, xyz
from cardan.cad.kernel.edges import edge_of, point_of
from cardan.cad.kernel.faces import faces_of
from cardan.cad.kernel.measures import mass_of, mesh_of

RIGID = 1e-9  # a placement whose scale differs from 1 by more is not rigid
ANGLE = 0.35  # [rad]: largest angle between the normals of neighbouring triangles of a curved face
MOST = 20_000  # instances: assemblies of assemblies of … can mean more parts than any memory holds
DEEPEST = 200  # levels of assemblies
SYNTAX, LEFT_OUT = "Incorrect syntax", "is not translated"  # parts of OCP's messages
SHAPES = (  # entities of OCP that shapes and placements are made of; wrong ones of other kinds are harmless
    "StepGeom_",
    "StepShape_",
    "StepRepr_ItemDefinedTransformation",
    "StepRepr_MappedItem",
    "StepRepr_NextAssemblyUsageOccurrence",
    "StepRepr_RepresentationRelationship",
    "StepRepr_ShapeRepresentationRelationship",
)
NAMELESS = ("", "NONE")  # what writers give to faces without a name


class Document(NamedTuple):
    """What a file contains: tools for shapes and colours, the labels of what is in no assembly, the length unit."""

    whole: Any  # keeps the others alive
    shapes: Any
    colors: Any
    roots: list[Any]
    unit: str


def open_step(path: str) -> Document:
    """Read a STEP file; Failure if it cannot be read."""
    from OCP.IFSelect import IFSelect_RetDone
    from OCP.Interface import Interface_Static
    from OCP.STEPCAFControl import STEPCAFControl_Reader

    whole, shapes, colors = new_document()
    reader = STEPCAFControl_Reader()
    for option in (reader.SetNameMode, reader.SetColorMode):
        option(True)
    Interface_Static.SetIVal_s("read.stepcaf.subshapes.name", 1)  # of faces, edges and vertices too
    if reader.ReadFile(path) != IFSelect_RetDone:
        raise Failure("it is not a STEP file, or it is broken")
    session = reader.Reader().WS()
    _check_entities(session)
    lengths, angles, solid = (collection("TColStd.TColStd_SequenceOfAsciiString") for _ in range(3))
    reader.Reader().FileUnits(lengths, angles, solid)
    if not reader.Transfer(whole):
        raise Failure("it has no part that can be transferred")
    _check_transfer(session)
    roots = collection("TDF.TDF_LabelSequence")
    shapes.GetFreeShapes(roots)
    unit = lengths.Value(1).ToCString() if lengths.Length() else ""
    return Document(whole, shapes, colors, [roots.Value(k + 1) for k in range(roots.Length())], unit)


def _check_entities(session: Any) -> None:
    """Failure if the syntax, or a record of a shape or placement, is wrong: OCP would leave the record out."""
    for entity, failures, _ in _checks(session.ModelCheckList(True)):
        kind = "" if entity is None else type(entity).__name__
        for text in failures:
            if SYNTAX in text or kind.startswith(SHAPES):
                place = f" in a record {kind.partition('_')[2]}" if kind else ""
                raise Failure(f"it is broken{place}: {text.removeprefix('Undefined Parsing: ')}")


def _check_transfer(session: Any) -> None:
    """Failure if a shape of the file was left out."""
    for entity, failures, warnings in _checks(session.TransferReader().LastCheckList()):
        for text in [*failures, *[one for one in warnings if LEFT_OUT in one]]:
            place = "" if entity is None else f" in a record {type(entity).__name__.partition('_')[2]}"
            raise Failure(f"a shape cannot be read{place}: {text}")


def _checks(found: Any) -> Iterator[tuple[Any, list[str], list[str]]]:
    """Entity, failures and warnings of every check of OCP."""
    found.Start()
    while found.More():
        one = found.Value()
        failures = [str(one.CFail(k + 1)) for k in range(one.NbFails())]
        yield one.Entity(), failures, [str(one.CWarning(k + 1)) for k in range(one.NbWarnings())]
        found.Next()


def new_document() -> tuple[Any, Any, Any]:
    """An empty document, its tool for shapes and that for colours."""
    from OCP.TCollection import TCollection_ExtendedString
    from OCP.TDocStd import TDocStd_Document
    from OCP.XCAFDoc import XCAFDoc_DocumentTool

    whole = TDocStd_Document(TCollection_ExtendedString("XmlOcaf"))
    main = whole.Main()
    return whole, XCAFDoc_DocumentTool.ShapeTool_s(main), XCAFDoc_DocumentTool.ColorTool_s(main)


def definition_of(shapes: Any, label: Any) -> Any:
    """The label that an instance refers to; the label itself where it is no instance."""
    from OCP.TDF import TDF_Label

    definition = TDF_Label()
    return definition if shapes.GetReferredShape_s(label, definition) else label


def components_of(shapes: Any, definition: Any) -> list[Any] | None:
    """The instances in an assembly; None if the label is a part."""
    if not shapes.IsAssembly_s(definition):
        return None
    found = collection("TDF.TDF_LabelSequence")
    shapes.GetComponents_s(definition, found, False)
    return [found.Value(k + 1) for k in range(found.Length())]


def entry_of(label: Any) -> str:
    """What identifies a label in its document."""
    from OCP.TCollection import TCollection_AsciiString
    from OCP.TDF import TDF_Tool

    entry = TCollection_AsciiString()
    TDF_Tool.Entry_s(label, entry)
    return str(entry.ToCString())


def describe(path: str, out: str, chord: float) -> None:
    """Write the description of a file: the array ``json``, and the values of arrays that it names by number."""
    arrays = Arrays()
    document = open_step(path)
    walk = _Walk(document.shapes, document.colors, chord, arrays)
    tree = [walk.node(label) for label in document.roots]
    if not walk.parts:
        raise Failure("it has no solid, shell or face")
    found = {"unit": document.unit, "parts": walk.parts, "tree": tree, "arrays": arrays.shapes}
    text = np.frombuffer(json.dumps(found).encode(), dtype=np.uint8)
    with open(out, "wb") as file:
        np.savez(file, json=text, f=arrays.joined("f"), i=arrays.joined("i"))


class _Walk:
    """Visits the labels of a document; every definition of a part is described once."""

    def __init__(self, shapes: Any, colors: Any, chord: float, arrays: Arrays) -> None:
        self.shapes, self.colors, self.chord, self.arrays = shapes, colors, chord, arrays
        self.parts: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}
        self._count = 0

    def node(self, label: Any, depth: int = 0) -> dict[str, Any]:
        """An instance: name, that of what it is an instance of, placement in its parent, children or number of part."""
        self._count += 1
        if self._count > MOST or depth > DEEPEST:
            raise Failure(f"its assemblies have more than {MOST:,} parts or {DEEPEST} levels")
        definition = definition_of(self.shapes, label)
        location = self.shapes.GetShape_s(label).Location() if definition is not label else None
        name = name_of(label) or name_of(definition)
        found: dict[str, Any] = {"name": name, "placement": _placement(location, name), "kind": name_of(definition)}
        color = self._color(label)
        children = components_of(self.shapes, definition)
        if children is not None:
            found["children"] = [self.node(child, depth + 1) for child in children]
        else:
            key = entry_of(definition)
            if key not in self._known:
                self._known[key] = len(self.parts)
                self.parts.append(self._part(definition))
            found["part"] = self._known[key]
        if color is not None:
            found["color"] = color
        return found

    def _color(self, label: Any, shape: Any = None) -> list[float] | None:
        from OCP.Quantity import Quantity_Color
        from OCP.XCAFDoc import XCAFDoc_ColorType

        color = Quantity_Color()
        for kind in (XCAFDoc_ColorType.XCAFDoc_ColorSurf, XCAFDoc_ColorType.XCAFDoc_ColorGen):
            of_label = shape is None and self.colors.GetColor_s(label, kind, color)
            if of_label or (shape is not None and self.colors.GetColor(shape, kind, color)):
                return [_srgb(c) for c in (color.Red(), color.Green(), color.Blue())]
        return None

    def _part(self, label: Any) -> dict[str, Any]:
        from OCP.BRepMesh import BRepMesh_IncrementalMesh

        shape = self.shapes.GetShape_s(label)
        named = self._names(label)  # before the colours: to ask for one of a face makes a label of the face
        found: dict[str, Any] = {"name": name_of(label), "color": self._color(label) or self._color(label, shape)}
        found |= mass_of(shape)
        faces = list(explored(shape, "FACE"))
        found["faces"] = faces_of(shape, faces, self.arrays)
        # after the faces: the conversion to NURBS loses the surface of a B-spline face that has triangles
        BRepMesh_IncrementalMesh(shape, self.chord / MM, False, ANGLE, False)
        found["mesh"] = mesh_of(faces, self.arrays)
        if found["color"] is None:
            own = [self._color(label, one) for one in explored(shape, "SOLID")]
            known = next((color for color in own if color is not None), None)
            found["color"] = known or self._main_color(label, faces, found)
        edges, vertices = (list(explored(shape, kind, True)) for kind in ("EDGE", "VERTEX"))
        found["edges"] = [edge_of(edge, self.arrays) for edge in edges]
        found["vertices"] = [point_of(vertex) for vertex in vertices]
        found["names"] = [[named(one) for one in some] for some in (faces, edges, vertices)]
        return found

    def _main_color(self, label: Any, faces: list[Any], found: dict[str, Any]) -> list[float] | None:
        """The colour of most of the area of a part whose faces are coloured; None if most of it has no colour."""
        areas: dict[Any, float] = {}
        for face, data in zip(faces, found["faces"], strict=True):
            color = self._color(label, face)
            key = None if color is None else tuple(color)
            areas[key] = areas.get(key, 0.0) + data["area"]
        most = max(areas, key=lambda key: areas[key], default=None)
        return None if most is None else list(most)

    def _names(self, label: Any) -> Callable[[Any], str]:
        """The name of a face, edge or vertex of a part; "" where it has none."""
        known, names = collection("TopTools.TopTools_IndexedMapOfShape"), [""]
        inner = collection("TDF.TDF_LabelSequence")
        self.shapes.GetSubShapes_s(label, inner)
        for k in range(inner.Length()):
            one = inner.Value(k + 1)
            name = name_of(one)
            if name not in NAMELESS and known.Add(self.shapes.GetShape_s(one)) == len(names):
                names.append(name)
        return lambda shape: names[known.FindIndex(shape)]


def _srgb(c: float) -> float:
    """Component of sRGB of a component of linear light, which OCP keeps."""
    return float(min(1.0, max(0.0, 12.92 * c if c <= 0.0031308 else 1.055 * c ** (1 / 2.4) - 0.055)))


def name_of(label: Any) -> str:
    """The name of a label, or ""."""
    from OCP.TDataStd import TDataStd_Name

    name = TDataStd_Name()
    # asked for before: FindAttribute crashes on some labels that have no attribute
    if label.IsNull() or not label.IsAttribute(TDataStd_Name.GetID_s()):
        return ""
    label.FindAttribute(TDataStd_Name.GetID_s(), name)
    text = name.Get()
    return str(text.ToExtString()) if text.Length() else ""


def _placement(location: Any, name: str) -> list[float]:
    """Position [m] and quaternion (w, x, y, z)."""
    if location is None or location.IsIdentity():
        return [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    moved = location.Transformation()
    scale = moved.ScaleFactor()
    if moved.IsNegative() or abs(scale - 1.0) > RIGID:
        raise Failure(f"part {name!r} is placed with a mirror or the scale {scale:g}; a placement must be rigid")
    p, q = moved.TranslationPart(), moved.GetRotation()
    return [*xyz(p), q.W(), q.X(), q.Y(), q.Z()]
