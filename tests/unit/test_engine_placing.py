"""Where models are put: decided from settings, made-up devices and made-up measurements; opened for real."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support import tiny

from daemon.cli import report
from daemon.engine import costs, placing
from daemon.engine.binding import Context
from daemon.engine.cores import Machine
from daemon.engine.device import Gpu, Spread
from daemon.engine.frames import Message, Start
from daemon.engine.opening import ladder
from daemon.engine.placing import CPU, Attention, alone
from daemon.engine.startup import build
from daemon.errors import EngineFailed
from daemon.machine import EngineProfile
from daemon.settings import Engine
from tests.support import ticking

TWO = (Gpu("Large", 101), Gpu("Small", 102))


def start(path: Path, settings: Engine, **more: object) -> Start:
    return Start(path=str(path), name="tiny", sha256="placing", context=512, settings=settings, **more)  # type: ignore[arg-type]


def built(path: Path, settings: Engine, **more: object) -> EngineProfile:
    said: list[Message] = []
    loop, ready = build(start(path, settings, **more), said.append)
    loop.lanes.close()
    return ready.profile


def test_a_model_is_spread_as_asked() -> None:
    assert placing.place(Engine(), TWO) == ("Large, Small", -1, Spread((101, 102)))
    asked = Engine(split_mode="row", tensor_split=(3.0, 1.0), main_gpu=1, gpu_layers=8)
    assert placing.place(asked, TWO) == ("Large, Small", 8, Spread((101, 102), "row", (3.0, 1.0), 1))
    assert placing.place(Engine(split_mode="none", main_gpu=1), TWO) == alone(TWO[1])


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (Engine(main_gpu=2), "engine.main_gpu is 2, and there are 2 GPUs (Large, Small). Give 1 at most"),
        (Engine(tensor_split=(1.0,)), "engine.tensor_split has 1 shares for 2 GPUs"),
    ],
)
def test_what_does_not_fit_the_devices_is_named(asked: Engine, named: str) -> None:
    with pytest.raises(EngineFailed, match="engine") as caught:
        placing.place(asked, TWO)
    assert named in str(caught.value)


def test_flash_attention_and_the_types_that_go_with_it() -> None:
    assert placing.attentions(Engine(), gpu=False) == [Attention(True, "f16+bf16"), Attention(False, "f16")]
    assert placing.attentions(Engine(kv_type="q8_0"), gpu=True) == [
        Attention(True, "q8_0"),
        Attention(False, "f16"),
    ]
    assert placing.attentions(Engine(flash_attention="on"), gpu=True) == [Attention(True, "f16")]
    assert placing.attentions(Engine(flash_attention="off"), gpu=False) == [Attention(False, "f16")]


def test_the_draft_model_runs_where_it_is_told_to_or_may_be_fastest() -> None:
    one, two = alone(TWO[0]), alone(TWO[1])
    assert placing.draft_places(Engine(), TWO) == [one, two, CPU]
    assert placing.draft_places(Engine(main_gpu=1), TWO) == [two, one, CPU]
    assert placing.draft_places(Engine(), ()) == [CPU]
    assert placing.draft_places(Engine(draft_device="cpu"), TWO) == [CPU]
    assert placing.draft_places(Engine(draft_device="gpu:1"), TWO) == [two]
    with pytest.raises(EngineFailed, match="the last GPU is gpu:1"):
        placing.draft_places(Engine(draft_device="gpu:2"), TWO)


def test_another_way_has_to_be_clearly_faster() -> None:
    assert placing.fastest([("a", 1, 10.0), ("b", 2, 9.8)]) == (1, "measured: a 10.0 ms (b 9.8)")
    assert placing.fastest([("a", 1, 10.0), ("b", 2, 5.0), ("c", 3, 7.0)])[0] == 2
    assert placing.fastest([("a", 1, 10.0)]) == (1, "a")


def test_a_quantized_cache_that_a_model_cannot_have_costs_flash_attention_alone(tmp_path: Path) -> None:
    """Heads of 16 do not divide into blocks of 32."""
    path = tiny.write(tmp_path / "heads.gguf")
    profile = built(path, Engine(threads=1, kv_type="q8_0"))
    assert (profile.kv_type, profile.flash_attention) == ("f16", False)
    assert profile.chosen.notes[0].startswith("flash attention is off, and the KV cache is f16: ")
    assert profile.kv_bytes > 0
    with pytest.raises(EngineFailed):
        ladder(start(path, Engine(threads=1, kv_type="q8_0", flash_attention="on")))


def test_on_a_cpu_what_is_for_gpus_has_no_effect_and_status_says_so(tiny_model: Path) -> None:
    asked = Engine(threads=1, split_mode="row", tensor_split=(1.0, 2.0), draft_device="gpu:1", backend="cpu")
    profile = built(tiny_model, asked, draft=str(tiny_model), draft_name="tiny")
    assert profile.chosen.notes == (
        "engine.split_mode, engine.tensor_split, engine.draft_device have no effect: engine.backend is cpu",
    )
    assert profile.chosen.draft_device.endswith("engine.draft_device is gpu:1, and the model is on the CPU")
    assert not profile.chosen.kv_offload
    assert built(tiny_model, Engine(threads=1)).chosen.notes == ()


def test_threads_are_measured_where_they_would_run(tiny_model: Path) -> None:
    model = ticking.load(tiny_model)
    context = Context(model, cells=256, sequences=2, batch=64, threads=1, kv_type="f16", flash=False)
    moved: list[tuple[int, ...]] = []

    def keep(cores: object) -> bool:
        moved.append(tuple(cores))  # type: ignore[arg-type]
        return True

    found = Machine(((0,), (1,)), {0: "0", 1: "1"})
    chosen, why = costs.choose_threads(context, found, keep=keep)
    assert moved[:2] == [(0,), (0, 1)]
    assert moved[2:] == ([(0,)] if chosen.cores else [])
    assert why.startswith(f"measured: {chosen}")
    moved.clear()
    chosen, why = costs.choose_threads(context, found, keep=lambda cores: False)
    assert not chosen.cores
    assert "kept on" not in why
    assert costs.behind_ms(context, 100) > 0
    assert context.last_position(0) == -1
    context.close()


def test_what_is_asked_in_advance_leaves_a_core_where_all_compute(tiny_model: Path) -> None:
    usable = costs.usable_threads()
    found = built(tiny_model, Engine(threads=usable))
    assert (found.threads, found.chosen.threads_ahead) == (usable, max(1, usable - 1))
    device = {**msgspec.to_builtins(found.chosen), "threads": found.threads}
    told = "\n".join(report.status({"device": device}))
    assert ("for what is asked in advance" in told) == (usable > 1)


def test_threads_and_cores_of_the_last_start_are_taken_again(tiny_model: Path) -> None:
    first = built(tiny_model, Engine())
    assert first.chosen.threads_why.startswith("measured: ")
    again = built(tiny_model, Engine(), profile=first)
    assert (again.threads, again.chosen, again.verify) == (first.threads, first.chosen, first.verify)


def test_a_cache_in_host_memory_decodes_the_same(tiny_model: Path) -> None:
    opened = ladder(start(tiny_model, Engine(threads=1, kv_offload="off")))
    assert not opened.context.offload
    assert opened.notes[0].startswith("engine.kv_offload has no effect: ")
    opened.close()
