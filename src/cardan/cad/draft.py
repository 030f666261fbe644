"""A draft of a mechanism: the parts of a file, and joints to accept, refuse or make from picked faces."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cardan.cad.parts import Assembly, without_noise
from cardan.cad.picks import SAME, Face, Pick
from cardan.cad.proposals import FIT, Proposal, propose_joints
from cardan.errors import ModelError
from cardan.math import euler
from cardan.system import check

if TYPE_CHECKING:
    from cardan.diagnosis.freedom import Diagnosis
    from cardan.mechanism import Mechanism
    from cardan.system.state import State

STEEL = 7850.0  # [kg/m³]
FLUSH = math.radians(1.0)  # planes whose normals agree within this are meant to be flush; others face each other
LONGEST_TRIAL = 20.0  # [s] of the assembly that decides the sense of an axis; a user waits for it
ROUND = ("cylindrical", "revolute", "prismatic", "fixed")
KINDS = {  # of joints between two picks of these kinds, the first by default
    "plane": ("planar", "fixed"),
    "cylinder": ROUND,
    "cone": ("revolute", "fixed"),
    "torus": ("revolute", "fixed"),
    "circle": ("revolute", "cylindrical", "prismatic", "fixed"),
    "ellipse": ("fixed",),
    "line": ROUND,
    "sphere": ("spherical",),
    "vertex": ("spherical",),
}
PAIRS = {"cylinder": ("bore", "pin"), "sphere": ("socket", "ball")}  # what is outside, and what is inside
AXES = ("cylinder", "cone", "torus", "circle", "line")  # any two of these have a common axis


class Draft:
    """Parts with joints that are accepted or refused; the joints of the faces of the file are proposed and accepted.

    ``proposals``: all of them by name.  ground: the name of the fixed part; that of the largest volume if None.
    density [kg/m³]: of every part.
    """

    def __init__(
        self, assembly: Assembly, *, fit: float = FIT, ground: str | None = None, density: float = STEEL
    ) -> None:
        self.assembly = assembly
        self.proposals: dict[str, Proposal] = {one.name: one for one in propose_joints(assembly, fit=fit)}
        largest = max(assembly.parts, key=lambda part: part.volume)
        self.ground = largest.name if ground is None else assembly[ground].name
        self.density = check.positive(density, "density")

    def copy(self) -> Draft:
        """The same decisions on the same parts; the copies are independent."""
        made = copy.copy(self)
        made.proposals = {name: copy.copy(one) for name, one in self.proposals.items()}
        return made

    def __getitem__(self, name: str) -> Proposal:
        if name not in self.proposals:
            raise check.unknown(name, "proposed joint", self.proposals)
        return self.proposals[name]

    def accept(self, name: str) -> None:
        """The joint is part of the mechanism."""
        self[name].accepted = True

    def refuse(self, name: str) -> None:
        """The joint is not part of the mechanism."""
        self[name].accepted = False

    def pick(self, part: str, number: Any) -> Pick:
        """A face by the name of its part and its number."""
        faces = self.assembly[part].faces
        return faces[check.count(number, f"the number of a face of part {part!r}", 0, len(faces) - 1)]

    def join(
        self,
        a: Pick,
        b: Pick,
        kind: str | None = None,
        *,
        name: str | None = None,
        flip: bool | None = None,
        state: State | None = None,
    ) -> Proposal:
        """Add a joint on two picks, wherever their parts are placed, and accept it.

        kind: one of :func:`kinds_of`, the first if None.  Planes face each other; those whose normals already agree
        within FLUSH stay flush.  Axes are aligned in the sense that needs the smaller rotation, or in the opposite
        sense if the joints cannot be closed otherwise.  flip: True reverses the sense, False keeps it, for planes face
        to face.  state: where the parts are; as the file places them if None.
        A bore that is too small for its pin is told in ``misfit`` and in ``mark`` of the joint.
        """
        if a.part is b.part:
            raise ModelError(f"both picks are on part {a.part.name!r}; a joint needs two parts")
        for pick in (a, b):
            if self.assembly.get(pick.part.name) is not pick.part:
                raise ModelError(f"{pick!r} is of another assembly")
        known = kinds_of(a, b)
        chosen = known[0] if kind is None else kind
        if chosen not in known:
            raise ModelError(
                f"joint between a {a.kind} and a {b.kind} was given kind={kind!r}; it must be one of {known}"
            )
        label = f"{a.part.name} - {b.part.name}" if name is None else name
        base, count = label, 2
        while label in self.proposals:
            if name is not None:
                raise ModelError(f"there is a joint {name!r} already; give another name=")
            label, count = f"{base} {count}", count + 1
        first, second = _frame(a), _frame(b)
        are_planes = a.kind == b.kind == "plane"
        cosine = _cosine(a, b, state)
        is_flush = flip is None and are_planes and cosine > math.cos(FLUSH)
        if (cosine < 0.0 or (are_planes and not is_flush)) != bool(flip):
            second[1] = -second[1]
        room, misfit = _fit(a, b)
        reason = f"picked: a {a.kind} and a {b.kind}{', flush' if is_flush else room}"
        ends = (label, chosen, a.part.name, b.part.name, (first, second))
        made = Proposal(*ends, reason, [(a.number, b.number)], mark=misfit, misfit=misfit)
        self.proposals[label] = made
        has_sense = a.z is not None and b.z is not None and not are_planes
        if flip is None and has_sense and not self._closes():
            second[1] = -second[1]  # a loop of axes closes in one sense only
            if not self._closes():
                second[1] = -second[1]
        return made

    def _closes(self) -> bool:
        """Whether the accepted joints can be closed within LONGEST_TRIAL."""
        return self.mechanism().assemble(max_seconds=LONGEST_TRIAL).ok

    def mechanism(self) -> Mechanism:
        """A new mechanism of all parts with the accepted joints."""
        from cardan.mechanism import Mechanism

        m = Mechanism(self.assembly.path.stem)
        for part in self.assembly.parts:
            part.add_to(m, None, self.density if part.volume > 0.0 else None, fixed=part.name == self.ground)
        for one in self.proposals.values():
            if one.accepted:
                one.add_to(m)
        return m

    def diagnose(self) -> Diagnosis:
        """The mobility of the mechanism; marks the joints that are redundant or contradict others.

        If the joints cannot all be met, they are tried one after the other: a joint contradicts those before it if they
        can be met without it, but not with it.
        """
        for one in self.proposals.values():
            one.mark = one.misfit
        m = self.mechanism()
        result = m.assemble()
        if not result.ok:
            m = self._without_contradictions()
            result = m.assemble()
        found = m.diagnose(result.state)
        counts: dict[str, int] = {}
        for equation in found.redundant:
            counts[equation.constraint] = counts.get(equation.constraint, 0) + 1
        for one in self.proposals.values():
            if one.name in counts:
                one.add_mark(f"redundant: {counts[one.name]} of its equations follow from other joints")
        return found

    def _without_contradictions(self) -> Mechanism:
        """The mechanism without the joints that contradict others, which are marked."""
        m = self.mechanism()
        accepted = [one for one in self.proposals.values() if one.accepted]
        for one in accepted:
            m.remove(one.name)
        state = None
        for one in accepted:
            one.add_to(m)
            result = m.assemble(state)
            if result.ok:
                state = result.state
            else:
                m.remove(one.name)
                one.add_mark(f"contradictory: it cannot be met together with the joints before it ({result.status})")
        return m

    def save(self, path: str | Path) -> None:
        """Write the mechanism to a model file."""
        self.mechanism().save(path)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the unit of the file, the parts with their faces, and the proposals."""
        parts = [
            {"name": part.name, "path": part.path, "faces": [face.kind for face in part.faces]}
            for part in self.assembly.parts
        ]
        joints = [one.as_dict() for one in self.proposals.values()]
        return {"unit": self.assembly.unit, "ground": self.ground, "parts": parts, "joints": joints}


def kinds_of(a: Pick, b: Pick) -> tuple[str, ...]:
    """Kinds of joints between two picks, the default first; ModelError where there is none."""
    kinds = KINDS.get(a.kind, ()) if a.kind == b.kind else ()
    if not kinds and a.kind in AXES and b.kind in AXES:
        kinds = ROUND
    if not kinds:
        way = "pick two planes, two spheres, two vertices, or two faces or edges with an axis"
        raise ModelError(f"a {a.kind} of part {a.part.name!r} and a {b.kind} of {b.part.name!r} give no joint; {way}")
    return kinds


def _cosine(a: Pick, b: Pick, state: State | None) -> float:
    """Of the angle between the axes of two picks in a state, or as placed; 1 where one has none."""
    if a.z is None or b.z is None:
        return 1.0
    turns = [one.part.quaternion if state is None else state[one.part.name].quaternion for one in (a, b)]
    return float(euler.rotate(turns[0], a.z) @ euler.rotate(turns[1], b.z))


def _fit(a: Pick, b: Pick) -> tuple[str, str]:
    """The clearance of a pin in its bore or a ball in its socket, in words, and why they do not fit; "" without."""
    if not isinstance(a, Face) or not isinstance(b, Face) or a.kind != b.kind or a.is_hole == b.is_hole:
        return "", ""
    inner, outer = (b, a) if a.is_hole else (a, b)
    if a.kind == "cone":
        angles = [math.degrees(abs(one.numbers[1])) for one in (inner, outer)]
        is_equal = abs(angles[0] - angles[1]) <= math.degrees(SAME)
        return "", "" if is_equal else f"the cone has a half angle of {angles[0]:.4g}°, its seat {angles[1]:.4g}°"
    if a.kind not in PAIRS:
        return "", ""
    room = outer.radius - inner.radius
    if room > SAME * outer.radius:
        return f", with a radial clearance of {1e3 * room:.4g} mm", ""
    if room >= -SAME * outer.radius:
        return "", ""
    bore, pin = PAIRS[a.kind]
    sizes = [f"{1e3 * one.radius:.4g} mm" for one in (outer, inner)]
    return "", f"the {bore} of radius {sizes[0]} is smaller than the {pin} of radius {sizes[1]}"


def _frame(pick: Pick) -> Any:
    """Rows origin [m], z and x in the axes of the part."""
    z = np.array([0.0, 0.0, 1.0]) if pick.z is None else pick.z
    x = np.linalg.svd(z[None, :])[2][1] if pick.x is None else pick.x
    return np.array([without_noise(pick.middle, pick.part.extent), without_noise(z), without_noise(x)])
