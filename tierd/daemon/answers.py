"""Findings, actions, acts and refusals in JSON: the elements of ``--json`` and of the answers of the control socket."""

from __future__ import annotations

from typing import Any

from lustre.layout.model import explain as layout_words
from lustre.layout.setstripe import setstripe_arguments
from tierd.act.journal.entry import Entry
from tierd.model import Action, Finding
from tierd.refusal import REMEDIES, Refusal


def finding_json(finding: Finding) -> dict[str, Any]:
    """One finding. ``t`` is in epoch seconds, ``evidence`` holds the numbers and the sentence made of them."""
    return {
        "kind": finding.kind, "t": finding.time, "aggressor": finding.aggressor, "victim": finding.victim,
        "targets": list(finding.targets), "directories": list(finding.directories), "advice_only": finding.advice_only,
        "subject": finding.subject,
        "advice": [{"command": a.command, "where": a.where, "effect": a.effect} for a in finding.advice],
        "evidence": {"sentence": finding.sentence, **{k: round(v, 6) for k, v in finding.evidence.numbers().items()}},
    }


def action_json(action: Action) -> dict[str, Any]:
    """One step: ``layout`` as arguments of ``lfs setstripe`` or ``lfs migrate``, ``components`` for programs."""
    place = {"path": action.path} if action.path else {}
    if action.directory:
        place["directory"] = action.directory
    return {
        "action": action.kind, **place,
        "layout": " ".join(setstripe_arguments(action.layout)),
        "components": [
            {"extent_start": c.extent_start, "extent_end": c.extent_end, "pool": c.pool, "stripe_count": c.stripe_count}
            for c in action.layout.components
        ],
        "reason": action.reason,
    }


def act_json(entry: Entry) -> dict[str, Any]:
    """An act, for programs."""
    return {
        "id": entry.id, "time": entry.intended_at, "kind": entry.kind, "place": entry.place,
        "size_bytes": entry.size_bytes, "outcome": entry.outcome, "detail": entry.detail,
        "before": layout_words(entry.layout_before) if entry.layout_before else None,
        "after": layout_words(entry.layout_after) if entry.layout_after else None, "reason": entry.reason,
    }


def refusal_json(refusal: Refusal) -> dict[str, str]:
    """Why something is not done, and what would change that."""
    return {"reason": str(refusal.reason), "sentence": refusal.sentence, "remedy": REMEDIES.get(refusal.reason, "")}
