#!/usr/bin/env bash
# Puts etcd, which the benchmark measures beside redlatch, where servers.sh puts the servers: .servers/bin/etcd. Looks in
# the same places and takes what is missing from Debian's package etcd-server, downloaded and unpacked, not installed.
# The benchmark can do without etcd and says so: if it is not to be had, that is no failure.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/.servers/bin

good() { [ -x "$1" ] && "$1" --version 2>/dev/null | grep -q '^etcd Version: 3\.'; }

without() {
	printf 'etcd: %s; measuring without it. Install etcd-server, or put etcd into REDLATCH_SERVERS.\n' "$*" >&2
	exit 0
}

if [ -n "${REDLATCH_SERVERS:-}" ]; then
	good "$REDLATCH_SERVERS/etcd" || without "not in REDLATCH_SERVERS=$REDLATCH_SERVERS"
	exit 0
fi
good "$bin/etcd" && exit 0
file=$(command -v etcd) && good "$file" && exit 0

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && [ "$(id -u)" = 0 ] || without 'not found'
mkdir -p "$bin"
work=$(mktemp -d "$PWD/.servers/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download etcd-server) || without 'apt-get cannot download it'
dpkg-deb -x "$work"/etcd-server_*.deb "$work/root"
good "$work/root/usr/bin/etcd" || without "the package's does not run here"
mv -f "$work/root/usr/bin/etcd" "$bin/etcd"
echo "etcd: $("$bin/etcd" --version | head -1)"
