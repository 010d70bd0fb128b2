"""Expositions: what is read is what prometheus_client reads, and what cannot be is believed in nothing."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from tierd.sense import exporters
from tierd.sense.access import SourceError
from tierd.sense.exposition import labels_of, samples

WELL = 'lustre_ost_recovering{fs="l",target="OST0000"} 0\n'
JOB = 'lustre_job_write_bytes_total{fs="l",target="OST0000",jobid="j"}'
names = st.text(st.characters(codec="utf-8"), max_size=40)


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@given(names, st.sampled_from(["jobid", "job"]), st.sampled_from(["read", "write"]), st.floats(0, 1e18))
def test_any_job_id_is_read_as_prometheus_client_reads_it(job: str, label: str, operation: str, value: float) -> None:
    line = (f'lustre_job_operations_total{{fs="l",target="OST0000",{label}="{escaped(job)}",operation="{operation}"}} '
            f"{value!r}\n")
    (name, head, tail, found), = samples(line.encode(), (b"lustre_job_",))
    (family,) = text_string_to_metric_families(line)
    (sample,) = family.samples
    assert (name, {**labels_of(head), **labels_of(tail)}, found) == (sample.name, sample.labels, sample.value)


@given(st.binary(max_size=300))
def test_no_bytes_do_worse_than_an_error(data: bytes) -> None:
    with suppress(SourceError):
        exporters.reading([b"lustre_job" + data], 0.0)


@pytest.mark.parametrize(("text", "words"), [
    (f"{JOB} NaN\n", "a value that cannot be"),
    (f"{JOB} +Inf\n", "a value that cannot be"),
    (f"{JOB} -1\n", "a value that cannot be"),
    (f"{JOB} \n", "a value that cannot be"),
    (f"{JOB} 1\n{JOB} 2\n", "the same series twice"),
    (f"{WELL}{WELL}", "the same series twice"),
    (JOB.replace('"j"', f'"{"x" * 2000}"') + " 1\n", "a label jobid of 2000 bytes"),
    (JOB.replace('"j"', f'"{"x" * 20000}"') + " 1\n", "a line of "),
    ('lustre_job_write_bytes_total{fs="l",target="OST0000",jobid="j} 1\n', "not labels"),
    ('lustre_job_write_bytes_total{fs="l",fs="m",target="OST0000",jobid="j"} 1\n', "comes twice"),
    ("lustre_job_write_bytes_total 1\n", "not a sample"),
    (f"{JOB} 1\n{WELL[:-1]}", "cut short"),
    ("<html>\n", "not an exposition"),
    ("", "not an exposition"),
    ('lustre_exporter_collector_success{collector="jobs"} 0\n', "its collector jobs did not finish"),
    ('lustre_job_io_size_bytes_bucket{fs="l",target="O",jobid="j",direction="read",le="x"} 1\n', "x"),
])
def test_one_thing_that_cannot_be_spoils_all_of_it(text: str, words: str) -> None:
    with pytest.raises(SourceError, match=words) as raised:
        exporters.reading([WELL.replace("0000", "0009") + text if text.startswith("lustre_job") else text], 0.0,
                          ["http://oss1:9169/metrics"])
    assert "http://oss1:9169/metrics" in str(raised.value)
    assert len(str(raised.value)) < 500


def test_a_million_jobs_are_refused_before_they_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporters, "MOST_ENTRIES", 1000)
    text = "".join(JOB.replace('"j"', f'"j{n}"') + " 1\n" for n in range(1001))
    with pytest.raises(SourceError, match="more than 1000 pairs of job and target"):
        exporters.reading([text], 0.0)


def test_the_same_target_from_two_exporters() -> None:
    with pytest.raises(SourceError, match="l-OST0000 is shown by both oss1 and oss2"):
        exporters.reading([WELL, WELL], 0.0, ["oss1", "oss2"])
