#!/bin/sh
# tools.sh DIR: promtool, prometheus, alertmanager and amtool in DIR/bin, taken out of Debian's packages without installing
# them (an installed package would start a service on this machine). One that is on the PATH already serves as it is.
# What cannot be had is said, and the tests that need it are skipped.
set -eu
dir=$1
mkdir -p "$dir/bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# unpacked PACKAGE PROGRAM...: link the programs that are there already, take the rest out of the package.
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
            ln -sf "$found" "$dir/bin/$name"
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

unpacked prometheus prometheus promtool
unpacked prometheus-alertmanager prometheus-alertmanager amtool
