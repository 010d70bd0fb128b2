"""Scopes: the deepest one decides for a path, and every package honours its pools."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from lustre.fid import Fid
from lustre.layout.model import Component, Layout
from tests.tierd.policies.views import GB, found_by, halves
from tests.tierd.worlds import TARGETS, noise
from tierd.config.act import Mode
from tierd.config.load import parse
from tierd.config.scopes import ResolvedScopes, Scope
from tierd.config.settings import Settings
from tierd.decide.plans import FlashSettings
from tierd.detect.view import View
from tierd.engine import plan_by_scope, situation_of
from tierd.model import Candidate, Capacity, DirectoryActivity, Facts, Finding, StoredFile, TargetFill
from tierd.policies import cold_on_flash, flash_pressure, outgrown_component

NAMES = st.lists(st.sampled_from(["a", "b", "ab"]), max_size=3)
PATHS = NAMES.map(lambda names: "/" + "/".join(names))


@st.composite
def configurations(draw: st.DrawFn) -> Settings:
    """Scopes with pools of their own, and modes."""
    paths = draw(st.lists(PATHS.filter(lambda path: path != "/"), unique=True, max_size=4))
    scopes = []
    for path in paths:
        number = draw(st.integers(0, 3))
        scopes.append(Scope(path, draw(st.sampled_from([Mode.FULL, Mode.OBSERVE, Mode.NEW_FILES_ONLY])),
                            FlashSettings(flash_pool=f"flash{number}", hdd_pool=f"hdd{number}")))
    return Settings(scopes=tuple(scopes))


@given(configurations(), PATHS)
def test_the_deepest_scope_with_a_path_decides(settings: Settings, path: str) -> None:
    parts = path.strip("/").split("/")
    by_path = {scope.path: scope for scope in settings.scopes}
    deepest = next((by_path[above] for n in range(len(parts), 0, -1)
                    if (above := "/" + "/".join(parts[:n])) in by_path), None)
    found = settings.resolved_scopes.of(path)
    assert found == (deepest or Scope("/"))
    assert settings.resolved_scopes.pools_of(path) in {scope.pools for scope in (*settings.scopes, Scope("/"))}
    assert found.mode in settings.resolved_scopes.modes


@given(configurations(), st.lists(PATHS))
def test_each_item_has_one_scope(settings: Settings, paths: list[str]) -> None:
    scopes = settings.resolved_scopes
    parts = scopes.by_scope(paths, lambda path: path)
    assert sorted(path for _, mine in parts for path in mine) == sorted(paths)
    assert all(scopes.of(path) == scope for scope, mine in parts for path in mine)
    assert len({scope.path for scope, _ in parts}) == len(parts)


@given(NAMES, st.sampled_from(["", 'mount = "/mnt/lustre"', 'mount = "/a"', 'mount = "/a/b/"']))
def test_a_path_below_the_mount_point_means_the_same_as_one_from_the_root(names: list[str], mount: str) -> None:
    """``/mnt/lustre/scratch`` is what ``ls`` shows, and ``/scratch`` what changelogs name."""
    folder = mount.partition('"')[2].rstrip('"/') or "/mnt/lustre"
    settings = parse(f"""[filesystem]\n{mount}\n[[scopes]]\npath = "{'/'.join([folder, *names])}"\nmode = "observe"
        """.encode(), "t.toml")
    (scope,) = settings.scopes
    assert scope.path == "/" + "/".join(names)
    assert settings.resolved_scopes.of("/".join(["", *names, "file"])).mode == "observe"


def test_a_flash_pool_of_two_scopes_is_checked_once() -> None:
    scopes = ResolvedScopes(Scope("/"), [Scope("/a", small_files_to_flash=FlashSettings("nvme", "sas")),
                                         Scope("/b", small_files_to_flash=FlashSettings("nvme", "hdd"))])
    assert [(pools.flash, pools.hdd) for pools in scopes.pool_pairs] == [("flash", "hdd"), ("nvme", "sas")]
    assert scopes.flash_pools == {"flash", "nvme"}


def world(settings: Settings) -> tuple[dict[str, tuple[str, ...]], Capacity]:
    """Every pool that a scope names, with one target each."""
    pairs = settings.resolved_scopes.pool_pairs
    pools: dict[str, tuple[str, ...]] = {pool: (f"lustre-{pool}",) for pair in pairs for pool in (pair.flash, pair.hdd)}
    return pools, Capacity(pools, dict.fromkeys(pools, 1000 * GB), dict.fromkeys(pools, 900 * GB))


@given(configurations(), st.lists(PATHS.filter(lambda path: path != "/"), min_size=1, max_size=5, unique=True))
def test_a_plan_names_the_pools_of_the_scope_of_each_directory(settings: Settings, directories: list[str]) -> None:
    scopes = settings.resolved_scopes
    _, capacity = world(settings)
    finding = Finding("noisy-neighbour", 1000.0, "m.2", "s.1", TARGETS, "…", noise(aggressor_read_share=0.5),
                      directories=tuple(directories))
    activities = [DirectoryActivity("m.2", where, creates=100, closes=100, sizes=(1 << 20,) * 100, candidates=(
        Candidate(Fid(1, n), f"{where.rstrip('/')}/file", 900.0, size_bytes=1 << 20),))
        for n, where in enumerate(directories)]
    layouts = {where: Layout((Component(pool=scopes.pools_of(where).hdd),), composite=False) for where in directories}
    situation = situation_of(settings, replace(capacity, default_layouts=layouts))
    plan = plan_by_scope(finding, activities, situation, scopes)
    every = (*plan.actions, *plan.recommended)
    assert {action.directory for action in every} == set(directories)
    for action in every:
        pools = scopes.pools_of(action.directory)
        assert {component.pool for component in action.layout.components} <= {pools.flash, pools.hdd}
    for done, actions in ((True, plan.actions), (False, plan.recommended)):
        for action in actions:
            mode = scopes.of(action.directory).mode
            assert (mode == "full" or (mode == "new-files-only" and not action.path)) is done


@given(configurations())
def test_policies_look_at_the_flash_of_every_scope(settings: Settings) -> None:
    scopes = settings.resolved_scopes
    pools, _ = world(settings)
    flash = scopes.flash_pools
    fill = {members[0]: TargetFill(100 * GB, 5 * GB if pool in flash else 90 * GB) for pool, members in pools.items()}
    stored = tuple(StoredFile(Fid(2, n), f"/old/{pool}", GB, (pool,), -30 * 86400.0, Layout((Component(pool=pool),)))
                   for n, pool in enumerate(sorted(flash)))
    outgrown = tuple(DirectoryActivity("j", scope.path, creates=100, outgrown=50) for scope in settings.scopes)
    facts = Facts(pools=pools, fill=fill, stored=stored, directories=outgrown)
    view = View(halves(), facts, pool_pairs=scopes.pool_pairs, pools_of=scopes.pools_of)
    for policy in (cold_on_flash.POLICY, flash_pressure.POLICY):
        assert {finding.subject for finding in found_by(policy, view)} == flash
    for finding in found_by(outgrown_component.POLICY, view):
        pair = scopes.pools_of(finding.subject)
        assert all(f"-p {pair.flash} -E -1 -c 1 -p {pair.hdd} " in advice.command for advice in finding.advice)
