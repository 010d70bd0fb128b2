#!/bin/sh
# tools.sh DIR: extracts promtool, prometheus, alertmanager and amtool from Debian's packages into DIR/bin, without
# installing the packages, which would start services. Programs on the PATH are linked instead. The script reports a
# program that is not available; tests that need it are skipped.
set -eu
dir=$1
mkdir -p "$dir/bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# unpacked PACKAGE PROGRAM...: link the programs on the PATH, extract the others from the package.
unpacked() {
    package=$1
    shift
    missing=
    for program in "$@"; do
        case $program in
            prometheus-alertmanager) name=alertmanager ;;
            *) name=$program ;;
        esac
        if found=$(command -v "$name" || command -v "$program"); then
            [ "$found" -ef "$dir/bin/$name" ] || ln -sf "$found" "$dir/bin/$name"
        else
            missing="$missing $program"
        fi
    done
    [ -z "$missing" ] && return 0
    command -v apt-get >/dev/null 2>&1 ||
        { echo "no$missing and no apt-get: tests that need them will be skipped" >&2; return 0; }
    echo "Fetching$missing from Debian's $package package into $dir ..."
    if ! (cd "$work" && apt-get download -qq "$package" 2>/dev/null); then
        apt-get update -qq
        (cd "$work" && apt-get download -qq "$package")
    fi
    dpkg-deb -x "$work/${package}"_*.deb "$work/$package"
    for program in $missing; do
        rm -f "$dir/bin/${program#prometheus-}"
        cp "$work/$package/usr/bin/$program" "$dir/bin/${program#prometheus-}"
    done
}

# Debian's Alertmanager reads its templates from /usr/share only. The extracted one gets a path of the same length that
# leads to an open directory, and a wrapper that opens the directory.
relocate_alertmanager() {
    installed=$work/prometheus-alertmanager/usr
    mkdir -p "$dir/share/alertmanager" "$dir/lib"
    cp -R "$installed/share/prometheus/alertmanager/." "$dir/share/alertmanager"
    "${PYTHON:-python3}" - "$dir/bin/alertmanager" "$dir/lib/alertmanager" <<'PATCH'
import pathlib, sys
there = b"/usr/share/prometheus/alertmanager"
here = b"/proc/self/fd/".ljust(len(there) - 1, b"/") + b"9"
pathlib.Path(sys.argv[2]).write_bytes(pathlib.Path(sys.argv[1]).read_bytes().replace(there, here))
PATCH
    rm "$dir/bin/alertmanager"
    cat >"$dir/bin/alertmanager" <<'WRAPPER'
#!/bin/sh
tools=$(dirname "$(dirname "$(readlink -f "$0")")")
exec 9<"$tools/share/alertmanager"
exec "$tools/lib/alertmanager" "$@"
WRAPPER
    chmod 755 "$dir/lib/alertmanager" "$dir/bin/alertmanager"
}

unpacked prometheus prometheus promtool
unpacked prometheus-alertmanager prometheus-alertmanager amtool
if [ -d "$work/prometheus-alertmanager" ] && [ ! -L "$dir/bin/alertmanager" ]; then
    relocate_alertmanager
fi
