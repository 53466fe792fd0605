#!/usr/bin/python3 -IS
"""Layers and image archives without a daemon.

image.py layer OUT.tar DIRECTORY [LOWER...]
                                    a tree as a layer; OUT.tar.id gets its digest. With the directories below an overlay's
                                    upper one, what was deleted from them becomes whiteouts.
image.py id IMAGE.json              the id that Docker gives to the image
image.py archive IMAGE.json...      writes what `docker load` and `ctr images import` read to standard output

IMAGE.json is {"tags": […], "layers": ["a.tar", …], "config": {…}}, with `config` as in the OCI image specification. The same
files make the same bytes on every machine.
"""

import hashlib
import io
import json
import os
import stat
import sys
import tarfile

EPOCH = "2026-01-01T00:00:00Z"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Hashed:
    """A file that knows the digest of what was written to it."""

    def __init__(self, file):
        self.file, self.sha256 = file, hashlib.sha256()

    def write(self, data):
        self.sha256.update(data)
        return self.file.write(data)


def layer(out, directory, lower):
    with open(out, "wb") as file:
        hashed = Hashed(file)
        with tarfile.open(fileobj=hashed, mode="w|", format=tarfile.PAX_FORMAT) as tar:
            add_tree(tar, directory, lower)
    with open(out + ".id", "w") as file:
        file.write(hashed.sha256.hexdigest())


def add_tree(tar, root, lower):
    first = {}  # of several names of one file, the others become links
    for folder, folders, files in os.walk(root):
        folders.sort()
        relative = os.path.relpath(folder, root)
        if relative != ".":
            add(tar, folder, relative, first)
            # An overlay marks every new directory; it matters where one of that name was below.
            if xattr(folder, "trusted.overlay.opaque") == b"y" and any(os.path.exists(os.path.join(d, relative)) for d in lower):
                tar.addfile(tarfile.TarInfo(os.path.join(relative, ".wh..wh..opq")))
        if relative == "dev":
            folders.clear()
            continue
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in sorted(files + links):
            add(tar, os.path.join(folder, name), os.path.normpath(os.path.join(relative, name)), first)
        folders[:] = [name for name in folders if name not in links]


def add(tar, path, name, first):
    status = os.lstat(path)
    if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
        tar.addfile(tarfile.TarInfo(os.path.join(os.path.dirname(name), ".wh." + os.path.basename(name))))
        return
    if stat.S_ISSOCK(status.st_mode):
        return
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
    info.mtime = int(status.st_mtime)
    identity = (status.st_dev, status.st_ino)
    if stat.S_ISLNK(status.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
    elif stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISFIFO(status.st_mode):
        info.type = tarfile.FIFOTYPE
    elif stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode):
        info.type = tarfile.CHRTYPE if stat.S_ISCHR(status.st_mode) else tarfile.BLKTYPE
        info.devmajor, info.devminor = os.major(status.st_rdev), os.minor(status.st_rdev)
    elif identity in first:
        info.type, info.linkname = tarfile.LNKTYPE, first[identity]
    else:
        if status.st_nlink > 1:
            first[identity] = name
        info.size = status.st_size
        capability = xattr(path, "security.capability")
        if capability:
            info.pax_headers["SCHILY.xattr.security.capability"] = capability.decode("utf-8", "surrogateescape")
        with open(path, "rb") as file:
            tar.addfile(info, file)
        return
    tar.addfile(info)


def xattr(path, name):
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError:
        return None


class Image:
    def __init__(self, path):
        with open(path) as file:
            described = json.load(file)
        self.tags, self.layers = described["tags"], described["layers"]
        self.ids = []
        for tar in self.layers:
            with open(tar + ".id") as file:
                self.ids.append(file.read())
        config = {
            "architecture": ARCHITECTURES[os.uname().machine],
            "config": described.get("config", {}),
            "created": EPOCH,
            "history": [{"created": EPOCH, "created_by": "spiritlevel " + self.tags[0]} for _ in self.ids],
            "os": "linux",
            "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest for digest in self.ids]},
        }
        self.config = json.dumps(config, sort_keys=True).encode()
        self.id = hashlib.sha256(self.config).hexdigest()


def archive(images):
    written, manifest = set(), []
    with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.PAX_FORMAT) as tar:

        def put(name, size, file):
            info = tarfile.TarInfo(name)
            info.size, info.mode = size, 0o644
            tar.addfile(info, file)

        for image in images:
            put(image.id + ".json", len(image.config), io.BytesIO(image.config))
            for digest, path in zip(image.ids, image.layers):
                if digest not in written:
                    written.add(digest)
                    with open(path, "rb") as file:
                        put(digest + ".tar", os.path.getsize(path), file)
            layers = [digest + ".tar" for digest in image.ids]
            manifest.append({"Config": image.id + ".json", "RepoTags": image.tags, "Layers": layers})
        content = json.dumps(manifest).encode()
        put("manifest.json", len(content), io.BytesIO(content))


match sys.argv[1:]:
    case ["layer", out, directory, *lower]:
        layer(out, directory, lower)
    case ["id", path]:
        print("sha256:" + Image(path).id)
    case ["archive", *paths] if paths:
        archive([Image(path) for path in paths])
    case _:
        sys.exit(__doc__)
