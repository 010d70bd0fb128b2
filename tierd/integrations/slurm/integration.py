"""Slurm as an integration."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from tierd.integrations.protocol import Integration, Site
from tierd.integrations.slurm.jobs import SlurmJobs, reader
from tierd.integrations.slurm.settings import SlurmSettings, validated


def start(settings: SlurmSettings, site: Site) -> SlurmJobs:
    """Slurm's jobs, looked up in the background."""
    return SlurmJobs(settings, reader(settings, site.environment), site.clock)


INTEGRATION = Integration(
    settings=Annotated[SlurmSettings, AfterValidator(validated)], defaults=SlurmSettings(),
    configured=lambda settings: bool(settings.source), start=start)
