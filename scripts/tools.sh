#!/bin/sh
# tools.sh DIR: promtool in DIR/bin, taken out of Debian's prometheus package without installing it
# (an installed package would start a Prometheus service on this machine). Where promtool is on the PATH already, that one serves.
# Without either, the tests that need promtool are skipped and say so.
set -eu
dir=$1
mkdir -p "$dir/bin"
if command -v promtool >/dev/null 2>&1; then
    ln -sf "$(command -v promtool)" "$dir/bin/promtool"
    exit 0
fi
command -v apt-get >/dev/null 2>&1 || { echo "no promtool and no apt-get: tests that need promtool will be skipped" >&2; exit 0; }
echo "Fetching promtool from Debian's prometheus package into $dir ..."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
if ! (cd "$work" && apt-get download -qq prometheus 2>/dev/null); then
    apt-get update -qq
    (cd "$work" && apt-get download -qq prometheus)
fi
dpkg-deb -x "$work"/prometheus_*.deb "$work/root"
cp "$work/root/usr/bin/promtool" "$dir/bin/promtool"
