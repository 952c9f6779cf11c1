"""Credentials for tests: valid keys and tokens, and a client that presents any of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from grpc_api import METHODS, Api, Refusal, decode, first_response, path
from memory_service.credentials import key_changes
from memory_service.credentials.api_keys import ApiKey
from memory_service.credentials.key_file import KeyFile

ROLES = ("read", "write", "forget", "admin")
ISSUER = "https://issuer.example"
AUDIENCE = "memory-service"
BY_NAME = {method.name: method for method in METHODS}

Metadata = Sequence[tuple[str, str | bytes]]


def write_secret(path: Path, text: str) -> Path:
    """Write a secret to a file that only its owner can read, and return the path."""
    path.touch(0o600)
    path.write_text(text)
    return path


def bearer(token: str) -> Metadata:
    """The metadata of a call with a token."""
    return (("authorization", f"Bearer {token}"),)


@dataclass(frozen=True)
class Client:
    """Calls any RPC of a server, always with the same metadata."""

    channel: grpc.Channel
    metadata: Metadata = ()

    def presenting(self, token: str) -> Client:
        """Return the same connection with another token; "" presents none."""
        return Client(self.channel, bearer(token) if token else ())

    def call(
        self, method: MethodDescriptor | str, request: Message | bytes | None = None, **fields: Any
    ) -> Any:
        """Call an RPC with one request, given or built from fields, and return its (first) response."""
        method = BY_NAME[method] if isinstance(method, str) else method
        if request is None:
            request = GetMessageClass(method.input_type)(**fields)
        answer = self.start(method, iter([request]) if method.client_streaming else request)
        return first_response(method, answer) if method.server_streaming else answer

    def start(self, method: MethodDescriptor, request: Any) -> Any:
        """Call an RPC and return gRPC's result: a response, or the call object of a stream of responses."""
        kind = f"{'stream' if method.client_streaming else 'unary'}_" + (
            "stream" if method.server_streaming else "unary"
        )
        remote = getattr(self.channel, kind)(
            path(method),
            request_serializer=lambda r: r if isinstance(r, bytes) else r.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        return remote(request, metadata=self.metadata, timeout=30)

    def refused(
        self, method: MethodDescriptor | str, request: Message | bytes | None = None, **fields: Any
    ) -> Refusal:
        """Make a call that must fail and decode its error."""
        try:
            answer = self.call(method, request, **fields)
        except grpc.RpcError as error:
            return decode(error)
        raise AssertionError(f"accepted, with the answer {str(answer)[:1000]!r}")

    def texts(self, namespace: str) -> list[str]:
        """Return the texts of all items of a namespace."""
        return [item.text for item in self.call("List", namespace=namespace).items]


def connect(address: str, token: str = "") -> Client:
    """Connect a new client to a server. Close its channel."""
    return Client(Api.connect(address).channel).presenting(token)


@dataclass(frozen=True)
class KeyMaker:
    """Creates API keys in a file, like `memory-service keys`."""

    file: KeyFile

    def make(
        self,
        principal: str = "ada",
        namespaces: Sequence[str] = ("*",),
        roles: Sequence[str] = ROLES,
        **settings: Any,
    ) -> tuple[ApiKey, str]:
        """Create a key; return it and its token."""
        wanted = key_changes.NewKey(principal, tuple(namespaces), tuple(roles), **settings)
        return key_changes.create(self.file, wanted)

    def token(self, *arguments: Any, **settings: Any) -> str:
        """Create a key and return its token."""
        return self.make(*arguments, **settings)[1]

    def expired(self) -> str:
        """Return the token of a key that expired a second ago."""
        return self.token(lifetime=timedelta(seconds=-1))

    def revoked(self) -> str:
        """Return the token of a revoked key."""
        key, token = self.make()
        key_changes.revoke(self.file, key.id)
        return token


def keys_in(folder: Path) -> KeyMaker:
    """Keys in the file that a server with this data folder reads."""
    return KeyMaker(KeyFile(folder / "api-keys.json"))


@dataclass
class Issuer:
    """A token issuer with a key for each accepted algorithm, by kid."""

    private: dict[str, Any] = field(
        default_factory=lambda: {
            "EdDSA": ed25519.Ed25519PrivateKey.generate(),
            "ES256": ec.generate_private_key(ec.SECP256R1()),
            "RS256": rsa.generate_private_key(65537, 2048),
        }
    )

    def key_set(self, *kids: str) -> str:
        """Return the public keys, all or those of some kids, as a JSON Web Key Set."""
        return json.dumps({"keys": [self.public(kid) for kid in kids or self.private]})

    def public(self, kid: str) -> dict[str, Any]:
        """Return a public key as a JSON Web Key."""
        key = self.private[kid]
        if isinstance(key, ed25519.Ed25519PrivateKey):
            found = OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)
        elif isinstance(key, ec.EllipticCurvePrivateKey):
            found = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        else:
            found = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
        return {**found, "kid": kid, "use": "sig"}

    def token(
        self, kid: str = "EdDSA", *, algorithm: str = "", headers: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """Return a signed token; claims that are None are left out."""
        all_claims = {**good_claims(), **claims}
        present = {name: value for name, value in all_claims.items() if value is not None}
        chosen = algorithm or {"EdDSA": "EdDSA", "ES256": "ES256"}.get(kid, "RS256")
        return jwt.encode(present, self.private[kid], chosen, {"kid": kid} if headers is None else headers)


def pattern_of(namespace: str) -> str:
    """Return the pattern that grants a namespace alone."""
    return namespace.replace("\\", "\\\\").replace("*", "\\*")


def good_claims() -> dict[str, Any]:
    """Return claims that allow everything for five minutes."""
    return {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "exp": int(time.time()) + 300,
        "namespaces": ["*"],
        "roles": list(ROLES),
    }


def jwt_flags(keys: str) -> list[str]:
    """Return flags, in addition to --auth, of a server that accepts the tokens of `Issuer`."""
    return ["--jwt-keys", keys, "--jwt-issuer", ISSUER, "--jwt-audience", AUDIENCE]


def events_until_refused(stream: Iterator[Any]) -> tuple[list[Any], Refusal]:
    """Read a stream until it ends with an error; return its messages and the error."""
    found: list[Any] = []
    try:
        for event in stream:
            found.append(event)
    except grpc.RpcError as error:
        return found, decode(error)
    raise AssertionError("the stream ended as if all were well")
