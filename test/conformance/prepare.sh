#!/usr/bin/env bash
# Gets what `make conformance` needs: llama-server, the tests of the same version of llama.cpp, and a virtual environment with the Python packages of
# the lockfile. All of it goes to ${XDG_CACHE_HOME:-~/.cache}/headgate, once. The last line that is printed has the folder of the tests, the Python
# program and the folder of llama-server.
# If the machine cannot run the tests, the exit code is 3 and $HEADGATE_SKIP_FILE says why.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PARTS=$HERE/../parts
# shellcheck source=test/parts/progress.sh
source "$PARTS/progress.sh"
# shellcheck source=test/parts/llama-source.sh
source "$PARTS/llama-source.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate
SUM=$(sha256sum "$HERE/requirements.txt"); SUM=${SUM:0:16}
VENV=$CACHE/conformance-$SUM
SOURCE=$LLAMA_HOME/source

unpack() {
  fetch_llama "$1"
  mkdir "$1/source"
  git -C "$1/src" archive HEAD tools/server/tests models/templates | tar x -C "$1/source"
}

install() {
  python3 -m venv "$1"
  "$1/bin/python" -m pip install --disable-pip-version-check --quiet --require-hashes --only-binary :all: -r "$HERE/requirements.txt"
}

for program in git python3 npm tar; do command -v "$program" >/dev/null || cannot "the program $program is missing"; done
python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  cannot "Python 3.11 or newer with the module venv is missing; on Debian: sudo apt-get install -y --no-install-recommends python3-venv"
mkdir -p "$CACHE" "$LLAMA_HOME"
exec 9>"$CACHE/lock" # two runs at the same time must not build the same program twice
flock -n 9 || { echo "setup: another run is building into $CACHE, waiting for it"; flock 9; }
bash "$PARTS/build-llama.sh"
if [[ ! -d $SOURCE || ! -d $VENV ]]; then
  WORK=$(mktemp -d "$CACHE/conformance-new-XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  if [[ ! -d $SOURCE ]]; then
    step "$LLAMA_HOME/source.log" "10 to 60 s" "fetching the tests of llama.cpp (35 MB)" unpack "$WORK"
    mv "$WORK/source" "$SOURCE"
  fi
  if [[ ! -d $VENV ]]; then
    step "$CACHE/conformance.log" "10 to 60 s" "installing Python packages" install "$WORK/venv"
    mv "$WORK/venv" "$VENV" # programs in its bin/ still name the old path; bin/python does not
  fi
fi
flock -u 9
bash "$PARTS/in-netns.sh" --check
echo "$SOURCE/tools/server/tests $VENV/bin/python $LLAMA_HOME"
