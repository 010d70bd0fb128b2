# Targets install what they need: a virtual environment in .venv, Prometheus' programs in .tools. Nothing outside this folder changes.
SHELL := /bin/sh
PY := .venv/bin/python

.PHONY: test lint types demo demo-picture tools dist packages test-packages clean golden dashboards runbooks bench stack stack-cluster
.DEFAULT_GOAL := test

BUILT_FROM := setup.cfg setup.py pyproject.toml scripts/venv.sh lustre/_files.c lustre/formats/_texts.c exporter/jobs/_lines.c

.venv/stamp: $(BUILT_FROM)
	@sh scripts/venv.sh .venv '.[test]'
	@touch $@

tools: .tools/stamp
.tools/stamp: scripts/tools.sh
	@sh scripts/tools.sh .tools
	@touch $@

test: .venv/stamp .tools/stamp ## ruff, mypy --strict and pytest
	@PATH="$(CURDIR)/.tools/bin:$$PATH" sh scripts/test.sh $(PYTEST_ARGS)

lint: .venv/stamp
	.venv/bin/ruff check .

types: .venv/stamp
	.venv/bin/mypy

# Without the tools for tests, unless they are there.
.venv/demo: $(BUILT_FROM)
	@[ -e .venv/stamp ] && [ -z "$$(find $^ -newer .venv/stamp)" ] || sh scripts/venv.sh .venv '.[demo]'
	@touch $@

demo: .venv/demo ## a simulated cluster, the exporter and tierd on this machine, until Ctrl-C
	@$(PY) -m stack.demo $(DEMO_ARGS)

demo-picture: .venv/demo ## write docs/pictures/demo.svg; a minute and a half
	@FORCE_COLOR=1 $(PY) -m stack.demo --picture docs/pictures/demo.svg

stack: .venv/demo .tools/stamp ## a simulated cluster with Prometheus, Alertmanager and, if installed, Grafana
	@PATH="$(CURDIR)/.tools/bin:$$PATH" $(PY) -m stack $(STACK_ARGS)

stack-cluster: .venv/stamp ## tierd on several nodes over a simulated Lustre: kill one of each while it works
	@$(PY) -m stack.cluster $(STACK_ARGS)

dashboards: .venv/stamp ## write dashboards/json
	$(PY) -m dashboards

golden: .venv/stamp ## rewrite the expositions in tests/golden
	GOLDEN=rewrite .venv/bin/pytest -q tests/exporter/test_golden.py

runbooks: .venv/stamp .tools/stamp ## rewrite the output in docs/runbooks, from a simulated site
	RUNBOOKS=rewrite PATH="$(CURDIR)/.tools/bin:$$PATH" .venv/bin/pytest -q -n 2 tests/alerts/test_troubles.py

bench: .venv/stamp ## processor time and memory of the exporter; some minutes
	$(PY) -m bench.exporter

dist: .venv/stamp ## source archive and manylinux wheels in dist/, for each Python in DIST_PYTHONS
	$(PY) -m pip install --quiet --disable-pip-version-check --root-user-action=ignore -e '.[dist]'
	sh scripts/dist.sh dist $(PY) $(DIST_PYTHONS)

packages: ## .deb and .rpm files of lustre-exporter and lustre-tierd in dist/ (packaging/README.md)
	sh packaging/deb.sh dist
	sh packaging/rpm.sh dist

test-packages: .venv/stamp packages ## build the packages; install, upgrade, remove and purge them in roots of their own (root)
	TIERD_PACKAGES=dist .venv/bin/pytest -q -p no:xdist tests/operation/test_clean_root.py

clean:
	rm -rf .venv .tools build dist *.egg-info lustre/*.so lustre/*/*.so exporter/jobs/*.so tierd/sense/*.so tierd/sense/changelogs/*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
