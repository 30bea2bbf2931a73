import bz2
import gzip
import io
import tarfile
import zipfile

import pytest

from dperm.data.archives import unpack
from dperm.data.arrays import RefusedError


def tar(members, mode="w:gz"):
    """Tar of (name, content) pairs; a content of type str is a link's target."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                archive.addfile(info)
            else:
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def zipped(members):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return out.getvalue()


def put(folder, content, name="file"):
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "packed",
    [
        b"a,b\n",
        gzip.compress(b"a,b\n"),
        bz2.compress(b"a,b\n"),
        tar([("d/x.data", b"a,b\n")]),
        tar([("x.data", b"a,b\n")], "w"),
        tar([("x.data", b"a,b\n"), ("x.domain", b"?")], "w:bz2"),
        zipped([("d/x.data", b"a,b\n"), ("d/x.domain", b"?")]),
    ],
    ids=["plain", "gz", "bz2", "tar.gz", "tar", "tar.bz2", "zip"],  # no bytes: of now
)
def test_unpack(tmp_path, packed):
    (path,) = unpack(put(tmp_path, packed), tmp_path / "out", ["x.data"])
    assert path.read_bytes() == b"a,b\n"


def test_members_come_in_the_order_asked(tmp_path):
    packed = put(tmp_path, tar([("a", b"1"), ("sub/b", b"2")]))
    found = unpack(packed, tmp_path / "out", ["sub/b", "a"])
    assert [path.read_bytes() for path in found] == [b"2", b"1"]


@pytest.mark.parametrize("make", [tar, zipped])
@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..\\evil"])
def test_path_escapes_are_refused(tmp_path, make, name):
    packed = put(tmp_path, make([("good", b"1"), (name, b"2")]))
    with pytest.raises(RefusedError, match="points outside"):
        unpack(packed, tmp_path / "out", ["good"])
    assert not list(tmp_path.rglob("*evil"))


def test_links_are_refused(tmp_path):
    packed = put(tmp_path, tar([("good", b"1"), ("link", "/etc/passwd")]))
    with pytest.raises(RefusedError, match="not a regular file"):
        unpack(packed, tmp_path / "out", ["good"])


@pytest.mark.parametrize(
    "damaged",
    [
        gzip.compress(b"a,b\n" * 999)[:-20],
        gzip.compress(b"a,b\n")[:-8] + b"\0" * 8,
        bz2.compress(b"a,b\n")[:-4],
        bz2.compress(b"a,b\n")[:9] + b"?" * 30,
        tar([("x", b"a" * 9999)])[:60],
        tar([("x", b"a" * 9999)], "w")[:5000],
    ],
    ids=["gz cut", "gz sum", "bz2 cut", "bz2 spoilt", "tar.gz cut", "tar cut"],
)
def test_damaged_archives_are_refused(tmp_path, damaged):
    with pytest.raises(RefusedError, match="damaged archive"):
        unpack(put(tmp_path, damaged), tmp_path / "out")


def test_archives_without_the_member_are_refused(tmp_path):
    packed = put(tmp_path, zipped([("a", b"1"), ("b", b"2")]))
    with pytest.raises(RefusedError, match="0 members 'c'; it holds a, b"):
        unpack(packed, tmp_path / "out", ["c"])
    with pytest.raises(RefusedError, match="name the wanted members"):
        unpack(packed, tmp_path / "out")


def test_bombs_are_refused(tmp_path):
    packed = put(tmp_path, gzip.compress(b"0" * 5000), "bomb.gz")
    with pytest.raises(RefusedError, match="more than 1000 bytes"):
        unpack(packed, tmp_path / "out", most=1000)
