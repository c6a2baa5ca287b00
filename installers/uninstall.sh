#!/bin/sh
# Remove Foretype. Models, settings, indexes and logs stay unless --purge is given.
set -eu
unset CDPATH

usage() {
    cat <<'TEXT'
usage: sh installers/uninstall.sh [options]

  --yes          do not ask
  --purge        remove models, settings, indexes and logs as well
  --prefix DIR   the DIR that was given to install.sh
  --help         this text
TEXT
}

# shellcheck disable=SC2034 # read by common.sh
STOOD=$(pwd)
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/installers/common.sh"
. "$ROOT/installers/places.sh"

YES=0 PURGE=0
while [ $# -gt 0 ]; do
    case $1 in
        --yes | -y) YES=1 ;;
        --purge) PURGE=1 ;;
        --help | -h) usage && exit 0 ;;
        --prefix)
            [ $# -ge 2 ] || die '--prefix needs a value'
            PREFIX=$(absolute "$2") BIN=$PREFIX/bin
            shift
            ;;
        *) die "there is no option $1; see --help" ;;
    esac
    shift
done
cd /
VENV=$PREFIX/venv

# Folders of models, settings, logs and sockets as the program itself computes them, one a line. A models
# folder that FORETYPE_MODELS names may hold other things too and is never removed.
own_folders() {
    "$VENV/bin/python" -I -B -c '
from daemon import paths
print(paths.cache_dir(), paths.config_dir(), paths.state_dir(), paths.runtime_dir(), sep="\n")'
}

FOLDERS='' KEPT=''
if [ "$PURGE" = 1 ]; then
    FOLDERS=$(own_folders 2>/dev/null) || die "$VENV does not work any more; run install.sh --no-model once, then this again"
else
    KEPT=$(own_folders 2>/dev/null) || :
fi
if [ ! -d "$VENV" ] && ! is_our_launcher; then
    say "Foretype is not installed in $PREFIX"
    exit 0
fi
say 'This removes:' "  $VENV"
if is_our_launcher; then say "  $BIN/foretype"; fi
if [ -n "$FOLDERS" ]; then printf '%s\n' "$FOLDERS" | sed 's/^/  /'; fi
if [ "$YES" = 0 ]; then
    printf 'Go on? [y/N] '
    read -r answer || answer=n
    case $answer in [yY]*) ;; *) say 'Nothing was removed.' && exit 1 ;; esac
fi
if [ -x "$VENV/bin/python" ]; then "$VENV/bin/python" -I -B -m daemon.cli.main down >/dev/null 2>&1 || :; fi
if is_our_launcher && grep -qF "$VENV/bin/python" "$BIN/foretype"; then rm -f "$BIN/foretype"; fi
rm -rf "$VENV"
rm -f "$PREFIX/installed" "$PREFIX/.lock" "$PREFIX/install.log" "$PREFIX"/*-build.log
for folder in "$CACHE"/pip-*; do if [ -d "$folder" ]; then rm -rf "$folder"; fi; done
if [ -n "$FOLDERS" ]; then
    printf '%s\n' "$FOLDERS" | while IFS= read -r folder; do rm -rf "$folder"; done
fi
rmdir "$BIN" "$PREFIX" 2>/dev/null || :
if [ "$PURGE" = 1 ]; then say 'Foretype, its models and its settings are gone.'; else
    say 'Foretype is gone. Models, settings, indexes and logs stay:'
    printf '%s\n' "$KEPT" | while IFS= read -r folder; do if [ -d "$folder" ]; then say "  $folder"; fi; done
fi
