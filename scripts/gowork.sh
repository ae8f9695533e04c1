#!/usr/bin/env bash
# gowork.sh MODULE prints what GOWORK has to be so that the module in that folder is built with what its own go.mod
# requires, as its users get it, and with our other modules as they stand here. A published go.mod requires these at a
# released version and replaces nothing, so a file of work below .tools does. Modules that need no such file have "off":
# the root requires nothing, and those that are not published replace ours in their go.mod.
#
#   GOWORK=$(scripts/gowork.sh redlatchprom) go -C redlatchprom test ./...
set -euo pipefail
cd "$(dirname "$0")/.."

ours=github.com/redlatch/redlatch
module=${1:?usage: gowork.sh MODULE}
mod=$module/go.mod

required=$(sed -nE "s#^(require)?[[:space:]]*($ours(/[^ ]*)?) v.*#\2#p" "$mod")
if [ -z "$required" ] || grep -qE "^(replace)?[[:space:]]*$ours(/[^ ]*)? .*=>" "$mod"; then
	echo off
	exit 0
fi

file=$PWD/.tools/work/$module/go.work
mkdir -p "${file%/*}"
new=$(mktemp "$file.XXXXXX")
{
	grep -E '^go ' "$mod"
	printf '\nuse "%s"\n\n' "$PWD/$module"
	for path in $required; do
		beside=${path#"$ours"}
		printf 'replace %s => "%s"\n' "$path" "$PWD$beside"
	done
} >"$new"
# Others may read it meanwhile.
if cmp -s "$new" "$file"; then rm "$new"; else mv "$new" "$file"; fi
printf '%s\n' "$file"
