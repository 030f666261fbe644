"""Contact points in degenerate poses; overlap volumes; pairs that are near each other."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from timing import ratio_of_cpu  # noqa: F401
