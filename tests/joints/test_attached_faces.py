"""Contacts are on faces that are attached, as long as the contact exists."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

import cardan as cd
from cardan import geometry as g


def _on_faces(kind: str, a: cd.Body, b: cd.Body) -> tuple[cd.Joint, cd.Attachment]:
    """A contact of a kind, and one of its faces."""
    m = a.owner
    if kind == "meshes":
        face = a.attach(cd.shapes.sphere(0.1))
        return m.contact("c", b.attach(cd.shapes.sphere(0.2)), face, jacobian="differences"), face
    if kind == "point_on_curve":
        face = a.attach(g.circle(0.1))
        return m.point_on_curve("c", b.point(), face), face
    if kind == "path":
        face = a.attach(g.circle(0.1))
        return m.path("c", b.frame(), face), face
    face = a.attach(g.sphere(0.1))
    if kind == "point_on_surface":
        return m.point_on_surface("c", b.point(), face), face
    if kind == "wheel":
        return m.wheel("c", b.frame((0.0, 0.0, 0.3)), 0.05, face), face
    return m.contact("c", b.attach(g.sphere(0.2)), face), face


KINDS_ON_FACES = ["contact", "meshes", "wheel", "point_on_curve", "point_on_surface", "path"]


@pytest.mark.parametrize("kind", KINDS_ON_FACES)
def test_the_face_of_a_contact_is_attached_before_and_after(kind: str) -> None:
    m = cd.Mechanism("m")
    a, b = m.body("a"), m.body("b", position=(1.0, 0.0, 0.0))
    looks = a.attach(cd.shapes.box(1.0, 1.0, 1.0))
    joint, face = _on_faces(kind, a, b)
    for twin in (m, m.copy(), pickle.loads(pickle.dumps(m))):
        own = twin["a"].attachments[1]
        with pytest.raises(cd.ModelError, match=f"detach of body 'a' got .*, which is a face of {joint.kind.name} 'c'"):
            twin["a"].detach(own)
        assert own in twin["a"].attachments
    a.detach(looks)
    m.remove("c")
    a.detach(face)
    assert a.attachments == ()


@pytest.mark.parametrize("kind", KINDS_ON_FACES)
def test_a_detached_face_has_no_contact(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    m = cd.Mechanism("m")
    a, b = m.body("a"), m.body("b", position=(1.0, 0.0, 0.0))
    attach = cd.Body.attach

    def attach_and_detach(body: cd.Body, *given: Any, **options: Any) -> cd.Attachment:
        made = attach(body, *given, **options)
        if body is a:
            body.detach(made)
        return made

    monkeypatch.setattr(cd.Body, "attach", attach_and_detach)
    with pytest.raises(cd.ModelError, match=r"'c' was given .*, which was detached from body 'a'; attach it again"):
        _on_faces(kind, a, b)
    assert not m.joints
    if kind == "wheel":
        assert b.attachments == ()  # the disc of the wheel that failed


def test_other_shapes_in_the_frame_of_a_face_can_be_detached() -> None:
    m = cd.Mechanism("m")
    a, b = m.body("a"), m.body("b", position=(1.0, 0.0, 0.0))
    frame = a.frame((0.0, 0.0, 0.1))
    looks, other, face = (
        a.attach(cd.shapes.sphere(0.1), frame),
        a.attach(g.sphere(0.3), frame),
        a.attach(g.sphere(0.1), frame),
    )
    m.contact("c", face, b.attach(g.sphere(0.2)))
    a.detach(looks)
    a.detach(other)
    with pytest.raises(cd.ModelError, match=r"sphere.* is a face of contact 'c'"):
        a.detach(face)
