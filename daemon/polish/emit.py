"""Generation → Completion: text in the file's own shape, released while it grows.

What is shown cannot be taken back. So the emitter releases at each moment only what no rule can still
remove: complete lines that are no candidate for a repetition, and of the first line everything up to its
last word, which a limit might cut in the middle. The same state decides with and without streaming; any
chunking of a text ends in the same Completion.
"""

from __future__ import annotations

from daemon.documents.positions import denormalise
from daemon.nouns import Completion, CompletionRequest, Generation, Range, Segment
from daemon.polish import boundaries
from daemon.polish.growing import Growing


class Emitter:
    """Polishes one request's text; made per request, used once.

    `replaces` says that the client can replace characters after the cursor; without it text that would
    repeat an auto-closed bracket is cut before it. Feed it raw text, LF only, healed bytes removed.
    """

    def __init__(self, request: CompletionRequest, replaces: bool = True) -> None:
        self.tail = ""
        """After finish: what finish released beyond what feed had returned."""
        self._request = request
        self._replaces = replaces
        self._fed: list[str] = []
        self._released = ""
        self._text = Growing(request)

    def feed(self, text: str) -> str:
        """Take more raw text; the part that is now safe to show, with the file's line ends (often `""`)."""
        self._fed.append(text)
        self._text.take(text)
        safe = denormalise(self._text.safe(self._replaces), self._request.newline)
        if len(safe) <= len(self._released):
            return ""
        piece = safe[len(self._released) :]
        self._released = safe
        return piece

    def finish(
        self, generation: Generation, segments: tuple[Segment, ...] = (), reason: str = ""
    ) -> Completion:
        """The Completion of the whole text; sets `tail`.

        Should the engine's last word contradict what it streamed, what was shown stays the text.
        """
        state = self._text
        if (fed := "".join(self._fed)) != generation.text:
            state = Growing(self._request) if fed else state
            state.take(generation.text)
        plain, replaced, trims = state.final(generation.stop, self._replaces)
        text = denormalise(plain, self._request.newline)
        if not text.startswith(self._released):
            text, replaced = self._released, 0
        self.tail = text[len(self._released) :]
        start = len(self._request.prefix)
        return Completion(
            id=self._request.id,
            text=text,
            replace=Range(start=start, end=start + replaced),
            words=boundaries.words(text),
            lines=boundaries.lines(text),
            stop=generation.stop,
            stop_word=generation.stop_word,
            note=generation.note,
            raw=generation.text.replace("\r\n", "\n").replace("\r", "\n"),
            trims=tuple(trims),
            counters=generation.counters,
            timings=generation.timings,
            segments=segments,
            reason=reason,
            margins=generation.margins,
            tokens=tuple(memoryview(generation.tokens).cast("i")) if generation.margins else (),
        )
