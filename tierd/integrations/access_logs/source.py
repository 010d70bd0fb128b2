"""Access logs as an integration. Its setting is a pattern: ``access_logs = "/dev/lustre-access-log/*"``."""

from __future__ import annotations

from dataclasses import dataclass

from lustre.access_log import AccessLogDevice
from lustre.filesystem import Filesystem
from tierd.integrations.access_logs.logs import AccessLogs, HotFiles
from tierd.integrations.protocol import Integration, Site, Source
from tierd.model import DirectoryActivity
from tierd.sense.freshness import SourceAge


@dataclass
class AccessLogSource(Source):
    """Recent reads of files, and hot files that no changelog record named."""

    logs: AccessLogs
    hot_files: HotFiles

    @property
    def age(self) -> SourceAge:
        """The logs with the time of the last entries."""
        return self.logs.age

    def refresh(self) -> None:
        """Read new entries."""
        self.logs.read()

    def enriched(self, activities: list[DirectoryActivity], filesystem: Filesystem) -> list[DirectoryActivity]:
        """Activities with the recent reads of each file."""
        return self.hot_files.with_recent_reads(activities, filesystem)

    def close(self) -> None:
        """Close all logs."""
        self.logs.close()


def start(pattern: str, site: Site) -> AccessLogSource:
    """The logs of this node."""
    logs = AccessLogs(pattern, AccessLogDevice, site.clock, site.stale_seconds)
    return AccessLogSource(logs, HotFiles(logs, site.flash_pools, site.clock))


INTEGRATION = Integration(settings=str, defaults="", configured=bool, start=start)
