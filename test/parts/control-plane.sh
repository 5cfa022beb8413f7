#!/usr/bin/env bash
# A real Kubernetes API for tests: etcd, kube-apiserver and kube-controller-manager with certificates of their own. No containers, no root.
#   control-plane.sh up          start all three, wait until /readyz answers ok and the default namespace has its service account
#   control-plane.sh start NAME  start one of them again, on the same data, and wait until it answers: etcd | kube-apiserver | kube-controller-manager
#   control-plane.sh down        stop them by their recorded pids, in reverse order (the state stays)
#   control-plane.sh wipe        down, and remove the state: the next `up` starts empty
#   control-plane.sh status      one line per process with its resident memory
#   control-plane.sh token NAMESPACE SERVICEACCOUNT   a kubeconfig on stdout that acts as that service account (TokenRequest)
# Variables: LAB_BIN folder with the programs; LAB_DIR state (default /tmp/headgate-cp); LAB_IP address to serve on (127.0.0.1);
#   LAB_PORT (16443), LAB_ETCD_PORT (12379), LAB_ETCD_PEER_PORT (one more); LAB_CIDR service range; LAB_EXTRA_APISERVER more flags;
#   LAB_KCM=0 leaves the controller manager out. Pids are in $LAB_DIR/NAME.pid, output in $LAB_DIR/NAME.log.
#   LAB_AUDIT_DIR folder of the audit log ($LAB_DIR/audit): user, verb and object of each request by a ServiceAccount, never a body;
#   LAB_AUDIT=0 writes none (measurements).
# Admin credentials: $LAB_DIR/admin.kubeconfig and $LAB_DIR/pki/admin.{crt,key} (group system:masters), authority $LAB_DIR/pki/ca.crt.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
LAB_BIN=${LAB_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/headgate/kube/v1.36.3/bin}
LAB_DIR=${LAB_DIR:-/tmp/headgate-cp}
LAB_IP=${LAB_IP:-127.0.0.1}
LAB_PORT=${LAB_PORT:-16443}
LAB_ETCD_PORT=${LAB_ETCD_PORT:-12379}
LAB_ETCD_PEER_PORT=${LAB_ETCD_PEER_PORT:-$((LAB_ETCD_PORT + 1))}
LAB_CIDR=${LAB_CIDR:-10.96.0.0/16}
LAB_AUDIT_DIR=${LAB_AUDIT_DIR:-$LAB_DIR/audit}
PKI=$LAB_DIR/pki
KCTL=("$LAB_BIN/kubectl" --kubeconfig "$LAB_DIR/admin.kubeconfig")

die() { echo "control-plane: $*" >&2; exit 1; }
# shellcheck source=test/parts/process.sh
source "$HERE/process.sh"

cert() { # cert NAME SUBJECT [SAN]: a certificate of our authority, with an EC key: RSA keys would take seconds
  local name=$1 subject=$2 san=${3:-}
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$PKI/$name.key" -out "$PKI/$name.csr" \
    -subj "$subject" 2>/dev/null
  { echo 'extendedKeyUsage=serverAuth,clientAuth'; [[ -z $san ]] || echo "subjectAltName=$san"; } >"$PKI/$name.ext"
  openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -set_serial "0x$(openssl rand -hex 8)" \
    -days 3650 -extfile "$PKI/$name.ext" -out "$PKI/$name.crt" 2>/dev/null
}

kubeconfig() { # kubeconfig FILE CERTNAME
  local ca crt key
  ca=$(base64 -w0 <"$PKI/ca.crt") crt=$(base64 -w0 <"$PKI/$2.crt") key=$(base64 -w0 <"$PKI/$2.key")
  (umask 077; cat >"$1" <<YAML
apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: lab, cluster: {server: "https://$LAB_IP:$LAB_PORT", certificate-authority-data: $ca}}]
users: [{name: lab, user: {client-certificate-data: $crt, client-key-data: $key}}]
contexts: [{name: lab, context: {cluster: lab, user: lab}}]
YAML
  )
}

make_pki() {
  [[ -f $PKI/done ]] && return
  mkdir -p "$PKI"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 3650 -subj /CN=headgate-test-ca \
    -keyout "$PKI/ca.key" -out "$PKI/ca.crt" 2>/dev/null
  local first=${LAB_CIDR%.*}.1
  cert apiserver /CN=kube-apiserver "DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
DNS:kubernetes.default.svc.cluster.local,IP:127.0.0.1,IP:$LAB_IP,IP:$first"
  cert admin /O=system:masters/CN=admin
  cert kcm /CN=system:kube-controller-manager
  cert scheduler /CN=system:kube-scheduler
  cert proxy /CN=system:kube-proxy
  cert kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  cert aggregator /CN=aggregator
  openssl ecparam -genkey -name prime256v1 -noout -out "$PKI/sa.key" 2>/dev/null
  openssl ec -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub" 2>/dev/null
  kubeconfig "$LAB_DIR/admin.kubeconfig" admin
  kubeconfig "$LAB_DIR/kcm.kubeconfig" kcm
  kubeconfig "$LAB_DIR/scheduler.kubeconfig" scheduler
  kubeconfig "$LAB_DIR/proxy.kubeconfig" proxy
  touch "$PKI/done"
}

spawn() { # spawn NAME ARGV…: background process, output to NAME.log, pid to NAME.pid
  local name=$1; shift
  ( close_inherited
    exec setsid "$@" >>"$LAB_DIR/$name.log" 2>&1 </dev/null ) &
  echo $! >"$LAB_DIR/$name.pid"
}

start_etcd() { # no fsync: no one needs the data after the test
  spawn etcd "$LAB_BIN/etcd" --name lab --data-dir "$LAB_DIR/etcd" --unsafe-no-fsync --log-level warn \
    --listen-client-urls "http://127.0.0.1:$LAB_ETCD_PORT" --advertise-client-urls "http://127.0.0.1:$LAB_ETCD_PORT" \
    --listen-peer-urls "http://127.0.0.1:$LAB_ETCD_PEER_PORT" --initial-advertise-peer-urls "http://127.0.0.1:$LAB_ETCD_PEER_PORT" \
    --initial-cluster "lab=http://127.0.0.1:$LAB_ETCD_PEER_PORT"
}

audit_policy() { # every ServiceAccount but those of the controller manager; a rule can name users and groups, but no patterns
  mkdir -p "$LAB_AUDIT_DIR"
  cat >"$LAB_DIR/audit-policy.yaml" <<YAML
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - { level: None, userGroups: ["system:serviceaccounts:kube-system"] }
  - { level: Metadata, userGroups: ["system:serviceaccounts"] }
YAML
}

start_kube-apiserver() {
  local reconciler=lease # keeps the endpoints of the kubernetes Service, which allow no loopback address
  [[ $LAB_IP != 127.* ]] || reconciler=none
  local audit=()
  if [[ ${LAB_AUDIT:-1} == 1 ]]; then
    audit_policy
    audit=(--audit-policy-file "$LAB_DIR/audit-policy.yaml" --audit-log-path "$LAB_AUDIT_DIR/audit.log" --audit-log-maxsize 200)
  fi
  # shellcheck disable=SC2086
  spawn kube-apiserver "$LAB_BIN/kube-apiserver" --etcd-servers "http://127.0.0.1:$LAB_ETCD_PORT" \
    --bind-address "$LAB_IP" --advertise-address "$LAB_IP" --secure-port "$LAB_PORT" --service-cluster-ip-range "$LAB_CIDR" \
    --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" --client-ca-file "$PKI/ca.crt" \
    --service-account-issuer https://kubernetes.default.svc --service-account-key-file "$PKI/sa.pub" \
    --service-account-signing-key-file "$PKI/sa.key" --authorization-mode Node,RBAC \
    --enable-admission-plugins NodeRestriction,OwnerReferencesPermissionEnforcement \
    "${audit[@]}" \
    --kubelet-client-certificate "$PKI/kubelet-client.crt" --kubelet-client-key "$PKI/kubelet-client.key" \
    --kubelet-certificate-authority "$PKI/ca.crt" --kubelet-preferred-address-types InternalIP --allow-privileged=true \
    --requestheader-client-ca-file "$PKI/ca.crt" --requestheader-allowed-names aggregator \
    --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
    --requestheader-extra-headers-prefix X-Remote-Extra- \
    --proxy-client-cert-file "$PKI/aggregator.crt" --proxy-client-key-file "$PKI/aggregator.key" \
    --profiling=false --endpoint-reconciler-type "$reconciler" ${LAB_EXTRA_APISERVER:-}
  wait_for 180 kube-apiserver "an answer of /readyz" "${KCTL[@]}" get --raw /readyz
}

start_kube-controller-manager() { # with the default of 20 calls a second, the first service accounts take 5 s, not 0.6 s
  spawn kube-controller-manager "$LAB_BIN/kube-controller-manager" --kubeconfig "$LAB_DIR/kcm.kubeconfig" \
    --authentication-kubeconfig "$LAB_DIR/kcm.kubeconfig" --authorization-kubeconfig "$LAB_DIR/kcm.kubeconfig" \
    --bind-address 127.0.0.1 --secure-port 0 --leader-elect=false --use-service-account-credentials \
    --service-account-private-key-file "$PKI/sa.key" --root-ca-file "$PKI/ca.crt" \
    --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key" \
    --controllers "*,-node-route-controller,-cloud-node-lifecycle-controller" \
    --allocate-node-cidrs=false --kube-api-qps 300 --kube-api-burst 600 --profiling=false
  wait_for 180 kube-controller-manager "the default service account" "${KCTL[@]}" -n default get serviceaccount default
}

up() {
  for b in etcd kube-apiserver kube-controller-manager kubectl; do [[ -x $LAB_BIN/$b ]] || die "no $LAB_BIN/$b"; done
  mkdir -p "$LAB_DIR"; chmod 700 "$LAB_DIR"
  alive kube-apiserver && die "already up in $LAB_DIR"
  local t0=$EPOCHREALTIME t1
  make_pki
  start_etcd
  start_kube-apiserver
  t1=$EPOCHREALTIME
  [[ ${LAB_KCM:-1} != 1 ]] || start_kube-controller-manager
  awk -v a="$t0" -v b="$t1" -v c="$EPOCHREALTIME" 'BEGIN{printf "ready: apiserver %.1f s, all %.1f s\n", b-a, c-a}'
  echo "KUBECONFIG=$LAB_DIR/admin.kubeconfig"
}

start() {
  case $1 in etcd | kube-apiserver | kube-controller-manager) ;; *) die "start what? etcd, kube-apiserver or kube-controller-manager" ;; esac
  alive "$1" && die "$1 is already up"
  "start_$1"
}

down() {
  local name
  for name in kube-controller-manager kube-apiserver etcd; do terminate $name; done
}

token() {
  local t; t=$("${KCTL[@]}" -n "$1" create token "$2" --duration 1h)
  sed -e "s|users:.*|users: [{name: lab, user: {token: $t}}]|" "$LAB_DIR/admin.kubeconfig"
}

status() {
  local name
  for name in etcd kube-apiserver kube-controller-manager; do
    if alive "$name"; then awk -v n="$name" '/VmRSS/{m=$2} END{printf "%-24s up, %d MB\n", n, m/1024}' "/proc/$(<"$LAB_DIR/$name.pid")/status"
    else printf '%-24s down\n' "$name"; fi
  done
}

case ${1:-} in
  up) up ;;
  start) start "${2:-}" ;;
  down) down ;;
  wipe) down; rm -rf "$LAB_DIR" ;;
  status) status ;;
  token) token "$2" "$3" ;;
  *) die "usage: $0 up | start NAME | down | wipe | status | token NAMESPACE SERVICEACCOUNT" ;;
esac
