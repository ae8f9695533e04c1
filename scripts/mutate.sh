#!/usr/bin/env bash
# mutate.sh GREMLINS LIST PACKAGE... breaks the packages, one token at a time, and wants that their tests notice. What they do
# not notice has to stand in LIST, with a reason, and what stands there has to be so. GREMLINS is an absolute path.
set -euo pipefail
cd "$(dirname "$0")/.."
gremlins=$1 list=$2
shift 2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# A copy of what the tests need: gremlins copies the whole module for itself, servers and history included.
mkdir "$dir/src" "$dir/bin" "$dir/tmp"
git ls-files --cached --others --exclude-standard -z go.mod driver internal | tar -c --null -T - | tar -x -C "$dir/src"

# gremlins believes a profile of the coverage, in which the conditions of a switch and constants have no place, and never
# breaks them. So it is told that everything is covered. It allows a test some times what that run has taken, so that
# nothing of it may come from a cache.
real=$(command -v go)
cat >"$dir/bin/go" <<EOG
#!/usr/bin/env bash
set -euo pipefail
case " \$* " in
*' mod download '*) ;;
*' -coverprofile '*)
	"$real" "\$@" -count=1
	while [ "\$1" != -coverprofile ]; do shift; done
	sed -E '2,\$s/^([^:]*):.*/\1:1.1,99999.1 1 1/' "\$2" >"\$2.all"
	mv "\$2.all" "\$2"
	;;
*) exec "$real" "\$@" ;;
esac
EOG
chmod +x "$dir/bin/go"

# One at a time: a mutant that runs in circles has a processor for itself.
export GOWORK=off GOFLAGS=-trimpath TMPDIR=$dir/tmp
for package in "$@"; do
	(cd "$dir/src" && PATH=$dir/bin:$PATH "$gremlins" unleash --workers 1 --timeout-coefficient 10 \
		--invert-assignments --invert-logical --invert-loopctrl --remove-self-assignments --invert-negatives=false \
		"./$package") >"$dir/said" 2>&1 || { cat "$dir/said"; exit 1; }
	printf '%s: ' "$package"
	grep '^Killed:' "$dir/said"
	grep '^Timed out:' "$dir/said"
	# One that has timed out was noticed: in fake time, what asks again and again without a pause keeps a test from its end.
	# On a busy machine it may also be one that would have lived.
	grep '^ *TIMED OUT ' "$dir/said" || true
	# A mutant is known by its line, with a mark before the token that is another, so that it may move.
	sed -nE 's/^ *(LIVED|NOT COVERED|NOT VIABLE|SKIPPED) ([A-Z_]+) at ([^:]+):([0-9]+):([0-9]+)$/\1|\2|\3|\4|\5/p' "$dir/said" |
		while IFS='|' read -r status what file line column; do
			text=$(sed -n "${line}p" "$dir/src/$package/$file")
			printf '%s %s %s: %s\n' "$status" "$what" "$package/$file" \
				"$(sed -E 's/^[[:space:]]+//' <<<"${text:0:column-1}»${text:column-1}")"
		done >>"$dir/found"
done

sort "$dir/found" >"$dir/here"
{ grep -vE '^(#|$)' "$list" || true; } | sort >"$dir/known"
new=$(comm -13 "$dir/known" "$dir/here")
old=$(comm -23 "$dir/known" "$dir/here")
[ -z "$new" ] || printf '\nThe tests do not notice this. Add one that fails, delete what can go, or say in %s why it may stay:\n%s\n' "$list" "$new"
[ -z "$old" ] || printf '\nThe tests notice this, or it is gone. Take it out of %s:\n%s\n' "$list" "$old"
[ -z "$new$old" ]
