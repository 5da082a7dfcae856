"""pki.py - certificates for one test, made by openssl; a slabkvd that uses them; stock clients."""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "grpc"))
import manager  # noqa: E402

if not shutil.which("openssl"):
    manager.skip("openssl is not installed (package openssl)")


def openssl(*arguments, text=None):
    done = subprocess.run(["openssl", *arguments], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"openssl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


class Pki:
    """A CA in a folder. Files: NAME.pem (certificate), NAME.key."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = pathlib.Path(folder), name
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", f"/CN={name}",
                "-keyout", self.at(name, "key"), "-out", self.at(name))

    def at(self, name, kind="pem"):
        return str(self.folder / f"{name}.{kind}")

    def issue(self, name, subject=None, names="DNS:localhost,IP:127.0.0.1", usage="serverAuth", days=20, key="ec"):
        new = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if key == "ec" else [key]
        openssl("req", "-newkey", *new, "-nodes", "-subj", f"/CN={subject or name}", "-keyout", self.at(name, "key"),
                "-out", self.at(name, "csr"))
        self.folder.joinpath(f"{name}.ext").write_text(
            f"extendedKeyUsage={usage}\n" + (f"subjectAltName={names}\n" if names else ""), encoding="utf-8")
        # A certificate that has expired already: openssl x509 cannot date back, so its validity is negative.
        openssl("x509", "-req", "-in", self.at(name, "csr"), "-CA", self.at(self.name), "-CAkey", self.at(self.name, "key"),
                "-CAcreateserial", "-days", str(days), "-extfile", self.at(name, "ext"), "-out", self.at(name))
        os.chmod(self.at(name, "key"), 0o600)
        return self.at(name), self.at(name, "key")


class Manager(manager.Manager):
    """slabkvd with a certificate for localhost."""

    def __init__(self, program, pki, *arguments, server="server", **options):
        cert, key = pki.issue(server)
        self.pki = pki
        super().__init__(program, "--tls-cert-file", cert, "--tls-key-file", key, *arguments, **options)
        self.url = f"https://localhost:{self.http_port}"
        self.address = f"localhost:{self.port}"

    def curl(self, path, *arguments, ca=None):
        """Status and body; status 0 and curl's sentence when there was no answer."""
        done = subprocess.run(["curl", "-sS", "--noproxy", "*", "-w", "\n%{http_code}", "--cacert", ca or self.pki.at("ca"), *arguments,
                               path if "://" in path else self.url + path], capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            return 0, done.stderr
        body, status = done.stdout.rsplit("\n", 1)
        return int(status), body

    def shake_hands(self, port, *arguments):
        """What openssl s_client says of a handshake."""
        done = subprocess.run(["openssl", "s_client", "-connect", f"localhost:{port}", "-CAfile", self.pki.at("ca"), *arguments],
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False)
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")


def secure(m, module, service, cert=None, **options):
    """A stock gRPC client that trusts the CA, with a certificate of its own if it is named."""
    def read(path):
        return pathlib.Path(path).read_bytes()

    credentials = manager.grpc.ssl_channel_credentials(read(m.pki.at("ca")), *((read(m.pki.at(cert, "key")), read(m.pki.at(cert))) if cert else ()))
    client = manager.Client(m.address, module, service, **options)
    client.channel.close()
    client.channel = manager.grpc.secure_channel(m.address, credentials, options=[("grpc.max_receive_message_length", 256 << 20)])
    return client
