#!/usr/bin/env bash
# release.sh VERSION MODULE... makes the release VERSION, such as v1.2.3, of HEAD: one commit on top of it, in which each
# MODULE requires our other modules at VERSION, and on that commit a tag for each. The branch that is checked out goes on to
# that commit, so that what it has is installable. It pushes nothing, and says how to. A MODULE is a folder (. is the root
# module, and the first); each follows the modules that it requires.
#
# Before a module is tagged it is vetted as its users get it, and its API is compared with the last release's. A patch release
# that breaks the API is refused. make builds the tool that compares, .tools/gorelease.
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
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ && $# -gt 1 ]] || die 'usage: release.sh VERSION MODULE..., with VERSION such as v1.2.3'
shift

gorelease=$PWD/.tools/gorelease

path() { if [ "$1" = . ]; then echo "$ours"; else echo "$ours/$1"; fi; }
tag() { if [ "$1" = . ]; then echo "${2:-$version}"; else echo "$1/${2:-$version}"; fi; }

branch=$(git symbolic-ref --quiet --short HEAD) || die 'no branch is checked out that could go on to the release'
[ -z "$(git status --porcelain)" ] || die 'what is not committed would not be released: git status'
head=$(git rev-parse HEAD) # whatever is committed meanwhile
if git remote get-url origin >/dev/null 2>&1; then
	there=$(git ls-remote origin "refs/heads/$branch") || die 'origin does not answer'
	[ "${there%%[[:space:]]*}" = "$head" ] || die "origin's $branch is not HEAD, and so it may refuse the release: push yours, or fetch what it has"
fi
tags=()
for module; do
	tags+=("$(tag "$module")")
	! git rev-parse -q --verify "refs/tags/$(tag "$module")" >/dev/null || die "there is a tag $(tag "$module"): a release is never made again"
done

# The last release, of which a candidate is none.
last=$(git tag --list --merged=HEAD --sort=-version:refname 'v[0-9]*' | awk '!/-/ && !found++')

made=() released=
work=$(mktemp -d)
finish() {
	rm -rf "$work"
	if [ -z "$released" ] && [ "${#made[@]}" -gt 0 ]; then git tag -d "${made[@]}" >/dev/null 2>&1 || true; fi
}
trap finish EXIT
git clone --quiet --no-checkout . "$work/clone"
git -C "$work/clone" checkout --quiet --detach "$head"

# compare says how the API of a module has changed, and refuses what this version must not bring. Before v1 a minor release may break
# what there was, and gorelease has nothing against a patch that does.
compare() {
	local module=$1 number=${version%%-*}
	[ -n "$last" ] && git rev-parse -q --verify "refs/tags/$(tag "$module" "$last")" >/dev/null || return 0
	"$gorelease" -base="$last" -version="$version" >"$work/said" 2>&1 || die "$module: gorelease: $(cat "$work/said")"
	if grep -q '^## ' "$work/said"; then printf 'release: %s since %s:\n%s\n' "$(path "$module")" "$last" "$(cat "$work/said")"; fi
	if [ "${number%.*}" = "${last%.*}" ] && grep -q '^## incompatible changes' "$work/said"; then
		die "$module: a patch release must not break what its users have compiled: see above"
	fi
}

(
	n=${GIT_CONFIG_COUNT:-0}
	export "GIT_CONFIG_KEY_$n=url.file://$work/clone.insteadOf" "GIT_CONFIG_VALUE_$n=https://$ours" GIT_CONFIG_COUNT=$((n + 1))
	export GIT_AUTHOR_NAME=release GIT_AUTHOR_EMAIL= GIT_COMMITTER_NAME=release GIT_COMMITTER_EMAIL=
	# Nothing of ours goes into the user's module cache, and nothing is downloaded that is in it.
	cache=$(go env GOMODCACHE) proxy=$(go env GOPROXY) flags=$(go env GOFLAGS)
	export GOWORK=off GOPROXY="file://$cache/cache/download,$proxy" GOFLAGS="$flags -modcacherw -trimpath" # the build cache knows no folders then
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
		go vet ./... >"$work/said" 2>&1 || die "$module: go vet: $(cat "$work/said")"
		compare "$module" # it refuses a version that is tagged
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
made=("${tags[@]}")
for module; do
	git tag --annotate --message "$(path "$module") $version" "$(tag "$module")" "$commit"
done
scripts/releasable.sh "${tags[@]}"
git merge --quiet --ff-only "$commit"
released=yes
# GitHub tells nobody of tags of which more than three are pushed at a time, and the first one has the archives built.
printf 'release: %s is tagged. To publish it, push it, and then the tags of the other modules:\n' "$version"
printf 'git push --atomic origin %s %s\n' "$branch" "${tags[0]}"
[ "${#tags[@]}" -eq 1 ] || printf 'git push --atomic origin %s\n' "${tags[*]:1}"
printf 'If the first push is refused, this undoes the release:\ngit tag -d %s && git reset --hard HEAD^\n' "${tags[*]}"
