"""Drop-ins are merged in order, mistakes are reported with their file, and changes are noticed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tierd.config.files import ConfigurationWatch
from tierd.config.load import ConfigurationError, load


@pytest.fixture
def main(tmp_path: Path) -> Path:
    path = tmp_path / "tierd.toml"
    path.write_text("[act]\nmode = 'observe'\n[limits]\nfiles_per_second = 1.0\nbytes_per_second = 1e6\n"
                    "[[scopes]]\npath = '/a'\n", encoding="utf-8")
    return path


def drop_in(main: Path, name: str, text: str) -> Path:
    folder = main.with_suffix(".d")
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_the_last_word_counts_and_scopes_add_up(main: Path) -> None:
    drop_in(main, "20-b.toml", "[limits]\nfiles_per_second = 3.0\n")
    drop_in(main, "10-a.toml", "[limits]\nfiles_per_second = 2.0\n[[scopes]]\npath = '/b'\nmode = 'full'\n")
    drop_in(main, ".30-hidden.toml", "nonsense")
    drop_in(main, "40-note.txt", "nonsense")
    settings = load(main)
    assert settings.act.mode == "observe"
    assert (settings.limits.files_per_second, settings.limits.bytes_per_second) == (3.0, 1e6)
    assert [(scope.path, scope.mode) for scope in settings.scopes] == [("/a", "observe"), ("/b", "full")]


def test_mistakes_are_reported_with_their_file(main: Path) -> None:
    first = drop_in(main, "10.toml", "# a comment\n[web]\nport = -1\n[[scopes]]\npath = 'no'\n")
    second = drop_in(main, "20.toml", "[limits]\n\nfiles_per_secnd = 1\n")
    with pytest.raises(ConfigurationError) as caught:
        load(main)
    reported = {line.split(": ")[0] for line in str(caught.value).splitlines()}
    assert reported == {f"{first}:3", f"{first}:5", f"{second}:3"}


def test_every_file_that_is_no_toml_is_named(main: Path) -> None:
    first, second = drop_in(main, "10.toml", "[act\n"), drop_in(main, "20.toml", "= 1\n")
    with pytest.raises(ConfigurationError) as caught:
        load(main)
    assert f"{first}: not a TOML file" in str(caught.value)
    assert f"{second}: not a TOML file" in str(caught.value)


def test_changes_are_noticed(main: Path) -> None:
    def install() -> None:
        new = main.with_suffix(".new")
        new.write_text("")
        new.replace(main)

    watch = ConfigurationWatch(main)
    changes: list[Callable[[], object]] = [
        lambda: main.write_text("[act]\n"), install, lambda: drop_in(main, "10.toml", ""),
        lambda: drop_in(main, "10.toml", "[act]\n"), main.with_suffix(".d").joinpath("10.toml").unlink, main.unlink]
    for change in changes:
        assert not watch.changed()
        change()
        assert watch.changed()


def test_other_files_are_no_reason_to_read_again(main: Path) -> None:
    drop_in(main, "10.toml", "")
    watch = ConfigurationWatch(main)
    main.with_name("password").write_text("geheim")
    drop_in(main, ".10.toml.swp", "")
    drop_in(main, "README", "")
    assert not watch.changed()
