"""Takes files of sluice apart, changes them and reassembles them with valid checksums according to
docs/FORMAT.md."""

import json
import struct

import slc_format as f

PAGE = f.PAGE


class Forgery:
    """A block file that is taken apart, changed, and reassembled with valid checksums."""

    def __init__(self, path):
        with open(path, "rb") as file:
            raw = file.read()
        self.path = path
        self.original = raw
        self.header = bytearray(raw[:PAGE])
        self.index_at, self.index_bytes = struct.unpack_from("<QQ", raw, 72)
        self.blocks = bytearray(raw[PAGE:self.index_at])
        self.index = bytearray(raw[self.index_at:self.index_at + self.index_bytes])
        self.end = bytearray(raw[-PAGE:])
        self.entry_bytes = 88 + 16 * raw[35]
        self.keep_hash = set()

    def set(self, part, offset, form, *values):
        struct.pack_into("<" + form, getattr(self, part), offset, *values)
        return self

    def write(self):
        count = len(self.index) // self.entry_bytes
        offsets = [struct.unpack_from("<QQ", self.original, self.index_at + b * self.entry_bytes)
                   for b in range(min(count, struct.unpack_from("<Q", self.original, 56)[0]))]
        if "block" not in self.keep_hash:
            for b, (offset, size) in enumerate(offsets):
                at = offset - PAGE
                data = self.blocks[at:at + f.round_up(size, PAGE)]
                struct.pack_into("<Q", self.index, b * self.entry_bytes + 24, f.hash64(data))
        if "index" not in self.keep_hash:
            struct.pack_into("<Q", self.header, 88, f.hash64(self.index))
            struct.pack_into("<Q", self.end, 32, f.hash64(self.index))
        if "header" not in self.keep_hash:
            struct.pack_into("<Q", self.header, 4088, f.hash64(self.header[:4088]))
            struct.pack_into("<Q", self.end, 8, struct.unpack_from("<Q", self.header, 4088)[0])
        if "end" not in self.keep_hash:
            struct.pack_into("<Q", self.end, 4088, f.hash64(self.end[:4088]))
        with open(self.path, "wb") as file:
            file.write(self.header + self.blocks + self.index + self.end)

    def restore(self):
        with open(self.path, "wb") as file:
            file.write(self.original)


def write_manifest(path, text):
    """Writes a manifest with a recomputed checksum."""
    start = b'{"checksum":"xxh3-64:'
    zeroed = start + b"0" * 16 + text[len(start) + 16:]
    with open(path, "wb") as file:
        file.write(start + b"%016x" % f.hash64(zeroed) + text[len(start) + 16:])


def agree(folder, header, name="blco.blk"):
    """Makes the manifest agree with the forged header of a block file."""
    path = f"{folder}/tensor.json"
    with open(path, "rb") as file:
        manifest = json.loads(file.read())
    nnz, blocks = struct.unpack_from("<Q8xQ", header, 40)
    file_bytes, content = struct.unpack_from("<QQ", header, 96)
    if name == "blco.blk":
        manifest["dims"] = list(struct.unpack_from(f"<{len(manifest['dims'])}Q", header, 128))
        manifest["nnz"], manifest["content_sum"] = nnz, f"{content:016x}"
    layout = next(entry for entry in manifest["layouts"] if entry["file"] == name)
    layout.update(block_count=blocks, file_bytes=file_bytes,
                  header_hash=f"{struct.unpack_from('<Q', header, 4088)[0]:016x}")
    write_manifest(path, json.dumps(manifest, separators=(",", ":")).encode())


class Whole:
    """Any other file; `seal` recomputes its checksums in place."""

    def __init__(self, path, seal):
        with open(path, "rb") as file:
            self.data = bytearray(file.read())
        self.path, self.seal = path, seal

    def set(self, _part, offset, form, *values):
        struct.pack_into("<" + form, self.data, offset, *values)
        return self

    def write(self):
        self.seal(self.data)
        with open(self.path, "wb") as file:
            file.write(self.data)


def seal_state(data):
    """Seals a state of an unfinished conversion: magic, hash of the rest, bytes of the fields,
    fields."""
    struct.pack_into("<Q", data, 8, f.hash64(data[16:]))


def seal_chunks(data):
    """Seals a spill file: contiguous chunks, each with its hash, link and size, then zeros to the
    end of a page."""
    at = 0
    while at + 72 <= len(data):
        (size,) = struct.unpack_from("<I", data, at + 20)
        if 72 <= size <= len(data) - at:
            struct.pack_into("<Q", data, at, f.hash64(data[at + 8:at + size]))
            at += size
        else:
            at = f.round_up(at + 1, PAGE)


def seal_journal(order):
    """Seals a journal: a head with its hash, then records, each of which starts with the previous
    hash."""
    def seal(data):
        size = 208 + 88 + 16 * order
        before = f.hash64(data[:56])
        struct.pack_into("<Q", data, 56, before)
        for at in range(64, len(data) - size + 1, size):
            struct.pack_into("<Q", data, at, before)
            before = f.hash64(data[at:at + size - 8])
            struct.pack_into("<Q", data, at + size - 8, before)
    return seal


def checkpoint_sections(data):
    """{name: (offset, bytes, place of its entry in the file)} of a generation of a checkpoint."""
    entries = [struct.unpack_from("<16sQQ", data, PAGE + 40 * i) for i in range(struct.unpack_from("<Q", data, 24)[0])]
    return {name.rstrip(b"\0").decode(): (offset, size, PAGE + 40 * i)
            for i, (name, offset, size) in enumerate(entries)}


def seal_checkpoint(sections):
    """Seals a generation of a checkpoint with these sections."""
    def seal(data):
        for offset, size, entry in sections.values():
            struct.pack_into("<Q", data, entry + 32, f.hash64(data[offset:f.round_up(offset + size, PAGE)]))
        struct.pack_into("<Q", data, 40, f.hash64(data[PAGE:2 * PAGE]))
        struct.pack_into("<Q", data, 504, f.hash64(data[:504]))
    return seal
