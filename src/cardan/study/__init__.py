"""Numerical studies: repetitions of published experiments, compared with the published results."""
