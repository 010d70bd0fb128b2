#!/bin/sh
# debian-packages.sh: installs the Debian packages that building and testing need besides Python, apt and pip. Run as root.
set -eu
export DEBIAN_FRONTEND=noninteractive
missing=
command -v make >/dev/null 2>&1 || missing="$missing make"
command -v git >/dev/null 2>&1 || missing="$missing git"
# for the C modules; a Python that is not Debian's has its own headers
command -v cc >/dev/null 2>&1 || missing="$missing gcc libc6-dev"
headers=$("${PYTHON:-python3}" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
[ -e "$headers/Python.h" ] || [ "${headers#/usr/include/}" = "$headers" ] || missing="$missing python3-dev"
# for tests that are otherwise skipped: robinhood's database, systemd's checks of the units, tierd's page, jobs of Slurm, RPM packages
wished=
command -v mariadbd >/dev/null 2>&1 && command -v mariadb >/dev/null 2>&1 || wished="$wished mariadb-server-core mariadb-client-core"
command -v systemd-analyze >/dev/null 2>&1 || wished="$wished systemd"
command -v rpmbuild >/dev/null 2>&1 || wished="$wished rpm"
command -v chromium >/dev/null 2>&1 || wished="$wished chromium"
command -v slurmctld >/dev/null 2>&1 && command -v slurmd >/dev/null 2>&1 || wished="$wished slurmctld slurmd slurm-client slurm-wlm-basic-plugins"
[ -z "$missing$wished" ] && exit 0
apt-get update -qq
# shellcheck disable=SC2086 -- a list of words
[ -z "$missing" ] || apt-get install -y -qq --no-install-recommends $missing
for package in $wished; do
    apt-get install -y -qq --no-install-recommends "$package" || echo "without $package, tests that use it are skipped" >&2
done
