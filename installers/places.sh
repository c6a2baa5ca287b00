# Where the installation lies, and the launcher: read with `.` by install.sh and uninstall.sh after common.sh.
# shellcheck shell=sh disable=SC2034

[ -n "${HOME:-}" ] || die 'HOME is not set'
if [ -n "${FORETYPE_HOME:-}" ]; then
    PREFIX=$(absolute "$FORETYPE_HOME")/app CACHE=$(absolute "$FORETYPE_HOME")/cache
elif [ "$SYSTEM" = Darwin ]; then
    PREFIX="$HOME/Library/Application Support/foretype" CACHE=$HOME/Library/Caches/foretype
else
    PREFIX=${XDG_DATA_HOME:-$HOME/.local/share}/foretype CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/foretype
fi
BIN=${XDG_BIN_HOME:-$HOME/.local/bin}
MARK='# Foretype launcher, written by installers/install.sh'

is_our_launcher() {
    [ -f "$BIN/foretype" ] && [ "$(sed -n 2p "$BIN/foretype")" = "$MARK" ]
}

# -I: neither the current directory nor PYTHONPATH can put a module of their own in front of ours.
launcher_text() {
    quoted=$(printf '%s' "$VENV/bin/python" | sed "s/'/'\\\\''/g")
    printf '%s\n' '#!/bin/sh' "$MARK" "exec '$quoted' -I -m daemon.cli.main \"\$@\""
}
