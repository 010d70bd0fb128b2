"""The commands of tierctl, one module for each group. Those of a part with a folder of its own are in its ``command``.

``add`` of a module defines its command line, and with ``set_defaults`` the function that executes the command.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from tierd import extensions
from tierd.integrations import registry

MODULES: dict[str, tuple[str, ...]] = {f"tierd.{module}": commands for module, commands in {
    "cli.control": ("status", "findings", "history", "pause", "drain", "resume", "apply", "decline", "undo",
                    "movers", "readers"),
    "cli.top": ("top",), "cli.explain": ("explain", "advise", "plan", "report"),
    "cli.orders": ("promote", "demote", "stages", "drain-target"), "cli.submit": ("submit",),
    "cli.layout": ("layout",),
    "cli.simulate": ("simulate", "evaluate"), "cli.completion": ("completion",),
    **{f"integrations.{name}.command": commands for name, commands in registry.COMMANDS.items() if commands},
}.items()} | {f"{package}.command": commands for package, commands in extensions.COMMANDS.items() if commands}
"""Each module and its commands, in the order of ``tierctl --help``."""


def modules_for(command: str) -> tuple[ModuleType, ...]:
    """Import the module of a command; for an unknown word, all modules, without the simulator where it is absent.

    Some modules import the simulator, which takes half a second of processor time: too long for ``tierctl status`` on
    a node under load.
    """
    wanted = [module for module, names in MODULES.items() if command in names]
    if not wanted:
        from importlib.util import find_spec  # noqa: PLC0415 -- slow to load

        wanted = [module for module in MODULES if module != "tierd.cli.simulate" or find_spec("simulator")]
    return tuple(import_module(module) for module in wanted)
