"""Assembly in every formulation, and the kernels that each may load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import cardan as cd
from cardan.analysis import options
from cardan.coordinates import formulations
from cardan.examples import REGISTRY, random_start
from cardan.math import euler
from cardan.solvers import methods
from layers import sampled

FORMULATIONS = list(formulations.REGISTRY)


@pytest.mark.parametrize("formulation", FORMULATIONS)
@pytest.mark.parametrize("name", list(REGISTRY))
def test_every_example_assembles_in_every_formulation(name, formulation):
    example = REGISTRY[name]
    mechanism = example.build()
    result = mechanism.assemble(formulation=formulation)
    assert result.ok, result.text()
    assert result.formulation == formulation
    example.facts(mechanism, result)


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_random_starts_assemble_in_every_formulation(formulation):
    mechanism = REGISTRY["rsur"].build()
    for seed in range(10):
        assert mechanism.assemble(random_start(mechanism, seed), formulation=formulation).ok


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_an_assembled_start_stays_to_the_last_bit_in_every_formulation(formulation):
    mechanism = REGISTRY["bent_chain"].build()
    start = mechanism.assemble().state
    result = mechanism.assemble(start, formulation=formulation)
    assert result.iterations == 0
    assert np.array_equal(result.state.coordinates, start.coordinates)


def body_rates(p, angles):
    """G(p) with ω = 2G ṗ, and B with ω = B (ψ̇, θ̇, φ̇), both in body axes."""
    e0, (e1, e2, e3) = p[0], p[1:]
    G = np.array([[-e1, e0, e3, -e2], [-e2, -e3, e0, e1], [-e3, e2, -e1, e0]])
    _, theta, phi = angles
    st, ct, sp, cp = np.sin(theta), np.cos(theta), np.sin(phi), np.cos(phi)
    return 2 * G, np.array([[st * sp, cp, 0], [st * cp, -sp, 0], [ct, 0, 1]])


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_all_formulations_find_the_same_velocities_and_accelerations(formulation):
    """J v = 0 and J v̇ = γ, with the crank at 1 rad/s: the motion does not depend on the choice of unknowns."""
    mechanism = REGISTRY["rsur"].build()
    system = mechanism.system
    q = formulations.to_reference(system, mechanism.assemble().state.coordinates)
    angles = [euler.as_zxz(pose[3:]) for pose in q.reshape(-1, 7)]

    def motion(kind):
        width = formulations.REGISTRY[kind].width
        T = np.zeros((18, 3 * width))  # (ṙ, ω) = T v
        for b, pose in enumerate(q.reshape(-1, 7)):
            twice_g, B = body_rates(pose[3:], angles[b])
            T[6 * b : 6 * b + 3, width * b : width * b + 3] = np.eye(3)
            turning = twice_g if width == 7 else B if kind == "euler_angles" else np.eye(3)
            T[6 * b + 3 : 6 * b + 6, width * b + 3 : width * (b + 1)] = turning
        A = np.vstack([formulations.problem(system, kind).jacobian(q)[1], T[5]])  # the last: ω_z of the crank
        v = np.linalg.lstsq(A, np.append(np.zeros(len(A) - 1), 1.0), rcond=1e-9)[0]
        bias = np.zeros(18)  # Ṫ v; 2G(ṗ) ṗ = 0
        for b in range(3 if kind == "euler_angles" else 0):
            u, h = v[6 * b + 3 : 6 * b + 6], 1e-5
            after, before = (body_rates(np.zeros(4), angles[b] + t * u)[1] @ u for t in (h, -h))
            bias[6 * b + 3 : 6 * b + 6] = (after - before) / (2 * h)
        a = np.linalg.lstsq(A, np.append(formulations.gamma(system, kind, q, v), -bias[5]), rcond=1e-9)[0]
        return T @ v, T @ a + bias

    (v, a), (v_0, a_0) = motion(formulation), motion("manifold")
    assert np.abs(v - v_0).max() <= 1e-9
    assert np.abs(a - a_0).max() <= 1e-7  # the accuracy of the differences


def test_an_unknown_formulation_is_refused_with_the_known_ones():
    mechanism = REGISTRY["rsur"].build()
    for call in (mechanism.assemble, lambda **o: mechanism.assemble_many([mechanism.state], **o)):
        with pytest.raises(
            cd.ModelError, match="'euler_angle'; it must be one of 'manifold', 'euler_parameters', 'virt"
        ):
            call(formulation="euler_angle")


FIRST_SOLVE = """
import sys
import cardan as cd
m = cd.Mechanism()
bob = m.body("bob", position=(0.5, 0.2, -0.8))
m.spherical("pivot", m.ground.point(), bob.point((0, 0, 1)))
end = m.body("end", position=(0.5, 0.2, -1.8))
m.spherical("knee", bob.point(), end.point((0, 0, 1)))  # two joints on one part: the mechanism has a length
assert m.assemble(formulation=sys.argv[1]).ok
print(*sorted(name for name in sys.modules if name.startswith("cardan.") and name.rsplit(".", 1)[1].startswith("_")))
print(*(name for name in sys.modules if name.partition(".")[0] == "papers"))
"""

OWN = {
    "manifold": "cardan.coordinates._manifold",
    "euler_parameters": "cardan.coordinates._euler_parameters",
    "virtual_rotation": "cardan.coordinates._virtual_rotation",
    "euler_angles": "cardan.coordinates._euler_angles",
}


@pytest.mark.slow
@sampled("formulation", FORMULATIONS, 2)
def test_a_formulation_loads_no_kernels_of_another(formulation):
    """Except those of the manifold, which judge every result."""
    environment = {**os.environ, "PYTHONPATH": str(Path(cd.__file__).parents[1])}
    command = [sys.executable, "-c", FIRST_SOLVE, formulation]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    loaded = set(run.stdout.split())
    assert OWN[formulation] in loaded
    assert not loaded & {module for name, module in OWN.items() if name not in (formulation, "manifold")}
    assert not loaded & {"cardan.solvers._algorithm_1", "cardan.analysis._many", "cardan.solvers._newton"}
    assert not any(name.startswith("papers") for name in loaded)


@pytest.mark.nojit
def test_types_name_every_formulation_and_every_method():
    """What type checkers, and `cardan warmup`, take for all there are."""
    assert get_args(formulations.Formulation) == formulations.CHOICES
    assert set(get_args(options.Method)) == {options.AUTO, *methods.REGISTRY}
