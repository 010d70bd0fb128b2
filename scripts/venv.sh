#!/bin/sh
# venv.sh DIR REQUIREMENT: a virtual environment in DIR with REQUIREMENT installed in editable form.
# If Debian's python3 has no ensurepip, virtualenv or the installed pip is used. Nothing outside DIR changes.
set -eu
dir=$1 requirement=$2
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "Python 3.11 or newer is needed; this is $("$python" --version). Name another with PYTHON=..." >&2; exit 1; }
if [ ! -x "$dir/bin/python" ]; then
    echo "Making a virtual environment in $dir ..."
    "$python" -m venv "$dir" 2>/dev/null ||
        { rm -rf "$dir"; "$python" -m virtualenv -q "$dir" 2>/dev/null; } ||
        { rm -rf "$dir"; "$python" -m venv --without-pip "$dir" 2>/dev/null &&
          "$python" -m pip --python "$dir/bin/python" install --quiet --disable-pip-version-check pip 2>/dev/null; } ||
        { rm -rf "$dir"
          echo "$python cannot make virtual environments. Run: apt-get install python3-venv" >&2
          exit 1; }
fi
# wait_with_progress WORDS COMMAND...: one line that counts the seconds on a terminal; the output only if it fails.
wait_with_progress() {
    words=$1 log=$(mktemp) seconds=0
    shift
    trap 'rm -f "$log"' EXIT
    "$@" >"$log" 2>&1 &
    process=$!
    trap 'kill $process 2>/dev/null; exit 130' INT TERM
    [ -t 1 ] || echo "$words ..."
    while kill -0 $process 2>/dev/null; do
        [ ! -t 1 ] || printf '\r%s ... %s s ' "$words" "$seconds"
        seconds=$((seconds + 1))
        sleep 1
    done
    [ ! -t 1 ] || echo
    wait $process || { cat "$log" >&2; exit 1; }
}
# Without --no-compile, pip compiles all modules of all packages, most of which are never imported.
wait_with_progress "Installing $requirement and its dependencies into $dir" \
    "$dir/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --root-user-action=ignore -e "$requirement"
# Programs of the checkout find its simulator, which no wheel has.
pwd >"$("$dir/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/checkout.pth"
