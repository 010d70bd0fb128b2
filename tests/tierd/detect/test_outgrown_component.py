from __future__ import annotations

import pytest

from lustre.layout.model import Component, Layout
from tests.tierd.detect.views import look
from tierd.model import DirectoryActivity, Facts, Finding
from tierd.policies.outgrown_component import POLICY

KIB = 1 << 10
TOO_SMALL = Layout((Component(0, 128 * KIB, "flash"), Component(128 * KIB, None, "hdd")))
PLAIN = Layout((Component(pool="hdd"),), composite=False)


def found(outgrown: int, creates: int, layout: Layout | None = TOO_SMALL, active: bool = False,
          place: str = "/proj/in") -> list[Finding]:
    facts = Facts(directories=(DirectoryActivity("m.2", place, creates=creates, outgrown=outgrown),),
                  directory_seconds=300.0, default_layouts={place: layout})
    return look(POLICY, facts=facts, active={("outgrown-component", "m.2", place)} if active else ())


def test_files_that_outgrow_the_component_are_reported_with_its_size() -> None:
    (finding,) = found(500, 1000)
    assert (finding.aggressor, finding.directories, finding.advice_only) == ("m.2", ("/proj/in",), False)
    assert "500 of 1000 files created recently in /proj/in outgrew their first component (50%; " in finding.sentence
    assert finding.evidence.numbers()["component_bytes"] == 128 * KIB


def test_hysteresis() -> None:
    assert found(40, 1000) == [], "the tail is for a large file now and then"
    assert found(40, 1000, active=True)
    assert found(10, 1000, active=True) == []


@pytest.mark.parametrize("findings", [
    pytest.param(found(19, 19), id="few files"),
    pytest.param(found(500, 1000, layout=PLAIN), id="one component"),
    pytest.param(found(500, 1000, layout=None), id="no default layout"),
    pytest.param(found(500, 1000, place="[0x200000401:0x1:0x0]"), id="no path"),
])
def test_other_directories_are_not_reported(findings: list[Finding]) -> None:
    assert findings == []
