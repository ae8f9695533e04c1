#!/usr/bin/env bash
# site.sh builds the site into .site/out: README and docs as pages, without a request to another host. It needs Python 3.
set -euo pipefail
cd "$(dirname "$0")/.."

zensical=0.0.73

if [ "$(.tools/zensical/bin/zensical --version 2>/dev/null || true)" != "$zensical" ]; then
	rm -rf .tools/zensical
	mkdir -p .tools
	python3 -m venv .tools/zensical || { echo 'site: install python3-venv' >&2; exit 1; }
	.tools/zensical/bin/pip install --quiet --disable-pip-version-check "zensical==$zensical"
fi
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
