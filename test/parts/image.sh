#!/usr/bin/env bash
# Container images without a registry, a daemon or a base image: folders become a docker-archive tar for `ctr images import`.
#   image.sh program ROOT BINARY…                   put programs with the libraries they link below ROOT, as /usr/local/bin/NAME
#   image.sh pack OUT.tar {TAG[,TAG] CONFIG ROOT[:ROOT]}… one tar of several images; CONFIG is the "config" object of each (Entrypoint, Env …),
#                                                   each ROOT becomes one layer, stored once however many images have it
#   image.sh pause OUT.tar                          the sandbox image localhost/pause:dev (static C, needs gcc)
# The same input gives the same image id. Images run as uid 65532 and have no shell.
set -euo pipefail
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

library() { # library ROOT FILE: copies FILE below ROOT, to the path where the loader of this machine finds the file
  mkdir -p "$1${2%/*}"
  cp -L "$2" "$1$2"
}

program() {
  local root=$1 binary lib; shift
  mkdir -p "$root/usr/local/bin" "$root/etc"
  for binary in "$@"; do
    cp -L "$binary" "$root/usr/local/bin/"
    while read -r lib; do library "$root" "$lib"; done < <(ldd "$binary" | grep -oE '/[^ ]+')
  done
  # getaddrinfo loads these three at run time, so ldd does not list them
  lib=$(ldd "$1" | grep -oE '/[^ ]+/libc\.so\.6')
  for lib in "${lib%/*}"/{libnss_dns.so.2,libnss_files.so.2,libresolv.so.2}; do library "$root" "$lib"; done
  printf 'nonroot:x:65532:65532::/app:/sbin/nologin\n' >"$root/etc/passwd"
  printf 'nonroot:x:65532:\n' >"$root/etc/group"
  printf 'hosts: files dns\n' >"$root/etc/nsswitch.conf"
}

layer() { # layer ROOT: packs the folder once, and prints the digest, which is also the name of the tar file
  local root=$1 note digest
  note=$WORK/$(sha256sum <<<"$root" | cut -d' ' -f1).digest
  if [[ ! -f $note ]]; then
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$root" -cf "$WORK/new.tar" .
    digest=$(sha256sum "$WORK/new.tar" | cut -d' ' -f1)
    mv "$WORK/new.tar" "$WORK/tar/$digest.tar"
    echo "$digest" >"$note"
  fi
  cat "$note"
}

pack() {
  local out manifest='' ids layers root digest config tags; out=$(realpath -m "$1"); shift
  mkdir -p "$WORK/tar" "$(dirname "$out")"
  while (($# >= 3)); do
    ids='' layers=''
    for root in ${3//:/ }; do
      digest=$(layer "$root")
      ids+=",\"sha256:$digest\"" layers+=",\"$digest.tar\""
    done
    config=$(printf '{"architecture":"%s","os":"linux","created":"1970-01-01T00:00:00Z","config":%s,"rootfs":{"type":"layers","diff_ids":[%s]}}' \
      "$(arch)" "$2" "${ids#,}")
    digest=$(sha256sum <<<"$config" | cut -d' ' -f1)
    echo "$config" >"$WORK/tar/$digest.json"
    tags=$(sed 's/[^,]*/"&"/g' <<<"$1")
    manifest+=",{\"Config\":\"$digest.json\",\"RepoTags\":[$tags],\"Layers\":[${layers#,}]}"
    shift 3
  done
  echo "[${manifest#,}]" >"$WORK/tar/manifest.json"
  (cd "$WORK/tar" && tar -cf "$out.new" *)
  mv "$out.new" "$out" # last, so that an interrupted run does not look finished
}

arch() { case $(uname -m) in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) uname -m ;; esac; }

pause() {
  mkdir -p "$WORK/pause"
  cat >"$WORK/pause.c" <<'C'
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
static void stop(int s) { (void)s; _exit(0); }
static void reap(int s) { (void)s; while (waitpid(-1, 0, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGINT, stop); signal(SIGTERM, stop); signal(SIGCHLD, reap);
  for (;;) pause();
}
C
  gcc -Os -static -s -o "$WORK/pause/pause" "$WORK/pause.c"
  pack "$1" localhost/pause:dev '{"Entrypoint":["/pause"],"User":"65535:65535"}' "$WORK/pause"
}

case ${1:-} in program | pack | pause) "$@" ;; *) grep '^#  ' "$0" >&2; exit 2 ;; esac
