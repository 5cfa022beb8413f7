#!/usr/bin/env bash
# Container images as tar files below $OUT (dist/images), from the libraries of this Linux machine and the bundles in $DIST (dist, `make build`).
# No container engine is needed. `kind load image-archive` and `ctr images import` take the files.
#   images.sh headgate       the programs of the project and the stub model server (headgate.tar); their tags are `dev` and the chart's appVersion
#   images.sh parts          what the tests of the one-node cluster put around them (parts.tar)
#   images.sh                both
#   images.sh files PROGRAM  print the files in the image of `gateway`, `operator` or `dashboard`, one a line, sorted; `/app/web` stands for a folder
# Needs redis-server, nginx and llama-server for parts.tar; LLAMA_SERVER and LLAMA_MODEL name the latter and its model file.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
REPO=$(cd "$HERE/../.." && pwd)
DIST=${DIST:-$REPO/dist}
OUT=${OUT:-$DIST/images}
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

die() { echo "images: $*" >&2; exit 1; }
[[ $(uname -s) == Linux ]] || die "the images hold Linux programs of this machine, which runs $(uname -s); build them on Linux, or with docker (charts/headgate/README.md)"
VERSION=$(sed -n 's/^appVersion: //p' "$REPO/charts/headgate/Chart.yaml")
tags() { echo "localhost/headgate/$1:$VERSION,localhost/headgate/$1:dev"; } # tags NAME: of an image of ours

node_binary() {
  local arch; arch=$(uname -m); arch=${arch/x86_64/x64}; arch=${arch/aarch64/arm64}
  echo "$REPO/node_modules/node-linux-$arch/bin/node"
}

runtime() { [[ -d $WORK/node ]] || "$HERE/image.sh" program "$WORK/node" "$(node_binary)"; }

app() { # app NAME BUNDLE [MORE …]: the one layer that differs between our programs
  local file
  for file in "${@:2}"; do [[ -f $file ]] || die "no $file: run \`make build\` first"; done
  mkdir -p "$WORK/$1/app"
  cp "$2" "$WORK/$1/app/$1.js"
  [[ $# -lt 3 ]] || cp "${@:3}" "$WORK/$1/app/"
  echo '{"type":"module"}' >"$WORK/$1/app/package.json"
}

node_config() { # node_config NAME: the entrypoint comes from the Dockerfile, if the program has one
  local entrypoint='["/usr/local/bin/node","/app/'$1'.js"]'
  [[ ! -f $REPO/$1/Dockerfile ]] || entrypoint=$(sed -n 's/^ENTRYPOINT //p' "$REPO/$1/Dockerfile")
  printf '{"Entrypoint":%s,"User":"65532:65532","WorkingDir":"/app","Env":["PATH=/usr/local/bin","NODE_ENV=production"]}' "$entrypoint"
}

files() {
  runtime
  touch "$WORK"/{bundle,body-worker,payments}.js "$WORK/$1.notices.txt" # the list does not depend on their content
  case $1 in
    gateway) app gateway "$WORK"/{bundle.js,body-worker.js,gateway.notices.txt} ;;
    dashboard) app dashboard "$WORK"/{bundle.js,payments.js,dashboard.notices.txt} ;;
    *) app "$1" "$WORK/bundle.js" "$WORK/$1.notices.txt" ;;
  esac
  [[ $1 != dashboard ]] || touch "$WORK/dashboard/app/web" # the names of the built pages hold hashes
  (cd "$WORK/node" && find . -type f; cd "$WORK/$1" && find . -type f) | sed 's|^\.||' | sort
}

bundle() { # bundle SOURCE NAME: one ES module with all that it imports
  "$REPO/node_modules/.bin/esbuild" "$REPO/$1" --bundle --platform=node --target=node24 --format=esm --log-level=warning \
    --banner:js='import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' --outfile="$WORK/$2.js"
}

headgate() {
  runtime
  app gateway "$DIST"/{gateway.js,body-worker.js,gateway.notices.txt}
  app operator "$DIST"/{operator.js,operator.notices.txt}
  app dashboard "$DIST"/{dashboard.js,payments.js,dashboard.notices.txt}
  [[ -f $DIST/web/index.html ]] || die "no $DIST/web: run \`make build\` first"
  cp -r "$DIST/web" "$WORK/dashboard/app/web"
  bundle examples/stub-model/stub-model-server.ts stub-model
  app stub-model "$WORK/stub-model.js"
  "$HERE/image.sh" pack "$OUT/headgate.tar" \
    "$(tags gateway)" "$(node_config gateway)" "$WORK/node:$WORK/gateway" \
    "$(tags operator)" "$(node_config operator)" "$WORK/node:$WORK/operator" \
    "$(tags dashboard)" "$(node_config dashboard)" "$WORK/node:$WORK/dashboard" \
    "$(tags stub-model)" "$(node_config stub-model)" "$WORK/node:$WORK/stub-model"
  echo "images: $OUT/headgate.tar has localhost/headgate/{gateway,operator,dashboard,stub-model}:$VERSION"
}

trial_redis() { # the image name of the trial Redis in the chart; the node of the tests pulls no image, so parts.tar has a redis-server of this name
  sed -n "s|.*repository: redis, tag: '\([^']*\)'.*|docker.io/library/redis:\1|p" "$REPO/charts/headgate/values.yaml"
}

parts() {
  local server=${LLAMA_SERVER:-} model=${LLAMA_MODEL:-} plain='"User":"65532:65532","Env":["PATH=/usr/local/bin"]'
  [[ -n $server ]] || server=$(compgen -G "$CACHE/llama-*/build/bin/llama-server" | sort | tail -n 1) || die "no llama-server below $CACHE"
  [[ -n $model ]] || model=$(compgen -G "$CACHE/llama-*/tiny.gguf" | sort | tail -n 1) || die "no tiny.gguf below $CACHE"
  runtime
  bundle test/e2e/client.ts client
  bundle test/e2e/identity-providers.ts identity-providers
  app client "$WORK"/{client,identity-providers}.js
  "$HERE/image.sh" program "$WORK/redis" "$(command -v redis-server)"
  "$HERE/image.sh" program "$WORK/nginx" "$(command -v nginx || echo /usr/sbin/nginx)"
  "$HERE/image.sh" program "$WORK/llama" "$server"
  mkdir -p "$WORK/llama/models"
  cp "$model" "$WORK/llama/models/tiny.gguf"
  "$HERE/image.sh" pack "$OUT/parts.tar" \
    localhost/client:dev "$(node_config client)" "$WORK/node:$WORK/client" \
    "localhost/redis:dev,$(trial_redis)" "{\"Entrypoint\":[\"redis-server\"],$plain}" "$WORK/redis" \
    localhost/nginx:dev "{\"Entrypoint\":[\"nginx\"],$plain}" "$WORK/nginx" \
    localhost/llama-server:dev "{\"Entrypoint\":[\"llama-server\"],$plain}" "$WORK/llama"
}

case ${1:-all} in
  all) headgate; parts; du -h "$OUT"/*.tar ;;
  headgate | parts) "$1" ;;
  files) files "${2:?gateway, operator or dashboard}" ;;
  config) node_config "${2:?gateway, operator or dashboard}" ;;
  *) grep '^#  ' "$0" >&2; exit 2 ;;
esac
