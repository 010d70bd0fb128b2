"""Lists of targets and jobs, and the page of one: searched, filtered and sorted on the server."""

from urllib.parse import quote

import pytest

from lustre.layout.model import Component, Layout
from tests.operation.page_answers import ABOUT, EVIL, RATES
from tests.tierd.port import Port
from tests.tierd.simulated import NOISE, STREAM
from tests.tierd.site import Site
from tierd.acts import ActKind
from tierd.daemon.answers import AboutAnswer, JobRow, ListAnswer, MomentAnswer, RatesAnswer, to_json
from tierd.daemon.client import ControlError
from tierd.daemon.requests import listed_rows
from tierd.daemon.status import action_answer
from tierd.decide.plans import FlashSettings, flash_first
from tierd.model import Action


def listed(site: Site, of: str, **wanted: str) -> list[str]:
    found = ListAnswer.from_json(site.ask("list", of=of, **wanted))
    assert found.found == len(found.targets) + len(found.jobs)
    return [row.target for row in found.targets] + [row.job for row in found.jobs]


def about(site: Site, **wanted: str) -> AboutAnswer:
    return AboutAnswer.from_json(site.ask("about", **wanted))


def test_lists_are_searched_and_sorted(site: Site) -> None:
    site.run(until=35)
    stream, noise = STREAM.job_id, NOISE.job_id
    assert listed(site, "jobs", search="IOR") == [stream]
    assert listed(site, "jobs", search="slowed") == [stream]
    assert listed(site, "jobs", search="aggressor") == [noise]
    assert listed(site, "jobs", search="1001") == [noise]
    assert listed(site, "jobs", sort="job") == sorted([stream, noise])
    assert listed(site, "jobs", sort="-job") == sorted([stream, noise], reverse=True)
    assert listed(site, "jobs", sort="write") == [stream, noise]
    assert listed(site, "jobs", sort="-write") == [noise, stream]
    slowed = listed(site, "targets", search="slowed")
    assert 0 < len(slowed) < len(listed(site, "targets"))
    assert set(listed(site, "targets", search="flash")).isdisjoint(slowed)
    assert listed(site, "targets", search="ost0002") == ["lustre-OST0002"]
    assert listed(site, "targets", sort="target") == sorted(listed(site, "targets"))


@pytest.mark.parametrize(("of", "wanted", "words"), [
    ("jobs", {"sort": "colour"}, "unknown column 'colour'; known: job, user"),
    ("files", {}, "unknown list 'files'; known: jobs, targets")])
def test_a_wrong_word_is_answered_with_the_right_ones(site: Site, of: str, wanted: dict[str, str], words: str) -> None:
    with pytest.raises(ControlError, match=words):
        listed(site, of, **wanted)
    status, body = site.fetched(f"/{of}?{'&'.join(f'{name}={word}' for name, word in wanted.items())}")
    assert status == (400 if wanted else 404)
    assert not wanted or words[:words.index(" '")] in body


def test_equal_rows_keep_their_order() -> None:
    rows = [JobRow(job=f"j{n}", read_bytes=n % 2, write_bytes=0.0, operations=0.0, creates=0.0, targets=1, role="")
            for n in range(4)]
    words = lambda row: row.job  # noqa: E731
    keys = {"job": lambda row: row.job, "read": lambda row: row.read_bytes}
    assert [row.job for row in listed_rows(rows, {"sort": "read"}, words, keys)] == ["j1", "j3", "j0", "j2"]
    assert [row.job for row in listed_rows(rows, {"sort": "-read"}, words, keys)] == ["j0", "j2", "j1", "j3"]
    assert listed_rows([], {"sort": "read"}, words, keys) == []


def test_a_job_and_its_targets_and_cases(site: Site) -> None:
    site.run(until=200)
    stream = about(site, job=STREAM.job_id)
    assert stream.job.targets == stream.all_beside == 4
    assert sum(row.write_bytes for row in stream.beside) == pytest.approx(stream.job.write_bytes)
    (case,) = stream.cases
    assert (case.finding, case.victim) == (1, STREAM.job_id)
    assert about(site, job=NOISE.job_id).cases == stream.cases
    target = about(site, target="lustre-OST0002")
    assert target.target is not None
    assert {row.name for row in target.beside} >= {STREAM.job_id}
    assert target.cases == stream.cases
    for path, words in ((f"/job/{STREAM.job_id}", "ior_stream.1002</code>"), ("/target/lustre-OST0002?range=7d", "F1")):
        status, body = site.fetched(path)
        assert status == 200
        assert words in body
        assert "data-curves=" in body


def test_an_unknown_name_has_a_page_that_says_so(site: Site) -> None:
    for path in ("/job/nobody.7", "/target/x-OST0000", "/job/" + quote("<b>\udcff\n", errors="surrogateescape"),
                 "/job/" + "x" * 2000, "/job/a%2F..%2Fb"):
        status, body = site.fetched(path)
        assert status == 404, path
        assert "<h1 id=\"h\">Not found</h1>" in body
        assert "<b>" not in body.split("<main", 1)[1]
    site.run(until=130)
    status, body = site.fetched(f"/job/{STREAM.job_id}?range=1y")
    assert status == 400
    assert "&#39;1y&#39; is not a range; known: 1h, 6h, 1d, 7d, 30d" in body


def test_a_job_that_has_ended_keeps_its_page(site: Site) -> None:
    site.run(until=130)
    site.restart()  # no job is known to be active before the second reading
    body = site.fetched(f"/job/{STREAM.job_id}")[1]
    assert "Not active now." in body
    assert "data-curves=" in body
    assert about(site, target="lustre-OST0002").beside == ()


# The page without a daemon


def test_hostile_names_are_links_that_find_them(port: Port) -> None:
    body = port.request("/")[1]
    path = "/job/" + quote(EVIL, "")
    assert f'href="{path}"' in body
    assert port.request(path)[0] == 200
    assert EVIL in [asked.get("job") for asked in port.asked]


def test_a_page_has_the_charts_of_a_range(port: Port) -> None:
    body = port.request("/job/a?range=6h")[1]
    assert {"request": "rates", "job": "a", "seconds": 21600} in port.asked
    assert 'aria-current="true">6h</a>' in body
    assert "60.0 MB/s</text>" in body
    assert "10:26</text>" in body
    port.answers["rates"] = to_json(RATES.replaced(points=()))
    assert "Nothing is recorded of this range" in port.request("/job/a")[1]
    port.answers["about"] = to_json(ABOUT.replaced(job=None, beside=(), all_beside=0, cases=()))
    assert "Not active now." in port.request("/job/a")[1]


def test_a_list_keeps_its_filters_in_its_links(port: Port) -> None:
    body = port.request("/jobs?search=a%26b&sort=read")[1]
    assert port.asked[0] == {"request": "list", "of": "jobs", "most": 500, "search": "a&b", "sort": "read"}
    assert 'href="/jobs?search=a%26b&amp;sort=-read"' in body
    assert 'href="/jobs?search=a%26b&amp;sort=user"' in body
    assert body.count('aria-sort="descending"') == 1
    assert '<input type="hidden" name="sort" value="read">' in body
    body = port.request("/jobs?sort=-user")[1]
    assert body.count('aria-sort="descending"') == 1
    status, body, _ = port.request("/jobs?colour=red")
    assert (status, "jobs are not listed by &#39;colour&#39;, but by search and sort" in body) == (400, True)


# Past rates: recorded while the daemon runs, and asked for over the control socket


def rates(site: Site, **wanted: object) -> RatesAnswer:
    return RatesAnswer.from_json(site.ask("rates", **wanted))


def test_what_jobs_and_targets_did_is_recorded(site: Site) -> None:
    site.run(until=400)
    stream = rates(site, job=STREAM.job_id, seconds=3600)
    assert stream.step_seconds == 60
    assert 5 <= len(stream.points) <= 7
    assert all(write > 20e6 and not read for _, read, write, *_ in stream.points[1:])
    noise = rates(site, job=NOISE.job_id).points[-1]
    assert noise[4] > 5  # creates and opens
    moment = MomentAnswer.from_json(site.ask("moment"))
    assert moment.later is None
    assert moment.earlier == moment.time - 60  # type: ignore[operator]
    assert {row.name for row in moment.jobs} == {STREAM.job_id, NOISE.job_id}
    assert "lustre-OST0002" in {row.name for row in moment.targets}
    (row,) = [row for row in moment.targets if row.name == "lustre-OST0002"]
    assert rates(site, target="lustre-OST0002").points[-1][1:] == pytest.approx(
        (row.read_bytes, row.write_bytes, row.operations, row.metadata_operations))
    total = sum(row.write_bytes for row in moment.jobs)
    assert sum(row.write_bytes for row in moment.targets) == pytest.approx(total, rel=1e-3)
    site.restart()
    assert rates(site, job=STREAM.job_id, seconds=3600).points == stream.points


def test_after_the_clock_was_set_back_curves_go_on(site: Site) -> None:
    site.run(until=100)
    site.cluster.epoch_ns -= 86400 * 10**9
    site.run(until=400)
    assert len(rates(site, job=STREAM.job_id, seconds=3600).points) >= 3


@pytest.mark.parametrize(("wanted", "words"), [
    ({}, "names a target or a job"), ({"job": "x" * 2000}, "has a name of 2000 characters"),
    ({"job": "a", "seconds": 5}, "between 1 minute and 30 days"),
    ({"job": "a", "seconds": "nan"}, "between 1 minute and 30 days"), ({"job": "a", "until": 1e300}, "ends at a time"),
    ({"job": "a", "seconds": []}, "is a number")])
def test_a_wrong_question_is_answered_clearly(site: Site, wanted: dict[str, object], words: str) -> None:
    with pytest.raises(ControlError, match=words):
        rates(site, **wanted)


def test_an_act_that_lfs_has_no_options_for_has_an_answer() -> None:
    """In the default of ``lfs setstripe -E 128M -S 1M -E -1 -c 4`` of Lustre 2.10, the rest has no stripe size."""
    present = Layout((Component(0, 128 << 20, "hdd", 1, 1 << 20), Component(128 << 20, None, "hdd", 4)))
    action = Action(ActKind.SET_DEFAULT_LAYOUT, flash_first(1 << 20, present, FlashSettings()), "", ("", "", ""), "/d")
    assert action_answer(action).layout == ("(first 1M on flash (1 stripe), 1M to 128M on hdd (1 stripe), "
                                            "rest on hdd (4 stripes))")
