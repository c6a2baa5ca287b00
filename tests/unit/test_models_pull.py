"""Pulling over a real socket: cuts, ranges, wrong files, kills, full disks, two at once."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from model_files import HUB, Served, entry_for, hub, until, write_catalogue, write_gguf

from daemon.errors import PullError
from daemon.models import catalogue
from daemon.models.entries import Entry, Local
from daemon.models.pull import Progress, pull

CLI = [sys.executable, "-I", "-m", "daemon.cli.main", "models"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("FORETYPE_MODELS", "FORETYPE_OFFLINE", "http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORETYPE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", rows=1000).read_bytes()


def fetch(served: Served, entry: Entry, monkeypatch: pytest.MonkeyPatch) -> Path:
    with hub(served) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        found = pull(entry)
    assert found.path.read_bytes() == served.data
    assert leftovers(found.path.parent) == set()
    return found.path


def leftovers(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if ".part" in path.name}


def part(home: Path) -> Path:
    return home / "cache" / "models" / "tiny.gguf.part"


def test_a_plain_pull(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Progress] = []
    served = Served(data)
    with hub(served) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        found = pull(entry_for(data), told.append)
        assert pull(entry_for(data)) == found
    assert served.asked == [""], "the second pull asks nobody"
    assert told[-2].done == told[-2].total == len(data)
    assert found.sha256 == entry_for(data).sha256


def test_cuts_are_resumed(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(data, cuts=[1_500_000, 700_000, 0])
    fetch(served, entry_for(data), monkeypatch)
    assert served.asked == ["", "bytes=1500000-", "bytes=2200000-", "bytes=2200000-"]


def test_a_server_without_ranges_starts_again(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    served = Served(data, ranges=False, cuts=[1_500_000])
    fetch(served, entry_for(data), monkeypatch)
    assert served.asked == ["", "bytes=1500000-"]


def test_a_file_that_changed_on_the_server_is_not_patched_together(
    data: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = Served(bytes(len(data)), cuts=[900_000], etag='"old"')
    with hub(older) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(PullError, match="delivered another file"):
            pull(entry_for(data))
    assert not part(home).exists()
    part(home).write_bytes(bytes(900_000))
    key = f"hub:{HUB.repo}@{HUB.revision}/{HUB.file}"
    journal = {"source": key, "validator": '"old"', "steps": 0, "durable": 900_000}
    part(home).with_suffix(".part.json").write_text(json.dumps(journal))
    served = Served(data, etag='"new"')
    fetch(served, entry_for(data), monkeypatch)
    assert served.asked == ["bytes=900000-"], "If-Range made the server send the whole file"


def test_a_wrong_beginning_is_found_by_the_hash_and_fetched_anew(
    data: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part(home).parent.mkdir(parents=True)
    part(home).write_bytes(bytes(900_000))
    journal = {
        "source": f"hub:{HUB.repo}@{HUB.revision}/{HUB.file}",
        "validator": "",
        "steps": 0,
        "durable": 0,
    }
    part(home).with_suffix(".part.json").write_text(json.dumps(journal))
    served = Served(data)
    fetch(served, entry_for(data), monkeypatch)
    assert served.asked == ["bytes=900000-", ""]


@pytest.mark.parametrize("length", [True, False])
def test_a_page_instead_of_a_model_is_refused(
    data: bytes, home: Path, monkeypatch: pytest.MonkeyPatch, length: bool
) -> None:
    for entry in (entry_for(data), entry_for(data, pinned=False)):
        with hub(Served(b"<html>sign in</html>", length=length)) as address:
            monkeypatch.setenv("HF_ENDPOINT", address)
            with pytest.raises(PullError, match="hub:"):
                pull(entry)
        assert [path.name for path in part(home).parent.iterdir() if not path.name.startswith(".")] == []


def test_the_next_source_takes_over(data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "copy.gguf"
    file.write_bytes(data)
    for served in (Served(data, status=404), Served(bytes(len(data))), Served(data[:-1])):
        entry = entry_for(data, HUB, Local(path="$TINY_FOLDER/copy.gguf"))
        monkeypatch.setenv("TINY_FOLDER", str(tmp_path))
        with hub(served) as address:
            monkeypatch.setenv("HF_ENDPOINT", address)
            found = pull(entry)
        assert found.path.read_bytes() == data
        found.path.unlink()


def test_redirects_lead_to_the_store_and_nowhere_else(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the hub does: a store sends the file, and gets the range too. No proxy is asked for this machine."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    store = Served(data, cuts=[1_000_000])
    with hub(store) as place:
        fetch_via = Served(data, redirect=f"{place}/store")
        with hub(fetch_via) as address:
            monkeypatch.setenv("HF_ENDPOINT", address)
            assert pull(entry_for(data)).path.read_bytes() == data
    assert store.asked == ["", "bytes=1000000-"]
    for bad in ("file:///etc/hostname", "ftp://127.0.0.1/x", "http://store.invalid/x"):
        with hub(Served(data, redirect=bad)) as address:
            monkeypatch.setenv("HF_ENDPOINT", address)
            with pytest.raises(
                PullError, match=r"hub: (a .* address is not used|it answered 302|not reachable)"
            ):
                pull(entry_for(data, name="other", pinned=False))


def test_nobody_there(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(Served(data)) as address:
        pass
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(PullError) as caught:
        pull(entry_for(data, HUB, Local(path="$FORETYPE_OFFLINE/tiny.gguf")))
    assert "hub: not reachable" in caught.value.message
    assert "$FORETYPE_OFFLINE is not set" in caught.value.message


def test_the_first_pull_pins(data: bytes, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_catalogue(home, entry_for(data, pinned=False))
    fetch(Served(data), catalogue.find("tiny"), monkeypatch)
    pinned = catalogue.find("tiny")
    assert (pinned.sha256, pinned.bytes) == (entry_for(data).sha256, len(data))
    assert catalogue.resolve("tiny").sha256 == pinned.sha256
    catalogue.file_of(pinned).unlink()
    other = bytearray(data)
    other[-1] ^= 1
    with hub(Served(bytes(other))) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(PullError, match="another file"):
            pull(catalogue.find("tiny"))


def test_without_a_hash_plain_http_is_not_used(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.invalid")
    with pytest.raises(PullError, match="must be https"):
        pull(entry_for(data, pinned=False))


def test_a_damaged_file_is_fetched_again(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fetch(Served(data), entry_for(data), monkeypatch)
    path.write_bytes(data[:1000])
    fetch(Served(data), entry_for(data), monkeypatch)


def test_kill_9_in_the_middle(data: bytes, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_catalogue(home, entry_for(data))
    served = Served(data, hold_after=2_000_000)
    with hub(served) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        with subprocess.Popen([*CLI, "pull", "tiny", "--json"], stdout=subprocess.DEVNULL) as child:
            until(lambda: part(home).exists() and part(home).stat().st_size == 2_000_000)
            with pytest.raises(PullError, match="another pull of tiny is running"):
                pull(catalogue.find("tiny"))
            child.kill()
        assert child.returncode != 0
        assert not part(home).with_suffix("").exists()
        served.hold_after = -1
        served.release.set()
        found = pull(catalogue.find("tiny"))
    assert served.asked == ["", "bytes=2000000-"]
    assert found.path.read_bytes() == data


def test_no_space_is_told_before_anything_is_fetched(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    with hub(Served(data)) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        with pytest.raises(PullError) as caught:
            pull(entry_for(data), free=lambda _: 12_000_000)
    assert "not enough disk space for tiny: 0.07 GB more needed, 0.01 GB free" in caught.value.message


if os.name == "posix":

    def test_a_full_disk_keeps_what_was_fetched(
        data: bytes, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write_catalogue(home, entry_for(data))
        served = Served(data)
        with hub(served) as address:
            monkeypatch.setenv("HF_ENDPOINT", address)
            # A real limit of the system: files of the child cannot grow beyond 1,000,000 bytes.
            code = (
                "import resource, sys; from daemon.cli.main import main;"
                "resource.setrlimit(resource.RLIMIT_FSIZE, (1000000, 1000000)); sys.exit(main(sys.argv[1:]))"
            )
            command = [sys.executable, "-I", "-c", code, "models", "pull", "tiny"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == PullError.exit_code
            assert "the disk is full" in done.stderr
            assert "the first 1.00 MB are kept" in done.stderr
            assert part(home).stat().st_size == 1_000_000
            assert pull(catalogue.find("tiny")).path.read_bytes() == data
        assert served.asked == ["", "bytes=1000000-"]

    def test_a_models_folder_that_is_a_file(
        data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "flat").write_text("")
        monkeypatch.setenv("FORETYPE_MODELS", str(tmp_path / "flat"))
        with pytest.raises(PullError, match="cannot be used"):
            pull(entry_for(data))


def test_a_prepared_folder(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(PullError, match="is not there"):
        pull(entry_for(data), origin=tmp_path)
    (tmp_path / HUB.file).write_bytes(data)
    assert pull(entry_for(data), origin=tmp_path).size == len(data)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Commands started now heed Ctrl-C, which a shell makes its background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_slow_source_can_be_abandoned(data: bytes, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C in the real command: exit 130, a word, and the bytes stay."""
    write_catalogue(home, entry_for(data))
    served = Served(data, hold_after=500_000)
    with hub(served) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        with (
            interruptible(),
            subprocess.Popen([*CLI, "pull", "tiny"], stderr=subprocess.PIPE, text=True) as child,
        ):
            until(lambda: part(home).exists() and part(home).stat().st_size == 500_000)
            threading.Thread(target=child.send_signal, args=(2,)).start()
            said = child.communicate(timeout=20)[1]
    assert child.returncode == 130
    assert "goes on from here" in said
    assert part(home).stat().st_size == 500_000
