"""tierd's page in a real browser, without a window."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tierd.config.settings import WebSettings
from tierd.daemon.web import App, listen

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

NOTHING = {
    "time": 1_795_000_000.0, "scopes": [], "advice": 0, "last_cycle": None, "windows": 0, "least_windows": 4,
    "looking_since": None, "history_seconds": 3600.0, "least_seconds": 20.0, "cycles": 0, "cycle_seconds": 0.0,
    "waiting_moves": 0, "waiting_bytes": 0, "waiting_orders": 0, "under_way_moves": 0, "waiting_defaults": 0,
    "waits_for": "", "moved_bytes": 0, "outcomes": {},
}
ANSWERS = {
    "status": {**NOTHING, "mode": "full", "dry_run": True, "paused": "", "held": "", "draining": "",
               "faults": {"changelog": "MDT0000: <gap> & loss"}, "finding_ids": [1],
               "findings": ["s.1 streams at 44 MB/s instead of 65 MB/s since <script>alert(1)</script>.2 came"],
               "why_not": [[{"reason": "little-to-gain", "sentence": "<b>s.1</b>: it would win too little",
                             "remedy": "lower benefit.min_gain"}]],
               "stalled": ["no move has ended for 70 s"]},
    "history": {"entries": [{"id": 1, "time": 1_795_000_000.0, "kind": "set-default-layout", "place": "/proj/a\nb",
                             "size_bytes": 0, "outcome": "dry-run", "detail": "", "before": None,
                             "after": "first 1M on flash",
                             "reason": "new files of noise.2 then leave the disks of s.1"}], "all_outcomes": {}},
}


def page(tmp_path: Path, *arguments: str) -> str:
    if CHROMIUM is None:
        pytest.skip("no Chromium")
    app = App(CollectorRegistry(), lambda request: ANSWERS[request["request"]], lambda: True, lambda: None)
    server = listen(WebSettings(port=0), app, None)
    try:
        done = subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             f"--user-data-dir={tmp_path}/profile", *arguments, f"http://127.0.0.1:{server.port}/"],
            capture_output=True, text=True, timeout=120, check=False)
    finally:
        server.close()
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_shows_state_findings_and_acts(tmp_path: Path) -> None:
    shown = page(tmp_path, "--dump-dom")
    assert "Dry run: nothing is changed." in shown
    assert "Cannot see: MDT0000: &lt;gap&gt; &amp; loss" in shown
    assert "F1: s.1 streams at 44 MB/s instead of 65 MB/s" in shown
    assert "Not done: &lt;b&gt;s.1&lt;/b&gt;: it would win too little; to change that: lower benefit." in shown
    assert "Stalled: no move has ended for 70 s" in shown
    assert "<script>" not in shown
    assert "dry-run" in shown
    assert r"/proj/a\nb" in shown


@pytest.mark.parametrize("size", ["1366,768", "400,800"])
def test_it_fits_the_screen(tmp_path: Path, size: str) -> None:
    picture = tmp_path / "page.png"
    page(tmp_path, f"--window-size={size}", "--hide-scrollbars", f"--screenshot={picture}")
    assert picture.stat().st_size > 5000
