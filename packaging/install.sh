#!/bin/sh
# install.sh PACKAGE ROOT: installs all of lustre-exporter or lustre-tierd below ROOT. Run from the top of the source.
# PYTHON is the Python to build with (default: /usr/bin/python3), the same as on the machines that install the package.
# WHEELS is a folder with all wheels, for machines without a network.
# PURE_PYTHON=1 allows a package without the C modules, which is slower (docs/sizing.md).
set -eu
package=$1 root=$2
python=${PYTHON:-/usr/bin/python3}
here=/opt/$package
case $package in
    lustre-exporter) extras=web,fast ;;
    lustre-tierd) extras=tierd,cluster,robinhood,watch,web,fast ;;
    *) echo "install.sh: no package $package" >&2; exit 1 ;;
esac

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
mkdir -p "$root$here"
"$python" -m venv --symlinks --without-pip "$root$here"
if [ -n "${WHEELS:-}" ]; then
    set -- --no-index --find-links "$WHEELS"
else
    set --
fi
"$python" -m pip --python "$root$here/bin/python" install --quiet --disable-pip-version-check --root-user-action=ignore \
    --no-compile "$@" ".[$extras]"
site=$(echo "$root$here"/lib/python3.*/site-packages)
ours=$site/lustre_tierd
# Sources of modules begin with "_"; others, such as marks.c, are linked into several modules.
for source in $(find lustre httpserver exporter tierd -name "_*.c"); do
    built=$(ls "$ours/${source%.c}".*.so 2>/dev/null || :)
    [ -n "$built" ] || [ -n "${PURE_PYTHON:-}" ] ||
        { echo "$source was not compiled: a C compiler and Python's headers are needed (or PURE_PYTHON=1)" >&2; exit 1; }
done
if [ "$package" = lustre-exporter ]; then
    # Nodes that run only the exporter get no code that moves files.
    rm -rf "$ours/tierd" "$root$here/bin/tierd" "$root$here/bin/tierctl"
    sed -i -E '/^lustre_tierd\/tierd\/|\/bin\/(tierd|tierctl),/d' "$site"/lustre_tierd-*.dist-info/RECORD
fi
# The environment was made below ROOT and must work without that prefix.
rm -f "$root$here"/bin/[Aa]ctivate*
grep -rlI "$root$here" "$root$here/bin" "$root$here/pyvenv.cfg" 2>/dev/null | while read -r file; do
    [ -L "$file" ] || sed -i "s|$root$here|$here|g" "$file"
done
find "$root$here" -name direct_url.json -delete
# Manual pages and completions are made by an environment that the package does not contain.
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"$python" -m venv --without-pip "$tools"
"$python" -m pip --python "$tools/bin/python" install --quiet --disable-pip-version-check --root-user-action=ignore \
    "$@" '.[tierd]' 'argparse-manpage>=4'
PYTHON=$tools/bin/python sh packaging/files.sh "$package" "$root"
