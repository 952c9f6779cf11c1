"""Binding a server's port, TLS, and the check that it is not exposed to a network by mistake."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc

from memory_service.config import BadConfig, Config, is_socket_file
from memory_service.runtime.event_log import EventLog
from memory_service.runtime.secret_files import OpenToOthers, read_secret

_log = EventLog(__name__)


def check_transport(config: Config) -> None:
    """Raise BadConfig if the server would be exposed to a network, or its certificate is unusable."""
    if config.tls_certificate is not None:
        _Files.read(config).check()
    if not config.allow_insecure_network and not is_local(config.address):
        _refuse_open_network(config)
    if config.tls_client_ca is not None and not config.auth:
        _log.warning(
            "certificates_without_auth",
            effect="every client with a certificate of this authority has full access",
            remedy="distinguish clients with --auth mtls, keys or jwt",
        )


def bind(server: grpc.aio.Server, config: Config) -> str:
    """Bind a server to its configured address, and return the actual one, with the port chosen for port 0.

    Raises:
        BadConfig: The port is taken, or the certificate cannot be used.
    """
    encrypted = config.tls_certificate is not None
    return listen(server, config.address, _Certificate(config).credentials() if encrypted else None)


def listen(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None = None) -> str:
    """Bind a server, unencrypted without credentials, and return the address. Raises BadConfig as `bind`."""
    try:
        if credentials is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, credentials)
    except RuntimeError as error:
        doubt = "" if credentials is None else " Or does gRPC not support this kind of certificate?"
        raise BadConfig(f"cannot listen on {address}: is another server running there?{doubt}") from error
    return address if is_socket_file(address) else f"{address.rpartition(':')[0]}:{port}"


def is_local(address: str) -> bool:
    """Whether an address is reachable from this machine only: a socket file, or loopback.

    A name is local if all its addresses are; one that does not resolve is not.
    """
    if is_socket_file(address):
        return True
    host = address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        resolved = socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return False
    return all(_is_loopback(str(found[4][0])) for found in resolved)


def _is_loopback(text: str) -> bool:
    address = ipaddress.ip_address(text)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _refuse_open_network(config: Config) -> None:
    missing = []
    if config.tls_certificate is None:
        missing.append("does not encrypt connections (--tls-certificate and --tls-key)")
    if not config.authenticates:
        missing.append("does not require credentials (--auth, or --tls-client-ca)")
    if missing:
        raise BadConfig(
            f"{config.address} is reachable from a network, and this server {' and '.join(missing)}. "
            "Listen on 127.0.0.1, add the missing options, or start it anyway with --allow-insecure-network"
        )


class _Certificate:
    """The certificate of a server, read again for each new connection.

    gRPC requests it in its own threads. If the files are damaged or incomplete, the previous certificate
    stays in use; open connections keep theirs.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._present = _Files.read(config)
        _tell_end(self._present.check())
        self._problem = ""

    def credentials(self) -> grpc.ServerCredentials:
        """Return the credentials for gRPC."""
        return grpc.dynamic_ssl_server_credentials(
            self._present.for_grpc(),
            self._renewed,  # type: ignore[arg-type]  # gRPC takes None for "as before".
            require_client_authentication=self._config.tls_client_ca is not None,
        )

    def _renewed(self) -> grpc.ServerCertificateConfiguration | None:
        try:
            found = _Files.read(self._config)
            if found == self._present:
                self._problem = ""
                return None
            end = found.check()
        except BadConfig as error:
            if str(error) != self._problem:
                self._problem = str(error)
                _log.error("certificate_not_taken", problem=self._problem)
            return None
        self._present, self._problem = found, ""
        _tell_end(end)
        return found.for_grpc()


@dataclass(frozen=True)
class _Files:
    """The contents of the certificate files at one time, as PEM."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None

    @classmethod
    def read(cls, config: Config) -> _Files:
        """Read the files. Raises BadConfig naming the option of one that cannot be read."""
        assert config.tls_certificate is not None
        assert config.tls_key is not None
        return cls(
            _read("--tls-certificate", config.tls_certificate),
            _read("--tls-key", config.tls_key, read_secret),
            None if config.tls_client_ca is None else _read("--tls-client-ca", config.tls_client_ca),
        )

    def check(self) -> datetime:
        """Return the certificate's expiry.

        Raises:
            BadConfig: A file is no certificate or key, or they do not match; names the option. gRPC itself
                would only report that it cannot listen.
        """
        # Imported here because a server without TLS does not need it.
        from cryptography import x509
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        chain = _parsed(
            "--tls-certificate", "certificates", self.certificate, x509.load_pem_x509_certificates
        )
        key: Any = _parsed(
            "--tls-key",
            "private key without a password",
            self.key,
            lambda pem: load_pem_private_key(pem, None),
        )
        if self.client_ca is not None:
            _parsed("--tls-client-ca", "certificates", self.client_ca, x509.load_pem_x509_certificates)
        if chain[0].public_key() != key.public_key():
            raise BadConfig("--tls-key is not the key of --tls-certificate")
        end: datetime = min(certificate.not_valid_after_utc for certificate in chain)
        return end

    def for_grpc(self) -> grpc.ServerCertificateConfiguration:
        """Return the files as gRPC takes them."""
        return grpc.ssl_server_certificate_configuration([(self.key, self.certificate)], self.client_ca)


def _read(option: str, path: Path, read: Callable[[Path], bytes] = Path.read_bytes) -> bytes:
    try:
        return read(path)
    except OpenToOthers as error:
        raise BadConfig(f"{option}: {error}") from None
    except OSError as error:
        raise BadConfig(f"{option} {str(path)!r} cannot be read: {error.strerror}") from None


def _parsed(option: str, what: str, pem: bytes, parse: Callable[[bytes], Any]) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return parse(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        # The parser's message could quote the file.
        raise BadConfig(f"{option} contains no {what} in PEM format") from None


def _tell_end(end: datetime) -> None:
    if end <= datetime.now(UTC):
        _log.warning("certificate_expired", end=end.isoformat())
    else:
        _log.info("certificate_loaded", end=end.isoformat())
