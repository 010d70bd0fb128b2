"""The commands of tierctl, a module each: ``add`` makes the command line, ``run`` does the work."""

from __future__ import annotations

from types import ModuleType


def all_of_them() -> tuple[ModuleType, ...]:
    """In the order ``tierctl --help`` shows them. Loaded when asked for: some bring much with them."""
    from tierd.commands import (  # noqa: PLC0415
        daemon,
        evaluate,
        explain,
        layout,
        orders,
        plan,
        report,
        simulate,
        submit,
        top,
    )

    return daemon, top, explain, plan, orders, submit, report, layout, simulate, evaluate
