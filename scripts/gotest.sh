#!/usr/bin/env bash
# gotest.sh MODULE ARG... runs `go test ARG...` in the directory of a module. It prints a line for each package that has
# tests, and for what fails all that it says. When there is nothing to print for 20 seconds it says that it goes on, and
# at the end that it has failed; LABEL is what it calls itself, instead of MODULE.
#
# The race detector itself ends a program once in thousands of runs, where two threads run timers of one synctest bubble
# (https://go.dev/issue/78156). Such an end says nothing about the tests. So packages that failed in no other way run once more.
set -euo pipefail
cd "$(dirname "$0")/../$1"
module=${LABEL:-$1} && [ "$module" != . ] || module="the root module"
shift

limit='-t 20'
[ "${BASH_VERSINFO[0]}" -ge 4 ] || limit= # an older one does not tell the end of the time from the end of the input

output=$(mktemp)
trap 'rm -f "$output"' EXIT

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

# killed prints the packages that failed, if the race detector ended each of them before any test failed.
killed() {
	awk '
		/^ThreadSanitizer: CHECK failed/ { ended = 1 }
		/^[ \t]*--- FAIL|^panic:|^WARNING: DATA RACE|^# |\[(build|setup) failed\]/ { other = 1 }
		/^FAIL\t/ { if (!ended) other = 1; found = found $2 "\n"; ended = 0 }
		/^ok  \t/ { ended = 0 }
		END { if (!other) printf "%s", found }
	' "$output"
}

go test "$@" 2>&1 | tee "$output" | lines && exit

again=$(killed)
if [ -n "$again" ]; then
	flags=()
	for arg; do [[ $arg == ./* || $arg == github.com/* ]] || flags+=("$arg"); done
	printf '... %s: the race detector failed, not a test: once more\n' "$module"
	# shellcheck disable=SC2086 # a package a word
	go test "${flags[@]}" $again 2>&1 | lines && exit
fi
printf 'FAILED: %s\n' "$module"
exit 1
