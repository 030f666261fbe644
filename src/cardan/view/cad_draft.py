"""Joints of CAD parts in the workbench: a draft as the page shows it.

The page draws the faces of parts in colour.  It knows them by ``runs``: the triangles of a part are sorted by face, so
pairs (face, number of triangles) in their order tell the face of every triangle.
"""

from __future__ import annotations

from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from cardan.cad.draft import Draft, kinds_of
from cardan.cad.parts import Part
from cardan.cad.picks import Face
from cardan.errors import ModelError
from cardan.mechanism import Mechanism


def described(draft: Draft, mechanism: Mechanism, text: str, ok: bool) -> dict[str, Any]:
    """The fields of the message "desk"; text: the result of the last assembly."""
    numbers = {name: k + 1 for k, name in enumerate(mechanism.bodies)}  # the ground is the part 0 of the drawing
    places = {part.name: k for k, part in enumerate(draft.assembly.parts)}
    return {
        "parts": [
            {
                "part": numbers[part.name],
                "name": part.name,
                "runs": runs(part),
                "faces": [_words(face) for face in part.faces],
            }
            for part in draft.assembly.parts
        ],
        "proposals": [
            {
                "name": one.name,
                "kind": one.kind,
                "parts": [places[one.a], places[one.b]],
                "reason": one.reason,
                "mark": one.mark,
                "faces": [[int(a), int(b)] for a, b in one.faces],
                "accepted": one.accepted,
            }
            for one in draft.proposals.values()
        ],
        "kinds": kinds(draft),
        "text": text,
        "ok": ok,
    }


def runs(part: Part) -> list[list[int]]:
    """Face and number of triangles, in the order of the triangles."""
    faces = np.asarray(part.triangle_faces)
    starts = np.flatnonzero(np.diff(faces, prepend=-1))
    return [[int(faces[k]), int(n)] for k, n in zip(starts, np.diff(starts, append=len(faces)), strict=True)]


def kinds(draft: Draft) -> dict[str, list[str]]:
    """Kinds of joints by the kinds of two faces, in the order of the alphabet: "cylinder plane"."""
    samples: dict[str, Face] = {}
    for part in draft.assembly.parts:
        for face in part.faces:
            samples.setdefault(face.kind, face)
    found = {}
    for a, b in combinations_with_replacement(sorted(samples), 2):
        try:
            found[f"{a} {b}"] = list(kinds_of(samples[a], samples[b]))
        except ModelError:
            continue  # no joint is made of two such faces
    return found


def _words(face: Face) -> dict[str, str]:
    radius = f" of radius {1e3 * face.radius:.4g} mm" if face.numbers else ""
    hole = "hole, " if face.is_hole else ""
    return {"kind": face.kind, "text": f"{hole}{face.kind}{radius}"}
