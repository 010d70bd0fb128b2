"""``tls_server_config``: applies the settings of Prometheus' exporter-toolkit to Python's ``ssl``.

If ``ssl`` has no exact equivalent, this module is stricter. ``RequireAnyClientCert`` (an unverified certificate)
requires a certificate signed by ``client_ca_file``. ``RequestClientCert`` (an unused certificate) requests no
certificate.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from httpserver.yaml_document import Section

TLS_SETTINGS = {
    "cert_file": str, "key_file": str, "client_ca_file": str, "client_auth_type": str, "client_allowed_sans": list,
    "min_version": str, "max_version": str, "cipher_suites": list, "prefer_server_cipher_suites": bool,
    "curve_preferences": list, "cert": str, "key": str, "client_ca": str,
}  # fmt: skip
INLINE_SETTINGS = ("cert", "key", "client_ca")
TLS_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "RequestClientCert": ssl.CERT_NONE,
    "RequireAnyClientCert": ssl.CERT_REQUIRED,
    "RequireClientCert": ssl.CERT_REQUIRED,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
TLS12_CIPHERS = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
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
        if not self.allowed_sans:
            return True
        certificate = secured.getpeercert() or {}
        return not self.allowed_sans.isdisjoint(_names(certificate.get("subjectAltName", ())))


def _names(pairs: Iterable[object]) -> Iterator[str]:
    """Yield the names of a certificate in their usual form: ``::1``, not ``0:0:0:0:0:0:0:1``."""
    for pair in pairs:
        match pair:
            case ("IP Address", str(address)):
                yield str(ip_address(address.strip()))
            case (_, str(name)):
                yield name


def tls_files(section: Section, folder: Path) -> tuple[Path, ...]:
    names = ("cert_file", "key_file", "client_ca_file")
    return tuple([folder / section.text(name) for name in names if name in section.values])


def load_tls(section: Section, folder: Path) -> TlsConfig | None:
    """Load the TLS settings; None without a section. Records mistakes."""
    if not section.values:
        return None
    for name in INLINE_SETTINGS:
        if name in section.values:
            section.wrong(name, f"is not supported; write the value to a file and set {name}_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    _certificate(context, section, folder)
    _clients(context, section, folder)
    _versions(context, section)
    _ciphers(context, section)
    _curve(context, section)
    return TlsConfig(context, _sans(section))


def _certificate(context: ssl.SSLContext, section: Section, folder: Path) -> None:
    missing = [name for name in ("cert_file", "key_file") if not section.text(name)]
    for name in missing:
        section.wrong(name, "is missing; TLS needs a certificate and its key")
    present = [name for name in ("cert_file", "key_file") if name not in missing and _readable(section, name, folder)]
    if len(present) < 2:
        return
    try:
        # Without a callback, an encrypted key would ask for its password on the terminal.
        context.load_cert_chain(folder / section.text("cert_file"), folder / section.text("key_file"), lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        section.wrong("cert_file", f"certificate and key do not match or are not PEM ({_plain(reason)})")


def _clients(context: ssl.SSLContext, section: Section, folder: Path) -> None:
    policy = section.text("client_auth_type") or "NoClientCert"
    if policy not in CLIENT_AUTH:
        section.wrong("client_auth_type", f"{policy!r} is not one of {', '.join(CLIENT_AUTH)}")
        return
    authority = "client_ca_file" in section.values
    if authority and policy == "NoClientCert":
        section.wrong("client_ca_file", "has no effect; set client_auth_type: RequireAndVerifyClientCert")
    if CLIENT_AUTH[policy] is not ssl.CERT_NONE and not authority:
        section.wrong("client_auth_type", f"{policy} needs client_ca_file with the CA of the clients' certificates")
    if authority and _readable(section, "client_ca_file", folder):
        try:
            context.load_verify_locations(folder / section.text("client_ca_file"))
        except (OSError, ValueError) as error:
            reason = _plain(getattr(error, "reason", None) or error)
            section.wrong("client_ca_file", f"has no PEM certificates ({reason})")
    context.verify_mode = CLIENT_AUTH[policy]


def _sans(section: Section) -> frozenset[str]:
    sans = frozenset(section.values.get("client_allowed_sans", []))
    if sans and CLIENT_AUTH.get(section.text("client_auth_type")) is not ssl.CERT_REQUIRED:
        section.wrong("client_allowed_sans", "needs client_auth_type: RequireAndVerifyClientCert")
    return sans


def _readable(section: Section, name: str, folder: Path) -> bool:
    try:
        with (folder / section.text(name)).open("rb") as file:
            file.read(1)
    except OSError as error:
        section.wrong(name, f"cannot read {folder / section.text(name)}: {error.strerror}")
        return False
    return True


def _versions(context: ssl.SSLContext, section: Section) -> None:
    for name in ("min_version", "max_version"):
        version = section.text(name) or {"min_version": "TLS12", "max_version": "TLS13"}[name]
        if version not in TLS_VERSIONS:
            section.wrong(name, f"{version!r} is neither TLS12 nor TLS13; older versions are not supported")
        elif name == "min_version":
            context.minimum_version = TLS_VERSIONS[version]
        else:
            context.maximum_version = TLS_VERSIONS[version]
    if (section.text("min_version"), section.text("max_version")) == ("TLS13", "TLS12"):
        section.wrong("max_version", "is older than min_version")


def _ciphers(context: ssl.SSLContext, section: Section) -> None:
    names = section.values.get("cipher_suites", [])
    for name in names:
        if name not in TLS12_CIPHERS and name not in TLS13_CIPHERS:
            section.wrong("cipher_suites", f"{name!r} is not one of {', '.join((*TLS12_CIPHERS, *TLS13_CIPHERS))}")
    if not section.values.get("prefer_server_cipher_suites", True):
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    older = [TLS12_CIPHERS[name] for name in names if name in TLS12_CIPHERS]
    if older:
        context.set_ciphers(":".join(older))
    elif names and section.text("max_version") != "TLS12":
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    elif names:
        section.wrong("cipher_suites", "has none that TLS12, the max_version, could use")


def _curve(context: ssl.SSLContext, section: Section) -> None:
    names = section.values.get("curve_preferences", [])
    for name in names:
        if name not in CURVES:
            section.wrong("curve_preferences", f"{name!r} is not one of {', '.join(CURVES)}")
    if len(names) > 1:
        section.wrong("curve_preferences", "this Python supports one curve; name one, or omit the setting")
    if len(names) == 1 and names[0] in CURVES:
        try:
            context.set_ecdh_curve(CURVES[names[0]])
        except (ssl.SSLError, ValueError):  # X25519 before about Python 3.11.5, for example on Debian 12
            section.wrong("curve_preferences", f"this Python's OpenSSL does not support {names[0]!r}")


def _plain(reason: object) -> str:
    return str(reason).lower().replace("_", " ")
