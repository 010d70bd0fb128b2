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

# relocate PROGRAM INSTALLED PLACE: Debian's programs read templates and scripts of pages from INSTALLED below /usr/share
# only. The extracted program gets a path of the same length that leads to an open directory, and a wrapper that opens
# the directory PLACE in DIR.
relocate() {
    mkdir -p "$dir/lib"
    "${PYTHON:-python3}" - "$dir/bin/$1" "$dir/lib/$1" "$2" <<'PATCH'
import pathlib, sys
there = sys.argv[3].encode()
here = b"/proc/self/fd/".ljust(len(there) - 1, b"/") + b"9"
pathlib.Path(sys.argv[2]).write_bytes(pathlib.Path(sys.argv[1]).read_bytes().replace(there, here))
PATCH
    rm "$dir/bin/$1"
    cat >"$dir/bin/$1" <<WRAPPER
#!/bin/sh
tools=\$(dirname "\$(dirname "\$(readlink -f "\$0")")")
exec 9<"\$tools/$3"
exec "\$tools/lib/$1" "\$@"
WRAPPER
    chmod 755 "$dir/lib/$1" "$dir/bin/$1"
}

# prometheus_pages: what the pages of Debian's Prometheus load, from the packages that it depends on.
prometheus_pages() {
    cp -R "$work/prometheus/usr/share/prometheus" "$dir/share"
    # shellcheck disable=SC2046 -- a list of words
    (cd "$work" && apt-get download -qq $(dpkg-deb -f prometheus_*.deb Depends | tr ',' '\n' |
        sed -En 's/^ *((libjs|fonts)-[^ ]*).*/\1/p') libjs-d3 node-popper2 2>/dev/null) ||
        { echo "not all packages of Prometheus' pages could be fetched: its pages may not open" >&2; return 0; }
    for package in "$work"/libjs-*.deb "$work"/fonts-*.deb "$work"/node-*.deb; do
        dpkg-deb -x "$package" "$work/pages"
    done
    rm -rf "$work/pages/usr/share/javascript/moment-timezone/data" # 200 MB that no page loads
    for folder in javascript nodejs fonts-glyphicons; do
        cp -R "$work/pages/usr/share/$folder" "$dir/share"
    done
}

mkdir -p "$dir/share"
unpacked prometheus prometheus promtool
unpacked prometheus-alertmanager prometheus-alertmanager amtool
if [ -d "$work/prometheus" ] && [ ! -L "$dir/bin/prometheus" ]; then
    prometheus_pages
    relocate prometheus /usr/share/prometheus/web share/prometheus/web
fi
if [ -d "$work/prometheus-alertmanager" ] && [ ! -L "$dir/bin/alertmanager" ]; then
    cp -R "$work/prometheus-alertmanager/usr/share/prometheus/alertmanager" "$dir/share"
    relocate alertmanager /usr/share/prometheus/alertmanager share/alertmanager
fi
