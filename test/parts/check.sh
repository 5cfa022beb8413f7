#!/usr/bin/env bash
# `make check`: what must hold at every commit. Needs Node alone. Prints each step with its time; stops at the first that fails.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# What git sees of the work tree: a step that changes a file (generated code, a golden file) changes this.
tree() { { git diff HEAD --no-ext-diff; git ls-files --others --exclude-standard | while IFS= read -r f; do sha256sum "$f"; done; } 2>/dev/null | sha256sum; }

step() { # step NAME COMMAND...
  local name=$1 start=$EPOCHREALTIME; shift
  "$@" || { echo "check: $name failed" >&2; exit 1; }
  awk -v n="$name" -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "check: %-10s %5.1f s\n", n, b - a }'
}

before=$(tree)
step generate node operator/api/generate.ts
step format prettier --log-level warn --check .
step lint oxlint
step typecheck tsc -p .
step tests node test/run-layers.ts unit contract
[[ $(tree) == "$before" ]] || {
  git status --short >&2
  echo "check: the files above changed while checking: generated files were not up to date. Look at them and commit them." >&2
  exit 1
}
echo "check: all green"
