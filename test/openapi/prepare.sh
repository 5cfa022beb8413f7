#!/usr/bin/env bash
# Gets what `make openapi` needs: a virtual environment with the Python packages of the lockfile, which goes to
# ${XDG_CACHE_HOME:-~/.cache}/headgate, once. The last line that is printed is the Python program.
# If the machine cannot run it, the exit code is 3 and $HEADGATE_SKIP_FILE says why.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PARTS=$HERE/../parts
# shellcheck source=test/parts/progress.sh
source "$PARTS/progress.sh"

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/headgate
SUM=$(sha256sum "$HERE/requirements.txt"); SUM=${SUM:0:16}
VENV=$CACHE/openapi-$SUM

install() {
  python3 -m venv "$1"
  "$1/bin/python" -m pip install --disable-pip-version-check --quiet --require-hashes --only-binary :all: -r "$HERE/requirements.txt"
}

python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  cannot "Python 3.11 or newer with the module venv is missing; on Debian: sudo apt-get install -y --no-install-recommends python3-venv"
command -v redis-server >/dev/null ||
  cannot "redis-server is missing; on Debian: sudo apt-get install -y --no-install-recommends redis-server"
mkdir -p "$CACHE"
exec 9>"$CACHE/lock" # two runs at the same time must not build the same program twice
flock -n 9 || { echo "setup: another run is building into $CACHE, waiting for it"; flock 9; }
if [[ ! -d $VENV ]]; then
  WORK=$(mktemp -d "$CACHE/openapi-new-XXXXXX")
  trap 'rm -rf "$WORK"' EXIT
  step "$CACHE/openapi.log" "1 min" "installing Python packages" install "$WORK/venv"
  mv "$WORK/venv" "$VENV" # programs in its bin/ still name the old path; bin/python does not
fi
flock -u 9
bash "$PARTS/in-netns.sh" --check
echo "$VENV/bin/python"
