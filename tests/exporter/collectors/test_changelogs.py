"""Users of changelogs, and how far they are behind."""

from __future__ import annotations

from tests.exporter.collectors.families import DEBUG, shown


def test_the_same_user_on_several_targets(grow, exporter, samples) -> None:
    head = "current_index: {}\nID                            index (idle) mask\n"
    root = grow({
        f"{DEBUG}/mdd/lustre-MDT000{i}/changelog_users": head.format(100 * i) + f"cl1     {60 * i} ({i}) mask=MARK\n"
        for i in (0, 1, 2)
    })  # fmt: skip
    behind = shown(samples, exporter(root).scrape(), "lustre_changelog_user_behind_records", "target", "user")
    assert behind == {("MDT0000", "cl1"): "0", ("MDT0001", "cl1"): "40", ("MDT0002", "cl1"): "80"}


def test_a_user_ahead_of_the_log_is_left_out_and_counted(grow, exporter, samples) -> None:
    text = "current_index: 5\nID   index (idle) mask\ncl1   9 (1)\ncl2   4 (1)\n"
    running = exporter(grow({f"{DEBUG}/mdd/lustre-MDT0000/changelog_users": text}))
    assert shown(samples, running.scrape(), "lustre_changelog_user_behind_records", "user") == {"cl2": "1"}
    assert running.skipped() == {"mdd.*.changelog_users": 1}
