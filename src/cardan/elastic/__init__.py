"""Flexible bodies as numerics: modes of beams and of finite-element models; independent of mechanisms."""

from cardan.elastic.beams import beam, buckling_factor, wave_numbers
from cardan.elastic.modes import Modes, modal_data

__all__ = ["Modes", "beam", "buckling_factor", "modal_data", "wave_numbers"]
