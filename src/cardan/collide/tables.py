"""Tables of convex solids that kernels read: atoms, hulls, pairs; and what a search writes."""

from __future__ import annotations

from typing import Final

from cardan.kernel.table import Address, Float, Int, Ref, Table

CONVEX, HALF_SPACE = range(2)  # kinds of hulls
SEARCHED, TRACKED = range(2)  # how the normal was found

CELLS: Final = 1024  # of a search that wait, at the most


class Atom(Table):
    """A point (radius 0), a circle, or an arc of it; lengths in metres."""

    center: Float[3]
    radius: Float
    axis: Float[3]  # unit normal of the plane of the circle
    middle: Float[3]  # of an arc: unit vector from its centre to its middle
    cosine: Float  # of half its angle; −2: the whole circle


class Hull(Table):
    """A convex solid: the hull of atoms, grown by a radius."""

    kind: Int
    count: Int  # of atoms
    growth: Float  # ρ [m]
    reach: Float  # radius about the origin that holds all of it [m]
    atoms: Ref[Atom]


class Contact(Table):
    """The pair of two hulls: what a search starts from, and what it finds; in world axes."""

    gap: Float  # [m]
    points: Float[6]  # on a, then on b [m]
    normal: Float[3]  # from a to b
    error: Float  # the gap is at most this much larger [m]
    atoms: Float[6]  # that the points are on: three of a, three of b; −1: none
    is_known: Float  # 1: normal and atoms are those of a pose near this one, to track from
    cells: Float  # that were divided


class PairRecord(Table):
    """Two hulls of a batch."""

    a: Ref[Hull]
    b: Ref[Hull]
    body_a: Int  # numbers of their poses
    body_b: Int
    consider: Address  # functions of the search (_closest.py)
    polish: Address
    refine: Address


class Cell(Table):
    """A spherical triangle of normals, and the points of M = A − B that lie farthest along its corners."""

    normals: Float[9]
    points: Float[9]
    atoms: Float[6]  # of a and b, of each corner
    bound: Float  # H ≥ this within the cell [m]


class Search(Table):
    """State of one search, in the axes of a."""

    axes_a: Float[9]  # in world axes
    axes_b: Float[9]
    rotation: Float[9]  # axes of b in those of a
    position: Float[3]  # origin of b
    length: Float  # size of the pair [m]
    best: Float  # least H so far
    judged: Float  # that whose points were compared last
    normal: Float[3]  # and where
    value: Float  # H of the last one
    across: Float  # distance of its points across the normal [m]
    proof: Float[3]  # a point of M, far along the best normal
    weights: Float[3]  # of the corners of a cell, in its bound
    one: Float[7]  # of an atom of a: point, curvature, tangent
    other: Float[7]  # of an atom of b
    active: Float[6]  # atoms of a and of b
    trial: Float[3]  # a normal
    local: Float[3]  # a direction in the axes of b
    point: Float[3]  # of M, farthest along it
    found: Float[2]  # its atoms
    simplex: Float[18]  # points of a and b of up to three pairs
    pairs: Float[6]  # their atoms
    shares: Float[3]  # their weights
    flat: Float[6]  # their differences along u and v
    u: Float[3]  # tangents of the normal
    v: Float[3]
