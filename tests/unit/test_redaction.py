"""Secrets of every kind leave nothing behind; code stays code; nothing is asked over the network."""

from __future__ import annotations

import ast
import random
import socket
import string
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daemon.detection import PLACEHOLDER
from daemon.nouns import Extra
from daemon.redaction import clean, redact

RANDOM = random.Random(5)
ALPHANUMERIC = string.ascii_letters + string.digits


def drawn(count: int, alphabet: str = ALPHANUMERIC) -> str:
    """A secret of this run of tests: none stands in the repository."""
    return "a1B" + "".join(RANDOM.choice(alphabet) for _ in range(count - 3))


def body(lines: int = 5) -> list[str]:
    return [*(drawn(64, ALPHANUMERIC + "+/") for _ in range(lines)), drawn(22) + "=="]


LOW = string.ascii_lowercase + string.digits
SECRETS = {
    "password": ("a.py", 'password = "{}"', drawn(9)),
    "password in single quotes": ("a.py", "    db_password='{}',", "hunter2"),
    "word": ("a.ts", "const secretKey = '{}';", "swordfish"),
    "dictionary": ("a.py", '    "api_key": "{}",', drawn(14)),
    "aws id": ("a.go", 'id := "{}"', "AKIA" + drawn(16, string.ascii_uppercase).upper()),
    "aws secret": ("a.rb", "aws_secret_access_key = '{}'", drawn(40)),
    "github": ("a.md", "use {} to log in", "ghp_" + drawn(36)),
    "github fine": ("a.md", "use {} to log in", "github_pat_" + drawn(40)),
    "gitlab": ("a.sh", "curl -H 'X: {}'", "glpat-" + drawn(20)),
    "google": ("a.kt", 'maps("{}")', "AIza" + drawn(35)),
    "slack": ("", "{}", "xoxb-1234567890-" + drawn(24, LOW).lower()),
    "stripe": ("a.php", "$x = '{}';", "sk_live_" + drawn(24)),
    "stripe test": ("a.php", "$x = '{}';", "sk_test_" + drawn(24)),
    "openai": ("a.js", "new Client('{}')", "sk-proj-" + drawn(40)),
    "jwt": ("a.js", "get('{}')", f"eyJ{drawn(20)}.eyJ{drawn(30)}.{drawn(43)}"),
    "bearer": ("a.sh", "curl -H 'Authorization: Bearer {}'", drawn(30)),
    "url": ("a.py", 'connect("postgres://app:{}@db/x")', "pw1"),
    "environment": ("", "export DB_PASSWORD={}", drawn(8)),
    "environment token": ("a.sh", "API_TOKEN={}", drawn(20)),
    "yaml": ("a.yml", "  password: {}", "letmein"),
    "toml": ("a.toml", 'secret = "{}"', drawn(10)),
    "hex": (
        "a.c",
        'static char *k = "{}";',
        "0f" + drawn(62, "0123456789abcdef")[2:].lower().replace("b", "0"),
    ),
    "base64": ("a.rs", 'let k = "{}";', drawn(44)),
    "azure": ("a.cs", 'c = "AccountKey={}";', drawn(86) + "=="),
    "npm": ("a.txt", "//registry.example/:_authToken={}", "npm_" + drawn(36)),
    "short hex token": ("a.rs", 'let token = "{}";', "9f86d081884c7d65"),
    "long line": ("a.js", "var a=1;" * 900 + "password = '{}';" + "b();" * 900, drawn(12)),
}


@pytest.mark.parametrize("name", SECRETS)
def test_nothing_of_a_secret_is_left(name: str) -> None:
    path, line, secret = SECRETS[name]
    text = f"first\n{line.replace('{}', secret)}\nlast = 1\n"
    done = redact(text, path)
    assert secret not in done.text
    assert not any(secret[at : at + 8] in done.text for at in range(max(1, len(secret) - 8)))
    assert done.text.count("\n") == text.count("\n")
    assert done.text.startswith("first\n")
    assert done.text.endswith("\nlast = 1\n")
    assert PLACEHOLDER in done.text
    assert done.found
    assert not any(secret in kind for kind in done.found)
    assert redact(done.text, path) == type(done)(text=done.text)


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY"])
@pytest.mark.parametrize(
    "shape", ["{begin}\n{lines}\n{end}\n", 'K = """{begin}\n{lines}\n{end}"""\n', "{begin}\n{lines}\n"]
)
def test_private_keys_as_lines(kind: str, shape: str) -> None:
    lines = body()
    text = shape.format(begin=f"-----BEGIN {kind}-----", lines="\n".join(lines), end=f"-----END {kind}-----")
    done = redact(f"before = 1\n{text}after = 2\n", "a.py")
    assert not any(line.rstrip("=") in done.text for line in lines)
    assert done.text.count("\n") == text.count("\n") + 2
    assert done.text.startswith("before = 1\n")
    assert done.text.endswith("after = 2\n")


def test_a_private_key_in_one_string_stays_a_string() -> None:
    lines = body()
    text = 'K = "-----BEGIN PRIVATE KEY-----\\n' + "\\n".join(lines) + '\\n-----END PRIVATE KEY-----\\n"\n'
    done = redact(text, "a.py")
    assert not any(line in done.text for line in lines)
    assert done.text.count("\\n") == text.count("\\n")
    ast.parse(done.text)


def test_the_middle_of_a_key_is_redacted_without_its_head() -> None:
    lines = body()
    done = redact("\n".join(lines[1:4]), "")
    assert not any(line in done.text for line in lines)


INNOCENT = (
    "password = getpass.getpass('Password: ')",
    "password: str = ''",
    'PASSWORD = "password"',
    'self.secret_key = config["secret_key"]',
    'parser.add_argument("--password", help="the password to use")',
    'raise ValueError("Invalid password given")',
    'url = f"https://{user}:{password}@{host}/"',
    "postgres://$USER:$PASSWORD@localhost",
    'ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"',
    "def test_something_with_a_very_long_name_2_and_more(self) -> None:",
    'from daemon.redaction import redact  # "quoted words in a comment"',
    "signature = base64url_decode2(crypto_segment)",
    "token = self.config.token_provider2.value",
    "token=${GITHUB_TOKEN}",
    'if "-----BEGIN PRIVATE KEY-----" in text: return parse_something_with_a_long_name(text)',
    'id = "123e4567-e89b-12d3-a456-426614174000"',
    'password = "REDACTED"',
)


@pytest.mark.parametrize("line", INNOCENT)
def test_ordinary_code_stays(line: str) -> None:
    assert redact(f"{line}\n", "a.py").text == f"{line}\n"


def test_few_findings_in_this_repository_and_its_python_still_parses() -> None:
    root = Path(__file__).resolve().parents[2]
    files = [f for top in ("daemon", "indexer") for f in (root / top).rglob("*.py")]
    texts = [(f, f.read_text("utf-8")) for f in files]
    found = 0
    for file, text in texts:
        done = redact(text, str(file))
        found += len(done.found)
        ast.parse(done.text)
    assert found <= 3, found
    assert sum(text.count("\n") for _, text in texts) > 10_000


KEY_HEAD, BASE64, JWT = (
    "-----BEGIN PRIVATE KEY-----",
    "Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MGFiY2RlZg",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.abcDEF123",
)
MARKS = ['"', "'", "://u:", "@", "\n", " ", "=", ":", "\\n", "(", "{", "é", "İ", ",", ";", "x"]
WORDS = [
    "password",
    "secret = '",
    "token: ",
    "abc123XYZ789",
    "REDACTED",
    "AKIA1234567890ABCDEF",
    "deadbeef" * 5,
]
PARTS = st.sampled_from([*MARKS, *WORDS, KEY_HEAD, BASE64, JWT])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(PARTS, max_size=25).map("".join), st.sampled_from(["", "a.py", "a.yml", "a.go", "a.c", "a.cpp"])
)
def test_redacting_twice_changes_nothing_and_lines_stay(text: str, path: str) -> None:
    once = redact(text, path)
    assert once.text.count("\n") == text.count("\n")
    assert redact(once.text, path).text == once.text
    assert redact(text, path) == once
    assert (once.text == text) == (not once.found)


def test_no_network_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a network connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    text = "".join(f"def function_{n}(value):\n    return value + {n}  # step {n}\n\n" for n in range(350))
    text += f'aws_key = "AKIA{drawn(16).upper()}"\nslack = "xoxb-123456789-{drawn(20).lower()}"\n'
    began = time.process_time()
    done = redact(text, "a.py")
    first = time.process_time() - began
    assert len(done.found) == 2
    assert first < 0.1  # typical 0.001; the machine that runs tests may be busy
    assert redact(text, "a.py") is done


def test_what_a_client_sends_is_cleaned_and_denied_files_are_left_out() -> None:
    plain = Extra(text="def f(): ...\n", filename="src/a.py")
    secret = Extra(text='password = "hunter22"\n', filename="src/b.py")
    extras, found = clean((plain, Extra(text="A=b\n", filename="/home/x/.env"), secret))
    assert extras == (plain, Extra(text='password = "REDACTED"\n', filename="src/b.py"))
    assert extras[0] is plain
    assert found == ("denied file", "Secret Keyword")
