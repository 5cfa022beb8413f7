"""A plugin of pytest for llama.cpp's own server tests.

Each test starts a llama-server of its own. The plugin gives that server the tiny model, and counts the requests of the routes that a gateway
serves. With HEADGATE_URL the plugin sends these requests to the gateway instead, with HEADGATE_KEY; all others still go to the server.
One line of JSON for each finished test goes to the file descriptor HEADGATE_REPORT_FD.
"""
import json
import os
import sys
import types
from urllib.parse import urlsplit

import httpx
import pytest
import requests

# Only downloads of models need this package, and there is no network.
sys.modules.setdefault("wget", types.SimpleNamespace(download=None))
import utils  # noqa: E402 of the tests; PYTHONPATH has their folder

GATEWAY = os.environ.get("HEADGATE_URL")
KEY = os.environ.pop("HEADGATE_KEY", "")
REPORT = os.fdopen(int(os.environ["HEADGATE_REPORT_FD"]), "w", buffering=1)
MODEL_FILE = os.environ["HEADGATE_MODEL_FILE"]
SERVER_KEY = os.environ.get("HEADGATE_SERVER_KEY")  # the gateway's credential at a server that asks for one
SERVER_HOSTS = ("127.0.0.1", "localhost")
SERVER_PORT = 8080
LONGEST_REASON = 400

# The paths of llama-server, and the path at which a gateway has the same handler. /completions, /embeddings and /completion are other formats,
# which only llama-server has.
ROUTES = {
    ("POST", "/v1/chat/completions"): "/v1/chat/completions",
    ("POST", "/chat/completions"): "/v1/chat/completions",
    ("POST", "/v1/completions"): "/v1/completions",
    ("POST", "/v1/embeddings"): "/v1/embeddings",
    ("POST", "/v1/rerank"): "/v1/rerank",
    ("POST", "/v1/reranking"): "/v1/rerank",
    ("POST", "/rerank"): "/v1/rerank",
    ("POST", "/reranking"): "/v1/rerank",
    ("POST", "/v1/responses"): "/v1/responses",
    ("POST", "/responses"): "/v1/responses",
    ("POST", "/v1/messages"): "/v1/messages",
    ("POST", "/v1/messages/count_tokens"): "/v1/messages/count_tokens",
    ("GET", "/v1/models"): "/v1/models",
}

routed: list[str] = []  # of the running test


def started_server():
    return next((one for one in utils.server_instances if one.server_port == SERVER_PORT), None)


def credentials(headers):
    """The headers of the credential. The gateway's key replaces the key of the server, and is added where the server asks for none."""
    server_key = getattr(started_server(), "api_key", None)
    if server_key is None:
        return {"Authorization": f"Bearer {KEY}"}
    own = {"authorization": f"Bearer {server_key}", "x-api-key": server_key}
    gateway = {"authorization": f"Bearer {KEY}", "x-api-key": KEY}
    return {name: gateway[name] for name in own if headers.get(name) == own[name]}


def with_model(body):
    """A gateway needs `model`; llama-server does not. All other bytes stay."""
    try:
        fields = json.loads(body)
    except ValueError:
        return body
    if not isinstance(fields, dict) or "model" in fields:
        return body
    alias = (getattr(started_server(), "model_alias", None) or "tinyllama-2").split(",")[0]
    text = body.decode() if isinstance(body, bytes) else body
    rest = text[text.index("{") + 1 :]
    return ('{"model":' + json.dumps(alias) + ("," if fields else "") + rest).encode()


def target(method, url):
    """The URL at the gateway; None for a request that only the server serves."""
    parts = urlsplit(url)
    if parts.hostname not in SERVER_HOSTS or parts.port != SERVER_PORT:
        return None
    path = ROUTES.get((method, parts.path))
    if path is None:
        return None
    routed.append(f"{method} {path}")
    return f"{GATEWAY}{path}" + (f"?{parts.query}" if parts.query else "") if GATEWAY else None


send_requests = requests.Session.send
send_httpx = httpx.Client.send


def requests_send(self, request, **options):
    url = target(request.method, request.url)
    if url is not None:
        request.url = url
        if request.body:
            request.body = with_model(request.body)
            request.headers["Content-Length"] = str(len(request.body))
        request.headers.update(credentials(request.headers))
    return send_requests(self, request, **options)


def httpx_send(self, request, **options):
    url = target(request.method, str(request.url))
    if url is not None:
        content = with_model(request.read())
        headers = {name: value for name, value in request.headers.items() if name not in ("host", "content-length")}
        headers.update({name.lower(): value for name, value in credentials(request.headers).items()})
        request = httpx.Request(request.method, url, headers=headers, content=content, extensions=request.extensions)
    return send_httpx(self, request, **options)


requests.Session.send = requests_send
httpx.Client.send = httpx_send

start_server = utils.ServerProcess.start


def start_with_tiny_model(self, *args, **options):
    if self.model_hf_repo or self.model_url:
        self.model_hf_repo = self.model_hf_file = self.model_url = None
        self.model_file = MODEL_FILE
        self.offline = False
    if self.chat_template is None and self.chat_template_file is None and not self.jinja:
        self.chat_template = "chatml"  # the model's own needs --jinja
    if self.server_embeddings and self.pooling is None and not self.server_reranking:
        self.pooling = "mean"  # as the model of these tests says itself
    if self.n_threads is None:
        self.n_threads = 1  # more would compete with the gateway on a small machine
    own = self.api_key
    if own and SERVER_KEY:
        self.api_key = f"{own},{SERVER_KEY}"  # a list of keys
    try:
        return start_server(self, *args, **options)
    finally:
        self.api_key = own


utils.ServerProcess.start = start_with_tiny_model
utils.ServerPreset.load_all = staticmethod(lambda: None)  # downloads models
utils.match_regex = lambda *_: True  # the words of a random model match no expectation


def first_line(text):
    text = text.replace(KEY, "<key>") if KEY else text
    return " ".join(text.split())[:LONGEST_REASON]


def reason_of(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return first_line(crash.message if crash else str(report.longrepr))


outcomes: dict[str, dict] = {}


def pytest_collection_finish(session):
    REPORT.write(json.dumps({"collected": len(session.items)}) + "\n")


def pytest_runtest_setup(item):
    routed.clear()


def pytest_runtest_logreport(report):
    one = outcomes.setdefault(report.nodeid, {"test": report.nodeid, "outcome": "passed", "why": "", "seconds": 0})
    one["seconds"] += report.duration
    if report.outcome != "passed" and one["outcome"] == "passed":
        one["outcome"] = report.outcome
        one["why"] = reason_of(report)
    if report.when == "teardown":
        REPORT.write(json.dumps({**one, "routes": list(routed)}) + "\n")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure():
    REPORT.close()
