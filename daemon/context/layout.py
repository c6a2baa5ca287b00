"""From a request to token ids: stable context, anchored prefix, suffix, middle; healed and counted exactly.

    [repo, extras, path]  <prefix> P  <suffix> S  <middle> M → generate

Scaffold ids come from the model's own metadata; text is encoded as ordinary text and can hold no control id.
A model without FIM ids gets the plain prefix, and the prompt's reason says so.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import replace

from daemon.context.anchor import Anchor, Anchors, Window
from daemon.errors import NotSupported
from daemon.nouns import CompletionRequest, EngineProfile, Extra, FimIds, Prompt, Segment
from daemon.redaction import clean
from daemon.settings import Context
from indexer.tokens import Tokenizer, count, to_bytes

HEAL = re.compile(r" ?[A-Za-z0-9_]*\Z")
_CHARS = 3.2
"""Characters per token of code, for window sizes in text; counts are always made with the tokenizer."""
_PATIENCE = 3.0
"""Context that a client sends may cost this many times `jump_ms` at once."""
_REPO = "project"
_CACHED = 64
_TELLING = 32
"""Evaluated tokens from which on a request tells about speed."""
_LEARNING = 0.3
_SUFFIX_SHARE = 0.25
"""Of what a jump may cost: the suffix is evaluated anew at every jump, the prefix where it is unknown."""
Kind = tuple[str, str]


class Layout:
    """Plans prompts for one model. Used by the daemon's loop only."""

    def __init__(self, tokenizer: Tokenizer, profile: EngineProfile, settings: Context) -> None:
        self._tokenizer = tokenizer
        self._profile = profile
        self._settings = settings
        self._encoded: OrderedDict[str, bytes] = OrderedDict()
        self._anchors = Anchors()
        self._rate = 1.0 / max(profile.prefill_ms(1000) / 1000, 1e-6) if profile.prefill else 0.0

    def learn(self, evaluated: int, milliseconds: float) -> None:
        """What a prompt really cost: a machine that was busy when it was measured is not slow for ever."""
        if evaluated >= _TELLING and milliseconds > 0:
            self._rate += (evaluated / milliseconds - self._rate) * _LEARNING

    def plan(self, request: CompletionRequest) -> tuple[Prompt, Anchor]:
        """The prompt for a request, with the anchor it stands at. Raises NotSupported when nothing fits."""
        window = self._window(request)
        fits = self._profile.context - request.limits.tokens - 16
        for _ in range(12):
            anchor, middle, reason = self._anchors.place(request.prefix, request.suffix, window)
            prompt = self._prompt(request, anchor, middle, reason)
            if count(prompt.tokens) <= fits:
                return prompt, anchor
            window = _smaller(window)
        raise NotSupported(
            f"the prompt does not fit the context of {self._profile.context} tokens",
            "Raise engine.context or ask for fewer tokens",
        )

    def idle(self, request: CompletionRequest, anchor: Anchor) -> tuple[Prompt, Anchor] | None:
        """A better anchor to evaluate in idle time, and its prompt; None when this one is fine."""
        if request.anchor_lines is not None or not request.cache:
            return None
        wide = self._anchors.widen(anchor, request.prefix, request.suffix, self._wide(request))
        if wide is None:
            return None
        middle = wide.middle(request.prefix, request.suffix)
        prompt = self._prompt(request, wide, middle or "", "re-anchored in idle time")
        fits = count(prompt.tokens) <= self._profile.context // 2
        return (prompt, wide) if fits and middle is not None else None

    def adopt(self, anchor: Anchor) -> None:
        """The anchor's prompt is evaluated."""
        self._anchors.adopt(anchor)

    def _wide(self, request: CompletionRequest) -> Window:
        settings = self._settings
        lines = settings.anchor_lines if request.anchor_lines is None else request.anchor_lines
        return Window(
            prefix=int(settings.prefix_tokens * _CHARS),
            suffix=int(settings.suffix_tokens * _CHARS),
            middle=int(settings.middle_tokens * _CHARS),
            jump=int(settings.prefix_tokens * _CHARS),
            lines=lines,
            alone=request.anchor_lines is not None,
        )

    def _window(self, request: CompletionRequest) -> Window:
        wide = self._wide(request)
        if request.anchor_lines is not None or not self._rate:
            return wide
        jump = min(wide.jump, int(self._affordable(1.0) * _CHARS))
        suffix = min(wide.suffix, int(self._affordable(_SUFFIX_SHARE) * _CHARS))
        return replace(wide, jump=jump, suffix=suffix)

    def _affordable(self, times: float) -> int:
        """Tokens this machine evaluates in `jump_ms` × `times`."""
        return max(32, int(self._settings.jump_ms * times * self._rate))

    def _prompt(self, request: CompletionRequest, anchor: Anchor, middle: str, reason: str) -> Prompt:
        fim = self._profile.model.fim
        healed = HEAL.search(middle) if request.heal and self._settings.heal else None
        must = healed.group() if healed else ""
        prefix = anchor.prefix
        if must:
            middle = middle[: len(middle) - len(must)]
        elif not middle and request.heal and self._settings.heal and (tail := HEAL.search(prefix)):
            must = tail.group()
            prefix = prefix[: len(prefix) - len(must)]
        extras, redacted = clean(self._affordable_extras(request.extras))
        parts = self._head(request, extras, fim) if fim.usable else self._plain_head()
        if fim.usable:
            parts += [_mark(fim.pre), self._part("prefix", prefix), _mark(fim.suf)]
            parts += [self._part("suffix", anchor.suffix), _mark(fim.mid), self._part("middle", middle)]
        else:
            parts += [self._part("prefix", prefix), self._part("middle", middle)]
            reason = f"{reason}; plain prefix: the model has no fill-in-the-middle tokens"
        if not any(ids for _, ids in parts):
            parts.append((Segment(kind="scaffold", source="newline", tokens=0), self._encode("\n")))
        return Prompt(
            tokens=b"".join(ids for _, ids in parts),
            segments=tuple(
                Segment(kind=s.kind, source=s.source, tokens=count(ids)) for s, ids in parts if ids
            ),
            must=must.encode(),
            line=request.prefix[request.prefix.rfind("\n") + 1 :],
            reason=reason,
            redacted=redacted,
        )

    def _plain_head(self) -> list[tuple[Segment, bytes]]:
        model = self._profile.model
        return [_mark(model.bos, "bos")] if model.add_bos and model.bos >= 0 else []

    def _head(
        self, request: CompletionRequest, extras: tuple[Extra, ...], fim: FimIds
    ) -> list[tuple[Segment, bytes]]:
        """Everything stable before the prefix: nothing at all when there is nothing to say."""
        parts = self._plain_head()
        if not extras or fim.sep < 0:
            return parts
        if fim.rep >= 0:
            parts += [_mark(fim.rep), self._part("repo", _REPO + "\n")]
        for extra in extras:
            text = f"{extra.filename}\n{extra.text}" if extra.filename else f"\n{extra.text}"
            text = text if text.endswith("\n") else text + "\n"
            parts += [_mark(fim.sep), self._part("extra", text, extra.filename)]
        return [*parts, _mark(fim.sep), self._part("path", f"{request.path or 'file'}\n")]

    def _affordable_extras(self, extras: tuple[Extra, ...]) -> tuple[Extra, ...]:
        """The newest extras that fit; the oldest go first, as clients order them oldest first."""
        room = self._settings.extra_tokens
        if self._rate:
            room = min(room, self._affordable(_PATIENCE))
        kept: list[Extra] = []
        for extra in reversed(extras):
            room -= count(self._encode(extra.text))
            if room < 0:
                break
            kept.append(extra)
        return tuple(reversed(kept))

    def _part(self, kind: str, text: str, source: str = "") -> tuple[Segment, bytes]:
        segment = Segment(kind=kind, source=source, tokens=0)  # type: ignore[arg-type]
        return segment, self._encode(text) if text else b""

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


def _mark(token: int, source: str = "") -> tuple[Segment, bytes]:
    return Segment(kind="scaffold", source=source, tokens=1), to_bytes([token])


def _smaller(window: Window) -> Window:
    return replace(
        window,
        prefix=window.prefix * 2 // 3,
        suffix=window.suffix * 2 // 3,
        middle=window.middle * 2 // 3,
        tight=True,
    )
