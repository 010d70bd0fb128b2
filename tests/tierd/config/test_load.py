"""Files of settings: drop-ins, tables, scopes, and mistakes with their file and line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tierd.config.act import Mode
from tierd.config.files import ConfigurationWatch
from tierd.config.load import ConfigurationError, load, parse
from tierd.config.settings import Settings


@pytest.mark.parametrize(("data", "words"), [
    (b"x = [", "not a TOML file"), (b"\xff\xfe", "not a TOML file"), (b"x = 1\nx = 2\n", "not a TOML file"),
    (b"a = " + b"[" * 5000 + b"]" * 5000, "lists or tables are nested too deeply$"),
], ids=["cut", "not UTF-8", "a name twice", "nested too deeply"])
def test_a_file_that_is_not_toml_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^tierd\.toml: {words}"):
        parse(data, "tierd.toml")


def test_a_detector_takes_the_settings_of_its_table() -> None:
    settings = parse(b"[detect.hot_small_files]\nenabled = false\n", "tierd.toml")
    chosen = {configured.policy.name: configured.settings for configured in settings.policies}
    assert not chosen["hot-small-files"].enabled
    assert chosen["imbalance"].enabled
    assert settings != Settings()


@pytest.mark.parametrize("folder", ["", "/", ".", "..", "../x", "/a/../../x"])
def test_the_claim_has_a_folder_of_its_own_in_the_file_system(folder: str) -> None:
    """Outside of it two tierd could both hold the claim; everybody can read the root, and there the key."""
    with pytest.raises(ConfigurationError, match="name a folder of its own"):
        parse(f'[claim]\nfolder = "{folder}"\n'.encode(), "tierd.toml")
    assert parse(b'[claim]\nfolder = "/admin/.tierd"\n', "tierd.toml").claim.folder == "/admin/.tierd"


def test_a_scope_takes_from_the_file_what_it_does_not_say() -> None:
    text = b"""\
[act]
mode = "observe"
[small_files_to_flash]
flash_pool = "nvme"
[small_files_to_flash.sizing]
largest_component_bytes = 7
[[scopes]]
path = "/scratch/"
[[scopes]]
path = "/scratch/ml"
mode = "full"
[scopes.small_files_to_flash]
reserve = 0.3
[scopes.limits]
files_per_second = 2
"""
    settings = parse(text, "tierd.toml")
    assert settings.resolved_scopes.of("/home").mode == "observe"
    assert settings.resolved_scopes.of("/scratch/x").mode == "observe"
    assert settings.resolved_scopes.of("/scratchy").path == "/"
    inner = settings.resolved_scopes.of("/scratch/ml/run")
    policy = inner.small_files_to_flash
    assert (inner.mode, policy.flash_pool, policy.reserve) == ("full", "nvme", 0.3)
    assert policy.sizing.largest_component_bytes == 7
    assert inner.limits.files_per_second == 2
    assert settings.resolved_scopes.modes == {"observe", "full"}
    assert all(isinstance(mode, Mode) for mode in settings.resolved_scopes.modes)


def test_a_mistake_that_scopes_inherit_is_reported_once_with_its_line() -> None:
    text = b"""
[small_files_to_flash]
reserve = 2
[act]
mode = "fast"
[[scopes]]
path = "/a"
[[scopes]]
path = "/b"
mode = "slow"
[[scopes]]
[scopes.small_files_to_flash]
reserve = 3
"""
    with pytest.raises(ConfigurationError) as caught:
        parse(text, "t.toml")
    error = [line.partition(" (it is")[0] for line in str(caught.value).splitlines()]
    assert [line.split(": ")[:2] for line in error] == [
        ["t.toml:3", "small_files_to_flash.reserve"], ["t.toml:5", "act.mode"], ["t.toml:10", "scopes.1.mode"],
        ["t.toml:11", "scopes.2.path"], ["t.toml:13", "scopes.2.small_files_to_flash.reserve"]]


def test_files_with_secrets_must_be_there_and_not_readable_by_everybody(tmp_path: Path) -> None:
    password, token = tmp_path / "password", tmp_path / "token"
    password.write_text("hush")
    password.chmod(0o644)
    path = tmp_path / "tierd.toml"
    path.write_text(f"""\
[sense.exporter_access]
user = "me"
password_file = "{password}"
[sense.prometheus.access]
token_file = "{token}"
""")
    with pytest.raises(ConfigurationError) as caught:
        load(path)
    assert str(caught.value).splitlines() == [
        (f"{path}:3: sense.exporter_access.password_file: {password} has mode 0644, so every user can read it: "
         f"run chmod 0600 {password}"),
        f"{path}:5: sense.prometheus.access.token_file: {token} cannot be read: No such file or directory"]
    for secret in (password, token):
        secret.touch()
        secret.chmod(0o640)
    assert load(path).sense.exporter_access.password_file == str(password)


def test_only_the_first_unknown_setting_of_a_table_lists_the_known_ones() -> None:
    """A file of 20,000 unknown settings is refused within two seconds: a list for each took five minutes."""
    with pytest.raises(ConfigurationError) as caught:
        parse(b"".join(b"key%d = 1\n" % number for number in range(20_000)), "t.toml")
    first, *others = str(caught.value).splitlines()
    assert first.startswith("t.toml:1: key0: unknown setting; known here: act, ")
    assert others == [f"t.toml:{number + 1}: key{number}: unknown setting" for number in range(1, 20_000)]


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
