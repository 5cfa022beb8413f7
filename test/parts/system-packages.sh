#!/usr/bin/env bash
# Provides the system programs of a test layer. As root on Debian and its derivatives, it installs the missing packages;
# otherwise the layer, or the tests of the dashboard, are skipped, and the reason names the command that installs them.
#   system-packages.sh integration | e2e
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=test/parts/progress.sh
source "$HERE/progress.sh"
LOG=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/apt.log

# program=package
NEEDED=(git=git make=make c++=g++ cmake=cmake python3=python3 openssl=openssl curl=curl redis-server=redis-server ip=iproute2
  flock=util-linux tar=tar gzip=gzip ps=procps)
[[ ${1:-} != e2e ]] || NEEDED+=(containerd=containerd runc=runc iptables=iptables conntrack=conntrack ethtool=ethtool socat=socat
  gcc=gcc nginx=nginx-light /usr/lib/cni/ptp=containernetworking-plugins)

# The tests of the dashboard use these; without them, those tests alone are skipped. A path may hold a pattern.
WANTED=(chromium=chromium '/usr/share/fonts/*/inter=fonts-inter' '/usr/lib/postgresql/*/bin/postgres=postgresql')

missing() { # missing PAIR...: prints the packages whose program or path is not there
  local pair
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || compgen -G "${pair%%=*}" >/dev/null || echo "${pair#*=}"
  done
}

is_root() { [[ $EUID == 0 ]] && command -v apt-get >/dev/null; }
hint() { echo "missing Debian packages; install them with: sudo apt-get install -y --no-install-recommends $*"; }

install() {
  apt-get install -y --no-install-recommends "$@" || { apt-get update && apt-get install -y --no-install-recommends "$@"; }
}

export DEBIAN_FRONTEND=noninteractive
mapfile -t packages < <(missing "${NEEDED[@]}")
if ((${#packages[@]})); then
  is_root || cannot "$(hint "${packages[@]}")"
  step "$LOG" "10 to 60 s" "apt-get install ${packages[*]}" install "${packages[@]}" || cannot "$(hint "${packages[@]}")"
fi
mapfile -t packages < <(missing "${WANTED[@]}")
if ((${#packages[@]})); then
  { is_root && step "$LOG" "20 to 90 s" "apt-get install ${packages[*]}" install "${packages[@]}"; } ||
    echo "setup: $(hint "${packages[@]}"); until then, the tests of the dashboard that need them are skipped"
fi

command -v go >/dev/null || cannot "Go is missing; install Go 1.26 or newer from https://go.dev/dl/ (Debian's own may be too old)"
version=$(go env GOVERSION); minor=${version#go1.}; minor=${minor%%[!0-9]*}
((minor >= 21)) || cannot "$version is too old: Go 1.26 or newer is needed (from 1.21 on Go fetches it by itself); see https://go.dev/dl/"
