#!/usr/bin/env bash
# Gets what `make ai-sdk` needs: llama-server, and the packages of the lockfile. Both go to ${XDG_CACHE_HOME:-~/.cache}/headgate, once.
# The last line that is printed is the folder of the packages. If the machine cannot run them, the exit code is 3 and $HEADGATE_SKIP_FILE says why.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PARTS=$HERE/../../parts
# shellcheck source=test/parts/progress.sh
source "$PARTS/progress.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate
SUM=$(sha256sum "$HERE/package-lock.json"); SUM=${SUM:0:16}
MODULES=$CACHE/ai-sdk-$SUM

install() {
  cp "$HERE/package.json" "$HERE/package-lock.json" "$1/"
  cd "$1"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel error
}

mkdir -p "$CACHE"
exec 9>"$CACHE/lock" # two runs at the same time must not build the same program twice
flock -n 9 || { echo "setup: another run is building into $CACHE, waiting for it"; flock 9; }
bash "$PARTS/build-llama.sh"
if [[ ! -d $MODULES ]]; then
  WORK=$(mktemp -d "$CACHE/ai-sdk-new-XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  step "$CACHE/ai-sdk.log" "2 to 20 s" "installing the Vercel AI SDK" install "$WORK"
  mv "$WORK" "$MODULES"
fi
flock -u 9
bash "$PARTS/in-netns.sh" --check
echo "$MODULES/node_modules"
