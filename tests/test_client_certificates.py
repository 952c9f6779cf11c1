"""Client certificates as credentials: identities that gRPC has verified, named in the file of keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from credentials import KeyMaker, Metadata, bearer, keys_in
from memory_service.config import Config
from memory_service.domain.page_tokens import PageTokens
from memory_service.limits import Limits
from memory_service.records.in_memory.store import InMemoryStore
from memory_service.server.access.opening import open_access
from memory_service.server.call_guard import CallGuard
from memory_service.server.services import Services
from memory_service.v1 import admin_pb2, admin_pb2_grpc, memory_pb2, memory_pb2_grpc

DENIED = "PERMISSION_DENIED"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def pem(self) -> tuple[bytes, bytes]:
        """Key and certificate in gRPC's form."""
        key = self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return key, self.certificate.public_bytes(Encoding.PEM)


def signed(names: list[str], authority: Pair | None = None, alternatives: tuple[Any, ...] = ()) -> Pair:
    """Return a certificate with these common names; without an authority it is self-signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in names])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(authority.certificate.subject if authority else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(authority is None, None), critical=True)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Pair(builder.sign(authority.key if authority else key, hashes.SHA256()), key)


@dataclass(frozen=True)
class Secured:
    """The services behind TLS with client certificates."""

    address: str
    authority: Pair
    keys: KeyMaker

    async def answer(self, client: Pair | None, metadata: Metadata = (), namespace: str = "a") -> str:
        """Return the code of an Add into a namespace by a client with this certificate."""
        key, chain = client.pem() if client else (None, None)
        root = self.authority.pem()[1]
        credentials = grpc.ssl_channel_credentials(root, key, chain)
        async with grpc.aio.secure_channel(self.address, credentials) as channel:
            request = memory_pb2.AddRequest(namespace=namespace, item=memory_pb2.MemoryItem(text="x"))
            try:
                await memory_pb2_grpc.MemoryServiceStub(channel).Add(request, metadata=metadata, timeout=20)
                await admin_pb2_grpc.AdminServiceStub(channel).GetInfo(
                    admin_pb2.GetInfoRequest(), metadata=metadata, timeout=20
                )
            except grpc.RpcError as error:
                return error.code().name  # type: ignore[attr-defined, no-any-return]
            return "OK"

    def client(self, *names: str, uri: str = "") -> Pair:
        """Return a certificate that the authority has signed; `uri` may be several, separated by spaces."""
        alternatives = tuple(x509.UniformResourceIdentifier(each) for each in uri.split())
        return signed(list(names), self.authority, alternatives)


@pytest_asyncio.fixture(params=["mtls", "keys,mtls", "keys"])
async def secured(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Secured]:
    """The services with each way to require certificates and keys."""
    keys = keys_in(tmp_path)
    keys.make("ada", ["a"], ["write"], certificate="spiffe://example/ada")
    keys.make("bob", ["b"], ["write"], certificate="CN=bob")
    keys.make("old", ["a"], ["write"], certificate="CN=old", lifetime=timedelta(seconds=-1))
    config = Config(data_dir=tmp_path, auth=tuple(request.param.split(",")))
    store = InMemoryStore()
    await store.open()
    authority = signed(["authority"])
    server = grpc.aio.server()
    Services(config, store, None, None, None, PageTokens(b"k" * 32)).register(
        CallGuard(Limits(), open_access(config)).guarding(server)
    )
    own = signed(["localhost"], authority, (x509.DNSName("localhost"),))
    credentials = grpc.ssl_server_credentials([own.pem()], authority.pem()[1], require_client_auth=True)
    port = server.add_secure_port("localhost:0", credentials)
    await server.start()
    yield Secured(f"localhost:{port}", authority, keys)
    await server.stop(0)
    await store.close()


@pytest.mark.parametrize("secured", ["mtls", "keys,mtls"], indirect=True)
async def test_a_certificate_that_is_named_is_a_credential(secured: Secured) -> None:
    ada, bob = secured.client("x", uri="spiffe://example/ada"), secured.client("bob")
    # The URI counts as its identity: whoever requested the certificate chose its common name.
    both = secured.client("bob", uri="spiffe://example/ada")
    assert [await secured.answer(client, namespace="a") for client in (ada, bob, both)] == [
        "OK",
        DENIED,
        "OK",
    ]
    assert [await secured.answer(client, namespace="b") for client in (ada, bob, both)] == [
        DENIED,
        "OK",
        DENIED,
    ]


@pytest.mark.parametrize("secured", ["mtls", "keys,mtls"], indirect=True)
async def test_other_certificates_are_none(secured: Secured) -> None:
    clients = [
        secured.client("eve"),
        secured.client("old"),
        secured.client("Bob"),
        secured.client("CN=bob"),
        secured.client("spiffe://example/ada"),
        secured.client("x", uri="spiffe://example/ada/child"),
        secured.client("x", uri="https://example/ada"),
        signed(["x"], secured.authority, (x509.DNSName("bob"),)),
    ]
    answers = [await secured.answer(client) for client in clients]
    assert answers == ["UNAUTHENTICATED"] * len(clients)
    # Not signed by the authority: the transport itself refuses it.
    forged = signed(["bob"], signed(["authority"]))
    assert {await secured.answer(client) for client in (forged, None)} == {"UNAVAILABLE"}


@pytest.mark.parametrize("secured", ["mtls"], indirect=True)
async def test_a_certificate_that_could_be_taken_for_another_names_nobody(secured: Secured) -> None:
    ada = "spiffe://example/ada"
    clients = {
        "a common name with a NUL": secured.client("bob\0.example"),
        "a SPIFFE URI with a NUL": secured.client("x", uri=f"{ada}\0/child"),
        "a SPIFFE URI with a NUL beside a name": secured.client("bob", uri=f"{ada}\0/child"),
        "another control character": secured.client("bob\x7f"),
        "a character that turns the direction": secured.client("bob\u202e"),
        "two common names": secured.client("bob", "eve"),
        "two common names, the other first": secured.client("eve", "bob"),
        "the same common name twice": secured.client("bob", "bob"),
        "a SPIFFE URI of another domain": secured.client("bob", uri="spiffe://elsewhere/ada"),
        "a SPIFFE URI that no key names": secured.client("bob", uri="spiffe://example/eve"),
        "a SPIFFE URI that is malformed": secured.client("bob", uri="spiffe:///ada"),
        "a SPIFFE URI without a domain": secured.client("bob", uri="SPIFFE:ada"),
        "two SPIFFE URIs": secured.client("bob", uri=f"{ada} spiffe://example/eve"),
        "the same SPIFFE URI twice": secured.client("x", uri=f"{ada} {ada}"),
        "a SPIFFE URI and another": secured.client("x", uri=f"https://example/ada {ada}"),
        "another URI with a NUL": secured.client("bob", uri="https://example\0spiffe://example/ada"),
        "no name at all": secured.client(),
    }
    for what, client in clients.items():
        for namespace in ("a", "b"):
            assert await secured.answer(client, namespace=namespace) == "UNAUTHENTICATED", what
    # Names of other kinds do not matter.
    for client in (secured.client("bob", uri="https://example/bob"), secured.client("bob")):
        for _ in range(2):
            assert await secured.answer(client, namespace="b") == "OK"


async def test_a_token_counts_before_a_certificate_and_each_only_where_it_is_asked_for(
    secured: Secured, request: pytest.FixtureRequest
) -> None:
    auth = request.node.callspec.params["secured"]
    bob = secured.client("bob")
    assert await secured.answer(bob, namespace="b") == ("UNAUTHENTICATED" if auth == "keys" else "OK")
    assert await secured.answer(bob, bearer("garbage")) == "UNAUTHENTICATED"
    assert await secured.answer(bob, (("authorization", ""),)) == "UNAUTHENTICATED"
    token = secured.keys.token("eve", ["b"], ["write"])
    assert await secured.answer(bob, bearer(token), "b") == "UNAUTHENTICATED", "a key that is not yet read"
