#!/usr/bin/env bash
# Sees to it that there is axe-core, with which tests/internal/browser asks whether everybody can use a page: in .tools/axe, from
# npm, of one version and with one checksum.
set -euo pipefail
cd "$(dirname "$0")/.."

version=4.14.1
sum=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c

good() { printf '%s  %s\n' "$sum" "$1" | sha256sum --check --status 2>/dev/null; }

good .tools/axe/axe.min.js && exit 0
command -v npm >/dev/null || scripts/apt.sh npm || { echo 'axe: npm not found, and apt-get cannot install it. Install Node.js.' >&2; exit 1; }
mkdir -p .tools/axe
work=$(mktemp -d "$PWD/.tools/axe/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
npm pack --silent --pack-destination "$work" "axe-core@$version" >/dev/null
tar -xzf "$work/axe-core-$version.tgz" -C "$work"
good "$work/package/axe.min.js" || { echo "axe: axe-core $version is not what it was" >&2; exit 1; }
mv -f "$work/package/axe.min.js" .tools/axe/axe.min.js
