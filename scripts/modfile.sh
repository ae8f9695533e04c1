#!/usr/bin/env bash
# modfile.sh MODULE FOLDER copies the go.mod and the go.sum of a published module into FOLDER. The copy replaces our other
# modules by what stands beside that one. It is for what go.work is not for: go mod tidy, and a program that says its version.
#
#   cd cmd/redlatch && GOWORK=off go build -modfile=FOLDER/go.mod .
set -euo pipefail
cd "$(dirname "$0")/.."

ours=github.com/redlatch/redlatch
module=${1:?usage: modfile.sh MODULE FOLDER} folder=${2:?usage: modfile.sh MODULE FOLDER}
cp "$module/go.mod" "$module/go.sum" "$folder"
# The folders are seen from the module, wherever the copy is: a program has them in it.
up=$(sed -E 's#[^/]+#..#g' <<<"$module")
for path in $(sed -nE "s#^(require)?[[:space:]]*($ours(/[^ ]*)?) v.*#\2#p" "$module/go.mod"); do
	go mod edit -replace="$path=$up${path#"$ours"}" "$folder/go.mod"
done
