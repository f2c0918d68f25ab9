"""An independent reader and writer of sluice stores, written from docs/FORMAT.md alone.

It shares only the specification with the C code, checks every byte it reads, and is the reference
of the tests: if the two disagree, one of them or the specification is wrong. Coordinates are
0-based NumPy arrays; keys are uint64 arrays if 64 bits suffice, otherwise object arrays of Python
integers."""

import functools
import json
import os
import struct

import lz4.block
import numpy as np
import xxhash

PAGE = 4096
MAGIC = b"\x89SLC\r\n\x1a\n"
END_MAGIC = b"\x89SLCEND\n"
PERMUTATION_MAGIC = b"\x89SLCPRM\n"
MASK64 = (1 << 64) - 1
CODECS = {1: "packed", 2: "lz4", 3: "blco"}
LAYOUTS = {1: "blco", 2: "sorted", 3: "fiber"}


class FormatError(Exception):
    """A store that violates docs/FORMAT.md."""


def require(condition, message):
    if not condition:
        raise FormatError(message)


def hash64(data):
    return xxhash.xxh3_64_intdigest(bytes(data))


def round_up(value, unit):
    return (value + unit - 1) // unit * unit


# ---- section 3: keys


def mode_bits(length):
    return (length - 1).bit_length()


def key_positions(dims, run=(0, 0)):
    """For every key bit, from the least significant: (mode, bit of the coordinate).

    `run`: (mode, bits) of the fiber run, whose bits are the lowest."""
    return positions_of(tuple(dims), tuple(run))


@functools.lru_cache(maxsize=None)
def positions_of(dims, run):
    bits = [mode_bits(length) for length in dims]
    run_mode, run_bits = run
    positions = [(run_mode, bit) for bit in range(min(run_bits, bits[run_mode]))]
    for level in range(max(bits, default=0)):
        for mode in reversed(range(len(dims))):
            if level < bits[mode] and not (mode == run_mode and level < run_bits):
                positions.append((mode, level))
    return positions


@functools.lru_cache(maxsize=256)
def tables_of(moves):
    """Returns tables, indexed by source byte, for `moves` of (source word, bit, target word,
    bit)."""
    tables, every = {}, np.arange(256, dtype=np.uint64)
    for source, bit, target, place in moves:
        table = tables.setdefault((source, bit // 8, target), np.zeros(256, dtype=np.uint64))
        table |= ((every >> np.uint64(bit % 8)) & np.uint64(1)) << np.uint64(place)
    return tables


def move_bits(words, moves, targets):
    """Returns rows of uint64 with the moved bits of the rows `words`."""
    out = np.zeros((targets, words.shape[1]), dtype=np.uint64)
    parts, last = None, None
    for (source, byte, target), table in tables_of(moves).items():
        if last != (source, byte):
            parts, last = (words[source] >> np.uint64(8 * byte)).astype(np.uint8), (source, byte)
        out[target] |= table[parts]
    return out


@functools.lru_cache(maxsize=None)
def key_moves(dims, run):
    """Returns the moves from coordinates to keys, and back."""
    there = [(mode, bit, place // 64, place % 64)
             for place, (mode, bit) in enumerate(positions_of(dims, run))]
    there.sort(key=lambda move: (move[0], move[1] // 8))
    back = sorted((move[2:] + move[:2] for move in there), key=lambda move: (move[0], move[1] // 8))
    return tuple(there), tuple(back)


def halves_of(dims, coords, run=(0, 0)):
    """Returns the lower and the upper 64 bits of the keys of an N x nnz coordinate array."""
    return move_bits(coords.astype(np.uint64, copy=False), key_moves(tuple(dims), tuple(run))[0], 2)


def join_halves(lo, hi):
    return lo.astype(object) + (hi.astype(object) << 64) if hi.any() else lo


def keys_of(dims, coords, run=(0, 0)):
    """Returns the keys of an N x nnz coordinate array."""
    return join_halves(*halves_of(dims, coords, run))


def coords_of(dims, keys_lo, keys_hi, run=(0, 0)):
    """Returns the coordinates (N x nnz, uint64) of keys given as two uint64 arrays."""
    return move_bits(np.stack((keys_lo, keys_hi)), key_moves(tuple(dims), tuple(run))[1], len(dims))


def keys_from(first, gaps):
    """Returns the keys with the differences `gaps`, starting at the first key."""
    if gaps.dtype != object and first + float(gaps.sum(dtype=np.float64)) + len(gaps) < 2.0 ** 63:
        return np.uint64(first) + np.cumsum(gaps + np.uint64(1)) - np.uint64(1)
    return first + np.cumsum(gaps.astype(object) + 1) - 1


def gaps_of(keys):
    """The inverse of keys_from; the first gap is 0."""
    one = 1 if keys.dtype == object else np.uint64(1)
    return np.concatenate((np.zeros(1, dtype=np.uint64), keys[1:] - keys[:-1] - one))


def fibers_of(keys, bits):
    """Returns the keys without their lowest bits."""
    if keys.dtype == object:
        return keys >> bits
    return keys >> np.uint64(bits) if bits < 64 else np.zeros(len(keys), dtype=np.uint64)


def distinct(ascending):
    return int((ascending[1:] != ascending[:-1]).sum()) + 1


# ---- section 6: packing


def bits_at(data, places, widths):
    """Returns the numbers of `widths` bits, at most 64 each, at the bit addresses `places`."""
    padded = bytes(data) + bytes(24)
    words = np.ndarray(len(padded) - 7, dtype="<u8", buffer=padded, strides=(1,))
    byte, shift = places >> 3, (places & 7).astype(np.uint64)
    low = words[byte] >> shift
    # A shift by 64 bits is undefined: shifts by one, then by the rest.
    high = (words[byte + 8] << np.uint64(1)) << (np.uint64(63) - shift)
    full = np.uint64(MASK64)
    mask = np.where(widths > 0, full >> (np.uint64(64) - np.maximum(widths, 1).astype(np.uint64)),
                    np.uint64(0))
    return (low | high) & mask


def wide_bits_at(data, places, widths):
    """Does the same as bits_at for at most 128 bits; returns lower and upper halves."""
    low = bits_at(data, places, np.minimum(widths, 64))
    if not (widths > 64).any():
        return low, np.zeros(len(places), dtype=np.uint64)
    high = np.zeros(len(places), dtype=np.uint64)
    wide = widths > 64
    high[wide] = bits_at(data, places[wide] + 64, widths[wide] - 64)
    return low, high


def unpack_bits(data, width, count):
    """Returns `count` packed values of `width` bits as Python integers (beyond 64 bits) or
    uint64."""
    require(len(data) == (width * count + 7) // 8, "packed bits have the wrong length")
    require(width * count % 8 == 0 or data[-1] >> width * count % 8 == 0,
            "unused bits of packed values are not zero")
    places = np.arange(count, dtype=np.int64) * width
    return join_halves(*wide_bits_at(data, places, np.full(count, width, dtype=np.int64)))


def pack_bits(values, widths):
    """Packs values; `widths` is one width for all, or one per value."""
    lo, hi = split_keys(values)
    bits = np.unpackbits(np.stack((lo, hi), axis=1).astype("<u8").view(np.uint8), axis=1,
                         bitorder="little")
    wanted = np.broadcast_to(np.asarray(widths).reshape(-1, 1), (len(lo), 1))
    return np.packbits(bits[np.arange(128) < wanted], bitorder="little").tobytes()


def zero_past(data, ends):
    """Whether the bits after the bit addresses `ends` are zero up to the next byte."""
    within = ends[ends % 8 != 0]
    return not (data[within // 8] >> (within % 8).astype(np.uint8)).any()


def shift_up(lo, hi, by):
    """Returns 128-bit numbers times 2 to the power of `by`, each below 128."""
    near = (by % 64).astype(np.uint64)
    above = (hi << near) | ((lo >> np.uint64(1)) >> (np.uint64(63) - near))
    return np.where(by < 64, lo << near, np.uint64(0)), np.where(by < 64, above, lo << near)


def read_patched(data, start, count):
    """Patched groups at data[start:]; returns (values, end)."""
    groups = (count + 127) // 128
    place = start + round_up(3 * groups, 8)
    require(place <= len(data), "patched groups are cut short")
    head = np.frombuffer(data, np.uint8, 3 * groups, start).astype(np.int64)
    widths, extra, counts = head.reshape(3, groups)
    require(not any(data[start + 3 * groups:place]), "padding after the widths is not zero")
    sizes = np.full(groups, 128)
    sizes[-1:] = count - 128 * (groups - 1)
    for g in np.flatnonzero((widths + extra > 128) | (counts > sizes) | ((counts == 0) != (extra == 0))):
        raise FormatError(f"group {g} has bad widths")
    low_bytes, high_bytes = (sizes * widths + 7) // 8, (counts * extra + 7) // 8
    ends = place + np.cumsum(low_bytes + counts + high_bytes)
    end = int(ends[-1]) if groups else place
    require(end <= len(data), "patched groups are cut short")
    raw = np.frombuffer(data, np.uint8)
    low_at = ends - low_bytes - counts - high_bytes
    where_at, high_at = low_at + low_bytes, ends - high_bytes
    require(zero_past(raw, 8 * low_at + sizes * widths) and zero_past(raw, 8 * high_at + counts * extra),
            "unused bits of packed values are not zero")
    group, within = np.arange(count) // 128, np.arange(count) % 128
    lo, hi = wide_bits_at(data, 8 * low_at[group] + within * widths[group], widths[group])
    if counts.any():
        group = np.repeat(np.arange(groups), counts)
        within = np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)
        where = raw[where_at[group] + within].astype(np.int64)
        ascends = (where[1:] > where[:-1]) | (group[1:] != group[:-1])
        require(ascends.all() and (where < sizes[group]).all(), "bad exception positions")
        parts = wide_bits_at(data, 8 * high_at[group] + within * extra[group], extra[group])
        require((parts[0] | parts[1]).all(), "an exception of zero")
        where += 128 * group
        high = shift_up(*parts, widths[group])
        lo[where] |= high[0]
        hi[where] |= high[1]
    return join_halves(lo, hi), end


def write_patched(values):
    """Returns patched groups without exceptions: legal, but not the shortest encoding."""
    starts = range(0, len(values), 128)
    widths = [int(values[start:start + 128].max()).bit_length() for start in starts]
    head = bytes(widths) + bytes(2 * len(widths))
    return head.ljust(round_up(len(head), 8), b"\0") \
        + pack_bits(values, np.repeat(widths, 128)[:len(values)])


# ---- section 7: tile data


def zero_to(data, place, end, what):
    require(place <= end <= len(data), f"{what}: sections overlap")
    require(not any(data[place:end]), f"{what}: padding is not zero")


def unshuffle(raw, count, width, dtype):
    planes = np.frombuffer(raw, dtype=np.uint8).reshape(width, count)
    return np.ascontiguousarray(planes.T).reshape(-1).view(dtype)


def read_values(data, start, form, count):
    if form == 0:
        values, end = np.full(count, struct.unpack_from("<d", data, start)[0]), start + 8
    elif form == 1:
        (low,) = struct.unpack_from("<q", data, start)
        offsets, end = read_patched(data, start + 8, count)
        most = low + int(offsets.max())
        require(abs(low + int(offsets.min())) <= 1 << 53 and abs(most) <= 1 << 53,
                "an integer value exceeds 2^53")
        values = (offsets.astype(np.int64) + low).astype(np.float64)
    elif form == 2:
        entries, width = struct.unpack_from("<IB", data, start)
        require(2 <= entries <= 65536 and width == (entries - 1).bit_length(), "bad dictionary")
        require(data[start + 5:start + 8] == b"\0\0\0", "dictionary padding is not zero")
        table = np.frombuffer(data, "<u8", entries, start + 8)
        require((table[1:] > table[:-1]).all(), "the dictionary is not ascending")
        place = start + 8 + 8 * entries
        end = place + (count * width + 7) // 8
        index = unpack_bits(data[place:end], width, count)
        require(int(index.max()) < entries, "a dictionary index is out of range")
        values = table.view("<f8")[index.astype(np.int64)]
    elif form in (3, 4):
        kind, width = ("<f4", 4) if form == 3 else ("<f8", 8)
        values, end = np.frombuffer(data, kind, count, start), start + width * count
    elif form in (5, 6):
        width = 4 if form == 5 else 8
        size, zero = struct.unpack_from("<II", data, start)
        require(zero == 0, "reserved word of shuffled values is not zero")
        end = start + 8 + size
        raw = lz4.block.decompress(data[start + 8:end], uncompressed_size=width * count)
        require(len(raw) == width * count, "shuffled values have the wrong length")
        values = unshuffle(raw, count, width, "<f4" if width == 4 else "<f8")
    else:
        raise FormatError(f"unknown value form {form}")
    return values.astype(np.float64), end


def read_packed(data, nnz, first):
    base_width, form, zero, values_at = struct.unpack_from("<BBHI", data, 0)
    require(zero == 0 and values_at % 8 == 0, "bad tile head")
    count = (nnz + 511) // 512
    size = (count * base_width + 7) // 8
    bases = unpack_bits(data[8:8 + size], base_width, count)
    place = round_up(8 + size, 8)
    zero_to(data, 8 + size, place, "bases")
    gaps, end = read_patched(data, place, nnz)
    zero_to(data, end, values_at, "gaps")
    require(gaps[0] == 0, "the first gap is not zero")
    keys = keys_from(first, gaps)
    for b in range(count):
        want = 0 if b == 0 else int(keys[512 * b - 1]) + 1 - first
        require(int(bases[b]) == want, f"base {b} is wrong")
    require(base_width == max(int(b) for b in bases).bit_length(), "the base width is not the least")
    values, end = read_values(data, values_at, form, nnz)
    zero_to(data, end, len(data), "values")
    return keys, values


def read_lz4(data, nnz, first):
    gap_bytes, value_bytes, packed, zero, size = struct.unpack_from("<BBBBI", data, 0)
    require(zero == 0 and gap_bytes <= 16 and value_bytes in (4, 8) and packed in (0, 1),
            "bad tile head")
    raw_size = nnz * (gap_bytes + value_bytes)
    raw = data[8:8 + size]
    zero_to(data, 8 + size, len(data), "tile")
    if packed:
        raw = lz4.block.decompress(raw, uncompressed_size=raw_size)
    require(len(raw) == raw_size, "planes have the wrong length")
    planes = np.zeros((nnz, 16), dtype=np.uint8)
    planes[:, :gap_bytes] = np.frombuffer(raw, np.uint8, nnz * gap_bytes).reshape(gap_bytes, nnz).T
    gaps = join_halves(*planes.view("<u8").T.copy())
    require(gaps[0] == 0, "the first gap is not zero")
    values = unshuffle(raw[nnz * gap_bytes:], nnz, value_bytes, f"<f{value_bytes}")
    return keys_from(first, gaps), values.astype(np.float64)


@functools.lru_cache(maxsize=None)
def index_moves(dims, run):
    """Returns the moves from the lower 64 bits of keys to indices of codec blco, and back."""
    low = [(mode, place) for place, (mode, _) in enumerate(positions_of(dims, run)[:64])]
    low.sort(key=lambda pair: pair[0])
    there = sorted((0, place, 0, at) for at, (_, place) in enumerate(low))
    back = sorted((0, at, 0, place) for at, (_, place) in enumerate(low))
    return tuple(there), tuple(back), len(low)


def read_blco(data, nnz, dims, run):
    subs, zero = struct.unpack_from("<II", data, 0)
    require(zero == 0 and 1 <= subs <= nnz, "bad tile head")
    upper = np.zeros(nnz, dtype=np.uint64)
    place, at = 8, 0
    last = -1
    for _ in range(subs):
        hi, begin, count = struct.unpack_from("<QII", data, place)
        require(begin == at and count > 0 and hi > last, "bad sub-block")
        upper[begin:begin + count] = hi
        at, last, place = at + count, hi, place + 16
    require(at == nnz, "sub-blocks do not cover the tile")
    index = np.frombuffer(data, "<u8", nnz, place)
    values = np.frombuffer(data, "<f8", nnz, place + 8 * nnz)
    zero_to(data, place + 16 * nnz, len(data), "tile")
    _, back, used = index_moves(tuple(dims), tuple(run))
    require(used == 64 or not (index >> np.uint64(used)).any(), "unused index bits are not zero")
    return join_halves(move_bits(index[None, :], back, 1)[0], upper), values


# ---- section 8: content sum


def mix(x):
    x = x ^ (x >> np.uint64(30))
    x = x * np.uint64(0xBF58476D1CE4E5B9)
    x = x ^ (x >> np.uint64(27))
    x = x * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def content_terms(keys_lo, keys_hi, values):
    return mix(mix(mix(keys_lo) + keys_hi) + values.astype("<f8").view(np.uint64))


def terms_of(dims, coords, keys, head, values):
    """Terms of the content sum over keys with the run that the header names; `keys`: those of the
    file."""
    if head["content_run"] != head["run"]:
        keys = halves_of(dims, coords, head["content_run"])
    return content_terms(*keys, values)


@np.errstate(over="ignore")
def sum_squares(values):
    return float(np.add.accumulate(values * values)[-1]) if len(values) else 0.0


@np.errstate(over="ignore")
def fits_f32(values):
    return bool((values.astype(np.float32).astype(np.float64) == values).all())


def split_keys(keys):
    if keys.dtype != object:
        return keys, np.zeros(len(keys), dtype=np.uint64)
    lo = np.array([int(k) & MASK64 for k in keys], dtype=np.uint64)
    hi = np.array([int(k) >> 64 for k in keys], dtype=np.uint64)
    return lo, hi


# ---- sections 4 and 5: reading a block file


def read_run(pair, dims, most):
    run = (pair[0], pair[1])
    require(run[0] < len(dims) and (run[1] > 0 or run[0] == 0), "fiber mode")
    require(run[1] <= min(most, mode_bits(dims[run[0]])), "fiber bits")
    return run


def read_header(page, file_bytes):
    require(page[:8] == MAGIC, "bad magic")
    require(struct.unpack_from("<Q", page, 4088)[0] == hash64(page[:4088]), "header hash")
    major, _minor, header_bytes, reserved = struct.unpack_from("<HHIQ", page, 8)
    require(major == 1 and header_bytes == PAGE and reserved >> 18 == 0, "version or reserved bits")
    zeros, own_sum, reserved = reserved >> 17 & 1, reserved >> 16 & 1 == 0, reserved & 0xFFFF
    layout, mode, value_type, order, codec = struct.unpack_from("<BBBBI", page, 32)
    names = ("nnz", "sum_bits", "blocks", "tiles", "index_at", "index_bytes", "index_hash",
             "file_bytes", "content")
    head = dict(zip(names, struct.unpack_from("<9Q", page, 40)))
    require(layout in (1, 2, 3) and mode < order and value_type in (1, 2), "layout fields")
    require(1 <= order <= 16 and codec in CODECS, "order or codec")
    require(reserved >> order == 0, "relabelled modes")
    dims = struct.unpack_from("<16Q", page, 128)
    require(not any(dims[order:]) and all(dims[:order]), "dims")
    run = read_run(page[112:114], dims[:order], 64 if layout == 3 else 24)
    require(layout != 3 or mode_bits(dims[mode]) == 0 or run == (mode, mode_bits(dims[mode]))
            or key_positions(dims[:order], run) == key_positions(dims[:order], (mode, 64)),
            "fibers of the layout's mode")
    content_run = run if own_sum else read_run(page[114:116], dims[:order], 24)
    require(not any(page[114:116]) if own_sum else content_run != run, "run of the content sum")
    require(not any(page[116:128]) and not any(page[256:4088]), "unused header bytes")
    require(head["file_bytes"] == file_bytes, "file size")
    head.update(zeros=zeros, order=order, run=run, content_run=content_run, dims=list(dims[:order]), value_type=value_type, codec=codec,
                layout=layout, mode=mode, relabelled=[n for n in range(order) if reserved >> n & 1],
                sum_of_squares=struct.unpack_from("<d", page, 48)[0])
    return head


def read_block(data, entry, number, head):
    """Yields (tile number in file, keys, values) of one block."""
    dims, n = head["dims"], head["order"]
    magic, codec, zero, ordinal, nnz, tiles, entry_bytes, first_tile = struct.unpack_from(
        "<4sHHQQIIQ", data, 0)
    require(magic == b"SBLK" and zero == 0 and not any(data[40:64]), "block header")
    require((codec, ordinal, nnz, tiles, first_tile)
            == (entry["codec"], number, entry["nnz"], entry["tiles"], entry["first_tile"]),
            "block header and index disagree")
    require(entry_bytes == round_up(64 + 12 * n, 8), "directory entry size")
    place = 64 + tiles * entry_bytes
    total = 0
    for t in range(tiles):
        at = 64 + t * entry_bytes
        offset, size, tile_nnz, f_lo, f_hi, l_lo, l_hi, squares, content = struct.unpack_from(
            "<QIIQQQQdQ", data, at)
        low = np.array(struct.unpack_from(f"<{n}Q", data, at + 64), dtype=np.uint64)
        extent = np.array(struct.unpack_from(f"<{n}I", data, at + 64 + 8 * n), dtype=np.uint64)
        require(not any(data[at + 64 + 12 * n:at + entry_bytes]), "directory padding")
        require(offset == place and size % 8 == 0, "tile offset")
        tile = data[offset:offset + size]
        require(len(tile) == size, "tile is cut short")
        first = f_lo | f_hi << 64
        if codec == 1:
            keys, values = read_packed(tile, tile_nnz, first)
        elif codec == 2:
            keys, values = read_lz4(tile, tile_nnz, first)
        else:
            keys, values = read_blco(tile, tile_nnz, dims, head["run"])
        require(len(keys) == tile_nnz and int(keys[0]) == first
                and int(keys[-1]) == (l_lo | l_hi << 64), "first or last key")
        require(int(keys[-1]) < 1 << len(key_positions(dims)), "key out of range")
        lo, hi = split_keys(keys)
        coords = coords_of(dims, lo, hi, head["run"])
        require((coords.min(axis=1) == low).all()
                and (coords.max(axis=1) - low == extent).all(), "coordinate range of a tile")
        require(np.isfinite(values).all() and (head["zeros"] or (values != 0).all()), "values")
        require(not np.signbit(values[values == 0]).any(), "a zero has a sign")
        require(sum_squares(values) == squares, "sum of squares of a tile")
        require(int(terms_of(dims, coords, (lo, hi), head, values).sum(dtype=np.uint64)) == content,
                "content sum of a tile")
        place += size
        total += tile_nnz
        yield dict(keys=keys, coords=coords, values=values, squares=squares, content=content)
    require(total == nnz, "nnz of a block")
    require(place + 64 == entry["bytes"], "payload bytes")
    require(not any(data[place:]), "slack or padding of a block")


class Partitions:
    """Section 4.4: the partitions of a sorted file, read block by block."""

    def __init__(self, head):
        self.sorted, self.mode, self.list = head["layout"] == 2, head["mode"], []
        self.fiber = head["layout"] == 3

    def add(self, ordinal, flags, low, high, nnz):
        """Returns whether keys keep ascending from the previous block."""
        if self.fiber:
            require(ordinal <= nnz and flags == 0, "fibers of a block")
            return True
        if not self.sorted:
            require(ordinal == 0 and flags == 0, "partition of a layout without any")
            return True
        low, high, count = int(low[self.mode]), int(high[self.mode]), len(self.list)
        require(flags in (0, 1) and ordinal in (count, count - 1), "partition's ordinal or flags")
        new = ordinal == count
        before = self.list[ordinal - 1] if ordinal > 0 else None
        if flags:
            require(before and low == high == before["first_row"] == before["last_row"],
                    "a partition continues a row that is not alone")
        elif before:
            require(low > before["last_row"], "rows of partitions do not ascend")
        if new:
            self.list.append(dict(first_row=low, last_row=high, nnz=0, continued=bool(flags)))
        own = self.list[ordinal]
        require(own["continued"] == bool(flags), "flags differ within a partition")
        own.update(first_row=min(own["first_row"], low), last_row=max(own["last_row"], high),
                   nnz=own["nnz"] + nnz)
        return not new or bool(flags)


def check_fibers(head, tile_keys, fibers_ended):
    """Layout fiber: tiles end at fiber boundaries unless they hold a part of one fiber; the index
    has the number of fibers that end in each block."""
    ended = [0] * len(fibers_ended)
    for t, (block, keys) in enumerate(tile_keys):
        fibers = fibers_of(keys, head["run"][1])
        following = tile_keys[t + 1:t + 2]
        goes_on = bool(following) and int(following[0][1][0]) >> head["run"][1] == fibers[-1]
        require(not goes_on or fibers[0] == fibers[-1], "a tile ends amid a fiber")
        ended[block] += distinct(fibers) - int(goes_on)
    require(ended == fibers_ended, "fibers that end in a block")


def read_block_file(path):
    """Reads and checks everything. Returns dict(dims, coords, values, header, block_nnz,
    partitions); nonzeros are in the key order of `blco` for every layout."""
    with open(path, "rb") as file:
        raw = file.read()
    require(len(raw) >= 2 * PAGE and len(raw) % PAGE == 0, "file size")
    head = read_header(raw[:PAGE], len(raw))
    n = head["order"]
    end = raw[-PAGE:]
    require(end[:8] == END_MAGIC, "closing magic")
    require(struct.unpack_from("<Q", end, 4088)[0] == hash64(end[:4088]), "closing hash")
    require(not any(end[48:4088]), "closing page padding")
    require(struct.unpack_from("<5Q", end, 8) == (
        struct.unpack_from("<Q", raw, 4088)[0], head["index_at"], head["index_bytes"],
        head["index_hash"], head["file_bytes"]), "closing page and header disagree")
    entry_bytes = 88 + 16 * n
    require(head["index_bytes"] == round_up(head["blocks"] * entry_bytes, PAGE), "index size")
    require(head["index_at"] + head["index_bytes"] + PAGE == len(raw), "index place")
    index = raw[head["index_at"]:head["index_at"] + head["index_bytes"]]
    require(hash64(index) == head["index_hash"], "index hash")
    require(not any(index[head["blocks"] * entry_bytes:]), "index padding")

    place, tiles_seen, squares, content = PAGE, 0, 0.0, 0
    coords, values, block_nnz, last_key = [], [], [], -1
    partitions = Partitions(head)
    tile_keys, fibers_ended = [], []
    for b in range(head["blocks"]):
        at = b * entry_bytes
        names = ("offset", "bytes", "nnz", "hash", "first_tile")
        entry = dict(zip(names, struct.unpack_from("<5Q", index, at)))
        entry["tiles"], entry["codec"], k_lo, k_hi, b_squares, b_content, ordinal, flags = (
            struct.unpack_from("<IIQQdQII", index, at + 40))
        low = np.array(struct.unpack_from(f"<{n}Q", index, at + 88), dtype=np.uint64)
        high = np.array(struct.unpack_from(f"<{n}Q", index, at + 88 + 8 * n), dtype=np.uint64)
        require(entry["offset"] == place and entry["first_tile"] == tiles_seen, "index entry")
        if not partitions.add(ordinal, flags, low, high, entry["nnz"]):
            last_key = -1
        padded = round_up(entry["bytes"], PAGE)
        data = raw[place:place + padded]
        require(len(data) == padded and hash64(data) == entry["hash"], f"hash of block {b}")
        own_squares, own_content, tiles = 0.0, 0, []
        for tile in read_block(data, entry, b, head):
            require(int(tile["keys"][0]) > last_key, "keys do not ascend")
            last_key = int(tile["keys"][-1])
            own_squares += tile["squares"]
            own_content = (own_content + tile["content"]) & MASK64
            tiles.append(tile)
            tile_keys.append((b, tile["keys"]))
        block_coords = np.concatenate([t["coords"] for t in tiles], axis=1)
        require(int(tiles[0]["keys"][0]) == (k_lo | k_hi << 64), "first key of a block")
        require(own_squares == b_squares and own_content == b_content, "sums of a block")
        require((block_coords.min(axis=1) == low).all()
                and (block_coords.max(axis=1) == high).all(), "coordinate range of a block")
        coords.append(block_coords)
        values += [t["values"] for t in tiles]
        block_nnz.append(entry["nnz"])
        fibers_ended.append(ordinal)
        squares += b_squares
        content = (content + b_content) & MASK64
        place += padded
        tiles_seen += entry["tiles"]
    if partitions.fiber:
        check_fibers(head, tile_keys, fibers_ended)
    require(place == head["index_at"] and tiles_seen == head["tiles"], "blocks and index")
    require(sum(block_nnz) == head["nnz"], "nnz")
    require(squares == head["sum_of_squares"] and content == head["content"], "sums")
    values = np.concatenate(values) if values else np.zeros(0)
    coords = (np.concatenate(coords, axis=1) if coords else np.zeros((n, 0), dtype=np.uint64))
    all_f32 = fits_f32(values)
    require(head["value_type"] == (1 if all_f32 else 2), "value type")
    require((coords < np.array(head["dims"], dtype=np.uint64)[:, None]).all(), "coordinates")
    if head["layout"] > 1 and block_nnz:
        order = np.argsort(keys_of(head["dims"], coords, head["content_run"]))
        coords, values = coords[:, order], values[order]
    return dict(dims=head["dims"], coords=coords, values=values, header=head,
                block_nnz=block_nnz, partitions=partitions.list)


# ---- section 9: manifest


def read_manifest(folder):
    with open(os.path.join(folder, "tensor.json"), "rb") as file:
        raw = file.read()
    start = b'{"checksum":"xxh3-64:'
    require(raw.startswith(start), "manifest does not start with its checksum")
    digits = raw[len(start):len(start) + 16]
    zeroed = start + b"0" * 16 + raw[len(start) + 16:]
    require(digits == b"%016x" % hash64(zeroed), "manifest checksum")
    manifest = json.loads(raw)
    require(manifest["format"] == "sluice-store" and manifest["version"] in (1, 2),
            "manifest version")
    require(manifest["version"] == 1 or manifest["permutations"], "version 2 without permutations")
    return manifest


# ---- section 10: permutations


def permutation_bytes(length):
    return 64 + round_up((length * mode_bits(length) + 7) // 8, 8)


def read_permutation(folder, entry, dims):
    """Returns the labels of one mode: labels[index of the input] = coordinate in the store."""
    mode = entry["mode"] - 1
    length = dims[mode]
    with open(os.path.join(folder, entry["file"]), "rb") as file:
        raw = file.read()
    require(2 <= length <= 1 << 31, "a relabelled mode of that length")
    require(len(raw) == entry["file_bytes"] == permutation_bytes(length), "permutation size")
    require("%016x" % hash64(raw) == entry["hash"], "permutation hash")
    width = mode_bits(length)
    want = PERMUTATION_MAGIC + struct.pack("<QII", length, mode, width)
    require(raw[:64] == want.ljust(64, b"\0"), "permutation header")
    used = (length * width + 7) // 8
    labels = unpack_bits(raw[64:64 + used], width, length)
    require(not any(raw[64 + used:]), "permutation padding")
    require((np.sort(labels) == np.arange(length, dtype=np.uint64)).all(), "not a permutation")
    return labels


def write_permutation(folder, mode, labels):
    """Writes perm-K.bin; returns its manifest entry."""
    width = mode_bits(len(labels))
    head = PERMUTATION_MAGIC + struct.pack("<QII", len(labels), mode, width)
    raw = head.ljust(64, b"\0") + pack_bits(np.asarray(labels, dtype=np.uint64), width)
    raw = raw.ljust(round_up(len(raw), 8), b"\0")
    name = f"perm-{mode + 1}.bin"
    with open(os.path.join(folder, name), "wb") as file:
        file.write(raw)
    return {"mode": mode + 1, "file": name, "file_bytes": len(raw), "hash": "%016x" % hash64(raw)}


def undo_labels(folder, manifest, tensor):
    """Replaces labels by coordinates of the input, in the key order of the input."""
    entries = manifest.get("permutations", []) if manifest["version"] == 2 else []
    require([entry["mode"] - 1 for entry in entries] == tensor["header"]["relabelled"],
            "relabelled modes of header and manifest")
    coords = tensor["coords"].copy()
    for entry in entries:
        labels = read_permutation(folder, entry, tensor["dims"])
        index = np.empty(len(labels), dtype=np.uint64)
        index[labels.astype(np.int64)] = np.arange(len(labels), dtype=np.uint64)
        coords[entry["mode"] - 1] = index[coords[entry["mode"] - 1].astype(np.int64)]
    if entries and coords.shape[1]:
        order = np.argsort(keys_of(tensor["dims"], coords))
        tensor["coords"], tensor["values"] = coords[:, order], tensor["values"][order]


def read_store(folder):
    """Reads a store (manifest and layouts, checked against each other); returns the tensor of
    `blco`."""
    manifest = read_manifest(folder)
    entries = {(entry["layout"], entry["mode"]): entry for entry in manifest["layouts"]}
    require(len(entries) == len(manifest["layouts"]), "a layout is listed twice")
    layouts = {key: read_layout(folder, manifest, entry) for key, entry in entries.items()}
    tensor = layouts[("blco", 0)]
    for key, other in layouts.items():
        require(other["header"]["content_run"] == tensor["header"]["content_run"],
                "content sums are over other keys")
        require((other["coords"] == tensor["coords"]).all()
                and (other["values"] == tensor["values"]).all(), f"nonzeros of {key} differ")
    undo_labels(folder, manifest, tensor)
    tensor["manifest"] = manifest
    tensor["layouts"] = layouts
    return tensor


def read_layout(folder, manifest, entry):
    """Reads a block file, checked against the manifest."""
    path = os.path.join(folder, entry["file"])
    tensor = read_block_file(path)
    head = tensor["header"]
    require((entry["layout"], entry["mode"])
            == (LAYOUTS[head["layout"]], head["mode"] + 1 if head["layout"] > 1 else 0),
            "manifest layout")
    require(manifest["dims"] == tensor["dims"] and manifest["nnz"] == head["nnz"], "manifest shape")
    require(entry["file_bytes"] == os.path.getsize(path), "manifest file size")
    require(entry["block_count"] == head["blocks"], "manifest block count")
    with open(path, "rb") as file:
        file.seek(4088)
        require(entry["header_hash"] == "%016x" % struct.unpack("<Q", file.read(8))[0],
                "manifest header hash")
    (listed,) = struct.unpack("<d", struct.pack("<Q", int(manifest["sum_of_squares"], 16)))
    near = 0 if entry["layout"] == "blco" else 4 * head["nnz"] * 2.0 ** -53
    require(listed == head["sum_of_squares"] or abs(listed - head["sum_of_squares"])
            <= near * max(listed, head["sum_of_squares"]), "manifest sum of squares")
    require(manifest["content_sum"] == "%016x" % head["content"], "manifest content sum")
    require(manifest["value_type"] == {1: "f32", 2: "f64"}[head["value_type"]], "manifest value type")
    require(entry["codec"] == CODECS[head["codec"]], "manifest codec")
    return tensor


# ---- writing


def encode_values(values):
    """Encodes values in form 0, 1 or 4, the first that fits: legal, but not always the shortest."""
    if (values == values[0]).all():
        return 0, struct.pack("<d", values[0])
    if (values == np.floor(values)).all() and (abs(values) <= 2.0 ** 53).all():
        low = int(values.min())
        return 1, struct.pack("<q", low) + write_patched((values.astype(np.int64) - low).astype(np.uint64))
    return 4, values.astype("<f8").tobytes()


def encode_packed(keys, values):
    bases = [0] + [int(keys[s - 1]) + 1 - int(keys[0]) for s in range(512, len(keys), 512)]
    width = max(b.bit_length() for b in bases)
    packed = pack_bits(np.array(bases, dtype=object), width)
    body = packed.ljust(round_up(len(packed), 8), b"\0")
    body += write_patched(gaps_of(keys))
    body = body.ljust(round_up(len(body), 8), b"\0")
    form, raw = encode_values(values)
    data = struct.pack("<BBHI", width, form, 0, 8 + len(body)) + body + raw
    return data.ljust(round_up(len(data), 8), b"\0")


def encode_lz4(keys, values):
    gaps = gaps_of(keys)
    gap_bytes = (int(gaps.max()).bit_length() + 7) // 8
    planes = np.stack(split_keys(gaps), axis=1).astype("<u8").view(np.uint8).T
    raw = planes[:gap_bytes].tobytes()
    raw += values.astype("<f8").view(np.uint8).reshape(-1, 8).T.tobytes()
    packed = lz4.block.compress(raw, store_size=False)
    use = len(packed) < len(raw)
    body = packed if use else raw
    data = struct.pack("<BBBBI", gap_bytes, 8, int(use), 0, len(body)) + body
    return data.ljust(round_up(len(data), 8), b"\0")


def encode_blco(keys, values, dims, run=(0, 0)):
    lo, hi = split_keys(keys)
    index = move_bits(lo[None, :], index_moves(tuple(dims), tuple(run))[0], 1)[0]
    starts = [0] + (np.flatnonzero(hi[1:] != hi[:-1]) + 1).tolist()
    data = struct.pack("<II", len(starts), 0)
    for begin, end in zip(starts, starts[1:] + [len(hi)]):
        data += struct.pack("<QII", int(hi[begin]), begin, end - begin)
    return data + index.astype("<u8").tobytes() + values.astype("<f8").tobytes()


def tile_end(coords, start, tile_nnz):
    """Returns the end of the tile that begins at `start`: limited by count, and by extents above
    2^32 - 2."""
    for most in (64, tile_nnz):  # a wide tile usually ends within 64 nonzeros
        piece = coords[:, start:start + min(most, tile_nnz)]
        extents = np.maximum.accumulate(piece, axis=1) - np.minimum.accumulate(piece, axis=1)
        wide = np.flatnonzero((extents > np.uint64((1 << 32) - 2)).any(axis=0))
        if len(wide):
            return start + int(wide[0])
    return start + piece.shape[1]


def tile_spans(coords, tile_nnz):
    """Returns (begin, end) of each tile of sorted nonzeros."""
    spans, start = [], 0
    while start < coords.shape[1]:
        end = tile_end(coords, start, tile_nnz)
        spans.append((start, end))
        start = end
    return spans


def fiber_spans(coords, keys, bits, tile_nnz):
    """Does the same as tile_spans for layout fiber: a tile ends with the last fiber that ends in
    it, if any."""
    spans, start, count = [], 0, coords.shape[1]
    fibers = fibers_of(keys, bits)
    while start < count:
        last = end = tile_end(coords, start, tile_nnz)
        if end < count:
            last = max(start, int(np.searchsorted(fibers, fibers[end])))
        end = last if last > start else end
        spans.append((start, end))
        start = end
    return spans


def cut_partitions(rows, order, target_nnz):
    """Groups the nonzeros `order` (in key order) by ranges of rows; (begin, end, continued)."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    order = order[np.argsort(rows[order], kind="stable")]
    sizes = np.unique(rows, return_counts=True)[1].tolist()
    parts, begin, end = [], 0, 0
    for size in sizes + [target_nnz + 1]:
        if end > begin and end + size - begin > target_nnz:
            parts += [(at, min(at + target_nnz, end), at > begin)
                      for at in range(begin, end, target_nnz)]
            order[begin:end] = order[begin:end][np.argsort(rank[order[begin:end]])]
            begin = end
        end += size
    return order, parts


def real_run(dims, run):
    """Returns the run, limited to the bits of its mode."""
    run = (run[0], min(run[1], mode_bits(dims[run[0]])))
    return run if run[1] > 0 else (0, 0)


def write_block_file(path, dims, coords, values, codec="packed", tile_nnz=65536, tiles_per_block=4,
                     relabelled=0, run=(0, 0), sorted_mode=None, target_nnz=0, content_run=None,
                     fiber_mode=None):
    """Writes a block file of layout blco, or sorted by `sorted_mode` into partitions of
    `target_nnz` nonzeros, or of whole fibers of `fiber_mode`; its content sum is over keys with
    `content_run`. Returns facts for the manifest."""
    run = real_run(dims, run if fiber_mode is None else (fiber_mode, 64))
    content_run = run if content_run is None else real_run(dims, content_run)
    frame = dict(run=run, content_run=content_run)
    n = len(dims)
    codec_number = {name: number for number, name in CODECS.items()}[codec]
    keys = keys_of(dims, coords, run)
    order = np.argsort(keys, kind="stable") if len(keys) else np.zeros(0, dtype=int)
    order, parts = ((order, [(0, len(keys), False)]) if sorted_mode is None else
                    cut_partitions(coords[sorted_mode], order, target_nnz))
    keys, values = keys[order], np.asarray(values, dtype=np.float64)[order]
    coords = coords[:, order]
    lo, hi = split_keys(keys)
    terms = terms_of(dims, coords, (lo, hi), frame, values)
    fibers = fibers_of(keys, run[1])
    blob, index = bytearray(), bytearray()
    squares, content, tile_number, blocks = 0.0, 0, 0, 0
    groups = []
    for ordinal, (begin, end, continued) in enumerate(parts):
        cuts = (tile_spans(coords[:, begin:end], tile_nnz) if fiber_mode is None else
                fiber_spans(coords, keys, run[1], tile_nnz))
        spans = [(begin + s, begin + e) for s, e in cuts]
        groups += [(spans[first:first + tiles_per_block], ordinal, int(continued))
                   for first in range(0, len(spans), tiles_per_block)]
    for group, ordinal, flags in groups:
        entry_bytes = round_up(64 + 12 * n, 8)
        place = 64 + len(group) * entry_bytes
        directory, data, b_squares, b_content = bytearray(), bytearray(), 0.0, 0
        for s, e in group:
            if codec == "packed":
                tile = encode_packed(keys[s:e], values[s:e])
            elif codec == "lz4":
                tile = encode_lz4(keys[s:e], values[s:e])
            else:
                tile = encode_blco(keys[s:e], values[s:e], dims, run)
            low, high = coords[:, s:e].min(axis=1), coords[:, s:e].max(axis=1)
            t_squares = sum_squares(values[s:e])
            t_content = int(terms[s:e].sum(dtype=np.uint64))
            record = struct.pack("<QIIQQQQdQ", place, len(tile), e - s, int(lo[s]), int(hi[s]),
                                 int(lo[e - 1]), int(hi[e - 1]), t_squares, t_content)
            record += struct.pack(f"<{n}Q", *map(int, low))
            record += struct.pack(f"<{n}I", *(int(h) - int(l) for h, l in zip(high, low)))
            directory += record.ljust(entry_bytes, b"\0")
            data += tile
            place += len(tile)
            b_squares += t_squares
            b_content = (b_content + t_content) & MASK64
        s, e = group[0][0], group[-1][1]
        if fiber_mode is not None:
            ordinal = distinct(fibers[s:e]) - int(e < len(keys) and fibers[e] == fibers[e - 1])
        block = struct.pack("<4sHHQQIIQ", b"SBLK", codec_number, 0, blocks, e - s, len(group),
                            entry_bytes, tile_number).ljust(64, b"\0")
        block += directory + data + bytes(64)
        padded = block.ljust(round_up(len(block), PAGE), b"\0")
        index += struct.pack("<5QIIQQdQII", PAGE + len(blob), len(block), e - s, hash64(padded),
                             tile_number, len(group), codec_number, int(lo[s]), int(hi[s]),
                             b_squares, b_content, ordinal, flags)
        index += struct.pack(f"<{n}Q", *map(int, coords[:, s:e].min(axis=1)))
        index += struct.pack(f"<{n}Q", *map(int, coords[:, s:e].max(axis=1)))
        blob += padded
        squares += b_squares
        content = (content + b_content) & MASK64
        tile_number += len(group)
        blocks += 1
    index = bytes(index).ljust(round_up(len(index), PAGE), b"\0")
    index_at = PAGE + len(blob)
    file_bytes = index_at + len(index) + PAGE
    all_f32 = fits_f32(values)
    other_sum = content_run != run
    head = MAGIC + struct.pack("<HHIQQ", 1, 0, PAGE, relabelled | int(other_sum) << 16, 0)
    head += struct.pack("<BBBBI", *((2, sorted_mode) if sorted_mode is not None else
                                             (1, 0) if fiber_mode is None else (3, fiber_mode)),
                        1 if all_f32 else 2, n, codec_number)
    head += struct.pack("<QdQQQQQQQ", len(keys), squares, blocks, tile_number, index_at, len(index),
                        hash64(index), file_bytes, content)
    head += bytes(run) + bytes(content_run if other_sum else (0, 0))
    head = head.ljust(128, b"\0") + struct.pack("<16Q", *(list(dims) + [0] * (16 - n)))
    head = head.ljust(4088, b"\0")
    header_hash = hash64(head)
    end = END_MAGIC + struct.pack("<5Q", header_hash, index_at, len(index), hash64(index),
                                  file_bytes)
    end = end.ljust(4088, b"\0")
    with open(path, "wb") as file:
        file.write(head + struct.pack("<Q", header_hash) + bytes(blob) + index + end
                   + struct.pack("<Q", hash64(end)))
    return dict(header_hash=header_hash, nnz=len(keys), squares=squares, content=content,
                value_type="f32" if all_f32 else "f64", blocks=blocks, file_bytes=file_bytes)


def layout_entry(name, layout, mode, codec, facts):
    return {"file": name, "layout": layout, "mode": mode, "codec": codec,
            "file_bytes": facts["file_bytes"], "block_count": facts["blocks"], "index_bytes": 0,
            "header_hash": "%016x" % facts["header_hash"]}


def write_store(folder, dims, coords, values, codec="packed", labels=None, sorted_by=None,
                sorted_runs=None, run=(0, 0), fibers_of=(), **cuts):
    """`labels`: {mode: labels of its indices} of relabelled modes; `sorted_by`: {mode: nonzeros per
    partition} of modes with sorted layouts; `sorted_runs`: {mode: fiber run} of sorted layouts
    whose keys differ from those of blco with `run`; `fibers_of`: modes with layouts of whole
    fibers."""
    os.makedirs(folder)
    labels = labels or {}
    coords = np.array(coords, dtype=np.uint64)
    for mode in labels:
        coords[mode] = np.asarray(labels[mode], dtype=np.uint64)[coords[mode].astype(np.int64)]
    relabelled = sum(1 << mode for mode in labels)
    facts = write_block_file(os.path.join(folder, "blco.blk"), dims, coords, values, codec,
                             relabelled=relabelled, run=run, **cuts)
    layouts = [layout_entry("blco.blk", "blco", 0, codec, facts)]
    for mode, target_nnz in (sorted_by or {}).items():
        name = f"sorted-{mode + 1}.blk"
        own = write_block_file(os.path.join(folder, name), dims, coords, values, codec,
                               relabelled=relabelled, sorted_mode=mode, target_nnz=target_nnz,
                               run=(sorted_runs or {}).get(mode, run), content_run=run, **cuts)
        layouts.append(layout_entry(name, "sorted", mode + 1, codec, own))
    for mode in fibers_of:
        name = f"fiber-{mode + 1}.blk"
        own = write_block_file(os.path.join(folder, name), dims, coords, values, codec,
                               relabelled=relabelled, fiber_mode=mode, content_run=run, **cuts)
        layouts.append(layout_entry(name, "fiber", mode + 1, codec, own))
    manifest = {
        "checksum": "xxh3-64:" + "0" * 16, "format": "sluice-store", "version": 1,
        "dims": [int(d) for d in dims], "nnz": facts["nnz"], "value_type": facts["value_type"],
        "sum_of_squares": "%016x" % struct.unpack("<Q", struct.pack("<d", facts["squares"]))[0],
        "norm": float(np.sqrt(facts["squares"])) if np.isfinite(facts["squares"]) else None,
        "content_sum": "%016x" % facts["content"],
        "layouts": layouts,
        "origin": {"source": "python", "dialect": "none", "index_base": 0,
                   "entries_read": facts["nnz"], "duplicates": 0, "explicit_zeros": 0,
                   "duplicate_policy": "sum", "writer": "slc_format.py"},
    }
    if labels:
        manifest["version"] = 2
        manifest["permutations"] = [write_permutation(folder, mode, labels[mode])
                                    for mode in sorted(labels)]
    text = json.dumps(manifest, separators=(",", ":")).encode()
    digits = b"%016x" % hash64(text)
    text = text.replace(b"xxh3-64:" + b"0" * 16, b"xxh3-64:" + digits, 1)
    with open(os.path.join(folder, "tensor.json"), "wb") as file:
        file.write(text)
