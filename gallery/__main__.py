"""``python -m gallery [NAME ...]``: write the files of the gallery anew, all or some of them."""

from __future__ import annotations

import sys
from importlib import import_module

from cardan.examples import installed


def write(name: str) -> None:
    """The model file of an example; of one from CAD its STEP file too, since a model file would have its triangles."""
    script, example = import_module(f"gallery.{name}"), installed()[name]
    if hasattr(script, "tree"):
        from gallery import solids

        solids.write(example.file.with_name(f"{name}.step"), script.tree(), short=True)
    mechanism = script.build()
    if hasattr(script, "tree"):
        for body in mechanism.bodies.values():
            for attachment in body.attachments:
                body.detach(attachment)
    mechanism.save(example.file)
    print(example.file)


for name in sys.argv[1:] or installed():
    write(name)
