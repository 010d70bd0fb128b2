"""Any request at the control socket gets an answer or an error, and never causes an unrequested act."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.tierd.site import Site
from tierd.daemon.control import ControlServer, Peer

KEYS = {
    "status": (), "findings": (), "advise": (), "resume": (), "top": ("most",), "history": ("last", "outcome"),
    "explain": ("id",), "plan": (), "report": ("since", "until"), "pause": ("reason",), "drain": ("reason",),
    "undo": ("id",), "promote": ("path", "most_files", "most_bytes", "preview"), "demote": ("path", "most_files"),
    "submit": ("paths", "direction", "reason"),
}
TEXT = st.text(st.characters(codec=None), max_size=20)
NUMBERS = st.one_of(st.integers(), st.integers(-(1 << 80), 1 << 80), st.floats())
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXT, st.sampled_from(["F1", "1", "/proj", "/", "up"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6)


@pytest.fixture
def control(site: Site) -> Iterator[ControlServer]:
    site.run(until=10)
    server = ControlServer(str(site.folder / "any.sock"), site.service.answer)
    yield server
    server.close()


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example({"request": "undo", "id": 1 << 80})
@example({"request": "undo", "id": float("inf")})
@example({"request": "history", "last": 1 << 80})
@example({"request": "top", "most": float("-inf")})
@example({"request": "report", "since": float("nan"), "until": 1 << 80})
@example({"request": "report", "until": "9" * 400})
@example({"request": "explain", "id": "F" + "9" * 30})
@example({"request": "history", "outcome": "\udcff"})
@example({"request": "pause", "reason": "\udcff\x1b[2J"})
@example({"request": "submit", "paths": ["/\udcff", "/\ud800"], "reason": "\udcff"})
@given(st.one_of([st.fixed_dictionaries({"request": st.just(name)}, optional=dict.fromkeys(KEYS[name], VALUES))
                  for name in sorted(KEYS)]))
def test_any_request_is_answered_in_json(site: Site, control: ControlServer, request: dict[str, object]) -> None:
    answer = control.answer(json.dumps(request).encode(), Peer(0))
    json.dumps(answer).encode()
    assert isinstance(answer.get("error", ""), str)
    assert list(site.service.journal.entries()) == []


@pytest.mark.parametrize("number", [True, 1.0, "1", None, [1]])
def test_an_act_is_undone_by_its_number_alone(site: Site, control: ControlServer, number: object) -> None:
    line = json.dumps({"request": "undo", "id": number}).encode()
    assert "undo takes the number of an act" in str(control.answer(line, Peer(0))["error"])
