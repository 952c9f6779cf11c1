#!/usr/bin/env bash
# Generates everything that is made from the protos. Usage: protos/generate.sh PYTHON
# where PYTHON has protos/requirements.txt installed.
set -euo pipefail
python=$1
cd "$(dirname "$0")/.."
files=$(cd protos && ls memory_service/v1/*.proto)
includes="-Iprotos -I$("$python" -c 'import os, google.rpc; print(os.path.dirname(os.path.dirname(google.rpc.__path__[0])))')"
client=clients/python/memory_client/_gen

generate() { # out
  rm -f "$1"/memory_service/v1/*_pb2*.py*
  mkdir -p "$1/memory_service/v1"
  # shellcheck disable=SC2086
  "$python" -m grpc_tools.protoc $includes --python_out="$1" --pyi_out="$1" --grpc_python_out="$1" $files
}

generate .
generate "$client"
# The client keeps its copy inside its own package, so that it needs no other to be importable.
sed -i 's/^from memory_service\.v1/from memory_client._gen.memory_service.v1/' "$client"/memory_service/v1/*_pb2*.py*
touch "$client/__init__.py" "$client/memory_service/__init__.py" "$client/memory_service/v1/__init__.py" memory_service/v1/__init__.py
# What server reflection serves: with the comments, and with the messages of error details.
# shellcheck disable=SC2086
"$python" -m grpc_tools.protoc $includes --include_imports --include_source_info \
  --descriptor_set_out=memory_service/v1/descriptors.binpb $files google/rpc/error_details.proto
