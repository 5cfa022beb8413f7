#!/usr/bin/env bash
# Installs the npm packages of the lockfile with the machine's own Node, then checks that the pinned Node 24 came with them.
#   install-node-modules.sh STAMP     STAMP is touched when all is there
set -euo pipefail
stamp=$1

die() { printf 'setup: %s\n' "$@" >&2; exit 1; }

[[ $(uname -s) == Linux ]] || die "Headgate is built and tested on Linux (x86-64 or arm64); this is $(uname -s)."
command -v node >/dev/null && command -v npm >/dev/null ||
  die "node and npm are not on the PATH." "Install Node 20 or newer (https://nodejs.org, or your distribution's nodejs and npm packages)."
version=$(node -p 'process.versions.node')
((${version%%.*} >= 20)) || die "node $version is too old: version 20 or newer is needed for the set-up (the project brings its own Node 24 for the rest)."

echo "setup: npm ci (expect 10 s to 2 min) ..."
start=$SECONDS
npm ci --no-audit --no-fund --loglevel error </dev/null || die "npm ci failed; see above. Is the npm registry reachable?"
arch=$(uname -m); arch=${arch/x86_64/x64}; arch=${arch/aarch64/arm64}
pinned=node_modules/node-linux-$arch/bin/node
[[ -x $pinned ]] || die "npm did not bring $pinned: there is no pinned Node for this machine ($(uname -m)), or npm was told to omit optional packages."
"$pinned" --version >/dev/null || die "$pinned does not start on this machine (glibc 2.28 or newer is needed)."
touch "$stamp"
echo "setup: done in $((SECONDS - start)) s, Node $("$pinned" --version) for everything that follows"
