"""Chain of 90° elbows between two flanges on the ground, as in the figure of [Nelson1998].

Each elbow has two arms of 0.5 m.  Neighbours rotate about the common line of their arms, like pipes in a swivel joint;
the first and the last elbow rotate on flanges fixed to the ground.  n elbows and n + 1 revolutes give
6 n − 5 (n + 1) = n − 5 degrees of freedom: three for the eight elbows here.

The corners are the vertices of a polyline with edges of 1 m and right angles; a joint angle is the torsion of an edge.
With unit edge t_k and normal b_k of the previous corner, torsion θ gives the next corner:
b_{k+1} = cos θ b_k + sin θ t_k × b_k,  t_{k+1} = b_{k+1} × t_k.  The polyline that starts at one flange and follows all
torsions must end at the other.
"""

from __future__ import annotations

from math import cos, sin

import numpy as np
from numpy.typing import NDArray

import cardan as cd
from cardan.examples import ExampleError
from cardan.math import euler
from gallery.checks import expect
from gallery.looks import STEEL, rod
from gallery.masses import with_masses

ARM = 0.5  # m
PIPE = 0.06  # m, radius of the drawn pipes
ELBOWS = 8
FEWEST = 6  # fewer cannot reach a flange in a general pose

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
WAVE = np.array([Z, X, (0.0, 0.0, -1.0), Y])  # directions of the edges in the sketch, repeated
MISSED = (-0.3, 0.15, 0.2)  # m: position of the far flange relative to the end of the sketch
TILTED = (0.1, 0.25, -0.15)  # rad: rotation vector of the far flange relative to the end of the sketch


def build(pieces: int = ELBOWS) -> cd.Mechanism:
    """A square wave along the axes that starts at the first flange and does not reach the other."""
    if pieces < FEWEST:
        raise cd.ModelError(f"the chain has {pieces} elbows; it must have {FEWEST} or more")
    m = cd.Mechanism("bent_chain")
    directions = np.array([WAVE[k % len(WAVE)] for k in range(pieces + 1)])
    corner = ARM * directions[0]
    end = m.ground.frame((0, 0, 0), z=directions[0], x=X)
    for k in range(pieces):
        incoming, outgoing = directions[k], directions[k + 1]
        axes = np.column_stack([incoming, outgoing, np.cross(incoming, outgoing)])
        piece = m.body(f"piece_{k + 1}", position=corner, orientation=euler.from_matrix(axes))
        _draw(piece)
        m.revolute(f"swivel_{k + 1}", end, piece.frame((-ARM, 0, 0), z=X, x=Z))
        end = piece.frame((0, ARM, 0), z=Y, x=Z)
        corner = corner + 2 * ARM * outgoing
    flange = corner - ARM * directions[-1] + MISSED
    axis = euler.rotate(euler.from_rotation_vector(TILTED), directions[-1])
    m.revolute(f"swivel_{pieces + 1}", end, m.ground.frame(flange, z=axis))
    for at, out in ((np.zeros(3), -directions[0]), (flange, axis)):
        rod(m.ground, at, at + 0.03 * out, 2.4 * PIPE)
        rod(m.ground, at + 0.03 * out, at + 0.2 * out, PIPE)
    return with_masses(m)


def _draw(piece: cd.Body) -> None:
    """Two pipes, a ball at the corner, and a nut at each end."""
    for end in ((-ARM, 0.0, 0.0), (0.0, ARM, 0.0)):
        rod(piece, (0, 0, 0), np.multiply(end, 0.97), PIPE)
        rod(piece, np.multiply(end, 0.82), np.multiply(end, 0.98), 1.4 * PIPE, STEEL)
    piece.attach(cd.shapes.sphere(1.25 * PIPE))


def _polyline(mechanism: cd.Mechanism, state: cd.State) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """End point and end direction of the chain, computed from the first flange and the joint angles only."""
    near = mechanism["swivel_1"].a
    t, b = np.array(near.z), np.array(near.x)
    point = np.array(near.origin)
    for k in range(len(mechanism.bodies)):
        torsion = mechanism[f"swivel_{k + 1}"].coordinate(state)
        corner = point + ARM * t
        b = cos(torsion) * b + sin(torsion) * np.cross(t, b)
        t = np.cross(b, t)
        point = corner + ARM * t
    return point, t


def check(mechanism: cd.Mechanism, result: cd.AssemblyResult) -> list[str]:
    """The polyline of the torsions ends at the far flange; there are n − 5 degrees of freedom."""
    pieces = len(mechanism.bodies)
    far = mechanism[f"swivel_{pieces + 1}"].b
    point, direction = _polyline(mechanism, result.state)
    expect("end of the chain", point, far.origin)
    expect("direction of its last arm", direction, far.z)
    found = mechanism.diagnose(result.state)
    if not found.dof == found.gruebler == pieces - 5:
        raise ExampleError(f"{pieces} elbows: {found.dof} degrees of freedom, Grübler count {found.gruebler}")
    reach = float(np.linalg.norm(point))
    return [
        f"the polyline of {pieces} joint angles ends at the far flange, {reach:.4f} m away",
        f"{pieces} elbows have {found.dof} = {pieces} − 5 degrees of freedom",
    ]
