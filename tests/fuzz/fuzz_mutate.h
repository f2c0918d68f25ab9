/*
 * How inputs are altered that have parts: whole parts come, go and vary, so that those behind one
 * keep what they mean. libFuzzer calls a target's LLVMFuzzerCustomMutator; replay.c does, too.
 */
#ifndef SLC_FUZZ_MUTATE_H
#define SLC_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* The generator's own way to alter bytes, which may become more, up to `room` (libFuzzer's). */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room);
/* What a target may define: alters an input in a way that follows from `seed`; returns how many
 * bytes it has then. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed);

/* An input that is a head, then changes of one size with a u16 place somewhere in each. */
struct fuzz_changes {
    size_t head_bytes, change_bytes, place_at;
};

size_t fuzz_mutate_changes(
    uint8_t *data, size_t bytes, size_t room, unsigned seed, const struct fuzz_changes *form);

/* An input that is a head of that many bytes, then others: one of the two is altered. */
size_t
fuzz_mutate_behind(uint8_t *data, size_t bytes, size_t room, unsigned seed, size_t head_bytes);

/* An input that is pieces of up to `piece_bytes`, which is below 2^16, with a u16 before each that
 * says how many: one is altered. */
size_t
fuzz_mutate_pieces(uint8_t *data, size_t bytes, size_t room, unsigned seed, size_t piece_bytes);

#endif
