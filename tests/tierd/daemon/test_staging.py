"""Staging for a scheduler over the control socket, in virtual time: rights, deadline, cancel, restart, limits."""

import stat
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.later import Later
from tests.tierd.site import Site
from tierd.act.staging import StagingState
from tierd.clock import SystemClock
from tierd.config.act import GeneralLimits, Mode
from tierd.config.scopes import Scope
from tierd.config.settings import ControlSettings
from tierd.daemon.answers import StagingAnswer, StagingsAnswer
from tierd.daemon.changes import CHANGING_REQUESTS, SCHEDULER_REQUESTS
from tierd.daemon.client import ControlError, ask
from tierd.daemon.control import ControlServer, Peer
from tierd.integrations.slurm.source import SlurmJobs, SlurmSettings

ALICE, BOB = 1001, 1002
HDD = Layout((Component(pool="hdd"),), composite=False)


def stage(site: Site, *paths: str, uid: int = ALICE, direction: str = "promote", seconds: float = 3600.0,
          job: str = "17", **more: Any) -> StagingsAnswer:
    stages = [{"direction": direction, "path": f"/mnt/lustre{path}", "deadline_seconds": seconds, **more}
              for path in paths]
    return StagingsAnswer.from_json(site.ask("stage", job=job, uid=uid, gid=100, user="alice", stages=stages))


def state(site: Site, job: str = "17") -> tuple[StagingAnswer, ...]:
    return StagingsAnswer.from_json(site.ask("stage-state", job=job)).stagings


def files(site: Site, *paths: str, uid: int = ALICE) -> None:
    for path in paths:
        site.cluster.make_file(path, 100_000, uid=uid)


def test_a_job_moves_only_files_that_its_user_may_read(site: Site) -> None:
    files(site, "/proj/mine/a", "/proj/mine/b")
    files(site, "/proj/mine/bobs", "/proj/mine/readable", "/proj/mine/secret/c", uid=BOB)
    site.cluster.namespace.lookup("/proj/mine/bobs").mode = stat.S_IFREG | 0o600
    site.cluster.namespace.lookup("/proj/mine/secret").mode = stat.S_IFDIR | 0o700
    stage(site, "/proj/mine")
    site.run(until=10)
    (found,) = state(site)
    assert found.outcomes == {"done": 3}
    assert found.left_out == {"user u1001 may not read the file": 1,
                              "user u1001 may not list the directory /proj/mine/secret": 1}
    assert not found.succeeded
    stage(site, "/proj/mine", direction="demote", job="18")
    site.run(until=20)
    (back,) = state(site, "18")
    assert back.outcomes == {"done": 2}
    assert back.left_out["user u1001 may not write the file"] == 2
    out = site.shown("stages")
    assert "job 17  alice  ended" in out
    assert "staged out 2 of 5 files" in out  # a folder that is left out counts as one


def test_a_job_does_not_learn_what_is_in_a_directory_that_is_closed_to_its_user(site: Site) -> None:
    files(site, "/proj/secret/there", uid=BOB)
    site.cluster.namespace.lookup("/proj/secret").mode = stat.S_IFDIR | 0o700
    stage(site, "/proj/secret/there", job="17")
    stage(site, "/proj/secret/not-there", job="18")
    site.run(until=10)
    assert state(site, "17")[0].left_out == state(site, "18")[0].left_out == {
        "user u1001 may not search the directory /proj/secret": 1}


def test_a_staging_that_is_repeated_or_named_twice_is_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    files(site, "/proj/a")
    twice, again = stage(site, "/proj/a", "/proj/a"), stage(site, "/proj/a")
    monkeypatch.setattr("tierd.act.staging.MAX_OPEN", 1)
    with pytest.raises(ControlError, match="1 stagings wait or move; at most 1 may"):
        stage(site, "/proj/b")
    assert len({each.id for each in (*twice.stagings, *again.stagings)}) == 1
    site.run(until=10)
    assert [each.state for each in state(site)] == ["ended"]
    assert stage(site, "/proj/a").stagings[0].id != again.stagings[0].id


def test_files_in_place_need_no_move(site: Site) -> None:
    files(site, "/proj/a")
    stage(site, "/proj/a")
    site.run(until=10)
    stage(site, "/proj/a", job="18")
    site.run(until=20)
    (found,) = state(site, "18")
    assert (found.in_place, found.files, found.outcomes, found.succeeded) == (1, 0, {}, True)
    assert found.sentence == "staged in 1 of 1 file (0 B) of /proj/a"


def test_a_limit_has_the_name_that_it_has_in_a_script(site: Site) -> None:
    files(site, "/proj/mine/a", "/proj/mine/b", "/proj/other/c")
    stage(site, "/proj/mine", max_files=1)
    stage(site, "/proj/other", job="18", max_bytes=1)
    site.run(until=10)
    for job in ("17", "18"):
        assert [why for why in state(site, job)[0].left_out if why.endswith(" is reached (max_files, max_size)")]


@pytest.mark.parametrize("removed", [True, False])
def test_a_file_that_was_removed_or_came_to_flash_before_its_turn_is_not_missing(site: Site, removed: bool) -> None:
    """To flash as one whose move tierd did not see end before its restart."""
    site.restart(limits=GeneralLimits(files_per_second=0.5))
    files(site, *(f"/proj/d/{number}" for number in range(5)))
    stage(site, "/proj/d")
    site.run(until=10)
    if removed:
        site.cluster.namespace.remove(site.cluster.namespace.lookup("/proj/d/4"), site.cluster.now)
    else:
        site.filesystem.migrate("/proj/d/4", site.filesystem.layout("/proj/d/0") or HDD)
    for second in (20, 40):
        site.run(until=second)
        (found,) = state(site)
    assert found.outcomes == ({"done": 4} if removed else {"done": 4, "already": 1})
    count = sum(found.outcomes.values())
    assert (found.succeeded, found.sentence) == (True, f"staged in {count} of {count} files (500 kB) of /proj/d")


def test_a_deadline_passes_though_tierd_is_paused_meanwhile(site: Site) -> None:
    files(site, "/proj/a")
    stage(site, "/proj/a", seconds=2.0, job="16")
    site.cluster.advance(5.0)
    assert state(site, "16")[0].state == "expired", "even while a thread of tierd hangs"
    assert stage(site, "/proj/a", seconds=20.0).stagings
    site.ask("pause", reason="night")
    site.run(until=10)
    assert state(site)[0].open
    assert stage(site, "/proj/a", job="18").held == "paused: night"
    assert state(site, "18") == ()
    site.run(until=30)
    assert [(each.state, each.succeeded) for each in state(site)] == [("expired", False)]
    assert state(site)[0].sentence == (
        "staged in 0 of 1 file (0 B) of /proj/a before the deadline; 1 not: tierd had not planned it yet")
    site.ask("resume")
    stage(site, "/proj/a", seconds=2.0, job="19")
    site.cluster.advance(5.0)
    site.run(until=40)
    assert [(each.state, each.outcomes) for each in state(site, "19")] == [("expired", {})], "nor is it begun late"



def test_a_cancelled_job_drops_its_moves(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    files(site, "/proj/a", "/proj/b", "/proj/c")
    stage(site, "/proj/a")
    stage(site, "/proj/b", job="18")
    stage(site, "/proj/c", job="19")
    (seen, *_), stager = site.service._stager._snapshot(), site.service._stager
    site.ask("stage-cancel", job="17")
    stager._end(seen, StagingState.ENDED)  # as by another thread
    layout, planned = site.filesystem.layout, ["/proj/c"]

    def cancelled_while_it_is_planned(path: str) -> Layout | None:
        if path in planned:
            planned.clear()
            site.ask("stage-cancel", job="19")
        return layout(path)

    monkeypatch.setattr(site.filesystem, "layout", cancelled_while_it_is_planned)
    site.run(until=10)
    assert [state(site, job)[0].state for job in ("17", "18", "19")] == ["cancelled", "ended", "cancelled"]
    history = site.ask("history")["entries"]
    assert [entry["place"] for entry in history] == ["/proj/b"]


def test_a_job_of_another_cluster_with_the_same_number_goes_on(site: Site) -> None:
    files(site, "/proj/a", "/proj/b")
    stage(site, "/proj/a")
    stage(site, "/proj/b", uid=BOB)
    site.ask("stage-cancel", job="17", uid=ALICE)
    site.ask("stage-cancel", job="17", uid=-1)
    assert [each.state for each in state(site)] == ["cancelled", "accepted"]


def test_tasks_that_share_a_folder_wait_for_its_files(site: Site) -> None:
    site.restart(limits=GeneralLimits(files_per_second=0.5))
    files(site, *(f"/proj/d/{number}" for number in range(5)))
    for second, job in enumerate(("17", "18", "19")):
        site.run(until=5 * second)
        stage(site, "/proj/d", job=job)
    for second in (20, 40):
        site.run(until=second)
        found = [state(site, job)[0] for job in ("17", "18", "19")]
    assert [(each.sentence, each.succeeded) for each in found] == [
        (f"staged in 5 of 5 files ({size}) of /proj/d", True) for size in ("500 kB", "0 B", "0 B")]
    stage(site, "/proj/d", direction="demote", job="17")
    site.run(until=45)
    stage(site, "/proj/d", job="20")
    for second in (60, 80, 100):
        site.run(until=second)
        ended = [*state(site, "17"), *state(site, "20")]
    assert all(each.succeeded for each in ended), [each.sentence for each in ended]


@pytest.mark.parametrize(("first", "second"), [("/x", "/x/d"), ("/x/d", "/x"), ("/x/d", "/x/d/0")])
def test_a_folder_waits_for_the_files_that_move_for_one_around_it(site: Site, first: str, second: str) -> None:
    site.restart(limits=GeneralLimits(files_per_second=0.5))
    files(site, *(f"/x/d/{number}" for number in range(5)))
    stage(site, first)
    site.run(until=3)
    stage(site, second, job="18")
    for time in (20, 40):
        site.run(until=time)
        found = [state(site, job)[0] for job in ("17", "18")]
    assert [each.succeeded for each in found] == [True, True], [each.sentence for each in found]


def test_an_abandoned_staging_is_cancelled(site: Site) -> None:
    site.restart(limits=GeneralLimits(files_per_second=0.1))
    site.cluster.make_directory("/proj/out").layout = Layout((Component(pool="flash"),), composite=False)
    files(site, *(f"/proj/{way}/{number}" for number in range(60) for way in ("d", "out")))
    stage(site, "/proj/d", "/proj/none")
    stage(site, "/proj/out", direction="demote", job="18")
    for second in (20, 40):
        site.run(until=second)
        assert state(site)[0].open
    with pytest.raises(ControlError, match="its moves are dropped when the job is cancelled"):
        site.ask("undo", id="O1")
    site.run(until=85)
    gone, _ = state(site)
    assert gone.state == "cancelled"
    assert gone.left_out["cancelled"] > 30
    assert state(site, "18")[0].open, "a job that has ended asks no more"
    assert set(site.service._stager._silent_seconds) == {"18"}


def test_a_clock_that_is_set_abandons_no_staging(site: Site) -> None:
    site.restart(limits=GeneralLimits(files_per_second=0.1))
    files(site, *(f"/proj/d/{number}" for number in range(60)))
    stage(site, "/proj/d")
    site.run(until=10)
    clock = site.service._stager._clock
    site.service._stager._clock = SimpleNamespace(now=lambda: clock.now() + 60.0)
    site.run(until=20)
    assert [each.state for each in state(site)] == ["moving"]


def test_a_staging_plans_its_moves_again_after_a_restart(site: Site) -> None:
    site.restart(limits=GeneralLimits(files_per_second=0.1))
    files(site, *(f"/proj/d/{number}" for number in range(5)))
    stage(site, "/proj/d")
    site.run(until=10)
    assert state(site)[0].state == "moving"
    site.restart(limits=GeneralLimits(files_per_second=50.0))
    site.ask("drain", reason="no plan now, and moves go on")
    site.run(until=20)
    site.ask("resume")
    site.run(until=40)
    (found,) = state(site)
    assert (found.state, found.left_out, found.outcomes["done"] + found.in_place) == ("ended", {}, 5)


def test_modes_and_opt_outs_hold_for_jobs(site: Site) -> None:
    site.restart(scopes=(Scope("/proj/closed", Mode.OBSERVE),))
    files(site, "/proj/closed/a", "/proj/out/b")
    site.filesystem.set_xattr("/proj/out", "user.tierd", b"off")
    stage(site, "/proj/closed", "/proj/out")
    site.run(until=20)
    closed, out = state(site)
    assert closed.left_out == {"mode observe applies there": 1}
    assert closed.sentence.endswith("1 not: mode observe applies there")
    assert out.outcomes == {"refused": 1}


def test_a_dry_run_stages_nothing(site: Site) -> None:
    site.restart(act={"dry_run": True})
    files(site, "/proj/a")
    stage(site, "/proj/a")
    site.run(until=10)
    (found,) = state(site)
    assert found.sentence == "dry run: would stage in 1 of 1 file (100 kB) of /proj/a"
    assert found.outcomes == {"dry-run": 1}


@pytest.mark.parametrize(("request_", "words"), [
    ({"job": "1;2"}, "job is the id of a job"), ({"stages": []}, "a list of 1 to 64 stages"),
    ({"uid": -1}, "the uid and the gid"), ({"stages": ["/a"]}, "a stage is a JSON object"),
    ({"stages": [{"direction": "up", "path": "/mnt/lustre/a"}]}, "direction is promote or demote"),
    ({"stages": [{"direction": "promote", "path": "/home/a"}]}, "/home/a is not below /mnt/lustre"),
    ({"stages": [{"direction": "promote", "path": "/mnt/lustre/../etc"}]}, "without . and .."),
    ({"stages": [{"direction": "promote", "path": "/mnt/lustre/a", "deadline_seconds": 1e9}]}, "a deadline is"),
])
def test_a_malformed_request_is_refused(site: Site, request_: Mapping[str, object], words: str) -> None:
    good = {"request": "stage", "job": "17", "uid": 1, "gid": 1,
            "stages": [{"direction": "promote", "path": "/mnt/lustre/a"}]}
    with pytest.raises(ControlError, match=words.replace(".", r"\.")):
        ask(site.socket, {**good, **request_})


def test_the_user_of_the_scheduler_may_stage_and_nothing_else(tmp_path: Path) -> None:
    access = ControlSettings(stage_users=frozenset({64030}))
    server = ControlServer(str(tmp_path / "s"), lambda request: {"done": request["request"]}, access, CHANGING_REQUESTS,
                           SCHEDULER_REQUESTS, lambda _: Peer(64030))
    for name in SCHEDULER_REQUESTS:
        assert ask(str(tmp_path / "s"), {"request": name}) == {"done": name}
    for name in (CHANGING_REQUESTS | {"status", "history"}) - SCHEDULER_REQUESTS:
        with pytest.raises(ControlError, match="not allowed"):
            ask(str(tmp_path / "s"), {"request": name})
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o666
    server.close()


def test_stagings_and_jobs_are_metrics(site: Site) -> None:
    site.configure(slurm=SlurmSettings("squeue"))
    site.restart()
    files(site, "/proj/a")
    stage(site, "/proj/a")
    assert 'tierd_open_stagings{fs="lustre"} 1.0' in site.fetched("/metrics")[1]
    site.run(until=10)
    page = site.fetched("/metrics")[1]
    assert 'tierd_open_stagings{fs="lustre"} 0.0' in page
    assert 'tierd_stagings_total{direction="promote",fs="lustre",state="ended"} 1.0' in page
    assert "tierd_slurm_up{" in page


def test_names_of_jobs_stand_beside_their_ids(site: Site) -> None:
    """The stream of the site has the id that Slurm gave it."""
    jobs = (b'{"jobs": [{"job_id": 1002, "name": "train", "user_name": "alice", "account": "chem",'
            b' "partition": "gpu"}]}')
    slurm = SlurmJobs(SlurmSettings("squeue", job_id=r"ior_stream\.(\d+)"), lambda _: jobs, SystemClock(),
                      later := Later())
    site.service.sources.integrations = (slurm,)
    site.run(until=20)
    site.shown("top", "--once")  # the first look has Slurm asked
    assert later.run() == 1
    assert '"ior_stream.1002": "alice: train, account chem, partition gpu"' in site.shown("top", "--once", "--json")
    assert "alice: train" in site.shown("top", "--once")
    assert "alice: train, account chem, partition gpu" in site.fetched("/jobs")[1] + site.fetched("/")[1]
