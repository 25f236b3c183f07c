"""A certificate authority of this machine alone: unedited programs call the simulated APIs over HTTPS.

A worker's script says `https://storage.googleapis.com`. The local cloud points that name at a loopback port
and hands curl the authority's certificate; nothing outside the local cloud trusts it.
"""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

# The wildcard covers one label: storage., compute., container., pubsub. and their kind.
API_HOSTS = ("*.googleapis.com", "localhost")

_LIFETIME = timedelta(days=30)
# A machine whose clock was set back a little must still accept what it issued a moment ago.
_BACKDATED = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalAuthority:
    """An authority and the one server certificate it issued. Clients are told to trust `ca_file` (PEM)."""

    ca_file: Path
    server_file: Path

    @classmethod
    def create(cls, directory: Path, hosts: Iterable[str] = API_HOSTS) -> LocalAuthority:
        """Make an authority and a certificate for `hosts` and 127.0.0.1, as files in `directory`."""
        directory.mkdir(parents=True, exist_ok=True)
        ca_key = ec.generate_private_key(ec.SECP256R1())
        ca = _authority_certificate(ca_key)
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = _server_certificate(key, ca, ca_key, tuple(hosts))
        authority = cls(ca_file=directory / "ca.pem", server_file=directory / "server.pem")
        authority.ca_file.write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        # Created unreadable for others before the key is in it.
        authority.server_file.touch(mode=0o600)
        authority.server_file.write_bytes(_private_pem(key) + leaf.public_bytes(serialization.Encoding.PEM))
        return authority

    def server_context(self) -> ssl.SSLContext:
        """Return what a server needs to answer as any of the hosts."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server_file)
        return context


def _authority_certificate(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _name("runtender local authority")
    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return (
        _certificate(subject=name, issuer=name, key=key.public_key(), signer=key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )


def _server_certificate(
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    hosts: tuple[str, ...],
) -> x509.Certificate:
    names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
    names.append(x509.IPAddress(ipaddress.IPv4Address("127.0.0.1")))
    return (
        _certificate(subject=_name("runtender local cloud"), issuer=ca.subject, key=key.public_key(),
                     signer=ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(ca_key, hashes.SHA256())
    )  # fmt: skip


def _certificate(
    *,
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
