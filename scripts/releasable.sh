#!/usr/bin/env bash
# releasable.sh TAG... refuses tags whose go.mod is for this checkout alone: one that replaces a module, which go install
# refuses and go get ignores, and one that requires a module of ours at another version than the tag's. Without a TAG it
# looks at all tags of modules.
set -euo pipefail
cd "$(dirname "$0")/.."

ours=github.com/redlatch/redlatch

[ $# -gt 0 ] || set -- $(git tag --list 'v[0-9]*' '*/v[0-9]*')
mod=$(mktemp)
trap 'rm -f "$mod"' EXIT
bad=0
for tag; do
	module=.
	[ "${tag%/*}" = "$tag" ] || module=${tag%/*}
	git show "$tag:./$module/go.mod" >"$mod" 2>/dev/null || { printf '%s has no %s/go.mod\n' "$tag" "$module" >&2; bad=1; continue; }
	faults=$(go mod edit -print "$mod" | awk -v ours="$ours" -v version="${tag##*/}" -v module="$module" '
		{ sub("//.*", ""); sub("^require ", "") }
		/^replace|=>/ { print "  it replaces modules"; next }
		$1 ~ "^" ours "(/|$)" && $2 != version { print "  it requires " $1 " " $2 }
		module == "." && $1 ~ "/" && $2 ~ /^v[0-9]/ { print "  the root module requires " $1 }
	' | sort -u)
	[ -z "$faults" ] || { printf '%s must not be published:\n%s\n' "$tag" "$faults" >&2; bad=1; }
done
exit "$bad"
