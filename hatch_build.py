"""Build hook: the wheel and `pip install .`, also with -e, carry the generated kernels of the primitives, and the page
of the workbench where it can be built."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MadeHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is there only while a wheel is built
    """Makes src/cardan/constraints/_generated.py and src/cardan/view/page.html."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.make_kernels()
        self.make_page()

    def make_kernels(self) -> None:
        """Generate the kernels of the primitives; this part of the library needs Python alone."""
        sys.path.insert(0, str(Path(self.root) / "src"))
        try:
            from cardan.constraints import codegen

            codegen.write()
        finally:
            del sys.path[0]

    def make_page(self) -> None:
        """Build the page.  The library works without it; `cardan view` then says what is missing."""
        path = Path(self.root) / "client" / "build.py"
        if not path.is_file():
            return
        spec = importlib.util.spec_from_file_location("client_build", path)
        assert spec is not None and spec.loader is not None
        client = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(client)
        try:
            client.build()
        except (client.BuildError, OSError) as error:
            self.app.display_warning(f"the page of the workbench is not built, so `cardan view` will not work: {error}")
