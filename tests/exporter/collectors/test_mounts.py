"""A client: sums over the targets of a pool, and states of connections."""

import pytest

from tests.exporter.collectors.families import DEBUG, MOUNT, shown


def in_flight(reads: dict[int, int]) -> str:
    """``rpc_stats`` of a client that had so many requests under way when it sent a read."""
    rows, counted, total = "", 0, sum(reads.values())
    for number in range(1, max(reads) + 1):
        counted += reads.get(number, 0)
        share = 100 * reads.get(number, 0) // total
        rows += f"{number}:\t\t{reads.get(number, 0):10} {share:3} {100 * counted // total:3}   |          0   0   0\n"
    return (
        "snapshot_time:         9.5 (secs.nsecs)\nread RPCs in flight:  0\nwrite RPCs in flight: 0\n"
        "pending write pages:  0\npending read pages:   0\n\n\t\t\tread\t\t\twrite\n"
        f"rpcs in flight        rpcs   % cum % |       rpcs   % cum %\n{rows}"
    )


@pytest.mark.parametrize("per_target", [False, True])
def test_clients_that_send_many_requests_at_once_add_up_with_those_that_send_few(
        grow, exporter, samples, per_target) -> None:
    """The kernel's 31st bucket counts all that is more."""
    reads = {"OST0000": {1: 5, 17: 4}, "OST0001": {2: 7}, "OST0002": {1: 1, 30: 2, 31: 8}}
    files = {f"{DEBUG}/osc/lustre-{target}-osc-{MOUNT}/rpc_stats": in_flight(of) for target, of in reads.items()}
    running = exporter(grow(files), osc_per_target=per_target)
    sums: dict[float, int] = {}
    name, labels = "lustre_osc_rpcs_in_flight_at_send_bucket", ("direction", "le") + ("target",) * per_target
    for key, value in shown(samples, running.scrape("osc"), name, *labels).items():
        if key[0] == "read":
            sums[float(key[1])] = sums.get(float(key[1]), 0) + int(value)
    numbers = [n for of in reads.values() for number, times in of.items() for n in [number] * times]
    assert sums == {
        **{float(le): sum(number <= le for number in numbers) for le in range(1, 31)},
        float("inf"): len(numbers),
    }
    assert running.skipped() == {}


@pytest.mark.parametrize("per_target", [False, True])
def test_a_state_with_characters_of_templates_is_shown_as_it_is(grow, exporter, per_target) -> None:
    text = "import:\n    state: FU\x1eL\x19\n       timeouts: 3\n"
    running = exporter(grow({f"{DEBUG}/osc/lustre-OST0000-osc-{MOUNT}/import": text}), osc_per_target=per_target)
    shown = running.scrape("osc")
    assert b',state="FU\x1eL\x19"} 1\n' in shown
    assert (shown.count(b"\nlustre_osc_import_timeouts_total{"), running.skipped()) == (1, {})
