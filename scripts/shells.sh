#!/usr/bin/env bash
# Sees to it that there are the shells for which redlatch has completion: zsh, fish, and bash with bash-completion. Takes
# missing ones from Debian's packages: installed, not unpacked like the servers, because they look for their files where
# they were built to be.
set -euo pipefail

[ "$(uname -s)" = Linux ] || exit 0 # the tests of completion are for Linux

good() { command -v zsh >/dev/null && command -v fish >/dev/null && [ -r /usr/share/bash-completion/bash_completion ]; }

die() {
	printf 'shells: %s. Install bash, bash-completion, zsh and fish.\n' "$*" >&2
	exit 1
}

good && exit 0

"$(dirname "$0")/apt.sh" bash bash-completion zsh fish || die 'not found, and apt-get cannot install them'
good || die "the packages' are not where they should be"
printf 'shells: %s, %s\n' "$(zsh --version)" "$(fish --version)"
