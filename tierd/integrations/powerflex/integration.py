"""PowerFlex as an integration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator

from lustre.background import DaemonExecutor
from tierd.clock import SystemClock
from tierd.integrations.powerflex.gateway import Gateway
from tierd.integrations.powerflex.settings import PowerFlexSettings, validated
from tierd.integrations.powerflex.source import PowerFlex
from tierd.integrations.protocol import Integration, Site

if TYPE_CHECKING:
    from tierd.audit.checks import Line


def start(settings: PowerFlexSettings, site: Site) -> PowerFlex:
    """The gateway as a source, read in a thread of its own."""
    return PowerFlex(settings, site.fsname, Gateway(settings, site.clock.now), site.clock,
                     DaemonExecutor("powerflex", 1))


def audit(settings: PowerFlexSettings) -> Sequence[Line]:
    """Compare the system with the paper. Raises OSError."""
    from tierd.integrations.powerflex.audit import powerflex_lines  # noqa: PLC0415 -- of tierctl audit only

    return tuple(powerflex_lines(Gateway(settings, SystemClock().now).read()))


INTEGRATION = Integration(
    settings=Annotated[PowerFlexSettings, AfterValidator(validated)], defaults=PowerFlexSettings(),
    configured=lambda settings: bool(settings.url), start=start, audit=audit)
