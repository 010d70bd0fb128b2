"""Slurm's own slurmctld and slurmd on loopback, with tierd's plugin and scripts, in a folder of their own.

As root, jobs belong to nobody, because Slurm refuses burst buffers to root. Otherwise jobs belong to the user of the
suite, and so do the daemons.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from stack.services import free_ports
from tierd.clock import SystemClock

ROOT = Path(__file__).parent.parent.parent
SCRIPTS = ROOT / "packaging" / "slurm"
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "scontrol", "squeue", "scancel")
WAIT_SECONDS = 180.0
"""Longest time that a job of a test takes on a busy machine."""

CONFIGURATION = """
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={d}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,sched_min_interval=100000,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MinJobAge=600
BurstBufferType=burst_buffer/lua
PrologSlurmctld={folder}/prolog-slurmctld
EpilogSlurmctld={folder}/epilog-slurmctld
PrologEpilogTimeout=60
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={d} CPUs=16 RealMemory=1000 State=UNKNOWN
PartitionName=batch Nodes=n1 Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
"""


class Slurm:
    """A running Slurm, and its commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = SystemClock()
        self.uid = os.getuid() or pwd.getpwnam("nobody").pw_uid
        self.gid = pwd.getpwuid(self.uid).pw_gid
        self.user = pwd.getpwuid(self.uid).pw_name
        self.socket = folder / "tierd.sock"
        """Where tests put the control socket of tierd."""

    @property
    def environment(self) -> Mapping[str, str]:
        return {"PATH": os.environ["PATH"], "SLURM_CONF": str(self.folder / "slurm.conf"), "LANG": "C.UTF-8"}

    @property
    def settings(self) -> str:
        """The file tierd.environment."""
        return "\n".join((
            f"TIERD_TIERCTL=env PYTHONPATH={ROOT} {sys.executable} -m tierd.cli.tierctl --socket {self.socket}",
            f"TIERD_SCONTROL=env SLURM_CONF={self.folder}/slurm.conf {shutil.which('scontrol')}",
            f"TIERD_SQUEUE=env SLURM_CONF={self.folder}/slurm.conf {shutil.which('squeue')}",
            f"TIERD_SACCTMGR={self.folder}/sacctmgr", "TIERD_PATIENCE_SECONDS=20", ""))

    def run(self, *words: str, text: str = "", as_user: bool = False) -> subprocess.CompletedProcess[str]:
        root = os.getuid() == 0 and as_user
        return subprocess.run(
            words, input=text, text=True, capture_output=True, check=False, timeout=60, env=dict(self.environment),
            cwd="/", user=self.uid if root else None, group=self.gid if root else None,
            extra_groups=() if root else None)

    def submit(self, *directives: str, name: str = "train",
               options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        script = "\n".join(("#!/bin/sh", *directives, "true", ""))
        return self.run("sbatch", "--parsable", f"--job-name={name}", "--output=/dev/null", "--chdir=/", *options,
                        text=script, as_user=True)

    def job(self, *directives: str, name: str = "train", options: Sequence[str] = ()) -> str:
        done = self.submit(*directives, name=name, options=options)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def record(self, job: str) -> dict[str, str]:
        """What scontrol shows, by name; values may have spaces."""
        text = self.run("scontrol", "show", "job", job).stdout
        found = {}
        for line in map(str.strip, text.splitlines()):
            whole = ("AdminComment", "SystemComment", "Comment", "Reason")
            if line.split("=")[0] in whole:
                key, _, value = line.partition("=")
                found[key] = value
            else:
                found |= dict(word.partition("=")[::2] for word in line.split() if "=" in word)
        return found

    def await_state(self, job: str, *states: str, also: str = "") -> dict[str, str]:
        """The record of a job once it is in one of these states, and its comment has these words."""
        self.until(lambda: (found := self.record(job)).get("JobState") in states
                   and also in found.get("AdminComment", ""))
        return self.record(job)

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something of a job."""
        end = self.clock.now() + WAIT_SECONDS
        while not holds():
            assert self.clock.now() < end, (self.run("scontrol", "show", "job").stdout, self.log())
            self.clock.wait(0.2)

    def log(self) -> str:
        return "\n".join((self.folder / name).read_text(errors="replace")[-4000:]
                         for name in ("slurmctld.log", "slurmd.log"))

    def queue(self) -> str:
        """The output of squeue as JSON."""
        done = self.run("squeue", "--json")
        assert json.loads(done.stdout)
        return done.stdout


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    """Skips where Slurm is not installed, or has no plugin for Lua."""
    if missing := [name for name in PROGRAMS if not shutil.which(name)]:
        pytest.skip(f"Slurm is not installed: no {', '.join(missing)} on the PATH")
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    folder.chmod(0o755)  # users of jobs read slurm.conf
    made = Slurm(folder)
    ports = free_ports(0, 0)
    me = pwd.getpwuid(os.getuid()).pw_name
    (folder / "slurm.conf").write_text(CONFIGURATION.format(ctld=ports[0], d=ports[1], user=me, folder=folder))
    (folder / "burst_buffer.conf").write_text("Directive=BB_LUA\nStageInTimeout=43500\nStageOutTimeout=43500\n")
    (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
    for name in ("burst_buffer.lua", "prolog-slurmctld", "epilog-slurmctld"):
        shutil.copy(SCRIPTS / name, folder)
    (folder / "tierd.environment").write_text(made.settings)
    (folder / "sacctmgr").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >{folder}/sacctmgr.new\n'
                                     f"mv {folder}/sacctmgr.new {folder}/sacctmgr.said\n")
    (folder / "sacctmgr").chmod(0o755)  # stands in for slurmdbd, which needs a MariaDB
    for name in ("state", "spool"):
        (folder / name).mkdir()
    daemons = []
    try:
        for words in (("slurmctld", "-D", "-c"), ("slurmd", "-D", "-N", "n1")):
            with (folder / f"{words[0]}.log").open("wb") as log:
                daemons.append(subprocess.Popen(words, env=dict(made.environment), cwd="/", stdout=log, stderr=log,
                                                stdin=subprocess.DEVNULL))
        made.until(lambda: "State=IDLE" in made.run("scontrol", "show", "node", "n1").stdout)
        yield made
        made.run("scancel", f"--user={made.user}")
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(folder, ignore_errors=True)
