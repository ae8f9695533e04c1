#!/usr/bin/env bash
# Puts promtool and prometheus, which tests/prom runs, where servers.sh puts the servers: .servers/bin. Looks in the same
# places and takes what is missing from Debian's package prometheus, downloaded and unpacked, not installed.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/.servers/bin

good() { [ -x "$1" ] && "$1" --version 2>&1 | grep -q "^${1##*/}, version [2-9]"; }
have_all() { good "$1/promtool" && good "$1/prometheus"; }

die() {
	printf 'promtool: %s. Install prometheus, or put promtool and prometheus into REDLATCH_SERVERS.\n' "$*" >&2
	exit 1
}

if [ -n "${REDLATCH_SERVERS:-}" ]; then
	have_all "$REDLATCH_SERVERS" || die "not in REDLATCH_SERVERS=$REDLATCH_SERVERS"
	exit 0
fi
have_all "$bin" && exit 0
tool=$(command -v promtool) && server=$(command -v prometheus) && good "$tool" && good "$server" && exit 0

command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null && [ "$(id -u)" = 0 ] || die 'not found'
mkdir -p "$bin"
work=$(mktemp -d "$PWD/.servers/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
(cd "$work" && apt-get -qq -o APT::Sandbox::User=root download prometheus) || die 'apt-get cannot download it'
dpkg-deb -x "$work"/prometheus_*.deb "$work/root"
have_all "$work/root/usr/bin" || die "the package's do not run here"
mv -f "$work/root/usr/bin/promtool" "$work/root/usr/bin/prometheus" "$bin"
"$bin/promtool" --version | head -1
