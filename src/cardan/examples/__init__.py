"""The gallery: mechanisms that show what the library can do, and say so in facts that are checked.

A new example is one module with an ``EXAMPLE``, and its name in the tuple below.
"""

from cardan.examples import bent_chain, bricard, planar_4r, rsur, slider_crank, stewart_distance, stewart_ups
from cardan.examples.registry import Example, ExampleError
from cardan.examples.starts import random_start

REGISTRY: dict[str, Example] = {
    module.EXAMPLE.name: module.EXAMPLE
    for module in (planar_4r, rsur, slider_crank, stewart_distance, stewart_ups, bent_chain, bricard)
}

__all__ = ["REGISTRY", "Example", "ExampleError", "random_start"]
