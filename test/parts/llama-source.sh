#!/usr/bin/env bash
# Sourced by the scripts that need llama.cpp: its pinned version, the cache, and how to get the source.
# shellcheck shell=bash disable=SC2034
VERSION=3.22.1
SHA256=a0d9dd80eacd2ab1cfe71aee57ac8a806487fd70b3d2a38fbec637752d9e5c5f # of the npm tarball
LLAMA_HOME=${LLAMA_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/headgate/llama-$VERSION}

# fetch_llama FOLDER: clones the source into FOLDER/src. It is a git bundle inside an npm package.
fetch_llama() { # the tarball alone: installing the package would bring 800 MB of other platforms' binaries
  cd "$1"
  npm pack "node-llama-cpp@$VERSION" --silent
  echo "$SHA256  node-llama-cpp-$VERSION.tgz" | sha256sum -c -
  tar xzf "node-llama-cpp-$VERSION.tgz" package/llama/gitRelease.bundle
  git -c advice.detachedHead=false clone -q package/llama/gitRelease.bundle src
}
