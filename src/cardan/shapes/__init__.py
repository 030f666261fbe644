"""Shapes for ``body.attach``: solids with exact mass properties, and meshes.  Lengths in metres.

Every shape is in its own axes; ``body.attach(shape, frame=…)`` places it.  Shapes are immutable and compare by value.
"""

from cardan.shapes.makers import box, cylinder, extrusion, gear, link, plate, revolution, sphere, tube
from cardan.shapes.mesh import Mesh, mesh
from cardan.shapes.shape import Properties, Shape, Triangles
from cardan.shapes.threads import thread

__all__ = [
    "Mesh",
    "Properties",
    "Shape",
    "Triangles",
    "box",
    "cylinder",
    "extrusion",
    "gear",
    "link",
    "mesh",
    "plate",
    "revolution",
    "sphere",
    "thread",
    "tube",
]
