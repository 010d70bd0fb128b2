"""Prolog and epilog: the layout that helped before is set for the next run, and the job's comment gets a line."""

import json
import os
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lustre.layout.model import Layout
from tests.slurm.cluster import ROOT, SCRIPTS, Slurm
from tests.slurm.cluster import slurm as slurm
from tests.slurm.simulated_tierd import Site
from tests.tierd.simulated import COVERING
from tests.tierd.site import Clearing
from tests.tierd.site import Site as VirtualSite
from tierd.act.applications import ApplicationStore, NextRun, place_for
from tierd.act.journal.writer import Journal
from tierd.acts import ActKind, Outcome, Verdict
from tierd.clock import SystemClock
from tierd.config.act import GeneralLimits, Mode
from tierd.daemon.client import ask
from tierd.integrations.protocol import SchedulerJob
from tierd.integrations.slurm.source import parse
from tierd.model import Action, Evidence, Finding

FINDING = Finding("noisy-neighbour", 1.0, "4711", "99", (), "4711 slows 99", Evidence())


@pytest.fixture
def site(slurm: Slurm, tmp_path: Path) -> Site:
    made = Site(tmp_path, slurm.socket)
    for path in ("/proj/run1/out/x", "/proj/run2/out/x"):
        made.file(path, uid=slurm.uid)
    return made


def acted(path: Path, verdict: Verdict = Verdict.HELPED) -> Journal:
    """The journal of a tierd that acted on job 4711, and judged that."""
    journal = Journal(path)
    number = journal.add_finding(FINDING)
    act = journal.intend(Action(ActKind.SET_DEFAULT_LAYOUT, COVERING, "", FINDING.key, "/proj/run1/out"), number, None,
                         1.0, dry_run=False)
    journal.end(act, Outcome.DONE, "", 2.0)
    journal.judgements.add(number, "", "flash", 1, verdict, 1.0, 3.0)
    return journal


def helped(site: Site, user: str, verdict: Verdict = Verdict.HELPED) -> None:
    """The job was of the application. It is of today, because a thread of tierd removes old jobs from the journal."""
    journal = acted(Path(site.settings.act.journal), verdict)
    job = SchedulerJob(4711, "train", user, None, "chem", "batch", "/mnt/lustre/proj/run1")
    ApplicationStore(journal.db).remember({"4711": job}, lambda path: path.removeprefix("/mnt/lustre"),
                                          SystemClock().now())
    journal.close()


def default(site: Site) -> Layout | None:
    return site.cluster.namespace.lookup("/proj/run2/out").layout


def run(slurm: Slurm, directory: str = "/mnt/lustre/proj/run2", name: str = "train") -> str:
    """Run a job that starts there; slurmd does not need the directory, because Slurm then starts in /tmp."""
    job = slurm.job(name=name, options=[f"--chdir={directory}"])
    slurm.await_state(job, "COMPLETED")
    return job


def test_the_layout_that_helped_is_there_before_the_next_run(slurm: Slurm, site: Site) -> None:
    helped(site, slurm.user)
    with site.running():
        run(slurm, name="another")
        assert default(site) is None
        job = run(slurm)
        assert default(site) == COVERING
        slurm.until((slurm.folder / "sacctmgr.said").exists)
    said = (slurm.folder / "sacctmgr.said").read_text().splitlines()
    assert said == ["-i", "modify", "job", "where", f"jobid={job}", "set",
                    "AdminComment=tierd: prepared /proj/run2/out"]


@pytest.mark.parametrize("verdict", [Verdict.DID_NOT_HELP, Verdict.UNDONE_BY_HAND, Verdict.CANNOT_TELL])
def test_nothing_is_prepared_while_tierd_is_unsure(site: Site, slurm: Slurm, verdict: Verdict) -> None:
    helped(site, slurm.user)
    helped(site, slurm.user, verdict)
    assert prepared(site, slurm) == ([], [], [])


def test_only_directories_of_the_user_beside_the_last_one_are_prepared(site: Site, slurm: Slurm) -> None:
    helped(site, slurm.user)
    assert prepared(site, slurm) == ([], ["/proj/run2/out"], [])
    assert prepared(site, slurm, directory="/mnt/lustre/other/run2") == ([], [], [])
    assert prepared(site, slurm, user="mallory") == ([], [], [])
    assert prepared(site, slurm, directory="/home/me")[2] == ["the job does not start on /mnt/lustre"]
    site.cluster.namespace.lookup("/proj/run2/out").uid = slurm.uid + 1
    assert prepared(site, slurm)[2] == ["/proj/run2/out is not a directory of the job's user"]
    site.cluster.namespace.lookup("/proj/run2/out").uid = slurm.uid
    site.cluster.set_default_layout("/proj/run2/out", Layout(COVERING.components[1:]))
    assert prepared(site, slurm)[2] == ["/proj/run2/out has another default layout"]
    site.cluster.set_default_layout("/proj/run2/out", COVERING)
    assert prepared(site, slurm) == (["/proj/run2/out"], [], [])


def test_modes_and_dry_runs_hold(site: Site, slurm: Slurm) -> None:
    helped(site, slurm.user)
    act = site.settings.act
    site.settings = replace(site.settings, act=replace(act, mode=Mode.OBSERVE), limits=GeneralLimits())
    assert prepared(site, slurm)[2] == ["mode observe applies there"]
    site.settings = replace(site.settings, act=replace(act, dry_run=True))
    assert prepared(site, slurm)[2] == ["tierd is in a dry run"]


@pytest.mark.parametrize("name", ["", "\t", 'a"b\\\n', "%s \udcff"])
@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_a_script_sends_json_whatever_slurm_knows_of_a_job(tmp_path: Path, script: str, name: str) -> None:
    (tmp_path / "tierctl").write_text(f'#!/bin/sh\n[ "$1" != slurm ] || cat > {tmp_path}/request\n')
    (tmp_path / "tierctl").chmod(0o755)
    (tmp_path / "tierd.environment").write_text(f"TIERD_TIERCTL={tmp_path}/tierctl\n")
    shutil.copy(SCRIPTS / f"{script}-slurmctld", tmp_path)
    subprocess.run([tmp_path / f"{script}-slurmctld"], check=True, env={
        "PATH": os.environ["PATH"], "SLURM_JOB_ID": "18", "SLURM_JOB_NAME": name})
    sent = json.loads((tmp_path / "request").read_bytes().decode("utf-8", "surrogateescape"))
    assert (sent["job"], sent["user"]) == ("18", "")
    assert script == "epilog" or sent["name"] == name.translate({9: "", 10: ""})


def test_a_key_that_runs_tierctl_slurm_only_adds_no_bill_to_the_comment(tmp_path: Path) -> None:
    """ssh runs the command of the key, whatever it is asked for, so that the bill is asked for in vain."""
    command = f"{sys.executable} -m tierd.cli.tierctl --socket {tmp_path}/none slurm"
    for name, script in (("tierctl", f"exec {command}"), ("scontrol", f'echo "$*" >> {tmp_path}/said')):
        with (tmp_path / "tierd.environment").open("a") as environment:
            environment.write(f"TIERD_{name.upper()}={tmp_path}/{name}\n")
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    shutil.copy(SCRIPTS / "epilog-slurmctld", tmp_path)
    subprocess.run([tmp_path / "epilog-slurmctld"], check=True, input=b"", env={**os.environ, "SLURM_JOB_ID": "18"})
    assert not (tmp_path / "said").exists()


@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_a_script_does_not_wait_for_a_tierd_that_hangs(tmp_path: Path, script: str) -> None:
    command = f"env PYTHONPATH={ROOT} {sys.executable} -m tierd.cli.tierctl --socket {tmp_path}/socket"
    (tmp_path / "tierd.environment").write_text(f"TIERD_TIERCTL={command}\n")
    shutil.copy(SCRIPTS / f"{script}-slurmctld", tmp_path)
    with socket.socket(socket.AF_UNIX) as hung:
        hung.bind(f"{tmp_path}/socket")
        hung.listen()
        subprocess.run([tmp_path / f"{script}-slurmctld"], check=True, timeout=9, env={
            "PATH": os.environ["PATH"], "SLURM_JOB_ID": "18"})


def prepared(site: Site, slurm: Slurm, directory: str = "/mnt/lustre/proj/run2",
             user: str = "") -> tuple[list[str], list[str], list[str]]:
    """The answer to a prolog; the layouts stay queued, because no cycle runs."""
    virtual = VirtualSite(site.cluster, Clearing(site.cluster), site.settings, site.folder)
    virtual.start()
    try:
        answer = ask(str(site.socket), {"request": "prepare", "job": "18", "name": "train", "uid": slurm.uid,
                                        "user": user or slurm.user, "directory": directory})
    finally:
        virtual.service.close()
    return answer["ready"], answer["waiting"], answer["why_not"]


def test_the_epilog_knows_findings_by_the_number_in_the_id_of_lustre(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    store = ApplicationStore(journal.db)
    number = journal.add_finding(replace(FINDING, aggressor="python.4711", victim="python.4712"))
    for each in (4711, 4712):
        job = SchedulerJob(each, "train", "alice", None, "chem", "batch", "/")
        store.remember({f"python.{each}": job}, str, 4.0)
    assert store.sentences("4711") == [f"F{number}: noisy-neighbour of job python.4712"]
    assert store.sentences("4712") == [f"F{number}: slowed by job python.4711 (noisy-neighbour)"]
    assert store.sentences("4711", "alice") == store.sentences("4711")
    assert store.sentences("4711", "bob") == [], "the job 4711 of another Slurm cluster"
    store.remember({"4711": replace(job, id=4711)}, str, 4.0)
    journal.add_finding(replace(FINDING, aggressor="4711"))
    assert store.sentences("4711", "bob") == []
    assert store.sentences("4713") == []
    assert store.sentences("9" * 64) == store.sentences("²") == [], "no numbers of jobs"
    journal.close()


def test_a_directory_is_the_same_however_sbatch_was_told(tmp_path: Path) -> None:
    """Slurm keeps it as the user wrote it: ``sbatch --chdir=/proj//run1/``."""
    journal = acted(tmp_path / "journal")
    store = ApplicationStore(journal.db)
    store.remember({"4711": SchedulerJob(4711, "train", "alice", None, "chem", "batch", "/proj//run1/")}, str, 4.0)
    (earlier,) = store.helpful("train", "alice")
    assert place_for(earlier, NextRun("8", "train", "alice", 1001, "/proj/run2")) == "/proj/run2/out"
    journal.close()


def test_an_application_is_known_by_a_name_of_any_bytes_and_length(tmp_path: Path) -> None:
    """squeue gives such names cut and in UTF-8, the prolog gives them as they are."""
    journal = acted(tmp_path / "journal")
    store = ApplicationStore(journal.db)
    name = b"n\xff" + 200 * b"x"
    (job,) = parse(b'{"jobs": [{"job_id": 4711, "name": "%s", "user_name": "alice"}]}' % name)
    store.remember({"4711": job}, str, 4.0)
    assert [found.place for found in store.helpful(os.fsdecode(name), "alice")] == ["/proj/run1/out"]
    assert store.helpful("n", "alice") == []
    journal.close()
