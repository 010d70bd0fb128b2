"""The installed programs.

The rooms import each other by the names of their folders: ``exporter``, ``lustre``. A program puts the folder that has
them before all others on its path, so packages of other distributions with these names change nothing.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path


def lustre_exporter() -> int:
    """The command ``lustre-exporter``."""
    return _run("exporter.__main__")


def tierd() -> int:
    """The command ``tierd``."""
    return _run("tierd.__main__")


def tierctl() -> int:
    """The command ``tierctl``."""
    return _run("tierd.cli.tierctl")


def _run(module: str) -> int:
    room = find_spec("lustre_tierd.lustre")
    if room is None or not room.submodule_search_locations:
        raise ModuleNotFoundError("lustre_tierd.lustre")
    sys.path.insert(0, str(Path(room.submodule_search_locations[0]).parent))
    code: int = import_module(module).main()
    return code
