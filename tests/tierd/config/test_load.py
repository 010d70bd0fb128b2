"""Files of settings: drop-ins, tables, scopes, and mistakes with their file, their line and what to write instead.

Settings that cannot work together are refused or warned of.
"""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tierd.logged import logged
from tierd.__main__ import main
from tierd.config.act import Mode
from tierd.config.contradictions import why_no_pool_name
from tierd.config.load import ConfigurationError, load, parse
from tierd.config.settings import Settings
from tierd.policies.registry import BUILT_IN


@pytest.mark.parametrize(("data", "words"), [
    (b"x = [", "not a TOML file"), (b"\xff\xfe", "not a TOML file"), (b"x = 1\nx = 2\n", "not a TOML file"),
    (b"a = " + b"[" * 5000 + b"]" * 5000, "lists or tables are nested too deeply$"),
], ids=["cut", "not UTF-8", "a name twice", "nested too deeply"])
def test_a_file_that_is_not_toml_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^tierd\.toml: {words}"):
        parse(data, "tierd.toml")


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
def toml(tmp_path: Path) -> Path:
    path = tmp_path / "tierd.toml"
    path.write_text("[act]\nmode = 'observe'\n[limits]\nfiles_per_second = 1.0\nbytes_per_second = 1e6\n"
                    "[[scopes]]\npath = '/a'\n", encoding="utf-8")
    return path


def drop_in(toml: Path, name: str, text: str) -> Path:
    folder = toml.with_suffix(".d")
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_the_last_word_counts_and_scopes_add_up(toml: Path) -> None:
    drop_in(toml, "20-b.toml", "[limits]\nfiles_per_second = 3.0\n")
    drop_in(toml, "10-a.toml", "[limits]\nfiles_per_second = 2.0\n[[scopes]]\npath = '/b'\nmode = 'full'\n")
    drop_in(toml, ".30-hidden.toml", "nonsense")
    drop_in(toml, "40-note.txt", "nonsense")
    settings = load(toml)
    assert settings.act.mode == "observe"
    assert (settings.limits.files_per_second, settings.limits.bytes_per_second) == (3.0, 1e6)
    assert [(scope.path, scope.mode) for scope in settings.scopes] == [("/a", "observe"), ("/b", "full")]


def test_mistakes_are_reported_with_their_file(toml: Path) -> None:
    first = drop_in(toml, "10.toml", "# a comment\n[web]\nport = -1\n[[scopes]]\npath = 'no'\n")
    second = drop_in(toml, "20.toml", "[limits]\n\nfiles_per_secnd = 1\n")
    with pytest.raises(ConfigurationError) as caught:
        load(toml)
    reported = {line.split(": ")[0] for line in str(caught.value).splitlines()}
    assert reported == {f"{first}:3", f"{first}:5", f"{second}:3"}


def test_every_file_that_is_no_toml_is_named(toml: Path) -> None:
    first, second = drop_in(toml, "10.toml", "[act\n"), drop_in(toml, "20.toml", "= 1\n")
    with pytest.raises(ConfigurationError) as caught:
        load(toml)
    assert f"{first}: not a TOML file" in str(caught.value)
    assert f"{second}: not a TOML file" in str(caught.value)


OF_POLICY = [(f"detect.{policy.table}", enter.name, f"leave{enter.name.removeprefix('enter')}", policy.settings())
             for policy in BUILT_IN for enter in policy.settings.__dataclass_fields__.values()
             if enter.name.startswith("enter")
             and f"leave{enter.name.removeprefix('enter')}" in policy.settings.__dataclass_fields__]
PAIRS = [("noisy_neighbour", "probability", "end_probability", Settings().noisy_neighbour), *OF_POLICY]


@pytest.mark.parametrize(("table", "enter", "leave", "defaults"), PAIRS)
def test_thresholds_that_are_exchanged_are_refused_in_every_policy(
        table: str, enter: str, leave: str, defaults: object) -> None:
    begins, ends = getattr(defaults, enter), getattr(defaults, leave)
    assert parse(f"[{table}]\n{enter} = {begins}\n{leave} = {ends}\n".encode(), "t.toml")
    with pytest.raises(ConfigurationError) as caught:
        parse(f"[{table}]\n{enter} = {ends}\n{leave} = {begins}\n".encode(), "t.toml")
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"t.toml:3: {table}.{leave}: a finding begins at {enter} = {ends:g} and would end")
    assert line.endswith("Exchange them")


READER = "[reader]\nenabled = true\n[cluster]\nservers = ['nats://a:4222']\n"
REFUSED = [
    ('[small_files_to_flash]\nflash_pool = "lustre.flash"', 2, "write the pool without the name of the file system"),
    ('[small_files_to_flash]\nhdd_pool = "slow disks"', 2, "a pool's name has no spaces and no /"),
    ('[small_files_to_flash]\nhdd_pool = "a-name-of-16-char"', 2, "a pool's name has 15 characters at most"),
    ('[small_files_to_flash]\nflash_pool = "none"', 2, "Lustre reserves this name"),
    ('[[scopes]]\npath = "/a"\n[scopes.small_files_to_flash]\nflash_pool = "a/b"', 4, "no spaces and no /"),
    ('[web]\naddress = "127.0.0.1:9170"', 2, "write an IP address or a host name; the port is [web] port"),
    ('[web]\naddress = "10.0.0.300"', 2, "write an IP address or a host name"),
    ('[web]\naddress = "http://mgmt01"', 2, "write an IP address or a host name"),
    ('[sense.exporter_access]\nuser = "tierd"', 2, "the user 'tierd' has no password: set password_file"),
    ('[sense.prometheus.access]\nuser = "tierd"', 2, "the user 'tierd' has no password: set password_file"),
    ('[sense.exporter_access]\npassword_file = "/x"', 2, "there is a password but no user: set user"),
    ('[sense.exporter_access]\nuser = "u"\npassword_file = "/x"\ntoken_file = "/t"', 4,
     "not both: remove one of the two"),
    ('[sense.exporter_access]\nkey_file = "/x"', 2, "a key needs its certificate: set cert_file"),
    ("[sense]\ncycle_seconds = 0.0001", 2, "sense.cycle_seconds: must be greater than or equal to 0.01 (it is 0.0001)"),
    ("[claim]\nexpiry_seconds = 1e300", 2, "claim.expiry_seconds: must be less than or equal to 922"),
    ("[sense]\ntimeout_seconds = 90", 2, "timeout_seconds = 90 must be shorter than stale_seconds = 90"),
    ("[sense]\nstale_seconds = 5", 2, "every reading would be too old: cycle_seconds = 5 must be shorter"),
    ('[cold_to_disk]\ndirectories = ["proj"]', 2, "a directory begins with / at the root of the file system"),
    ('[filesystem]\nmount = "mnt/lustre"', 2, "filesystem.mount: give an absolute path (it is 'mnt/lustre')"),
    ("[journal]\nkeep_days = 7", 2,
     "journal.keep_days: give at least 30 days, or 0 to keep records for ever (it is 7)"),
    ('[act]\njournal = ""', 2, "act.journal: give an absolute path (it is '')"),
    ('[act]\npause_file = "pause"', 2, "act.pause_file: give an absolute path (it is 'pause')"),
    ('[act]\ndry_run = "no"', 2, "act.dry_run: write true or false, without quotes (it is 'no')"),
    ('[act]\non = ["shared-bandwidth"]', 2, "act.on.0: tierd acts on noisy-neighbour, small-random-io, shared-f"),
    ("[limits]\nfiles_per_second = inf", 2, "limits.files_per_second: must be a finite number (it is inf)"),
    ('[[scopes]]\npath = "/a"\nlimits.per_pool.bytes_per_second = inf', 3,
     "scopes.0.limits.per_pool.bytes_per_second: "),
    ("[limits]\nfiles_per_second = nan", 2, "limits.files_per_second: must be a finite number (it is nan)"),
    ('[sense]\nexporters = ["oss1:9169/metrics"]', 2, "sense.exporters.0: give the whole address: http://oss01:9169/"),
    ('[sense]\nexporters = ["http://me:secret@oss1:9169/metrics"]', 2,
     "sense.exporters.0: others can see a password in"),
    ('[sense.prometheus]\nurl = "http://me:secret@prom:9090"', 1,
     "sense.prometheus: url: others can see a password in"),
    ('[sense.prometheus]\nurl = "prom:9090"', 1, "sense.prometheus: url: give the whole address: https://prometheus"),
    ('[sense]\nexporters = ["http://oss1 /metrics"]', 2, "sense.exporters.0: give the whole address: http://oss01:9169/"),
    ('[sense.watch]\nproj = "mpi.*"', 2, "sense.watch.proj: give an absolute path"),
    ('[sense]\nmdts = ["0"]', 2, "sense.mdts.0: write the metadata target as MDT0000"),
    ('[sense.readers]\n"lustre-MDT0000" = "cl1"', 2,
     "sense.readers.lustre-MDT0000: write the metadata target as MDT0000"),
    ('[sense.readers]\nMDT0000 = "1"', 2, "write the name that lctl changelog_register printed: cl1"),
    ('[small_files_to_flash]\nflash_pool = "hdd"', 1, "small_files_to_flash: flash_pool and hdd_pool are both 'hdd'"),
    ('[small_files_to_flash]\nhdd_pool = ""', 1, "small_files_to_flash: flash_pool and hdd_pool must have names"),
    ('[[scopes]]\npath = "/a"\nsmall_files_to_flash.hdd_pool = "flash"', 3, "flash_pool and hdd_pool are both 'flash'"),
    ('[act]\n[detekt.x]\nenabled = true', 2, "detekt: unknown setting; known here: act, benefit"),
    ('[control]\nread_group = []', 2, "control.read_group: write a whole number"),
    ("[detect.hot_small_files]\nmin_opens = 0", 2, "min_opens: must be greater than or equal to 1 (it is 0)"),
    ("[detect.hot_large_files]", 1, "unknown setting; known here: block_accelerator, cold_on_flash"),
    ("[noisy_neighbour.classes]\nsmoll_rpc_bytes = 1", 2, "known here: small_file_bytes, small_rpc_bytes, stream_r"),
    ("detect = 3", 1, "detect: "), ("[detect]\nhot_small_files = 3", 2, "detect.hot_small_files: "),
    ('[[scopes]]\npath = "scratch"', 2, "begins with / at the root"),
    ("[[scopes]]\npath = '/a'\n[[scopes]]\npath = '/a/'", 1, "these have several: /a"),
    ("[[scopes]]\npath = '/a'\n[[scopes]]\npath = '/mnt/lustre/a'", 1, "these have several: /a"),
    ("[limits.pools.flash]\nfile_per_second = 1", 2, "known here: bytes_per_second, files_per_second"),
    ("[[scopes]]\npath = '/a'\n[scopes.limits.pools.flash]\nfile_per_second = 1", 4,
     "known here: bytes_per_second, files_per_second"),
    ("[reader]\nenabled = true", 2, "reader.enabled: readers send their tallies through NATS: set cluster.servers"),
    (f"{READER}[sense.watch]\n'/in' = 'a.*'", 5, "watched directories and readers cannot be used together"),
    ("[reader]\nlease_seconds = 1", 2, "reader.lease_seconds"),
    # an invalid setting does not count as its default
    ("[noisy_neighbour]\nprobability = 7\nend_probability = 0.9", 2, "noisy_neighbour.probability: "),
]


@pytest.mark.parametrize(("text", "line", "sentence"), REFUSED)
def test_settings_that_cannot_work_are_refused(text: str, line: int, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse(text.encode(), "t.toml")
    (mistake,) = str(caught.value).splitlines()
    assert mistake.startswith(f"t.toml:{line}: ")
    assert sentence in mistake
    assert "secret" not in mistake


WARNED = [
    ('[limits.pools.nvme]\nfiles_per_second = 1', 1, "this limit has no effect; pools in use: flash, hdd"),
    ('[[scopes]]\npath = "/a"\n[scopes.limits.pools.nvme]\nfiles_per_second = 1', 3, "does not use a pool 'nvme'"),
    ('[sense]\nexporters = ["http://a:1/metrics"]\n[sense.prometheus]\nurl = "http://p:9090"', 2,
     "tierd reads Prometheus, not exporters"),
    ('[sense]\nexporters = ["http://a:1/metrics", "http://a:1/metrics"]', 2, "listed twice"),
    ('[sense]\nexporters = ["http://a:1"]', 2, "the metrics are at http://a:1/metrics: add /metrics"),
    ('[web]\naddress = "0.0.0.0"', 2, "anyone on the network can read this port: set a config_file"),
    ('[web]\naddress = ""', 2, "anyone on the network can read this port"),
    ('[web]\nchange_users = ["alice"]', 2, "without passwords the page has no buttons: set config_file"),
    ('[sense.exporter_access]\nuser = "u"\npassword_file = "/x"\npassword_env = "X"', 4, "password_env is ignored"),
    ('[sense]\nmdts = ["MDT0000"]\n[sense.readers]\nMDT0001 = "cl1"', 4, "the changelog of MDT0001 is not read"),
    ('[act]\non = ["cold-on-flash"]\n[detect.cold_on_flash]\nenabled = false', 2, "the policy cold-on-flash is off"),
    ("[verify]\nharm_seconds = 90", 2, "harm_seconds = 90 should not exceed judge_seconds = 60"),
    (f"{READER}[sense]\nmdts = ['MDT0000', 'MDT0001']\nreaders = {{MDT0000 = 'cl1'}}", 7, "no user for MDT0001"),
]


@pytest.mark.parametrize(("text", "line", "sentence"), WARNED)
def test_a_setting_without_effect_is_a_warning(text: str, line: int, sentence: str) -> None:
    warnings = logged()
    parse(text.encode(), "t.toml")
    (warning,) = warnings
    assert warning.startswith(f"t.toml:{line}: ")
    assert sentence in warning


SOUND = ["", '[limits.pools.flash]\nfiles_per_second = 1', '[web]\naddress = "::1"', '[web]\naddress = "localhost"',
         '[web]\naddress = "0.0.0.0"\nconfig_file = "web.yml"', '[web]\naddress = ""\nenabled = false',
         '[sense.exporter_access]\ntoken_file = "/t"', '[sense.exporter_access]\nuser = "u"\npassword_env = "P"',
         '[small_files_to_flash]\nflash_pool = "nvme-1_a"\n[limits.pools.nvme-1_a]\nfiles_per_second = 1']


@pytest.mark.parametrize("text", SOUND)
def test_consistent_settings_give_no_warning(text: str) -> None:
    warnings = logged()
    parse(text.encode(), "t.toml")
    assert warnings == []


def test_mistakes_of_all_kinds_come_at_once_and_in_the_order_of_the_lines(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tierd.toml"
    path.write_text("""\
[verify]
min_gain = 7
[noisy_neighbour]
probability = 0.7
end_probability = 0.9
[sense]
exporters = ["http://a:1/metrics", "http://a:1/metrics"]
stale_seconds = "old"
[limits]
files_per_secnod = 1
[web]
address = "127.0.0.1:9170"
[detect.cold_on_flash]
enabled = "false"
cold_days = -1
enter = 0.5
leave = 0.9
[small_files_to_flash]
flash_pool = "hdd"
reserve = 2
""")
    assert main(["--config", str(path), "--check-config"]) == 1
    *lines, last = capsys.readouterr().err.splitlines()
    assert [line.removeprefix("warning: ").split(" ")[0] for line in lines] == [
        f"{path}:{number}:" for number in (2, 5, 7, 8, 10, 12, 14, 15, 17, 20)]
    assert [number for number, line in enumerate(lines) if line.startswith("warning: ")] == [2]
    assert last == f"{path}: 9 mistakes"


@given(st.text(max_size=20))
def test_a_name_that_is_accepted_could_be_created(name: str) -> None:
    if not why_no_pool_name(name) and name:
        assert len(name.encode()) <= 15
        assert not set(name) & set(" ./\n")
        assert name not in {"none", "inherit", "ignore"}
