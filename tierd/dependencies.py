"""The packages that tierd needs and the exporter does not: the extra ``tierd`` of setup.cfg."""

from __future__ import annotations

PACKAGES = frozenset({
    "annotated_types", "jinja2", "markdown_it", "msgspec", "numpy", "pydantic", "rich", "shtab", "urllib3"})
"""By the names under which they are imported."""
CLUSTER_PACKAGES = frozenset({"nats", "nkeys"})
"""Packages of the extra ``cluster``, which only several nodes need."""
NOT_INSTALLED = 2
"""The exit status of a program that lacks one of them."""


def report_missing(program: str, error: ModuleNotFoundError) -> int:
    """Print in one line what to install. Returns the exit status.

    If the missing module does not belong to the extra, the error is a defect and is raised again.
    """
    from lustre.journald import complain  # noqa: PLC0415 -- tierctl starts faster without logging

    if error.name in CLUSTER_PACKAGES:
        complain(f"{program}: {error.name} is not installed. A cluster needs it: "
                 "pip install '.[cluster]' in the source")
    elif (error.name or "").partition(".")[0] == "simulator":
        complain(f"{program}: simulate and evaluate need the simulator, which is only in a checkout of the source")
    elif error.name in PACKAGES:
        complain(f"{program}: {error.name} is not installed. This installation has the exporter alone;"
                 " for tierd and tierctl: pip install '.[tierd]' in the source")
    else:
        raise error
    return NOT_INSTALLED
