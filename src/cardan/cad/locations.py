"""Placements of OCP, as CadQuery and build123d have them, and poses [m]."""

from __future__ import annotations

from typing import Any

from cardan.system.state import Pose

MM = 1e-3  # CadQuery and build123d have no units; their lengths are taken as millimetres


def placement(location: Any) -> tuple[list[float], list[float]]:
    """Position [m] and quaternion (w, x, y, z) of a Location."""
    moved = location.wrapped.Transformation()
    p, q = moved.TranslationPart(), moved.GetRotation()
    return [p.X() * MM, p.Y() * MM, p.Z() * MM], [q.W(), q.X(), q.Y(), q.Z()]


def transformation(pose: Pose) -> Any:
    """The gp_Trsf of a pose."""
    from OCP.gp import gp_Quaternion, gp_Trsf, gp_Vec

    w, x, y, z = pose.quaternion.tolist()
    found = gp_Trsf()
    found.SetRotation(gp_Quaternion(x, y, z, w))
    found.SetTranslationPart(gp_Vec(*[c / MM for c in pose.position.tolist()]))
    return found
