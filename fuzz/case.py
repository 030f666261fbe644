"""A fuzz case: a mechanism as plain data, its expected result, and its conversion to a ``cardan.Mechanism``."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

GROUND = "ground"

EXPECT_OK = "ok"  # it can be assembled and is not degenerate
EXPECT_FAILURE = "not ok"  # it cannot be assembled; the case contains the proof
EXPECT_ANY = "any"  # either result is possible; the verdict must be correct


@dataclass
class Body:
    """A movable part at its authored pose: position [m], orientation (w, x, y, z)."""

    name: str
    position: list[float]
    orientation: list[float]


@dataclass
class End:
    """The end of a joint on a body: a point (z is None) or a frame with axis z and optional axis x, in body axes."""

    body: str
    origin: list[float]
    z: list[float] | None = None
    x: list[float] | None = None


@dataclass
class Joint:
    """A joint: name, kind, ends and options (length, angle, squared, cosine)."""

    name: str
    kind: str
    a: End
    b: End
    options: dict[str, Any] = field(default_factory=dict)


@dataclass
class Case:
    """A mechanism, its start poses, solver options, and its known properties.

    ``reference``: poses that satisfy every joint, by body.  ``proof``: why there are none (see :mod:`fuzz.proofs`).
    ``start``: start poses; None for the authored ones.  ``options``: arguments of ``Mechanism.assemble``.
    """

    family: str
    variant: str
    expect: str
    bodies: list[Body]
    joints: list[Joint]
    start: dict[str, list[list[float]]] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    reference: dict[str, list[list[float]]] | None = None
    proof: dict[str, Any] | None = None
    seed: int = 0
    index: int = 0
    parameters: list[dict[str, Any]] = field(default_factory=list)  # see :mod:`fuzz.parameters`

    @property
    def label(self) -> str:
        return f"{self.family}/{self.variant} seed {self.seed} case {self.index}"

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=1, default=_plain)

    @classmethod
    def from_json(cls, text: str) -> Case:
        data = json.loads(text)
        data["bodies"] = [Body(**b) for b in data["bodies"]]
        data["joints"] = [Joint(**{**j, "a": End(**j["a"]), "b": End(**j["b"])}) for j in data["joints"]]
        return cls(**data)

    @classmethod
    def load(cls, path: str | Path) -> Case:
        return cls.from_json(Path(path).read_text(encoding="utf-8"))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray) else value.item()


def build(case: Case) -> Any:
    """The case as a ``cardan.Mechanism``."""
    import cardan as cd

    m = cd.Mechanism("fuzz")
    made = {GROUND: m.ground}
    if case.parameters:
        from fuzz.parameters import with_formulas

        case = with_formulas(case, m)
    for body in case.bodies:
        made[body.name] = m.body(body.name, position=body.position, orientation=body.orientation)
    for joint in case.joints:
        ends = [
            made[e.body].point(e.origin) if e.z is None else made[e.body].frame(e.origin, z=e.z, x=e.x)
            for e in (joint.a, joint.b)
        ]
        getattr(m, joint.kind)(joint.name, *ends, **joint.options)
    return m


def snippet(case: Case, notes: list[str]) -> str:
    """A program that builds the case with the public API and prints the result."""
    lines = [f'"""{case.label}: expected {case.expect}."""', "", "import cardan as cd", ""]
    lines += [f"# {line}" for note in notes for line in note.splitlines()]
    if case.proof is not None:
        lines.append(f"# proof of inconsistency: {json.dumps(case.proof, default=_plain)}")
    lines += ['m = cd.Mechanism("fuzz")', 'part = {"ground": m.ground}']
    for p in case.parameters:
        lower, upper = p.get("bounds") or (None, None)
        lines.append(f"{p['name']} = m.parameter({p['name']!r}, {p['value']!r}, lower={lower!r}, upper={upper!r})")
        if p["factor"] != 1.0 or p["term"] != 0.0:
            lines.append(f"{p['name']}_formula = {p['factor']!r} * {p['name']} + {p['term']!r}")
    if case.parameters:
        from fuzz.parameters import with_names

        case = with_names(case)
    for b in case.bodies:
        lines.append(f"part[{b.name!r}] = m.body({b.name!r}, position={b.position}, orientation={b.orientation})")
    for joint in case.joints:
        ends = [
            f"part[{e.body!r}].point({e.origin})"
            if e.z is None
            else f"part[{e.body!r}].frame({e.origin}, z={e.z}, x={e.x})"
            for e in (joint.a, joint.b)
        ]
        options = "".join(f", {key}={value!r}" for key, value in joint.options.items())
        lines.append(f"m.{joint.kind}({joint.name!r}, {ends[0]}, {ends[1]}{options})")
    options = ", ".join(f"{key}={value!r}" for key, value in case.options.items())
    if case.start is not None:
        lines.append(f"start = {case.start}")
        options = f"start{', ' if options else ''}{options}"
    lines += [f"res = m.assemble({options})", "print(res.text())"]
    lines += ["for name, pose in res.state.items():", "    print(name, pose)", ""]
    return "\n".join(lines)
