"""A service to ask: in a thread of the tests (`live`), or as the process that users start (`process`)."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx

SRC = Path(__file__).resolve().parents[1] / "src"
JSON, NDJSON = {"content-type": "application/json"}, {"content-type": "application/x-ndjson"}
FRUIT = {"labels": ["apple", "ripe"], "features": ["red", "round"], "learner": {"n_components": 2}}


class Live:
    """A running service: `ask` and `post` give (status, JSON), `pipeline` is what stands behind."""

    def __init__(self, url, pipeline):
        self.url, self.pipeline = url, pipeline
        self.http = httpx.Client(base_url=url, timeout=60, trust_env=False)

    def ask(self, method, path, **more):
        answer = self.http.request(method, path, **more)
        return answer.status_code, answer.json()

    def get(self, path):
        return self.ask("GET", path)

    def post(self, path, body):
        return self.ask("POST", path, content=json.dumps(body), headers=JSON)

    def lines(self, path, lines):
        """Answers to NDJSON, one by one."""
        body = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        answer = self.http.post(path, content=body, headers=NDJSON)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]


@contextmanager
def live(folder, **settings):
    """A service in a thread, on a port of its own; it stops gracefully."""
    from csdpp.service import server
    from csdpp.service.pipeline import Pipeline
    from csdpp.service.settings import Settings

    settings = Settings.of({"folder": str(folder), "port": 0, **settings})
    pipeline = Pipeline(settings)
    server._warm_up(settings)
    try:
        pipeline.open()
    except BaseException:
        pipeline.close()
        raise
    listener = server._listen(settings)
    uvicorn = server.make_server(settings, pipeline)
    uvicorn.capture_signals = lambda: contextmanager(lambda: (yield))()  # signals belong to the tests
    started = threading.Event()

    async def serve():
        pipeline.start(asyncio.get_running_loop())
        asyncio.get_running_loop().call_later(0, started.set)
        await uvicorn.serve(sockets=[listener])
        await asyncio.to_thread(pipeline.stop)

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    started.wait(60)
    service = Live(f"http://127.0.0.1:{listener.getsockname()[1]}", pipeline)
    service.stop = uvicorn._told_to_stop
    try:
        yield service
    finally:
        service.http.close()
        service.stop()
        thread.join(90)
        pipeline.close()
        listener.close()
        assert not thread.is_alive()


class Process(Live):
    """The service as its users start it."""

    def __init__(self, folder, *flags, env=None):
        command = [sys.executable, "-m", "csdpp", "serve", "--folder", str(folder), "--port", "0", *map(str, flags)]
        environment = {**os.environ, "PYTHONPATH": str(SRC), **(env or {})}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1])
        super().__init__(line.split()[-1], None)

    def kill(self):
        """As a power cut would."""
        self.process.kill()
        return self.end()

    def stop(self):
        """As an administrator would."""
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self):
        """The exit code and what was written to stderr."""
        self.http.close()
        errors = self.process.communicate(timeout=60)[1]
        return self.process.returncode, errors
