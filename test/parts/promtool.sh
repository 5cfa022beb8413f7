#!/usr/bin/env bash
# Prints the path of promtool, the program that checks and tests rule files of Prometheus. If promtool is not installed, this script takes it from
# Debian's package without installing the package, since an installed Prometheus would run. Optional: without promtool, the tests that need it are skipped.
set -euo pipefail
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/promtool
if found=$(command -v promtool); then echo "$found"; exit; fi
if [[ ! -x $CACHE/promtool ]]; then
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo "promtool: not installed, and there is no apt-get to fetch it with" >&2; exit 1; }
  mkdir -p "${CACHE%/*}"
  new=$(mktemp -d "${CACHE%/*}/.promtool-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  cd "$new"
  apt-get download prometheus >&2 || { [[ $EUID == 0 ]] && apt-get update >&2 && apt-get download prometheus >&2; }
  dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool
  mkdir -p "$CACHE"
  mv usr/bin/promtool "$CACHE/promtool"
fi
echo "$CACHE/promtool"
