"""OI scrub and LFSCK."""

from __future__ import annotations

from tests.exporter.collectors.families import DEBUG, shown

SCRUB = f"{DEBUG}/osd-ldiskfs/lustre-OST0000/oi_scrub"
CHECK = f"{DEBUG}/mdd/lustre-MDT0000/lfsck_namespace"


def test_a_run_that_starts_anew_begins_at_zero_and_its_ends_go_on(grow, exporter, samples) -> None:
    text = "status: {}\nflags:{}\nchecked: {}\nupdated: {}\nprior_updated: 1\nfailed: 0\nsuccess_count: {}\n"
    running = exporter(grow({SCRUB: text.format("scanning", " inconsistent", 90, 3, 4)}))
    before = running.scrape("scrub")
    grow({SCRUB: text.format("completed", "", 7, 0, 5)})
    after = running.scrape("scrub")
    assert [shown(samples, text, "lustre_osd_scrub_checked_objects", "target") for text in (before, after)] == [
        {"OST0000": "90"},
        {"OST0000": "7"},
    ]
    assert shown(samples, after, "lustre_osd_scrub_completed_total", "target") == {"OST0000": "5"}
    assert shown(samples, before, "lustre_osd_scrub_flag", "flag") == {"inconsistent": "1"}
    assert b"lustre_osd_scrub_flag" not in after
    assert shown(samples, after, "lustre_osd_scrub_state", "state") == {"completed": "1"}


def test_a_problem_reported_twice_is_one_series(grow, exporter, samples) -> None:
    running = exporter(grow({CHECK: "dangling_repaired: 3\ndangling_inconsistent: 4\nflags: auto,auto\n"}))
    assert len(samples(running.scrape("lfsck"))) == 2
