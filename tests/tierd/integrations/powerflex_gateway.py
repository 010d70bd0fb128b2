"""A gateway on loopback that answers as the public REST API of PowerFlex does, and badly if told to.

The forms are those of the samples in Dell's public documentation for release 3.6. Names and numbers are made up.
"""

import base64
import json
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tierd.clock import Clock
from tierd.integrations.powerflex.gateway import (
    ErrorKind,
    Gateway,
    GatewayError,
    PowerFlexSettings,
    PowerFlexSystem,
    system_of,
)
from tierd.integrations.powerflex.source import PowerFlex
from tierd.sense.http_client import SourceError

USER, PASSWORD = "monitor", "pass word"
NO_RATE = {"numSeconds": 0, "totalWeightInKb": 0, "numOccured": 0}


def rate(mib_per_second: int) -> dict[str, int]:
    return {"numSeconds": 5, "totalWeightInKb": 5 * 1024 * mib_per_second, "numOccured": 5 * mib_per_second}


def mdm(name: str, role: str) -> dict[str, Any]:
    return {"id": name, "name": name, "role": role, "status": "Normal", "ips": ["10.0.0.1"], "port": 9011,
            "versionInfo": "R3_6.0.0"}


SYSTEM: dict[str, Any] = {
    "id": "4a54a8ba6df0690f", "name": "hpc", "systemVersionName": "DellEMC PowerFlex Version: R3_6.0.354",
    "maxCapacityInGb": "Unlimited", "perfProfile": "HighPerformance",
    "mdmCluster": {
        "clusterMode": "ThreeNodes", "clusterState": "ClusteredNormal", "goodNodesNum": 3, "goodReplicasNum": 2,
        "id": "5356091375512217871", "master": mdm("mdm1", "Manager"), "slaves": [mdm("mdm2", "Manager")],
        "tieBreakers": [mdm("tb", "TieBreaker")],
    },
}


def sds(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"8f3bb0cc0000000{number}", "name": f"oss{number}", "mdmConnectionState": "Connected",
            "membershipState": "Joined", "maintenanceState": "NoMaintenance", "sdsState": "Normal", "port": 7072,
            "ipList": [{"ip": f"10.0.1.{number}", "role": "all"}], "numOfIoBuffers": None,
            "perfProfile": "HighPerformance", "protectionDomainId": "9300c1f900000000", **more}


def sdc(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"07335d3d0000000{number}", "name": None, "sdcIp": f"10.0.1.{number}", "sdcApproved": True,
            "mdmConnectionState": "Connected", "osType": "Linux", "perfProfile": "HighPerformance",
            "versionInfo": "R3_6.0.0", **more}


def device(number: int) -> dict[str, Any]:
    return {"id": f"b6efa59900{number:06}", "deviceCurrentPathName": f"/dev/nvme{number}n1", "deviceState": "Normal",
            "errorState": "None", "mediaType": "SSD", "sdsId": "8f3bb0cc00000001", "storagePoolId": "e0d8f6c900000000"}


def volume(number: int, pool: str = "e0d8f6c900000000") -> dict[str, Any]:
    return {"id": f"456afc790000000{number}", "name": f"ost{number}", "sizeInKb": 4 << 30, "storagePoolId": pool,
            "volumeType": "ThickProvisioned", "mappedSdcInfo": [{"sdcId": f"07335d3d0000000{number}"}]}


def pool_statistics(**more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"maxCapacityInKb": 32 << 30, "capacityInUseInKb": 20 << 30, "failedCapacityInKb": 0,
                             "degradedHealthyCapacityInKb": 0, "degradedFailedCapacityInKb": 0}
    for kind in ("Fwd", "Bck", "Norm"):
        found |= {f"{kind.lower()}RebuildReadBwc": NO_RATE, f"{kind.lower()}RebuildWriteBwc": NO_RATE,
                  f"active{kind}RebuildCapacityInKb": 0, f"pending{kind}RebuildCapacityInKb": 0}
    return found | {"rebalanceReadBwc": NO_RATE, "rebalanceWriteBwc": NO_RATE, "activeRebalanceCapacityInKb": 0,
                    "pendingRebalanceCapacityInKb": 0, **more}


def answers() -> dict[str, Any]:
    """What the gateway knows, by request."""
    return {
        "System": [SYSTEM],
        "StoragePool": [{"id": "e0d8f6c900000000", "name": "nvme", "rebuildEnabled": True, "rebalanceEnabled": True},
                        {"id": "e0d8f6c900000001", "name": "hdd"}],
        "Volume": [volume(0), volume(1), volume(2, "e0d8f6c900000001")],
        "Sds": [sds(1), sds(2)], "Sdc": [sdc(1), sdc(2)], "Device": [device(0), device(1)],
        "statistics": {
            "StoragePool": {"e0d8f6c900000000": pool_statistics(), "e0d8f6c900000001": pool_statistics()},
            "Volume": {"456afc7900000000": {"userDataReadBwc": rate(100), "userDataWriteBwc": rate(30)}},
        },
    }  # fmt: skip


class AnsweringGateway(Gateway):
    """A gateway that answers without a network, or not at all."""

    def __init__(self, settings: PowerFlexSettings) -> None:
        super().__init__(settings, lambda: 0.0)
        self.known = answers()
        self.silent = False

    def read(self) -> PowerFlexSystem:
        if self.silent:
            self.errors[ErrorKind.CONNECTION] += 1
            raise GatewayError(ErrorKind.CONNECTION, "https://gateway: no answer")
        return system_of({kind: found for kind, found in self.known.items() if kind != "statistics"},
                         self.known["statistics"])

    def rebuild(self, mib_per_second: int, pending_kib: int) -> None:
        """The pool of volumes ost0 and ost1 is rebuilt from now on."""
        self.known["statistics"]["StoragePool"]["e0d8f6c900000000"] |= {
            "fwdRebuildWriteBwc": rate(mib_per_second), "activeFwdRebuildCapacityInKb": 4 << 20,
            "pendingFwdRebuildCapacityInKb": pending_kib, "degradedHealthyCapacityInKb": pending_kib}


class AtOnce(Executor):
    """Runs each call before ``submit`` returns."""

    def submit(self, fn: Any, /, *arguments: Any, **more: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(fn(*arguments, **more))
        except SourceError as error:
            done.set_exception(error)
        return done


def answering(clock: Clock) -> PowerFlex:
    """PowerFlex below all OSTs of the file system ``lustre``, without a network."""
    settings = PowerFlexSettings("https://gateway", 4, USER, "password", volumes={
        "ost0": ("OST0000", "OST0001"), "ost2": tuple(f"OST{number:04x}" for number in range(2, 6))})
    return PowerFlex(settings, "lustre", AnsweringGateway(settings), clock, AtOnce())


@dataclass
class PowerFlexStub:
    """The gateway."""

    release: int
    url: str = ""
    known: dict[str, Any] = field(default_factory=answers)
    logins: int = 0
    tokens: set[str] = field(default_factory=set)
    """Tokens that are valid. Without them every request gets 401."""
    password: str = PASSWORD
    bad: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Status and body instead of the answer, by path."""
    asked: Counter[str] = field(default_factory=Counter)
    wait: threading.Event | None = None
    """If set, an answer is sent when it happens."""

    def statistics(self, **of_pool: Any) -> None:
        self.known["statistics"]["StoragePool"]["e0d8f6c900000000"] |= of_pool


class Handler(BaseHTTPRequestHandler):
    stub: PowerFlexStub

    def do_GET(self) -> None:
        self.answer(b"")

    def do_POST(self) -> None:
        self.answer(self.rfile.read(int(self.headers.get("Content-Length", "0"))))

    def answer(self, body: bytes) -> None:
        stub, path = self.stub, self.path
        stub.asked[path] += 1
        if stub.wait is not None:
            stub.wait.wait(20)
        if path in stub.bad:
            return self.send(*stub.bad[path])
        if path == "/api/login" and stub.release == 3:
            given = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
            return self.login(given == f"{USER}:{stub.password}", lambda token: token)
        if path == "/rest/auth/login" and stub.release == 4:
            given = json.loads(body)
            right = given == {"username": USER, "password": stub.password}
            return self.login(right, lambda token: {"access_token": token, "refresh_token": "r", "expires_in": 300})
        if path.endswith("login"):
            return self.send(404, b'{"message":"Not found","httpStatusCode":404,"errorCode":0}')
        if self.headers.get("Authorization") not in self.valid():
            return self.send(401, b'{"message":"Unauthorized","httpStatusCode":401,"errorCode":0}')
        if path == "/api/instances/querySelectedStatistics":
            assert {one["type"] for one in json.loads(body)["selectedStatisticsList"]} == {"StoragePool", "Volume"}
            return self.send(200, json.dumps(stub.known["statistics"]).encode())
        return self.send(200, json.dumps(stub.known[path.split("/")[3]]).encode())

    def valid(self) -> set[str]:
        if self.stub.release == 4:
            return {f"Bearer {token}" for token in self.stub.tokens}
        return {f"Basic {base64.b64encode(f'{USER}:{token}'.encode()).decode()}" for token in self.stub.tokens}

    def login(self, right: bool, form: Any) -> None:
        self.stub.logins += 1
        if not right:
            return self.send(401, b'{"message":"Unauthorized","httpStatusCode":401,"errorCode":0}')
        token = f"token{self.stub.logins}"
        self.stub.tokens = {token}
        return self.send(200, json.dumps(form(token)).encode())

    def send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if body[:1] == b"<" else "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def gateway(release: int = 4, tls: ssl.SSLContext | None = None) -> Iterator[PowerFlexStub]:
    """A gateway with two pools, three volumes, two data servers and two data clients."""
    stub = PowerFlexStub(release)
    handler = type("StubHandler", (Handler,), {"stub": stub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        stub.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            if stub.wait is not None:
                stub.wait.set()
            server.shutdown()
