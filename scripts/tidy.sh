#!/usr/bin/env bash
# tidy.sh [-diff] MODULE... is go mod tidy in each of these folders. With -diff it changes nothing, and fails where there is
# something to do. The go command looks for the versions of ours that a published go.mod requires, and before the first
# release there is none. So it gets a copy that replaces them by what stands here. What go.sum says of ours stays: it is of
# the last release, whose script wrote it.
set -euo pipefail
cd "$(dirname "$0")/.."

ours=github.com/redlatch/redlatch
export GOWORK=off
diff=
if [ "${1:-}" = -diff ]; then diff=yes && shift; fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
for module; do
	if [ "$(scripts/gowork.sh "$module")" = off ]; then
		(cd "$module" && go mod tidy ${diff:+-diff}) || { [ -n "$diff" ] && bad=1 || exit; }
		continue
	fi
	scripts/modfile.sh "$module" "$work"
	(cd "$module" && go mod tidy -modfile="$work/go.mod")
	for path in $(go mod edit -json "$work/go.mod" | sed -nE "s#.*\"Path\": \"($ours(/[^\"]*)?)\".*#\1#p" | sort -u); do
		go mod edit -dropreplace="$path" "$work/go.mod"
	done
	# The go command sorts them by module, and then by version in a way of its own.
	{ grep -E "^$ours(/[^ ]*)? " "$module/go.sum" || true; cat "$work/go.sum"; } | LC_ALL=C sort -s -k1,1 >"$work/all"
	mv "$work/all" "$work/go.sum"
	for file in go.mod go.sum; do
		if [ -z "$diff" ]; then
			cmp -s "$work/$file" "$module/$file" || cp "$work/$file" "$module/$file"
		else
			diff -u --label "$module/$file" --label "$module/$file, tidy" "$module/$file" "$work/$file" || bad=1
		fi
	done
done
exit "$bad"
