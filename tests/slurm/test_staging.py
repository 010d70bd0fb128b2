"""Jobs of a real Slurm whose files tierd stages: #BB_LUA in a script, the plugin, tierctl, tierd, moves."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.slurm.cluster import Slurm
from tests.slurm.cluster import slurm as slurm
from tests.slurm.simulated_tierd import Site
from tierd.config.act import GeneralLimits
from tierd.daemon.answers import StagingsAnswer
from tierd.daemon.client import ask

SLOW = GeneralLimits(files_per_second=0.5)


@pytest.fixture
def site(slurm: Slurm, tmp_path: Path) -> Site:
    return Site(tmp_path, slurm.socket)


def stagings(slurm: Slurm, job: str) -> StagingsAnswer:
    """Of a job. A request that names the job would count as one that waits for it."""
    every = StagingsAnswer.from_json(ask(str(slurm.socket), {"request": "stage-state"}))
    return StagingsAnswer(tuple(each for each in every.stagings if each.job == job))


def await_stagings(slurm: Slurm, job: str, count: int) -> StagingsAnswer:
    """The stagings of a job once there are so many, and all have ended."""
    slurm.until(lambda: [each.open for each in stagings(slurm, job).stagings] == [False] * count)
    return stagings(slurm, job)


def test_a_job_has_its_files_on_flash_and_gives_them_back(slurm: Slurm, site: Site) -> None:
    for number in range(12):
        site.file(f"/proj/model/{number}", uid=slurm.uid)
    site.file("/proj/a\nb '\udcff", uid=slurm.uid)
    with site.running():
        job = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=60s", "#SBATCH --comment=mine",
                        r'''#BB_LUA stage_in path="/mnt/lustre/proj/a\nb\x20'\xff" deadline=60s''',
                        "#BB_LUA stage_out path=/mnt/lustre/proj/model")
        record = slurm.await_state(job, "RUNNING", "COMPLETED", also="staged in")
        assert record["AdminComment"].startswith("tierd: staged in 12 of 12 files (1.2 MB) of /proj/model; "
                                                 "staged in 1 of 1 file (100 kB) of ")
        found = await_stagings(slurm, job, 3).stagings
        assert slurm.await_state(job, "COMPLETED")["ExitCode"] == "0:0"
    assert [(each.direction, each.succeeded) for each in found] == [
        ("promote", True), ("promote", True), ("demote", True)]
    assert [site.pool(f"/proj/model/{number}") for number in range(12)] == ["hdd"] * 12
    assert site.pool("/proj/a\nb '\udcff") == "flash"


@pytest.mark.parametrize("name", ["x UserId=root(0) GroupId=root(0)", "x\n   UserId=root(0) GroupId=root(0)"])
def test_the_name_of_a_job_gives_no_rights(slurm: Slurm, site: Site, name: str) -> None:
    """Slurm 22.05 passes no uid to the plugin, and scontrol prints the name of a job before its user."""
    site.file("/proj/private/a", uid=slurm.uid + 1, mode=0o600)
    with site.running():
        done = slurm.submit("#BB_LUA stage_in path=/mnt/lustre/proj/private/a deadline=10s", name=name)
        if done.returncode:
            pytest.skip(f"Slurm accepts no such name: {done.stderr.strip()}")
        (found,) = await_stagings(slurm, done.stdout.strip(), 1).stagings
    assert (found.user, found.succeeded) == (slurm.user, False)
    assert site.pool("/proj/private/a") != "flash"


def test_the_comment_of_the_site_stays_whatever_the_job_is_called(slurm: Slurm, site: Site) -> None:
    site.file("/proj/model/a", uid=slurm.uid)
    with site.running():
        job = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=20s", options=["--hold"],
                        name="x\n   AdminComment=free of charge")
        slurm.run("scontrol", "update", f"JobId={job}", "AdminComment=billed")
        slurm.run("scontrol", "release", job)
        record = slurm.await_state(job, "COMPLETED", also="staged in")
        said = slurm.folder / "sacctmgr.said"
        slurm.until(lambda: said.exists() and f"jobid={job}\n" in said.read_text())
    assert record["AdminComment"] == "billed | tierd: staged in 1 of 1 file (100 kB) of /proj/model"
    assert said.read_text().endswith("AdminComment=billed | tierd: staged in 1 of 1 file (100 kB) of /proj/model\n")


def test_the_comment_of_a_task_goes_to_no_other_task(slurm: Slurm, site: Site) -> None:
    """The number of an array's last task is that of the whole array."""
    site.file("/proj/model/a", uid=slurm.uid)
    with site.running():
        array = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=20s",
                          options=["--hold", "--array=1-2"])
        slurm.run("scontrol", "update", f"JobId={array}_1", "AdminComment=first")
        slurm.run("scontrol", "release", f"{array}_2")
        slurm.until(lambda: "staged in" in slurm.record(f"{array}_2").get("AdminComment", ""))
        assert slurm.record(f"{array}_2")["JobId"] == array
        assert slurm.record(f"{array}_1")["AdminComment"] == "first"
        said = slurm.folder / "sacctmgr.said"
        slurm.until(lambda: said.exists() and f"jobid={array}_2\n" in said.read_text())
        slurm.run("scancel", array)


def test_a_bad_directive_is_refused_at_submission(slurm: Slurm) -> None:
    refused = slurm.submit("#BB_LUA stage_in path=/mnt/lustre/a deadline=never")
    assert refused.returncode != 0
    assert "line 2: deadline is a time up to 12h: 90s, 10m, 2h" in refused.stderr


def test_a_job_starts_when_its_files_are_not_there_at_the_deadline(slurm: Slurm, site: Site) -> None:
    """One job goes on without them; the other one is held, because its user wants that."""
    for number in range(12):
        site.file(f"/proj/model/{number}", uid=slurm.uid)
    site.settings = replace(site.settings, limits=SLOW)
    with site.running():
        job = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=4s")
        held = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/absent deadline=4s on_failure=hold")
        record = slurm.await_state(job, "COMPLETED", also="before the deadline")
        (found,) = stagings(slurm, job).stagings
        assert found.state == "expired"
        assert 0 < found.left_out["not begun when the deadline passed"] < 12
        slurm.await_state(held, "PENDING", also="No such file")
        slurm.until(lambda: "burst_buffer/lua" in (held_as := slurm.record(held)).get("Reason", "")
                    or "tierd" in str(held_as))
        assert slurm.record(held)["Priority"] == "0"
        slurm.run("scancel", held)
    assert "not: not begun when the deadline passed" in record["AdminComment"]
    moved = sum(site.pool(f"/proj/model/{number}") == "flash" for number in range(12))
    assert moved == 12 - found.left_out["not begun when the deadline passed"]


def test_a_job_starts_without_tierd_and_while_tierd_is_paused(slurm: Slurm, site: Site) -> None:
    job = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=2s",
                    "#BB_LUA stage_out path=/mnt/lustre/proj/model deadline=2s")
    assert "socket not found" in slurm.await_state(job, "COMPLETED")["AdminComment"]
    site.file("/proj/model", uid=slurm.uid)
    with site.running():
        ask(str(slurm.socket), {"request": "pause", "reason": "maintenance"})
        job = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=1h")
        record = slurm.await_state(job, "COMPLETED")
    assert record["AdminComment"] == "tierd: tierd stages nothing now: paused: maintenance"
    assert site.pool("/proj/model") != "flash"


def test_a_cancelled_job_drops_moves_that_have_not_begun(slurm: Slurm, site: Site) -> None:
    for number in range(12):
        site.file(f"/proj/model/{number}", uid=slurm.uid)
    site.settings = replace(site.settings, limits=GeneralLimits(files_per_second=0.05))
    with site.running() as service:
        job = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=1h")
        slurm.until(lambda: [each.state for each in stagings(slurm, job).stagings] == ["moving"])
        slurm.run("scancel", job)
        (cancelled,) = await_stagings(slurm, job, 1).stagings
        assert cancelled.state == "cancelled"
        assert cancelled.left_out["cancelled"] > 0
        assert service.gate.waiting == 0
        slurm.await_state(job, "CANCELLED")


def test_staging_continues_after_tierd_was_killed(slurm: Slurm, tmp_path: Path) -> None:
    """The job waits for the tierd that follows, which moves what the journal has."""
    files = [f"/proj/model/{number}" for number in range(20)]
    wanted = {"folder": str(tmp_path), "socket": str(slurm.socket), "files": files, "uid": slurm.uid,
              "files_per_second": 2.0}
    process = started(wanted)
    try:
        job = slurm.job("#BB_LUA stage_in path=/mnt/lustre/proj/model deadline=10m")
        slurm.until(lambda: any(each.outcomes.get("done") for each in stagings(slurm, job).stagings))
        killed(process)
        process = started(wanted | {"files_per_second": 200.0})
        record = slurm.await_state(job, "COMPLETED", also="staged in")
        (ended,) = stagings(slurm, job).stagings
    finally:
        killed(process)
    assert record["AdminComment"] == "tierd: staged in 20 of 20 files (2.0 MB) of /proj/model"
    assert ended.outcomes == {"done": 20}


def killed(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def started(wanted: dict[str, object]) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-m", "tests.slurm.simulated_tierd", json.dumps(wanted)],
                               stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process
