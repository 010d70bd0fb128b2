"""Settings under the names of the version before: accepted with a warning, and refused beside the new name."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.logged import logged
from tierd.__main__ import main
from tierd.config.load import ConfigurationError, load, parse
from tierd.config.old_keys import OLD_KEYS, new_key, with_current_keys
from tierd.config.settings import Settings

EVERY_OLD_KEY = [(*table, key) for table, keys in OLD_KEYS.items() for key in keys]


def setting(settings: Any, location: tuple[str, ...]) -> Any:
    value = settings
    for part in location:
        if part == "detect":
            value = {configured.policy.table: configured.settings for configured in settings.policies}
        elif isinstance(value, Settings) and part in value.tables.by_name:
            value = value.tables.by_name[part]
        else:
            value = value[part] if isinstance(value, dict) else getattr(value, part)
    return value


def names(settings: Any) -> set[str]:
    """Names of all settings, of all tables."""
    found = set()
    for field in fields(settings):
        value = getattr(settings, field.name)
        found.add(field.name)
        if field.name == "policies":
            found |= {name for configured in value for name in names(configured.settings)}
        elif field.name == "tables":
            found |= {name for table in value.by_name.values() for name in names(table)}
        elif is_dataclass(value):
            found |= names(value)
    return found


@pytest.mark.parametrize("location", EVERY_OLD_KEY, ids=".".join)
def test_an_old_key_sets_the_setting_of_its_new_name(location: tuple[str, ...]) -> None:
    *table, key = location
    current = (*table, new_key(key))
    value = setting(Settings(), current)
    value = value / 2 if isinstance(value, float) else value + 1
    warnings = logged()
    found = parse(f"[{'.'.join(table)}]\n\n{key} = {value}\n".encode(), "t.toml")
    assert setting(found, current) == value
    (warning,) = warnings
    assert warning.startswith(f"t.toml:3: {'.'.join(location)}: this setting is called {new_key(key)} now")


def test_no_setting_has_a_name_of_the_version_before() -> None:
    assert {name for name in names(Settings()) if name.startswith(("most_", "least_"))} == set()


def test_a_setting_under_both_names_is_a_mistake() -> None:
    warnings = logged()
    with pytest.raises(ConfigurationError) as caught:
        parse(b"[verify]\nmin_gain = 0.3\nleast_gain = 0.3\nmost_harm = 2\n", "t.toml")
    assert str(caught.value).splitlines() == [
        "t.toml:2: verify.least_gain: this is the old name of min_gain, which is set as well: remove least_gain",
        "t.toml:4: verify.max_harm: must be less than 1 (it is 2)"]
    assert [warning.split(": ")[1] for warning in warnings] == ["verify.most_harm"]


def test_a_drop_in_overrides_an_old_key_with_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "tierd.toml").write_text("[verify]\nleast_gain = 0.3\nmost_harm = 0.2\n")
    (tmp_path / "tierd.d").mkdir()
    (tmp_path / "tierd.d" / "10.toml").write_text("[verify]\nmin_gain = 0.4\n")
    warnings = logged()
    settings = load(tmp_path / "tierd.toml")
    assert (settings.verify.min_gain, settings.verify.max_harm) == (0.4, 0.2)
    assert [warning.split(" ")[0] for warning in warnings] == [f"{tmp_path}/tierd.toml:{line}:" for line in (2, 3)]


def test_scopes_have_old_keys_too() -> None:
    warnings = logged()
    text = b"""\
[[scopes]]
path = "/a"
[[scopes]]
path = "/b"
[scopes.small_files_to_flash]
most_moves = 3
sizing.least_samples = 4
"""
    settings = parse(text, "t.toml")
    policy = settings.resolved_scopes.of("/b").small_files_to_flash
    assert (policy.max_moves, policy.sizing.min_samples) == (3, 4)
    assert settings.resolved_scopes.of("/a").small_files_to_flash == Settings().small_files_to_flash
    assert [warning.split(" ")[0] for warning in warnings] == ["t.toml:6:", "t.toml:7:"]


def test_check_config_prints_old_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tierd.toml"
    path.write_text("[verify]\nleast_gain = 0.3\n")
    assert main(["--config", str(path), "--check-config"]) == 0
    printed = capsys.readouterr()
    assert printed.err == (f"warning: {path}:2: verify.least_gain: this setting is called min_gain now; rename it, as "
                           "the next release does not accept least_gain\n")
    assert printed.out == f"{path}: OK\n"


@pytest.mark.parametrize("text", [b"verify = 3\n", b"scopes = [1, {path = 2}]\n", b"detect = [1]\n"])
def test_what_is_no_table_is_a_mistake_as_before(text: bytes) -> None:
    with pytest.raises(ConfigurationError):
        parse(text, "t.toml")


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["scopes", "verify", "detect", "striping", "least_gain", "min_gain", "least_files"]), inner,
        max_size=4))


@given(st.dictionaries(st.sampled_from(["scopes", "verify", "detect", "least_gain", "x"]), VALUES))
def test_renaming_loses_nothing_and_has_an_end(values: dict[str, Any]) -> None:
    renamed, found = with_current_keys(values)
    assert with_current_keys(renamed) == (renamed, [])
    if not found:
        assert renamed == values


def test_a_table_that_moved_is_a_mistake_that_says_what_to_write(tmp_path: Path) -> None:
    file = tmp_path / "tierd.toml"
    file.write_text("[hot_files_to_flash.data_on_mdt]\nenabled = true\n")
    with pytest.raises(ConfigurationError) as raised:
        load(file)
    assert f"{file}:1: hot_files_to_flash.data_on_mdt: move its settings to [data_on_mdt]" in str(raised.value)
    assert '"data-on-mdt" into act.on' in str(raised.value)
