#!/bin/sh
# files.sh PACKAGE ROOT: installs the files of a package other than its Python environment below ROOT: units, settings,
# documents, links in /usr/bin. Run from the top of the source. No file belongs to two packages.
set -eu
package=$1 root=$2
doc=$root/usr/share/doc/$package
mkdir -p "$doc" "$root/usr/bin"
install -m 644 README.md CHANGELOG.md LICENSE "$doc"
case $package in
    lustre-exporter)
        commands=lustre-exporter
        install -D -m 644 systemd/lustre-exporter.service "$root/usr/lib/systemd/system/lustre-exporter.service"
        install -D -m 644 systemd/lustre-exporter.sysusers "$root/usr/lib/sysusers.d/lustre-exporter.conf"
        install -D -m 644 systemd/lustre-exporter.environment "$root/etc/lustre-exporter/environment"
        # Compute nodes often have their root in memory: they get only the pages about the exporter.
        install -m 644 docs/operations.md docs/troubleshooting.md docs/metrics.md docs/security.md docs/sizing.md systemd/web.yml \
            systemd/lustre-exporter-compute.conf systemd/lustre-exporter-textfile.service systemd/lustre-exporter-textfile.timer "$doc"
        ;;
    lustre-tierd)
        commands='tierd tierctl'
        install -D -m 644 systemd/tierd.service "$root/usr/lib/systemd/system/tierd.service"
        install -D -m 644 systemd/tierd@.service "$root/usr/lib/systemd/system/tierd@.service"
        install -D -m 644 systemd/tierd.tmpfiles "$root/usr/lib/tmpfiles.d/tierd.conf"
        install -D -m 600 systemd/tierd.toml "$root/etc/tierd/tierd.toml"
        # The unit's ConfigurationDirectoryMode: this folder has drop-ins and files with passwords.
        chmod 750 "$root/etc/tierd"
        cp -R docs/. "$doc"
        install -m 644 systemd/web.yml "$doc"
        share=$root/usr/share/lustre-tierd
        mkdir -p "$share/dashboards" "$share/alerts"
        install -m 644 dashboards/json/*.json "$share/dashboards"
        cp -R dashboards/provisioning "$share/provisioning"
        install -m 644 alerts/rules/*.yml alerts/alertmanager.yml "$share/alerts"
        ;;
    *)
        echo "files.sh: no package $package" >&2
        exit 1
        ;;
esac
for command in $commands; do
    ln -sf "/opt/$package/bin/$command" "$root/usr/bin/$command"
done
