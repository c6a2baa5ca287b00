#!/bin/sh
# Prepare a folder from which install.sh --offline DIR installs without any network.
set -eu
unset CDPATH

usage() {
    cat <<'TEXT'
usage: sh installers/bundle.sh DIR [options]

  --model NAME      put this catalogue model into DIR (may be given more than once; default: the
                    default model)
  --no-model        packages only
  --backend NAME    auto (default), cpu, cuda, metal or vulkan
  --python PATH     the Python 3.11 to 3.14 that the other machine has, too
  --help            this text

DIR is good for machines with the same system, processor family, Python 3.x and backend. Take it and the
checkout there and run: sh installers/install.sh --offline DIR
TEXT
}

# shellcheck disable=SC2034 # read by common.sh
STOOD=$(pwd)
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/installers/common.sh"
. "$ROOT/installers/backend.sh"
. "$ROOT/installers/places.sh"

TARGET='' WISH=auto NAMED_PYTHON='' MODELS='' MODEL=1
while [ $# -gt 0 ]; do
    case $1 in
        --help | -h) usage && exit 0 ;;
        --no-model) MODEL=0 ;;
        --model | --backend | --python)
            [ $# -ge 2 ] || die "$1 needs a value; see --help"
            case $1 in
                --model) MODELS="$MODELS $2" ;;
                --backend) WISH=$2 ;;
                --python) NAMED_PYTHON=$(command -v "$2") || die "there is no $2" ;;
            esac
            shift
            ;;
        -*) die "there is no option $1; see --help" ;;
        *) [ -z "$TARGET" ] || die 'one folder, please'; TARGET=$(absolute "$1") ;;
    esac
    shift
done
[ -n "$TARGET" ] || die 'name a folder; see --help'
[ -z "$NAMED_PYTHON" ] || NAMED_PYTHON=$(absolute "$NAMED_PYTHON")
cd /

pip() { "$WORK/venv/bin/python" -I -m pip "$@"; }

gather_wheels() {
    prepare_build
    logged "llama-cpp-python for $BACKEND" "$LOG" \
        pip wheel ${PIP_EXTRA:+--cache-dir "$PIP_EXTRA"} -c "$CONSTRAINTS" -w "$TARGET/wheels" "$ENGINE" || return 1
    # hatchling and its needs build Foretype itself from the checkout on the other machine.
    logged 'packages' "$LOG" pip wheel -c "$CONSTRAINTS" --find-links "$TARGET/wheels" -w "$TARGET/wheels" \
        "$ROOT" hatchling || return 1
    rm -f "$TARGET"/wheels/foretype-*.whl
}

gather_models() {
    logged 'program' "$LOG" pip install --no-index --find-links "$TARGET/wheels" "$ROOT" || return 1
    mkdir -p "$TARGET/models"
    default=$("$WORK/venv/bin/python" -I -c 'from daemon import settings; print(settings.Settings().engine.model)')
    for name in ${MODELS:-$default}; do
        "$WORK/venv/bin/python" -I -m daemon.cli.main models pull "$name" || return 1
        file=$("$WORK/venv/bin/python" -I -c "$FIND_MODEL" "$name")
        cp "$file" "$TARGET/models/$name.gguf" || return 1
    done
}

FIND_MODEL='
import sys
from daemon.models import catalogue
print(catalogue.file_of(catalogue.find(sys.argv[1])))'

find_python "$NAMED_PYTHON"
choose_backend "$WISH"
say "Python:  $PYTHON" "Backend: $BACKEND ($WHY)" "Folder:  $TARGET"
mkdir -p "$TARGET/wheels" || die "$TARGET cannot be made"
WORK=$(mktemp -d)
LOG=$TARGET/bundle.log
: >"$LOG"
"$PYTHON" -I -m venv "$WORK/venv" >>"$LOG" 2>&1 || { explain "$LOG"; die 'the environment could not be made'; }
result=0
gather_wheels || result=1
if [ "$result$MODEL" = 01 ]; then gather_models || result=1; fi
rm -rf "$WORK"
[ "$result" = 0 ] || { explain "$LOG"; die 'the folder is not complete'; }
{
    "$PYTHON" -I -c 'import sys; print("python=%d.%d" % sys.version_info[:2])'
    printf 'backend=%s\n' "$BACKEND"
} >"$TARGET/bundle"
say "Ready. On the other machine: sh installers/install.sh --offline '$TARGET'"
