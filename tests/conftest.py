"""One temporary home for the whole run: no test sees or touches the user's own settings, logs or sockets."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from daemon import paths

if TYPE_CHECKING:
    from daemon.engine.binding import Model

os.environ.setdefault("FORETYPE_MODELS", str(paths.models_dir()))
_home = tempfile.TemporaryDirectory(prefix="foretype-tests-", ignore_cleanup_errors=True)
os.environ["FORETYPE_HOME"] = _home.name


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random-weight GGUF with FIM ids."""
    from support import tiny

    return tiny.write(tmp_path_factory.mktemp("models") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Model:
    """That model, loaded."""
    from support.ticking import load

    return load(tiny_model)
