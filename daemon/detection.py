"""What a secret looks like on one line: detect-secrets' patterns, keywords and entropies, and some of ours.

Of detect-secrets only patterns and entropies are used. Its verification, which asks the owner of a key over
the network, is a method of the same plugins that nothing here calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from detect_secrets.filters import heuristic
from detect_secrets.plugins import keyword
from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.cloudant import CloudantDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString, HexHighEntropyString
from detect_secrets.plugins.ibm_cloud_iam import IbmCloudIamDetector
from detect_secrets.plugins.ibm_cos_hmac import IbmCosHmacDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.softlayer import SoftlayerDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector
from detect_secrets.plugins.twilio import TwilioKeyDetector
from detect_secrets.util.filetype import FileType, determine_file_type

__all__ = ["HAS_DIGIT", "PLACEHOLDER", "RUN", "FileType", "Span", "determine_file_type", "spans_in"]

PLACEHOLDER = "REDACTED"
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (pattern, str(plugin.secret_type))
    for plugin in (
        AWSKeyDetector, AzureStorageKeyDetector, CloudantDetector, DiscordBotTokenDetector,
        GitHubTokenDetector, GitLabTokenDetector, IbmCloudIamDetector, IbmCosHmacDetector, MailchimpDetector,
        NpmDetector, OpenAIDetector, PypiTokenDetector, SendGridDetector, SlackDetector, SoftlayerDetector,
        SquareOAuthDetector, StripeDetector, TelegramBotTokenDetector, TwilioKeyDetector,
    )
    for pattern in plugin.denylist
)  # fmt: skip
"""Each needs a run that `RUN` finds. Not here: IPPublicDetector (no secret), ArtifactoryDetector (`AP` and
nine letters is a word), PrivateKeyDetector and JwtTokenDetector (they find only the beginning)."""
_PASSWORD_IN_URL: re.Pattern[str] = BasicAuthDetector.denylist[0]
_KEYWORD = re.compile(keyword.DENYLIST_REGEX, re.IGNORECASE).search
_BASE64, _HEX = Base64HighEntropyString(), HexHighEntropyString()
_MORE = re.compile(
    r"AIza[\w-]{35}|ya29\.[\w-]{20,}|github_pat_\w{22,}|xapp-[\w-]{20,}|whsec_\w{24,}|[rs]k_(?:live|test)_\w{16,}"
    r"|sk-[\w-]{20,}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|do[por]_v1_[a-f0-9]{64}|AGE-SECRET-KEY-1[A-Z0-9]{50,}"
    r"|eyJ[\w-]{10,}=*\.[\w-]{10,}=*(?:\.[\w=-]*)?"
)
_UNQUOTED = re.compile(
    r"(?:key|token|secret|passw(?:or)?d|pwd|passphrase|credentials?|bearer|signature|sig)\b[\"']?\]?\s*"
    r"(?:[:=]>?|\s)\s*(?:bearer\s+|basic\s+)?[\"'`]?([\w+/=.~!@#$%^&*-]{12,}+)(?!\s*[(\[])",
    re.IGNORECASE,
)
_ENVIRONMENT = re.compile(
    r"^\s*(?:export\s+|set\s+|-e\s+)?\w*(?:passw(?:or)?d|pwd|secret|token|api_?key|passphrase)\w*=([^\s\"'`]{6,})$",
    re.IGNORECASE,
)
_BLOCK = re.compile(r"^[ \t\"'`+#*/]*([A-Za-z0-9+/]{48,}={0,2})(?:\\n|\\r|[\"'`,;+\\) \t])*$")
RUN = re.compile(r"[A-Za-z0-9+/=_-]{20,}")
_TOKEN = 16
HAS_DIGIT = re.compile(r"\d").search
_NAMES = frozenset((
    "a", "access", "account", "admin", "api", "app", "auth", "authorization", "aws", "basic", "bearer",
    "change", "check", "client", "config", "confirm", "confirmation", "credential", "credentials",
    "current", "data", "database", "db", "default", "empty", "encrypted", "env", "error", "false",
    "field", "file", "forgot", "github", "hash", "hashed", "header", "http", "https", "id", "info",
    "input", "invalid", "is", "key", "keys", "label", "login", "master", "me", "missing", "my", "name",
    "new", "no", "none", "null", "of", "old", "only", "optional", "or", "pass", "passphrase", "passwd",
    "password", "passwords", "path", "private", "prompt", "public", "pwd", "redacted", "refresh",
    "remember", "repeat", "required", "reset", "salt", "secret", "secrets", "service", "session", "set",
    "string", "text", "the", "to", "token", "tokens", "true", "type", "undefined", "update", "url",
    "user", "username", "value", "values", "verify", "with", "x", "your",
))  # fmt: skip
"""Words of which names are made: `password = \"new_password\"` is no secret."""
_DOTTED = re.compile(r"(?=\w*[_.])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*").fullmatch
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
Span = tuple[int, int, str]


def spans_in(line: str, kind: FileType) -> Iterator[Span]:
    """(start, end, what it is) of each secret on a line, in no order; they may overlap. `kind` is the
    language as detect-secrets names it: some need no quotes around a value."""
    if any(HAS_DIGIT(run.group()) for run in RUN.finditer(line)):
        yield from _by_pattern(line)
        yield from _by_entropy(line)
    if "://" in line:
        for match in _PASSWORD_IN_URL.finditer(line):
            if not _reference(match.group(1)):
                yield (*match.span(1), str(BasicAuthDetector.secret_type))
    if _KEYWORD(line):
        yield from _by_keyword(line, kind)
    for match in _UNQUOTED.finditer(line):
        if _random(match.group(1), 2.8):
            yield (*match.span(1), "Secret Keyword")


def _by_pattern(line: str) -> Iterator[Span]:
    for pattern, kind in _PATTERNS:
        for match in pattern.finditer(line):
            groups = [match.span(n) for n in range(1, pattern.groups + 1) if match.group(n)]
            span = max(groups, key=lambda s: s[1] - s[0], default=match.span())
            if span[1] - span[0] < _TOKEN:
                span = match.span()  # the group is only the prefix of a token
            yield (*span, kind)
    for match in _MORE.finditer(line):
        if HAS_DIGIT(match.group()):
            yield (*match.span(), "Token")


def _by_keyword(line: str, kind: FileType) -> Iterator[Span]:
    """Assignments to names like `password`, as detect-secrets' KeywordDetector finds them."""
    patterns = keyword.REGEX_BY_FILETYPE.get(kind, keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP)
    if not heuristic.is_indirect_reference(line):
        for pattern, group in patterns.items():
            for match in pattern.finditer(line):
                start = match.start(group)
                quoted = line[start - 1 : start] in ("'", '"', "`")
                value = match.group(group).rstrip() if quoted else match.group(group).rstrip(" \t,;)}]")
                loose = kind in _LOOSE
                if value and (quoted or loose) and not _harmless(value):
                    yield start, start + len(value), "Secret Keyword"
    if kind in (FileType.OTHER, FileType.EXAMPLE):
        for match in _ENVIRONMENT.finditer(line):
            if not _harmless(match.group(1)) and not match.group(1).replace("_", "").isalpha():
                yield (*match.span(1), "Secret Keyword")


_LOOSE = (FileType.YAML, FileType.CONFIG, FileType.INI, FileType.PROPERTIES, FileType.TOML)
"""Languages in which a value needs no quotes."""


def _by_entropy(line: str) -> Iterator[Span]:
    for detector, least, limit in ((_BASE64, 20, 4.5), (_HEX, 32, 3.0)):
        for match in detector.regex.finditer(line):
            value = match.group(2)
            if (
                len(value) >= least
                and detector.calculate_shannon_entropy(value) > limit
                and not _ordered(value)
            ):
                yield (*match.span(2), detector.secret_type)
    if (block := _BLOCK.match(line)) and _random(block.group(1), 4.3):
        yield (*block.span(1), "Base64 block")


def _ordered(value: str) -> bool:
    """An alphabet, or a name or path made of words: nothing that was drawn at random."""
    letters = value.strip("+/-_=")
    return (
        heuristic.is_sequential_string(letters[:8])
        or not HAS_DIGIT(value)
        or heuristic.is_potential_uuid(value)
    )


def _random(value: str, limit: float) -> bool:
    """Drawn, not written: letters and digits without order, and no name such as `config.sha256_digest`."""
    if _DOTTED(value) and sum(map(str.isdigit, value)) <= 3:
        return False
    has = [any(c.isdigit() for c in value), any(c.isalpha() for c in value)]
    return all(has) and not _ordered(value) and _BASE64.calculate_shannon_entropy(value) > limit


def _reference(value: str) -> bool:
    """It names where the value comes from."""
    return value == PLACEHOLDER or heuristic.is_templated_secret(value) or value[0] in "$%{<"


def _harmless(value: str) -> bool:
    """No secret: a reference, a template, prose, or a name made of the words that such names are made of."""
    if _reference(value) or heuristic.is_not_alphanumeric_string(value) or "{" in value:
        return True
    if " " in value.strip():
        return not HAS_DIGIT(value)
    words = _WORD.findall(value)
    return not HAS_DIGIT(value) and all(word.lower() in _NAMES for word in words)
