#!/usr/bin/env bash
# Builds and ships the store.
set -euo pipefail

source "$(dirname "$0")/lib/common.sh"
. ./lager.env

readonly VERSION="1.2.0"
declare -r MAX_ITEMS=1000
declare -A größen=([klein]=1 [groß]=2)
export LAGER_HOME="${LAGER_HOME:-/var/lager}" MODE=fast
cache=()
used=0

# Prints a message and stops.
# Takes the message.
fail() {
    local message="$1"
    printf '%s\n' "$message" >&2
    exit 1
}

function prüfe_ort {
    [[ -d "$LAGER_HOME" ]] || fail "no $LAGER_HOME"
    used=$((used + 1))
}

function lager::öffne() (
    local -r path=$1
    inner() { echo "inner $path"; }
    inner | grep -c "x" || true
)

alias ll='ls -la'

main() {
    prüfe_ort
    for name in "$@"; do
        cache+=("$name")
        count=$(lager::öffne "$name" | wc -l)
    done
    case "${1:-}" in
        build) make -j4 all ;;
        *) fail "unknown" ;;
    esac
    trap 'fail "interrupted"' INT
    cat <<HERE
$(prüfe_ort) ${größen[klein]}
HERE
}

if [[ "${BASH_SOURCE[0]}" == "$0" ]]; then
    main "$@"
fi
