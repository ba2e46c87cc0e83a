"""A client of the application without a network, and a server."""

from __future__ import annotations

import threading
import time
import warnings

import pytest

EXTRA = "needs the explorer's packages: pip install 'bittrue[explorer]'"


@pytest.fixture(scope="session")
def client():
    pytest.importorskip("starlette", reason=EXTRA)
    pytest.importorskip("jinja2", reason=EXTRA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer versions would rather have another HTTP client
        try:
            from starlette.testclient import TestClient
        except (ImportError, RuntimeError):
            pytest.skip("Starlette's test client needs httpx: pip install httpx")

    from bittrue.explorer.app import create_app

    return TestClient(create_app(), base_url="http://127.0.0.1", raise_server_exceptions=False)


@pytest.fixture(scope="session")
def ask(client):
    """Return a record, or the status and the mistake."""

    def asked(question, **fields):
        response = client.get(f"/api/{question}", params=fields)
        record = response.json()
        return record if response.status_code == 200 else (response.status_code, record["field"], record["message"])

    return asked


@pytest.fixture(scope="session")
def address():
    """Serve the explorer on a free port of this machine."""
    uvicorn = pytest.importorskip("uvicorn", reason=EXTRA)
    pytest.importorskip("starlette", reason=EXTRA)
    from bittrue.explorer.app import create_app
    from bittrue.explorer.server import listen

    listening = listen(0)
    server = uvicorn.Server(uvicorn.Config(create_app(), log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)
    listening.close()
