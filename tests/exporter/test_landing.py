"""The page for people."""

import os
import tempfile
import threading
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from exporter.landing import LandingPage, NodeSummary, summarize_node
from exporter.self_metrics import ExporterMetrics
from tests.conftest import as_user

OSC = "sys/kernel/debug/lustre/osc"
NOBODY = 65534


class Page(HTMLParser):
    """Tags and texts."""

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(text.decode())

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data) -> None:
        self.text += data


def page(running) -> Page:
    return Page(LandingPage(running.scraper, "/metrics", "/-/healthy").page())


def test_the_page_names_the_roles_of_the_node(capture, exporter) -> None:
    running = exporter(capture("2.17.57/tree-load-1"))
    found = summarize_node(running.scraper.memory)
    assert found.roles == ("client", "object server", "metadata server", "management server")
    assert found.version.startswith("2.17.57")
    assert found.file_systems == ("lustre",)
    assert len(found.targets) == 8
    shown = page(running)
    assert "lustre-OST0005" in shown.text
    assert shown.links == ["/metrics", "/-/healthy"]
    assert "script" not in shown.tags
    assert shown.text.count("not run yet") == len(running.scraper.names)
    running.scrape("osc")
    assert b"<td>osc</td><td>metrics found</td>" in LandingPage(running.scraper, "/metrics", "/-/healthy").page()


def test_a_router_and_nothing_else(grow, exporter) -> None:
    root = grow({"sys/kernel/debug/lnet/routes": "Routing enabled\nnet      hops priority   state router\n"})
    assert summarize_node(exporter(root).scraper.memory) == NodeSummary(("router",), "", (), (), ())


def test_a_node_without_lustre(grow, exporter) -> None:
    running = exporter(grow({}))
    running.scrape()
    shown = page(running)
    assert "none; Lustre is not mounted on this node" in shown.text
    assert "no metrics on this node" in shown.text


def test_hostile_names_stay_text(grow, exporter) -> None:
    hostile = "<script>alert(1)<&'\""
    root = grow({
        f"sys/kernel/debug/lustre/obdfilter/{hostile}-OST0000/stats": b"\xff nonsense <b>\n",
        "proc/mounts": "m@tcp:/a /mnt/<img\\040src=x> lustre rw 0 0\n",
        "sys/kernel/debug/lustre/llite/a-ffff9f0a8c3d1800/stats": "read_bytes 1 samples [bytes] 1 1 1 1\n",
        "sys/fs/lustre/version": b"<i>2.17\xff</i>\n",
    })  # fmt: skip
    running = exporter(root)
    running.scrape()
    shown = page(running)
    assert shown.tags.isdisjoint({"script", "img", "i", "b"})
    assert hostile in shown.text
    assert "a on /mnt/<img src=x>" in shown.text


def test_skipped_lines_and_failed_readings_are_counted(grow, exporter) -> None:
    root = grow({
        f"{OSC}/a-OST0000-osc-ffff9f0a8c3d1800/stats": "nonsense\nnonsense\n",
        f"{OSC}/a-OST0000-osc-ffff9f0a8c3d1800/rpc_stats": "",
    })  # fmt: skip
    running = exporter(root)
    running.scrape("osc")
    text = LandingPage(running.scraper, "/metrics", "/-/healthy").page().decode()
    assert '<span title="osc.*.stats">2</span>' in text
    assert '<span title="osc.*.rpc_stats empty">1</span>' in text


@pytest.fixture
def closed() -> Iterator[Path]:
    """A node whose debugfs only root may list, as every kernel's is."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "<node>")
        debugfs = root / "sys/kernel/debug"
        for below in (root / "proc/fs/lustre", root / "sys/fs/lustre/osc", debugfs / "lustre/osc"):
            below.mkdir(parents=True)
        Path(folder).chmod(0o755)
        debugfs.chmod(0)
        yield root
        debugfs.chmod(0o700)


def test_an_unreadable_debugfs_is_reported_with_the_remedy(closed, exporter) -> None:
    running = exporter(closed)
    with as_user(NOBODY):
        assert set(running.scraper.tree.closed()) == {"debugfs"}
        text = page(running).text
        own = {sample.labels["path"]: sample.value for metric in ExporterMetrics(running.scraper).collect()
               for sample in metric.samples if "path" in sample.labels}  # fmt: skip
    assert f"The exporter lacks permission to read {closed}/sys/kernel/debug/lustre/." in text
    assert "CAP_DAC_READ_SEARCH" in text
    assert own == {"procfs": 1, "sysfs": 1, "debugfs": 0}


@pytest.mark.parametrize("listed", [False, True])
def test_what_may_not_be_read_is_named_in_the_log_once(closed, exporter, caplog, listed: bool) -> None:
    for target in range(5 * listed):
        (closed / "sys/kernel/debug").chmod(0o755)
        stats = closed / f"proc/fs/lustre/obdfilter/l-OST000{target}/job_stats"
        stats.parent.mkdir(parents=True)
        stats.write_text("job_stats:\n")
        stats.chmod(0)
    running = exporter(closed)
    with as_user(NOBODY):
        for _ in range(3):
            running.scrape()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(
        "no permission to read obdfilter.*.job_stats: "
        if listed
        else f"no permission to list {closed}/sys/kernel/debug/lustre/: metrics are missing. Run as root "
        "or with CAP_DAC_READ_SEARCH"
    )


def test_looking_at_the_node_cannot_hang_the_page(grow, exporter) -> None:
    root = grow({"sys/fs/lustre/x/y": ""})
    os.mkfifo(root / "sys/fs/lustre/version")
    running = exporter(root)
    landing = LandingPage(running.scraper, "/metrics", "/-/healthy", limit_seconds=0.05)
    for _ in range(3):
        assert "unknown; reading a parameter may hang" in Page(landing.page()).text
    os.close(os.open(root / "sys/fs/lustre/version", os.O_WRONLY))
    for thread in threading.enumerate():
        if thread.name == "landing":
            thread.join(20.0)
    (root / "sys/fs/lustre/version").unlink()
    assert "unknown; reading a parameter may hang" not in Page(landing.page()).text
