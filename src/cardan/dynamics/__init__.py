"""Equations of motion: masses, loads, linear algebra, integrators.  Knows systems, nothing of Mechanism."""
