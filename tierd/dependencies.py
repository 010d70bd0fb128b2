"""The packages that tierd needs and the exporter does not: the extra ``tierd`` of setup.cfg."""

from __future__ import annotations

import sys

PACKAGES = frozenset({
    "annotated_types", "jinja2", "markdown_it", "msgspec", "numpy", "pydantic", "rich", "shtab", "textual", "urllib3"})
"""By the names under which they are imported."""
CLUSTER_PACKAGES = frozenset({"nats", "nkeys"})
"""Packages of the extra ``cluster``, which only several nodes need."""
NOT_INSTALLED = 2
"""The exit status of a program that lacks one of them."""


def report_missing(program: str, error: ModuleNotFoundError) -> int:
    """Print in one line what to install. Returns the exit status.

    If the missing module does not belong to the extra, the error is a defect and is raised again.
    """
    if error.name in CLUSTER_PACKAGES:
        sys.stderr.write(f"{program}: {error.name} is not installed. A cluster needs it: "
                         "pip install '.[cluster]' in the source\n")
        return NOT_INSTALLED
    if (error.name or "").partition(".")[0] == "simulator":
        sys.stderr.write(f"{program}: simulate and evaluate need the simulator, which is only in a checkout of the"
                         " source\n")
        return NOT_INSTALLED
    if error.name not in PACKAGES:
        raise error
    sys.stderr.write(f"{program}: {error.name} is not installed. This installation has the exporter alone;"
                     " for tierd and tierctl: pip install '.[tierd]' in the source\n")
    return NOT_INSTALLED
