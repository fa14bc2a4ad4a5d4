"""Certificates for the TLS tests: an authority, a server, a client, and a stranger who signed himself."""
import os
import subprocess


def _openssl(*args):
    subprocess.run(["openssl", *args], check=True, capture_output=True, timeout=60)


class Pki:
    def __init__(self, folder):
        self.folder = str(folder)
        self.ca, ca_key = self._path("ca.pem"), self._path("ca.key")
        _openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test authority", "-keyout", ca_key,
                 "-out", self.ca)
        self.server = self._signed("server", "subjectAltName=IP:127.0.0.1,DNS:localhost", ca_key)
        self.elsewhere = self._signed("elsewhere", "subjectAltName=DNS:elsewhere.invalid", ca_key)
        self.client = self._signed("client", "extendedKeyUsage=clientAuth", ca_key)
        self.capath = self._path("capath")
        os.mkdir(self.capath)
        with open(self.ca) as f, open(os.path.join(self.capath, "ca.pem"), "w") as copy:
            copy.write(f.read())
        _openssl("rehash", self.capath)

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _signed(self, name, extension, ca_key):
        cert, key, request, ext = (self._path(name + x) for x in (".pem", ".key", ".csr", ".ext"))
        with open(ext, "w") as f:
            f.write(extension + "\n")
        _openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-days", "2", "-in", request, "-CA", self.ca, "-CAkey", ca_key, "-CAcreateserial", "-extfile", ext,
                 "-out", cert)
        return cert, key

    def pin(self, cert):
        """The sha256// pin of a certificate's public key."""
        public = subprocess.run(["openssl", "x509", "-in", cert, "-noout", "-pubkey"], check=True, capture_output=True, timeout=60)
        der = subprocess.run(["openssl", "pkey", "-pubin", "-outform", "der"], input=public.stdout, check=True, capture_output=True,
                             timeout=60)
        digest = subprocess.run(["openssl", "dgst", "-sha256", "-binary"], input=der.stdout, check=True, capture_output=True, timeout=60)
        encoded = subprocess.run(["openssl", "base64"], input=digest.stdout, check=True, capture_output=True, timeout=60)
        return "sha256//" + encoded.stdout.decode().strip()
