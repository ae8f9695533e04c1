#!/usr/bin/env bash
# gotest.sh MODULE ARG... runs `go test ARG...` in the directory of a module. It prints a line for each package that has
# tests, and for what fails all that it says. When there is nothing to print for 20 seconds it says that it goes on, and
# at the end that it has failed; LABEL is what it calls itself, instead of MODULE.
set -euo pipefail
cd "$(dirname "$0")/../$1"
module=${LABEL:-$1} && [ "$module" != . ] || module="the root module"
shift

limit='-t 20'
[ "${BASH_VERSINFO[0]}" -ge 4 ] || limit= # an older one does not tell the end of the time from the end of the input

lines() {
	local part='' line begin=$SECONDS
	while :; do
		if IFS= read -r $limit line; then
			line=$part$line part=
			[[ $line == *'[no test files]' || $line == *'[no tests to run]' || $line == 'go: downloading '* ]] || printf '%s\n' "$line"
		elif [ $? -gt 128 ]; then
			part+=$line
			printf '... %s: still at it after %d s\n' "$module" $((SECONDS - begin))
		else
			[ -z "$part$line" ] || printf '%s\n' "$part$line"
			return
		fi
	done
}

go test "$@" 2>&1 | lines || { printf 'FAILED: %s\n' "$module"; exit 1; }
