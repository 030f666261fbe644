"""Joint coordinates reduce unknowns and equations: figures for random loops and for the gallery.  [Liu2013] 2.2"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import cardan as cd
from cardan.coordinates import formulations, relative
from cardan.examples import REGISTRY
from cardan.solvers.tables import Structure

FIGURES = [30.9, 30.7, 7.3, 3.7]  # unknowns and rows by pose, then in joint coordinates
KINDS = ("revolute", "revolute", "revolute", "cylindrical", "spherical", "universal", "prismatic")


def random_loop(seed):
    """A closed chain of 3 to 7 bodies with random joints, pinned to the ground at both ends."""
    rng = np.random.default_rng(seed)
    m = cd.Mechanism()
    bodies = [m.ground, *[m.body(f"b{k}", position=(k + 1, 0, 0)) for k in range(rng.integers(3, 8))], m.ground]
    for k, (a, b) in enumerate(pairwise(bodies)):
        z = rng.normal(size=3)
        kind = KINDS[rng.integers(len(KINDS))]
        frames = [body.frame(rng.normal(size=3), z=z, x=np.cross(z, (1, 2, 3))) for body in (a, b)]
        ends = [frame.body.point(frame.origin) for frame in frames] if kind == "spherical" else frames
        getattr(m, kind)(f"j{k}", *ends)
    return m


def counts(system):
    """Unknowns and rows by pose, and in joint coordinates."""
    by_pose = formulations.structure(system, formulations.REGISTRY["manifold"])
    by_joints = relative._packed(system, "relative").structure
    return [int(n) for table in map(Structure, (by_pose, by_joints)) for n in (table.unknowns, table.rows)]


def test_random_loops_have_less_than_a_third_of_the_unknowns_in_joint_coordinates():
    unknowns, rows, fewer, left = np.mean([counts(random_loop(seed).system) for seed in range(80)], axis=0)
    assert fewer < unknowns / 3
    assert left < rows / 4
    # the figures of docs/papers.md
    assert [round(float(value), 1) for value in (unknowns, rows, fewer, left)] == FIGURES


@pytest.mark.slow
def test_no_mechanism_of_the_gallery_has_more_unknowns_in_joint_coordinates():
    for name, example in REGISTRY.items():
        unknowns, rows, fewer, left = counts(example.build().system)
        assert fewer <= unknowns and left <= rows, name
