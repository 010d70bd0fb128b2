#!/bin/sh
# test.sh [ARGUMENT...]: ruff, then pytest with the arguments, and mypy --strict beside it. mypy uses one processor for
# most of a minute; its output follows that of pytest. Last comes the size of the project, beside what it may be. The
# script fails if one of them fails.
set -eu
.venv/bin/ruff check .
# Tests start hundreds of Python programs. Without bytecode files, each of them compiles every module again.
export PYTHONDONTWRITEBYTECODE=
log=$(mktemp)
.venv/bin/mypy >"$log" 2>&1 &
mypy=$!
trap 'kill $mypy 2>/dev/null || :; rm -f "$log"' EXIT
trap 'exit 130' INT TERM
tests=0 types=0 size=0
# In a fresh clone each worker would compile all modules, and rewrite the assertions of all tests.
[ -e tests/__pycache__ ] || .venv/bin/pytest --collect-only -q -p no:xdist >/dev/null 2>&1 || :
# Three workers for each processor: while a test of one waits for other processes, another one works.
workers=$((3 * $(nproc)))
.venv/bin/pytest -n $((workers < 8 ? workers : 8)) --dist worksteal "$@" || tests=$?
wait $mypy || types=$?
# Tests with processes and threads have deadlines, which a busy machine may miss. A test that fails alone too has failed.
if [ $tests -eq 1 ]; then
    echo "pytest: failed tests again, one at a time" >&2
    tests=0
    .venv/bin/pytest --last-failed --last-failed-no-failures none --maxfail 5 "$@" || tests=$?
fi
sed 's/^/mypy: /' "$log"
.venv/bin/python -m scripts.gauge || size=$?
[ $types -eq 0 ] || echo "mypy failed (status $types)" >&2
[ $tests -eq 0 ] || echo "pytest failed (status $tests)" >&2
[ $size -eq 0 ] || echo "the project has grown: see Size in docs/architecture.md" >&2
[ $((tests + types + size)) -eq 0 ]
