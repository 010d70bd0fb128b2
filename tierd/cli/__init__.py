"""The commands of tierctl: one module for each group of them.

``add`` of a module makes its command line, ``run`` does the work.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

MODULES = {
    "control": ("status", "findings", "history", "pause", "drain", "resume", "undo"),
    "top": ("top",), "explain": ("explain", "advise", "plan"), "orders": ("promote", "demote"),
    "submit": ("submit",), "report": ("report",), "layout": ("layout",), "simulate": ("simulate", "evaluate"),
}
"""Module to the commands it adds, in the order ``tierctl --help`` shows them."""


def modules_for(command: str) -> tuple[ModuleType, ...]:
    """The module of one command; all modules for a word that is no command.

    Some modules bring the simulator with them, which takes half a second of processor time to import: far too long for
    ``tierctl status`` on a node under load.
    """
    wanted = [module for module, names in MODULES.items() if command in names] or list(MODULES)
    return tuple(import_module(f"tierd.cli.{module}") for module in wanted)
