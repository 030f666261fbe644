"""Mechanism: the public interface, a chain of classes with one module each.

Each class adds methods to the one before it: Items, Drawing, Building, Touching, Dynamics, Mechanism.
"""

from cardan.mechanism.mechanism import Mechanism

__all__ = ["Mechanism"]
