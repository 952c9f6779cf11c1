#!/usr/bin/env bash
# Generates everything that is made from the protos. Usage: protos/generate.sh PYTHON GO_PLUGINS ES_PLUGIN
# PYTHON has locks/protos.lock installed, the directory GO_PLUGINS holds protoc-gen-go and
# protoc-gen-go-grpc, ES_PLUGIN is protoc-gen-es. An empty one leaves its language as it is.
set -euo pipefail
python=$1 go_plugins=$2 es_plugin=$3
cd "$(dirname "$0")/.."
files=$(cd protos && ls memory_service/v1/*.proto)
includes="-Iprotos -I$("$python" -c 'import os, google.rpc; print(os.path.dirname(os.path.dirname(google.rpc.__path__[0])))')"

# shellcheck disable=SC2086 # lists of words
compile() { "$python" -m grpc_tools.protoc $includes "$@"; }

python_code() { # out
  rm -f "$1"/memory_service/v1/*_pb2*.py*
  mkdir -p "$1/memory_service/v1"
  compile --python_out="$1" --pyi_out="$1" --grpc_python_out="$1" $files
}

python_code .
client=clients/python/memory_client/_gen
python_code "$client"
# The client keeps its copy inside its own package, so that it needs no other to be importable.
sed -i 's/^from memory_service\.v1/from memory_client._gen.memory_service.v1/' "$client"/memory_service/v1/*_pb2*.py*
touch "$client/__init__.py" "$client/memory_service/__init__.py" "$client/memory_service/v1/__init__.py" memory_service/v1/__init__.py
# What server reflection serves: with the comments, and with the messages of error details.
compile --include_imports --include_source_info \
  --descriptor_set_out=memory_service/v1/descriptors.binpb $files google/rpc/error_details.proto

if [ -n "$go_plugins" ]; then
  # The protos do not say where Go keeps them: that is the affair of this client alone.
  module=github.com/memory-service/memory-service/clients/go
  import_paths=$(for file in $files; do printf ',M%s=%s/internal/memoryv1' "$file" "$module"; done)
  rm -rf clients/go/internal/memoryv1
  compile --plugin="protoc-gen-go=$go_plugins/protoc-gen-go" \
    --plugin="protoc-gen-go-grpc=$go_plugins/protoc-gen-go-grpc" \
    --go_out=clients/go --go_opt="module=$module$import_paths" \
    --go-grpc_out=clients/go --go-grpc_opt="module=$module$import_paths" $files
fi

if [ -n "$es_plugin" ]; then
  rm -rf clients/typescript/src/gen
  mkdir -p clients/typescript/src/gen
  compile --plugin="protoc-gen-es=$es_plugin" \
    --es_out=clients/typescript/src/gen --es_opt=target=ts,import_extension=js $files
fi
