#!/usr/bin/env bash
# Runs a command in a network namespace of its own, where all test parts share one bridge: an API server and EndpointSlices refuse
# loopback addresses, and a test must not reach other programs of the machine by accident. The command also gets a process namespace:
# when the command ends, however it ends, all processes that it started end too.
#   in-netns.sh COMMAND...    exit code of COMMAND; inside, LAB_IP is the bridge's address (10.250.7.1); all of 10.250.7.0/24 belongs to the tests
#   in-netns.sh --check       exit code 3 and a reason in $HEADGATE_SKIP_FILE if this machine allows no namespaces
# Works as root, and as another user if the kernel lets users make namespaces.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/parts/progress.sh
source "$HERE/progress.sh"
export PATH=$PATH:/usr/sbin:/sbin
export LAB_IP=10.250.7.1

network() {
  ip link set lo up
  ip link add hg0 type bridge
  ip addr add "$LAB_IP/24" dev hg0
  local i
  for i in $(seq 11 40); do ip addr add "10.250.7.$i/24" dev hg0; done # one for each process that stands for a pod
  ip link set hg0 up
}

if [[ ${1:-} == --inside ]]; then # the first process of the namespaces: it reaps orphaned processes
  shift
  network
  [[ ${1:-} != true ]] || exit 0
  "$@" &
  child=$!
  trap 'kill -TERM "$child" 2>/dev/null' TERM INT
  code=0; wait "$child" || code=$?
  kill -0 "$child" 2>/dev/null && { wait "$child" || code=$?; } # a signal ended the first wait
  exit "$code"
fi

ROOT_FLAGS=(--net --pid --fork --kill-child --mount-proc)
USER_FLAGS=(--user --map-root-user "${ROOT_FLAGS[@]}")
flags=()
if unshare "${ROOT_FLAGS[@]}" bash "$0" --inside true 2>/dev/null; then flags=("${ROOT_FLAGS[@]}")
elif unshare "${USER_FLAGS[@]}" bash "$0" --inside true 2>/dev/null; then flags=("${USER_FLAGS[@]}")
else
  cannot "no network namespace: unshare --net is refused here; run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)"
fi
[[ ${1:-} != --check ]] || exit 0

unshare "${flags[@]}" bash "$0" --inside "$@" &
outer=$!
trap 'kill -KILL "$outer" 2>/dev/null' TERM
code=0; wait "$outer" || code=$?
exit "$code"
