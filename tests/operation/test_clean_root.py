"""Installs, upgrades, removes and purges the packages of ``make packages`` in roots of their own.

Runs where ``TIERD_PACKAGES`` names the folder of the packages, as root, on Debian. The root is an overlay over that of
this machine: what is installed there is seen, and nothing of it changes.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

DIST = Path(os.environ.get("TIERD_PACKAGES", "missing")).resolve()
PACKAGES = ("lustre-exporter", "lustre-tierd")
UNITS = ("lustre-exporter.service", "tierd.service", "tierd-mover@a.service", "tierd-reader@a.service",
         "tierd-brake.service")
pytestmark = [
    pytest.mark.skipif(not DIST.is_dir(), reason="TIERD_PACKAGES names no folder of packages"),
    pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("dpkg"), reason="needs root and dpkg"),
]


class Root:
    """A root folder to run commands in."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, *command: str) -> str:
        """The output of a command that must succeed."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}
        done = subprocess.run(["chroot", self.path, *command], env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def at(self, path: str) -> Path:
        """Where a path of the root is on this machine."""
        return self.path / path.lstrip("/")

    def left(self) -> list[str]:
        """Files of ours in the folders that packages use."""
        return [str(path.relative_to(self.path)) for folder in ("etc", "opt", "usr", "var/lib")
                for path in self.at(folder).glob("**/*") if re.search("lustre-exporter|tierd", path.name)
                and "dpkg" not in path.parts and "deb-systemd" not in str(path)]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Root]:
    changes = Path("/dev/shm") / f"tierd-root-{os.getpid()}"
    merged = tmp_path / "root"
    for path in (changes / "upper", changes / "work", merged):
        path.mkdir(parents=True)
    mounted = subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                              f"lowerdir=/,upperdir={changes}/upper,workdir={changes}/work", merged],
                             capture_output=True, text=True, check=False)
    if mounted.returncode:
        shutil.rmtree(changes)
        pytest.skip(f"no overlay: {mounted.stderr}")
    shutil.rmtree(merged / "var/lib/tierd", ignore_errors=True)  # of the tierd of this machine
    subprocess.run(["mount", "--bind", "/dev", merged / "dev"], check=True)
    subprocess.run(["mount", "-t", "proc", "proc", merged / "proc"], check=True)
    try:
        yield Root(merged)
    finally:
        subprocess.run(["umount", "--lazy", "--recursive", merged], check=True)
        shutil.rmtree(changes)


def archive(package: str, kind: str) -> Path:
    """The file of a package."""
    (found,) = [path for path in DIST.glob(f"*.{kind}") if re.match(rf"{package}[-_]\d", path.name)]
    return found


def former(package: str, folder: Path) -> Path:
    """The package as of an earlier version, with a module that the present one no longer has."""
    work = folder / package
    subprocess.run(["dpkg-deb", "-R", archive(package, "deb"), work], check=True)
    control = work / "DEBIAN/control"
    control.write_text(re.sub(r"^Version: .*$", "Version: 0.0.9-1", control.read_text(), flags=re.MULTILINE))
    (work / f"opt/{package}/gone.py").touch()
    made = folder / f"{package}_0.0.9.deb"
    subprocess.run(["dpkg-deb", "-Znone", "--build", work, made], check=True, stdout=subprocess.DEVNULL)
    return made


def test_debian_packages_are_installed_upgraded_removed_and_purged(root: Root, tmp_path: Path) -> None:
    for package in PACKAGES:
        for kind, path in (("old", former(package, tmp_path)), ("new", archive(package, "deb"))):
            shutil.copy(path, root.at(f"/tmp/{kind}-{package}.deb"))
    before = root.left()
    root.run("dpkg", "--force-depends", "-i", *(f"/tmp/old-{package}.deb" for package in PACKAGES))
    settings = root.at("/etc/tierd/tierd.toml")
    settings.write_text(settings.read_text() + "# of this site\n")
    root.run("dpkg", "--force-depends", "--force-confold", "-i", *(f"/tmp/new-{package}.deb" for package in PACKAGES))
    assert settings.read_text().endswith("# of this site\n")
    assert not list(root.at("/opt").glob("*/gone.py"))
    assert root.run("dpkg", "--verify", *PACKAGES).split() == ["??5??????", "c", "/etc/tierd/tierd.toml"]
    assert root.run("systemd-analyze", "verify", *UNITS) == ""
    assert "tierd.toml: OK" in root.run("tierd", "--config", "/etc/tierd/tierd.toml", "--check-config")
    assert "lustre_loaded 0" in root.run("lustre-exporter", "--once", "--path.procfs=/proc", "--path.sysfs=/usr")
    root.run("dpkg", "--remove", *reversed(PACKAGES))
    assert settings.exists(), "settings stay until they are purged"
    root.run("dpkg", "--purge", *reversed(PACKAGES))
    assert [path for path in root.left() if path not in before] == []


@pytest.mark.skipif(not shutil.which("rpm"), reason="needs rpm")
def test_rpm_packages_are_installed_upgraded_and_erased(tmp_path: Path) -> None:
    rpm = ["rpm", "--root", str(tmp_path), "--dbpath", "/var/lib/rpm", "--nodeps", "--noscripts"]
    packages = [str(archive(package, "rpm")) for package in PACKAGES]
    subprocess.run([*rpm, "-i", *packages], check=True)
    settings = tmp_path / "etc/tierd/tierd.toml"
    settings.write_text("# of this site\n")
    subprocess.run([*rpm, "-U", "--replacepkgs", *packages], check=True)
    assert settings.read_text() == "# of this site\n"
    changed = subprocess.run([*rpm, "-V", *PACKAGES], text=True, capture_output=True, check=False).stdout
    assert [line.split()[-1] for line in changed.splitlines()] == ["/etc/tierd/tierd.toml"]
    subprocess.run([*rpm, "-e", *PACKAGES], check=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and "rpm" not in path.parts] == [
        tmp_path / "etc/tierd/tierd.toml.rpmsave"]
