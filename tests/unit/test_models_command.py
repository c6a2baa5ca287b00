"""`foretype models` as people and programs call it."""

import json
from pathlib import Path

import pytest
from model_files import HUB, Served, entry_for, hub, write_catalogue, write_gguf

from daemon.cli.main import main
from daemon.errors import ModelError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FORETYPE_MODELS", raising=False)
    return tmp_path / "home"


def states(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str]]:
    capsys.readouterr()
    assert main(["models", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["models"]
    return {row["name"]: (row["state"], row["hash"]) for row in rows}


def test_a_model_from_list_to_removal(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_gguf(tmp_path / "tiny.gguf").read_bytes()
    write_catalogue(home, entry_for(data, HUB))
    assert states(capsys)["tiny"] == ("not pulled", "yours")
    assert states(capsys)["qwen2.5-coder-7b-q4_k_m"] == ("not pulled", "first pull")
    assert states(capsys)["qwen2.5-coder-0.5b-q4_k_m"] == ("not pulled", "catalogue")
    with hub(Served(data)) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        assert main(["models", "pull", "tiny", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["bytes"], told["licence"]) == ("tiny", len(data), "MIT")
    assert states(capsys)["tiny"][0] == "pulled"
    assert main(["models", "verify"]) == 0
    assert "tiny: sound" in capsys.readouterr().out

    Path(told["path"]).write_bytes(data[:-1] + b"x")
    assert states(capsys)["tiny"][0] == "pulled, changed since it was verified"
    assert main(["models", "verify", "tiny", "--json"]) == ModelError.exit_code
    (row,) = json.loads(capsys.readouterr().out)["models"]
    assert not row["ok"]
    assert "is not the tiny it should be" in row["problem"]
    assert states(capsys)["tiny"][0] == "damaged: pull it again"
    assert main(["models", "rm", "tiny"]) == 0
    assert not Path(told["path"]).exists()
    assert "tiny" not in states(capsys)


def test_ones_own_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_gguf(tmp_path / "plain.gguf", tokens=list("abc"))
    assert main(["models", "add", str(path), "--name", "plain"]) == 0
    assert "no fill-in-the-middle tokens" in capsys.readouterr().out
    assert states(capsys)["plain"] == ("pulled", "yours")
    assert main(["models", "add", str(path), "--name", "plain"]) == ModelError.exit_code
    assert "the name plain is taken" in capsys.readouterr().err
    assert main(["models", "rm", "plain"]) == 0
    assert path.exists()


def test_tables_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "list"]) == 0
    said = capsys.readouterr().out
    assert "starcoder2-3b-q4_k_m" in said
    assert "pinned on this machine" in said
    assert main(["models", "fit", "--context", "8192", "--kv", "f16"]) == 0
    said = capsys.readouterr().out
    assert "weights 469 + KV 8192" in said
    assert main(["models", "verify"]) == 0
    assert "no model is on this machine" in capsys.readouterr().out


def test_fit_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "fit", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["device"] for row in told["rows"]} == {device["device"] for device in told["memory"]}
    assert all(
        row["need"] == row["weights"] + row["kv"] + row["compute"] + row["margin"] for row in told["rows"]
    )
    assert main(["models", "fit", "--context", "9"]) == ModelError.exit_code


def test_unknown_names(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("pull", "rm", "verify"):
        assert main(["models", command, "qwen2.5-coder-0.5"]) == ModelError.exit_code
        assert "Did you mean" in capsys.readouterr().err
