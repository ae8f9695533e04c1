#!/usr/bin/env bash
# apt.sh PACKAGE... installs packages of Debian, as root, without a question. Anywhere else, or if that fails, it fails, and who calls it
# says what to install.
set -euo pipefail

command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || exit 1
install() { DEBIAN_FRONTEND=noninteractive apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "$@" >/dev/null; }
install "$@" || { apt-get -qq update && install "$@"; }
