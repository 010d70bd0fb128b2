"""robinhood as an integration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lustre.filesystem import Filesystem
from tierd.integrations.protocol import Integration, Site, Source
from tierd.integrations.robinhood.database import MySqlConnection, Robinhood, RobinhoodSettings
from tierd.model import DirectoryActivity
from tierd.sense.freshness import SourceAge


@dataclass
class RobinhoodSource(Source):
    """Files that robinhood's database has for directories of findings."""

    database: Robinhood

    @property
    def age(self) -> SourceAge:
        """The database with the age of its rows."""
        return self.database.age

    def refresh(self) -> None:
        """Check the age of the database if that is due."""
        if self.database.due():
            self.database.check()

    def enriched(self, activities: list[DirectoryActivity], filesystem: Filesystem) -> list[DirectoryActivity]:
        """Activities with files that no changelog record named."""
        return [self._completed(activity, filesystem) for activity in activities]

    def _completed(self, activity: DirectoryActivity, filesystem: Filesystem) -> DirectoryActivity:
        if not activity.directory.startswith("/"):
            return activity
        try:
            return self.database.completed(activity, filesystem.status(activity.directory).fid)
        except OSError:
            return activity

    def coldest_first(self, directory: str, filesystem: Filesystem) -> Sequence[str]:
        """Names in a directory, the longest unused first."""
        try:
            return self.database.coldest_first(filesystem.status(directory).fid)
        except OSError:
            return ()

    def close(self) -> None:
        """Close the connection."""
        self.database.close()


def start(settings: RobinhoodSettings, site: Site) -> RobinhoodSource:
    """The database as a source."""
    return RobinhoodSource(Robinhood(settings, lambda: MySqlConnection(settings, site.environment), site.clock))


def contradictions(settings: RobinhoodSettings) -> Iterator[tuple[str, str]]:
    """A user of the database without a password, and an address that is not used."""
    local = bool(settings.socket) or settings.host in {"localhost", "127.0.0.1", "::1"}
    if not (local or settings.password_file or settings.password_env):
        yield "user", f"the user {settings.user!r} has no password: set password_file"
    if settings.socket and settings.host != "localhost":
        yield "host", "robinhood.socket is used and host is ignored: remove one of the two"


INTEGRATION = Integration(
    settings=RobinhoodSettings, defaults=RobinhoodSettings(), configured=lambda settings: bool(settings.database),
    start=start, contradictions=contradictions)
