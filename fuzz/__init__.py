"""Random mechanisms with an independent judge; see :mod:`fuzz.run`."""
