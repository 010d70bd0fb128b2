"""Documentation: links have targets; commands, options, metrics and quoted messages exist in the code.

The snippets of README and quick start work in the order in which they stand. Paths of the machine are below a folder of
the test. Programs that need Lustre, root or the network do nothing.
"""

import ast
import os
import re
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboards.boards import BOARDS
from exporter.__main__ import build_parser
from tests.dashboards.files import recorded_rules
from tests.servers import TOOLS, program
from tierd import __main__ as tierd
from tierd.cli import tierctl

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BY_HAND = [*(ROOT / name for name in ("README.md", "CHANGELOG.md", "bench/README.md", "bench/calibration/report.md",
                                      "packaging/README.md", "alerts/README.md")),
           *sorted(page for page in DOCS.glob("*.md") if page.name not in ("metrics.md", "architecture.md")),
           *sorted((DOCS / "decisions").glob("*.md"))]  # fmt: skip
PAGES = [*BY_HAND, DOCS / "metrics.md", DOCS / "architecture.md", ROOT / "dashboards" / "README.md",
         *sorted((DOCS / "runbooks").glob("*.md"))]  # fmt: skip


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """The page without blocks of code."""
    without_fences = re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^ {4,}.*$", "", without_fences, flags=re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Files of this repository that a page leads to, each with its anchor."""
    base = DOCS if page.name == "report.md" else page.parent  # written to docs/calibration.md
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target:
            file, _, anchor = target.partition("#")
            yield ((base / file).resolve() if file else page), anchor


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    wrong = [f"{file}#{anchor}" for file, anchor in links(page)
             if not file.exists() or (anchor and anchor not in anchors(file))]
    assert wrong == []


def test_the_index_leads_to_every_page() -> None:
    linked = {file for file, _ in links(DOCS / "index.md")}
    pages = {*DOCS.glob("*.md"), *(DOCS / "decisions").glob("*.md")} - {DOCS / "index.md"}
    assert sorted(page.name for page in pages - linked) == []


def parsers() -> dict[str, dict[str, ArgumentParser]]:
    """Programs; of each its subcommands, with "" for the program itself."""
    found = {"lustre-exporter": {"": build_parser()}}
    for name, parser in (("tierd", tierd.parser()), ("tierctl", tierctl.parser())):
        commands = next(action.choices for action in parser._actions if action.dest == "command")
        assert isinstance(commands, dict)
        found[name] = {"": parser, **commands}
    return found


def commands(page: Path) -> Iterator[tuple[str, str]]:
    """Programs that a page calls, in code of either kind, each with its arguments."""
    code = re.findall(r"^ {4,}(.*)$", text(page), re.MULTILINE) + re.findall(r"`([^`]+)`", prose(page))
    for line in code:
        for part in re.split(r"[;|&]", re.split(r"(?:^|\s)#", line)[0]):
            if match := re.match(r"\s*(?:/\S*/)?(lustre-exporter|tierd|tierctl)\s+(.*)", part):
                yield match[1], match[2]


def test_commands_and_options_exist() -> None:
    programs, wrong, seen = parsers(), [], 0
    for page in PAGES:
        for name, rest in commands(page):
            of_program, words = programs[name], rest.split()
            wants_command = name != "lustre-exporter" and words and re.fullmatch(r"[a-z][a-z-]*", words[0])
            if wants_command and words[0] not in of_program:
                wrong.append(f"{page.name}: {name} {rest}")
                continue
            called = [of_program[words[0] if wants_command else ""]] if "COMMAND" not in words else of_program.values()
            options = {option for parser in called for action in parser._actions for option in action.option_strings}
            given = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
            wrong += [f"{page.name}: {name} {rest}" for option in given - options if not option.startswith("--no-")]
            seen += 1
    assert wrong == []
    assert seen > 100


def test_dashboards_in_runbooks_exist() -> None:
    titles = {board.title.removeprefix("Lustre: ") for board in BOARDS}
    rows = {row.title for board in BOARDS for row in board.rows} | {
        panel.title for board in BOARDS for row in board.rows for panel in row.panels}
    named = [(page.name, name.strip(), within.strip()) for page in sorted((DOCS / "runbooks").glob("*.md"))
             for name, within in re.findall(r"# dashboard ([A-Z][\w ]+)(?:: ([A-Z][\w /]+))?", text(page))]
    assert len(named) > 5
    assert [found for found in named if found[1].lower() not in titles or (found[2] and found[2] not in rows)] == []


def test_metrics_exist() -> None:
    known = {re.sub(r"_total$", "", name) for name in recorded_rules()}
    known |= {re.sub(r"_total$", "", name) for page in ("metrics.md", "operations.md", "powerflex.md")
              for name in re.findall(r"^\| `(\w+)` \|", text(DOCS / page), re.MULTILINE)}
    known |= {re.sub(r"_total$", "", name) for name in re.findall(r"`(lustre_\w+)`", text(DOCS / "metrics.md"))}
    used = [(page.name, name) for page in BY_HAND
            for name in re.findall(r"`((?:lustre|tierd)_[a-z_]*[a-z])[`{ ]", text(page))]
    assert [(page, name) for page, name in used if re.sub(r"_total$", "", name) not in known] == []
    assert len({name for _, name in used}) > 50


@pytest.mark.parametrize("page", BY_HAND, ids=lambda page: str(page.relative_to(ROOT)))
def test_percentages_have_no_space(page: Path) -> None:
    assert re.findall(r".*\d %.*", text(page)) == []


def strings() -> list[str]:
    """Texts of tierd's code; what an f-string fills in is an ellipsis."""
    found = []
    for file in (ROOT / "tierd").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(
                    str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_quoted_lines_of_status_are_those_of_the_code() -> None:
    section = text(DOCS / "troubleshooting.md").partition("## Lines of tierctl status")[2]
    cells = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    quoted = [quote for cell in cells for quote in re.findall(r"`([^`]+)`", cell)]
    said, of_sqlite = strings(), {"database or disk is full", "malformed", "file is not a database"}
    assert len(quoted) > 20
    assert [quote for quote in quoted if quote not in of_sqlite and not all(
        any(part.strip() in one for one in said) for part in re.sub(r"MDT\d+", "…", quote).split("…"))] == []


ARCHITECTURE = DOCS / "architecture.md"
NAMES_A_PATH = re.compile(r"[\w./-]*\w/(?:[\w./-]*\w)?|[\w/]+\.(?:py|c|md|toml)")


def paths_in_text(page: str) -> set[str]:
    """Files and folders that a text names from the root; NAME stands for any name."""
    return {path for code in re.findall(r"`([^`\n]+)`", page) for path in NAMES_A_PATH.findall(code)
            if path == code or (ROOT / path.partition("/")[0]).is_dir()}


def paths_in_picture(picture: str) -> Iterator[str]:
    """Files and folders of the picture of the packages: what is indented more lies in the folder above."""
    above = ""
    for line in picture.splitlines():
        indent, columns = len(line) - len(line.lstrip()), re.split(r"  +", line.strip())
        if indent == 4:
            above = columns[0]
            yield from (name for column in columns for name in NAMES_A_PATH.findall(column) if " " not in column)
        else:
            yield from (above + name for name in (columns[0], *re.findall(r"\w+\.py", line)))


def test_the_architecture_names_files_that_exist() -> None:
    page = text(ARCHITECTURE)
    picture = re.findall(r"^ {4,}.*$", page, re.MULTILINE)
    named = paths_in_text(page) | set(paths_in_picture("\n".join(picture)))
    assert len(named) > 90
    assert [path for path in sorted(named) if "NAME" not in path and not (ROOT / path).exists()] == []
    assert [path for path in named if "NAME" in path and not (ROOT / path).parent.is_dir()] == []


def test_the_mechanisms_of_the_papers_name_files_tests_and_alerts_that_exist() -> None:
    page = text(DOCS / "papers.md")
    rows = [re.split(r" *\| *", line)[1:-1] for line in page.splitlines() if re.match(r"\| (?!mechanism \|)", line)]
    assert len(rows) == 48
    alerts = {found for file in (ROOT / "alerts" / "rules").glob("*.yml")
              for found in re.findall(r"alert: (\w+)", text(file))}
    for mechanism, source, state, where, checked in rows:
        assert re.match(r"P[0-4]\b", source), mechanism
        named = paths_in_text(where) | paths_in_text(checked)
        assert [path for path in named if not (ROOT / path).exists()] == [], mechanism
        assert set(re.findall(r"`((?:Lustre|Tierd)[A-Z]\w+)`", where)) <= alerts, mechanism
        assert state in {"works", "simulator", "partly", "not"}, mechanism
        assert named or "tierctl" in where or state == "not", f"{mechanism}: no file"
        assert re.search(r"`(?:pytest tests|tierctl |calibration`)", checked), f"{mechanism}: no command"
        runs = [ROOT / path for command in re.findall(r"`pytest ([^`]*)`", checked) for path in command.split()]
        assert [path for path in runs if path.is_dir() and not [*path.rglob("test_*.py")]] == [], mechanism


def test_a_changelog_record_passes_as_many_modules_as_the_page_says_and_30_at_most() -> None:
    way = text(ARCHITECTURE).partition("## From a changelog record")[2].partition("\n##")[0]
    steps = "".join(re.findall(r"^\d\. .*(?:\n {3}.*)*$", way, re.MULTILINE))
    passed = {path for path in paths_in_text(steps) if path.endswith(".py")}
    assert re.search(r"passes these (\d+) modules", way)[1] == str(len(passed))  # type: ignore[index]
    assert len(passed) <= 30


def test_the_calibration_page_is_the_one_the_bench_writes() -> None:
    """Prose changed in the page alone is lost when the bench writes it again."""
    page = text(DOCS / "calibration.md")
    at = 0
    for part in re.split(r"\{\w+\}\n", text(ROOT / "bench" / "calibration" / "report.md")):
        found = page.find(part, at)
        assert found >= 0, part[:200]
        at = found + len(part)
    bench = "".join(map(text, (ROOT / "bench" / "calibration").glob("*.py")))
    assert [row for row in re.findall(r'Row\("([^"]+)"', bench) if f"| {row} |" not in page] == []


def test_the_readme_names_the_two_commands() -> None:
    for target in ("demo", "test"):
        assert f"    make {target} " in text(ROOT / "README.md")
        dry = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=False)
        assert dry.returncode == 0, dry.stderr


NOTHING = ("systemctl", "lctl", "docker", "make", "ln", "python3", "pip")
NOT_RUN = re.compile(r"tierctl (?:simulate|evaluate|status|top|whatif)"  # minutes, a daemon, or Prometheus
                     r"|tierd --config tierd.toml &|lustre-exporter +# serve")  # without an end


def blocks(page: Path) -> list[str]:
    """Indented blocks outside fences, without their indent."""
    without_fences = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"(?:^ {4}.*\n(?:\n(?= {4}))*)+", without_fences, re.MULTILINE)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE) for block in found if "►" not in block]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the files of the source, and the programs that do nothing in ``stubs``."""
    folder, stubs = tmp_path / "source", tmp_path / "stubs"
    folder.mkdir()
    stubs.mkdir()
    for name in ("alerts", "dashboards", "packaging", "systemd", "tests"):
        (folder / name).symlink_to(ROOT / name)
    for name in NOTHING:
        (stubs / name).write_text("#!/bin/sh\n")
    (stubs / "less").write_text("#!/bin/sh\nexec cat\n")
    for stub in stubs.iterdir():
        stub.chmod(0o755)
    return folder


def run(block: str, checkout: Path) -> str:
    """What a block of commands prints."""
    machine = checkout.parent / "machine"
    block = block.replace("/opt/lustre-tierd/bin/", "").replace(" --online", "")
    block = re.sub(r"(?<![\w.$}/])/(etc|opt|usr|var)/", rf"{machine}/\1/", block)
    lines = [line for line in block.splitlines() if not NOT_RUN.match(line)]
    path = ":".join((f"{checkout.parent}/stubs", str(Path(sys.executable).parent), str(TOOLS), os.environ["PATH"]))
    done = subprocess.run(["sh", "-e"], input="\n".join(lines), cwd=checkout, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "EDITOR": "true"})
    assert done.returncode == 0, f"{block}\n{done.stdout}"
    return done.stdout


def test_commands_of_the_readme_run(checkout: Path) -> None:
    said = "".join(run(block, checkout) for block in blocks(ROOT / "README.md"))
    assert "lfs setstripe -E 2M" in said, "the replay plans nothing"
    assert "lustre_llite_read_bytes_total{" in said
    assert said.rstrip().endswith("OK")


def test_commands_and_settings_of_the_quick_start_run(checkout: Path) -> None:
    program("promtool")
    etc = checkout.parent / "machine" / "etc"
    (etc / "prometheus").mkdir(parents=True)
    said = ""
    for number, block in enumerate(blocks(ROOT / "docs" / "quickstart.md")):
        if block.startswith("rule_files:"):
            (etc / "prometheus" / "prometheus.yml").write_text(block)
        elif block.startswith("["):
            (checkout / f"{number}.toml").write_text(block)
            said += run(f"tierd --config {number}.toml --check-config", checkout)
        else:
            said += run(block, checkout)
    assert "SUCCESS" in said, "promtool has not checked the configuration"
    assert len(re.findall(r": OK$", said, re.MULTILINE)) == 2, said


def test_the_command_for_a_key_of_the_cluster_prints_seed_and_public_key(checkout: Path) -> None:
    command = re.search(r"/opt/lustre-tierd/bin/python -c '[^']+'", (ROOT / "docs" / "cluster.md").read_text())
    assert command is not None
    assert re.fullmatch(r"SU\w+ U\w+\n", run(command[0], checkout))
