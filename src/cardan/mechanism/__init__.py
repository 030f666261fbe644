"""Mechanism: the public interface; one module for each part of it."""

from cardan.mechanism.mechanism import Mechanism

__all__ = ["Mechanism"]
