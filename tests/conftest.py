"""Set before NumPy is loaded, here, in xdist's workers and in the processes that tests start."""

import os

# The matrices are small: a second thread of BLAS only waits, and takes the core that another test runs on.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
