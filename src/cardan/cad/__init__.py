"""Parts from CAD: STEP files in and out, joints proposed from their faces, assemblies of CadQuery.

load_step           an Assembly of Parts: names, colours, placements, faces to pick
propose_joints      joints that the faces of an assembly suggest, each with a reason
save_step           the parts of an assembly in the poses of a state
solve_cadquery      solves an assembly of CadQuery; from_cadquery makes a mechanism of it

Reading and writing STEP files needs the extra ``cad`` (cadquery-ocp); solve_cadquery needs CadQuery.
"""

from __future__ import annotations

from cardan.cad.cadquery import from_cadquery, solve_cadquery
from cardan.cad.parts import Assembly, Edge, Face, Part, Picks
from cardan.cad.proposals import Proposal, propose_joints
from cardan.cad.step import load_step, save_step

__all__ = [
    "Assembly",
    "Edge",
    "Face",
    "Part",
    "Picks",
    "Proposal",
    "from_cadquery",
    "load_step",
    "propose_joints",
    "save_step",
    "solve_cadquery",
]
