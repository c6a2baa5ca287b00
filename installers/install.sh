#!/bin/sh
# Install Foretype for this user. Run it twice: the second run changes nothing.
set -eu
unset CDPATH

usage() {
    cat <<'TEXT'
usage: sh installers/install.sh [options]

  --demo            afterwards start the daemon, complete inside a sample file, print the ghost text
  --offline DIR     no network: take packages and models from DIR (made by installers/bundle.sh)
  --backend NAME    auto (default), cpu, cuda, metal or vulkan
  --python PATH     the Python 3.11 to 3.14 to build on (default: the newest that is found)
  --prefix DIR      install into DIR; the command is DIR/bin/foretype
  --no-model        do not fetch the default model
  --help            this text

Without --prefix the private environment lies in $XDG_DATA_HOME/foretype (~/.local/share/foretype; on
macOS ~/Library/Application Support/foretype; $FORETYPE_HOME/app where FORETYPE_HOME is set) and the
command `foretype` in $XDG_BIN_HOME or ~/.local/bin. Nothing outside these and pip's cache is touched.
TEXT
}

# shellcheck disable=SC2034 # read by common.sh
STOOD=$(pwd)
script=$0
while [ -L "$script" ]; do
    link=$(readlink "$script")
    case $link in /*) script=$link ;; *) script=$(dirname "$script")/$link ;; esac
done
ROOT=$(cd "$(dirname "$script")/.." && pwd -P)
. "$ROOT/installers/common.sh"
. "$ROOT/installers/backend.sh"
. "$ROOT/installers/places.sh"

read_options() {
    DEMO=0 OFFLINE='' WISH=auto NAMED_PYTHON='' MODEL=1
    while [ $# -gt 0 ]; do
        case $1 in
            --demo) DEMO=1 ;;
            --no-model) MODEL=0 ;;
            --help | -h) usage && exit 0 ;;
            --offline | --backend | --python | --prefix)
                [ $# -ge 2 ] || die "$1 needs a value; see --help"
                option "$1" "$2"
                shift
                ;;
            *) die "there is no option $1; see --help" ;;
        esac
        shift
    done
}

option() {
    case $1 in
        --offline) OFFLINE=$(absolute "$2") ;;
        --backend) WISH=$2 ;;
        --python)
            case $2 in
                */*) NAMED_PYTHON=$(absolute "$2") ;;
                *) NAMED_PYTHON=$(command -v "$2") || die "there is no $2" ;;
            esac
            ;;
        --prefix) PREFIX=$(absolute "$2") BIN=$PREFIX/bin ;;
    esac
}

# Before anything is written: is the prepared folder whole, and for which Python and build is it?
read_bundle() {
    [ -d "$OFFLINE/wheels" ] || die "$OFFLINE holds no folder wheels; make one with installers/bundle.sh"
    set -- "$OFFLINE"/wheels/llama_cpp_python-*.whl
    [ -f "$1" ] || die "$OFFLINE/wheels holds no llama_cpp_python wheel; make one with installers/bundle.sh"
    BUNDLE_PYTHON=$(sed -n 's/^python=//p' "$OFFLINE/bundle" 2>/dev/null || :)
    BUNDLE_BACKEND=$(sed -n 's/^backend=//p' "$OFFLINE/bundle" 2>/dev/null || :)
}

pip_install() {
    if [ -n "$OFFLINE" ]; then
        set -- --no-index --find-links "$OFFLINE/wheels" "$@"
    elif [ -n "${PIP_EXTRA:-}" ]; then
        set -- --cache-dir "$PIP_EXTRA" "$@"
    fi
    "$VENV/bin/python" -I -m pip install --constraint "$CONSTRAINTS" "$@"
}

make_environment() {
    if [ -f "$VENV/foretype-python" ] && [ "$(cat "$VENV/foretype-python")" = "$PYTHON" ] &&
        "$VENV/bin/python" -I -c 'import pip' 2>/dev/null; then
        return
    fi
    say "Making a private environment in $VENV"
    rm -rf "$VENV"
    "$PYTHON" -I -m venv "$VENV" >>"$LOG" 2>&1 || { explain "$LOG"; die 'the environment could not be made'; }
    printf '%s\n' "$PYTHON" >"$VENV/foretype-python"
}

# Prints 1 where the engine can use a GPU, 0 where it cannot; fails where it cannot even be imported.
engine_offload() {
    "$VENV/bin/python" -I -c 'import llama_cpp; print(int(llama_cpp.llama_supports_gpu_offload()))' 2>>"$LOG"
}

# One try at building or fetching llama-cpp-python for BACKEND, proved by an import in a child.
try_engine() {
    prepare_build
    logged "llama-cpp-python for $BACKEND" "$LOG" pip_install "$ENGINE" || return 1
    offload=$(engine_offload) || {
        # A wheel made for another processor ends the import with an illegal instruction.
        warn 'the llama-cpp-python that was found does not run here; building it anew'
        logged "llama-cpp-python for $BACKEND" "$LOG" \
            pip_install --no-cache-dir --no-binary llama-cpp-python --force-reinstall --no-deps "$ENGINE" || return 1
        offload=$(engine_offload) || return 1
    }
    if [ "$BACKEND" != cpu ] && [ "$offload" = 0 ] && [ -z "$OFFLINE" ]; then
        warn "the llama-cpp-python that was found has no $BACKEND support; building it from source"
        logged "llama-cpp-python for $BACKEND" "$LOG" \
            pip_install --no-binary llama-cpp-python --force-reinstall --no-deps "$ENGINE" || return 1
        offload=$(engine_offload) || return 1
    fi
    [ "$BACKEND" = cpu ] || [ "$offload" = 1 ]
}

need_compiler() {
    if have_compiler || [ -n "$OFFLINE" ]; then return; fi
    "$VENV/bin/python" -I -m pip cache list --format=abspath llama_cpp_python 2>/dev/null | grep -q whl && return
    logged 'looking for a ready-made llama-cpp-python' "$LOG" \
        pip_install --only-binary llama-cpp-python "$ENGINE" && return
    die "llama-cpp-python has to be built from source and there is no C and C++ compiler. Get one with:
  $(package_hint compiler)
and run this again"
}

# $VENV/foretype-engine: what was wished, what came of it, which GPU build failed. A build that failed is
# not tried again at every run, only when it is asked for by name.
engine_is_there() {
    [ "$(sed -n 1p "$VENV/foretype-engine" 2>/dev/null)" = "$WANTED" ] || return 1
    FELL=$(sed -n 3p "$VENV/foretype-engine")
    [ -z "$FELL" ] || [ "$WISH" = auto ] || return 1
    BACKEND=$(sed -n 2p "$VENV/foretype-engine")
}

install_engine() {
    if engine_is_there; then return; fi
    FELL=
    rm -f "$VENV/foretype-engine"
    "$VENV/bin/python" -I -m pip uninstall -q -y llama-cpp-python >>"$LOG" 2>&1 || :
    need_compiler
    say "Installing the engine (a first build takes some minutes; log: $LOG)"
    if ! try_engine; then
        explain "$LOG"
        [ "$BACKEND" != cpu ] && [ -z "$OFFLINE" ] || die 'llama-cpp-python could not be installed'
        warn "THE BUILD FOR $BACKEND FAILED. Falling back to the processor: completions will be slower."
        cp "$LOG" "$PREFIX/$BACKEND-build.log"
        FELL=$BACKEND BACKEND=cpu
        "$VENV/bin/python" -I -m pip uninstall -q -y llama-cpp-python >>"$LOG" 2>&1 || :
        try_engine || { explain "$LOG"; die 'llama-cpp-python could not be installed for the processor either'; }
    fi
    printf '%s\n' "$WANTED" "$BACKEND" "$FELL" >"$VENV/foretype-engine"
}

install_foretype() {
    logged 'packages' "$LOG" pip_install "$ROOT" || { explain "$LOG"; die 'the packages could not be installed'; }
    "$VENV/bin/python" -I -m pip check >>"$LOG" 2>&1 || { explain "$LOG"; die 'the packages do not fit each other'; }
}

write_launcher() {
    mkdir -p "$BIN" || die "$BIN cannot be made"
    if [ -e "$BIN/foretype" ] && ! is_our_launcher; then
        die "$BIN/foretype exists and is not ours; move it away, or use --prefix DIR"
    fi
    launcher_text >"$BIN/.foretype.new"
    if cmp -s "$BIN/.foretype.new" "$BIN/foretype" && [ -x "$BIN/foretype" ]; then
        rm -f "$BIN/.foretype.new"
        return
    fi
    chmod 755 "$BIN/.foretype.new"
    mv -f "$BIN/.foretype.new" "$BIN/foretype"
}

on_path() {
    case :$PATH: in *:"$BIN":*) return ;; esac
    say "$BIN is not on your PATH. Add it with:"
    case ${SHELL:-} in
        */fish) say "  fish_add_path '$BIN'" ;;
        */zsh) say "  echo 'export PATH=\"$BIN:\$PATH\"' >> ~/.zshrc && exec zsh" ;;
        *) say "  echo 'export PATH=\"$BIN:\$PATH\"' >> ~/.bashrc && exec bash" ;;
    esac
}

is_current() {
    [ "$(cat "$STAMP" 2>/dev/null)" = "$FINGERPRINT" ] && engine_is_there &&
        "$VENV/bin/python" -I -B -c 'import daemon.cli.main, llama_cpp' 2>/dev/null
}

need_space() {
    free=$(df -Pk "$PREFIX" | awk 'NR == 2 { print int($4 / 1024) }')
    [ "${free:-9999}" -ge 900 ] || die "only $free MB are free in $PREFIX; the packages need about 900 while they are installed"
}

install_all() {
    rm -f "$STAMP"
    : >"$LOG"
    need_space
    make_environment
    install_engine
    install_foretype
    printf '%s\n' "$FINGERPRINT" >"$STAMP"
}

get_models() {
    if [ -z "$OFFLINE" ]; then
        name=$("$VENV/bin/python" -I -B -c 'from daemon import loading; print(loading.load().engine.model)') ||
            die 'the settings cannot be read'
        case $name in */* | *.gguf) return ;; esac # a file of the user's own
        "$BIN/foretype" models pull "$name" ||
            die 'the model could not be fetched; run this again to go on from where it stopped'
        return
    fi
    for file in "$OFFLINE"/models/*.gguf; do
        [ -f "$file" ] || die "$OFFLINE/models holds no model; see bundle.sh --model, or use --no-model"
        "$BIN/foretype" models pull "$(basename "$file" .gguf)" --from "$OFFLINE/models" || die "$file cannot be used"
    done
}

show_demo() {
    sample=$ROOT/tests/data/samples/orders.py
    say '' 'Demo: the daemon reads a sample file once; then Foretype fills its empty line 10.' ''
    "$BIN/foretype" up || die 'the daemon does not start; foretype doctor looks for the reason'
    tries=0
    # A busy machine may need more than one answer's time limit for the first reading.
    until "$BIN/foretype" complete "$sample:10:5" --json | grep -q '"text": "[^"]'; do
        tries=$((tries + 1))
        [ "$tries" -lt 6 ] || die 'no ghost text came; foretype doctor looks for the reason'
    done
    say '' "$sample"
    "$BIN/foretype" complete "$sample:10:5" --no-recall
    say '' 'The daemon goes on running for your editor. To end it: foretype down'
}

read_options "$@"
if [ -n "$OFFLINE" ]; then read_bundle; fi
cd / # from here on the current directory is one that no project writes to
choose_backend "$WISH"
find_python "$NAMED_PYTHON" "${BUNDLE_PYTHON:-}"
VENV=$PREFIX/venv STAMP=$PREFIX/installed LOG=$PREFIX/install.log
mkdir -p "$PREFIX" 2>/dev/null || die "$PREFIX cannot be made: is the home folder writable?"
hold_lock "$PREFIX/.lock" 'another installation runs; waiting for it'
if [ -n "$OFFLINE" ]; then BACKEND=${BUNDLE_BACKEND:-$BACKEND} WHY='the prepared folder was built for it'; fi
if [ -n "${BUNDLE_PYTHON:-}" ]; then
    "$PYTHON" -I -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$BUNDLE_PYTHON')" ||
        die "$OFFLINE was made for Python $BUNDLE_PYTHON, and $PYTHON is another"
fi
say "Python:  $PYTHON" "Backend: $BACKEND ($WHY)"
WANTED="$ENGINE $BACKEND $(backend_flags)" FELL=
FINGERPRINT=$("$PYTHON" -I -B "$ROOT/installers/fingerprint.py" "$ROOT" --word "$PYTHON" --word "$WANTED" \
    pyproject.toml README.md LICENSE daemon indexer config installers/constraints.txt)
if is_current; then
    say "Foretype is up to date in $PREFIX (backend $BACKEND)"
else
    install_all
    say "Foretype is installed in $PREFIX (backend $BACKEND)"
fi
if [ -n "$FELL" ]; then warn "the build for $FELL failed: the processor is used. Try again with --backend $FELL"; fi
write_launcher
if [ "$MODEL" = 1 ]; then get_models; fi
if [ "$DEMO" = 1 ]; then show_demo; fi
on_path
