#!/usr/bin/env bash
# Fails when the generated code is not what the protos give. Usage: protos/check-generated.sh PYTHON
set -euo pipefail
cd "$(dirname "$0")/.."
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/clients/python/memory_client" "$copy/memory_service"
cp -r protos "$copy/"
cp -r memory_service/v1 "$copy/memory_service/"
cp -r clients/python/memory_client/_gen "$copy/clients/python/memory_client/"
"$copy/protos/generate.sh" "$1"
for generated in memory_service/v1 clients/python/memory_client/_gen; do
  diff -r --exclude __pycache__ "$generated" "$copy/$generated" || { echo "run: make protos"; exit 1; }
done
