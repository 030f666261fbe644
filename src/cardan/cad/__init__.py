"""Parts from CAD: STEP files in and out, joints proposed from their faces, assemblies of CadQuery and
build123d.

load_step           an Assembly of Parts: names, colours, placements, faces to pick
propose_joints      joints that the faces of an assembly suggest, each with a reason
Draft               accepts, refuses and diagnoses them; makes joints of picked faces; saves a model file
save_step           the parts of an assembly in the poses of a state
solve_cadquery      solves an assembly of CadQuery; from_cadquery makes a mechanism of it
solve_build123d     closes the joints of build123d together; from_build123d makes a mechanism of them

Reading and writing STEP files needs the extra ``cad`` (cadquery-ocp); solve_cadquery needs CadQuery,
solve_build123d needs build123d.
"""

from __future__ import annotations

from cardan.cad.build123d import from_build123d, solve_build123d
from cardan.cad.cadquery import from_cadquery, solve_cadquery
from cardan.cad.draft import Draft, kinds_of
from cardan.cad.parts import Assembly, Part
from cardan.cad.picks import Edge, Face, Picks
from cardan.cad.proposals import Proposal, propose_joints
from cardan.cad.step import load_step, save_step

__all__ = [
    "Assembly",
    "Draft",
    "Edge",
    "Face",
    "Part",
    "Picks",
    "Proposal",
    "from_build123d",
    "from_cadquery",
    "kinds_of",
    "load_step",
    "propose_joints",
    "save_step",
    "solve_build123d",
    "solve_cadquery",
]
