"""tierd's unit and its settings, judged by the tools that read them where they are installed."""

from __future__ import annotations

import re
from pathlib import Path

from tests.units import SYSTEMD, complaints, exposure
from tierd.config.load import load
from tierd.config.settings import Settings

UNIT = SYSTEMD / "tierd.service"
MOST_EXPOSURE = 4.0


def test_the_unit_is_valid(tmp_path: Path) -> None:
    assert complaints(UNIT, "/opt/lustre-tierd/bin/tierd", tmp_path) == []


def test_the_unit_exposes_little() -> None:
    assert exposure(UNIT) <= MOST_EXPOSURE


def test_the_unit_notifies_is_watched_and_reloads() -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    assert settings["Type"] == "notify"
    assert int(settings["WatchdogSec"]) >= 10 * Settings().sense.cycle_seconds
    assert "HUP" in settings["ExecReload"]
    defaults = Settings()
    assert f"/var/lib/{settings['StateDirectory']}" == str(Path(defaults.act.journal).parent)
    assert f"/run/{settings['RuntimeDirectory']}" == str(Path(defaults.act.socket).parent)
    assert settings["ReadWritePaths"] == defaults.filesystem.mount == settings["RequiresMountsFor"]


def test_the_unit_for_one_of_several_is_the_same_but_for_names() -> None:
    wanted = UNIT.read_text().partition("[Unit]")[2]
    for one, several in (
        ("Description=Lustre tiering daemon", "Description=Lustre tiering daemon for %i"),
        ("/etc/tierd/tierd.toml", "/etc/tierd/%i.toml"), ("=/mnt/lustre", "=/mnt/%i"),
        ("StateDirectory=tierd", "StateDirectory=tierd/%i"), ("RuntimeDirectory=tierd", "RuntimeDirectory=tierd/%i"),
    ):
        assert one in wanted
        wanted = wanted.replace(one, several)
    assert (SYSTEMD / "tierd@.service").read_text().rpartition("\n[Unit]")[2] == wanted


def test_every_exception_has_its_reason() -> None:
    lines = UNIT.read_text().splitlines()
    for at, line in enumerate(lines):
        if re.match(r"(Private|Protect|Restrict|ProcSubset|MemoryDeny)\w*=(no|all|default)$", line):
            assert lines[at - 1].startswith("#"), line


def test_the_sample_settings_are_the_defaults() -> None:
    assert load(SYSTEMD / "tierd.toml") == Settings()


def test_settings_commented_out_in_the_sample_are_defaults(tmp_path: Path) -> None:
    text = (SYSTEMD / "tierd.toml").read_text()
    shown = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    for name in ("exporters", "mdts", "MDT0000"):  # examples, not defaults
        shown = re.sub(rf"^{name} = .*$", "", shown, flags=re.MULTILINE)
    (tmp_path / "tierd.toml").write_text(shown)
    assert load(tmp_path / "tierd.toml") == Settings()
