"""Certificates for tests: two independent authorities and their certificates.

python tests/certificates.py FOLDER     write all of them, for the tests of the other languages
"""

from __future__ import annotations

import ipaddress
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write NAME.pem and NAME.key and return their paths."""
        paths = folder / f"{name}.pem", folder / f"{name}.key"
        for path, content in zip(paths, (self.certificate, self.key), strict=True):
            path.write_bytes(content)
        paths[1].chmod(0o600)
        return paths


class Authority:
    """A certificate authority."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        self._certificate = (
            _unsigned(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, SHA256())
        )

    @property
    def certificate(self) -> bytes:
        """The authority's own certificate, as PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def server(self, name: str = "server", *, expired: bool = False) -> Pair:
        """Issue a certificate for localhost and 127.0.0.1; an expired one expired an hour ago."""
        hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        return self._sign(name, ExtendedKeyUsageOID.SERVER_AUTH, hosts, expired)

    def client(self, name: str, *, expired: bool = False) -> Pair:
        """Issue a client certificate with subject NAME and a SPIFFE id of the domain "test"."""
        identity = [x509.UniformResourceIdentifier(f"spiffe://test/{name}")]
        return self._sign(name, ExtendedKeyUsageOID.CLIENT_AUTH, identity, expired)

    def _sign(
        self, name: str, usage: x509.ObjectIdentifier, names: list[x509.GeneralName], expired: bool
    ) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            _unsigned(_named(name), self._name, key, expired)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, SHA256())
        )
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Pair(certificate.public_bytes(Encoding.PEM), pem)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, expired: bool = False
) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + (-_HOUR if expired else 24 * _HOUR)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 48 * _HOUR)
        .not_valid_after(end)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def write_all(folder: Path) -> None:
    """Write ca.pem and what it signed (server, renewed, expired, client), stranger-ca.pem and stranger."""
    trusted, stranger = Authority("test authority"), Authority("another authority")
    (folder / "ca.pem").write_bytes(trusted.certificate)
    (folder / "stranger-ca.pem").write_bytes(stranger.certificate)
    trusted.server().write(folder, "server")
    trusted.server("renewed").write(folder, "renewed")
    trusted.server(expired=True).write(folder, "expired")
    trusted.client("ada").write(folder, "client")
    trusted.client("late", expired=True).write(folder, "expired-client")
    stranger.client("mallory").write(folder, "stranger")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]))
