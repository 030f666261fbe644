"""The methods of ``Mechanism`` that add joints, couplings and loads, one for each kind.  The stub has their types."""


class Methods:
    """Empty here: :mod:`.building` adds a method for each registered kind."""
