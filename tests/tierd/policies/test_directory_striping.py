from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustre.layout.directory import DefaultStriping, DirectoryStripes
from tierd.acts import ActKind, Verdict
from tierd.decide.plans import FlashSettings, Plan
from tierd.model import Capacity, DirectoryActivity, DirectoryPlacement, Facts, Finding, MetadataSpace
from tierd.policies import metadata_storm
from tierd.policies.metadata_storm import MetadataStormEvidence, judge, rate_below
from tierd.policies.protocol import Situation
from tierd.refusal import Reason

STORM = MetadataStormEvidence(creates_per_second=800.0, opens_per_second=100.0, unlinks_per_second=0.0, share=0.9,
                              metadata_targets=4, nodes=8)
FINDING = Finding("metadata-storm", 1e9, "", "", (), "", STORM, ("/out/s2", "/out/s1"), subject="/out/s2")
PLAIN = DirectoryPlacement(DirectoryStripes(0, 0), None)
ROOMY = {f"l-MDT000{n}": MetadataSpace(10, 7, 10**6, 10**6) for n in range(4)}


def decided(finding: Finding = FINDING, placement: DirectoryPlacement | None = PLAIN,
            storm: DirectoryPlacement = PLAIN,
            metadata: dict[str, MetadataSpace] | None = None, release: tuple[int, int] = (2, 15),
            **evidence: float) -> Plan:
    facts = Facts(placements={"/out/s2": storm, "/out": placement} if placement else {},
                  metadata=ROOMY if metadata is None else metadata)
    numbers = replace(STORM, **evidence)  # type: ignore[arg-type]
    capacity = Capacity({}, {}, {}, release=release)
    return metadata_storm.plan(finding, numbers, Situation(capacity, FlashSettings(), facts=facts))


def test_new_directories_of_the_parent_are_striped_and_do_not_pass_it_on() -> None:
    (action,) = decided().actions
    assert (action.kind, action.directory) == (ActKind.SET_DEFAULT_STRIPING, "/out")
    assert action.striping == DefaultStriping(4, -1, "fnv_1a_64", 1)
    assert action.reason == ("900 metadata operations/s in /out/s2 use one directory lock, and its sibling "
                             "directories are used in the same way")


def test_the_default_that_a_new_file_system_gives_its_root_is_no_choice_of_a_person() -> None:
    usual = DefaultStriping(1, -1, "none", -1, 3)
    assert len(decided(placement=replace(PLAIN, default=usual)).actions) == 1


def test_a_refusal_says_how_to_remove_a_default() -> None:
    (refusal,) = decided(placement=replace(PLAIN, default=DefaultStriping(0, 1))).refusals
    assert "(-D -c 0 -i 1 --max-inherit -1)" in refusal.sentence
    assert "'lfs setdirstripe -D -d' removes it" in refusal.sentence


def test_no_more_stripes_than_mdts_and_than_the_setting() -> None:
    assert decided(metadata_targets=2).actions[0].striping == DefaultStriping(2, -1, "fnv_1a_64", 1)
    many = {f"l-MDT{n:04x}": MetadataSpace(10, 7, 10**6, 10**6) for n in range(16)}
    assert decided(metadata_targets=16, metadata=many).actions[0].striping == DefaultStriping(4, -1, "fnv_1a_64", 1)


@pytest.mark.parametrize(("plan", "reason"), [
    (decided(placement=None), Reason.NO_LAYOUT),
    (decided(placement=replace(PLAIN, default=DefaultStriping(2))), Reason.OTHER_LAYOUT),
    (decided(placement=replace(PLAIN, default=DefaultStriping(0, 1))), Reason.OTHER_LAYOUT),
    (decided(placement=replace(PLAIN, stripes=DirectoryStripes(2, 0, "crush,migrating"))), Reason.OTHER_MOVER),
    (decided(metadata_targets=1), Reason.NOTHING_TO_DO),
    (decided(metadata_targets=0), Reason.NOTHING_TO_DO),
    (decided(creates_per_second=10.0, opens_per_second=900.0), Reason.NOT_WORTH),
    (decided(nodes=1), Reason.NOT_WORTH),
    (decided(nodes=0), Reason.NODES_UNKNOWN),
    (decided(release=(2, 14)), Reason.OLD_RELEASE),
    (decided(release=(0, 0)), Reason.OLD_RELEASE),
    (decided(metadata={}), Reason.NO_ROOM),
    (decided(metadata={**ROOMY, "l-MDT0001": MetadataSpace(100, 5, 10, 10)}), Reason.NO_ROOM),
    (decided(storm=replace(PLAIN, stripes=DirectoryStripes(4, 0, "crush"))), Reason.OTHER_LAYOUT),
    (decided(replace(FINDING, directories=("/out/s2",))), Reason.NOT_WORTH),
    (decided(replace(FINDING, directories=("/top", "/top2"))), Reason.ROOT_DIRECTORY),
    (decided(replace(FINDING, directories=("[0x1:0x2:0x0]",))), Reason.NO_PATH),
])
def test_a_striping_that_brings_nothing_or_replaces_another_is_refused(plan: Plan, reason: Reason) -> None:
    assert plan.actions == ()
    assert [refusal.reason for refusal in plan.refusals] == [reason]


@given(st.floats(1, 1e6), st.integers(0, 10**9))
def test_a_verdict_is_given_by_the_operations_there(before: float, creates: int) -> None:
    facts, after = Facts(directories=(DirectoryActivity("a", "/out/s3", creates=creates),), directory_seconds=600.0
                         ), creates / 600.0
    found = judge("/out", replace(STORM, parent_operations_per_second=before), facts, 900.0)
    assert found is not None
    if after < 0.1 * before:
        assert found.verdict is Verdict.CANNOT_TELL
    else:
        assert (found.verdict is Verdict.HELPED) == (after >= 1.05 * before)
    assert found.words


def test_operations_of_subdirectories_count() -> None:
    activities = (DirectoryActivity("a", "/out", creates=10), DirectoryActivity("a", "/out/step1", creates=100),
                  DirectoryActivity("a", "/outer", creates=1000))
    assert rate_below("/out", Facts(directories=activities, directory_seconds=10.0)) == 11.0
    assert rate_below("/out", Facts()) == 0.0


def test_a_default_layout_that_changed_meanwhile_is_no_loss() -> None:
    """The counts of the directory begin again with it."""
    facts = Facts(directories=(DirectoryActivity("a", "/out", creates=100),), directory_seconds=600.0,
                  latest_directories=(DirectoryActivity("a", "/out", creates=3000),), latest_seconds=30.0)
    found = judge("/out", replace(STORM, parent_operations_per_second=90.0), facts, 900.0)
    assert found is not None
    assert found.verdict is Verdict.HELPED
