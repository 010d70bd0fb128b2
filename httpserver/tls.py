"""``tls_server_config``: applies the settings of Prometheus' exporter-toolkit to Python's ``ssl``.

If ``ssl`` has no exact equivalent, this module is stricter. ``RequireAnyClientCert`` (an unverified certificate)
requires a certificate signed by ``client_ca_file``. ``RequestClientCert`` (an unused certificate) requests no
certificate.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from httpserver.yaml_document import flag, one_of

Wrong = Callable[[str, str], None]
"""Records the name of a setting, and what is wrong with it."""
FILES = ("cert_file", "key_file", "client_ca_file")
TLS_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "RequestClientCert": ssl.CERT_NONE,
    "RequireAnyClientCert": ssl.CERT_REQUIRED,
    "RequireClientCert": ssl.CERT_REQUIRED,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_TLS12_ENCRYPTION = {
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
TLS12_CIPHERS = {f"TLS_ECDHE_{key}_WITH_{name}": f"ECDHE-{key}-{openssl}"
                 for name, openssl in _TLS12_ENCRYPTION.items() for key in ("ECDSA", "RSA")}
"""Names of Go, and those of OpenSSL."""
TLS13_CIPHERS = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
"""TLS 1.3 ciphers. They are accepted without effect, because TLS 1.3 always enables all of them."""
CURVES = {"CurveP256": "prime256v1", "CurveP384": "secp384r1", "CurveP521": "secp521r1", "X25519": "X25519"}


@dataclass(frozen=True, slots=True)
class TlsConfig:
    """The TLS settings of connections."""

    context: ssl.SSLContext
    allowed_sans: frozenset[str] = frozenset()
    """Names of which a client's certificate must have one; empty allows any name."""

    def accepts_client(self, secured: ssl.SSLSocket) -> bool:
        certificate: Any = secured.getpeercert() or {}
        pairs = certificate.get("subjectAltName", ())
        # addresses in their usual form: ::1, not 0:0:0:0:0:0:0:1
        names = {str(ip_address(name.strip())) if kind == "IP Address" else name for kind, name in pairs}
        return not self.allowed_sans or not self.allowed_sans.isdisjoint(names)


def tls_settings(folder: Path) -> dict[str, Any]:
    """The kinds of all settings. Paths are relative to the folder."""

    def readable(name: str) -> Path:
        path = folder / name
        try:
            path.read_bytes()
        except OSError as error:
            raise ValueError(f"cannot read {path}: {error.strerror}") from None
        return path

    return {
        **dict.fromkeys(FILES, readable), "client_auth_type": one_of(CLIENT_AUTH), "client_allowed_sans": [str],
        **dict.fromkeys(("min_version", "max_version"), one_of(TLS_VERSIONS)), "prefer_server_cipher_suites": flag,
        "cipher_suites": [one_of((*TLS12_CIPHERS, *TLS13_CIPHERS))], "curve_preferences": [one_of(CURVES)],
    }  # fmt: skip


def load_tls(settings: Mapping[str, Any], wrong: Wrong) -> TlsConfig:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _certificates(context, settings, wrong)
    _encryption(context, settings, wrong)
    return TlsConfig(context, frozenset(settings.get("client_allowed_sans") or ()))


def _certificates(context: ssl.SSLContext, settings: Mapping[str, Any], wrong: Wrong) -> None:
    for name in ("cert_file", "key_file"):
        if name not in settings:
            wrong(name, "is missing; TLS needs a certificate and its key")
    certificate, key = settings.get("cert_file"), settings.get("key_file")
    if certificate and key:
        with _reported(wrong, "cert_file", "certificate and key do not match or are not PEM"):
            # Without a callback, an encrypted key would ask for its password on the terminal.
            context.load_cert_chain(certificate, key, lambda: "")
    policy = settings.get("client_auth_type") or "NoClientCert"
    context.verify_mode = CLIENT_AUTH[policy]
    if "client_ca_file" not in settings and context.verify_mode is not ssl.CERT_NONE:
        wrong("client_auth_type", f"{policy} needs client_ca_file with the CA of the clients' certificates")
    if "client_ca_file" in settings and policy == "NoClientCert":
        wrong("client_ca_file", "has no effect; set client_auth_type: RequireAndVerifyClientCert")
    if authority := settings.get("client_ca_file"):
        with _reported(wrong, "client_ca_file", "has no PEM certificates"):
            context.load_verify_locations(authority)
    if settings.get("client_allowed_sans") and context.verify_mode is not ssl.CERT_REQUIRED:
        wrong("client_allowed_sans", "needs client_auth_type: RequireAndVerifyClientCert")


def _encryption(context: ssl.SSLContext, settings: Mapping[str, Any], wrong: Wrong) -> None:
    context.minimum_version = TLS_VERSIONS[settings.get("min_version") or "TLS12"]
    context.maximum_version = TLS_VERSIONS[settings.get("max_version") or "TLS13"]
    if (settings.get("min_version"), settings.get("max_version")) == ("TLS13", "TLS12"):
        wrong("max_version", "is older than min_version")
    if settings.get("prefer_server_cipher_suites") is False:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    suites, curves = settings.get("cipher_suites") or (), settings.get("curve_preferences") or ()
    if older := [TLS12_CIPHERS[name] for name in suites if name in TLS12_CIPHERS]:
        context.set_ciphers(":".join(older))
    elif suites and settings.get("max_version") == "TLS12":
        wrong("cipher_suites", "has none that TLS12, the max_version, could use")
    elif suites:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    if len(curves) > 1:
        wrong("curve_preferences", "this Python supports one curve; name one, or omit the setting")
    elif curves:  # X25519 before about Python 3.11.5, for example on Debian 12
        with _reported(wrong, "curve_preferences", f"this Python's OpenSSL does not support {curves[0]!r}"):
            context.set_ecdh_curve(CURVES[curves[0]])


@contextlib.contextmanager
def _reported(wrong: Wrong, name: str, sentence: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "reason", None) or error)
        wrong(name, f"{sentence} ({reason.lower().replace('_', ' ')})")
