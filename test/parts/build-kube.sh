#!/usr/bin/env bash
# Builds the real Kubernetes programs that the tests start, from Go modules, into a cache outside the clone.
#   build-kube.sh PROGRAM...     kube-apiserver kube-controller-manager kubectl etcd helm kube-scheduler kubelet kube-proxy coredns
# Skips programs that are already built. Needs Go, 2 GB of memory and 9 GB of disk for Go's own caches.
# Go refuses `go install k8s.io/kubernetes/...`, since that go.mod has replace directives. The modules in kube/ repeat these directives; their
# go.sum files pin every dependency.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/parts/progress.sh
source "$HERE/progress.sh"
K8S=1.36.3 HELM=4.2.4 COREDNS=1.14.7
HOME_DIR=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/kube/v$K8S
BIN=${LAB_BIN:-$HOME_DIR/bin}
# By default, Go's build cache is below XDG_CACHE_HOME. A run with another XDG_CACHE_HOME would then build everything from scratch.
export GOCACHE=${GOCACHE:-$HOME/.cache/go-build}
export CGO_ENABLED=0 GOFLAGS=-buildvcs=false # static: the same file runs inside a pod
export PATH=$PATH:/usr/local/go/bin
# Without the version, a node reports v0.0.0-master, which a chart's kubeVersion check refuses
LD="-s -w -X k8s.io/component-base/version.gitVersion=v$K8S -X k8s.io/component-base/version.gitMajor=1 \
-X k8s.io/component-base/version.gitMinor=36 -X k8s.io/client-go/pkg/version.gitVersion=v$K8S"

expected() {
  case $1 in
    kube-apiserver) echo "4 min, with the download" ;;
    kube-controller-manager) echo "1 min" ;;
    helm | coredns) echo "2 min" ;;
    *) echo "10 to 40 s" ;;
  esac
}

build() { # in a temporary folder first, so that an interrupted build does not look finished
  local p=$1 out; out=$(mktemp -d "$BIN/.building-XXXXXX")
  case $p in
    helm) GOBIN=$out go install -trimpath -ldflags "-s -w" "helm.sh/helm/v4/cmd/helm@v$HELM" ;;
    coredns) GOBIN=$out go install -trimpath -ldflags "-s -w" "github.com/coredns/coredns@v$COREDNS" ;;
    etcd) go build -C "$HERE/kube/etcd" -mod=readonly -trimpath -ldflags "-s -w" -o "$out/etcd" go.etcd.io/etcd/server/v3 ;;
    # -pgo=off: the programs' default.pgo would force a private rebuild of every dependency
    *) go build -C "$HERE/kube/kube" -mod=readonly -pgo=off -trimpath -ldflags "$LD" -o "$out/$p" "k8s.io/kubernetes/cmd/$p" ;;
  esac
  mv "$out/$p" "$BIN/$p"
  rmdir "$out"
}

mkdir -p "$BIN"
for p in "$@"; do
  [[ ! -x $BIN/$p ]] || continue
  step "$HOME_DIR/build-$p.log" "$(expected "$p")" "building $p" build "$p"
done
