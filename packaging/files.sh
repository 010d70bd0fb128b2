#!/bin/sh
# files.sh PACKAGE ROOT: installs the files of a package other than its Python environment below ROOT: units, settings,
# documents, examples, manual pages, completions, links in /usr/bin. Run from the top of the source. No file belongs to
# two packages. PYTHON needs argparse-manpage, and all that the programs need for --help.
set -eu
package=$1 root=$2
python=${PYTHON:-python3}
mkdir -p "$root/usr/bin"
case $package in
    lustre-exporter)
        commands=lustre-exporter
        install -D -m 644 systemd/lustre-exporter.service "$root/usr/lib/systemd/system/lustre-exporter.service"
        install -D -m 644 systemd/lustre-exporter.sysusers "$root/usr/lib/sysusers.d/lustre-exporter.conf"
        install -D -m 644 systemd/lustre-exporter.environment "$root/etc/lustre-exporter/environment"
        ;;
    lustre-tierd)
        commands='tierd tierctl'
        install -D -m 644 systemd/tierd.service "$root/usr/lib/systemd/system/tierd.service"
        install -D -m 644 systemd/tierd@.service "$root/usr/lib/systemd/system/tierd@.service"
        install -D -m 644 systemd/tierd-reader@.service "$root/usr/lib/systemd/system/tierd-reader@.service"
        install -D -m 644 systemd/tierd-brake.service "$root/usr/lib/systemd/system/tierd-brake.service"
        install -D -m 644 "systemd/tierd-mover@.service" "$root/usr/lib/systemd/system/tierd-mover@.service"
        install -D -m 644 systemd/tierd.tmpfiles "$root/usr/lib/tmpfiles.d/tierd.conf"
        install -D -m 600 systemd/tierd.toml "$root/etc/tierd/tierd.toml"
        install -D -m 600 systemd/tierd-brake.environment "$root/etc/tierd/brake.environment"
        # The unit's ConfigurationDirectoryMode: this folder has drop-ins and files with passwords.
        chmod 750 "$root/etc/tierd"
        ;;
    *)
        echo "files.sh: no package $package" >&2
        exit 1
        ;;
esac
"$python" packaging/documents.py "$package" "$root"
"$python" scripts/cli_files.py "$package" "$root"
for command in $commands; do
    ln -sf "/opt/$package/bin/$command" "$root/usr/bin/$command"
done
