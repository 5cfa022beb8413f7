#!/usr/bin/env bash
# Gets everything that a test layer needs: system packages, the Kubernetes programs, the model server, Headgate's bundles.
#   prepare.sh integration | e2e
# Programs are built once, in ${XDG_CACHE_HOME:-~/.cache}/headgate. If the layer cannot run on this machine, the exit
# code is 3 and $HEADGATE_SKIP_FILE says why.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate
# shellcheck source=test/parts/progress.sh
source "$HERE/progress.sh"
LAYER=${1:?integration or e2e}
export PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin

bash "$HERE/system-packages.sh" "$LAYER"
mkdir -p "$CACHE"
exec 9>"$CACHE/lock" # two runs at the same time must not build the same program twice
flock -n 9 || { echo "setup: another run is building into $CACHE, waiting for it"; flock 9; }
programs=(kube-apiserver kube-controller-manager kubectl etcd helm)
[[ $LAYER != e2e ]] || programs+=(kube-scheduler kubelet kube-proxy coredns)
bash "$HERE/build-kube.sh" "${programs[@]}" || cannot "the Kubernetes programs could not be built; the log is above"
bash "$HERE/build-llama.sh" || cannot "llama-server could not be built; the log is above"
flock -u 9
if [[ $LAYER == e2e ]]; then
  missing=$(bash "$HERE/node.sh" check | paste -sd ';')
  [[ -z $missing ]] || cannot "this machine lacks requirements of the one-node cluster: $missing"
else
  bash "$HERE/in-netns.sh" --check
  bash "$HERE/foreign-crds.sh" >/dev/null || echo "setup: without these CRDs, the tests that need them are skipped"
  bash "$HERE/promtool.sh" >/dev/null 2>&1 || echo "setup: promtool is not available; the tests of alerts that need it are skipped"
fi
node "$HERE/../../build.ts"
