"""The compiler's side of the library: tables that kernels share, memory, machine code and its cache.

:mod:`~cardan.kernel.table` declares tables and needs no Numba.  :mod:`~cardan.kernel.jit` compiles kernels,
:mod:`~cardan.kernel.memory` has pointers and calls by address, :mod:`~cardan.kernel.fields` lets kernels read tables,
:mod:`~cardan.kernel.cache` keeps machine code on disk.
"""
