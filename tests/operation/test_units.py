"""The unit files and the settings beside them, judged by the tools that read them; skipped where there are none."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from httpserver.config import ConfigError, load_web_config
from tests.tierd.logged import logged
from tierd.cluster.process import MOVER_STOP_SECONDS
from tierd.config.load import load
from tierd.config.settings import Settings
from tierd.daemon.systemd import BEAT_SECONDS

SYSTEMD = Path(__file__).parents[2] / "systemd"


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Output of systemd-analyze."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze")
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False)


def complaints(unit: Path, program: str, scratch: Path) -> list[str]:
    """What systemd finds wrong with the unit, were its program there."""
    copy = scratch / unit.name
    copy.write_text(unit.read_text().replace(program, "/bin/true"))
    checked = analyze("verify", "--man=no", str(copy))
    reported = [line for line in checked.stderr.splitlines() if unit.name in line]
    return reported or [checked.stderr] * (checked.returncode != 0)


def exposure(unit: Path) -> float:
    """How much of the system the unit can reach, from 0 to 10."""
    judged = analyze("security", "--offline=true", "--no-pager", str(unit))
    if "unrecognized option" in judged.stderr:
        pytest.skip("this systemd cannot judge a file")
    found = re.search(r"exposure level for \S+: (\d+\.\d)", judged.stdout)
    assert found is not None, judged.stderr
    return float(found[1])


EXPORTER, TIERD = SYSTEMD / "lustre-exporter.service", SYSTEMD / "tierd.service"
UNITS = {
    EXPORTER.name: 2.5, "tierd-brake.service": 3.0, "tierd-mover@.service": 4.0, "tierd-reader@.service": 4.0,
    TIERD.name: 4.0,
}
"""Each unit with its greatest exposure."""
PROGRAM = "/opt/lustre-exporter/bin/lustre-exporter"


def pairs(name: str) -> list[tuple[str, str]]:
    return re.findall(r"^(\w+)=(.*)$", (SYSTEMD / name).read_text(), re.MULTILINE)


@pytest.mark.parametrize(("name", "most"), UNITS.items())
def test_a_unit_is_valid_and_exposes_little(name: str, most: float, tmp_path: Path) -> None:
    program = PROGRAM if name == EXPORTER.name else "/opt/lustre-tierd/bin/tierd"
    assert complaints(SYSTEMD / name, program, tmp_path) == []
    assert exposure(SYSTEMD / name) <= most


@pytest.mark.parametrize("name", ["tierd.service", "tierd@.service", "tierd-mover@.service", "tierd-reader@.service"])
def test_no_thread_of_a_unit_does_nothing(name: str) -> None:
    # on 128 processors numpy alone would have 64 threads
    words = " ".join(words for setting, words in pairs(name) if setting == "Environment").split()
    count = "import numpy, os; print(len(os.listdir('/proc/self/task')))"
    ran = subprocess.run([sys.executable, "-c", count], env=dict(word.split("=") for word in words),
                         capture_output=True, text=True, check=True)
    assert ran.stdout == "1\n"


def test_a_killed_agent_is_cleaned_up_after_and_started_again() -> None:
    settings = dict(pairs("tierd-brake.service"))
    assert settings["Restart"] == "always"
    assert int(settings["WatchdogSec"]) + int(settings["RestartSec"]) < 30
    assert settings["CapabilityBoundingSet"] == ""


def test_a_file_in_progress_is_completed_and_the_watchdog_is_served() -> None:
    settings = dict(pairs("tierd-mover@.service"))
    assert int(settings["TimeoutStopSec"]) > MOVER_STOP_SECONDS
    assert int(settings["WatchdogSec"]) > 2 * BEAT_SECONDS
    assert settings["ExecStart"].endswith("tierd mover --config /etc/tierd/%i.toml")


def test_the_reader_may_write_no_file_and_needs_fewer_capabilities_than_tierd() -> None:
    settings = pairs("tierd-reader@.service")
    assert {"ReadWritePaths", "StateDirectory", "RuntimeDirectory"}.isdisjoint(name for name, _ in settings)
    of_tierd = dict(pairs("tierd@.service"))["CapabilityBoundingSet"]
    assert set(dict(settings)["CapabilityBoundingSet"].split()) < set(of_tierd.split())


def test_the_exporter_may_read_and_nothing_else() -> None:
    settings = pairs(EXPORTER.name)
    assert ("AmbientCapabilities", "CAP_DAC_READ_SEARCH") in settings
    assert ("CapabilityBoundingSet", "CAP_DAC_READ_SEARCH") in settings
    assert ("TemporaryFileSystem", "/:ro") in settings
    writable = {"ReadWritePaths", "BindPaths", "StateDirectory", "CacheDirectory", "LogsDirectory", "RuntimeDirectory"}
    assert writable.isdisjoint(name for name, _ in settings)
    # Both would bring the node's files back into sight, over the empty root.
    assert {"DynamicUser", "ProtectSystem"}.isdisjoint(name for name, _ in settings)


def test_a_reload_of_an_exporter_that_starts_does_not_end_it() -> None:
    assert ("RestartForceExitStatus", "SIGHUP") in pairs(EXPORTER.name)


def test_a_unit_with_a_limit_for_its_session_may_write_the_value() -> None:
    limited = [pairs(name) for name in UNITS if "LimitNICE" in dict(pairs(name))]
    assert not any(("BindReadOnlyPaths", "/proc /sys") in settings for settings in limited)


def test_the_example_of_a_web_configuration_lacks_its_files_only() -> None:
    with pytest.raises(ConfigError) as caught:
        load_web_config(SYSTEMD / "web.yml")
    assert all("cannot read" in sentence for sentence in caught.value.sentences)
    assert len(caught.value.sentences) == 2


def test_the_drop_in_of_compute_nodes_is_valid(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    unit = whole / EXPORTER.name
    settings = (SYSTEMD / "lustre-exporter-compute.conf").read_text().replace("[Service]\n", "")
    unit.write_text(EXPORTER.read_text().replace("\n[Install]", f"\n{settings}\n[Install]"))
    assert "CPUSchedulingPolicy=idle" in settings
    assert complaints(unit, PROGRAM, tmp_path) == []


def test_the_timer_of_the_textfile_runs_on_all_nodes_at_the_same_time(tmp_path: Path) -> None:
    for kind in ("service", "timer"):
        assert complaints(SYSTEMD / f"lustre-exporter-textfile.{kind}", PROGRAM, tmp_path) == []
    settings = dict(pairs("lustre-exporter-textfile.timer"))
    assert settings["OnCalendar"] == "*-*-* *:*:00"
    assert settings["RandomizedDelaySec"] == "0"


def test_tierd_notifies_is_watched_and_reloads() -> None:
    settings = dict(pairs(TIERD.name))
    assert settings["Type"] == "notify"
    assert int(settings["WatchdogSec"]) >= 10 * Settings().sense.cycle_seconds
    assert "HUP" in settings["ExecReload"]
    defaults = Settings()
    assert f"/var/lib/{settings['StateDirectory']}" == str(Path(defaults.act.journal).parent)
    assert f"/run/{settings['RuntimeDirectory']}" == str(Path(defaults.act.socket).parent)
    # "-": a drop-in adds another mount. ProtectKernelTunables makes /sys read-only, where osp.*.max_create_count is.
    assert settings["ReadWritePaths"].split() == [f"-{defaults.filesystem.mount}", "-/sys/fs/lustre/osp"]
    assert settings["RequiresMountsFor"] == defaults.filesystem.mount


@pytest.mark.parametrize("name", ["tierd.service", "tierd@.service", "tierd-mover@.service"])
def test_what_moves_files_may_write_to_the_mount_and_open_them_by_fid(name: str) -> None:
    said = (SYSTEMD / name).read_text().partition("your mount point differs")[2].splitlines()[1:5]
    assert said == ["#   [Unit]", "#   RequiresMountsFor=/lustre", "#   [Service]", "#   ReadWritePaths=/lustre"]
    assert dict(pairs(name))["ReadWritePaths"].startswith("-/mnt/")
    # llapi_open_by_fid since Lustre 2.16 (LU-8585); @system-service does not have the call
    filters = [words.split() for setting, words in pairs(name) if setting == "SystemCallFilter"]
    assert "open_by_handle_at" in filters[-1]
    assert "CAP_DAC_READ_SEARCH" in dict(pairs(name))["CapabilityBoundingSet"].split()


def test_the_unit_of_tierd_for_one_of_several_is_the_same_but_for_names() -> None:
    wanted = TIERD.read_text().partition("[Unit]")[2]
    for one, several in (
        ("Description=Lustre tiering daemon", "Description=Lustre tiering daemon for %i"),
        ("/etc/tierd/tierd.toml", "/etc/tierd/%i.toml"), ("/mnt/lustre", "/mnt/%i"),
        ("StateDirectory=tierd", "StateDirectory=tierd/%i"), ("RuntimeDirectory=tierd", "RuntimeDirectory=tierd/%i"),
    ):
        assert one in wanted
        wanted = wanted.replace(one, several)
    assert (SYSTEMD / "tierd@.service").read_text().rpartition("\n[Unit]")[2] == wanted


def test_every_exception_has_its_reason() -> None:
    lines = TIERD.read_text().splitlines()
    for at, line in enumerate(lines):
        if re.match(r"(Private|Protect|Restrict|ProcSubset|MemoryDeny)\w*=(no|all|default)$", line):
            assert lines[at - 1].startswith("#"), line


def test_the_sample_settings_are_the_defaults_and_give_no_warning() -> None:
    warnings = logged()
    assert load(SYSTEMD / "tierd.toml") == Settings()
    assert warnings == []


def test_settings_commented_out_in_the_sample_are_defaults(tmp_path: Path) -> None:
    text = (SYSTEMD / "tierd.toml").read_text()
    shown = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    for name in ("exporters", "mdts", "MDT0000"):  # examples, not defaults
        shown = re.sub(rf"^{name} = .*$", "", shown, flags=re.MULTILINE)
    (tmp_path / "tierd.toml").write_text(shown)
    assert load(tmp_path / "tierd.toml") == Settings()
