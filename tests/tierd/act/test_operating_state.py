import os
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.act.gate_world import World
from tierd.act.operating_state import MaintenanceGuard, OperatingState
from tierd.config.act import DAYS, minutes_of_window, window_refusal
from tierd.config.load import ConfigurationError
from tierd.config.load import parse as configuration

FRIDAY_NOON = datetime(2026, 11, 20, 12, 0).timestamp()
HOUR = 3600.0


def test_over_midnight_the_end_belongs_to_the_day_it_began() -> None:
    nights = ("Mon-Fri 20:00-06:00",)
    assert "outside of the maintenance windows" in str(window_refusal(nights, FRIDAY_NOON))
    assert window_refusal(nights, FRIDAY_NOON + 8 * HOUR) is None
    assert window_refusal(nights, FRIDAY_NOON + 17 * HOUR) is None  # Saturday 05:00
    assert window_refusal(nights, FRIDAY_NOON + 32 * HOUR) is not None  # Saturday 20:00
    assert window_refusal((*nights, "sat,Sun 0:00-24:00"), FRIDAY_NOON + 32 * HOUR) is None


@pytest.mark.usefixtures("berlin")
def test_hours_are_those_of_this_node_in_summer_and_winter() -> None:
    assert window_refusal(("12:00-13:00",), datetime.fromisoformat("2026-07-01T10:30:00+00:00").timestamp()) is None
    assert window_refusal(("12:00-13:00",), datetime.fromisoformat("2026-12-01T11:30:00+00:00").timestamp()) is None
    assert window_refusal(("12:00-13:00",), datetime.fromisoformat("2026-12-01T10:30:00+00:00").timestamp()) is not None


@given(st.sampled_from(DAYS), st.sampled_from(DAYS), st.integers(0, 1439), st.integers(0, 1440))
def test_a_window_is_as_long_as_it_says(first: str, last: str, begin: int, end: int) -> None:
    if begin == end:
        return
    held = minutes_of_window(f"{first}-{last} {begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}")
    days = (DAYS.index(last) - DAYS.index(first)) % 7 + 1
    assert len(held) == days * ((end - begin) if begin < end else (1440 - begin + end))


@pytest.mark.parametrize("text", ["", "tonight", "Mon 25:00-26:00", "Mon 08:70-09:00", "Mon 08:00-08:00",
                                  "Mon-Tue-Wed 1:00-2:00", "Montag 1:00-2:00", "08:00", "Mon 08:00-24:01"])
def test_a_malformed_window_stops_the_start(text: str) -> None:
    with pytest.raises(ValueError, match="maintenance window"):
        minutes_of_window(text)
    with pytest.raises(ConfigurationError, match=r"t\.toml:2: act\.windows\.0: .*maintenance window"):
        configuration(f"[act]\nwindows = [{text!r}]\n".encode(), "t.toml")


def test_a_touched_file_stops_everything(tmp_path: Path) -> None:
    pause = tmp_path / "pause"
    still = MaintenanceGuard(str(pause))
    assert still.last_refusal(FRIDAY_NOON) is still.pause_file_refusal() is None
    pause.touch()
    assert str(still.pause_file_refusal()) == f"{pause} exists; remove it to continue"
    pause.write_bytes(b"disk swap, \xff ann\nsecond line")
    assert "('disk swap, \ufffd ann')" in str(still.pause_file_refusal())
    pause.unlink()
    assert "disk swap" in str(still.last_refusal(FRIDAY_NOON))  # nobody has looked since
    assert still.pause_file_refusal() is still.last_refusal(FRIDAY_NOON) is None


def test_a_pause_file_of_any_kind_counts_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert MaintenanceGuard(str(tmp_path / "pipe")).pause_file_refusal()
    assert MaintenanceGuard(str(tmp_path)).pause_file_refusal()
    (tmp_path / "file").touch()
    assert "Not a directory" in str(MaintenanceGuard(str(tmp_path / "file" / "pause")).pause_file_refusal())


def test_acts_are_undone_outside_of_maintenance_windows_too() -> None:
    still = MaintenanceGuard("", ("20:00-21:00",))
    assert still.last_refusal(FRIDAY_NOON)
    assert still.pause_file_refusal() is None


def test_a_pause_with_an_end_shortens_no_other(world: World) -> None:
    """After two hours tierd acted, though somebody else had paused it for the weekend."""
    state = OperatingState(world.journal, MaintenanceGuard(), world.clock)
    for seconds, stays in ((0.0, "weekend"), (7200.0, "weekend"), (0.0, "week")):
        state.pause("two hours" if seconds else stays, seconds=seconds)
        assert state.paused == stays
    state.resume()
    for seconds, stays in ((60.0, "60"), (7200.0, "7200"), (60.0, "7200")):
        state.pause(f"{seconds:.0f}", seconds=seconds)
        assert state.paused.startswith(f"{stays}, until ")


def test_a_doubtful_file_whose_name_is_not_text_stops_all_moves_after_a_restart_too(world: World) -> None:
    """Its name could not be stored: tierd ended, and went on moving files when it was started again."""
    node = world.lustre.create("/a\udcff", b"data" * 25)
    world.submit("/a\udcff")
    world.calls.before = lambda name, _: setattr(node, "project", 8) if name == "swap_and_close" else None
    assert world.pump() == {"doubtful": 1}
    again = OperatingState(world.journal, MaintenanceGuard(), world.clock)
    assert again.paused == "a file is not as expected after its move, or cannot be examined: /a\\udcff"
