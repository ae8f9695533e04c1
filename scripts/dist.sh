#!/usr/bin/env bash
# dist.sh VERSION FOLDER [program] makes what users install of the commit that is checked out, into FOLDER: archives for Linux, macOS
# and Windows with what each is made of (CycloneDX), deb, rpm, an image, the chart, and SHA256SUMS. VERSION is such as
# v0.1.0. It makes no tag here and pushes nothing. The tools are in .tools; make dist builds them. With the word program it makes no
# more than the program of this machine.
#
# The bytes depend on the commit, VERSION, the version of Go, and the kind of machine that builds. All is built in a clone
# in another folder: there are the tags by which the go command tells the binary its version and finds the other modules, and
# nothing that is not committed. The time of all files is the commit's.
set -euo pipefail
cd "$(dirname "$0")/.."

die() {
	printf 'dist: %s\n' "$*" >&2
	exit 1
}

version=${1:-}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ && "$# ${3:-program}" =~ ^[23]\ program$ ]] ||
	die 'usage: dist.sh VERSION FOLDER [program], with VERSION such as v0.1.0'
[ -z "$(git status --porcelain)" ] || die 'what is not committed would not be in it: git status'
head=$(git rev-parse HEAD)
# The modules that are in the command. Somebody may have pushed no tag yet but the root module's.
tags=("$version" "redissonyaml/$version" "redlatchrueidis/$version" "cmd/redlatch/$version")
for tag in "${tags[@]}"; do
	tagged=$(git rev-parse -q --verify "refs/tags/$tag^{commit}" || true)
	[ -z "$tagged" ] || [ "$tagged" = "$head" ] || die "$tag is the tag of another commit: check it out first"
done

tools=$PWD/.tools
mkdir -p "$2"
out=$(cd "$2" && pwd)
[ -z "$(ls -A "$out")" ] || die "$2 is not empty"

number=${version#v}
stem=redlatch_$number
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= LC_ALL=C TZ=UTC
umask 022

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clone=$work/clone
git clone --quiet --no-checkout . "$clone"
git -C "$clone" checkout --quiet --detach "$head"
for tag in "${tags[@]}"; do git -C "$clone" -c tag.gpgSign=false tag --force "$tag" >/dev/null; done

# A release requires our other modules at its version, and gets them from its tags. Any other commit gets those beside it.
if grep -q "^[[:space:]]*github.com/redlatch/redlatch $version\$" "$clone/cmd/redlatch/go.mod"; then
	n=${GIT_CONFIG_COUNT:-0}
	export "GIT_CONFIG_KEY_$n=url.file://$clone.insteadOf" "GIT_CONFIG_VALUE_$n=https://github.com/redlatch/redlatch" GIT_CONFIG_COUNT=$((n + 1))
	GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
	export GOPROXY GOMODCACHE=$work/modules GOFLAGS='-mod=readonly -modcacherw' GONOPROXY=github.com/redlatch/redlatch GONOSUMDB=github.com/redlatch/redlatch
else
	mkdir "$work/mod"
	"$clone/scripts/modfile.sh" cmd/redlatch "$work/mod"
	export GOFLAGS="-mod=readonly '-modfile=$work/mod/go.mod'"
fi

build() { (cd "$clone/cmd/redlatch" && go build -trimpath -buildvcs=true -ldflags='-s -w -buildid=' -o "$1" .); }

# What does not depend on the system.
common=$work/common
mkdir -p "$common/man" "$common/completions"
(
	unset GOOS GOARCH
	build "$work/redlatch"
	said=$("$work/redlatch" version)
	[[ "$said " == "redlatch $version $head "* ]] || die "redlatch version says: $said"
	[ -z "${3:-}" ] || exit 0
	for shell in bash zsh fish; do "$work/redlatch" completion "$shell" >"$common/completions/redlatch.$shell"; done
	cd "$clone/cmd/redlatch" && REDLATCH_MAN=$common/man go test -trimpath -vet=off -count=1 -run '^TestEachCommandHasAManPage$' . >/dev/null
)
if [ -n "${3:-}" ]; then
	cp "$work/redlatch" "$out/redlatch"
	exit 0
fi
cp "$clone/LICENSE" "$common/LICENSE"

# The licences of all that is linked, on any system, ask to be with it.
(
	cd "$clone/cmd/redlatch"
	for os in linux darwin windows; do
		GOOS=$os go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' .
	done | grep -v '^github.com/redlatch/redlatch[ /]' | sort -u | while read -r module at dir; do
		found=
		for text in "$dir"/LICEN[CS]E* "$dir"/COPYING* "$dir"/NOTICE*; do
			[ -f "$text" ] || continue
			printf '\n==== %s %s: %s\n\n' "$module" "$at" "${text##*/}"
			cat "$text"
			found=yes
		done
		[ -n "$found" ] || die "$module has no licence"
	done
	printf '\n==== Go: LICENSE\n\n'
	cat "$(go env GOROOT)/LICENSE"
) >"$common/LICENSES-OF-OTHERS"

for target in linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64; do
	os=${target%/*} arch=${target#*/}
	name=${stem}_${os}_$arch
	folder=$work/$name
	cp -R "$common" "$folder"
	program=redlatch kind=tar.gz
	if [ "$os" = windows ]; then program=redlatch.exe kind=zip; fi
	GOOS=$os GOARCH=$arch build "$folder/$program"
	"$tools/pack" archive "$out/$name.$kind" "$folder"
	"$tools/cyclonedx-gomod" bin -json -noserial -notimestamp -version "$version" -output "$out/$name.cdx.json" "$folder/$program" 2>"$work/said" ||
		die "cyclonedx-gomod: $(cat "$work/said")"
done

for arch in amd64 arm64; do
	built=$work/${stem}_linux_$arch

	package=$work/package_$arch
	mkdir "$package"
	cp -R "$built/redlatch" "$built/man" "$built/completions" "$clone/deploy/systemd" "$package"
	gzip -9n "$package"/man/*
	cat "$built/LICENSE" "$built/LICENSES-OF-OTHERS" >"$package/copyright"
	find "$package" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +
	for kind in deb rpm; do
		(cd "$package" && ARCH=$arch VERSION=$number "$tools/nfpm" package --config "$clone/deploy/nfpm.yaml" --packager "$kind" --target "$out/" >"$work/said" 2>&1) ||
			die "nfpm: $(cat "$work/said")"
	done

	root=$work/root_$arch
	mkdir -p "$root/usr/bin" "$root/etc/ssl/certs" "$root/usr/share/doc/redlatch"
	cp "$built/redlatch" "$root/usr/bin"
	cp "$package/copyright" "$root/usr/share/doc/redlatch"
	"$tools/pack" roots "$root/etc/ssl/certs/ca-certificates.crt"
done
"$tools/pack" image "$out/${stem}_image.tar" "$version" "amd64=$work/root_amd64" "arm64=$work/root_arm64"

mkdir "$work/chart"
cp -RL "$clone/deploy/chart" "$work/chart/redlatch"
sed -i.old -e "s/^version: .*/version: $number/" -e "s/^appVersion: .*/appVersion: $version/" "$work/chart/redlatch/Chart.yaml"
rm "$work/chart/redlatch/Chart.yaml.old"
"$tools/pack" archive "$out/redlatch-chart-$number.tgz" "$work/chart/redlatch"

(cd "$out" && sha256sum -- * >"$work/sums" && mv "$work/sums" SHA256SUMS)
printf 'dist: %s is in %s, of %s\n' "$version" "$2" "$head"
