"""Shapes for ``body.attach``: solids with exact mass properties, and meshes.  Lengths in metres.

Every shape is in its own axes; ``body.attach(shape, frame=…)`` places it.  Shapes are immutable and compare by value.
Each function that makes one is an attribute of this package; the stub has their types.
"""

from cardan.shapes import gears, solids, threads  # noqa: F401  (they register their shapes)
from cardan.shapes.mesh import Mesh
from cardan.shapes.registry import MAKERS
from cardan.shapes.shape import Properties, Shape, Triangles

globals().update(MAKERS)
__all__ = ["Mesh", "Properties", "Shape", "Triangles"]
__all__ += [name for name in MAKERS if name not in __all__]
