"""Which build the installer chooses, on machines made of small programs that answer as the real ones do."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("sh", "sed", "awk", "head", "cut", "cksum", "printf", "tr", "cat", "env")
CHOOSE = """
STOOD=/ ROOT=$1 CACHE=/cache
. "$ROOT/installers/common.sh"
. "$ROOT/installers/backend.sh"
choose_backend "$2"
prepare_build
printf '%s|%s|%s|%s\\n' "$BACKEND" "$WHY" "$CMAKE_ARGS" "${PIP_EXTRA%-*}"
"""
LINUX = {"uname": "echo Linux"}
NVIDIA = {"nvidia-smi": "echo 'NVIDIA RTX 4070'"}
NVCC = {"nvcc": "echo release 13.0"}
GLSLC = {"glslc": "exit 0"}
VULKAN = {
    "vulkaninfo": """cat <<'TEXT'
GPU0:
	deviceType         = PHYSICAL_DEVICE_TYPE_CPU
	deviceName         = llvmpipe (LLVM 19)
GPU1:
	deviceType         = PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU
	deviceName         = Intel(R) Graphics
TEXT"""
}
SOFTWARE_VULKAN = {
    "vulkaninfo": "printf 'deviceType = PHYSICAL_DEVICE_TYPE_CPU\\ndeviceName = llvmpipe\\n'",
}


def mac(machine: str) -> dict[str, str]:
    return {"uname": f'if [ "$1" = -m ]; then echo {machine}; else echo Darwin; fi'}


def choose(place: Path, programs: dict[str, str], wish: str = "auto", flags: str = "") -> tuple[str, ...]:
    """Backend, reason, flags for cmake, pip's cache folder without its hash; or the error message alone."""
    folder, sdk = place / "bin", place / "sdk"
    folder.mkdir()
    (sdk / "include" / "vulkan").mkdir(parents=True)
    (sdk / "include" / "vulkan" / "vulkan.h").touch()
    for tool in TOOLS:
        (folder / tool).symlink_to(str(shutil.which(tool)))
    for name, body in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{body}\n")
        (folder / name).chmod(0o755)
    done = subprocess.run(
        [str(shutil.which("sh")), "-euc", CHOOSE, "sh", str(ROOT), wish],
        env={"PATH": str(folder), "CUDA_HOME": str(place), "VULKAN_SDK": str(sdk), "CMAKE_ARGS": flags},
        capture_output=True,
        text=True,
        check=False,
    )
    return tuple(done.stdout.strip().split("|")) if done.returncode == 0 else (done.stderr.strip(),)


def test_no_gpu_means_the_plain_build_in_the_usual_cache(tmp_path: Path) -> None:
    assert choose(tmp_path, LINUX) == ("cpu", "no GPU was found", "", "")


def test_cuda_needs_the_device_and_the_compiler(tmp_path: Path) -> None:
    backend, why, flags, cache = choose(tmp_path, {**LINUX, **NVIDIA, **NVCC})
    assert (backend, flags, cache) == ("cuda", "-DGGML_CUDA=on", "/cache/pip-cuda")
    assert why.startswith("NVIDIA RTX 4070, built with ")


def test_a_device_without_its_compiler_is_told(tmp_path: Path) -> None:
    backend, why, *_ = choose(tmp_path, {**LINUX, **NVIDIA})
    assert backend == "cpu"
    assert "NVIDIA RTX 4070 is here, but no CUDA compiler" in why


def test_a_compiler_without_a_device_is_no_gpu(tmp_path: Path) -> None:
    assert choose(tmp_path, {**LINUX, **NVCC, "nvidia-smi": "exit 9"})[:2] == ("cpu", "no GPU was found")


def test_vulkan_takes_the_first_real_device(tmp_path: Path) -> None:
    found = choose(tmp_path, {**LINUX, **VULKAN, **GLSLC})
    assert found == ("vulkan", "Intel(R) Graphics", "-DGGML_VULKAN=on", "/cache/pip-vulkan")


def test_vulkan_without_its_shader_compiler_is_told(tmp_path: Path) -> None:
    backend, why, *_ = choose(tmp_path, {**LINUX, **VULKAN})
    assert backend == "cpu"
    assert "Intel(R) Graphics is here, but glslc" in why


def test_vulkan_on_the_processor_is_no_gpu(tmp_path: Path) -> None:
    assert choose(tmp_path, {**LINUX, **SOFTWARE_VULKAN, **GLSLC})[:2] == ("cpu", "no GPU was found")


def test_macs(tmp_path: Path) -> None:
    for name in ("arm", "intel"):
        (tmp_path / name).mkdir()
    assert choose(tmp_path / "arm", mac("arm64")) == ("metal", "an Apple GPU", "", "")
    assert choose(tmp_path / "intel", mac("x86_64"))[::2] == ("cpu", "-DGGML_METAL=off")


def test_the_users_own_flags_are_kept_and_get_a_cache_of_their_own(tmp_path: Path) -> None:
    *_, flags, cache = choose(tmp_path, LINUX, flags="-DGGML_NATIVE=off")
    assert (flags, cache) == ("-DGGML_NATIVE=off", "/cache/pip-cpu")


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ("cuda", "no CUDA compiler"),
        ("metal", "on macOS only"),
        ("vulkan", "no glslc"),
        ("abacus", "is one of"),
    ],
)
def test_a_wish_that_cannot_be_met_is_an_error(tmp_path: Path, wish: str, words: str) -> None:
    (message,) = choose(tmp_path, LINUX, wish)
    assert words in message
