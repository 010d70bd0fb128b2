"""The words of the journal."""

from tierd.acts import ActKind, OrderKind, Outcome, Verdict
from tierd.refusal import PLAN_REASONS, Reason

WORDS = {
    ActKind: "set-default-layout set-default-striping migrate",
    OrderKind: "request drain submission staging preparation",
    Outcome: "under-way done dry-run already refused gave-way failed doubtful gone interrupted undoing undone",
    Verdict: " too-early helped did-not-help harmed-others cannot-tell taken-back",
}


def test_the_words_of_journals_labels_and_json_never_change() -> None:
    found = {kind: " ".join(word.replace(" ", "-") for word in kind) for kind in WORDS}
    assert found == WORDS


def test_reasons_of_plans_do_not_depend_on_the_order_of_the_reasons() -> None:
    assert set(Reason) > PLAN_REASONS
    assert Reason.PAUSED not in PLAN_REASONS
