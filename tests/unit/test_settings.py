"""Settings: documented defaults are the defaults, and mistakes are named."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from daemon import loading, resources, settings
from daemon.errors import SettingsError


def test_the_documented_defaults_are_the_defaults() -> None:
    assert loading.load(resources.folder() / "default.toml") == settings.Settings()


def test_every_key_is_documented() -> None:
    documented = tomllib.loads(resources.read_text("default.toml"))
    known = msgspec.to_builtins(settings.Settings())
    assert {k: set(v) for k, v in documented.items()} == {k: set(v) for k, v in known.items()}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[engine]\nmodle = 'x'\n", "modle"),
        ("[enginge]\n", "enginge"),
        ("[server]\nport = 99999\n", "server.port"),
        ("[server]\nport = 'x'\n", "server.port"),
        ("[server]\nextra_ports = [8080, 0]\n", "server.extra_ports"),
        ("[engine]\ntensor_split = [1.0, -1.0]\n", "engine.tensor_split"),
        ("[engine]\ntensor_split = [0, 0]\n", "engine.tensor_split"),
        ("[engine]\ntensor_split = [nan, 1]\n", "engine.tensor_split"),
        ("[engine]\nsplit_mode = 'rows'\n", "split_mode"),
        ("[engine]\nmain_gpu = -1\n", "engine.main_gpu"),
        ("[engine]\ndraft_device = 'gpu'\n", "draft_device"),
        ("[server\n", "cannot be read"),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        loading.load(file)
    assert named in str(caught.value)
    assert "config.toml" in str(caught.value)
    assert "lists every key" not in str(caught.value) or Path(caught.value.remedy.split()[0]).is_file()


def test_flags_go_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[server]\nport = 1\nmax_body_mb = 2\n")
    loaded = loading.load(file, {"server": {"port": 3}})
    assert (loaded.server.port, loaded.server.max_body_mb) == (3, 2)
