"""What is left alone, and that it is exactly as it was: layout, data, times."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lustre.layout.model import Layout
from tests.acceptance.conftest import engine_of
from tests.acceptance.site import MIB, Site, checksum, long_ago, noise
from tierd.act.movers.moves import Move, MoveOutcome, Mover, MoveResult


@pytest.fixture
def directory(site: Site, engine_name: str, request: pytest.FixtureRequest) -> Path:
    return site.directory("refused-" + request.node.name.replace("/", "-"), mdt=site.mdt_count - 1)


def refused(engine: Mover, site: Site, place: Path, layout: Layout) -> MoveOutcome:
    before = site.lfs("getstripe", str(place)) if place.is_file() else ""
    (outcome,) = engine.move([Move(site.name(place), layout)])
    assert outcome.result in {MoveResult.REFUSED, MoveResult.GAVE_WAY, MoveResult.FAILED}, outcome
    assert not before or site.lfs("getstripe", str(place)) == before
    return outcome


def written(place: Path, size: int = 5000) -> Path:
    place.write_bytes(noise(size, 1))
    return place


def test_no_such_pool_an_empty_one_and_too_few_targets(site: Site, engine: Mover, directory: Path,
                                                       request: pytest.FixtureRequest) -> None:
    place = written(directory / "a")
    assert refused(engine, site, place, site.in_pool("nosuch")).reason == "no-such-pool"
    empty = request.config.getoption("--empty-pool")
    if empty:
        assert refused(engine, site, place, site.in_pool(empty)).reason == "empty-pool"
    count = len(site.filesystem.pools()[site.flash]) + 1
    assert refused(engine, site, place, site.in_pool(site.flash, count)).reason == "wanted-layout"


@pytest.mark.parametrize(("flag", "reason"), [("+i", "immutable"), ("+a", "append-only")])
def test_immutable_and_append_only(site: Site, engine: Mover, directory: Path, flag: str, reason: str) -> None:
    place = written(directory / "a")
    subprocess.run(["chattr", flag, str(place)], check=True)
    try:
        assert refused(engine, site, place, site.in_pool(site.flash)).reason == reason
    finally:
        subprocess.run(["chattr", "-ia", str(place)], check=True)


def test_pinned(site: Site, engine: Mover, directory: Path) -> None:
    place = written(directory / "a")
    try:
        os.setxattr(place, "lustre.pin", f"- pool: {site.hdd}\n".encode())
    except OSError as error:
        pytest.skip(f"this release has no pins: {error}")
    assert refused(engine, site, place, site.in_pool(site.flash)).reason == "pinned"


def test_mirrored(site: Site, engine: Mover, directory: Path) -> None:
    place = directory / "a"
    site.lfs("mirror", "create", "-N", "-p", site.flash, "-N", "-p", site.hdd, str(place))
    assert refused(engine, site, place, site.in_pool(site.flash)).reason == "mirrored"


def test_foreign(site: Site, engine: Mover, directory: Path) -> None:
    place = directory / "a"
    site.lfs("setstripe", "--foreign=none", "--xattr=foreignvalue", str(place))
    (outcome,) = engine.move([Move(site.name(place), site.in_pool(site.flash))])
    assert outcome.result in {MoveResult.REFUSED, MoveResult.FAILED}
    assert "foreignvalue" in site.lfs("getstripe", "-v", str(place))


def test_no_regular_files(site: Site, engine: Mover, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    (directory / "link").symlink_to(written(directory / "target"))
    (directory / "directory").mkdir()
    for name in ("pipe", "link", "directory"):
        refused(engine, site, directory / name, site.in_pool(site.flash))
    assert site.pools_of(directory / "target") == [site.hdd]


def test_open_for_writing_and_running(site: Site, engine: Mover, directory: Path) -> None:
    place = written(directory / "a")
    with place.open("r+b"):
        assert refused(engine, site, place, site.in_pool(site.flash)).result is MoveResult.GAVE_WAY
    program = directory / "sleep"
    shutil.copy("/bin/sleep", program)
    program.chmod(0o755)
    with subprocess.Popen([str(program), "30"]) as running:
        refused(engine, site, program, site.in_pool(site.flash))
        running.terminate()


def test_chosen_long_ago(site: Site, engine: Mover, directory: Path) -> None:
    place = written(directory / "a")
    fid = site.filesystem.status(site.name(place)).fid
    other = written(directory / "b")
    os.replace(other, place)
    (outcome,) = engine.move([Move(site.name(place), site.in_pool(site.flash), fid=fid)])
    assert outcome.reason == "changed"


def test_archived_and_released(site: Site, engine: Mover, directory: Path) -> None:
    place = written(directory / "a")
    if subprocess.run(["lfs", "hsm_archive", str(place)], capture_output=True, check=False).returncode:
        pytest.skip("no archive is set up (HSM)")
    for _ in range(100):
        if "archived" in hsm_flags(site, place):
            break
        subprocess.run(["sleep", "0.2"], check=True)
    else:
        pytest.skip("nothing archives here (HSM)")
    site.lfs("hsm_release", str(place))
    assert refused(engine, site, place, site.in_pool(site.flash)).reason == "released"
    assert "released" in hsm_flags(site, place)


def hsm_flags(site: Site, place: Path) -> str:
    """What ``lfs hsm_state`` prints after the path, which may have the name of a flag in it."""
    return site.lfs("hsm_state", str(place)).removeprefix(f"{place}:")


def test_the_owners_quota(site: Site, engine: Mover, directory: Path, request: pytest.FixtureRequest) -> None:
    user = request.config.getoption("--quota-user")
    if not user:
        pytest.skip("no --quota-user")
    place = written(directory / "a", 8 * MIB)
    shutil.chown(place, user)
    os.sync()
    long_ago(place)
    site.lfs("setquota", "-u", user, "-b", "0", "-B", "12M", "-i", "0", "-I", "0", site.mount.path)
    try:
        assert refused(engine, site, place, site.in_pool(site.flash)).reason == "quota"
    finally:
        site.lfs("setquota", "-u", user, "-b", "0", "-B", "0", "-i", "0", "-I", "0", site.mount.path)


def test_a_full_pool(site: Site, request: pytest.FixtureRequest) -> None:
    """Filled once for both engines: Lustre takes a while to use a pool again after its files were removed."""
    if not request.config.getoption("--fill-flash-pool"):
        pytest.skip("no --fill-flash-pool")
    directory = site.directory("full", mdt=site.mdt_count - 1)
    place = written(directory / "a", 32 * MIB)
    digest = checksum(place)
    try:
        for target in site.filesystem.pools()[site.flash]:
            filler = directory / f"filler-{target}"
            site.lfs("setstripe", "-p", site.flash, "-c", "1", "-i", str(int(target[-4:], 16)), str(filler))
            subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4M", "oflag=direct", "status=none"], check=False)
        for name in ("lfs", "lease"):
            outcome = refused(engine_of(site, name), site, place, site.in_pool(site.flash))
            assert outcome.reason in {"room", "no-space"}
            assert checksum(place) == digest
    finally:
        for filler in directory.glob("filler-*"):
            filler.unlink()
