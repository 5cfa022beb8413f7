#!/usr/bin/env bash
# Installs the npm packages of the lockfile with the machine's own Node. On Linux, one of the packages is the pinned Node 24, which runs everything
# else. npm has no such package for macOS: there the machine's own Node runs Headgate, and must be 24 or newer.
#   install-node-modules.sh STAMP     touches STAMP after a whole installation
set -euo pipefail
stamp=$1

die() { printf 'setup: %s\n' "$@" >&2; exit 1; }

system=$(uname -s)
case $system in
  Linux) oldest=20 how="https://nodejs.org, or your distribution's nodejs and npm packages" why="the project brings its own Node 24 for the rest" ;;
  Darwin) oldest=24 how="https://nodejs.org, or: brew install node" why="on macOS it runs Headgate itself" ;;
  *) die "\`make run\` needs Linux or macOS; this is $system. On Windows, use WSL." ;;
esac
command -v node >/dev/null && command -v npm >/dev/null || die "node and npm are not on the PATH. Install Node $oldest or newer ($how)."
version=$(node -p 'process.versions.node')
((${version%%.*} >= oldest)) || die "node $version is too old: Headgate needs version $oldest or newer on $system ($why). Install it ($how)."

echo "setup: npm ci (expect 10 s to 2 min) ..."
start=$SECONDS
npm ci --no-audit --no-fund --loglevel error </dev/null || die "npm ci failed; see above. Is the npm registry reachable?"
if [[ $system == Darwin ]]; then
  touch "$stamp"
  echo "setup: done in $((SECONDS - start)) s, with this machine's Node v$version. On macOS: make run and make status, which were not tested there; the tests need Linux."
  exit
fi
arch=$(uname -m); arch=${arch/x86_64/x64}; arch=${arch/aarch64/arm64}
pinned=node_modules/node-linux-$arch/bin/node
[[ -x $pinned ]] || die "npm did not install $pinned: there is no pinned Node for this machine ($(uname -m)), or npm is set to omit optional packages."
"$pinned" --version >/dev/null || die "$pinned does not start on this machine (glibc 2.28 or newer is needed)."
touch "$stamp"
echo "setup: done in $((SECONDS - start)) s, Node $("$pinned" --version) for everything that follows"
