#!/bin/sh
# install.sh ROOT: everything a package holds, below ROOT. Run from the top of the source.
# PYTHON names the Python to build with (default: /usr/bin/python3): the one of the machines it is installed on.
set -eu
root=$1
python=${PYTHON:-/usr/bin/python3}
here=/opt/lustre-tierd

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed" >&2; exit 1; }
mkdir -p "$root$here"
"$python" -m venv --symlinks --without-pip "$root$here"
if [ -n "${WHEELS:-}" ]; then
    set -- --no-index --find-links "$WHEELS"
else
    set --
fi
"$python" -m pip --python "$root$here/bin/python" install --quiet --disable-pip-version-check --root-user-action=ignore \
    --no-compile "$@" '.[web,fast,dns,robinhood,watch]'
# The environment was made below ROOT and will live without it.
rm -f "$root$here"/bin/[Aa]ctivate*
grep -rlI "$root$here" "$root$here/bin" "$root$here/pyvenv.cfg" 2>/dev/null | while read -r file; do
    [ -L "$file" ] || sed -i "s|$root$here|$here|g" "$file"
done
find "$root$here" -name direct_url.json -delete

install -D -m 644 systemd/lustre-exporter.service "$root/usr/lib/systemd/system/lustre-exporter.service"
install -D -m 644 systemd/tierd.service "$root/usr/lib/systemd/system/tierd.service"
install -D -m 644 systemd/tierd@.service "$root/usr/lib/systemd/system/tierd@.service"
install -D -m 644 systemd/lustre-exporter.sysusers "$root/usr/lib/sysusers.d/lustre-exporter.conf"
install -D -m 644 systemd/tierd.tmpfiles "$root/usr/lib/tmpfiles.d/tierd.conf"
install -D -m 644 systemd/lustre-exporter.environment "$root/etc/lustre-exporter/environment"
install -D -m 600 systemd/tierd.toml "$root/etc/tierd/tierd.toml"

share=$root/usr/share/lustre-tierd
mkdir -p "$share/dashboards" "$share/alerts"
install -m 644 dashboards/json/*.json "$share/dashboards"
cp -R dashboards/provisioning "$share/provisioning"
install -m 644 alerts/rules/*.yml alerts/alertmanager.yml "$share/alerts"
doc=$root/usr/share/doc/lustre-tierd
mkdir -p "$doc"
cp -R docs/. "$doc"
install -m 644 README.md CHANGELOG.md LICENSE systemd/web.yml "$doc"
mkdir -p "$root/usr/bin"
for command in lustre-exporter tierd tierctl; do
    ln -sf "$here/bin/$command" "$root/usr/bin/$command"
done
