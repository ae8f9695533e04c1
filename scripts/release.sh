#!/usr/bin/env bash
# release.sh VERSION MODULE... makes the release VERSION, such as v1.2.3, of HEAD: one commit on top of it, in which each
# MODULE requires our other modules at VERSION, and on that commit a tag for each. The branch that is checked out goes on to
# that commit, so that what it has is installable. It pushes nothing, and says how to. A MODULE is a folder (. is the root
# module); each follows the modules that it requires.
#
# The go command makes each go.sum from what users will download. So the modules are tagged one after the other in a clone,
# from which Git serves our address, and which no one else sees: a module's checksums do not depend on where it was tagged.
set -euo pipefail
cd "$(dirname "$0")/.."

ours=github.com/redlatch/redlatch

die() {
	printf 'release: %s\n' "$*" >&2
	exit 1
}

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ && $# -gt 1 ]] || die 'usage: release.sh VERSION MODULE..., with VERSION such as v1.2.3'
shift

path() { if [ "$1" = . ]; then echo "$ours"; else echo "$ours/$1"; fi; }
tag() { if [ "$1" = . ]; then echo "$version"; else echo "$1/$version"; fi; }

branch=$(git symbolic-ref --quiet --short HEAD) || die 'no branch is checked out that could go on to the release'
[ -z "$(git status --porcelain)" ] || die 'what is not committed would not be released: git status'
tags=()
for module; do
	tags+=("$(tag "$module")")
	! git rev-parse -q --verify "refs/tags/$(tag "$module")" >/dev/null || die "there is a tag $(tag "$module"): a release is never made again"
done

made=()
work=$(mktemp -d)
finish() {
	local code=$?
	rm -rf "$work"
	if [ "$code" -ne 0 ] && [ "${#made[@]}" -gt 0 ]; then git tag -d "${made[@]}" >/dev/null; fi
}
trap finish EXIT
head=$(git rev-parse HEAD) # whatever is committed meanwhile
git clone --quiet --no-checkout . "$work/clone"
git -C "$work/clone" checkout --quiet --detach "$head"

(
	n=${GIT_CONFIG_COUNT:-0}
	export "GIT_CONFIG_KEY_$n=url.file://$work/clone.insteadOf" "GIT_CONFIG_VALUE_$n=https://$ours" GIT_CONFIG_COUNT=$((n + 1))
	export GIT_AUTHOR_NAME=release GIT_AUTHOR_EMAIL= GIT_COMMITTER_NAME=release GIT_COMMITTER_EMAIL=
	# Nothing of ours goes into the user's module cache, and nothing is downloaded that is in it.
	cache=$(go env GOMODCACHE) proxy=$(go env GOPROXY) flags=$(go env GOFLAGS)
	export GOWORK=off GOPROXY="file://$cache/cache/download,$proxy" GOFLAGS="$flags -modcacherw"
	export GOMODCACHE=$work/cache GONOPROXY=$ours GONOSUMDB=$ours
	for module; do
		cd "$work/clone/$module"
		for other; do
			if grep -q "$(path "$other") " go.mod; then
				go mod edit -require="$(path "$other")@$version"
			fi
		done
		go mod tidy 2>"$work/said" || die "$module: go mod tidy: $(cat "$work/said")"
		git add -A .
		git -c core.hooksPath=/dev/null commit --quiet --no-gpg-sign --allow-empty --message "$module"
		git -c tag.gpgSign=false tag "$(tag "$module")"
	done
	# The others replace ours, but a go.mod may not require less than what it replaces does.
	cd "$work/clone"
	for file in $(git ls-files go.mod '*/go.mod' tests/oldest.mod); do
		for other; do
			if grep -q "$(path "$other") v" "$file"; then go mod edit -require="$(path "$other")@$version" "$file"; fi
		done
	done
	git -c core.hooksPath=/dev/null commit --quiet --no-gpg-sign --all --allow-empty --message others
)

git fetch --quiet --no-tags "$work/clone" HEAD
commit=$(git commit-tree -p "$head" -m "all: release $version" 'FETCH_HEAD^{tree}')
for module; do
	git tag --annotate --message "$(path "$module") $version" "$(tag "$module")" "$commit"
	made+=("$(tag "$module")")
done
scripts/releasable.sh "${tags[@]}"
git merge --quiet --ff-only "$commit"
printf 'release: %s is tagged; to publish it:\ngit push --atomic origin %s %s\n' "$version" "$branch" "${tags[*]}"
