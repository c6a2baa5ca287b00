# Shared by install.sh, uninstall.sh, bundle.sh and tests/run.sh: read with `.`, never run by itself.
# The reader has set ROOT (the checkout). Nothing here looks at the current directory.
# shellcheck shell=sh disable=SC2034

# An inherited setting must decide neither what Python imports nor where pip installs.
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONUSERBASE PYTHONPYCACHEPREFIX PYTHONINSPECT
unset PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON PIP_REQUIREMENT PIP_UPGRADE PIP_EDITABLE
export PIP_USER=0 PIP_NO_INPUT=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONNOUSERSITE=1

CONSTRAINTS=$ROOT/installers/constraints.txt
SYSTEM=$(uname -s)
case $SYSTEM in MINGW* | MSYS* | CYGWIN*)
    printf '%s\n' 'error: on Windows use installers/install.ps1' >&2
    exit 1
    ;;
esac

say() { printf '%s\n' "$@"; }
warn() { printf '%s\n' "warning: $*" >&2; }
die() {
    printf '%s\n' "error: $*" >&2
    exit 1
}

# An absolute form of a path given on the command line, seen from where the user stood.
absolute() {
    case $1 in
        /*) printf '%s\n' "$1" ;;
        *) printf '%s\n' "$STOOD/$1" ;;
    esac
}

# How to get something from this system's own package manager: python or compiler.
package_hint() {
    family=
    if [ -r /etc/os-release ]; then
        family=$(sed -n 's/^ID\(_LIKE\)\{0,1\}=//p' /etc/os-release | tr -d '"' | tr '\n' ' ')
    fi
    case "$SYSTEM $family" in
        Darwin*) py='brew install python@3.13'; cc='xcode-select --install' ;;
        *debian* | *ubuntu*) py='sudo apt install python3 python3-venv'; cc='sudo apt install build-essential' ;;
        *fedora* | *rhel*) py='sudo dnf install python3.12'; cc='sudo dnf install gcc gcc-c++' ;;
        *arch*) py='sudo pacman -S python'; cc='sudo pacman -S base-devel' ;;
        *suse*) py='sudo zypper install python312'; cc='sudo zypper install gcc gcc-c++' ;;
        *alpine*) py='sudo apk add python3'; cc='sudo apk add build-base linux-headers' ;;
        *) py='install Python 3.11 to 3.14 with its venv module'; cc='install a C and a C++ compiler' ;;
    esac
    if [ "$1" = python ]; then printf '%s\n' "$py"; else printf '%s\n' "$cc"; fi
}

# Whether PROGRAM is a Python that can be used; prints its real path, or the reason why not (status 1).
try_python() {
    "$1" -I -c '
import sys
if not (3, 11) <= sys.version_info[:2] <= (3, 14):
    sys.exit("is Python %d.%d" % sys.version_info[:2])
try:
    import ensurepip, venv
except ImportError:
    sys.exit("has no venv module (Debian and Ubuntu: python%d.%d-venv)" % sys.version_info[:2])
print(getattr(sys, "_base_executable", sys.executable))' 2>&1 || return 1
}

# Set PYTHON: the one the user named, or the first that fits. $1: a path or nothing; $2: a preferred minor.
find_python() {
    if [ -n "$1" ]; then
        [ -x "$1" ] || die "$1 is not a program"
        PYTHON=$(try_python "$1") || die "$1 cannot be used: it $PYTHON. Foretype needs Python 3.11 to 3.14"
        return
    fi
    refused=
    for name in ${2:+"python$2"} python3.14 python3.13 python3.12 python3.11 python3 python; do
        found=$(command -v "$name" 2>/dev/null) || continue
        # A relative entry of PATH would run whatever lies in the current directory.
        case $found in /*) ;; *) continue ;; esac
        if PYTHON=$(try_python "$found"); then return; fi
        refused="$refused
  $found $(printf '%s\n' "$PYTHON" | head -n 1)"
    done
    die "no usable Python 3.11 to 3.14 was found.${refused:+ Looked at:$refused}
Get one with:  $(package_hint python)
or name one with:  --python PATH"
}

# Hold the lock FILE until this shell ends, however it ends. $2: what to say while another holds it.
# flock belongs to the open file, so it outlives the Python that took it and ends with descriptor 9.
hold_lock() {
    exec 9>>"$1" || die "$1 cannot be written"
    "$PYTHON" -I -c '
import fcntl, sys
try:
    fcntl.flock(9, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    print(sys.argv[1], flush=True)
    fcntl.flock(9, fcntl.LOCK_EX)' "$2" || die "$1 cannot be locked"
}

# A line now and then while a long command runs in the foreground (so that Ctrl-C reaches all of it).
tick() {
    began=$(date +%s)
    while sleep 5 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        passed=$(($(date +%s) - began))
        if [ -t 1 ]; then
            printf '\r  %s: %d:%02d ' "$1" $((passed / 60)) $((passed % 60))
        elif [ $((passed % 15)) -lt 5 ]; then
            printf '  %s: %d:%02d\n' "$1" $((passed / 60)) $((passed % 60))
        fi
    done
}

# Run a command with its output in LOG. Usage: logged LABEL LOG COMMAND... ; status: the command's.
logged() {
    label=$1 log=$2
    shift 2
    printf '\n--- %s\n' "$label" >>"$log"
    tick "$label" 9>&- &
    ticker=$!
    trap 'kill "$ticker" 2>/dev/null || :' EXIT
    result=0
    "$@" >>"$log" 2>&1 9>&- </dev/null || result=$?
    kill "$ticker" 2>/dev/null || :
    wait "$ticker" 2>/dev/null || :
    trap - EXIT
    if [ -t 1 ]; then printf '\r\033[K'; fi
    return "$result"
}

# What went wrong in LOG, in words, with its last lines.
explain() {
    tail -n 15 "$1" | sed 's/^/  | /' >&2
    last=$(tail -n 60 "$1")
    case $last in
        *'No space left'*) warn 'the disk is full' ;;
        *'Permission denied'*) warn 'a file or folder cannot be written' ;;
        *'name resolution'* | *'ConnectionError'* | *'Max retries'* | *'Connection refused'* | *'ProxyError'*)
            warn 'the package index cannot be reached: check the network, or use --offline DIR' ;;
        *'No matching distribution'*)
            warn 'a package is not offered for this Python and system by your package index' ;;
    esac
    say "The whole log: $1" >&2
}
