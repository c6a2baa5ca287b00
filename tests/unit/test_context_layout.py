"""The exact token ids that are sent, per model family and kind of request."""

from __future__ import annotations

import time

import msgspec
import pytest
from support import tiny

from daemon.context.head import fitting
from daemon.context.layout import Layout, half_typed
from daemon.errors import NotSupported
from daemon.machine import EngineProfile, FimIds, ModelFacts
from daemon.nouns import CompletionRequest, Extra, Limits, Prompt
from daemon.settings import Context
from daemon.surroundings import Piece, Stable
from indexer.tokens import TiktokenTokenizer, count, to_ids
from indexer.vocabulary import FORMAT, Vocabulary

FIM = FimIds(pre=900, suf=901, mid=902, pad=903, rep=904, sep=905)
PROFILE = EngineProfile(
    model=ModelFacts(
        name="t", path="t", sha256="t", architecture="t", vocabulary=1000, trained_context=4096, fim=FIM
    ),
    backend="CPU",
    device="t",
    why="t",
    threads=1,
    context=2048,
)
CONTEXT = Context()


@pytest.fixture(scope="module")
def tokenizer() -> TiktokenTokenizer:
    table = {v: k for k, v in tiny.byte_table().items()}
    pieces = [bytes(table[c] for c in token) for token in tiny.vocabulary()[0]]
    return TiktokenTokenizer(Vocabulary(format=FORMAT, sha256="t", kind="bpe", pre="qwen2", pieces=pieces))


def ask(prefix: str, suffix: str = "", **more: object) -> CompletionRequest:
    return CompletionRequest(id="1", client="c", door="t", prefix=prefix, suffix=suffix, **more)  # type: ignore[arg-type]


def text(tokenizer: TiktokenTokenizer, prompt: Prompt) -> str:
    """The prompt with its control ids written out."""
    names = {900: "<pre>", 901: "<suf>", 902: "<mid>", 904: "<rep>", 905: "<sep>", 354: "<bos>"}
    out, run = "", []
    for token in [*to_ids(prompt.tokens), 900]:
        if token in names:
            out += tokenizer._encoding.decode(run) + names[token]
            run = []
        else:
            run.append(token)
    return out.removesuffix("<pre>") + tokenizer._encoding.decode(run)


def test_anchored_and_healed(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    prompt, _ = layout.plan(ask("a = 1\nb = 2\nc = 3\nd = 4\nreturn tot", "\nend\n"))
    assert text(tokenizer, prompt) == "<pre>a = 1\n<suf>\nend\n<mid>b = 2\nc = 3\nd = 4\nreturn"
    assert prompt.must == b" tot"
    assert prompt.line == "return tot"
    assert sum(s.tokens for s in prompt.segments) == count(prompt.tokens)


def test_cursor_split_without_healing(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    prompt, _ = layout.plan(ask("a\nreturn tot", "\nend", anchor_lines=-1, heal=False))
    assert text(tokenizer, prompt) == "<pre>a\nreturn tot<suf>\nend<mid>"
    assert prompt.must == b""


def test_cursor_split_heals_the_prefix(tokenizer: TiktokenTokenizer) -> None:
    prompt, _ = Layout(tokenizer, PROFILE, CONTEXT).plan(ask("a\nreturn tot", "x", anchor_lines=-1))
    assert text(tokenizer, prompt) == "<pre>a\nreturn<suf>x<mid>"
    assert prompt.must == b" tot"


def test_extras_are_stable_context_in_order(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    extras = (Extra(text="one", filename="a.py"), Extra(text="two\n", filename="b.py"))
    prompt, _ = layout.plan(ask("x = ", path="c.py", extras=extras))
    assert text(tokenizer, prompt).startswith(
        "<rep>project\n<sep>a.py\none\n<sep>b.py\ntwo\n<sep>c.py\n<pre>"
    )
    more = (*extras, Extra(text="three", filename="d.py"))
    longer, _ = layout.plan(ask("x = ", path="c.py", extras=more))
    shared = prompt.tokens[: prompt.tokens.index((905).to_bytes(4, "little") + tokenizer.encode("c.py\n"))]
    assert longer.tokens.startswith(shared), "a new extra only appends"


def test_oldest_extras_go_first(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, msgspec.structs.replace(CONTEXT, extra_tokens=60))
    extras = tuple(Extra(text=f"{i}" * 40, filename=f"{i}.py") for i in range(5))
    prompt, _ = layout.plan(ask("x", extras=extras))
    kinds = [(s.kind, s.source) for s in prompt.segments if s.kind == "extra"]
    assert kinds == [("extra", "4.py")]


@pytest.mark.parametrize(("more", "shown"), [({}, 1), ({"cache": False}, 3), ({"context": "now"}, 3)])
def test_who_waits_for_the_answer_gets_all_extras_that_have_room(
    tokenizer: TiktokenTokenizer, more: dict[str, object], shown: int
) -> None:
    slow = msgspec.structs.replace(PROFILE, prefill=((64, 64_000.0),))
    extras = tuple(Extra(text=f"{i}" * 20, filename=f"{i}.py") for i in range(3))
    prompt, _ = Layout(tokenizer, slow, CONTEXT).plan(ask("x", extras=extras, **more))
    assert sum(s.kind == "extra" for s in prompt.segments) == shown


def test_control_strings_in_text_stay_text(tokenizer: TiktokenTokenizer) -> None:
    source = "".join(tiny.CONTROL) + "<|im_start|><fim_middle>"
    prompt, _ = Layout(tokenizer, PROFILE, CONTEXT).plan(ask(source + "\n\n\n\n\nx", source))
    control = [t for t in to_ids(prompt.tokens) if t >= len(tiny.vocabulary()[0])]
    assert control == [900, 901, 902]


def test_a_model_without_fim_gets_the_plain_prefix_and_says_so(tokenizer: TiktokenTokenizer) -> None:
    plain = msgspec.structs.replace(PROFILE, model=msgspec.structs.replace(PROFILE.model, fim=FimIds()))
    prompt, _ = Layout(tokenizer, plain, CONTEXT).plan(ask("a = b(", ")"))
    assert text(tokenizer, prompt) == "a = b("
    assert "plain prefix" in prompt.reason


def test_bos_is_added_once_and_only_where_the_model_asks(tokenizer: TiktokenTokenizer) -> None:
    model = msgspec.structs.replace(PROFILE.model, bos=354, add_bos=True)
    prompt, _ = Layout(tokenizer, msgspec.structs.replace(PROFILE, model=model), CONTEXT).plan(ask("a", "b"))
    assert to_ids(prompt.tokens)[:2] == [354, 900]


def test_empty_document(tokenizer: TiktokenTokenizer) -> None:
    prompt, _ = Layout(tokenizer, PROFILE, CONTEXT).plan(ask("", ""))
    assert to_ids(prompt.tokens) == [900, 901, 902]
    none = msgspec.structs.replace(PROFILE, model=msgspec.structs.replace(PROFILE.model, fim=FimIds()))
    plain, _ = Layout(tokenizer, none, CONTEXT).plan(ask("", ""))
    assert count(plain.tokens) == 1


@pytest.mark.parametrize("filler", ["x = 1\n", "y" * 100, "é你 "])
def test_any_size_fits_the_window(tokenizer: TiktokenTokenizer, filler: str) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    huge = filler * (500_000 // len(filler))
    prompt, _ = layout.plan(ask(huge, huge))
    assert count(prompt.tokens) <= PROFILE.context - 64


def test_no_room_is_an_error(tokenizer: TiktokenTokenizer) -> None:
    with pytest.raises(NotSupported, match="does not fit"):
        Layout(tokenizer, PROFILE, CONTEXT).plan(ask("x" * 50, limits=Limits(tokens=2047)))


def test_slow_machine_bounds_what_a_jump_costs(tokenizer: TiktokenTokenizer) -> None:
    fast = msgspec.structs.replace(PROFILE, context=8192)
    slow = msgspec.structs.replace(fast, prefill=((32, 150.0),))
    document = "".join(f"value_{i} = compute({i})\n" for i in range(300))
    prompt, _ = Layout(tokenizer, slow, CONTEXT).plan(ask(document[:4000], document[4000:]))
    whole, _ = Layout(tokenizer, fast, CONTEXT).plan(ask(document[:4000], document[4000:]))
    assert count(prompt.tokens) < count(whole.tokens) / 2


def test_the_rate_is_learned_from_real_requests(tokenizer: TiktokenTokenizer) -> None:
    document = "".join(f"value_{i} = compute({i})\n" for i in range(300))
    busy = msgspec.structs.replace(PROFILE, context=8192, prefill=((32, 1500.0),))
    layout = Layout(tokenizer, busy, CONTEXT)
    first, _ = layout.plan(ask(document[:3000], document[3000:]))
    for _ in range(10):
        layout.learn(256, 256.0)
        layout.learn(3, 1.0)
    later, _ = layout.plan(ask(document[:6000], document[6000:]))
    assert count(later.tokens) > 2 * count(first.tokens)


def test_a_keystroke_only_appends(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    document = "".join(f"value_{i} = compute({i})\n" for i in range(40))
    previous = layout.plan(ask(document, "\nend"))[0].tokens
    typed = ""
    for c in "return a + b(c":
        typed += c
        tokens = layout.plan(ask(document + typed, "\nend"))[0].tokens
        shared = next(
            (i for i in range(0, len(previous), 4) if previous[i : i + 4] != tokens[i : i + 4]), len(previous)
        )
        assert len(tokens) - shared <= 4 * 4
        previous = tokens


def stable(*pieces: tuple[str, str]) -> Stable:
    made = [Piece(tier="P2", kind="definition", path=path, text=body, name="n") for path, body in pieces]
    return Stable(epoch=1, pieces=tuple(made))


def test_the_epoch_stands_before_the_clients_snippets_under_one_path_each(
    tokenizer: TiktokenTokenizer,
) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    request = ask("x = ", path="c.py", extras=(Extra(text="one", filename="e.py"),))
    head = stable(("a.py", "def a(): ..."), ("a.py", "def b(): ...\n"), ("d.py", "class D: ..."))
    prompt, _ = layout.plan(request, head)
    assert text(tokenizer, prompt).startswith(
        "<rep>project\n<sep>a.py\ndef a(): ...\ndef b(): ...\n<sep>d.py\nclass D: ...\n"
        "<sep>e.py\none\n<sep>c.py\n<pre>"
    )
    assert sum(s.tokens for s in prompt.segments) == count(prompt.tokens)
    assert [s.tier for s in prompt.segments if s.kind == "context"] == ["P2", "P2", "P2"]


def test_an_epoch_that_grows_keeps_the_head_before_it(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    request = ask("x = ", path="c.py")
    short, _ = layout.plan(request, stable(("a.py", "def a(): ...")))
    long, _ = layout.plan(request, stable(("a.py", "def a(): ..."), ("b.py", "def b(): ...")))
    own = sum(s.tokens for s in short.segments[: [s.kind for s in short.segments].index("context") + 1])
    assert to_ids(short.tokens)[:own] == to_ids(long.tokens)[:own]


def test_idle_time_evaluates_the_following_epoch_at_the_same_anchor(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    request = ask("a = 1\n" * 30 + "x = ", "\nend\n", path="c.py")
    _, anchor = layout.plan(request)
    assert layout.idle(request, anchor, Stable()) is None
    better = layout.idle(request, anchor, Stable(), stable(("a.py", "def a(): ...")))
    assert better is not None
    assert better[1] == anchor
    assert "<sep>a.py\ndef a(): ..." in text(tokenizer, better[0])


@pytest.mark.parametrize("cells", [256, 512, 700, 1024])
def test_context_gives_way_where_there_is_little_room(tokenizer: TiktokenTokenizer, cells: int) -> None:
    layout = Layout(tokenizer, msgspec.structs.replace(PROFILE, context=cells), CONTEXT)
    extras = tuple(Extra(text=f"{i} = {i}\n" * 20, filename=f"some/folder/{i}.py") for i in range(30))
    pieces = stable(*((f"{i}.py", f"def f_{i}(): ...\n" * 3) for i in range(cells // 100)))
    request = ask("value = 1\n" * 300, "\nend\n" * 100, path="c.py", extras=extras)
    prompt, _ = layout.plan(request, pieces)
    assert count(prompt.tokens) <= cells - 64 - 16
    around = sum(s.tokens for s in prompt.segments if s.tier == "P0")
    assert around >= (cells - 64 - 16) // 4
    assert layout.plan(request, pieces)[0].head == prompt.head


def test_snippets_do_not_come_and_go_with_every_measurement(tokenizer: TiktokenTokenizer) -> None:
    slow = msgspec.structs.replace(PROFILE, prefill=((64, 320.0),))
    layout = Layout(tokenizer, slow, CONTEXT)
    extras = tuple(Extra(text=f"value_{i} = {i}\n" * 6, filename=f"{i}.py") for i in range(30))
    heads = set()
    for rate in (0.18, 0.23, 0.17, 0.24, 0.2):
        heads.add(layout.plan(ask("x = ", path="c.py", extras=extras))[0].head)
        layout.learn(1000, 1000 / rate)
    assert len(heads) == 1
    for _ in range(12):
        layout.learn(1000, 1000.0)
    assert layout.plan(ask("x = ", path="c.py", extras=extras))[0].head not in heads


def test_a_snippet_far_too_long_is_not_even_counted() -> None:
    counted: list[int] = []

    def encode(given: str) -> bytes:
        counted.append(len(given))
        return b"\0" * 4 * len(given)

    long, short = Extra(text="x" * 4_000_000), Extra(text="x" * 40, filename="a.py")
    assert fitting((long, short), 60, encode) == (short,)
    assert fitting((Extra(text="x", filename="f" * 60),), 60, encode) == ()
    assert max(counted) < 100


def test_no_absolute_path_is_shown(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, PROFILE, CONTEXT)
    extras = (Extra(text="one", filename="/home/me/e.py"),)
    prompt, _ = layout.plan(ask("x", path="/home/me/c.py", extras=extras), stable(("/home/me/a.py", "A = 1")))
    assert text(tokenizer, prompt).startswith(
        "<rep>project\n<sep>a.py\nA = 1\n<sep>e.py\none\n<sep>c.py\n<pre>"
    )


def test_what_idle_time_may_choose_fits_beside_what_the_client_sends(tokenizer: TiktokenTokenizer) -> None:
    layout = Layout(tokenizer, msgspec.structs.replace(PROFILE, context=8192), CONTEXT)
    extras = tuple(Extra(text=f"value_{i} = {i}\n" * 8, filename=f"{i}.py") for i in range(99))
    request = ask("a = 1\n" * 30, "\nend\n", path="c.py", extras=extras)
    prompt, anchor = layout.plan(request)
    sent = sum(s.tokens for s in prompt.segments if s.kind == "extra")
    assert sent > 1900
    room = layout.stable_room(8192, request, prompt)
    assert 500 < room < 4096 - sent - CONTEXT.prefix_tokens - CONTEXT.suffix_tokens
    following = stable(("a.py", "b = 2\n" * (room // 5)))
    assert layout.idle(request, anchor, Stable(), following) is not None


def test_a_half_typed_word_is_found_at_once_in_any_text() -> None:
    found = {text: half_typed(text) for text in ("", "a b", "a  b_1", "a(", "a( ", "ab", "é", " é", "x\nfoo")}
    assert list(found.values()) == ["", " b", " b_1", "", " ", "ab", "", "", "foo"]
    began = time.perf_counter()
    assert half_typed("a" * 200_000 + "-") == ""
    assert time.perf_counter() - began < 1.0
