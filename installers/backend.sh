# Which build of llama-cpp-python this machine gets, and how it is built: read with `.` after common.sh.
# shellcheck shell=sh disable=SC2034

ENGINE=llama-cpp-python==$(sed -n 's/^llama_cpp_python==//p' "$CONSTRAINTS")
USER_CMAKE_ARGS=${CMAKE_ARGS:-}

find_nvcc() {
    for nvcc in "$(command -v nvcc || :)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" /opt/cuda/bin/nvcc; do
        if [ -n "$nvcc" ] && "$nvcc" --version >/dev/null 2>&1; then
            printf '%s\n' "$nvcc"
            return
        fi
    done
    return 1
}

# The first NVIDIA device, or nothing.
nvidia_device() {
    nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1
}

# The first Vulkan device that is not the processor itself, or nothing.
vulkan_device() {
    vulkaninfo --summary 2>/dev/null | awk -F'= *' '
        /deviceType/ { real = ($2 !~ /CPU/) }
        /deviceName/ && real { print $2; exit }'
}

have_vulkan_headers() {
    for folder in "${VULKAN_SDK:-/usr}/include" /usr/include /usr/local/include; do
        if [ -f "$folder/vulkan/vulkan.h" ]; then return; fi
    done
    return 1
}

have_compiler() {
    { [ -n "${CC:-}" ] || command -v cc || command -v gcc || command -v clang; } >/dev/null 2>&1 &&
        { [ -n "${CXX:-}" ] || command -v c++ || command -v g++ || command -v clang++; } >/dev/null 2>&1
}

# Set BACKEND and WHY. $1: auto or what the user asked for.
choose_backend() {
    WHY='you asked for it'
    BACKEND=$1
    case $1 in
        auto) probe_backend ;;
        cuda) find_nvcc >/dev/null || die 'no CUDA compiler (nvcc) was found; install the CUDA toolkit' ;;
        vulkan)
            command -v glslc >/dev/null 2>&1 || die 'no glslc was found; install the Vulkan SDK' ;;
        metal) [ "$SYSTEM" = Darwin ] || die 'Metal exists on macOS only' ;;
        cpu) ;;
        *) die "--backend is one of auto, cpu, cuda, metal, vulkan, not $1" ;;
    esac
}

probe_backend() {
    BACKEND=cpu
    if [ "$SYSTEM" = Darwin ]; then
        WHY='an Intel Mac: its GPUs are slower than its processor here'
        if [ "$(uname -m)" = arm64 ]; then BACKEND=metal WHY='an Apple GPU'; fi
        return
    fi
    device=$(nvidia_device)
    if [ -n "$device" ] && find_nvcc >/dev/null; then
        BACKEND=cuda WHY="$device, built with $(find_nvcc)"
        return
    fi
    WHY='no GPU was found'
    if [ -n "$device" ]; then
        WHY="$device is here, but no CUDA compiler (nvcc); install the CUDA toolkit and run this again"
    fi
    device=$(vulkan_device)
    if [ -n "$device" ] && command -v glslc >/dev/null 2>&1 && have_vulkan_headers; then
        BACKEND=vulkan WHY=$device
    elif [ -n "$device" ] && [ "$WHY" = 'no GPU was found' ]; then
        WHY="$device is here, but glslc or the Vulkan headers are not; install the Vulkan SDK and run this again"
    fi
}

# Flags for cmake. llama.cpp's own default is native code for this processor, and Metal on a Mac.
backend_flags() {
    case "$BACKEND $SYSTEM" in
        cuda*) flags=-DGGML_CUDA=on ;;
        vulkan*) flags=-DGGML_VULKAN=on ;;
        'cpu Darwin') flags=-DGGML_METAL=off ;;
        *) flags= ;;
    esac
    printf '%s\n' "$flags${USER_CMAKE_ARGS:+ $USER_CMAKE_ARGS}" | sed 's/^ //'
}

# Set PIP_EXTRA: pip does not see CMAKE_ARGS when it looks for a wheel it built before, so every set of
# flags has a cache of its own. The plain build stays in pip's usual cache.
prepare_build() {
    CMAKE_ARGS=$(backend_flags)
    export CMAKE_ARGS
    PIP_EXTRA=
    if [ -n "$CMAKE_ARGS" ]; then
        PIP_EXTRA=$CACHE/pip-$BACKEND-$(printf '%s' "$CMAKE_ARGS" | cksum | cut -d ' ' -f 1)
    fi
    if [ "$BACKEND" = cuda ] && ! command -v nvcc >/dev/null 2>&1; then
        CUDACXX=$(find_nvcc)
        export CUDACXX
    fi
}
