#!/bin/sh
# venv.sh DIR REQUIREMENT: a virtual environment in DIR with REQUIREMENT installed in editable form.
# Works where Debian's python3 comes without ensurepip: then virtualenv from pip, and python3-venv from apt as the last resort.
set -eu
dir=$1 requirement=$2
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    { echo "Python 3.11 or newer is needed; this is $("$python" --version). Name another with PYTHON=..." >&2; exit 1; }
if [ ! -x "$dir/bin/python" ]; then
    echo "Making a virtual environment in $dir ..."
    "$python" -m venv "$dir" 2>/dev/null ||
        { rm -rf "$dir"; "$python" -m virtualenv -q "$dir" 2>/dev/null; } ||
        { rm -rf "$dir"; apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null && "$python" -m venv "$dir"; }
fi
echo "Installing $requirement and what it needs into $dir ..."
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore -e "$requirement"
