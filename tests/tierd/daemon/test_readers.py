"""tierd with readers of changelogs in place of the changelogs: it finds and cures as before, and waits while blind.

The readers run over the simulated file system in virtual time. Their tallies go through memory, as on the wire.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from tests.tierd.site import Clearing, Site, altered
from tierd.act.journal.writer import Journal
from tierd.cluster.connection import BrokerError
from tierd.cluster.reader import MdtReader
from tierd.cluster.tallies import decode
from tierd.config.settings import ReaderSettings
from tierd.sense.changelogs.table import ActivityTable
from tierd.sense.changelogs.tallies import TallyLimits
from tierd.sense.changelogs.tally_source import Position, ReaderState, ReceivedTally
from tierd.sense.own_moves import OwnMoves
from tierd.simulation.world import VirtualClock

MDTS = ("MDT0000", "MDT0001")
SETTINGS = ReaderSettings(enabled=True)


@dataclass
class Post:
    """Between readers and leader: an inbox, and the positions that readers see. A stand-in for NATS."""

    site: Site
    coming: deque[bytes] = field(default_factory=deque)
    unconfirmed: dict[int, ReceivedTally] = field(default_factory=dict)
    positions: dict[str, Position] = field(default_factory=dict)
    copied: dict[str, int] = field(default_factory=dict)
    """Positions in the journal of a standby."""
    copies: bool = True

    def receive(self) -> Sequence[ReceivedTally]:
        found = [ReceivedTally(decode(data), object()) for data in self.coming]
        self.coming.clear()
        self.unconfirmed.update({id(each): each for each in found})
        return found

    def confirm(self, done: Sequence[ReceivedTally]) -> None:
        for each in done:
            del self.unconfirmed[id(each)]

    def announce(self, positions: Mapping[str, Position]) -> None:
        copied = {mdt: self.copied.get(mdt, 0) for mdt in positions}
        assert copied == {mdt: each.index for mdt, each in positions.items()}
        self.positions.update(positions)

    def readers(self) -> Sequence[ReaderState]:
        return [ReaderState("r1", "host1", 1.0, 2.0, {mdt: each.index for mdt, each in self.positions.items()})]

    # as tierd.cluster.leader.Candidate

    def attach(self, journal: Journal, *_: object) -> None:
        """Moves stay in this process."""
        def publish() -> None:
            if not self.copies:
                raise BrokerError(None, "the disk of NATS is full")
            self.copied.update(journal.positions())

        journal.publish = publish

    def detach(self) -> None:
        """There is nothing to publish."""

    def tally_inbox(self, _: object) -> Post:
        return self


class WithReaders:
    """A site whose changelogs are read by readers, which take a step before each cycle."""

    def __init__(self, site: Site) -> None:
        site.service.close()
        self.site = site
        self.post = Post(site)
        clock = VirtualClock(site.cluster)
        site.peers, site.settings = self.post, altered(site.settings, reader=SETTINGS)
        site.start()
        self.readers = {mdt: self._reader(mdt, clock) for mdt in MDTS}

    def _reader(self, mdt: str, clock: VirtualClock) -> MdtReader:
        filesystem: Clearing = self.site.filesystem

        def make_table() -> ActivityTable:
            return ActivityTable(filesystem.path_of, is_echo=OwnMoves(self.site.settings.own_jobs),
                                 tallies=TallyLimits())

        user = {"MDT0000": "cl1"}.get(mdt, "")
        return MdtReader(mdt, "r1", filesystem.changelog, filesystem.clear_changelog, user, make_table, SETTINGS,
                         clock, clock.now)

    def run(self, until: float, only: Sequence[str] = MDTS) -> None:
        while self.site.cluster.now < until:
            self.site.cluster.advance(5)
            for mdt in only:
                if mdt in self.post.positions:
                    self.readers[mdt].step(1, self.post.positions[mdt],
                                           lambda window: self.post.coming.append(window.data))
            self.site.service.cycle()


@pytest.fixture
def with_readers(site: Site) -> WithReaders:
    return WithReaders(site)


def test_tierd_relieves_a_noisy_neighbour_with_the_tallies_of_readers(with_readers) -> None:
    site = with_readers.site
    with_readers.run(until=100)
    assert [sentence for sentence in site.said if "/proj/ingest" in sentence and "default layout" in sentence]
    index = site.service.journal.positions()["MDT0000"]
    assert 0 < site.filesystem.cleared["MDT0000", "cl1"] <= index
    assert "MDT0001" not in {mdt for mdt, _ in site.filesystem.cleared}
    text = site.shown("readers")
    assert re.search(rf"MDT0000  r1 +{index} ", text)
    assert "r1 on host1: reads MDT0000, MDT0001" in text
    _, metrics = site.fetched("/metrics")
    assert re.search(r"tierd_reader_tallies_total\{[^}]*duplicate[^}]*\} 0\.0", metrics)
    assert 'tierd_readers{fs="lustre"} 1.0' in metrics
    assert 'tierd_reader_tallies_total{fs="lustre",outcome="added"}' in metrics
    assert 'tierd_reader_problem{fs="lustre",mdt="MDT0001"} 0.0' in metrics
    assert 'tierd_source_age_seconds{fs="lustre",source="readers"}' in metrics


def test_an_mdt_without_a_reader_makes_tierd_blind_until_one_reads_it(with_readers) -> None:
    site = with_readers.site
    with_readers.run(until=20)
    with_readers.run(until=70, only=["MDT0001"])
    assert "no reader has sent a tally" in site.service.daemon.faults["changelog"]
    assert not [sentence for sentence in site.said if "default layout" in sentence and "/proj/ingest" in sentence]
    with_readers.run(until=160)
    assert "changelog" not in site.service.daemon.faults
    assert [sentence for sentence in site.said if "default layout" in sentence and "/proj/ingest" in sentence]


def test_a_restart_continues_at_the_position_of_the_journal(with_readers) -> None:
    with_readers.run(until=60)
    before = with_readers.site.service.journal.positions()
    again = WithReaders(with_readers.site)
    again.run(until=80)
    after = again.site.service.journal.positions()
    assert after["MDT0000"] > before["MDT0000"]
    assert again.post.unconfirmed == {}


def test_what_a_standby_does_not_have_is_not_cleared(with_readers) -> None:
    """It would begin before the records that are left, and their counts would be lost."""
    site, post = with_readers.site, with_readers.post
    with_readers.run(until=60)
    cleared, post.copies = site.filesystem.cleared["MDT0000", "cl1"], False
    with_readers.run(until=90)
    assert site.filesystem.cleared["MDT0000", "cl1"] <= post.copied["MDT0000"]
    assert site.service.journal.positions()["MDT0000"] > post.copied["MDT0000"]
    post.copies = True
    with_readers.run(until=120)
    assert site.filesystem.cleared["MDT0000", "cl1"] > cleared
    assert "changelog" not in site.service.daemon.faults


