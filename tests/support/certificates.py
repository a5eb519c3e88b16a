"""Certificates for tests: an authority of one's own, and what it signs, for a day."""

import datetime
import ipaddress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pem:
    certificate: bytes
    key: bytes

    @property
    def fingerprint(self) -> str:
        return x509.load_pem_x509_certificate(self.certificate).fingerprint(hashes.SHA256()).hex()

    def written(self, folder: Path, name: str) -> tuple[Path, Path]:
        chain, key = folder / f"{name}.pem", folder / f"{name}-key.pem"
        chain.write_bytes(self.certificate)
        key.write_bytes(self.key)
        return chain, key


class Authority:
    def __init__(self, name: str = "tests") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        limits = x509.BasicConstraints(ca=True, path_length=0)
        made = self._builder(self._name, self._key.public_key()).add_extension(limits, critical=True)
        self.certificate = _text(made.sign(self._key, hashes.SHA256()))

    def issue(self, name: str) -> Pem:
        """For a client of this common name, or a server on 127.0.0.1."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        names = [x509.DNSName(f"{name}.example.com"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        alternatives = x509.SubjectAlternativeName(names)
        made = self._builder(subject, key.public_key()).add_extension(alternatives, critical=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Pem(_text(made.sign(self._key, hashes.SHA256())), private)

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )


@cache
def authority(name: str = "tests") -> Authority:
    """One for all tests of a process."""
    return Authority(name)


def _text(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
