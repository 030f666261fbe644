"""Small MJCF models beside MuJoCo: accelerations, rows of equality constraints, degrees of freedom, or the report.

Run by ``make mujoco`` in an environment that has MuJoCo.  MuJoCo's constraints are soft; those here are exact.  So its
accelerations are computed without contacts, limits and friction, and with its own mass matrix, forces and rows of the
equality constraints: M a + c + Jᵀλ = f, J a = 0 at rest.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import cardan as cd
from cardan.files import mjcf, reader, writer
from cardan.math import euler

EXACT = 1e-9
BOX = '<inertial pos="0.1 0.02 -0.03" mass="1.5" diaginertia="0.02 0.03 0.04" euler="10 20 30"/>'
LIGHT = '<inertial pos="0.05 0 0.1" mass="0.4" fullinertia="0.011 0.012 0.013 0.001 0.002 -0.001"/>'


def tree(*bodies: str, head: str = "", tail: str = "") -> str:
    return f'<mujoco model="m">{head}<worldbody>{"".join(bodies)}</worldbody>{tail}</mujoco>'


def hinge(attributes: str = "", inner: str = "", name: str = "a", joint: str = "hinge", mass: str = BOX) -> str:
    """A body on a joint that is not at its origin."""
    where = "" if joint == "free" else 'pos="0.02 0.03 0.01" axis="1 2 3"'
    where = where.replace('axis="1 2 3"', "") if joint == "ball" else where
    return (
        f'<body name="{name}" pos="0.2 -0.1 0.3" euler="15 -25 40">{mass}'
        f'<joint name="{name}_j" type="{joint}" {where} {attributes}/>{inner}</body>'
    )


def two(joint: str, attributes: str = "") -> str:
    """A moving body that carries a body on a joint."""
    return hinge(inner=hinge(attributes, name="b", joint=joint, mass=LIGHT))


def pair(equality: str, head: str = "", first: str = "free", second: str = "free") -> str:
    """Two bodies with sites, and equality constraints."""
    sites = '<site name="{0}1" pos="0.1 0.2 0.3" euler="20 30 40"/>'
    sites += '<site name="{0}2" type="capsule" size="0.01" fromto="0 0 0 0.3 0.1 -0.2"/>'
    a = hinge("", sites.format("s"), joint=first)
    b = hinge("", sites.format("t"), name="b", joint=second, mass=LIGHT)
    return tree(a, b, head=head, tail=f"<equality>{equality}</equality>")


def loaded(*joints: str, attributes: str) -> str:
    return tree(*(hinge(attributes, name=f"b{k}", joint=joint) for k, joint in enumerate(joints)))


def shaped(*geoms: str, head: str = "") -> str:
    return tree(hinge(mass="".join(f"<geom {geom}/>" for geom in geoms)), head=head)


# Every case, and what its report must contain ("": it agrees with MuJoCo).
ALL = 'stiffness="3" damping="0.7" armature="0.2"'
CASES = {
    # joints
    "a hinge": (tree(hinge()), ""),
    "a slide": (tree(hinge(joint="slide")), ""),
    "a ball": (tree(hinge(joint="ball")), ""),
    "a free body": (tree(hinge(joint="free")), ""),
    "a hinge on a hinge": (tree(two("hinge")), ""),
    "a slide on a hinge": (tree(two("slide")), ""),
    "a ball on a hinge": (tree(two("ball")), ""),
    "a hinge with spring and damper": (tree(hinge('stiffness="3" springref="20" damping="0.7"')), ""),
    "a hinge with ref": (tree(hinge('stiffness="3" springref="20" ref="35" damping="0.7"')), ""),
    "a slide with spring, damper and ref": (tree(hinge('stiffness="3" springref="0.2" ref="0.1"', joint="slide")), ""),
    "a ball with stiffness": (tree(hinge('stiffness="3"', joint="ball")), ""),
    "a ball with damping": (tree(hinge('damping="0.7"', joint="ball")), ""),
    "a ball with armature": (tree(hinge('armature="0.2"', joint="ball")), ""),
    "a ball with all": (tree(hinge(ALL, joint="ball")), ""),
    "a ball on a hinge with stiffness and damping": (tree(two("ball", 'stiffness="3" damping="0.7"')), ""),
    "a ball on a hinge with armature": (tree(two("ball", 'armature="0.2"')), "armature of ball joints on bodies that"),
    "a ball with friction loss": (tree(hinge('frictionloss="0.2"', joint="ball")), "frictionloss of ball joints (1: "),
    "a ball with springdamper": (tree(hinge('springdamper="0.3 0.7"', joint="ball")), ""),
    "a hinge with springdamper": (
        tree(hinge('springdamper="0.3 0.7" stiffness="9" damping="7" springref="20" armature="0.2"')), "",
    ),
    "a free body with springdamper": (tree(hinge('springdamper="0.3 0.7" armature="0.1"', joint="free")), ""),
    "springdampers of a chain": (
        tree(hinge('springdamper="0.3 0.7"', hinge('springdamper="0.4 0.6"', name="b", joint="ball", mass=LIGHT)),
             hinge('springdamper="0.5 0.8"', name="c", joint="slide")), "",
    ),
    "a springdamper of an unknown mass": (
        shaped('size="0.1" shellinertia="true"').replace("axis=", 'springdamper="0.3 0.7" axis='),
        "springdamper of joints: a mass is not known, M is singular, or there are more than 1000 coordinates (1: a_j)",
    ),
    "a free body with damping": (tree(hinge('damping="0.7"', joint="free")), ""),
    "a free body with stiffness": (tree(hinge('stiffness="3"', joint="free")), ""),
    "a free body with armature": (tree(hinge('armature="0.2"', joint="free")), ""),
    "a free body with all": (tree(hinge(ALL, joint="free")), ""),
    "a free body with friction loss": (tree(hinge('frictionloss="0.2"', joint="free")), "frictionloss of free joints"),
    "a hinge with armature": (tree(hinge('armature="0.2"')), ""),
    "a slide with armature": (tree(hinge('armature="0.2"', joint="slide")), ""),
    "a hinge on a hinge with armature": (tree(two("hinge", 'armature="0.2"')), ""),
    "a slide on a hinge with armature": (tree(two("slide", 'armature="0.2" damping="0.1"')), ""),
    "defaults of all joints": (
        f'<mujoco><default><joint {ALL}/></default><worldbody>'
        + "".join(hinge(name=f"b{k}", joint=kind) for k, kind in enumerate(("hinge", "slide", "ball", "free")))
        + f'<body name="f" pos="1 1 1">{LIGHT}<freejoint name="f"/></body></worldbody></mujoco>',
        "",
    ),
    "a class of joints": (
        tree(
            hinge('class="stiff"'), hinge(name="b", joint="ball", attributes='class="stiff" damping="0.1"'),
            head=f'<default><joint damping="9"/><default class="stiff"><joint {ALL}/></default></default>',
        ),
        "",
    ),
    "a polynomial damping": (tree(hinge('damping="0.7 0.2"')), "damping that is not linear (1: a_j)"),
    "a polynomial stiffness": (tree(hinge('stiffness="3 0.2"')), "stiffness that is not linear (1: a_j)"),
    "attributes of limits": (
        tree(hinge('range="-90 90" margin="0.1" solreflimit="0.1 1" actuatorfrcrange="-3 3"')),
        "margin of <joint> (1: a_j)",
    ),
    # frames and inertials
    "an inertial in a frame": (tree(hinge(mass=f'<frame pos="0.1 0.2 0" euler="30 40 50">{BOX}</frame>')), ""),
    "an inertial in two frames": (
        tree(hinge(mass=f'<frame pos="0.1 0.2 0"><frame axisangle="1 1 0 70">{BOX}</frame></frame>')), "",
    ),
    "a joint and a body in a frame": (
        tree(
            f'<body name="a" pos="0 0 1">{BOX}<frame pos="0.3 0 0" euler="0 80 0"><joint pos="0 0 .1"/>'
            f'{hinge(name="b", mass=LIGHT)}</frame></body>'
        ),
        "",
    ),
    "an inertial in radians": (tree(hinge(), head='<compiler angle="radian" eulerseq="zyx"/>'), ""),
    # masses of geoms
    "a sphere": (shaped('size="0.1" pos="0.1 0 0"', 'size="0.05" pos="0 0.2 0"'), ""),
    "a box": (shaped('type="box" size="0.1 0.2 0.3" euler="10 20 30" density="300"'), ""),
    "a capsule": (shaped('type="capsule" size="0.05 0.2" pos="0.1 0.2 0"'), ""),
    "a capsule between points": (shaped('type="capsule" size="0.05" fromto="0 0 0 0.3 0.2 0.1"'), ""),
    "a cylinder with a mass": (shaped('type="cylinder" size="0.05" fromto="0 0 0 0.3 0.2 0.1" mass="3"'), ""),
    "a box between points": (shaped('type="box" size="0.05" fromto="0 0 0 0.3 0.2 0.1"'), ""),
    "an ellipsoid": (shaped('type="ellipsoid" size="0.1 0.2 0.3" zaxis="1 1 1"'), ""),
    "geoms of groups": (
        shaped('size="0.1"', 'size="0.2" pos="1 0 0" group="4"', head='<compiler inertiagrouprange="0 3"/>'), "",
    ),
    "geoms instead of an inertial": (
        tree(hinge(mass=BOX + '<geom size="0.1" pos="0 0.1 0"/>'), head='<compiler inertiafromgeom="true"/>'), "",
    ),
    "geoms beside an inertial": (tree(hinge(mass=BOX + '<geom size="0.1" pos="0 0.1 0"/>')), ""),
    "geoms with defaults": (
        shaped('size="0.1"', 'class="c" size="0.1" pos="0.3 0 0"',
               head='<default><geom density="50"/><default class="c"><geom mass="2"/></default></default>'), "",
    ),
    "a geom in a frame": (
        tree(hinge(mass='<frame pos="0.1 0 0" euler="0 0 30"><geom type="box" size="0.1 0.2 0.3"/></frame>')), "",
    ),
    "a shell": (shaped('size="0.1" shellinertia="true"'), "masses of bodies from geoms with shellinertia"),
    "a static body with a child": (
        tree(f'<body name="s" pos="0 0 1" euler="0 30 0">{hinge(ALL, joint="ball")}</body>'), "",
    ),
    # equality constraints
    "a connect": (pair('<connect name="e" body1="a" body2="b" anchor="0.1 0.2 0.3"/>'), ""),
    "a connect to the world": (pair('<connect name="e" body1="a" anchor="0.1 0.2 0.3"/>'), ""),
    "a connect of sites": (pair('<connect name="e" site1="s1" site2="t2"/>'), ""),
    "a weld": (pair('<weld name="e" body1="a" body2="b"/>'), ""),
    "a weld with an anchor": (pair('<weld name="e" body1="a" body2="b" anchor="0.3 0 0"/>'), ""),
    "a weld with a relpose": (pair('<weld name="e" body1="a" body2="b" relpose="0.1 0.2 0.3 0.8 0.6 0 0"/>'), ""),
    "a weld with relpose and anchor": (
        pair('<weld name="e" body1="a" body2="b" relpose="0.1 0.2 0.3 0.8 0.6 0 0" anchor="0.3 0.1 0"/>'), "",
    ),
    "a weld with a relpose without rotation": (
        pair('<weld name="e" body1="a" body2="b" relpose="0.1 0.2 0.3 0 0 0 0" anchor="0.3 0.1 0"/>'), "",
    ),
    "a weld to the world with relpose and anchor": (
        pair('<weld name="e" body1="a" relpose="0.1 0.2 0.3 0.8 0.6 0 0" anchor="0.3 0.1 0"/>'), "",
    ),
    "a weld of sites": (pair('<weld name="e" site1="s1" site2="t2"/>'), ""),
    "a weld without torque": (pair('<weld name="e" body1="a" body2="b" anchor="0.3 0 0" torquescale="0"/>'), ""),
    "a weld without torque with relpose": (
        pair('<weld name="e" body1="a" body2="b" relpose="0.1 0.2 0.3 0.8 0.6 0 0" torquescale="0"/>'), "",
    ),
    "a weld with a torquescale": (
        pair('<weld name="e" body1="a" body2="b" torquescale="0.3"/>'), "torquescale of <weld>",
    ),
    "a weld with a solref": (pair('<weld name="e" body1="a" body2="b" solref="0.1 1"/>'), "solref of <weld> (1: e)"),
    "an equality that is not active": (
        pair('<weld name="e" body1="a" body2="b" active="false"/>'), "not active (1: e)",
    ),
    "equalities that are not active by default": (
        pair('<weld name="e" body1="a" body2="b"/><connect name="c" body1="a" body2="b" anchor="0 0 0" active="true"/>',
             head='<default><equality active="false"/></default>'), "not active (1: e)",
    ),
    "equal joints": (pair('<joint name="e" joint1="a_j" joint2="b_j"/>', first="hinge", second="hinge"), ""),
    "a polynomial of one number": (
        pair('<joint name="e" joint1="a_j" joint2="b_j" polycoef="0.1"/>', first="hinge", second="slide"), "",
    ),
    "a polynomial of three numbers": (
        pair('<joint name="e" joint1="a_j" joint2="b_j" polycoef="0.1 0.5 0.3"/>', first="slide", second="hinge"), "",
    ),
    "a polynomial of one joint": (
        pair('<joint name="e" joint1="a_j" polycoef="0.1 7"/>', first="hinge", second="hinge"), "",
    ),
    "a body of two joints": (
        tree(hinge(mass=BOX + '<joint name="twist" axis="1 0 0"/>')), "body 'a' has 2 joints: 'a_1' of",
    ),
    "gravcomp": (tree(hinge().replace('name="a"', 'name="a" gravcomp="0.7"', 1)), ""),
    "gravcomp of a free body with armature": (
        tree(hinge('armature="0.2"', joint="free").replace('name="a"', 'name="a" gravcomp="0.7"', 1)), "",
    ),
    "an actuator": (
        tree(hinge(), tail='<actuator><position name="p" joint="a_j" kp="3"/></actuator>'), "<actuator> (1: p)",
    ),
    "a tendon": (
        tree(hinge(), tail='<tendon><fixed name="t" stiffness="3"><joint joint="a_j" coef="1"/></fixed></tendon>'),
        "<tendon> (1: t)",
    ),
    "a fluid": (tree(hinge(mass='<geom type="box" size="0.1 0.2 0.3"/>'), head='<option density="9"/>'), "density"),
}  # fmt: skip


def place(model: mujoco.MjModel, data: mujoco.MjData, m: cd.Mechanism) -> cd.State:
    """The state here with the poses and velocities of all bodies in MuJoCo."""
    state = m.state
    coordinates, velocities = state.coordinates.copy(), np.zeros((len(state.names), 6))
    for k, name in enumerate(state.names):
        body = model.body(name).id
        coordinates[k] = [*data.xpos[body], *data.xquat[body]]
        rows = np.zeros((6, model.nv))
        mujoco.mj_jacBody(model, data, rows[:3], rows[3:], body)
        moved = rows @ data.qvel
        velocities[k] = [*moved[:3], *(data.xmat[body].reshape(3, 3).T @ moved[3:])]
    return m.system.state(coordinates).with_rates(velocities)


def accelerations(model: mujoco.MjModel, data: mujoco.MjData, qacc: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Of the origins in world, and of the angular velocities in body axes, shape (bodies, 6)."""
    found = []
    for name in names:
        body = model.body(name).id
        rows, rates = np.zeros((6, model.nv)), np.zeros((6, model.nv))
        mujoco.mj_jacBody(model, data, rows[:3], rows[3:], body)
        mujoco.mj_jacDot(model, data, rates[:3], rates[3:], data.xpos[body], body)
        a = rows @ qacc + rates @ data.qvel
        found.append([*a[:3], *(data.xmat[body].reshape(3, 3).T @ a[3:])])
    return np.array(found)


def bare(text: str) -> mujoco.MjModel:
    """MuJoCo's model, in which contacts, limits and friction loss do not act."""
    model = mujoco.MjModel.from_xml_string(text)
    for flag in ("CONTACT", "LIMIT", "FRICTIONLOSS"):
        model.opt.disableflags |= getattr(mujoco.mjtDisableBit, f"mjDSBL_{flag}")
    return model


def exact_acceleration(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """q̈ with exact equality constraints at rest, and their rows."""
    mass = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, mass, data.qM) if hasattr(data, "qM") else mujoco.mj_fullM(model, data, mass)
    force = data.qfrc_passive - data.qfrc_bias + data.qfrc_applied + data.qfrc_actuator
    is_equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    rows = data.efc_J.reshape(-1, model.nv)[is_equality] if data.nefc else np.zeros((0, model.nv))
    n = len(rows)
    matrix = np.block([[mass, rows.T], [rows, np.zeros((n, n))]])
    solved = np.linalg.lstsq(matrix, np.concatenate([force, np.zeros(n)]), rcond=1e-12)[0]
    return solved[: model.nv], rows


def qpos_of(model: mujoco.MjModel, state: cd.State) -> np.ndarray:
    """MuJoCo's coordinates of a state, of bodies that have one joint each."""
    qpos = model.qpos0.copy()
    for j in range(model.njnt):
        body, at = model.jnt_bodyid[j], model.jnt_qposadr[j]
        kind = model.jnt_type[j]
        parent = model.body(model.body_parentid[body]).name
        p, own = np.asarray(state[model.body(body).name].position), state[model.body(body).name].matrix
        if kind == mujoco.mjtJoint.mjJNT_FREE:
            turned = np.zeros(4)
            mujoco.mju_mat2Quat(turned, own.ravel())
            qpos[at : at + 7] = [*p, *turned]
            continue
        base, r = (np.eye(3), np.zeros(3)) if parent == "world" else (state[parent].matrix, state[parent].position)
        relative = euler.matrix(model.body_quat[body]).T @ base.T @ own
        if kind == mujoco.mjtJoint.mjJNT_SLIDE:
            moved = euler.matrix(model.body_quat[body]).T @ (base.T @ (p - r) - model.body_pos[body])
            qpos[at] = model.qpos0[at] + moved @ model.jnt_axis[j]
            continue
        turned = np.zeros(4)
        mujoco.mju_mat2Quat(turned, relative.ravel())
        if kind == mujoco.mjtJoint.mjJNT_BALL:
            qpos[at : at + 4] = turned
        else:
            qpos[at] = model.qpos0[at] + 2 * np.arctan2(turned[1:] @ model.jnt_axis[j], turned[0])
    return qpos


def compare_moving(model: mujoco.MjModel, m: cd.Mechanism, seed: int) -> None:
    """Accelerations in a random pose, with random velocities."""
    rng = np.random.default_rng(seed)
    data = mujoco.MjData(model)
    mujoco.mj_integratePos(model, data.qpos, rng.uniform(-1, 1, model.nv), 0.7)
    data.qvel[:] = rng.uniform(-2, 2, model.nv)
    mujoco.mj_forward(model, data)
    start = place(model, data, m)
    free = m.copy()
    for name, joint in m.joints.items():
        if joint.kind.name == "limit":
            free.remove(name)
    sim = free.simulate(1e-6, start, times=[0.0, 1e-6], step=1e-6, method="rk4")
    state = sim.states[0]
    assert np.abs(state.coordinates - start.coordinates).max() < 1e-12  # they are those of the joints
    assert np.abs(state.velocities - start.velocities).max() < 1e-11
    theirs = accelerations(model, data, data.qacc, state.names)
    assert np.abs(state.accelerations - theirs).max() < EXACT * max(1.0, np.abs(theirs).max())
    assert m.diagnose(start).dof == model.nv


def compare_equalities(model: mujoco.MjModel, m: cd.Mechanism) -> None:
    """A pose that meets the equality constraints here meets them there, with as many freedoms and the same forces."""
    data = mujoco.MjData(model)
    result = m.assemble()
    assert result.ok, result.text()
    data.qpos[:] = qpos_of(model, result.state)
    mujoco.mj_forward(model, data)
    for name in result.state.names:
        assert np.abs(data.body(name).xpos - result.state[name].position).max() < EXACT
        assert np.abs(data.body(name).xmat.reshape(3, 3) - result.state[name].matrix).max() < EXACT
    is_equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert np.abs(data.efc_pos[is_equality]).max(initial=0.0) < EXACT
    qacc, rows = exact_acceleration(model, data)
    assert m.diagnose(result.state).undriven == model.nv - np.linalg.matrix_rank(rows, tol=1e-8)
    state = m.simulate(1e-6, result.state, times=[0.0, 1e-6], step=1e-6, method="rk4").states[0]
    theirs = accelerations(model, data, qacc, state.names)
    assert np.abs(state.accelerations - theirs).max() < EXACT * max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize("name", CASES)
def test_a_small_model_agrees_with_mujoco_or_is_in_the_report(name: str, tmp_path: Path) -> None:
    text, expected = CASES[name]
    path = tmp_path / "m.xml"
    path.write_text(text)
    m, report = mjcf.load(path)
    said = "\n".join(report)
    assert expected in said, said
    assert writer.dumps(reader.read(writer.dumps(m), "x", False)) == writer.dumps(m)
    model = bare(text)
    if expected and "not active" not in expected and "solref" not in expected and "torquescale" not in expected:
        return
    if "equality" in text:
        compare_equalities(model, m)
    else:
        assert "not converted" not in said.replace("not converted: drawing and contact of <geom>", ""), said
        for seed in range(2):
            compare_moving(model, m, seed)


def test_there_are_at_least_54_cases() -> None:
    assert len(CASES) >= 54
