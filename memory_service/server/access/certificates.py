"""The subject of a client certificate that gRPC has verified.

gRPC's properties of a certificate end at a NUL, and contain only the first of several common names, so that a
certificate issued to one subject could pass for another. This module therefore parses the certificate itself,
and an ambiguous one has no subject.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import grpc

from memory_service.runtime.event_log import EventLog

# Imported on first use: a server without TLS does not need it.
if TYPE_CHECKING:
    from cryptography import x509

Context = grpc.aio.ServicerContext[Any, Any]

# A certificate has a few KB, and parsing one takes some 20 us. With twice as many certificates in use, each
# call would cost that much more.
_KNOWN_CERTIFICATES_MAX = 1024
_log = EventLog(__name__)


class _Ambiguous(ValueError):
    """A certificate that could be taken for another's. The message quotes nothing from it."""


def certificate_subject(context: Context) -> str:
    """Return the SPIFFE URI of the client certificate, or "CN=" with its common name; "" without either."""
    found = context.auth_context()
    # Only a transport with certificates sets these; otherwise there is nothing to trust.
    if found.get("transport_security_type") != [b"ssl"]:
        return ""
    pems = list(found.get("x509_pem_cert", ()))
    return _subject_of(pems[0]) if len(pems) == 1 else ""


@lru_cache(_KNOWN_CERTIFICATES_MAX)
def _subject_of(pem: bytes) -> str:
    from cryptography import x509

    try:
        return _named(x509.load_pem_x509_certificate(pem))
    except _Ambiguous as error:
        _log.warning("client_certificate_names_nobody", problem=str(error))
    except (ValueError, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
        # The parser's message could quote the certificate.
        _log.warning("client_certificate_names_nobody", problem="cannot be parsed")
    return ""


def _named(certificate: x509.Certificate) -> str:
    uris = _uris(certificate)
    if not any(uri.lower().startswith("spiffe:") for uri in uris):
        return _common_name(certificate)
    if len(uris) > 1:
        raise _Ambiguous("has other URIs beside its SPIFFE URI")
    # Even if the URI is unknown or malformed, the common name is no fallback.
    return uris[0]


def _uris(certificate: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    if not all(uri.isprintable() for uri in uris):
        raise _Ambiguous("a URI has unprintable characters")
    return uris


def _common_name(certificate: x509.Certificate) -> str:
    from cryptography.x509.oid import NameOID

    names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names:
        return ""
    if len(names) > 1:
        raise _Ambiguous("has several common names")
    name = names[0].value
    if not isinstance(name, str) or not name.isprintable():
        raise _Ambiguous("the common name has unprintable characters")
    return f"CN={name}"
