"""Every state of a session meets its joints by the verdict of a diagnosis: small parts, far away, flat equations."""

from __future__ import annotations

import numpy as np
import pytest

import cardan as cd
from mechanisms import unit

TURNED = unit([0.8, 0.1, 0.2, 0.5])


def small_and_far(m):
    """Parts of 1e-8 m; one is free to be metres away, where coordinates are rounded to 1e-15 m."""
    one = m.body("one", position=(3.7, 1.2, -4.4))
    two = m.body("two", position=(1e-6, -7e-7, 4e-7), orientation=TURNED)
    m.point_on_line("line", one.point((3e-9, -7e-9, -5e-9)), m.ground.frame((1e-8, 5e-9, -1e-8), z=(0.6, 0.2, -0.7)))
    m.planar("plane", two.frame((6e-9, -7e-9, -2e-9)), m.ground.frame((-5e-9, 3e-9, 1e-8)))
    m.perpendicular("square", one.frame((1e-8, 1e-8, 2e-9)), two.frame((3e-9, 5e-9, 7e-9), z=(1, 0, 0)))
    return "one", 1e-8


def short_rod(m):
    """In the squared form a rod that is short in relation to the extent is open by the root of its tolerance."""
    body = m.body("body", orientation=TURNED)
    m.distance("long", m.ground.point((1, 0, 0)), body.point((0.3, 0.2, -0.1)), length=0.4)
    m.distance("short", m.ground.point((0.2, 0.8, 0.1)), body.point((0, 0.7, 0.4)), length=1e-4, squared=True)
    return "body", 0.3


def sharp_angle(m):
    """The cosine of an angle near π is flat."""
    body = m.body("body", position=(3e6, 2e6, 0), orientation=TURNED)
    m.point_in_plane("table", body.point((0.3, 0, 0)), m.ground.frame())
    m.angle("sharp", m.ground.frame(z=(0.1, 0, 1)), body.frame(z=(1, 0, 0)), angle=3.136, cosine=True)
    return "body", 1e5


@pytest.mark.parametrize("build", [small_and_far, short_rod, sharp_angle])
def test_every_state_of_a_session_is_assembled(build):
    """Rounding of far coordinates was allowed to angles: 0.01 rad were open; squares were closed in their own unit."""
    m = cd.Mechanism()
    name, size = build(m)
    session = m.session()
    hand = session.grasp(name)
    rng = np.random.default_rng(8)
    moved = 0
    for k in range(24):
        if k % 4 == 0:
            hand.target = hand.point + size * rng.normal(size=3)
        moved += session.step() == cd.SessionStatus.MOVING
        report = m.diagnose(session.state, tolerance=1e-11)
        assert report.assembled, (k, report.text())
    assert moved
