"""Build hook: the wheel and `pip install .` carry the page of the workbench, where it can be built."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is there only while a wheel is built
    """Builds src/cardan/view/page.html.  The library works without it; `cardan view` then says what is missing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
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
