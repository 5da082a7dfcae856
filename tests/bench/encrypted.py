"""encrypted.py - what TLS costs: handshakes, and calls over connections that stay, plain beside TLS in the same run."""

import os
import re
import shutil

import lab as bench_lab


def line(what, bar, measured, floor="", met=None):
    return {"what": what, "bar": bar, "measured": measured, "floor": floor, "met": met}


def certificate(folder):
    if not shutil.which("openssl"):
        raise bench_lab.Missing("openssl is not installed")
    cert, key = os.path.join(folder, "tls.pem"), os.path.join(folder, "tls.key")
    if not os.path.exists(cert):
        run = bench_lab.command(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
                                 "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key,
                                 "-out", cert])
        if run.returncode != 0:
            raise RuntimeError(run.stderr)
        os.chmod(key, 0o600)
    return cert, key


def two(lab):
    """A plain manager and one with a certificate, both at once: rounds take turns."""
    cert, key = certificate(lab.dir)
    plain = lab.manager("plain", "--max-connections-per-ip", "1024")
    return plain, lab.manager("tls", "--max-connections-per-ip", "1024", "--tls-cert-file", cert, "--tls-key-file", key, ca=cert)


def cpu_us(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1e6 / os.sysconf("SC_CLK_TCK")


def steady(lab, keys, bar):
    plain, tls = two(lab)
    args = ["--seconds", lab.seconds, "--ops", "lookup", "--keys", keys, "--clients", 4]
    best = {}
    try:
        for _ in range(lab.rounds):
            for m in (plain, tls):
                op = m.bench(*args)[0][0]
                if m not in best or op["manager_cpu_us_per_call"] < best[m]["manager_cpu_us_per_call"]:
                    best[m] = op
    finally:
        plain.remove()
        tls.remove()
    p, t = (best[m]["manager_cpu_us_per_call"] for m in (plain, tls))
    yield line(f"prefix of {keys} keys, protobuf, over TLS", f"<= plain + {bar} us CPU a call",
               f"{t:.1f} us, {best[tls]['calls_per_s']:,.0f} calls/s", f"plain: {p:.1f} us, {best[plain]['calls_per_s']:,.0f} calls/s",
               t <= p + bar)


def shake_hands(m, version, seconds):
    """Handshakes a second of openssl s_time, and the manager's CPU time for each."""
    before = cpu_us(m.process.pid)
    run = bench_lab.command(["openssl", "s_time", "-connect", m.url.split("//")[1], "-new", version, "-time", str(max(1, int(seconds)))])
    used = cpu_us(m.process.pid) - before
    found = re.search(r"(\d+) connections in (\d+) real seconds", run.stdout)
    if run.returncode != 0 or not found:
        raise RuntimeError(f"openssl s_time: {run.stdout[-300:]}{run.stderr[-300:]}")
    n = int(found.group(1))
    return n / int(found.group(2)), used / n


def signatures():
    """Of OpenSSL with the same kind of key: what no server can do without."""
    run = bench_lab.command(["openssl", "speed", "-seconds", "1", "-mr", "ecdsap256"])
    found = re.search(r"^\+F4:\d+:\d+:([\d.]+):", run.stdout, re.MULTILINE)  # signatures a second
    return 1e6 / float(found.group(1)) if found else None


def handshakes(lab):
    plain, tls = two(lab)
    plain.remove()
    sign = signatures()
    try:
        for version in ("-tls1_3", "-tls1_2"):
            a_second, cpu = min((shake_hands(tls, version, lab.seconds) for _ in range(lab.rounds)), key=lambda found: found[1])
            yield line(f"new connections with TLS 1.{version[-1]}, P-256", "-",
                       f"{1e6 / cpu:,.0f} /s and core ({cpu:.0f} us CPU each); {a_second:,.0f} /s by one client",
                       f"one signature by OpenSSL: {sign:.0f} us" if sign else "-")
    finally:
        tls.remove()


ROWS = {
    "tls-handshakes": handshakes,
    "tls-lookup-1": lambda lab: steady(lab, 1, 10),
    "tls-lookup-512": lambda lab: steady(lab, 512, 20),
}
