"""Exporters by file: a bad list is reported, and the last good list stays."""

import json
import os
from pathlib import Path

import pytest

from tests.tierd.logged import logged
from tierd.sense import discovery
from tierd.sense.discovery import Discovery, FileTargets


def put(path: Path, text: str) -> None:
    """As a careful writer does it: whole, under another name, then renamed."""
    new = path.with_name(".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def test_json_and_yaml_are_read_as_prometheus_reads_them(tmp_path: Path) -> None:
    put(tmp_path / "a.json", json.dumps([{"targets": ["oss1:9169", "[fd00::1]:9169"], "labels": {"rack": "1"}}]))
    put(tmp_path / "b.yml", "- targets: ['mds1:9170']\n  labels: {__scheme__: https, __metrics_path__: /x/metrics}\n")
    put(tmp_path / "c.txt", "nothing of ours")
    targets = FileTargets([f"{tmp_path}/*.json", f"{tmp_path}/*.yml"])
    assert targets() == ("http://oss1:9169/metrics", "http://[fd00::1]:9169/metrics", "https://mds1:9170/x/metrics")
    assert targets.problems == {}


@pytest.mark.parametrize(("name", "text", "words"), [
    ("a.json", "[{", "a.json: "), ("a.yml", "- targets: [", "not YAML"), ("a.yml", "x: 1", "not a list of"),
    ("a.json", '[{"labels": {}}]', "group 1: no list of targets"), ("a.json", '[{"targets": [1]}]', "is not a string"),
    ("a.json", '[{"targets": ["oss1:9169"]}, {"targets": ["http://oss2/"]}]', "not host:port: 'http://oss2/'"),
    ("a.json", '[{"targets": ["user:pw@oss1:1"]}]', "not host:port"),
    ("a.json", '[{"targets": ["a:1"], "labels": {"__scheme__": "file"}}]', "neither http nor https"),
    pytest.param("a.json", "[" * 100_000, "a.json", id="deep"),
    ("a.yml", "!!python/object/apply:os.system [id]", "not YAML"),
])
def test_a_bad_file_is_reported_and_keeps_its_targets(tmp_path: Path, name: str, text: str, words: str) -> None:
    good = json.dumps([{"targets": ["oss1:9169"]}])
    put(tmp_path / name, good)
    targets = FileTargets([f"{tmp_path}/a.*"])
    assert targets() == ("http://oss1:9169/metrics",)
    put(tmp_path / name, text)
    assert targets() == ("http://oss1:9169/metrics",)
    assert words in str(targets.problems)
    assert all(why.endswith("its previous targets are kept") for why in targets.problems.values())
    put(tmp_path / name, good.replace("oss1", "oss2"))
    assert targets() == ("http://oss2:9169/metrics",)
    assert targets.problems == {}


def test_targets_of_a_removed_file_are_dropped(tmp_path: Path) -> None:
    put(tmp_path / "a.json", '[{"targets": ["oss1:9169"]}]')
    targets = FileTargets([f"{tmp_path}/*.json"])
    assert targets()
    (tmp_path / "a.json").unlink()
    assert targets() == ()
    assert "no such file" in str(targets.problems)


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "MAX_BYTES", 10)
    put(tmp_path / "a.json", '[{"targets": ["oss1:9169"]}]')
    targets = FileTargets([f"{tmp_path}/*.json"])
    assert targets() == ()
    assert "more than 10 bytes" in str(targets.problems)


def test_exporters_of_all_sources_are_listed_once_and_changes_are_logged(tmp_path: Path) -> None:
    said = logged()
    put(tmp_path / "a.json", '[{"targets": ["b:1", "a:1"]}]')
    found = Discovery(["http://a:1/metrics"], FileTargets([f"{tmp_path}/a.json"]))
    assert found() == ("http://a:1/metrics", "http://b:1/metrics")
    assert said == []
    put(tmp_path / "a.json", "[")
    found()
    put(tmp_path / "a.json", '[{"targets": ["c:1"]}]')
    assert found() == ("http://a:1/metrics", "http://c:1/metrics")
    assert said[0].startswith(f"discovery: {tmp_path}/a.json: ")
    assert said[1:] == ["discovery: works again", "discovery: 1 exporters added, 1 removed, 2 known"]
