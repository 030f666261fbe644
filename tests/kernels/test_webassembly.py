"""The modules of WebAssembly that pages have."""

from __future__ import annotations

import zipfile

import pytest

from cardan.kernel import built
from kernels import emit, webassembly

pytestmark = pytest.mark.skipif(not built.WEBASSEMBLY.is_file(), reason="the kernels are not built: make kernels")
MEMORY = {"__linear_memory", "__indirect_function_table", "__stack_pointer"}


def modules() -> dict[str, bytes]:
    with zipfile.ZipFile(built.WEBASSEMBLY) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_each_module_exports_its_kernel_and_imports_libm_and_memory_alone():
    found = modules()
    assert "cardan.interact._kinematic._cycle" in found
    for key, data in found.items():
        assert data.startswith(webassembly.MAGIC), key
        assert webassembly.exports(data) == ["run"], key
        assert set(webassembly.imports(data)) <= MEMORY | emit.MATHS, key


def test_archives_of_equal_kernels_are_equal(tmp_path):
    """They have no times, and are sorted."""
    with zipfile.ZipFile(built.WEBASSEMBLY) as archive:
        names = [info.filename for info in archive.infolist()]
        assert names == sorted(names)
        assert {info.date_time for info in archive.infolist()} == {webassembly.DATE}


@pytest.mark.parametrize("value", [0, 1, 127, 128, 300, 65535, 1 << 31])
def test_numbers_are_read_as_they_are_written(value):
    data = webassembly.number_as_bytes(value)
    assert webassembly.number(data, 0) == (value, len(data))


def test_an_object_with_data_is_refused():
    """Its addresses would need a linker."""
    section = bytes([webassembly.DATA, 1, 0])
    linking = bytes([7]) + b"linking" + bytes([2, webassembly.SYMBOLS, 6, 1, webassembly.FUNCTION, 0, 0, 1]) + b"f"
    data = webassembly.MAGIC + section + bytes([webassembly.CUSTOM, len(linking)]) + linking
    with pytest.raises(ValueError, match=r"needs? a linker"):
        webassembly.module(data, "f")
