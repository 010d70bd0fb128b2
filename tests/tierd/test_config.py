from __future__ import annotations

import re
from pathlib import Path

import pytest

from tierd.config import ConfigurationError, Settings, load, parse


def test_an_empty_file_is_the_defaults() -> None:
    assert parse(b"", "tierd.toml") == Settings()


def test_every_mistake_is_told_at_once_with_line_and_mend() -> None:
    text = b"""\
history_seconds = "long"

[noisy_neighbour]
entre = 0.8
leave = 7

[noisy_neighbour.classes]
small_file_bytes = -1

[small_files_to_flahs]
"""
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "tierd.toml")
    lines = str(caught.value).splitlines()
    assert sorted(line.split(" ")[0] for line in lines) == [
        "tierd.toml:10:", "tierd.toml:1:", "tierd.toml:4:", "tierd.toml:5:", "tierd.toml:8:"]
    told = str(caught.value)
    assert "noisy_neighbour.entre: unknown setting; known here: classes, enter, least_windows, leave" in told
    assert "noisy_neighbour.classes.small_file_bytes: Input should be greater than 0 (it is -1)" in told
    assert "small_files_to_flahs: unknown setting; known here:" in told


@pytest.mark.parametrize("data", [b"x = [", b"\xff\xfe", b"x = 1\nx = 2\n"])
def test_what_is_no_toml_is_named(data: bytes) -> None:
    with pytest.raises(ConfigurationError, match=r"tierd\.toml: not a TOML file"):
        parse(data, "tierd.toml")


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "tierd.toml"
    path.write_text("[verify]\nleast_gain = 2\n")
    with pytest.raises(ConfigurationError, match=re.escape(f"{path}:2: verify.least_gain")):
        load(path)


def test_detectors_have_tables_of_their_own_and_their_mistakes_are_told_with_the_others() -> None:
    text = b"""\
[verify]
least_gain = 2

[detect.hot_small_files]
least_opens = 0
enabled = "perhaps"

[detect.small_random_io.classes]
smoll_rpc_bytes = 1

[detect.hot_large_files]
"""
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "tierd.toml")
    lines = str(caught.value).splitlines()
    assert sorted(line.split(" ")[0] for line in lines) == [
        "tierd.toml:11:", "tierd.toml:2:", "tierd.toml:5:", "tierd.toml:6:", "tierd.toml:9:"]
    told = str(caught.value)
    assert "detect.hot_small_files.least_opens: Input should be greater than or equal to 1 (it is 0)" in told
    assert "detect.hot_large_files: unknown setting; known here: cold_on_flash, flash_pressure, hot_small_files" in told
    assert "known here: small_file_bytes, small_rpc_bytes, stream_rpc_bytes" in told


def test_a_detector_takes_the_settings_of_its_table() -> None:
    settings = parse(b"[detect.hot_small_files]\nenabled = false\n", "tierd.toml")
    chosen = {configured.detector.name: configured.settings for configured in settings.detect}
    assert not chosen["hot-small-files"].enabled
    assert chosen["imbalance"].enabled
    assert settings != Settings()


@pytest.mark.parametrize("text", ["detect = 3\n", "[detect]\nhot_small_files = 3\n"])
def test_what_is_no_table_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"tierd\.toml:\d: detect"):
        parse(text.encode(), "tierd.toml")
