"""Build hook: the wheel and `pip install .` carry the kernels as machine code; also with -e the generated sources of
the kernels of primitives, and the page of the workbench where it can be built."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def leaves_kernels_to_numba() -> bool:
    """Whether a wheel without compiled kernels is asked for."""
    return os.environ.get("CARDAN_KERNELS") == "numba"


class MadeHook(BuildHookInterface):  # type: ignore[misc]  # hatchling is there only while a wheel is built
    """Makes src/cardan/constraints/_generated.py, src/cardan/kernel/library.* and src/cardan/view/page.html."""

    def dependencies(self) -> list[str]:
        """What the build needs besides pyproject.toml: a linker, where there is no C compiler."""
        if leaves_kernels_to_numba() or self.link_module().has_compiler():
            return []
        return ["ziglang>=0.13"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.make_primitives()
        if version != "editable" and not leaves_kernels_to_numba():  # an editable install has `make kernels`
            self.make_kernels(build_data)
        self.make_page()

    def make_primitives(self) -> None:
        """Generate the kernels of the primitives; this part of the library needs Python alone."""
        sys.path.insert(0, str(Path(self.root) / "src"))
        try:
            from cardan.constraints import codegen

            codegen.write()
        finally:
            del sys.path[0]

    def make_kernels(self, build_data: dict[str, Any]) -> None:
        """Compile and link the kernels; without them the wheel is one for any machine, and needs Numba."""
        link = self.link_module()
        try:
            link.make()
        except (link.BuildError, OSError) as error:
            self.app.display_warning(f"the wheel has no compiled kernels, so it needs Numba (cardan[jit]): {error}")
            return
        build_data["artifacts"].append("src/cardan/kernel/library.*")  # not in a wheel for any machine
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{link.platform_tag()}"

    def link_module(self) -> Any:
        """The module kernels.link of this checkout."""
        sys.path.insert(0, self.root)
        try:
            return importlib.import_module("kernels.link")
        finally:
            del sys.path[0]

    def make_page(self) -> None:
        """Build the page.  The library works without it; `cardan view` then says what is missing."""
        path = Path(self.root) / "client" / "build.py"
        if not path.is_file():
            return
        spec = importlib.util.spec_from_file_location("client_build", path)
        assert spec is not None and spec.loader is not None
        client: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(client)
        try:
            client.build()
        except (client.BuildError, OSError) as error:
            self.app.display_warning(f"the page of the workbench is not built, so `cardan view` will not work: {error}")
