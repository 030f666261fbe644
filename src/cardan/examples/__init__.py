"""The gallery: example mechanisms, each with facts that are checked against closed-form results.

To add an example, write a module that defines ``EXAMPLE`` and add the module to the tuple below.
"""

from cardan.examples import (
    bent_chain,
    bricard,
    cardan_joint,
    delta_robot,
    differential,
    double_cardan,
    five_bar,
    folding_table,
    four_cylinder,
    hoberman_ring,
    indexing_table,
    jansen_leg,
    lead_screw,
    peaucellier,
    planar_4r,
    planetary_gear,
    rsur,
    scissor_lift,
    slider_crank,
    stewart_distance,
    stewart_ups,
    strandbeest,
    watt,
)
from cardan.examples.registry import Example, ExampleError
from cardan.examples.starts import random_start

REGISTRY: dict[str, Example] = {
    module.EXAMPLE.name: module.EXAMPLE
    for module in (
        planar_4r,
        rsur,
        slider_crank,
        stewart_distance,
        stewart_ups,
        bent_chain,
        bricard,
        watt,
        peaucellier,
        five_bar,
        scissor_lift,
        hoberman_ring,
        jansen_leg,
        four_cylinder,
        cardan_joint,
        double_cardan,
        planetary_gear,
        differential,
        lead_screw,
        indexing_table,
        folding_table,
        delta_robot,
        strandbeest,
    )
}

__all__ = ["REGISTRY", "Example", "ExampleError", "random_start"]
