"""Fetching, against servers on this machine that cut off, stall, forget ranges, change files and send other bytes."""

import contextlib
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from csdpp.datasets import _archive, _download, fetch, fetching, load, registry
from csdpp.errors import FetchError, InvalidParameter

ARFF = "@relation r\n@attribute x numeric\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n" + "".join(
    f"{i / 7:.6f},{i % 2},1\n" for i in range(20_000)
)
FILES = {"toy.arff": ARFF.encode(), "toy.xml": b'<labels><label name="a"/><label name="b"/></labels>'}
TOY = registry.Entry(
    name="toy",
    title="A toy",
    N=20_000,
    d=1,
    K=2,
    cardinality=1.5,
    arff=("toy.arff",),
    xml="toy.xml",
    archive="http://localhost:1/toy.zip",
    citation="nobody",
    sha256={name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()},
)


class Server(ThreadingHTTPServer):
    """Serves `files`; what `tricks` holds for a path is done to its next answers, one for each."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.tricks, self.asked = {}, {}, []
        self.ranges, self.version = True, '"1"'
        self.address = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """One answer, with ranges and a version."""

    def log_message(self, *args):
        pass

    def do_GET(self):
        server, path = self.server, self.path
        wanted = self.headers.get("Range")
        server.asked.append((path, wanted))
        trick = server.tricks.get(path, []).pop(0) if server.tricks.get(path) else None
        data = server.files.get(path)
        if data is None or isinstance(trick, int):
            self.send_error(trick or 404)
            return
        start, status = 0, 200
        if wanted and server.ranges and self.headers.get("If-Range") == server.version:
            start, status = int(wanted.removeprefix("bytes=").rstrip("-")), 206
            if start >= len(data):
                self.send_error(416)
                return
        body = data[start:]
        self.send_response(status)
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        if trick != "no length":
            self.send_header("Content-Length", str(len(body)))
        if server.version:
            self.send_header("ETag", server.version)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            self.send(body, trick)

    def send(self, body, trick):
        half = len(body) // 2
        if trick == "cut":
            body = body[:half]
        elif trick == "corrupt":
            body = body[:half] + b"x" + body[half + 1 :]
        elif trick == "stall":
            self.wfile.write(body[:half])
            self.wfile.flush()
            time.sleep(1.5)
            return
        elif trick == "slow":
            for start in range(0, len(body), len(body) // 20):
                self.wfile.write(body[start : start + len(body) // 20])
                self.wfile.flush()
                time.sleep(0.05)
            return
        self.wfile.write(body)


@pytest.fixture
def server():
    with Server() as running:
        running.files = {f"/toy/{name}": data for name, data in FILES.items()}
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A cache of its own, the toy in the registry, no pauses."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CSDPP_DATA", raising=False)
    monkeypatch.setitem(registry.REGISTRY, "toy", TOY)
    monkeypatch.setattr(_download, "PAUSE", 0.001)
    for variable in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path / "cache" / "csdpp"


def check(folder):
    """All of it, and nothing else."""
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == FILES
    assert not list(folder.parent.glob(".toy.part"))


def test_what_is_fetched_is_loaded_by_name_and_not_fetched_again(server, place):
    folder = fetch("Toy", mirror=server.address)
    assert folder == place / "toy"
    check(folder)
    assert len(server.asked) == 2
    assert load("toy").statistics() == (20_000, 1, 2, 1.5, 0.75)
    assert fetch("toy", mirror=server.address) == folder
    assert len(server.asked) == 2
    fetch("toy", mirror=server.address, force=True)
    assert len(server.asked) == 4
    check(folder)


def test_a_set_below_csdpp_data_is_left_there(tmp_path, monkeypatch):
    (tmp_path / "data" / "toy").mkdir(parents=True)
    for name, data in FILES.items():
        (tmp_path / "data" / "toy" / name).write_bytes(data)
    monkeypatch.setenv("CSDPP_DATA", str(tmp_path / "data"))
    assert fetch("toy", mirror="http://localhost:1") == tmp_path / "data" / "toy"
    check(fetch("toy", mirror=tmp_path / "data", root=tmp_path / "elsewhere"))
    assert (tmp_path / "elsewhere" / "toy").is_dir()


@pytest.mark.parametrize("trick", ["cut", "stall"])
def test_an_answer_that_ends_early_goes_on_where_it_stopped(server, trick):
    server.tricks["/toy/toy.arff"] = [trick, 503, trick]
    check(fetch("toy", mirror=server.address, timeout=0.5))
    ranges = [wanted for path, wanted in server.asked if path.endswith("arff")]
    half = len(FILES["toy.arff"]) // 2
    later = half + (len(FILES["toy.arff"]) - half) // 2
    assert ranges == [None, f"bytes={half}-", f"bytes={half}-", f"bytes={later}-"]


def test_a_later_call_goes_on_too(server, place):
    server.tricks["/toy/toy.arff"] = ["cut", *[500] * 5]
    server.tricks["/toy.zip"] = [404]
    with pytest.raises(
        FetchError, match=r"toy could not be had: .*toy.arff must give a file, got 500 .*, 5 times in a row"
    ):
        fetch("toy", mirror=server.address)
    assert not (place / "toy").exists()
    check(fetch("toy", mirror=server.address))
    half = len(FILES["toy.arff"]) // 2
    assert [wanted for path, wanted in server.asked if path.endswith("arff")][-1] == f"bytes={half}-"


def test_slow_but_steady_is_good_enough(server):
    server.tricks["/toy/toy.arff"] = ["slow"]
    check(fetch("toy", mirror=server.address, timeout=0.5))
    assert len(server.asked) == 2


@pytest.mark.parametrize("version", ['"1"', None, 'W/"weak"'])
def test_a_server_without_ranges_or_versions_begins_anew(server, version):
    server.ranges, server.version = False, version
    server.tricks["/toy/toy.arff"] = ["cut"]
    check(fetch("toy", mirror=server.address))
    assert len(server.asked) == 3


def test_a_file_that_changed_meanwhile_begins_anew(server, place):
    server.files["/toy/toy.arff"] = b"%" * 50_000
    server.tricks["/toy/toy.arff"] = ["cut", *[500] * 5]
    with pytest.raises(FetchError):
        fetch("toy", mirror=server.address)
    server.files["/toy/toy.arff"], server.version = FILES["toy.arff"], '"2"'
    check(fetch("toy", mirror=server.address))
    server.version = '"3"'  # shorter than what we have
    (place / ".toy.part").mkdir()
    (place / ".toy.part" / "toy.arff.part").write_bytes(b"x" * len(FILES["toy.arff"]))
    (place / ".toy.part" / "toy.arff.part.json").write_text(
        f'{{"url": "{server.address}/toy/toy.arff", "version": "\\"3\\""}}'
    )
    check(fetch("toy", mirror=server.address, force=True))  # 416


def test_other_bytes_are_refused_and_those_of_an_earlier_attempt_tried_once_more(server, place):
    server.tricks["/toy/toy.arff"] = ["corrupt"]
    wanted, got = (r"http.*toy.arff must have the SHA-256 " + TOY.sha256["toy.arff"], "got [0-9a-f]{64}")
    with pytest.raises(FetchError, match=f"{wanted}, {got}; its bytes are not those that were verified"):
        fetch("toy", mirror=server.address)
    assert not (place / "toy").exists()
    part = place / ".toy.part" / "toy.arff.part"
    part.write_bytes(b"x" * 1000)
    part.with_name("toy.arff.part.json").write_text(f'{{"url": "{server.address}/toy/toy.arff", "version": "\\"1\\""}}')
    check(fetch("toy", mirror=server.address))


def test_an_answer_without_length_is_judged_by_its_checksum(server):
    server.tricks["/toy/toy.arff"] = ["no length"]
    check(fetch("toy", mirror=server.address))


def test_other_statistics_are_refused(server, place, monkeypatch):
    monkeypatch.setitem(registry.REGISTRY, "toy", replace(TOY, N=19_999, sha256={}))
    wanted = "toy must have 19999 rows, 1 features, 2 labels and 1.500 labels a row, got 20000 rows"
    with pytest.raises(FetchError, match=wanted):
        fetch("toy", mirror=server.address)
    server.files["/toy/toy.arff"] = b"<html>"
    with pytest.raises(FetchError, match=r"toy must be a set in Mulan's format, got: .*toy.arff, line 1: expected"):
        fetch("toy", mirror=server.address)
    assert not (place / "toy").exists()


def test_what_is_not_there_is_said_with_what_to_do(server, tmp_path):
    server.files.clear()
    said = r"fetch: toy could not be had: .*/toy/toy.arff must give a file, got 404 .*toy.zip must give a file, got 404"
    with pytest.raises(FetchError, match=said + r".*\(set CSDPP_DATA to a folder that has toy/ with toy.arff, toy.xml"):
        fetch("toy", mirror=server.address)
    with pytest.raises(FetchError, match=r"nowhere.*toy.arff must be a file, got none"):
        fetch("toy", mirror=tmp_path / "nowhere")
    with pytest.raises(FetchError, match=r"must begin with http:// or https://, got ftp://"):
        fetch("toy", mirror="ftp://127.0.0.1")
    with pytest.raises(FetchError, match=r"refused"):
        fetch("toy", mirror="http://127.0.0.1:9")
    with pytest.raises(InvalidParameter, match="fetch: name must be one of cal500"):
        fetch("flowers")
    with pytest.raises(InvalidParameter, match="fetch: timeout must be positive, got 0"):
        fetch("toy", timeout=0)


def test_a_stand_in_of_two_parts_where_the_whole_is_not_there(server, monkeypatch):
    halves = ARFF.splitlines(keepends=True)
    server.files["/toy/one.arff"] = "".join(halves[:10_005]).encode()
    server.files["/toy/two.arff"] = "".join(halves[:5] + halves[10_005:]).encode()
    del server.files["/toy/toy.arff"]
    monkeypatch.setitem(registry.REGISTRY, "toy", replace(TOY, split=("one.arff", "two.arff")))
    folder = fetch("toy", mirror=server.address)
    assert {path.name for path in folder.iterdir()} == {"one.arff", "two.arff", "toy.xml"}
    assert load("toy").X.shape == (20_000, 1)


# ---- archives


def packed(kind):
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in FILES.items():
                archive.writestr(f"../../{name.upper()}", data)  # a path that would lead out
            archive.writestr("readme.txt", "no")
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for name, data in FILES.items():
                info = tarfile.TarInfo(f"deep/{name}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_archives(server, monkeypatch, kind):
    server.files = {f"/toy.{kind}": packed(kind)}
    server.tricks[f"/toy.{kind}"] = ["cut"]
    monkeypatch.setitem(registry.REGISTRY, "toy", replace(TOY, archive=f"{server.address}/toy.{kind}"))
    check(fetch("toy"))
    (wanted,) = {wanted for _, wanted in server.asked if wanted}
    assert wanted == f"bytes={len(packed(kind)) // 2}-"


def test_a_mirror_may_have_the_archive(server):
    server.files = {"/toy.zip": packed("zip")}
    check(fetch("toy", mirror=server.address + "/"))


def test_archives_that_are_none(server, monkeypatch):
    archive = replace(TOY, archive=f"{server.address}/toy.rar/download")
    monkeypatch.setitem(registry.REGISTRY, "toy", archive)
    for data, said in (
        (b"<!doctype html>", r"toy.rar must be a zip, tar or RAR archive, got a file that begins b'<!doctype html>'"),
        (packed("zip")[:-100], r"toy.rar must be a zip, tar or RAR archive, got a file that begins b['\"]PK"),
        (
            b"Rar!\x1a\x07\x00",
            r"to unpack toy.rar takes one of bsdtar, unrar, 7z, 7zz, unar, got none of them; install",
        ),
    ):
        server.files["/toy.rar/download"] = data
        server.version = f'"{len(data)}"'
        with monkeypatch.context() as patch:
            patch.setattr(_archive.shutil, "which", lambda name: None)
            with pytest.raises(FetchError, match=said):
                fetch("toy")


def test_rar_by_a_program_that_is_there(server, monkeypatch, tmp_path):
    """A program that unpacks a zip stands in for bsdtar."""
    program = tmp_path / "bin" / "bsdtar"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport io, sys, zipfile\n"
        "data = open(sys.argv[3], 'rb').read()[4:]\nzipfile.ZipFile(io.BytesIO(data)).extractall(sys.argv[5])\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    server.files = {"/toy.rar": b"Rar!" + packed("zip")}
    monkeypatch.setitem(registry.REGISTRY, "toy", replace(TOY, archive=f"{server.address}/toy.rar"))
    monkeypatch.setattr(_archive.zipfile, "is_zipfile", lambda path: False)
    check(fetch("toy"))


@pytest.mark.skipif(not shutil.which("bsdtar"), reason="needs bsdtar")
def test_bsdtar_takes_our_arguments(tmp_path):
    (tmp_path / "toy.rar").write_bytes(b"Rar!" + packed("zip"))
    with pytest.raises(FetchError, match=r"bsdtar must unpack toy.rar, got exit code 1"):
        _archive.unpack(tmp_path / "toy.rar", FILES, tmp_path)


# ---- several at once, and a bar


CHILD = """
import sys
from csdpp.datasets import registry, fetch
sys.path.insert(0, sys.argv[2])
from test_datasets_fetch import TOY
registry.REGISTRY["toy"] = TOY
print(fetch("toy", mirror=sys.argv[1]))
"""


def test_of_several_who_fetch_one_works_and_the_others_wait(server, place):
    server.tricks["/toy/toy.arff"] = ["slow"] * 4
    found = []
    threads = [threading.Thread(target=lambda: found.append(fetch("toy", mirror=server.address))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [place / "toy"] * 4
    assert len(server.asked) == 2
    check(place / "toy")


def test_a_process_that_is_killed_leaves_nothing_half_and_its_lock_to_the_next(server, place):
    server.tricks["/toy/toy.arff"] = ["stall"]
    command = [sys.executable, "-c", CHILD, server.address, str(registry.Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        part = place / ".toy.part" / "toy.arff.part"
        for _ in range(3000):
            if part.exists() and part.stat().st_size >= len(FILES["toy.arff"]) // 2:
                break
            time.sleep(0.02)
        child.kill()
    assert not (place / "toy").exists()
    assert part.exists()
    check(fetch("toy", mirror=server.address))
    assert server.asked[-2][1] is not None or server.asked[-1][1] is not None  # it went on


def test_the_bar_tells_how_much_has_come(server, capsys, monkeypatch):
    monkeypatch.setattr("csdpp.progress.PAUSE", 0.0)
    server.tricks["/toy/toy.arff"] = ["slow"]
    fetch("toy", mirror=server.address, progress=True)
    drawn = capsys.readouterr().err
    assert "kB of toy.arff" in drawn
    assert "100%" in drawn
    assert drawn.endswith("\r")
    assert np.all([len(line) < 160 for line in drawn.split("\r")])
    fetch("toy", mirror=server.address, force=True, progress=False)
    assert capsys.readouterr().err == ""


def test_the_registry_has_an_address_of_an_archive_for_each_set():
    for known in registry.REGISTRY.values():
        assert fetching._ways(known, None)[-1][1] == ()
        assert "." in fetching._file_name(known.archive)
