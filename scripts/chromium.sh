#!/usr/bin/env bash
# Sees to it that there is a Chromium, which tests/dashboard drives without a window. Takes a missing one from Debian's
# package chromium: installed, not unpacked like the servers, because it needs libraries that a machine without a screen
# does not have.
set -euo pipefail

good() { command -v "$1" >/dev/null && "$1" --version 2>/dev/null | grep -q '^Chromium [1-9]'; }

die() {
	printf 'chromium: %s. Install chromium, or name its program in REDLATCH_CHROMIUM.\n' "$*" >&2
	exit 1
}

if [ -n "${REDLATCH_CHROMIUM:-}" ]; then
	"$REDLATCH_CHROMIUM" --version >/dev/null || die "REDLATCH_CHROMIUM=$REDLATCH_CHROMIUM does not run"
	exit 0
fi
good chromium && exit 0

"$(dirname "$0")/apt.sh" chromium || die 'not found, and apt-get cannot install it'
good chromium || die "the package's does not run here"
chromium --version
