#!/usr/bin/env bash
# Builds the Java peer of the interop tests, once per Redisson version, into peer/target/<version>/.
# Does nothing when that is up to date. Needs a JDK 17 and Maven; after the first run no network.
set -euo pipefail
cd "$(dirname "$0")/peer"

command -v mvn >/dev/null || {
	echo 'interop: mvn not found: install maven and a JDK 17 (Debian: apt-get install maven openjdk-17-jdk-headless)' >&2
	exit 1
}

mkdir -p target
exec 9>target/lock
flock 9 # two runs at once would write the same directories

# The sources and the program that compiled them: what changes one changes the result.
want=$({ cat pom.xml ../build.sh; find src -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum; } | sha256sum)

# build PROFILE VERSION
build() {
	local stamp=target/$2/stamp
	if [ -f "target/$2/peer.jar" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
		return
	fi
	echo "interop: building the peer with Redisson $2" >&2
	rm -rf "target/$2"
	MAVEN_OPTS="${MAVEN_OPTS:-} -XX:-UsePerfData" mvn -q -B -P "$1" package >&2 # or each JVM leaves a directory in /tmp
	[ -f "target/$2/peer.jar" ] || {
		echo "interop: profile $1 did not build target/$2/peer.jar; do the versions here and in pom.xml agree?" >&2
		exit 1
	}
	printf '%s\n' "$want" >"$stamp"
}

build redisson-4 4.7.0
build redisson-3.18 3.18.1
