#!/usr/bin/env bash
# Fails when the generated code is not what the protos give. Usage as of protos/generate.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
generated="memory_service/v1 clients/python/memory_client/_gen clients/go/internal/memoryv1 clients/typescript/src/gen"
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r protos "$copy/"
for directory in $generated; do
  mkdir -p "$copy/$directory"
  cp -r "$directory/." "$copy/$directory/"
done
"$copy/protos/generate.sh" "$@"
for directory in $generated; do
  diff -r --exclude __pycache__ "$directory" "$copy/$directory" || { echo "run: make protos"; exit 1; }
done
