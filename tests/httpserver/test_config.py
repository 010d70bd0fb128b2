"""The web configuration file: accepted content, and all mistakes reported at once with their lines."""

import ssl
import sys

import pytest

from httpserver.config import ConfigError, WebConfig, load_web_config

ALL_WRONG = """\
tls_server_config:
  cert_file: nowhere.crt
  key_fil: pki/server.key
  client_auth_type: Perhaps
  min_version: TLS10
  max_version: SSL3
  cipher_suites: [RC4]
  curve_preferences: [X25519, P1]
  prefer_server_cipher_suites: maybe
http_server_config:
  headers:
    X-Anything: 1
    X-Frame-Options: "yes"
  http2: [1]
basic_auth_users:
  a: plain
  a: plain
  b:
    c: d
rate_limit:
  burst: 1
"""


def mistakes(path) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load_web_config(path)
    return [sentence.removeprefix(str(path)).lstrip(":") for sentence in caught.value.sentences]


def test_everything_wrong_is_reported_at_once_with_its_line(web_file) -> None:
    reported = mistakes(web_file(ALL_WRONG))
    lines = [int(sentence.partition(":")[0]) for sentence in reported]
    assert lines == sorted(lines)
    assert set(lines) == {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 16, 17, 18, 20}


@pytest.mark.parametrize(("text", "reported"), [
    ("- a\n", "must be a list of `name: value`"),
    ("a: [\n", "2: is not valid YAML"),
    ("tls_server_config: 5\n", "1: tls_server_config: must be a list of `name: value`"),
    ("tls_server_config:\n  key: abc\n", "2: tls_server_config.key: unknown setting; known settings: cert_file"),
    ("[" * 5000, "is not valid YAML"),
    ("\x00", "is not valid YAML"),
    ("a: &a\n  b: *a\n", "1: a: unknown setting"),
    ("basic_auth_users:\n  ? [a]\n  : b\n", ": unknown setting"),
    ("basic_auth_users:\n  admin:\n", "2: basic_auth_users.admin: is not a bcrypt hash"),
])
def test_mistakes_in_the_file_are_reported(web_file, text, reported) -> None:
    assert any(reported in sentence for sentence in mistakes(web_file(text)))


def test_a_file_that_is_absent(tmp_path) -> None:
    assert mistakes(tmp_path / "none.yml") == [" cannot be read: No such file or directory"]


@pytest.mark.parametrize(("extra", "reported"), [
    ("  client_ca_file: pki/ca.crt\n", "has no effect"),
    ("  client_auth_type: RequireAndVerifyClientCert\n", "needs client_ca_file"),
    ("  client_auth_type: VerifyClientCertIfGiven\n  client_ca_file: web.yml\n", "has no PEM certificates"),
    ("  client_allowed_sans: [a]\n", "needs client_auth_type"),
    ("  min_version: TLS13\n  max_version: TLS12\n", "older than min_version"),
    ("  max_version: TLS12\n  cipher_suites: [TLS_AES_128_GCM_SHA256]\n", "none that TLS12"),
    ("  curve_preferences: [X25519, CurveP256]\n", "supports one curve"),
])
def test_settings_that_do_not_fit_together(pki, web_file, tls_text, extra, reported) -> None:
    assert any(reported in sentence for sentence in mistakes(web_file(tls_text + extra)))


def test_a_key_that_is_another_certificates(pki, web_file, tls_text) -> None:
    reported = mistakes(web_file(tls_text.replace("server.key", "client.key")))
    assert reported == [
        "2: tls_server_config.cert_file: certificate and key do not match or are not PEM (key values mismatch)"
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "basic_auth_users:\n", "tls_server_config: {}\n"])
def test_an_empty_file_asks_for_nothing(web_file, text) -> None:
    path = web_file(text)
    assert load_web_config(path) == WebConfig(files=(path,))


def test_every_setting_takes_effect(pki, web_file, tls_text, users_text) -> None:
    path = web_file(
        f"{tls_text}  min_version: TLS13\n  curve_preferences: [CurveP256]\n  prefer_server_cipher_suites: false\n"
        f"{users_text}http_server_config:\n  http2: false\n  headers:\n    X-Frame-Options: deny\n"
    )
    config = load_web_config(path)
    assert config.tls.context.minimum_version is ssl.TLSVersion.TLSv1_3
    assert not config.tls.context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert config.headers == (("X-Frame-Options", "deny"),)
    assert config.users is not None
    assert config.files == (path, pki.path("server.crt"), pki.path("server.key"))


def test_names_and_values_are_texts_whatever_they_look_like(web_file) -> None:
    hashed = "$2b$04$r7mMLIdezFH1CqytnSf8GeEVjdm4kUw5ENOoJF5zTaN/ORJ408xIy"
    config = load_web_config(web_file(
        f"basic_auth_users:\n  yes: {hashed}\n  010: {hashed}\n"
        "http_server_config:\n  headers:\n    X-XSS-Protection: 0\n"))
    assert config.headers == (("X-XSS-Protection", "0"),)
    assert config.users.allowed("yes", b"new")
    assert config.users.allowed("010", b"new")


def test_cipher_suites_by_their_names_in_go(pki, web_file, tls_text) -> None:
    config = load_web_config(web_file(f"{tls_text}  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n"))
    offered = {c["name"] for c in config.tls.context.get_ciphers() if c["protocol"] == "TLSv1.2"}
    assert offered == {"ECDHE-ECDSA-AES128-GCM-SHA256"}
    config = load_web_config(web_file(f"{tls_text}  cipher_suites: [TLS_AES_256_GCM_SHA384]\n"))
    assert config.tls.context.minimum_version is ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(("module", "reported"), [("yaml", "needs PyYAML"), ("bcrypt", "needs bcrypt")])
def test_a_library_that_is_not_installed_is_named(web_file, users_text, monkeypatch, module, reported) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert any(reported in sentence and "pip install" in sentence for sentence in mistakes(web_file(users_text)))
