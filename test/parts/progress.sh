# Sourced by the scripts of this folder: runs long steps and prints their purpose, expected time and real time.
# shellcheck shell=bash

# step LOG EXPECTED WHAT COMMAND...: runs COMMAND with its output in LOG; prints a line at once and each 15 s, and on failure the end of LOG.
step() {
  local log=$1 expected=$2 what=$3 start=$SECONDS pid code=0 shown; shift 3
  echo "setup: $what (expect $expected) ..."
  mkdir -p "$(dirname "$log")"
  "$@" >"$log" 2>&1 </dev/null &
  pid=$! shown=$SECONDS
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.2
    ((SECONDS - shown < 15)) || { shown=$SECONDS; echo "setup: $what: $((SECONDS - start)) s so far (expect $expected)"; }
  done
  wait "$pid" || code=$?
  if ((code)); then
    echo "setup: $what failed with code $code after $((SECONDS - start)) s; the end of $log:"
    tail -n 20 "$log"
    return "$code"
  fi
  echo "setup: $what: done in $((SECONDS - start)) s"
}

# cannot REASON...: reports that this layer cannot run on this machine: exit code 3, with the reason in $HEADGATE_SKIP_FILE.
cannot() {
  echo "$*" >"${HEADGATE_SKIP_FILE:-/dev/stderr}"
  exit 3
}
