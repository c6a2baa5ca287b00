"""From a request to token ids: stable context, anchored prefix, suffix, middle; healed and counted exactly.

    [head]  <prefix> P  <suffix> S  <middle> M → generate

Text is encoded as ordinary text and can hold no control id.
A model without FIM ids gets the plain prefix, and the prompt's reason says so.
"""

from __future__ import annotations

import functools
import string
from collections import OrderedDict
from dataclasses import replace
from typing import Literal

import msgspec

from daemon.context.anchor import Anchor, Anchors, Window
from daemon.context.head import Head, Part, digest, fitting, mark
from daemon.errors import NotSupported
from daemon.machine import EngineProfile
from daemon.nouns import Allowance, CompletionRequest, Prompt, Segment
from daemon.ranges import least
from daemon.redaction import clean
from daemon.settings import Context
from daemon.surroundings import Stable
from indexer.tokens import Tokenizer, count, encode_rendered, to_bytes

_WORD = string.ascii_letters + string.digits + "_"
_CHARS = 3.2
"""Characters per token of code, for window sizes in text; counts are always made with the tokenizer."""
_PATIENCE = 3.0
"""Context that a client sends may cost this many times `jump_ms` at once."""
_CACHED = 256
_COUNTED = 1024
"""Texts of pieces, 1 KB each, whose tokens are remembered."""
_TELLING = 32
"""Evaluated tokens from which on a request tells about speed."""
_LEARNING = 0.3
_SUFFIX_SHARE = 0.16
"""Of what a jump may cost: the suffix is evaluated anew at every jump, the prefix where it is unknown."""
_SCAFFOLD = 32
_BESIDE = ("repo", "context", "extra", "path")
"""What gives way when there is less room than text around the cursor needs."""
_STEADY = 1.5
"""What a client may send follows the rate only where it is another by this factor: a snippet that comes and
goes with every measurement costs more than it tells."""
NOTHING = Stable()


class Layout:
    """Plans prompts for one model. Used by the daemon's loop only."""

    def __init__(self, tokenizer: Tokenizer, profile: EngineProfile, settings: Context) -> None:
        self._tokenizer = tokenizer
        self._profile = profile
        self._settings = settings
        self._encoded: OrderedDict[str, bytes] = OrderedDict()
        self._anchors = Anchors()
        self._head = Head(self._encode, profile.model)
        self._counted = functools.lru_cache(_COUNTED)(lambda text: count(tokenizer.encode(text)))
        self._rate = 1.0 / max(profile.prefill_ms(1000) / 1000, 1e-6) if profile.prefill else 0.0
        self._steady = self._rate

    def learn(self, evaluated: int, milliseconds: float) -> None:
        """What a prompt really cost: a machine that was busy when it was measured is not slow for ever."""
        if evaluated >= _TELLING and milliseconds > 0:
            self._rate += (evaluated / milliseconds - self._rate) * _LEARNING
            if not self._steady / _STEADY <= self._rate <= self._steady * _STEADY:
                self._steady = self._rate

    def plan(self, request: CompletionRequest, stable: Stable = NOTHING) -> tuple[Prompt, Anchor]:
        """The prompt for a request behind its stable context, with the anchor it stands at.

        Raises NotSupported when nothing fits.
        """
        if request.rendered:
            return self._as_sent(request)
        window = self._window(request)
        fits = self._profile.context - request.limits.tokens - 16
        for _ in range(14):
            window = replace(window, head=stable.key)
            anchor, middle, reason = self._anchors.place(request.prefix, request.suffix, window)
            prompt = self._prompt(request, stable, anchor, middle, reason)
            if count(prompt.tokens) <= fits:
                return prompt, anchor
            if sum(s.tokens for s in prompt.segments if s.kind in _BESIDE) <= fits // 2:
                window = _smaller(window)
            elif stable.pieces:
                stable = msgspec.structs.replace(stable, pieces=())
            else:
                extras = fitting(request.extras, fits // 3, self._encode)
                request = msgspec.structs.replace(request, extras=extras)
        raise self._too_long()

    def _as_sent(self, request: CompletionRequest) -> tuple[Prompt, Anchor]:
        """A prompt that the client rendered, token for token; only the mark of a beginning is put before it
        where the model needs one, as llama.cpp does."""
        model = self._profile.model
        if len(request.rendered) > 16 * self._profile.context:  # no token of a text is longer on average
            raise self._too_long()
        ids = encode_rendered(self._tokenizer, request.rendered)
        begin = to_bytes([model.bos]) if model.add_bos and model.bos >= 0 else b""
        parts = [] if not begin or ids.startswith(begin) else [mark(model.bos, "bos")]
        parts.append((Segment(kind="prefix", source="as sent", tokens=count(ids), tier="P0"), ids))
        tokens = b"".join(ids for _, ids in parts)
        if count(tokens) > self._profile.context - request.limits.tokens - 16:
            raise self._too_long()
        return Prompt(
            tokens=tokens,
            segments=tuple(segment for segment, _ in parts),
            line=request.prefix[request.prefix.rfind("\n") + 1 :],
            reason="as the client rendered it",
        ), Anchor(request.prefix, request.suffix)

    def _too_long(self) -> NotSupported:
        return NotSupported(
            f"the prompt does not fit the context of {self._profile.context} tokens",
            "Raise engine.context or ask for fewer tokens",
        )

    def idle(
        self, request: CompletionRequest, anchor: Anchor, stable: Stable, following: Stable | None = None
    ) -> tuple[Prompt, Anchor] | None:
        """What to evaluate in idle time: the prompt behind the `following` epoch, else at a better anchor.
        None when the prompt of `anchor` and `stable` is fine as it is."""
        if request.anchor_lines is not None or not request.cache or request.rendered:
            return None
        wide = self._anchors.widen(anchor, request.prefix, request.suffix, self._wide(request))
        for place in (anchor if following is not None else None, wide):
            if place is None or (middle := place.middle(request.prefix, request.suffix)) is None:
                continue
            prompt = self._prompt(request, following or stable, place, middle, "re-anchored in idle time")
            if count(prompt.tokens) <= self._profile.context // 2:
                return prompt, place
        return None

    @property
    def rate(self) -> float:
        """Prompt tokens that this machine evaluates in a millisecond; 0: not known."""
        return self._rate

    def reach(self, request: CompletionRequest) -> tuple[str, str]:
        """What the widest window shows before and after the cursor, which idle time will evaluate."""
        window = self._wide(request)
        return request.prefix[-window.prefix :], request.suffix[: window.suffix]

    def stable_room(self, share: int, request: CompletionRequest, prompt: Prompt) -> int:
        """Tokens of stable context worth having: `share` at most, no more than idle time can evaluate, and
        half of the cells with what else stands in `prompt`."""
        most = min(share, self._settings.stable_tokens, self._profile.context // 3)
        room = least(most, request.allowance.extras)
        if not request.cache or request.context == "now":
            return max(0, room)
        window = sum(s.tokens for s in prompt.segments if s.tier == "P0")
        sent = sum(s.tokens for s in prompt.segments if s.kind == "extra")
        window = max(window, self._settings.prefix_tokens + self._settings.suffix_tokens)
        room = min(room, self._profile.context // 2 - window - sent - _SCAFFOLD)
        return max(0, min(room, int(self._settings.stable_ms * self._rate)) if self._rate else room)

    def idle_share(self, tokens: int) -> float:
        """Share of `stable_ms` that evaluating `tokens` takes; 0 where the rate is not known."""
        return tokens / (self._rate * max(1, self._settings.stable_ms)) if self._rate else 0.0

    def ids(self, text: str) -> bytes:
        """Ids of `text`. May be called from any thread."""
        return self._tokenizer.encode(text) if text else b""

    def count(self, text: str) -> int:
        """Tokens of `text`, remembered: pieces come again and again. May be called from any thread."""
        return self._counted(text)

    def written(self, middle: str, heal: bool) -> bytes:
        """Ids of a middle as a prompt holds it: without the half-typed word that is generated anew."""
        half = half_typed(middle) if heal and self._settings.heal else ""
        return self._encode(middle[: len(middle) - len(half)])

    def adopt(self, anchor: Anchor, stable: Stable) -> None:
        """The anchor's prompt behind this stable context is evaluated."""
        self._anchors.adopt(anchor, stable.key)

    def _wide(self, request: CompletionRequest) -> Window:
        settings = self._settings
        lines = settings.anchor_lines if request.anchor_lines is None else request.anchor_lines
        allowed = request.allowance
        prefix = least(settings.prefix_tokens, allowed.prefix)
        return Window(
            prefix=int(prefix * _CHARS),
            suffix=int(least(settings.suffix_tokens, allowed.suffix) * _CHARS),
            middle=int(least(settings.middle_tokens, allowed.middle) * _CHARS),
            jump=int(prefix * _CHARS),
            lines=lines,
            tight=allowed != Allowance(),
            alone=request.anchor_lines is not None,
        )

    def _window(self, request: CompletionRequest) -> Window:
        wide = self._wide(request)
        if request.anchor_lines is not None or not request.cache or not self._rate:
            return wide
        jump = min(wide.jump, int(self._affordable(1.0, self._rate) * _CHARS))
        suffix = min(wide.suffix, int(self._affordable(_SUFFIX_SHARE, self._rate) * _CHARS))
        return replace(wide, jump=jump, suffix=suffix)

    def _affordable(self, times: float, rate: float) -> int:
        """Tokens that are evaluated in `jump_ms` × `times` at a rate."""
        return max(32, int(self._settings.jump_ms * times * rate))

    def _patience(self, request: CompletionRequest) -> int:
        """Tokens of a client's own snippets that may be evaluated for it at once."""
        room = min(least(self._settings.extra_tokens, request.allowance.extras), self._profile.context // 2)
        measured = not request.cache or request.context == "now"
        return room if measured or not self._rate else min(room, self._affordable(_PATIENCE, self._steady))

    def _prompt(
        self, request: CompletionRequest, stable: Stable, anchor: Anchor, middle: str, reason: str
    ) -> Prompt:
        fim = self._profile.model.fim
        heal = request.heal and self._settings.heal
        prefix = anchor.prefix
        must = half_typed(middle or prefix) if heal else ""
        if middle:
            middle = middle[: len(middle) - len(must)]
        else:
            prefix = prefix[: len(prefix) - len(must)]
        snippets = tuple(extra for extra in request.extras if extra.kind == "snippet")
        extras, redacted = clean(fitting(snippets, self._patience(request), self._encode))
        parts = self._head.parts(stable.path or request.path or "", extras, stable)
        head = digest(b"".join(ids for _, ids in parts))
        if fim.usable:
            parts += [mark(fim.pre), self._part("prefix", prefix), mark(fim.suf)]
            parts += [self._part("suffix", anchor.suffix), mark(fim.mid), self._part("middle", middle)]
        else:
            parts += [self._part("prefix", prefix), self._part("middle", middle)]
            reason = f"{reason}; plain prefix: the model has no fill-in-the-middle tokens"
        if not any(ids for _, ids in parts):
            parts.append((Segment(kind="scaffold", source="newline", tokens=0), self._encode("\n")))
        return Prompt(
            tokens=b"".join(ids for _, ids in parts),
            segments=tuple(
                msgspec.structs.replace(segment, tokens=count(ids)) for segment, ids in parts if ids
            ),
            must=must.encode(),
            head=head,
            line=request.prefix[request.prefix.rfind("\n") + 1 :],
            reason=reason,
            redacted=redacted,
        )

    def _part(self, kind: Literal["prefix", "suffix", "middle"], text: str) -> Part:
        return Segment(kind=kind, source="", tokens=0, tier="P0"), self._encode(text) if text else b""

    def _encode(self, text: str) -> bytes:
        """Ids of `text`; long texts are remembered, because prefix and suffix come again and again."""
        if len(text) < 64:
            return self._tokenizer.encode(text)
        if (known := self._encoded.get(text)) is None:
            known = self._encoded[text] = self._tokenizer.encode(text)
            if len(self._encoded) > _CACHED:
                self._encoded.popitem(last=False)
        self._encoded.move_to_end(text)
        return known


def half_typed(text: str) -> str:
    """The word at the end of `text` with the blank before it: what healing generates anew."""
    stem = text.rstrip(_WORD)
    return text[len(stem) - stem.endswith(" ") :]


def _smaller(window: Window) -> Window:
    return replace(
        window,
        prefix=window.prefix * 2 // 3,
        suffix=window.suffix * 2 // 3,
        middle=window.middle * 2 // 3,
        tight=True,
    )
