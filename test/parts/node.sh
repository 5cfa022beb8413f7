#!/usr/bin/env bash
# One real Kubernetes node for tests: the control plane of control-plane.sh, plus containerd, kube-scheduler, kubelet, kube-proxy and
# CoreDNS, all in network and mount namespaces of their own, so that the machine stays unchanged. Needs root, containerd, runc,
# containernetworking-plugins, iptables, conntrack, gcc. Runs on cgroup v1 without CAP_SYS_RESOURCE.
#   node.sh up            start everything, wait until the node is Ready
#   node.sh down          stop every process by its recorded pid, unmount, remove the cgroups and the state
#   node.sh guard PID     bring the node down when process PID has ended, however it ended (returns at once)
#   node.sh exec CMD…     run a command inside the namespaces with KUBECONFIG set: node.sh exec kubectl get pods -A
#   node.sh load FILE…    import image tars (images.sh); pods use them with imagePullPolicy: Never
#   node.sh status        processes and their resident memory
#   node.sh check         print the missing programs and rights, one a line; no output = `up` can work
# Variables: LAB_BIN binaries; LAB_DIR state (/tmp/headgate-node). Addresses: node 10.250.0.1, pods 10.251.0.0/24, services 10.96.0.0/16.
# NetworkPolicy is not enforced here, and there are neither load balancers nor volumes that outlive a pod.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LAB_BIN=${LAB_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/headgate/kube/v1.36.3/bin}
export LAB_DIR=${LAB_DIR:-/tmp/headgate-node}
export LAB_IP=10.250.0.1 LAB_PORT=6443 LAB_CIDR=10.96.0.0/16
NODE=lab-node
PKI=$LAB_DIR/pki
SOCK=$LAB_DIR/containerd.sock
export PATH=$PATH:/usr/sbin:/sbin
# every mounted v1 hierarchy, including systemd: kubelet needs all of them
mapfile -t CONTROLLERS < <(awk '$3=="cgroup" {n=split($2, p, "/"); print p[n]}' /proc/self/mounts)

# Folders outside of $LAB_DIR to which the programs write. Our mount namespace has its own ones, which end with the namespace.
OWN_FOLDERS=(/var/log/pods /var/log/containers /var/lib/cni /var/lib/kubelet /run/containerd /run/netns)

die() { echo "node: $*" >&2; exit 1; }
# shellcheck source=test/parts/process.sh
source "$HERE/process.sh"
# nsenter -m changes the working directory to /, and env -C restores it: `helm install ./chart` must work
inside() { nsenter -t "$(<"$LAB_DIR/ns.pid")" -n -m env -C "$PWD" "PATH=$LAB_BIN:/usr/sbin:/usr/bin:/sbin:/bin" "KUBECONFIG=$LAB_DIR/admin.kubeconfig" "$@"; }
spawn() { # spawn NAME ARGV…: starts a program inside the namespaces, detached; nsenter and setsid use exec, so the recorded pid is the program's
  local name=$1; shift
  ( close_inherited
    exec nsenter -t "$(<"$LAB_DIR/ns.pid")" -n -m setsid env "PATH=$LAB_BIN:/usr/sbin:/usr/bin:/sbin:/bin" "$@" >>"$LAB_DIR/$name.log" 2>&1 </dev/null ) &
  echo $! >"$LAB_DIR/$name.pid"
}
cert() { # cert NAME SUBJECT SAN
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$PKI/$1.key" -out "$PKI/$1.csr" -subj "$2" 2>/dev/null
  printf 'extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName=%s\n' "$3" >"$PKI/$1.ext"
  openssl x509 -req -in "$PKI/$1.csr" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -set_serial "0x$(openssl rand -hex 8)" -days 3650 \
    -extfile "$PKI/$1.ext" -out "$PKI/$1.crt" 2>/dev/null
}
ready() { [[ $(inside kubectl get node $NODE -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}') == True ]]; }

check() {
  local b
  [[ $EUID == 0 ]] || echo "root rights (network, mount and cgroup namespaces)"
  [[ $(uname -s) == Linux ]] || echo "Linux"
  for b in containerd ctr runc iptables conntrack openssl gcc nsenter; do command -v $b >/dev/null || echo "program $b"; done
  [[ -x /usr/lib/cni/ptp ]] || echo "containernetworking-plugins"
  ((${#CONTROLLERS[@]})) || echo "cgroup v1 hierarchies"
  for b in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy coredns kubectl helm; do
    [[ -x $LAB_BIN/$b ]] || echo "$LAB_BIN/$b"
  done
}

namespaces() {
  ( close_inherited; exec setsid unshare -n -m sleep infinity >/dev/null 2>&1 </dev/null ) &
  echo $! >"$LAB_DIR/ns.pid"
  until [[ $(readlink /proc/"$(<"$LAB_DIR/ns.pid")"/ns/net) != "$(readlink /proc/self/ns/net)" ]]; do sleep 0.05; done
  inside bash -euc "
    for d in ${OWN_FOLDERS[*]}; do
      [[ -d \$d ]] || { mkdir -p \$d; echo \$d >>$LAB_DIR/made-folders; }
      mount -t tmpfs tmpfs \$d
    done
    mount --make-rshared /                       # kubelet wants shared propagation
    ip link set lo up
    ip link add node0 type bridge && ip addr add $LAB_IP/24 dev node0 && ip link set node0 up
    ip route add default via 10.250.0.254 dev node0   # leads nowhere; kubelet and kube-proxy want one
    sysctl -qw net.ipv4.ip_forward=1"
}

cgroups() { # a subtree of our own, so that the other cgroups of the machine stay unchanged
  local c
  for c in "${CONTROLLERS[@]}"; do mkdir -p "/sys/fs/cgroup/$c/lab"; done
  for c in cpuset.cpus cpuset.mems; do cat "/sys/fs/cgroup/cpuset/$c" >"/sys/fs/cgroup/cpuset/lab/$c"; done
}

containerd_config() {
  cat >"$LAB_DIR/containerd.toml" <<TOML
version = 2
root = "$LAB_DIR/containerd"
state = "$LAB_DIR/containerd-state"
oom_score = 0
[grpc]
  address = "$SOCK"
[plugins."io.containerd.internal.v1.opt"]
  path = "$LAB_DIR/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:dev"
  restrict_oom_score_adj = true     # without CAP_SYS_RESOURCE runc cannot lower oom_score_adj and every sandbox fails
[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "$LAB_DIR/cni"
TOML
  # ptp, not bridge: on a bridge the reply of a pod reached through a ClusterIP would bypass the address translation without br_netfilter
  cat >"$LAB_DIR/cni/10-lab.conflist" <<JSON
{"cniVersion":"1.0.0","name":"lab","plugins":[
 {"type":"ptp","ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.251.0.0/24"}]],"routes":[{"dst":"0.0.0.0/0"}],"dataDir":"$LAB_DIR/cni-state"}},
 {"type":"portmap","capabilities":{"portMappings":true}}]}
JSON
}

kubelet_config() {
  echo "nameserver $LAB_IP" >"$LAB_DIR/resolv.conf"
  cat >"$LAB_DIR/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://$SOCK
cgroupDriver: cgroupfs
cgroupRoot: /lab
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: [pods]
evictionHard: { memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%, imagefs.inodesFree: 1% }
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
resolvConf: $LAB_DIR/resolv.conf
clusterDNS: [$LAB_IP]
clusterDomain: cluster.local
staticPodPath: $LAB_DIR/manifests
authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: $PKI/ca.crt } }
authorization: { mode: Webhook }
tlsCertFile: $PKI/kubelet.crt
tlsPrivateKeyFile: $PKI/kubelet.key
registerNode: true
nodeStatusUpdateFrequency: 2s
syncFrequency: 10s
YAML
  sed "s|users:.*|users: [{name: lab, user: {client-certificate: $PKI/kubelet.crt, client-key: $PKI/kubelet.key}}]|" \
    "$LAB_DIR/admin.kubeconfig" >"$LAB_DIR/kubelet.kubeconfig"
}

configs() {
  mkdir -p "$LAB_DIR/cni" "$LAB_DIR/manifests"
  containerd_config
  kubelet_config
  cat >"$LAB_DIR/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: $NODE
clusterCIDR: 10.251.0.0/24
clientConnection: { kubeconfig: $LAB_DIR/proxy.kubeconfig }
conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
iptables: { minSyncPeriod: 200ms }
YAML
  cat >"$LAB_DIR/Corefile" <<CORE
.:53 {
  bind $LAB_IP
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $LAB_DIR/admin.kubeconfig
    ttl 5
  }
  cache 5
}
CORE
}

up() {
  [[ ! -f $LAB_DIR/ns.pid ]] || die "already up, or a stopped run left its state: node.sh down"
  local missing; missing=$(check); [[ -z $missing ]] || die "missing here: ${missing//$'\n'/, }"
  mkdir -p "$LAB_DIR"; chmod 700 "$LAB_DIR"
  local t0=$EPOCHREALTIME
  namespaces; cgroups
  inside "$HERE/control-plane.sh" up
  local t1=$EPOCHREALTIME
  cert kubelet "/O=system:nodes/CN=system:node:$NODE" "DNS:$NODE,IP:$LAB_IP"
  configs
  spawn containerd containerd --config "$LAB_DIR/containerd.toml"
  wait_for 20 containerd "its first answer" inside ctr -a "$SOCK" version
  "$HERE/image.sh" pause "$LAB_DIR/pause.tar"
  load "$LAB_DIR/pause.tar" >/dev/null
  spawn kube-scheduler kube-scheduler --kubeconfig "$LAB_DIR/scheduler.kubeconfig" --leader-elect=false --bind-address 127.0.0.1 --profiling=false
  spawn kube-proxy kube-proxy --config "$LAB_DIR/proxy.yaml"
  spawn kubelet kubelet --config "$LAB_DIR/kubelet.yaml" --kubeconfig "$LAB_DIR/kubelet.kubeconfig" --hostname-override $NODE \
    --node-ip $LAB_IP --root-dir "$LAB_DIR/kubelet" --cert-dir "$PKI"
  spawn coredns coredns -conf "$LAB_DIR/Corefile"
  wait_for 90 kubelet "a Ready node" ready
  awk -v a="$t0" -v b="$t1" -v c="$EPOCHREALTIME" 'BEGIN{printf "node: control plane %.1f s, Ready %.1f s\n", b-a, c-a}'
}

load() { # imports images as `kind load image-archive` does: from a pipe, of every platform
  local f
  for f in "$@"; do inside ctr -a "$SOCK" -n k8s.io images import --all-platforms --digests - <"$f"; done
}

guard() {
  ( close_inherited
    exec setsid bash -c 'while [[ -d /proc/$1 ]] && ! grep -q ") Z " "/proc/$1/stat" 2>/dev/null; do sleep 1; [[ -f $LAB_DIR/ns.pid ]] || exit 0; done
      exec "$0" down' "$HERE/node.sh" "$1" >/dev/null 2>&1 </dev/null ) &
}

tasks() { # kills the remaining containers, then deletes their records
  local t
  for t in $(inside ctr -a "$SOCK" -n k8s.io tasks ls -q 2>/dev/null); do inside ctr -a "$SOCK" -n k8s.io tasks kill -s SIGKILL "$t" 2>/dev/null || true; done
  sleep 1
  for t in $(inside ctr -a "$SOCK" -n k8s.io tasks ls -q 2>/dev/null); do inside ctr -a "$SOCK" -n k8s.io tasks delete -f "$t" >/dev/null 2>&1 || true; done
}

down() {
  [[ -f $LAB_DIR/ns.pid ]] || { echo "node: not up"; return; }
  local p m d c
  for p in coredns kube-scheduler kubelet kube-proxy; do terminate $p; done
  tasks # before the API server, which would wait for the watches of the containers
  "$HERE/control-plane.sh" down
  terminate containerd
  for p in /proc/[0-9]*; do # shims carry our socket in their arguments
    [[ $(cat "$p/comm" 2>/dev/null) == containerd-shim ]] && tr '\0' ' ' <"$p/cmdline" 2>/dev/null | grep -q "$SOCK" && kill -KILL "${p#/proc/}" 2>/dev/null || true
  done
  for m in $(inside cat /proc/self/mounts | awk -v d="$LAB_DIR/" 'index($2, d)==1 {print $2}' | sort -r); do inside umount -l "$m" 2>/dev/null || true; done
  kill "$(<"$LAB_DIR/ns.pid")" 2>/dev/null || true # with their last process, the namespaces end, and with them their links and rules
  for c in "${CONTROLLERS[@]}" unified; do # runc also leaves a folder in the empty v2 hierarchy
    while read -r d; do rmdir "$d" 2>/dev/null || echo "node: left $d"; done < <(find "/sys/fs/cgroup/$c/lab" -depth -type d 2>/dev/null)
  done
  [[ -z ${LAB_KEEP_LOGS:-} ]] || { mkdir -p "$LAB_KEEP_LOGS"; cp "$LAB_DIR"/*.log "$LAB_KEEP_LOGS"/ || true; }
  while read -r d; do rmdir "$d" 2>/dev/null || true; done < <(cat "$LAB_DIR/made-folders" 2>/dev/null)
  rm -rf --one-file-system "$LAB_DIR"
}

status() {
  local f n
  for f in "$LAB_DIR"/*.pid; do
    n=$(basename "$f" .pid)
    awk -v n="$n" '/VmRSS/{printf "%-24s %d MB\n", n, $2/1024; ok=1} END{if(!ok)print n, "down"}' "/proc/$(<"$f")/status" 2>/dev/null || echo "$n down"
  done
}

case ${1:-} in
  up | down | status | check) "$1" ;;
  guard) guard "${2:?pid}" ;;
  exec | load) c=$1; shift; if [[ $c == load ]]; then load "$@"; else inside "$@"; fi ;;
  *) grep '^#   ' "$0" >&2; exit 2 ;;
esac
