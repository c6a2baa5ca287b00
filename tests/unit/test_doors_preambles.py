"""What clients write above a text, taken off; and texts that begin with comments of their own."""

from typing import Any
from urllib.request import url2pathname

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.house import standing

from daemon.doors.preambles import Bare, take_off
from daemon.nouns import Extra

TEXT = "def area(r):\n    return "


def test_minuet() -> None:
    for indentation in ("4 spaces", "\t"):
        head = f"# language: python\n# indentation: use {indentation} for a tab\n"
        assert take_off(head + TEXT) == Bare(TEXT, language="python")
    html = "<!-- language: html -->\n<!-- indentation: use 2 spaces for a tab -->\n<p>"
    assert take_off(html) == Bare("<p>", language="html")
    vim = '"language: vim\n"indentation: use 2 spaces for a tab\nlet x = '
    assert take_off(vim) == Bare("let x = ", language="vim")


def test_twinny() -> None:
    path = "/shapes/my%20src/area.py"
    head = f"\n\n# Language: Python (python) \n# File uri: file://{path} (python) \n"
    assert take_off(head + TEXT) == Bare(TEXT, path=url2pathname(path), language="python")
    unsaved = "\n\n// Language: Go (go) \n// File uri: untitled:Untitled-1 (go) \nx"
    assert take_off(unsaved) == Bare("x", language="go")


def test_continue_without_other_files() -> None:
    assert take_off(f"\n# src/area.py\n{TEXT}") == Bare(TEXT, language="python")
    assert take_off("\n// area.ts\n// Area of a circle\nx") == Bare(
        "// Area of a circle\nx", language="typescript"
    )


def test_continue_with_other_files() -> None:
    head = (
        "// Path: lib/pi.ts\n// export const PI = 3.14\n// \n// export const E = 2.72\n"
        "// Path: lib/none.ts\n// Path: lib/e.ts\n// export {}\n// src/area.ts\n"
    )
    extras = (
        Extra(text="export const PI = 3.14\n\nexport const E = 2.72\n", filename="lib/pi.ts"),
        Extra(text="export {}\n", filename="lib/e.ts"),
    )
    body = "// Areas.\nimport { PI } from './pi'\n"
    assert take_off(head + body) == Bare(body, language="typescript", extras=extras)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        TEXT,
        "# language: fr\n\nFeature: x\n",
        "# src/area.py\nimport os\n",
        "\n# import os.path\nx = 1\n",
        "\n# a comment\n# src/area.py\n",
        "// Path: lib/pi.ts\n// and nothing more\nx",
        "# Path: the way\n",
        "\n// src/area.ts",
        "\n\n# Language: Python\n\n# File uri: file:///x.py (python)\n",
        "\nfor x.py\n",
    ],
)
def test_comments_of_its_own_stay(text: str) -> None:
    assert take_off(text) == Bare(text)


CALLS = [
    ("/v1/completions", {"suffix": "\n"}),
    ("/fim/completions", {"suffix": "\n"}),
    ("/api/generate", {"suffix": "\n", "stream": False}),
    ("/completion", {}),
]


@pytest.mark.parametrize(("path", "body"), CALLS)
async def test_every_dialect_takes_it_off(path: str, body: dict[str, Any]) -> None:
    head = "# Path: lib/pi.py\n# PI = 3.14\n# src/area.py\n"
    prompt = head + TEXT
    if not body:
        prompt = f"<|fim_prefix|>{prompt}<|fim_suffix|>\n<|fim_middle|>"
    async with standing() as house:
        assert (await house.ask("POST", path, {"prompt": prompt, **body})).status == 200
        assert (
            await house.ask("POST", path, {"prompt": prompt, **body}, {"x-foretype-context": "off"})
        ).status == 200
        ours, sent = house.pipeline.requests
        assert (ours.prefix, ours.suffix, ours.language, ours.path) == (TEXT, "\n", "python", None)
        assert ours.extras == (Extra(text="PI = 3.14\n", filename="lib/pi.py"),)
        assert (sent.prefix, sent.extras) == (head + TEXT, ())


@given(
    st.lists(st.sampled_from(["\n", "# ", "// ", "Path: ", "a.py", "a/b.ts", "x", " "]), max_size=20).map(
        "".join
    )
)
def test_only_the_beginning_goes(text: str) -> None:
    assert text.endswith(take_off(text).text)
