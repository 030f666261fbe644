"""Tables of the formulations, of their verdict, and of the spring step on several threads."""

from __future__ import annotations

from cardan.kernel.table import Address, Float, Int, Piece, Ref, Table, Within, Workspace
from cardan.solvers.tables import Control, Structure
from cardan.system.tables import SystemTable


class Place(Table):
    """A group of constraints in the spring step on several threads."""

    ints: Int  # where its table of integers begins
    members: Int  # where the numbers of its bodies begin
    bodies: Int  # number of them
    constraint: Int  # offset of its first constraint in the structure
    constraints: Int  # number of them
    row: Int  # its first row
    entry: Int  # and its first entry of J


class Pull(Table):
    """A constraint on a body, in the spring step on several threads."""

    constraint: Int  # its offset in the structure
    slot: Int


class Springs(Table):
    """What a thread of the spring step reads and writes."""

    evaluator: Address
    floats: Ref[Float]  # of the system
    structure: Ref[Structure]
    scales: Ref[Float]
    control: Ref[Control]
    parts: Ref[Int]  # tables of the groups of constraints
    places: Ref[Place]  # of these groups
    members: Ref[Int]  # numbers of their bodies
    header: Ref[Int]  # of a table without constraints, of this thread
    starts: Ref[Int]  # where the constraints of each body begin, and their end
    pulls: Ref[Pull]
    r: Ref[Float]
    jacobian: Ref[Float]
    sums: Ref[Float]  # of the groups of constraints
    direction: Ref[Float]
    step: Ref[Float]
    bound: Ref[Float]
    slopes: Ref[Float]  # of the groups of bodies


class Bounds(Table):
    """Bounds of a verdict."""

    tolerance: Float
    of_lengths: Float  # tolerance on lengths, relative to the length
    rounding: Float  # of a coordinate, relative to its size
    rounding_least: Float  # relative to the length
    rounding_most: Float  # that is accepted, relative to the length
    resolved: Float  # the same: with more rounding, parts cannot be told apart, and are never assembled
    length: Float  # [m] that a piece is judged by


class Verdict(Table):
    """The residual that is largest in relation to its bound."""

    residual: Float  # scaled: lengths by the length of the bounds
    bound: Float


class Judged(Table):
    """What is judged: a problem on the manifold, and how its poses are returned."""

    evaluator: Address
    ints: Ref[Int]
    floats: Ref[Float]
    powers: Ref[Int]  # of length, of each row
    frames: Ref[Float]  # reference frames of the bodies
    origin: Ref[Float]  # of the solver coordinates
    frames_size: Int  # floats of all frames
    bodies: Int
    variables: Int
    angles: Int  # counted ones
    rows: Int
    pieces: Int[...]  # offsets of the pieces of the workspace, and of their end


class JudgeWork(Workspace):
    """Workspace of a verdict in kernels."""

    poses: Piece  # of the body origins
    shifted: Piece  # the same in solver coordinates
    moved: Piece
    zeros: Piece  # a step
    residuals: Piece
    evaluation: Piece  # of the evaluator


class Limb(Table):
    """A body in a spanning tree, with the joint that connects it with its parent; parents are first."""

    body: Int
    parent: Int  # body, −1: the ground
    translations: Int  # number of them; of a motion of the user's own, number of coordinates
    rotation: Int  # STILL, ABOUT_Z, CROSSED, ANYHOW or BY_USER
    coordinate: Int  # its first coordinate
    unknown: Int  # its first unknown
    floats: Int  # where its floats begin
    ref: Int  # body, −1: the ground
    counted: Int  # ± (1 + number of the counted angle that the angle about z is, as its sign says), 0: none
    kernel: Address  # of a motion of the user's own, 0: none
    numbers: Int  # and where its floats begin


class LimbFloats(Table):
    """Frames of a joint on its two bodies."""

    c_parent: Float[4]  # c_ij, a quaternion
    s_parent: Float[3]  # s_ij [m]
    c_body: Float[4]
    s_body: Float[3]
    pitch: Float  # [m/rad]


class Search(Table):
    """A coordinate of a motion of the user's own, when a pose is given."""

    low: Float
    high: Float
    tried: Float  # how many values between these


class MotionFloats(Table):
    """Floats of a motion of the user's own; its parameters follow."""

    weight: Float  # one over a length [1/m]
    search: Search[...]  # one per coordinate


class OnPath(Table):
    """A body on the path of a cut constraint."""

    limb: Int  # offset of its limb in the tree
    parent: Int  # place of the parent on the path, −1: above it
    ref: Int  # place of ref on the path, −1: above it
    column: Int


class Cut(Table):
    """A constraint that closes loops; its path follows the places of its slots."""

    record: Int  # offset in the system
    length: Int  # of the path
    start: Int  # its first entry of J
    stride: Int  # entries of a row
    viewer: Int  # body that the features are taken relative to, −1: the ground
    places: Int[...]  # of each slot's body on the path, −1: above it


class TreeTable(Table):
    """Header of the integers of the relative formulations."""

    limbs: Within[Limb]
    cuts: Within[Cut]
    system: Within[SystemTable]
    cut_count: Int
    euler: Int  # ≠ 0: Euler parameters with a normalisation row each, unknowns are changes of coordinates
    norms: Int  # first normalisation row
    norm_entries: Int  # and its first Jacobian entry
    coordinates: Int  # number of them
    pieces: Int[8]  # offsets of the pieces of the workspace, and of their end


class TreeWork(Workspace):
    """Workspace of the relative formulations."""

    poses: Piece
    frames: Piece  # a JointFrame for each body
    new: Piece  # poses after a step
    wrenches: Piece  # a Wrench for each row and each body of a path
    scratch: Piece  # Scratch, or MotionScratch where there are motions of the user's own
    world: Piece  # features of one constraint, in world
    shared: Piece  # of the kernels that all formulations share


class JointFrame(Table):
    """Frame of a joint on the parent."""

    axes: Float[9]  # as columns, row by row
    scale: Float  # |p|² of the parent, one but for Euler parameters off the unit sphere
    anchor: Float[3]  # c_k: where the joint's displacement ends, in world [m]


class Wrench(Table):
    """What one row does to one body of a path."""

    force: Float[3]  # F = Σ∂f/∂P
    moment: Float[3]  # M about c_k
    dilation: Float  # Σ∂f/∂P·(P − c_k), which Euler parameters off the unit sphere cause


class Scratch(Table):
    """Floats that placing a body takes."""

    orientation: Float[4]  # of the joint's frame on the parent
    position: Float[3]
    first: Float[4]
    second: Float[4]
    target: Float[4]  # orientation of the body


class MotionScratch(Scratch):
    """The same with motions of the user's own."""

    motion: Float[12]  # A″ row by row and d″
    partials: Float[60]  # their derivatives, row by row
    wanted: Float[12]  # A″ and d″ that are searched for
    normal: Float[25]  # JᵀJ
    right: Float[5]  # −Jᵀe and the step
    trial: Float[5]  # and where it leads
