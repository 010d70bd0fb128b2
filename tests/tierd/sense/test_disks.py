"""Disk I/O of servers as differences between readings. Those of real servers are in test_exposition_and_parameters."""

from collections.abc import Mapping

import pytest

from tests.tierd.sense.clocks import SettableClock
from tierd.sense.http_client import SourceError
from tierd.sense.nodes import Counters, DiskPoller, parse_disks

URL = "http://oss1:9169/metrics"


def made(driver: dict[str, int], **tables: dict[int, float]) -> Counters:
    found = Counters(settings={"max_rpc_bytes": 0, "fabric_driver": driver})
    for name, table in tables.items():
        found.add((name,), table)
    return found


@pytest.mark.parametrize("bound", ["soon", "NaN", "-Inf", "1e307"])
def test_an_impossible_bound_is_an_error_that_names_the_exporter(bound: str) -> None:
    line = f'lustre_osd_io_seconds_bucket{{fs="l",target="OST0001",direction="write",le="{bound}"}} 4\n'
    with pytest.raises(SourceError, match=r"oss1.*invalid data"):
        parse_disks(line.encode(), URL)


@pytest.mark.parametrize("value", ["+Inf", "NaN"])
@pytest.mark.parametrize("name", ["lustre_ost_max_rpc_bytes", "lustre_lnet_omni_path_parameter"])
def test_an_impossible_number_is_an_error(name: str, value: str) -> None:
    with pytest.raises(SourceError, match="invalid data"):
        parse_disks(f'{name}{{fs="l",target="OST0001",setting="krcvqs"}} {value}\n'.encode(), URL)


def test_writes_beyond_the_last_bucket_and_the_driver_of_a_server() -> None:
    lines = (b'lustre_osd_io_size_bytes_bucket{fs="l",target="OST1",direction="write",le="+Inf"} 10\n'
             b'lustre_osd_io_size_bytes_bucket{fs="l",target="OST1",direction="write",le="8192"} 3\n'
             b'lustre_lnet_omni_path_parameter{setting="krcvqs"} 2\n')
    assert parse_disks(lines, URL) == {"l-OST1": made({"krcvqs": 2}, write_sizes={8192: 3, 16384: 7})}


def test_differences_between_readings_and_what_is_known_of_a_server_while_it_answers() -> None:
    driver = {"krcvqs": 2}
    answers = [made(driver, write_sizes={4096: 10.0}, write_msec={1: 10.0}),
               made({}, write_sizes={4096: 15.0, 8192: 2.0}, write_msec={1: 15.0, 16: 2.0}, read_msec={128: 13.0}),
               made({}, write_sizes={4096: 1.0}), None, made({}, write_sizes={4096: 90.0}),
               made({}, write_sizes={4096: 93.0})]

    def read(_: object) -> Mapping[str, Counters]:
        answer = answers.pop(0)
        if answer is None:
            raise OSError("no route to host")
        return {"l-OST0001": answer}

    poller = DiskPoller({URL: read}, SettableClock(1000.0))
    (since_mount,) = poller()["l-OST0001"]
    assert (since_mount.sizes, since_mount.request_msec) == ({4096: 10.0}, 0.0), "ten requests are too few for a mean"
    assert poller.drivers == {"oss1": driver}
    one = poller()["l-OST0001"][-1]
    assert (one.sizes, one.msec, poller.drivers) == ({4096: 5.0, 8192: 2.0}, {1: 5.0, 16: 2.0}, {})
    assert one.request_msec == (5 * 1 + 2 * 16 + 13 * 128) / 20
    assert len(poller()["l-OST0001"]) == 2, "it was mounted again"
    poller()
    assert poller.faults == {URL: "no route to host"}
    assert len(poller()["l-OST0001"]) == 2, "what was done since the mount has been counted"
    assert poller()["l-OST0001"][-1].sizes == {4096: 3.0}
