#!/bin/sh
# debian-packages.sh: the Debian packages that building and testing need beyond Python, apt and pip. Run as root.
set -eu
export DEBIAN_FRONTEND=noninteractive
missing=
command -v make >/dev/null 2>&1 || missing="$missing make"
command -v git >/dev/null 2>&1 || missing="$missing git"
[ -z "$missing" ] && exit 0
apt-get update -qq
# shellcheck disable=SC2086 -- a list of words on purpose
apt-get install -y -qq --no-install-recommends $missing
