#!/usr/bin/env bash
# Makes a release of the working tree, builds what users install of it twice, in different folders, and wants the same bytes. Then it uses it as they do: it installs
# the deb in a root that has nothing else, and runs a command under a lock from there, and again from the image. It validates
# the units, the manifests and the chart. make dist-test runs it, as root.
#
# What is missing is fetched first: packages of Debian, and the schemas of Kubernetes. The checks themselves ask nobody.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'dist-test: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] && [ "$(id -u)" = 0 ] || die 'it needs Linux on amd64, and root for the roots that it changes to'

missing=()
for tool in umoci:umoci skopeo:skopeo runc:runc rpm:rpm systemd-analyze:systemd dpkg:dpkg unshare:util-linux mandoc:mandoc; do
	command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
done
if [ "${#missing[@]}" -gt 0 ]; then
	scripts/apt.sh "${missing[@]}" || die "install ${missing[*]}"
fi
# A package that has the schemas of Kubernetes 1.37 in it.
schemas=$PWD/.tools/kubernetes-validate-1.37.0
if [ ! -d "$schemas" ]; then
	command -v pip >/dev/null || scripts/apt.sh python3-pip || die 'install python3-pip'
	rm -rf "$schemas.new"
	pip --disable-pip-version-check -q install --no-deps --only-binary :all: --target "$schemas.new" kubernetes-validate==1.37.0 \
		PyYAML==6.0.4 attrs==26.1.0 importlib_resources==7.1.0 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 packaging==26.4 \
		referencing==0.37.0 rpds-py==2026.9.1 typing_extensions==4.16.0
	mv "$schemas.new" "$schemas"
fi
python() { PYTHONPATH=$schemas python3 "$@"; }
valid() { python -m kubernetes_validate --strict --kubernetes-version 1.25 --kubernetes-version 1.37 "$1"; }

tools=$PWD/.tools
here=$PWD
version=v0.0.1-test.1 number=0.0.1-test.1
work=$(mktemp -d)
server=
finish() {
	[ -z "$server" ] || { kill "$server" && wait "$server" || true; } 2>/dev/null
	chmod -R u+w "$work"
	rm -rf "$work"
}
trap finish EXIT

# What is built is a release of the working tree, in a repository of its own. So this also proves what is not committed yet.
git clone --quiet --no-tags . "$work/one"
git -C "$work/one" remote remove origin # to which the release would have to go
git -C "$work/one" switch --quiet --force-create release
git -C "$work/one" rm -rq --ignore-unmatch .
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' name; do
	if [ -e "$name" ]; then printf '%s\0' "$name"; fi
done | tar --null --no-recursion -T - -cf - | tar -C "$work/one" -xf -
for setting in user.name=test user.email=test@example.com commit.gpgSign=false tag.gpgSign=false; do
	git -C "$work/one" config "${setting%%=*}" "${setting#*=}"
done
git -C "$work/one" add --all
git -C "$work/one" commit --quiet --allow-empty --message 'the working tree'
make --no-print-directory -C "$work/one" release VERSION="$version" >"$work/said" || die "$(cat "$work/said")"
git clone --quiet "$work/one" "$work/another folder"
git clone --quiet "$work/one" "$work/no release"
git -C "$work/no release" checkout --quiet --detach HEAD^
for clone in one 'another folder'; do
	mkdir -p "$work/$clone/.tools"
	ln -s "$tools"/{pack,nfpm,cyclonedx-gomod} "$work/$clone/.tools"
done

# GitHub builds when it has the root module's tag and no other.
git -C "$work/another folder" tag --list '*/*' | xargs git -C "$work/another folder" tag --delete >/dev/null
"$work/one/scripts/dist.sh" "$version" "$work/dist"
(cd / && umask 077 && TMPDIR=$work TZ=Asia/Tokyo LC_ALL=C.UTF-8 "$work/another folder/scripts/dist.sh" "$version" "$work/dist2" >/dev/null)
diff -r "$work/dist" "$work/dist2" || die 'two builds differ'
(cd "$work/dist" && sha256sum --check --quiet SHA256SUMS)

# The packages of those came from one cache. One program is compiled with none, in a folder of another name.
git -C "$work/another folder" fetch --quiet --tags
(
	cd "$work/another folder/cmd/redlatch"
	export GIT_CONFIG_COUNT=1 "GIT_CONFIG_KEY_0=url.file://$work/one.insteadOf" GIT_CONFIG_VALUE_0=https://github.com/redlatch/redlatch
	GOPROXY=file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)
	export GOPROXY GOCACHE=$work/cache GOMODCACHE=$work/modules GONOPROXY=github.com/redlatch/redlatch GONOSUMDB=github.com/redlatch/redlatch
	export GOWORK=off GOFLAGS='-mod=readonly -modcacherw' CGO_ENABLED=0 GOOS=linux GOARCH=arm64
	go build -trimpath -buildvcs=true -ldflags='-s -w -buildid=' -o "$work/compiled" .
)
tar -xOzf "$work/dist/redlatch_${number}_linux_arm64.tar.gz" "redlatch_${number}_linux_arm64/redlatch" | cmp - "$work/compiled" || die 'a build without a cache differs'
rm -rf "$work/cache" "$work/modules"
say 'two builds have the same bytes'

# A commit that is no release can be built, too, with the modules beside the command.
"$work/no release/scripts/dist.sh" v0.0.2 "$work/program" program
said=$("$work/program/redlatch" version)
[[ $said == "redlatch v0.0.2 "* ]] || die "redlatch version of a commit that is no release says: $said"
cd "$work/dist"

# A dirty tree is refused, and so is a version that is another commit's.
refused() { if "$work/one/scripts/dist.sh" "$1" "$work/no" >"$work/said" 2>&1 || ! grep -q "$2" "$work/said"; then die "not refused: $2: $(cat "$work/said")"; fi; }
touch "$work/one/new"
refused "$version" 'not committed'
rm "$work/one/new"
git -C "$work/one" tag --force "$version" HEAD^ >/dev/null
refused "$version" 'tag of another commit'
refused 0.1.0 usage

servers=${REDLATCH_SERVERS:-$here/.servers/bin}
[ -x "$servers/redis-server" ] || servers=$(dirname "$(command -v redis-server)")
(umask 077 && mkdir "$work/redis")
for _ in 1 2 3 4 5; do
	port=$((20000 + RANDOM % 10000))
	"$servers/redis-server" --port "$port" --bind 127.0.0.1 --save '' --dir "$work/redis" >"$work/redis/log" 2>&1 &
	server=$!
	for _ in {1..100}; do
		if grep -q 'Ready to accept connections' "$work/redis/log" || ! kill -0 "$server" 2>/dev/null; then break; fi
		sleep 0.1
	done
	if grep -q 'Ready to accept connections' "$work/redis/log"; then break; fi
	server=
done
[ -n "$server" ] || die "redis-server does not start: $(tail -n 3 "$work/redis/log")"
export REDLATCH_URL=redis://127.0.0.1:$port

# Archives.
for archive in *.tar.gz *.zip; do
	mkdir "$work/archive"
	case $archive in *.zip) python3 -m zipfile -e "$archive" "$work/archive" ;; *) tar -xzf "$archive" -C "$work/archive" ;; esac
	for name in LICENSE LICENSES-OF-OTHERS man/redlatch-run.1 completions/redlatch.bash; do
		[ -s "$work/archive/${archive%.*}/$name" ] || [ -s "$work/archive/${archive%.tar.gz}/$name" ] || die "$archive has no $name"
	done
	case $archive in *linux_amd64*) "$work/archive/${archive%.tar.gz}/redlatch" run archive -- true ;; esac
	rm -rf "$work/archive"
	grep -q '"name": "github.com/spf13/cobra"' "$(printf %s "$archive" | sed 's/\.tar\.gz$\|\.zip$//').cdx.json" || die "what $archive is made of is not known"
done
say "archives: $(ls -- *.tar.gz *.zip | wc -l), $(du -ch -- *.tar.gz *.zip | tail -n 1 | cut -f 1)"

# The deb, in a root that has nothing else. redlatch run needs /proc and /dev/null.
root=$work/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/proc" "$root/dev"
touch "$root/var/lib/dpkg/status"
mknod -m 666 "$root/dev/null" c 1 3
find "$root" | sort >"$work/before"
dpkg --root="$root" --force-script-chrootless --log=/dev/null --install redlatch_*_amd64.deb >/dev/null
inside() { unshare --mount --pid --fork --mount-proc="$root/proc" chroot "$root" "$@"; }
said=$(inside /usr/bin/redlatch run deb -- /usr/bin/redlatch version)
[[ $said == "redlatch $version "*" go1."* ]] || die "the deb's redlatch version says: $said"
held=$(inside /usr/bin/redlatch run deb -- /usr/bin/redlatch show deb)
grep -q 'deb' <<<"$held" || die "nobody holds the lock: $held"
say "deb: $said"
for page in "$root"/usr/share/man/man1/*.gz; do gzip -dc "$page" | mandoc -T lint -W error; done
for shell in bash zsh fish; do
	file=$(find "$root/usr/share" -name redlatch -path '*bash*' -o -name _redlatch -path '*zsh*' -o -name redlatch.fish | grep "$shell")
	[ -s "$file" ] || die "the deb has no completion for $shell"
done

# The units, in the same root: with what systemd itself has beside them.
mkdir -p "$root/usr/lib/systemd/system" "$root/bin"
cp -n /lib/systemd/system/{sysinit,basic,multi-user,shutdown,network,network-online}.target "$root/usr/lib/systemd/system"
printf 'COMMAND=true\n' >"$root/etc/redlatch/nightly.env"
verified=$(systemd-analyze verify --root="$root" --man=no --recursive-errors=yes redlatch-serve.service redlatch-run@nightly.service 2>&1) || die "systemd-analyze verify: $verified"
[ -z "$verified" ] || die "systemd-analyze verify: $verified"
for unit in redlatch-serve.service redlatch-run@.service; do
	said=$(systemd-analyze security --offline=true --threshold=30 --no-pager "$root/usr/lib/systemd/system/$unit" 2>&1) || die "$unit is not hardened: $said"
	say "$unit: $(tail -n 1 <<<"$said")"
done
rm -r "$root/usr/lib/systemd/system"/*.target "$root/bin" "$root/etc/redlatch/nightly.env"

# What has been configured is kept by a removal, and nothing is left by a purge.
dpkg --root="$root" --force-script-chrootless --log=/dev/null --remove redlatch >/dev/null
[ -f "$root/etc/redlatch/redlatch.env" ] || die 'removing the deb has removed what was configured'
dpkg --root="$root" --force-script-chrootless --log=/dev/null --purge redlatch >/dev/null
left=$(find "$root" | sort | comm -13 "$work/before" - | grep -v "^$root/var/lib/dpkg/" || true)
[ -z "$left" ] || die "purging the deb leaves: $left"

# The rpm.
mkdir "$work/rpm"
rpm --root "$work/rpm" --dbpath /var/lib/rpm --noplugins --install redlatch-*.x86_64.rpm 2>"$work/said" || die "rpm: $(cat "$work/said")"
say "rpm: $(chroot "$work/rpm" /usr/bin/redlatch version)"
[ "$(stat -c %a "$work/rpm/etc/redlatch/redlatch.env")" = 640 ] || die 'everybody can read the environment of the services'

# The image, as user 65532 and read-only. runc takes one platform of it.
skopeo --version >/dev/null
for arch in amd64 arm64; do
	skopeo --override-arch "$arch" copy -q "oci-archive:redlatch_${number}_image.tar:$version" "oci:$work/$arch:$version"
	[ "$(skopeo inspect --config --format '{{.Architecture}} {{.Config.User}}' "oci:$work/$arch:$version")" = "$arch 65532:65532" ] || die "the image for $arch is another one"
done
umoci unpack --image "$work/amd64:$version" "$work/bundle"
container() {
	python3 - "$work/bundle/config.json" "$REDLATCH_URL" "$@" <<-'P'
		import json, sys
		file, url, *args = sys.argv[1:]
		c = json.load(open(file))
		c["process"].update(terminal=False, args=["/usr/bin/redlatch", *args])
		c["process"]["env"].append("REDLATCH_URL=" + url)
		c["root"]["readonly"] = True
		c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != "network"]
		c["linux"].pop("resources", None)
		json.dump(c, open(file, "w"))
	P
	runc --root "$work/runc" run --bundle "$work/bundle" "dist-test-$$" </dev/null
}
said=$(container run image -- /usr/bin/redlatch version)
[[ $said == "redlatch $version "* ]] || die "redlatch run in the image says: $said"
say "image: $said, $(du -h "redlatch_${number}_image.tar" | cut -f 1) for two platforms"

# Kubernetes.
cd "$here"
chart=$work/dist/redlatch-chart-$number.tgz
set_values=(--set image=registry.example.com/redlatch:v1,secret=redlatch)
export HELM_CACHE_HOME=$work/helm HELM_CONFIG_HOME=$work/helm HELM_DATA_HOME=$work/helm
"$tools/helm" lint --strict --quiet "${set_values[@]}" --set exporter.monitor=true,rules.enabled=true "$chart"
"$tools/helm" template try "$chart" "${set_values[@]}" >"$work/chart.yaml"
for file in deploy/kubernetes/*.yaml "$work/chart.yaml"; do
	valid "$file" >"$work/said" 2>&1 && ! grep -q WARN "$work/said" || die "$file: $(cat "$work/said")"
done
# It has to find faults.
sed 's/readOnlyRootFilesystem/readonlyRootFilesystem/' "$work/chart.yaml" >"$work/wrong.yaml"
if valid "$work/wrong.yaml" >/dev/null 2>&1; then die 'kubernetes-validate lets a misspelt field pass'; fi
if "$tools/helm" template try "$chart" >/dev/null 2>"$work/said" || ! grep -q 'image of redlatch' "$work/said"; then die "the chart does without an image: $(cat "$work/said")"; fi
"$tools/helm" template try "$chart" "${set_values[@]}" --set rules.enabled=true --show-only templates/rules.yaml |
	python -c 'import sys, yaml; yaml.safe_dump(yaml.safe_load(sys.stdin)["spec"], sys.stdout)' >"$work/rules.yml"
promtool=${REDLATCH_SERVERS:-.servers/bin}/promtool
[ -x "$promtool" ] || promtool=promtool
say "chart and manifests are valid; $("$promtool" check rules "$work/rules.yml" | tr -s '\n ' ' ')"

"$tools/actionlint" -no-color -shellcheck= -pyflakes=
python -c 'import glob, yaml; [yaml.safe_load(open(f)) for f in glob.glob(".github/**/*.yml", recursive=True)]'
say 'all passed'
