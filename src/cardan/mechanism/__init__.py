"""Mechanism: the public interface; Model: its data and edits, with one module for each kind of edit."""

from cardan.mechanism.mechanism import Mechanism

__all__ = ["Mechanism"]
