"""The scripts of the gallery: each makes a model file of ``cardan.examples``, and checks facts of its mechanism.

A script has ``build()``, ``check(mechanism, result)`` and, if the mechanism is driven, ``motion(mechanism, state)`` and
DURATION [s].  ``check`` and ``motion`` return the facts that they verified, one sentence each, or raise ExampleError.
``python -m gallery [NAME ...]`` writes the files anew.
Bodies for which a script gives no mass get one from ``masses.with_masses``, so that every example can be simulated.
"""
