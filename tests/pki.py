"""Certificates made for the run, and web configurations that use them."""

import shutil
import ssl
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

SECRET = "$2b$04$YCWyXl3x8IdJujuoiYodu.aXKNCtaab/klU3XTGOANozQU0F24/ju"  # "secret", at the lowest cost


@dataclass(frozen=True)
class Pki:
    """An authority, certificates of a server and a client, and an unsigned certificate of a stranger."""

    folder: Path

    def path(self, name: str) -> Path:
        return self.folder / name

    def make(self, name: str, *, signed: bool = True, common_name: str = "") -> None:
        alternative = f"subjectAltName=DNS:{name},IP:127.0.0.1,IP:::1,URI:spiffe://site/{name}"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        command += ["-days", "2", "-subj", f"/CN={common_name or name}", "-addext", alternative]
        command += ["-keyout", str(self.path(f"{name}.key")), "-out", str(self.path(f"{name}.crt"))]
        if signed:
            command += ["-CA", str(self.path("ca.crt")), "-CAkey", str(self.path("ca.key"))]
        subprocess.run(command, check=True, capture_output=True)

    def client(self, name: str = "") -> ssl.SSLContext:
        """How a client connects, with a certificate of its own or without."""
        context = ssl.create_default_context(cafile=self.path("ca.crt"))
        if name:
            context.load_cert_chain(self.path(f"{name}.crt"), self.path(f"{name}.key"))
        return context


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Pki:
    if not shutil.which("openssl"):
        pytest.skip("no openssl to make certificates with")
    pki = Pki(tmp_path_factory.mktemp("pki"))
    pki.make("ca", signed=False)
    pki.make("server")
    pki.make("client")
    pki.make("stranger", signed=False)
    return pki


@pytest.fixture
def pki(authority: Pki, tmp_path: Path) -> Pki:
    """A copy that may be changed."""
    return Pki(shutil.copytree(authority.folder, tmp_path / "pki"))


@pytest.fixture
def web_file(tmp_path: Path) -> Callable[[str], Path]:
    """``web_file(text)`` writes a web configuration."""

    def write(text: str) -> Path:
        path = tmp_path / "web.yml"
        path.write_text(text)
        return path

    return write


TLS = "tls_server_config:\n  cert_file: pki/server.crt\n  key_file: pki/server.key\n"
USERS = f"basic_auth_users:\n  prometheus: {SECRET}\n"


@pytest.fixture
def tls_text() -> str:
    return TLS


@pytest.fixture
def users_text() -> str:
    return USERS
