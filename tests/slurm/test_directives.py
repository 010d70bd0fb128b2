"""#BB_LUA directives as the plugin reads them: the request that tierctl gets, and what is refused at submission."""

import ctypes
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tierd.clock import SystemClock

SOURCE = Path(__file__).parent.parent.parent / "packaging" / "slurm" / "burst_buffer.lua"
LIBRARIES = ("liblua5.1.so.0", "liblua5.2.so.0", "liblua5.3.so.0", "liblua5.4.so.0")
SLURM = "slurm = {SUCCESS = 0, ERROR = -1, log_info = function() end, log_error = function() end}\n"
_MULTIPLE = -1


def installed() -> list[str]:
    """The releases of Lua on this machine. Slurm's plugin depends on one."""
    found = []
    for name in LIBRARIES:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        found.append(name)
    return found


class Lua:
    """A state in which the plugin is loaded."""

    def __init__(self, library: str) -> None:
        self._lua, self._first = ctypes.CDLL(library), "5.1" in library
        self._lua.luaL_newstate.restype = ctypes.c_void_p
        self._lua.lua_tolstring.restype = ctypes.c_void_p
        self._state = ctypes.c_void_p(self._lua.luaL_newstate())
        self._lua.luaL_openlibs(self._state)
        self._run(SLURM.encode() + SOURCE.read_bytes())

    def _run(self, text: bytes) -> None:
        loading = self._state, text, ctypes.c_size_t(len(text)), b"plugin"
        failed = (self._lua.luaL_loadbuffer(*loading) if self._first else self._lua.luaL_loadbufferx(*loading, None))
        failed = failed or (
            self._lua.lua_pcall(self._state, 0, _MULTIPLE, 0) if self._first else
            self._lua.lua_pcallk(self._state, 0, _MULTIPLE, 0, ctypes.c_ssize_t(0), None))
        assert not failed, self._text(-1)

    def _text(self, index: int) -> bytes:
        length = ctypes.c_size_t()
        found = self._lua.lua_tolstring(self._state, index, ctypes.byref(length))
        return ctypes.string_at(found, length.value) if found else b""

    def call(self, function: str, *arguments: str) -> tuple[int, bytes]:
        """Return code and sentence of a function of the plugin."""
        self._lua.lua_settop(self._state, 0)
        words = b", ".join(literal(word.encode("utf-8", "surrogateescape")) for word in arguments)
        self._run(b"return " + function.encode() + b"(" + words + b")")
        code, said = self._text(1), self._text(2) if self._lua.lua_gettop(self._state) > 1 else b""
        self._lua.lua_settop(self._state, 0)
        return int(float(code)), said

    def close(self) -> None:
        self._lua.lua_close(self._state)


def literal(text: bytes) -> bytes:
    """A string of Lua, by the numbers of its bytes."""
    return b'"' + b"".join(b"\\%03d" % byte for byte in text) + b'"'


class Plugin:
    """The plugin with stand-ins for tierctl and scontrol, which write what they get into files."""

    def __init__(self, folder: Path, library: str) -> None:
        self.folder = folder
        self.answer("ok staged in 1 of 1 file")
        self.program("tierctl", f"cat >{folder}/request; cat {folder}/answer")
        self.program("scontrol", f'printf "%s\\n" "$@" >{folder}/update')
        self.program("squeue", 'case $* in *admin_comment*) echo "of the site | tierd: earlier  ";; '
                               '*) echo 16 1 1 bob 17_2; echo 17 1001 100 alice 17_3; esac')
        self.program("sacctmgr", f'printf "%s\\n" "$@" >{folder}/sacctmgr')
        environment = {"TIERD_TIERCTL": f"{folder}/tierctl", "TIERD_SCONTROL": f"{folder}/scontrol",
                       "TIERD_SQUEUE": f"{folder}/squeue", "TIERD_SACCTMGR": f"{folder}/sacctmgr"}
        os.environ.update(environment)  # Lua reads the environment of the process
        try:
            self.lua = Lua(library)
        finally:
            for name in environment:
                del os.environ[name]

    def program(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def answer(self, line: str) -> None:
        (self.folder / "answer").write_text(line + "\n")

    def script(self, *lines: str) -> Path:
        path = self.folder / "script"
        path.write_bytes("\n".join(("#!/bin/sh", *lines, "true", "")).encode("utf-8", "surrogateescape"))
        return path

    def refusal(self, *lines: str) -> str:
        """The sentence with which the script is refused; empty if it is accepted."""
        code, said = self.lua.call("slurm_bb_job_process", str(self.script(*lines)))
        assert (code != 0) is bool(said)
        return said.decode("utf-8", "surrogateescape")

    def request(self, function: str, *lines: str, uid: bool = False) -> Mapping[str, Any] | None:
        """What tierctl gets from a function of the plugin; None if it is not started."""
        (self.folder / "request").unlink(missing_ok=True)
        words = ["17", str(self.script(*lines)), *(("1002", "200") if uid else ())]
        assert self.lua.call(function, *words)[0] == 0
        try:
            found = (self.folder / "request").read_bytes()
        except FileNotFoundError:
            return None
        return json.loads(found.decode("utf-8", "surrogateescape"))


@pytest.fixture(params=installed() or [""])
def plugin(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Plugin]:
    if not request.param:
        pytest.skip("liblua is not installed (slurm-wlm-basic-plugins depends on it)")
    made = Plugin(tmp_path, request.param)
    yield made
    made.lua.close()


@pytest.mark.parametrize(("line", "words"), [
    ("stage_in", "stage_in needs a path"),
    ("stage_up path=/a", "a directive is stage_in or stage_out, not stage_up"),
    ("", "a directive is stage_in or stage_out"),
    ("stage_in path=a", "path begins with /"),
    ("stage_in path=/a/../b", "path has no . and .. in it"),
    ("stage_in path=/a/./b", "path has no . and .. in it"),
    ("stage_in path=/a b", 'after stage_in stand words like path=/scratch/a, not "b"'),
    ("stage_in path=/a path=/b", "path is given twice"),
    ("stage_in path=/a colour=red", "unknown word colour; known: path"),
    ('stage_in path="/a', "a quote is not closed"),
    ('stage_in path="/a"b', "a space is missing after the value of path"),
    ("stage_in path=/a\\ b", "put a value with spaces, quotes or backslashes between quotes"),
    (r'stage_in path="/a\q"', "a backslash between quotes begins one of"),
    (r'stage_in path="/a\x00"', "a backslash between quotes begins one of"),
    ("stage_in path=/a deadline=13h", "deadline is a time up to 12h"),
    ("stage_in path=/a deadline=0", "deadline is a time up to 12h"),
    ("stage_in path=/a max_files=0", "max_files is a number from 1"),
    ("stage_in path=/a max_size=1E", "max_size is a size up to 1024T"),
    ("stage_in path=/a on_failure=cry", "on_failure is start or hold"),
    ("stage_out path=/a on_failure=hold", "on_failure is a word of stage_in"),
    ("stage_in path=/a \\", "write the whole directive in one line"),
    ("stage_in path=/" + "a" * 5000, "the path is too long"),
])
def test_a_bad_directive_is_refused_with_its_line(plugin: Plugin, line: str, words: str) -> None:
    said = plugin.refusal("#SBATCH -n 1", "", "#BB_LUA " + line)
    assert said.startswith("line 4: ")
    assert words in said


def test_too_many_directives_are_refused(plugin: Plugin) -> None:
    assert not plugin.refusal(*["#BB_LUA stage_in path=/a"] * 64)
    assert "64 at most" in plugin.refusal(*["#BB_LUA stage_in path=/a"] * 65)
    assert "name a folder" in plugin.refusal(*["#BB_LUA stage_in path=/" + "a" * 4000] * 5)


def test_directives_end_with_the_first_command(plugin: Plugin) -> None:
    assert not plugin.refusal("echo", "#BB_LUA nonsense")
    assert plugin.request("slurm_bb_data_in", "echo", "#BB_LUA stage_in path=/a") is None


def test_tierctl_gets_user_paths_and_deadlines(plugin: Plugin) -> None:
    lines = ("#BB_LUA stage_in path=/scratch/a deadline=90s max_files=7 max_size=2G on_failure=hold",
             "#BB_LUA\tstage_in path=/scratch/b", "#BB_LUA stage_out path=/scratch/c deadline=2h\r")
    before = {"do": "stage", "job": "17", "user": "alice", "patience_seconds": 30}
    assert plugin.request("slurm_bb_data_in", *lines) == before | {"uid": 1001, "gid": 100, "stages": [
        {"direction": "promote", "path": "/scratch/a", "deadline_seconds": 90, "max_files": 7, "max_bytes": 2 << 30},
        {"direction": "promote", "path": "/scratch/b", "deadline_seconds": 1800}]}
    assert plugin.request("slurm_bb_data_out", *lines, uid=True) == before | {"uid": 1002, "gid": 200, "stages": [
        {"direction": "demote", "path": "/scratch/c", "deadline_seconds": 7200}]}
    assert (plugin.folder / "update").read_text() == (
        "update\nJobId=17_3\nAdminComment=of the site | tierd: staged in 1 of 1 file\n")
    assert plugin.request("slurm_bb_data_in", lines[2]) is None


@pytest.mark.parametrize(("known", "words", "uid"), [
    ("", ("17", "script", "false", "1002", "200"), 1002), ("echo 16 1; echo 17 1001", ("17", "script", "false"), 1001),
    ("exit 1", ("17", "script", "true"), -1)])
def test_a_teardown_names_the_user_of_the_job(plugin: Plugin, known: str, words: tuple[str, ...], uid: int) -> None:
    """Slurm passes no uid before 23.02. A user who is not known has no stagings."""
    plugin.program("squeue", known)
    plugin.program("tierctl", f"cat >{plugin.folder}/part; mv {plugin.folder}/part {plugin.folder}/request")
    assert plugin.lua.call("slurm_bb_job_teardown", *words) == (0, b"")
    written, clock = plugin.folder / "request", SystemClock()
    while not written.exists():
        clock.wait(0.05)
    assert json.loads(written.read_text()) == {"do": "teardown", "job": "17", "uid": uid, "patience_seconds": 5}


def test_only_a_job_that_wants_it_is_held(plugin: Plugin) -> None:
    plugin.answer("failed no room")
    assert plugin.lua.call("slurm_bb_data_in", "17", str(plugin.script("#BB_LUA stage_in path=/a"))) == (
        0, b"tierd: no room")
    hold = plugin.script("#BB_LUA stage_in path=/a on_failure=hold", "#BB_LUA stage_out path=/a")
    assert plugin.lua.call("slurm_bb_data_in", "17", str(hold)) == (-1, b"tierd: no room")
    assert plugin.lua.call("slurm_bb_data_out", "17", str(hold))[0] == 0


def test_a_comment_after_the_end_of_the_job_goes_to_slurmdbd(plugin: Plugin) -> None:
    plugin.program("scontrol", 'echo "Job has already finished"')
    assert plugin.request("slurm_bb_data_out", "#BB_LUA stage_out path=/a") is not None
    assert (plugin.folder / "sacctmgr").read_text().splitlines() == [
        "-i", "modify", "job", "where", "jobid=17_3", "set",
        "AdminComment=of the site | tierd: staged in 1 of 1 file"]


def test_a_broken_tierctl_lets_the_job_start(plugin: Plugin) -> None:
    plugin.answer("Traceback: bad\x1bnews")
    code, said = plugin.lua.call("slurm_bb_data_in", "17", str(plugin.script("#BB_LUA stage_in path=/a")))
    assert code == 0
    assert said.startswith(b"tierd: tierctl does not work on the node of slurmctld: Traceback: bad news")


NAMES = st.binary(min_size=1, max_size=30).map(lambda name: name.replace(b"\0", b"0").replace(b"/", b"-")).filter(
    lambda name: name not in {b".", b".."})


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(NAMES, min_size=1, max_size=4))
def test_any_path_reaches_tierctl_unharmed(plugin: Plugin, names: list[bytes]) -> None:
    path = b"/" + b"/".join(names)
    written = "".join(chr(byte) if 33 <= byte < 128 and byte not in {34, 92} else f"\\x{byte:02x}" for byte in path)
    found = plugin.request("slurm_bb_data_in", f'#BB_LUA stage_in path="{written}"')
    assert found is not None
    assert found["stages"][0]["path"] == path.decode("utf-8", "surrogateescape")


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.sampled_from(' \t"\\=/.abxn0#\'$`;|&'), max_size=40))
def test_any_words_are_accepted_or_refused_with_a_sentence(plugin: Plugin, text: str) -> None:
    said = plugin.refusal("#BB_LUA stage_in path=/a " + text)
    assert not said or said.startswith("line 2: ")
