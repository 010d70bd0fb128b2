"""Expositions: what is read is what prometheus_client reads, and what cannot be is believed in nothing."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tests.tierd.sense import expositions
from tests.tierd.sense.real_prometheus import label_text
from tierd.sense import exposition
from tierd.sense.exposition import labels_of, samples
from tierd.sense.http_client import SourceError

WELL = 'lustre_ost_recovering{fs="l",target="OST0000"} 0\n'
JOB = 'lustre_job_write_bytes_total{fs="l",target="OST0000",jobid="j"}'
names = st.text(st.characters(codec="utf-8"), max_size=40)


@given(names, st.sampled_from(["jobid", "job"]), st.sampled_from(["read", "write"]), st.floats(0, 1e18))
def test_any_job_id_is_read_as_prometheus_client_reads_it(job: str, label: str, operation: str, value: float) -> None:
    line = (f'lustre_job_operations_total{{fs="l",target="OST0000",{label}="{label_text(job)}",'
            f'operation="{operation}"}} {value!r}\n')
    (name, head, tail, found), = samples(line.encode(), (b"lustre_job_",))
    (family,) = text_string_to_metric_families(line)
    (sample,) = family.samples
    assert (name, {**labels_of(head), **labels_of(tail)}, found) == (sample.name, sample.labels, sample.value)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_are_an_error(data: bytes) -> None:
    with suppress(SourceError):
        expositions.reading([b"lustre_job" + data], 0.0)


@pytest.mark.parametrize(("text", "words"), [
    (f"{JOB} NaN\n", "impossible value"),
    (f"{JOB} -1\n", "impossible value"),
    (f"{JOB} \n", "impossible value"),
    (f"{JOB} 1\n{JOB} 2\n", "duplicate series"),
    (f"{WELL}{WELL}", "duplicate series"),
    (JOB.replace('"j"', f'"{"x" * 2000}"') + " 1\n", "a label jobid of 2000 bytes"),
    (JOB.replace('"j"', f'"{"x" * 20000}"') + " 1\n", "a line of "),
    ('lustre_job_write_bytes_total{fs="l",target="OST0000",jobid="j} 1\n', "not labels"),
    ('lustre_job_write_bytes_total{fs="l",fs="m",target="OST0000",jobid="j"} 1\n', "duplicate label"),
    ("lustre_job_write_bytes_total 1\n", "not a sample"),
    (f"{JOB} 1\n{WELL[:-1]}", "cut short"),
    ("<html>\n", "not an exposition"),
    ("", "not an exposition"),
    ('lustre_exporter_collector_success{collector="jobs"} 0\n', "its collector jobs failed"),
    ('lustre_job_io_size_bytes_bucket{fs="l",target="O",jobid="j",direction="read",le="x"} 1\n', "x"),
    ('lustre_osd_nonrotational{fs="l",target="OST0000"} x\n', "impossible value"),
])
def test_one_impossible_line_makes_the_whole_exposition_invalid(text: str, words: str) -> None:
    with pytest.raises(SourceError, match=words) as raised:
        expositions.reading([WELL.replace("0000", "0009") + text if text.startswith("lustre_job") else text], 0.0,
                          ["http://oss1:9169/metrics"])
    assert "http://oss1:9169/metrics" in str(raised.value)
    assert len(str(raised.value)) < 500


def test_a_million_jobs_are_refused_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "MAX_ENTRIES", 1000)
    text = "".join(JOB.replace('"j"', f'"j{n}"') + " 1\n" for n in range(1001))
    with pytest.raises(SourceError, match="more than 1000 pairs of job and target"):
        expositions.reading([text], 0.0)


def test_the_same_target_from_two_exporters() -> None:
    with pytest.raises(SourceError, match="l-OST0000 is shown by both oss1 and oss2"):
        expositions.reading([WELL, WELL], 0.0, ["oss1", "oss2"])


def test_a_changelog_whose_end_is_not_shown_is_not_known() -> None:
    users = 'lustre_changelog_user_idle_seconds{fs="l",target="MDT0000",user="cl1-tierd"} 5\n'
    end = 'lustre_changelog_records_total{fs="l",target="MDT0000"} 9\n'
    assert expositions.reading([users], 0.0).changelogs == {}
    (log,) = expositions.reading([users + end], 0.0).changelogs.values()
    assert (log.last_index, log.users, log.recorded) == (9, {"cl1"}, None)
    assert expositions.reading([end], 0.0).changelogs["l-MDT0000"].users == frozenset()


def test_the_limit_of_data_on_an_mdt_is_the_present_one() -> None:
    text = ('lustre_lod_dom_stripe_size_bytes{fs="l",target="MDT0000"} 1048576\n'
            'lustre_lod_dom_stripe_size_bytes{fs="l",target="MDT0001"} 1048576\n'
            'lustre_lod_dom_stripe_size_current_bytes{fs="l",target="MDT0001"} 65536\n')
    assert expositions.reading([text], 0.0).data_limits == {"l-MDT0000": 1 << 20, "l-MDT0001": 1 << 16}
