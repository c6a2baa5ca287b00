"""Every dialect from one daemon with the tiny model, on an extra port, over plain HTTP."""

import http.client
import json
import socket
from typing import Any

import pytest
from support.living import Home, home, until

__all__ = ["home"]

P, S = "def total(order):\n    price = 1\n    return ", "\n\nprint(total(None))\n"
RENDERED = f"<|fim_prefix|>{P}<|fim_suffix|>{S}<|fim_middle|>"
Ready = tuple[Home, int]


@pytest.fixture
def ready(home: Home, tiny_model: object) -> Ready:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    home.up("--model", str(tiny_model), "--also", str(port))
    until(lambda: home.status()["model"]["phase"] == "ready", 30)
    return home, port


def post(port: int, path: str, body: Any, **headers: str) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    sent = {"Content-Type": "application/json", **headers}
    connection.request("POST", path, json.dumps({"lines": "free", **body}), sent)
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    assert answer.status == 200, data
    return data


def events(data: bytes) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in data.decode().split("\n") if line]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_one_text_in_every_shape(ready: Ready) -> None:
    home, port = ready
    assert f"http://127.0.0.1:{port}" in home.status()["addresses"]
    asked = {"prompt": P, "suffix": S, "max_tokens": 8}
    post(port, "/v1/completions", asked)  # evaluates the prompt for all that follow
    text = json.loads(post(port, "/v1/completions", asked))["choices"][0]["text"]
    assert text
    found = [
        "".join(
            e["choices"][0]["text"] for e in events(post(port, "/v1/completions", {**asked, "stream": True}))
        ),
        json.loads(post(port, "/v1/completions", {"prompt": RENDERED, "max_tokens": 8}))["choices"][0][
            "text"
        ],
        json.loads(post(port, "/v1/fim/completions", asked))["choices"][0]["message"]["content"],
        json.loads(post(port, "/completion", {"prompt": RENDERED, "n_predict": 8}))["content"],
        json.loads(post(port, "/infill", {"input_prefix": P, "input_suffix": S, "n_predict": 8}))["content"],
    ]
    generate = {"prompt": P, "suffix": S, "options": {"num_predict": 8}}
    found.append("".join(e["response"] for e in events(post(port, "/api/generate", generate))))
    assert found == [text] * len(found)
    counted = home.status()["metrics"]["counters"]["requests"]
    assert counted == {"openai": 4, "fim": 1, "completion": 1, "infill": 1, "ollama": 1}


def test_a_prompt_as_sent_is_another_prompt(ready: Ready) -> None:
    home, port = ready
    body = {"prompt": RENDERED, "max_tokens": 8}
    ours = json.loads(post(port, "/v1/completions", body))["usage"]["prompt_tokens"]
    sent = json.loads(post(port, "/v1/completions", body, **{"x-foretype-context": "off"}))["usage"][
        "prompt_tokens"
    ]
    assert 3 < ours < sent, "what is half typed is taken off ours"
    told = home.run("audit", "--last", "1")
    assert told.returncode == 0, told.stderr


def test_a_taken_port_is_told_and_stops_nothing(home: Home, tiny_model: object) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        home.up("--model", str(tiny_model), "--also", str(port))
        (told,) = [line for line in home.status()["degradations"] if str(port) in line]
        assert "taken by another program" in told
        again = home.run("up", "--port", "0", "--also", str(port))
        assert f"--also {port}" in again.stderr
