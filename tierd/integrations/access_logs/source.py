"""Access logs as an integration. Its setting is a pattern: ``access_logs = "/dev/lustre-access-log/*"``."""

from __future__ import annotations

from lustre.access_log import AccessLogDevice
from tierd.integrations.access_logs.logs import AccessLogs, HotFiles
from tierd.integrations.protocol import Integration, Site


def start(pattern: str, site: Site) -> HotFiles:
    logs = AccessLogs(pattern, AccessLogDevice, site.clock, site.stale_seconds)
    return HotFiles(logs, site.flash_pools, site.clock)


INTEGRATION = Integration(settings=str, defaults="", configured=bool, start=start)
