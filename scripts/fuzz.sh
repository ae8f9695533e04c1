#!/usr/bin/env bash
# fuzz.sh TIME [ARG...] runs each fuzz target of each module for that time, one after the other, with `go test ARG...`. It
# prints a line for each, and all that go test says of one that fails. It finds the targets by itself.
set -uo pipefail
cd "$(dirname "$0")/.."
time=$1
shift
root=$PWD said=$(mktemp) failed=
trap 'rm -f "$said"' EXIT

# A minute for making one input smaller, as go test has it, would be all of the time.
fuzz() { go test -run '^$' -fuzz "^$1\$" -fuzztime "$time" -fuzzminimizetime 1s "${@:2}" . >"$said" 2>&1; }

# Go before 1.27 may take the end of the time itself for a failure, without an input that fails.
timed_out() { grep -qx ' *context deadline exceeded' "$said" && ! grep -q 'Failing input' "$said"; }

dirs=$(git grep --untracked -l '^func Fuzz' -- '*_test.go' | xargs -n 1 dirname | sort -u)
[ -n "$dirs" ] || { echo 'fuzz.sh: there is no fuzz target' >&2; exit 1; }
for dir in $dirs; do
	cd "$root/$dir" || exit
	module=$dir
	until [ -e "$root/$module/go.mod" ]; do module=$(dirname "$module"); done
	GOWORK=$("$root/scripts/gowork.sh" "$module") || exit
	export GOWORK
	targets=$(go test -list '^Fuzz' .) || { printf '%s\n' "$targets"; exit 1; }
	for target in $(grep '^Fuzz' <<<"$targets"); do
		if fuzz "$target" "$@" || timed_out; then
			printf '%s %s: %s\n' "$dir" "$target" "$(grep '^fuzz: elapsed' "$said" | tail -1 | cut -d' ' -f2-)"
		else
			cat "$said"
			failed+=" $dir/$target"
		fi
	done
done
[ -z "$failed" ] || { printf 'found by:%s\n' "$failed"; exit 1; }
