#!/usr/bin/env bash
# site.sh builds the site into .site/out: README and docs as pages, without a request to another host. It needs Python 3, and gets
# what builds by pip. With the word generator it does no more than that.
set -euo pipefail
cd "$(dirname "$0")/.."

zensical=0.0.73

if [ "$(.tools/zensical/bin/zensical --version 2>/dev/null || true)" != "$zensical" ]; then
	rm -rf .tools/zensical
	mkdir -p .tools
	# Debian has a part of venv in a package of its own.
	python3 -c 'import ensurepip, venv' 2>/dev/null || scripts/apt.sh python3-venv ||
		{ echo 'site: Python 3 with venv not found, and apt-get cannot install it. Install python3-venv.' >&2; exit 1; }
	python3 -m venv .tools/zensical
	.tools/zensical/bin/pip install --quiet --disable-pip-version-check "zensical==$zensical"
fi
[ "${1:-}" != generator ] || exit 0

mkdir -p .site
(cd tests && go run ./site ../.site/pages)
cp docs/site/look.css docs/site/look.js .site/pages/
cp docs/site/mkdocs.yml .site/mkdocs.yml
cd .site
rm -rf out
../.tools/zensical/bin/zensical build --clean --strict --config-file mkdocs.yml
if grep -rlE '(src|href)="(https?:)?//[^"]*\.(js|css|woff2?)"' out --include='*.html' >/dev/null; then
	echo 'site: a page loads something from another host:' >&2
	grep -rnoE '(src|href)="(https?:)?//[^"]*\.(js|css|woff2?)"' out --include='*.html' | head >&2
	exit 1
fi
echo "site: $(find out -name '*.html' | wc -l) pages in .site/out"
