/* Mutators for inputs with structure. */
#include "fuzz_mutate.h"

#include "base/memory/bytes.h"
#include "base/random.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES_NEAR = 32 };

/* Random number `index` of a seed. */
static size_t draw(unsigned seed, uint64_t index, size_t bound)
{
    return (size_t)slc_random_below(seed, 78, index, bound);
}

/* Changes bytes without changing the length. */
static void alter_some(uint8_t *data, size_t bytes)
{
    if (bytes > 0) {
        (void)LLVMFuzzerMutate(data, bytes, bytes);
    }
}

/* Inserts a gap at `at`, filled with the bytes that were there. */
static void open_gap(uint8_t *at, size_t behind, size_t bytes)
{
    memmove(at + bytes, at, behind);
}

/* Writes a new change at `at`: random bytes, or the existing change at a nearby place. */
static void
insert_change(uint8_t *at, size_t behind, unsigned seed, const struct fuzz_changes *form)
{
    const bool near = behind > 0 && draw(seed, 2, 2) == 0;

    open_gap(at, behind, form->change_bytes);
    if (near) {
        const uint16_t place = slc_load_u16(at + form->place_at);
        const size_t moved = place + draw(seed, 3, PLACES_NEAR) - PLACES_NEAR / 2;

        slc_store_u16(at + form->place_at, (uint16_t)moved);
        return;
    }
    for (size_t i = 0; i < form->change_bytes; i++) {
        at[i] = (uint8_t)draw(seed, 4 + i, 256);
    }
}

size_t fuzz_mutate_changes(
    uint8_t *data, size_t bytes, size_t room, unsigned seed, const struct fuzz_changes *form)
{
    const size_t each = form->change_bytes;
    size_t count, end;
    uint8_t *at;

    if (bytes < form->head_bytes) {
        return LLVMFuzzerMutate(data, bytes, room);
    }
    count = (bytes - form->head_bytes) / each;
    end = form->head_bytes + count * each;
    at = data + form->head_bytes + draw(seed, 0, count + 1) * each;
    switch (draw(seed, 1, 8)) {
    case 0:
        alter_some(data, form->head_bytes);
        return end;
    case 1:
    case 2:
    case 3:
        if (end + each <= room) {
            insert_change(at, (size_t)(data + end - at), seed, form);
            end += each;
        }
        return end;
    case 4:
        if (at < data + end) {
            memmove(at, at + each, (size_t)(data + end - at) - each);
            end -= each;
        }
        return end;
    default:
        break;
    }
    alter_some(at, at < data + end ? each : 0);
    return end;
}

size_t
fuzz_mutate_behind(uint8_t *data, size_t bytes, size_t room, unsigned seed, size_t head_bytes)
{
    if (bytes < head_bytes || room <= head_bytes) {
        return LLVMFuzzerMutate(data, bytes, room);
    }
    if (draw(seed, 0, 3) == 0) {
        alter_some(data, head_bytes);
        return bytes;
    }
    return head_bytes + LLVMFuzzerMutate(data + head_bytes, bytes - head_bytes, room - head_bytes);
}

/* Start of piece `index`, at its length; *count: the number of pieces. */
static size_t
find_piece(const uint8_t *data, size_t bytes, size_t piece_bytes, size_t index, size_t *count)
{
    size_t found = bytes, at = 0;

    for (*count = 0; bytes - at >= 2; (*count)++) {
        const size_t length = slc_load_u16(data + at) % (piece_bytes + 1);

        found = *count == index ? at : found;
        at += 2 + (length < bytes - at - 2 ? length : bytes - at - 2);
    }
    return found;
}

size_t
fuzz_mutate_pieces(uint8_t *data, size_t bytes, size_t room, unsigned seed, size_t piece_bytes)
{
    size_t count, at, old, fresh, behind, most;
    uint8_t *piece;

    (void)find_piece(data, bytes, piece_bytes, 0, &count);
    if (count == 0 || draw(seed, 0, 8) == 0) {
        return LLVMFuzzerMutate(data, bytes, room);
    }
    at = 2 + find_piece(data, bytes, piece_bytes, draw(seed, 1, count), &count);
    old = slc_load_u16(data + at - 2) % (piece_bytes + 1);
    old = old < bytes - at ? old : bytes - at;
    behind = bytes - at - old;
    most = old + room - bytes < piece_bytes ? old + room - bytes : piece_bytes;
    piece = malloc(most + 1);
    if (piece == NULL || most == 0) {
        free(piece);
        return bytes;
    }
    memcpy(piece, data + at, old);
    /* Usually the length stays the same, so that numbers keep their positions. */
    fresh = LLVMFuzzerMutate(piece, old, draw(seed, 2, 4) == 0 || old == 0 ? most : old);
    if (fresh < old && draw(seed, 3, 4) != 0) {
        fresh = old;
    }
    memmove(data + at + fresh, data + at + old, behind);
    memcpy(data + at, piece, fresh);
    slc_store_u16(data + at - 2, (uint16_t)fresh);
    free(piece);
    return at + fresh + behind;
}
