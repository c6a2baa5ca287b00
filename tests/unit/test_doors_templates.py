"""Rendered prompts of every family, taken apart; and texts that look like one and are none."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.doors.templates import FAMILIES, Rendered, take_apart
from daemon.nouns import Extra

P, S = "def area(r):\n    return ", "\n\nprint(area(2))\n"


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: f"{family.name} {family.pre}")
def test_prefix_first_and_suffix_first(family: Any) -> None:
    gap = " " if family.blanks else ""
    parts = {"prefix": P, "suffix": S}
    first = f"{family.pre}{gap}{P}{gap}{family.suf}{S}{gap}{family.mid}"
    assert take_apart(first) == Rendered(family.name, **parts)
    other = f"{family.suf}{S}{family.pre}{P}{family.mid}"
    joint = f"{family.pre}{gap}{family.suf}{S}{gap}{family.mid}{gap}{P}"
    assert take_apart(joint) == Rendered(family.name, **parts)
    if not family.blanks:
        assert take_apart(other) == Rendered(family.name, **parts)
    assert take_apart(first + "3.") == Rendered(family.name, prefix=P + "3.", suffix=S)
    assert take_apart("<s>" + first) == Rendered(family.name, **parts)


def test_codestral_needs_no_middle_marker() -> None:
    assert take_apart(f"[SUFFIX]{S}[PREFIX]{P}") == Rendered("codestral", P, S)
    assert take_apart(f"<s>[SUFFIX][PREFIX]{P}") == Rendered("codestral", P, "")
    assert take_apart("[SUFFIX]b[PREFIX]a[SUFFIX]c[PREFIX]d") is None


def test_codestral_with_other_files() -> None:
    prompt = f"[SUFFIX]{S}[PREFIX]+++++ lib/a.py\nA = 1\n\n+++++ b c.py\nB = 2\n\n+++++ src/area.py\n{P}"
    extras = (Extra(text="A = 1\n", filename="lib/a.py"), Extra(text="B = 2\n", filename="b c.py"))
    assert take_apart(prompt) == Rendered("codestral", P, S, "src/area.py", extras)
    only = f"[SUFFIX]{S}[PREFIX]+++++ src/area.py\n{P}"
    assert take_apart(only) == Rendered("codestral", P, S, "src/area.py")


def test_qwen_repository() -> None:
    prompt = (
        "<|repo_name|>shapes\n<|file_sep|>lib/pi.py\nPI = 3.14\n<|file_sep|>README.md\n# Shapes\n\nText\n"
        f"<|file_sep|>src/area.py\n<|fim_prefix|>{P}<|fim_suffix|>{S}<|fim_middle|>"
    )
    extras = (
        Extra(text="PI = 3.14\n", filename="lib/pi.py"),
        Extra(text="# Shapes\n\nText\n", filename="README.md"),
    )
    assert take_apart(prompt) == Rendered("qwen", P, S, "src/area.py", extras)


def test_windows_line_ends_stay_in_the_text() -> None:
    files = "<|file_sep|>a.py\r\nA = 1\r\n<|file_sep|>b.py\r\n"
    prompt = f"{files}<|fim_prefix|>x\r\n<|fim_suffix|>\r\ny<|fim_middle|>"
    found = Rendered("qwen", "x\r\n", "\r\ny", "b.py", (Extra(text="A = 1\r\n", filename="a.py"),))
    assert take_apart(prompt) == found


def test_starcoder_2_puts_the_path_into_the_prefix() -> None:
    head = "<repo_name>shapes<file_sep>lib/pi.py\nPI = 3.14\n<file_sep>"
    prompt = f"{head}<fim_prefix>src/area.py\n{P}<fim_suffix>{S}<fim_middle>"
    extras = (Extra(text="PI = 3.14\n", filename="lib/pi.py"),)
    assert take_apart(prompt) == Rendered("starcoder", P, S, "src/area.py", extras)
    unnamed = f"<file_sep>import os\nPI = 3.14\n<file_sep><fim_prefix>{P}<fim_suffix>{S}<fim_middle>"
    assert take_apart(unnamed) == Rendered("starcoder", P, S, "", (Extra(text="import os\nPI = 3.14\n"),))


@pytest.mark.parametrize("bars", ["", "|"])
def test_starcoder_and_granite_metadata(bars: str) -> None:
    def mark(name: str) -> str:
        return f"<{bars}{name}{bars}>"

    inside = f"{mark('reponame')}me/shapes{mark('filename')}src/area.py<gh_stars>10-100\n{P}"
    prompt = f"{mark('fim_prefix')}{inside}{mark('fim_suffix')}{S}{mark('fim_middle')}"
    assert take_apart(prompt) == Rendered("qwen" if bars else "starcoder", P, S, "src/area.py")
    before = f"{mark('reponame')}me/shapes{mark('filename')}lib/pi.py\nPI = 3.14\n<|endoftext|>"
    here = (
        f"{mark('filename')}src/area.py\n{mark('fim_prefix')}{P}{mark('fim_suffix')}{S}{mark('fim_middle')}"
    )
    found = take_apart(before + here)
    assert found is not None
    assert (found.path, found.prefix, found.suffix) == ("src/area.py", P, S)
    assert found.extras == (Extra(text="PI = 3.14\n", filename="lib/pi.py"),)


def test_codellama_blanks_belong_to_the_markers() -> None:
    assert take_apart("<PRE>  x =  <SUF> y <MID>") == Rendered("codellama", " x = ", " y")
    assert take_apart("<PRE>x = <SUF>y<MID>") == Rendered("codellama", "x = ", "y")


@pytest.mark.parametrize(
    ("prompt", "prefix", "suffix"),
    [
        ("<|fim_prefix|><|fim_suffix|><|fim_middle|>", "", ""),
        ("<|fim_prefix|><|fim_suffix|>y<|fim_middle|>", "", "y"),
        ("<|fim_prefix|>x<|fim_suffix|><|fim_middle|>", "x", ""),
        ("<|fim_prefix|>a '<|fim_middle|>' b<|fim_suffix|>y<|fim_middle|>", "a '<|fim_middle|>' b", "y"),
        ("<|fim_prefix|>x<|fim_suffix|>'<|fim_middle|>' y<|fim_middle|>", "x", "'<|fim_middle|>' y"),
        ("<|fim_prefix|>'<|fim_prefix|>' x<|fim_suffix|>y<|fim_middle|>", "'<|fim_prefix|>' x", "y"),
        ("<|fim_prefix|>'<fim_suffix>' x<|fim_suffix|>y<|fim_middle|>", "'<fim_suffix>' x", "y"),
    ],
)
def test_edges(prompt: str, prefix: str, suffix: str) -> None:
    assert take_apart(prompt) == Rendered("qwen", prefix, suffix)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1\n",
        'MARKS = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")\n',
        "# [SUFFIX] and [PREFIX]\n",
        "<|fim_prefix|>x<|fim_suffix|>y",
        "<|fim_prefix|>x<|fim_middle|>",
        "<|fim_suffix|>y<|fim_middle|>",
        "<|fim_prefix|>x<|fim_suffix|>y<|fim_suffix|>z<|fim_middle|>",
        "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>c<|fim_middle|>d",
        "Complete this: <|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>",
        "code<|file_sep|>a.py\n<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>",
        "<|im_start|>user\n<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>",
    ],
)
def test_what_is_no_rendered_prompt(text: str) -> None:
    assert take_apart(text) is None


def test_what_llama_vscode_puts_before_it_is_left_out() -> None:
    rendered = f"<|fim_prefix|>{P}<|fim_suffix|>{S}<|fim_middle|>"
    assert take_apart(f"Context:\n\n[object Object]\n[object Object]{rendered}") == Rendered("qwen", P, S)
    assert take_apart(f"Context:\n\n{P}") is None


MARKS = [mark for f in FAMILIES for mark in (f.pre, f.suf, f.mid, *f.files, *f.repos)]
PIECES = st.one_of(
    st.sampled_from([*MARKS, "a.py\n", "+++++ a\n", "<s>", " ", "\n", "\r\n"]), st.text(max_size=6)
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_any_text_is_taken_apart_or_left(text: str) -> None:
    found = take_apart(text)
    if found is not None:
        parts = [found.prefix, found.suffix, found.path, *(e.text + e.filename for e in found.extras)]
        assert sum(map(len, parts)) <= len(text) + len(found.extras)


@given(st.sampled_from(FAMILIES), st.text(), st.text())
def test_what_was_rendered_comes_back(family: Any, before: str, after: str) -> None:
    if any(mark in before + after for mark in MARKS) or (family.open and before.startswith("+++++ ")):
        return
    gap = " " if family.blanks else ""
    text = f"{family.pre}{gap}{before}{gap}{family.suf}{after}{gap}{family.mid}"
    assert take_apart(text) == Rendered(family.name, before, after)
