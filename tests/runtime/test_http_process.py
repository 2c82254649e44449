"""The HTTP client in processes of its own: what it reads once of its environment, and threads that end."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from web_server import WebServer

FETCH = """
import sys
from runtime.push.http.client import POOL
from runtime.errors import OndatraError
try:
    answer = POOL.send("GET", sys.argv[1], {"Accept": "*/*"}, None, 5)
    print(answer.status, answer.text)
except OndatraError as error:
    print(type(error).__name__)
"""


def fetch(url: str, **environment: str) -> str:
    """In a process of its own, because the client reads its environment once."""
    root = Path(__file__).resolve().parents[2]
    clean = {
        k: v
        for k, v in os.environ.items()
        if "proxy" not in k.lower() and k not in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FETCH), url],
        cwd=root,
        env={**clean, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.strip() or done.stderr


def test_a_proxy_comes_from_the_environment_and_no_proxy_exempts(server: WebServer) -> None:
    server.reply = lambda seen: (200, {}, seen.target.encode())
    assert fetch("http://crm.invalid/x", HTTP_PROXY=server.url) == "200 http://crm.invalid/x"
    assert fetch("http://crm.invalid/x", HTTP_PROXY=server.url, NO_PROXY="crm.invalid") == "TransportError"


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_a_private_authority_comes_from_the_environment(tmp_path: Path, server: WebServer, name: str) -> None:
    def openssl(*args: object) -> None:
        subprocess.run(["openssl", *map(str, args)], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "leaf.ext").write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    openssl(
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
        "-days",
        "2",
        "-subj",
        "/CN=Private",
    )
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "leaf.csr", "-subj", "/CN=localhost")
    openssl(
        "x509",
        "-req",
        "-in",
        "leaf.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "leaf.ext",
        "-out",
        "cert.pem",
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    server.server.socket = context.wrap_socket(server.server.socket, server_side=True)
    url = server.url.replace("http://127.0.0.1", "https://localhost")
    assert (fetch(url), fetch(url, **{name: str(tmp_path / "ca.pem")})) == ("TransportError", "200 {}")


def test_a_client_that_a_thread_used_first_serves_others_when_that_thread_has_ended(server: WebServer) -> None:
    program = (
        "import sys, threading\nfrom runtime.push.http.client import POOL\n"
        "for _ in range(3):\n    one = threading.Thread(target=lambda: POOL.send('GET', sys.argv[1], {}, None, 5))\n  "
        "  one.start()\n    one.join()\n"
        "print('alive')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, f"{server.url}/x"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr[-2000:]
