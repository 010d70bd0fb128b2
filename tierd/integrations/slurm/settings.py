"""Settings of ``[sense.slurm]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Gt

from tierd.config.sense import asks_http


@dataclass(frozen=True)
class SlurmSettings:
    """Where names, users, accounts and partitions of jobs come from. Without it, tierd shows job ids only."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    source: Literal["", "squeue", "sacct", "slurmrestd"] = ""
    """``squeue`` and ``sacct`` run the program of this node with ``--json`` (Slurm 21.08 and newer; ``sacct`` needs
    slurmdbd). ``slurmrestd`` requests ``url``. Empty: Slurm is not used."""
    url: str = ""
    """``https://slurm01:6820/slurm/v0.0.41/jobs``, with the version of an API that this slurmrestd has."""
    user: str = ""
    """User of the token."""
    token_file: str = ""
    """File with a JSON web token (``scontrol token``). It is read for every request."""
    ca_file: str = ""
    """CA certificates (PEM) for the server's certificate; empty: the system's certificates."""
    job_id: str = r"(\d+)(?:_(?:\d+|\[\]))?"
    """Regular expression for a whole job id of Lustre. Its first group is the number of Slurm's job. For
    ``jobid_name=%e.%j``: ``.+\\.(\\d+)``. A task of an array may be ``1234_7``; ``1234_[]`` is tierd's name for all."""
    refresh_seconds: Annotated[float, Ge(5)] = 60.0
    timeout_seconds: Annotated[float, Gt(0)] = 20.0
    max_bytes: Annotated[int, Gt(0)] = 64 << 20
    """Maximum length of an answer; a longer one is refused. ``sacct`` gives only the jobs that tierd shows."""


def validated(settings: SlurmSettings) -> SlurmSettings:
    """The settings. Raises ValueError for an invalid URL or expression."""
    if settings.source == "slurmrestd" and not asks_http(settings.url):
        raise ValueError("url: give the whole address: https://slurm01:6820/slurm/v0.0.41/jobs")
    if settings.url and settings.source != "slurmrestd":
        raise ValueError('url: it is used with source = "slurmrestd" only')
    try:
        groups = re.compile(settings.job_id).groups
    except re.error as error:
        raise ValueError(f"job_id: {error}") from None
    if groups < 1:
        raise ValueError(r"job_id: put the number of the job into a group: .+\.(\d+)")
    return settings
