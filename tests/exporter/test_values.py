"""What the exporter shows equals what the files say.

What they say is told by a plain reader (``tests/exporter/naive``) that shares nothing with the exporter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from exporter.collectors import COLLECTORS
from tests.exporter.naive.everything import everything_in
from tests.exporter.naive.reader import Reader
from tests.exporter.written import NODES

OF_LIMITS = {"lustre_jobs_beyond_limit", "lustre_quota_ids_beyond_limit"}
"""Families that are there when jobs or quotas are limited; here they are not."""


def differing(shown: dict, want: dict) -> dict:
    """The first samples that are not the same. Of thousands, pytest would draw a picture for minutes on CI."""
    keys = sorted((key for key in shown.keys() | want.keys() if shown.get(key) != want.get(key)), key=str)
    return {key: (shown.get(key), want.get(key)) for key in keys[:20]}


def compare(reader: Reader, text: bytes, samples: Callable[[bytes], dict], *, per_target: bool = False) -> None:
    shown = {key: Decimal(value) for key, value in samples(text).items()}
    want = everything_in(reader, per_target=per_target)
    assert len(want) > 200
    assert differing(shown, want) == {}


@pytest.mark.parametrize("name", ["tree-idle", "tree-load-1", "tree-load-2"])
@pytest.mark.parametrize("per_target", [False, True])
def test_every_sample_of_a_recorded_tree(capture, exporter, samples, name, per_target) -> None:
    root = capture(f"2.17.57/{name}")
    instances = {path.name.split("-")[-1]: "" for path in (root / "sys/fs/lustre/llite").iterdir()}
    running = exporter(root, osc_per_target=per_target, osp_per_target=per_target)
    compare(Reader(root, instances), running.scrape(), samples, per_target=per_target)
    assert running.skipped() == {}
    assert running.errors() == {}
    assert running.reasons() == {}


@pytest.mark.parametrize("name", ["noisy-create-1m", "control-slow-disk"])
def test_every_sample_of_two_mounts_and_again_some_seconds_later(snapshots, exporter, samples, tmp_path, name) -> None:
    tape = snapshots(name, 3, 20)
    mounts = {mount["llite"].split("-")[-1]: mount["path"] for mount in tape.about["mounts"].values()}
    link = tmp_path / "now"
    running = None
    for number in (3, 20):
        link.unlink(missing_ok=True)
        link.symlink_to(tape.snapshot(number))
        running = running or exporter(link)
        compare(Reader(tape.snapshot(number), mounts), running.scrape(), samples)


def test_the_reader_would_notice(capture, exporter, samples) -> None:
    root = capture("2.17.57/tree-load-1")
    text = exporter(root).scrape().replace(b"lustre_osc_requests_total", b"lustre_osc_request_total")
    instances = {path.name.split("-")[-1]: "" for path in (root / "sys/fs/lustre/llite").iterdir()}
    with pytest.raises(AssertionError):
        compare(Reader(root, instances), text, samples)


def written_node(written: Callable[[str, str], Path], release: str, role: str) -> Reader:
    return Reader(written(release, role), {"ffff9f0a8c3d1800": "/work"}, "work")


@pytest.mark.parametrize(("release", "role"), NODES)
def test_every_sample_of_a_written_node(written, exporter, samples, release, role) -> None:
    reader = written_node(written, release, role)
    shown = {key: Decimal(value) for key, value in samples(exporter(reader.root).scrape()).items()}
    want = everything_in(reader)
    assert len(want) > 20
    assert differing(shown, want) == {}


def test_the_plain_reader_knows_every_family(capture, snapshots, written) -> None:
    trees = [written_node(written, release, role) for release, role in NODES]
    root = capture("2.17.57/tree-load-1")
    trees.append(Reader(root, {path.name.split("-")[-1]: "" for path in (root / "sys/fs/lustre/llite").iterdir()}))
    known = {name for reader in trees for name, _ in everything_in(reader)}
    known = {re.sub(r"_bucket$", "", name) for name in known}
    families = {family.name for collector in COLLECTORS for family in collector.families}
    assert families - known == OF_LIMITS
