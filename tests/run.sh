#!/bin/sh
# The test command: makes its own environment, fetches what the tests need, checks and tests everything.
#
#   sh tests/run.sh [arguments for pytest]
#
# Packages lie in one environment per set of dependencies in the user's cache; every checkout has a small
# environment of its own on top, so that two clones never see each other. Ends with pytest's summary.
set -eu
unset CDPATH
# shellcheck disable=SC2034 # read by common.sh
STOOD=$(pwd)
ROOT=$(cd "$(dirname "$0")/.." && pwd -P)
. "$ROOT/installers/common.sh"

MODELS='qwen2.5-coder-0.5b-q4_k_m qwen2.5-coder-1.5b-q4_k_m'
case $SYSTEM in
    Darwin) PLACE=$HOME/Library/Caches/foretype-tests ;;
    *) PLACE=${XDG_CACHE_HOME:-$HOME/.cache}/foretype-tests ;;
esac

# What pyproject.toml asks for, one requirement a line.
REQUIREMENTS='
import pathlib, sys, tomllib
project = tomllib.loads(pathlib.Path(sys.argv[1], "pyproject.toml").read_text("utf-8"))["project"]
print("\n".join(project["dependencies"] + project["optional-dependencies"]["test"]))'

# Makes the packages of DEPS importable in TREE, .pth files included.
BRIDGE='
import pathlib, sysconfig, sys
line = "import site; site.addsitedir(%r)\n" % sys.argv[1]
pathlib.Path(sysconfig.get_path("purelib"), "packages.pth").write_text(line, "utf-8")'

fingerprint() { "$PYTHON" -I -B "$ROOT/installers/fingerprint.py" "$ROOT" "$@"; }

make_packages() {
    if [ -f "$DEPS/complete" ]; then
        touch "$DEPS"
        return
    fi
    rm -rf "$DEPS"
    "$PYTHON" -I -m venv "$DEPS"
    log=$DEPS/install.log
    say "Installing packages into $DEPS" "(llama-cpp-python is built from source the first time; log: $log)"
    "$PYTHON" -I -c "$REQUIREMENTS" "$ROOT" >"$DEPS/requirements.txt"
    logged 'packages' "$log" "$DEPS/bin/python" -I -m pip install -c "$CONSTRAINTS" -r "$DEPS/requirements.txt" ||
        { explain "$log"; die 'the packages could not be installed'; }
    touch "$DEPS/complete"
}

make_tree() {
    if [ -f "$TREE/complete" ]; then return; fi
    say "Making the environment of this checkout in $TREE"
    rm -rf "$TREE"
    "$PYTHON" -I -m venv --without-pip "$TREE"
    packages=$("$DEPS/bin/python" -I -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    "$TREE/bin/python" -I -c "$BRIDGE" "$packages"
    log=$TREE/install.log
    logged 'checkout' "$log" "$DEPS/bin/python" -I -m pip --python "$TREE/bin/python" install \
        --no-index --no-deps --no-build-isolation -e "$ROOT" ||
        { explain "$log"; die 'the checkout could not be installed'; }
    printf '%s\n' "$ROOT" >"$TREE/checkout"
    touch "$TREE/complete"
}

# Environments of clones that are gone, and packages that nobody used for a month.
prune() {
    for tree in "$PLACE"/tree-*; do
        if [ -f "$tree/checkout" ] && [ ! -d "$(cat "$tree/checkout")" ]; then rm -rf "$tree"; fi
    done
    find "$PLACE" -maxdepth 1 -name 'deps-*' -type d -mtime +30 -exec rm -rf {} +
}

step() {
    say "== $1"
    shift
    "$@" || { failed=1; warn "this step failed: $*"; }
}

find_python "${FORETYPE_TEST_PYTHON:-}"
mkdir -p "$PLACE"
key=$(fingerprint --word "$PYTHON" --word "$("$PYTHON" -I -VV)" --word "$("$PYTHON" -I -c "$REQUIREMENTS" "$ROOT")" \
    installers/constraints.txt)
DEPS=$PLACE/deps-$key
TREE=$PLACE/tree-$(fingerprint --word "$ROOT" --word "$key" pyproject.toml)
say "Python: $PYTHON"
hold_lock "$PLACE/.lock" 'another run prepares its environment; waiting for it'
cd "$ROOT"
prune
make_packages
make_tree
exec 9>&-
for model in $MODELS; do
    say "== model $model"
    "$TREE/bin/python" -I -m daemon.cli.main models pull "$model" || die "the model $model could not be fetched"
done
failed=0
step 'ruff format' "$DEPS/bin/ruff" format --check .
step 'ruff check' "$DEPS/bin/ruff" check .
step 'mypy' "$TREE/bin/python" -I -m mypy
say '== pytest'
"$TREE/bin/python" -I -m pytest -n 2 --dist loadgroup "$@" || failed=1
exit "$failed"
