"""What makes a look at thousands of pairs quick must leave out no pair that a whole look would find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tierd.detect.noisy_neighbour.baseline import LoadTracks, stream_series
from tierd.detect.noisy_neighbour.pairs import active_windows, comparable
from tierd.model import JobLoad, Window

OSTS = ("l-OST0000", "l-OST0001")
LOADS = st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 10.0, 40.0])] * 4), min_size=1, max_size=24)
PRESENCE, LEAST = 0.05, 4


def windows(loads: list[tuple[float, ...]], first: int = 0) -> list[Window]:
    """Of a victim and a suspect on two targets."""
    found = []
    for number, each in enumerate(loads, first):
        keys = [(target, job) for target in OSTS for job in ("victim", "suspect")]
        found.append(Window(5.0 * number, 5.0 * number + 5, {
            key: JobLoad(*key, write_bytes=1e6 * count, writes=count)
            for key, count in zip(keys, each, strict=True) if count}, {}))
    return found


@given(LOADS)
def test_pairs_that_are_left_out_are_those_without_evidence(loads: list[tuple[float, ...]]) -> None:
    tracks = LoadTracks(windows(loads))
    course = stream_series(tracks, "victim", "suspect", OSTS, PRESENCE)
    told = comparable(active_windows(tracks.on(OSTS, "victim")), tracks.operations(OSTS, "suspect"), PRESENCE, LEAST)
    assert told == (len(course.quiet) >= LEAST and len(course.contended) >= LEAST)


@given(LOADS, st.integers(0, 6), LOADS)
def test_tracks_of_the_cycle_before_are_gone_on_with(loads: list[tuple[float, ...]], gone: int,
                                                     more: list[tuple[float, ...]]) -> None:
    old = windows(loads)
    before = LoadTracks(old)
    before.on(OSTS, "victim")
    new = [*old[gone:], *windows(more, len(loads))]
    for job in ("victim", "suspect"):
        assert [list(each) for each in LoadTracks(new, before).on(OSTS, job)] == [
            list(each) for each in LoadTracks(new).on(OSTS, job)]
