#!/usr/bin/env bash
# Gets what `make agents` needs: llama-server, and the coding agents of the lockfile below agents/ (1.2 GB). Both go to
# ${XDG_CACHE_HOME:-~/.cache}/headgate, once. The last line that is printed has the folder of the agents and the folder of llama-server.
# If the machine cannot run the agents, the exit code is 3 and $HEADGATE_SKIP_FILE says why.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PARTS=$HERE/../parts
# shellcheck source=test/parts/progress.sh
source "$PARTS/progress.sh"
# shellcheck source=test/parts/llama-source.sh
source "$PARTS/llama-source.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate
SUM=$(sha256sum "$HERE/agents/package-lock.json"); SUM=${SUM:0:16}
AGENTS=$CACHE/agents-$SUM

install() { # without scripts: the programs are inside the packages
  cp "$HERE/agents/package.json" "$HERE/agents/package-lock.json" "$1/"
  cd "$1"
  npm ci --ignore-scripts --no-audit --no-fund --loglevel error
}

[[ $(uname -s) == Linux ]] || cannot "the agents are run on Linux only"
mkdir -p "$CACHE"
exec 9>"$CACHE/lock" # two runs at the same time must not build the same program twice
flock -n 9 || { echo "setup: another run is building into $CACHE, waiting for it"; flock 9; }
bash "$PARTS/build-llama.sh"
if [[ ! -d $AGENTS ]]; then
  WORK=$(mktemp -d "$CACHE/agents-new-XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  step "$CACHE/agents.log" "20 s to 3 min" "installing the coding agents (1.2 GB)" install "$WORK" || cannot "the coding agents could not be installed; the log is above"
  mv "$WORK" "$AGENTS"
fi
flock -u 9
bash "$PARTS/in-netns.sh" --check
echo "$AGENTS/node_modules $LLAMA_HOME"
