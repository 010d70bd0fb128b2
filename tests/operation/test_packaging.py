"""The packages lustre-exporter and lustre-tierd: what belongs to which, wheels, scripts, and the compose file."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Unpack
from tests.servers import output_of
from tierd.act.journal.connection import open_journal

ROOT = Path(__file__).parents[2]
PACKAGING = ROOT / "packaging"
PACKAGES = ("lustre-exporter", "lustre-tierd")


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What each package holds besides its environment, below a folder of its own. For reading."""
    made = {package: tmp_path_factory.mktemp(package) for package in PACKAGES}
    for package, root in made.items():
        subprocess.run(["sh", "packaging/files.sh", package, root], check=True, cwd=ROOT,
                       env=os.environ | {"PYTHON": sys.executable})
    return made


def files(root: Path) -> set[str]:
    """Absolute paths of the files and links below a folder."""
    return {f"/{path.relative_to(root)}" for path in root.rglob("*") if path.is_symlink() or path.is_file()}


def control(package: str) -> dict[str, str]:
    """Fields of a Debian package that stand on one line."""
    text = (PACKAGING / "debian" / package / "control").read_text()
    return dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))


def listed(package: str) -> list[str]:
    """Files and folders that the spec file gives a package."""
    spec = (PACKAGING / "lustre-tierd.spec").read_text()
    head = "%files" if package == "lustre-tierd" else f"%files -n {package}"
    (section,) = re.findall(rf"^{head}\n(.*?)(?=^%files|\Z)", spec, re.MULTILINE | re.DOTALL)
    return re.findall(r"(/\S+)$", section, re.MULTILINE)


def test_no_file_belongs_to_two_packages(laid_out: dict[str, Path]) -> None:
    exporter, tierd = (files(laid_out[package]) for package in PACKAGES)
    assert exporter & tierd == set()
    assert len(exporter) > 10 < len(tierd)
    assert [path for path in exporter if "tierd" in path] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_all_links_of_the_documents_lead_to_files_of_the_package(package: str, laid_out: dict[str, Path]) -> None:
    pages = sorted(laid_out[package].rglob("*.md"))
    assert len(pages) >= 5
    wrong = [(str(page.relative_to(laid_out[package])), target) for page in pages
             for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", re.sub(
                 r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))
             if "://" not in target and not (page.parent / target).exists()]
    assert wrong == []


def test_examples_lie_where_the_documentation_names_them(laid_out: dict[str, Path]) -> None:
    """Commands of the quick start and of the READMEs work in the folder of the examples."""
    share = laid_out["lustre-tierd"] / "usr/share/lustre-tierd"
    named = set()
    for page in ("docs/quickstart.md", "docs/operations.md", "README.md", "packaging/README.md"):
        for line in re.findall(r"^    (?:install|cp|cd|tierd replay) .*$", (ROOT / page).read_text(), re.MULTILINE):
            named |= set(re.findall(r"(?<![\w/])((?:alerts|dashboards|packaging|systemd|tests/tapes)/[\w./@-]*[\w*])",
                                    line.partition("  #")[0]))
    assert {"systemd/tierd.toml", "tests/tapes/noisy-create-1m"} <= named
    assert [name for name in named if not list(share.glob(f"{name}*"))] == []


def test_only_rules_lie_among_the_rules(laid_out: dict[str, Path]) -> None:
    rules = laid_out["lustre-tierd"] / "usr/share/lustre-tierd/alerts/rules"
    assert sorted(path.name for path in rules.iterdir()) == sorted(
        path.name for path in (ROOT / "alerts/rules").glob("*.yml"))
    assert all(path.read_text().count("groups:") == 1 for path in rules.iterdir())
    assert (rules.parent / "alertmanager.yml").is_file()


def test_files_that_the_playbook_names_are_in_the_packages(laid_out: dict[str, Path]) -> None:
    held = files(laid_out["lustre-tierd"]) | files(laid_out["lustre-exporter"])
    playbook = (ROOT / "packaging/ansible/site.yml").read_text()
    plays = yaml.safe_load(playbook)
    assert [play["hosts"] for play in plays] == ["servers:clients", "monitoring", "tierd", "movers:readers"]
    assert {f"/usr/lib/systemd/system/tierd-{role}@.service" for role in ("mover", "reader")} <= held
    units = set(re.findall(r"name: ((?:lustre-exporter|tierd)\.service)", playbook))
    assert {f"/usr/lib/systemd/system/{unit}" for unit in units} <= held
    for path in re.findall(r"(/etc/(?:lustre-exporter|tierd)/\S+|/usr/(?:bin|share)/[\w/.-]+)", playbook):
        if re.search(r"\.seed|\.crt|\.key|\{\{", path):  # the site's secrets, and a name of the inventory
            continue
        assert path in held or any(name.startswith(f"{path}/") for name in held), path


@pytest.mark.parametrize("package", PACKAGES)
def test_files_that_units_name_are_in_their_own_package(package: str, laid_out: dict[str, Path]) -> None:
    held = files(laid_out[package])
    programs = {line.partition(" =")[0] for line in (ROOT / "setup.cfg").read_text().splitlines()
                if re.match(r"[\w-]+ = lustre_tierd\.programs:\w+", line.strip())}
    for unit in laid_out[package].glob("usr/lib/systemd/system/*"):
        text = unit.read_text()
        for folder, name in re.findall(r"^Exec(?:Start|StartPre)=(/opt/[\w-]+)/bin/(\S+)", text, re.MULTILINE):
            assert folder == f"/opt/{package}"
            assert f"/usr/bin/{name}" in held
            assert name in {each.strip() for each in programs}
        (page,) = re.findall(r"^Documentation=file:(?://)?(/\S+)$", text, re.MULTILINE)
        assert page in held
        settings = re.findall(r"(/etc/(?:tierd|lustre-exporter)/[\w.]+)", " ".join(
            line for line in text.splitlines() if line.startswith(("EnvironmentFile", "ExecStart="))))
        assert set(settings) <= held
        assert settings or "@" in unit.name


@pytest.mark.parametrize("package", PACKAGES)
def test_settings_survive_an_upgrade(package: str, laid_out: dict[str, Path]) -> None:
    held = files(laid_out[package])
    conffiles = (PACKAGING / "debian" / package / "conffiles").read_text().split()
    assert sorted(conffiles) == sorted(path for path in held if path.startswith("/etc/"))
    spec = (PACKAGING / "lustre-tierd.spec").read_text()
    assert all(re.search(rf"^%config\(noreplace\) .*{path}$", spec, re.MULTILINE) for path in conffiles)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_spec_file_lists_what_is_there(package: str, laid_out: dict[str, Path]) -> None:
    held, named = files(laid_out[package]), listed(package)
    assert f"/opt/{package}" in named

    def belongs(path: str, name: str) -> bool:
        return fnmatch(path, name) or path.startswith(f"{name}/")

    assert [path for path in held if not any(belongs(path, name) for name in named)] == []
    environment = f"/opt/{package}"
    assert [name for name in named if name != environment and not any(belongs(path, name) for path in held)] == []


def test_the_versions_of_all_packages_are_that_of_the_source() -> None:
    version = re.search(r'__version__ = "([^"]+)"', (ROOT / "lustre" / "__init__.py").read_text())
    assert version is not None
    spec = (PACKAGING / "lustre-tierd.spec").read_text()
    release = re.search(r"^Release: +(\d+)", spec, re.MULTILINE)
    assert release is not None
    assert f"Version:        {version[1]}\n" in spec
    first = (PACKAGING / "debian" / "changelog").read_text().splitlines()[0]
    assert first.startswith(f"lustre-tierd ({version[1]}-{release[1]}) ")


def test_the_exporter_needs_no_tierd_and_tierd_the_exporter() -> None:
    exporter, tierd = (control(package) for package in PACKAGES)
    assert "lustre-exporter" in tierd["Depends"]
    assert "tierd" not in exporter["Depends"]
    assert re.search(r"^Requires: +lustre-exporter$", (PACKAGING / "lustre-tierd.spec").read_text(), re.MULTILINE)


def copied_source(folder: Path) -> Path:
    """The source without anything that was built in it. Recordings and tests are links."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name in {"build", "dist"} or path.name.startswith(".") or path.suffix == ".egg-info":
            continue
        if path.name == "tests":
            (folder / path.name).symlink_to(path)
        elif path.is_dir():
            shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
        else:
            shutil.copy(path, folder)
    return folder


def dependencies_without_us(folder: Path) -> Path:
    """Links to what is installed beside the project, so that pip downloads nothing."""
    folder.mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.search(r"lustre_tierd|__editable__|\.pth$", path.name):
            (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel that was built without a compiler installs, and links to what is installed beside it."""
    pytest.importorskip("setuptools", reason="no setuptools: it builds the modules in C")
    folder = dependencies_without_us(tmp_path_factory.mktemp("wheel") / "site")
    built = folder.parent / "lib"
    subprocess.run([sys.executable, "setup.py", "--quiet", "build", "--build-lib", built], check=True,
                   capture_output=True, cwd=copied_source(folder.parent / "source"),
                   env={**os.environ, "CC": "/bin/false"})
    for package in built.iterdir():
        package.rename(folder / package.name)
    return folder


def in_wheel(wheel: Path, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program of the wheel. Without ``-S``, the environment of the tests would find the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(wheel), "PYTHONDONTWRITEBYTECODE": "1"}
    code = f"import sys; from lustre_tierd.programs import {program}; sys.exit({program}())"
    return subprocess.run([sys.executable, "-P", "-S", "-c", code, *arguments], cwd=wheel.parent, env=environment,
                          capture_output=True, text=True, check=False)


def test_a_wheel_holds_the_programs_and_nothing_that_simulates(wheel: Path) -> None:
    ours = wheel / "lustre_tierd"
    assert [path for path in wheel.iterdir() if not path.is_symlink()] == [ours], "one name beside those of others"
    assert {path.name for path in ours.iterdir() if path.is_dir()} == {
        "lustre", "httpserver", "exporter", "tierd", "runbooks"}
    assert (ours / "tierd/daemon/pages/overview.html").is_file()
    assert (ours / "runbooks/TierdDown.md").is_file()
    assert not (ours / "tierd/simulation").exists()
    assert {path.name for path in ours.rglob("*.py")
            if re.search(r"^ *(from|import) simulator", path.read_text(), re.MULTILINE)} == {"simulate.py"}


def test_the_exporter_works_without_the_modules_in_c(wheel: Path, capture: Unpack) -> None:
    tree = capture("2.17.57/tree-idle")
    shown = in_wheel(wheel, "lustre_exporter", "--once", f"--path.procfs={tree / 'proc'}",
                     f"--path.sysfs={tree / 'sys'}").stdout
    assert 'lustre_exporter_build_info{compiled="no",' in shown
    assert "# TYPE lustre_llite_operations_total counter\n" in shown


@pytest.mark.parametrize("program", ["lustre_exporter", "tierd", "tierctl"])
def test_all_programs_run_in_one_environment_beside_packages_with_the_names_of_their_rooms(
        wheel: Path, program: str, tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for path in wheel.iterdir():
        (site / path.name).symlink_to(path)
    for name in ("lustre", "httpserver", "exporter", "tierd"):
        (site / name).mkdir()
        (site / name / "__init__.py").write_text(f"raise RuntimeError('this {name} is of another distribution')\n")
    shown = in_wheel(site, program, "--help")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "simulate" not in shown.stdout


@pytest.mark.parametrize("command", [["simulate", "noisy-neighbour"], ["evaluate", "--seeds", "1-2"]])
def test_commands_say_that_they_need_the_simulator(wheel: Path, command: list[str]) -> None:
    refused = in_wheel(wheel, "tierctl", *command)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == (
        "tierctl: simulate and evaluate need the simulator, which is only in a checkout of the source\n")


@pytest.mark.skipif(not shutil.which("dpkg-deb") or not shutil.which("cc"), reason="needs dpkg-deb and a C compiler")
@pytest.mark.skipif(not Path(sysconfig.get_paths()["include"], "Python.h").exists(), reason="needs Python.h")
def test_the_packages_are_built_and_the_exporter_of_its_package_runs(capture: Unpack, tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="70.1", reason="an older setuptools makes no wheels")
    environment = {name: value for name, value in os.environ.items() if name not in {"CC", "PURE_PYTHON", "WHEELS"}}
    environment |= {"PYTHON": sys.executable, "CFLAGS": "-O0", "DPKG_DEB_COMPRESSOR_LEVEL": "0", "PIP_NO_INDEX": "1",
                    "PIP_NO_BUILD_ISOLATION": "0", "PIP_NO_COMPILE": "0",
                    "PYTHONPATH": str(dependencies_without_us(tmp_path / "dependencies"))}
    made = subprocess.run(["sh", "packaging/deb.sh", tmp_path / "dist"], env=environment,
                          cwd=copied_source(tmp_path / "source"), check=False, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    roots = {package: tmp_path / package for package in PACKAGES}
    for package, root in roots.items():
        (archive,) = (tmp_path / "dist").glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "--extract", archive, root], check=True)
    compiled = {package: {str(path).partition("site-packages/")[2].partition(".")[0] for path in root.rglob("*.so")}
                for package, root in roots.items()}
    assert set(MODULES) <= compiled["lustre-tierd"]
    assert set(MODULES) <= compiled["lustre-exporter"]
    assert {"/usr/bin/tierd", "/usr/bin/tierctl", "/usr/share/man/man8/tierd.8.gz"} <= files(roots["lustre-tierd"])
    exporter = files(roots["lustre-exporter"])
    assert {"/usr/bin/lustre-exporter", "/usr/share/man/man8/lustre-exporter.8.gz"} <= exporter
    assert {path for path in exporter if "tierd" in re.sub(r"/lustre_tierd(-[^/]*)?/", "/", path)} == set()
    tree, installed = capture("2.17.57/tree-idle"), roots["lustre-exporter"] / "opt/lustre-exporter/bin"
    shown = subprocess.run(
        [installed / "python", "-P", installed / "lustre-exporter", "--once",
         f"--path.procfs={tree / 'proc'}", f"--path.sysfs={tree / 'sys'}"],
        env=environment, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    assert 'lustre_exporter_build_info{compiled="yes",' in shown.stdout
    assert "# TYPE lustre_llite_operations_total counter\n" in shown.stdout


@pytest.mark.parametrize("script", [*sorted(PACKAGING.glob("*.sh")), *sorted((ROOT / "scripts").glob("*.sh")), *sorted(
    path for path in PACKAGING.glob("debian/*/p*"))], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_shell_takes_the_script(script: Path) -> None:
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0


def purged(state: Path) -> subprocess.CompletedProcess[str]:
    """Remove and purge lustre-tierd by its own scripts, with the paths below ``state`` and no systemd or debconf."""
    for name, step in (("prerm", "remove"), ("postrm", "purge")):
        script = (PACKAGING / "debian/lustre-tierd" / name).read_text()
        for path in ("/var/lib/tierd", "/opt/lustre-tierd", "/run/systemd/system", "/usr/share/debconf"):
            script = script.replace(path, f"{state}{path}")
        done = subprocess.run(["sh", "-c", script, name, step], capture_output=True, text=True, check=True)
    return done


@pytest.mark.parametrize(("journal", "outcome", "kept"), [
    ("a.sqlite", "done", True), ("scratch/journal.sqlite", "done", True), ("a.sqlite", "under way", True),
    ("a.sqlite", "undoing", True), ("a.sqlite", "undone", False), ("a.sqlite", "damaged", True), ("pause", "", False),
])
def test_a_purge_keeps_what_only_the_journal_can_undo(journal: str, outcome: str, kept: bool, tmp_path: Path) -> None:
    file = tmp_path / "var/lib/tierd" / journal
    file.parent.mkdir(parents=True)
    if outcome in {"", "damaged"}:
        file.write_text(outcome)
    else:
        db, _ = open_journal(file)
        db.execute("INSERT INTO actions (kind, place, size_bytes, reason, dry_run, intended_at, outcome) "
                   "VALUES ('set-default-layout', 'scratch', 0, '', 0, 1.0, ?)", (outcome,))
        db.close()
    told = purged(tmp_path)
    number = "unknown" if outcome == "damaged" else "1"
    words = f"kept {tmp_path}/var/lib/tierd: only its journals can undo the default layouts that are still set"
    assert (file.exists(), f"{words} ({number})" in told.stderr) == (kept, kept)


MODULES = ("lustre_tierd/exporter/jobs/_lines", "lustre_tierd/lustre/_files", "lustre_tierd/lustre/formats/_texts")


def checked(folder: Path, tag: str, modules: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Output of check_wheel.py for a wheel with this tag and these compiled modules."""
    wheel = folder / f"lustre_tierd-0.1.0-cp311-cp311-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for module in modules:
            archive.writestr(f"{module}.cpython-311-x86_64-linux-gnu.so", b"")
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "check_wheel.py"), str(wheel)], capture_output=True,
                          text=True, check=False)


@pytest.mark.parametrize(("tag", "modules", "complaint"), [
    ("manylinux2014_x86_64.manylinux_2_17_x86_64", MODULES, ""),
    ("linux_x86_64", MODULES, "the tag linux_x86_64 is not one of manylinux"),
    ("manylinux_2_17_x86_64.linux_x86_64", MODULES, "the tag linux_x86_64 is not one of manylinux"),
    ("manylinux_2_17_x86_64", MODULES[:1], "lustre_tierd/lustre/_files is not compiled"),
    ("manylinux_2_17_x86_64", (), "lustre_tierd/exporter/jobs/_lines is not compiled"),
])
def test_a_wheel_that_needs_a_compiler_is_refused(
        tag: str, modules: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    done = checked(tmp_path, tag, modules)
    assert done.returncode == bool(complaint)
    assert complaint in done.stderr if complaint else not done.stderr


def test_every_source_in_c_is_built() -> None:
    setup = (ROOT / "setup.py").read_text()
    sources = sorted(f"lustre_tierd/{path.relative_to(ROOT).with_suffix('')}"
                     for package in ("lustre", "httpserver", "exporter", "tierd")
                     for path in (ROOT / package).rglob("_*.c"))
    declared = sorted("lustre_tierd/" + name.replace(".", "/") for name in re.findall(r'extension\("([\w.]+)"', setup))
    assert sources == declared == sorted(MODULES)


def test_making_an_environment_installs_no_system_package(tmp_path: Path) -> None:
    called = tmp_path / "called"
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("apt-get", "apt", "dnf", "sudo"):
        (folder / name).write_text(f"#!/bin/sh\necho $0 >> {called}\n")
        (folder / name).chmod(0o755)
    python = folder / "python"  # one that can make no environment, whichever way
    python.write_text(f'#!/bin/sh\ncase "$*" in *venv*|*virtualenv*|*pip*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", "scripts/venv.sh", tmp_path / "made", "."], capture_output=True, text=True, check=False, cwd=ROOT,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "PYTHON": str(python)})
    assert done.returncode == 1
    assert "Run: apt-get install python3-venv" in done.stderr
    assert not called.exists()
    assert not (tmp_path / "made").exists()


CONTAINERS = PACKAGING / "containers"
COMPOSE: dict[str, Any] = yaml.safe_load((CONTAINERS / "compose.yml").read_text(encoding="utf-8"))


def mounts() -> list[tuple[str, str]]:
    """Folders and files of the source, and where they are mounted."""
    every = [volume.split(":") for service in COMPOSE["services"].values()
             for volume in service["volumes"] if isinstance(volume, str) and volume.startswith(".")]
    return [(volume[0], volume[1]) for volume in every]


def test_all_mounted_files_exist() -> None:
    assert len(mounts()) > 5
    assert [source for source, _ in mounts() if not (CONTAINERS / source).exists()] == []


def test_prometheus_takes_its_settings(tmp_path: Path) -> None:
    for source, target in mounts():
        if target.startswith("/etc/prometheus"):
            given, place = CONTAINERS / source, tmp_path / target.removeprefix("/etc/prometheus/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(given, place) if given.is_dir() else shutil.copy(given, place)
    assert "rules found" in output_of("promtool", "check", "config", tmp_path / "prometheus.yml")


def test_grafana_finds_its_first_board() -> None:
    home = Path(COMPOSE["services"]["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    source = next(source for source, target in mounts() if target == str(home.parent))
    assert (CONTAINERS / source / home.name).is_file()


@pytest.mark.parametrize("text", ["privileged", "/var/run/docker.sock"])
def test_no_container_controls_the_node(text: str) -> None:
    assert text not in (CONTAINERS / "compose.yml").read_text(encoding="utf-8")
