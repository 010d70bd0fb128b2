"""An OST is emptied of the files of a directory, with every file intact, and a default striping set and undone."""

import os
import time
from pathlib import Path

import pytest

from lustre.creation import ObjectCreation
from lustre.layout.directory import DefaultStriping
from lustre.layout.model import Layout
from tests.acceptance.ledger import Ledger
from tests.acceptance.site import MIB, checksum, long_ago, noise
from tests.acceptance.test_gate import Tierd
from tests.acceptance.test_gate import tierd as tierd
from tierd.act.drain import Drains, Phase
from tierd.acts import ActKind, Outcome
from tierd.clock import SystemClock
from tierd.config.act import DrainSettings
from tierd.model import Action
from tierd.policies.metadata_storm import NO_LAYOUT

FILES = 60
SETTINGS = DrainSettings(scan_files_per_second=1e5, retry_seconds=1.0)


def osts_of(layout: Layout) -> set[int]:
    return {one.ost_index for component in layout.components for one in component.objects}


def drains(tierd: Tierd, place: Path) -> Drains:
    return Drains(tierd.site.filesystem, tierd.gate, tierd.journal, SystemClock(), SETTINGS,
                  ObjectCreation(), tops=(tierd.site.name(place),))


def test_a_drained_ost_is_empty_and_every_file_is_intact(
        tierd: Tierd, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierd.act.drain.QUEUE_FILES", 20)
    site = tierd.site
    members = site.filesystem.pools()[site.hdd]
    if len(members) < 2:
        pytest.skip(f"pool {site.hdd} has one target: the files of a drained target need another one")
    target, index = members[0], int(members[0][-4:], 16)
    place = site.directory(f"drain-{time.time_ns()}")
    sums: dict[Path, str] = {}
    for number in range(FILES):
        file = place / f"f{number}"
        if number % 3 == 1 and len(members) > 2:
            site.lfs("setstripe", "-c", "2", "-p", site.hdd, "-o", f"{index},{int(members[1][-4:], 16)}", str(file))
        elif number % 3 == 2:
            site.lfs("setstripe", "-E", "1M", "-c", "1", "-p", site.flash, "-E", "-1", "-c", "1", "-p", site.hdd, "-o",
                     str(index), str(file))
        else:
            site.lfs("setstripe", "-c", "1", "-p", site.hdd, "-o", str(index), str(file))
        file.write_bytes(noise((number % 5 + 1) * MIB // 2 + number, number))
        sums[long_ago(file)] = checksum(file)
    os.sync()
    assert sum(index in osts_of(site.layout(file)) for file in sums) >= FILES // 2
    at = drains(tierd, place)
    drain = at.begin(target, "acceptance")
    until = time.time() + 600
    while drain.phase is Phase.RUNNING and time.time() < until:
        at.step()
        tierd.gate.pump(time.time() + 5)
        if drain.passes == 1 and drain.queued and tierd.gate.waiting == 0:
            at = drains(tierd, place)  # as after a kill: the journal has all that is needed
            drain = at.all[0]
        time.sleep(0.2)
    assert drain.phase is Phase.EMPTY, at.failed(drain)
    site.forget_everything()
    for file, before in sums.items():
        assert index not in osts_of(site.layout(file)), file
        assert site.pools_of(file), file
        assert checksum(file) == before, file
        ledger.enter(file)


def test_a_default_striping_of_directories_is_set_and_undone(tierd: Tierd) -> None:
    site = tierd.site
    if site.mdt_count < 2:
        pytest.skip("the file system has one MDT, over which no directory can be striped")
    place = site.directory(f"striping-{time.time_ns()}")
    site.lfs("setdirstripe", "-D", "-d", str(place))  # lfs mkdir has set one, so that subdirectories stay on its MDT
    action = Action(ActKind.SET_DEFAULT_STRIPING, NO_LAYOUT, "acceptance", ("metadata-storm", "", ""),
                    site.name(place), striping=DefaultStriping(2, -1, "crush", 1))
    tierd.gate.submit([action], 1)
    (outcome,) = tierd.gate.default_layouts.set_next()
    assert outcome.result == "done", outcome.detail
    (place / "striped").mkdir()
    (place / "striped" / "below").mkdir()
    assert site.filesystem.directory_stripes(site.name(place / "striped")).stripe_count == 2
    assert site.filesystem.directory_stripes(site.name(place / "striped" / "below")).stripe_count < 2
    assert "lmv_stripe_count:  2" in site.lfs("getdirstripe", "-D", "-y", str(place))
    (entry,) = tierd.journal.entries(Outcome.DONE)
    assert tierd.undo(entry, "acceptance").outcome == "undone"
    assert site.filesystem.default_striping(site.name(place)) is None
    (place / "plain").mkdir()
    assert site.filesystem.directory_stripes(site.name(place / "plain")).stripe_count < 2
