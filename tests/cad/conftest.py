"""Without OCP (extra ``cad``), none of these tests is collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("OCP") else ["test_*.py"]
