#!/usr/bin/env bash
# `make check`: the checks of every commit. Needs only Node. Prints each step with its time, and stops at the first failed step.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Prints a hash of the work tree, without ignored files. A step that changes a file (generated code, a golden file) changes the hash.
tree() { { git diff HEAD --no-ext-diff; git ls-files --others --exclude-standard | while IFS= read -r f; do sha256sum "$f"; done; } 2>/dev/null | sha256sum; }

passed=0 failures= start=$SECONDS
# Adds a layer to the totals of `.ci/run`: the steps that are not tests.
trap '[[ -z ${HEADGATE_SUMMARY:-} ]] || printf "{\"layer\":\"gate\",\"passed\":%d,\"failures\":[%s],\"seconds\":%d,\"skips\":[]}\n" \
  "$passed" "$failures" "$((SECONDS - start))" >>"$HEADGATE_SUMMARY"' EXIT

step() { # step NAME COMMAND...
  local name=$1 from=$EPOCHREALTIME; shift
  if "$@"; then passed=$((passed + 1)); else failures="\"$name\""; echo "check: $name failed" >&2; exit 1; fi
  awk -v n="$name" -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "check: %-10s %5.1f s\n", n, b - a }'
}

unchanged() {
  [[ $(tree) != "$before" ]] || return 0
  git status --short >&2
  echo "check: the work tree changed during the check: generated files were out of date. Review and commit them." >&2
  return 1
}

before=$(tree)
step generate node generate.ts
step format prettier --log-level warn --check .
step lint oxlint
step typecheck tsc -p .
step web-types tsc -p dashboard/web
step web-build make web
step web-size size-limit
node test/run-layers.ts unit contract
step no-diff unchanged
echo "check: all green"
