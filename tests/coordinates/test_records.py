"""Accessors of records and workspaces against the layout, and evaluators of motion against those of assembly."""

from __future__ import annotations

import numpy as np
import pytest

from cardan.coordinates import _records, formulations
from cardan.examples import REGISTRY
from cardan.kernel.jit import jit
from cardan.kernel.memory import JIT_DISABLED, piece
from cardan.solvers.tables import Structure
from cardan.system import tables as layout

middle = piece(7, 3, 4)


@jit
def read(array, k, out):
    part = middle(array, k)
    for i in range(4):
        out[i] = part[i]


@pytest.mark.nojit
@pytest.mark.parametrize("k", [0, 1, 5])
def test_a_piece_is_so_many_elements_of_one_item(k):
    array, out = np.arange(42.0), np.zeros(4)
    read(array, k, out)
    assert np.array_equal(out, array.reshape(-1, 7)[k, 3:])


@pytest.mark.nojit
@pytest.mark.skipif(not JIT_DISABLED, reason="kernels do not ask")
@pytest.mark.parametrize("k", [-1, 6])
def test_without_the_jit_a_piece_outside_its_array_is_refused(k):
    with pytest.raises(IndexError):
        middle(np.arange(42.0), k)


@pytest.mark.nojit
@pytest.mark.parametrize("name", ["rsur", "planetary_gear", "stewart_ups"])
def test_the_pieces_of_a_workspace_hold_what_they_are_for(name):
    ints = REGISTRY[name].build().system.ints
    plan = _records.plan_workspace(layout.SystemTable(ints))
    system = layout.SystemTable(ints)
    bodies, widest, tallest = system.bodies, system.widest, system.tallest
    sizes = np.diff([0, *plan])
    needed = [layout.MATRIX * bodies, max(widest, _records.AXES), widest, widest, widest * tallest]
    needed += [4 * bool(system.variables), system.expanded]
    assert (sizes >= needed).all()


@pytest.mark.nojit
@pytest.mark.parametrize("formulation", formulations.REGISTRY)
def test_an_evaluator_of_motion_has_the_residuals_and_the_jacobian_of_assembly(formulation):
    system = REGISTRY["planetary_gear"].build().system
    q = formulations.to_reference(system, system.authored)
    p, moving = formulations.problem(system, formulation), formulations.motion_problem(system, formulation)
    for value, expected in zip((moving.residual(q), *moving.entries(q)), (p.residual(q), *p.entries(q)), strict=True):
        assert np.abs(value - expected).max() <= 1e-14


@pytest.mark.nojit
def test_the_table_of_a_motion_problem_is_made_once_and_ends_with_the_curvatures():
    system = REGISTRY["planetary_gear"].build().system
    p = formulations.motion_problem(system, "manifold")
    assert formulations.motion_problem(system, "manifold") is p
    codes = system.curvature_codes()
    assert np.array_equal(p.ints, np.concatenate([system.addressed, codes]))
    first = p.ints[layout.ANGLE_TABLE] + layout.ANGLE_RECORD * p.ints[layout.ANGLES]
    assert first == p.ints.size - codes.size
    assert Structure(p.structure).constraints == codes.size
