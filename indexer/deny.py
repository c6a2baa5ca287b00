"""The one list of names that hold secrets. Every path of the product asks here: no row, no context, no log.

Names are compared without regard to case. A name is enough: denied files are never opened. Samples such as
`.env.example` are denied too, because real values are found in them.
"""

from __future__ import annotations

import fnmatch
import re

DENY: tuple[str, ...] = (
    # environment files
    ".env*", "*.env", ".flaskenv", ".envrc",
    # private keys, key stores, certificates with keys
    "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.ppk", "*.jks", "*.keystore", "*.bks", "*.der",
    "*.gpg",
    "*.pgp", "*.age", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_dsa", "*_ecdsa",
    "*_ed25519",
    "*.ovpn", "*.mobileprovision", "ssh_host_*", "authorized_keys*", "known_hosts*",
    # package managers and network clients that keep tokens
    ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".netrc", "_netrc", ".dockercfg", ".dockerconfigjson",
    ".git-credentials", ".gitcredentials", ".my.cnf", ".pgpass", "pgpass.conf", ".s3cfg", ".boto",
    ".htpasswd",
    "htpasswd", ".cargo-credentials", ".terraformrc", "terraform.rc", ".vault-token",
    ".vault_pass*", ".rclone.conf",
    "rclone.conf", "auth.json", ".auth.json", "nuget.config",
    # infrastructure
    "*.tfstate", "*.tfstate.*", "*.tfvars", "*.tfvars.json", "kubeconfig*", "*.kubeconfig",
    "*kubeconfig.y*ml",
    # password stores
    "*.kdbx", "*.kdb", "*.psafe3", "*.agilekeychain", "*.opvault", "*.keychain", "*.keychain-db",
    "login.keychain*",
    # cloud service accounts
    "*service-account*.json", "*service_account*.json", "*serviceaccount*.json", "*firebase-adminsdk*.json",
    "client_secret*.json", "application_default_credentials.json", "google-services.json", "gcp-key*.json",
    "gcloud*key*.json", "accesskeys.csv", "*accesskeys*.csv", "azureprofile.json", "accesstokens.json",
    # shell and database histories hold what was typed
    ".*_history",
)  # fmt: skip
"""Shell patterns for the last part of a path."""

DENY_UNLESS_SOURCE: tuple[str, ...] = (
    "credentials*", ".credentials*", "*credentials", "*credentials.*", "credential", "secret",
    "secrets", "secret.*",
    "secrets.*", "*-secret.*", "*-secrets.*", "*_secret.*", "*_secrets.*", ".secret*", "*.secret",
    "*.secrets",
    "passwords.*", "passwd", "shadow", "*.token", ".token*",
)  # fmt: skip
"""Names that are secrets as data, but ordinary modules when their suffix is a programming language's."""

DENY_FOLDERS: tuple[str, ...] = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".gcloud", ".password-store", ".git",
    "*.agilekeychain", "*.opvault",
)  # fmt: skip
"""Patterns for every earlier part of a path: nothing below such a folder is read."""

DENY_PATHS: tuple[str, ...] = (
    ".docker/config.json", ".config/gh/hosts.yml", ".cargo/credentials.toml", ".bundle/config",
)  # fmt: skip
"""Ends of paths."""

SOURCE_SUFFIXES: frozenset[str] = frozenset((
    "py", "pyi", "js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "go", "rs", "java", "c", "h",
    "cc", "cpp", "cxx", "hh", "hpp", "hxx", "cs", "rb", "php", "kt", "kts", "scala", "swift", "sh",
    "bash", "lua", "md", "rst", "proto", "sql", "vue", "svelte", "dart", "ex", "exs", "erl", "hs",
    "ml", "fs", "clj", "r", "jl", "m", "mm", "zig", "nim", "pl", "pm", "vb", "html", "css", "scss",
))  # fmt: skip


def _any(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(fnmatch.translate(p) for p in patterns))


_always = _any(DENY).match
_unless = _any(DENY_UNLESS_SOURCE).match
_folder = _any(DENY_FOLDERS).match
_name_cache: dict[str, bool] = {}
_folder_cache: dict[str, bool] = {}
_CACHE = 50_000


def denied(path: str) -> bool:
    """True when `path` (relative or absolute, `/` or `\\`) may hold a secret by its name. About 0.3
    µs when seen before."""
    known = _name_cache.get(path)
    if known is None:
        if len(_name_cache) >= _CACHE:
            _name_cache.clear()
        known = _name_cache[path] = _denied(path.replace("\\", "/").lower())
    return known


def _denied(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    if _always(name) or path.endswith(tuple(f"/{end}" for end in DENY_PATHS)) or path in DENY_PATHS:
        return True
    if _unless(name) and name.rpartition(".")[2] not in SOURCE_SUFFIXES:
        return True
    return bool(folder) and _denied_folder(folder)


def _denied_folder(folder: str) -> bool:
    known = _folder_cache.get(folder)
    if known is None:
        if len(_folder_cache) >= _CACHE:
            _folder_cache.clear()
        known = _folder_cache[folder] = any(_folder(part) for part in folder.split("/"))
    return known
