"""HSM: its coordinator, and what its agents have done."""

from __future__ import annotations

from tests.exporter.collectors.families import DEBUG, shown


def agent(uuid: str, ok: int, errors: int = 0) -> str:
    return f"uuid={uuid} archive_id=ANY requests=[current:1 ok:{ok} errors:{errors}]\n"


def test_requests_of_a_copytool_stay_in_the_sum_after_it_leaves(grow, exporter, samples) -> None:
    agents = f"{DEBUG}/mdt/lustre-MDT0000/hsm/agents"
    running = exporter(grow({agents: agent("a", 10, 1) + agent("b", 5)}))
    name = "lustre_hsm_agent_requests_done_total"
    assert shown(samples, running.scrape(), name, "result") == {"ok": "15", "error": "1"}
    grow({agents: agent("b", 6)})
    assert shown(samples, running.scrape(), name, "result") == {"ok": "16", "error": "1"}
    grow({agents: ""})
    text = running.scrape()
    assert shown(samples, text, name, "result") == {"ok": "16", "error": "1"}
    assert shown(samples, text, "lustre_hsm_agents", "target") == {"MDT0000": "0"}
    assert running.errors() == {}
