/* Mutators for inputs made of parts: they insert, remove and change whole parts, so that the parts
 * after them keep their meaning. libFuzzer and replay.c call the LLVMFuzzerCustomMutator of a
 * target. */
#ifndef SLC_FUZZ_MUTATE_H
#define SLC_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* The generator's own byte mutator; the size may grow up to `room` (libFuzzer's contract). */
size_t LLVMFuzzerMutate(uint8_t *data, size_t bytes, size_t room);
/* Optional function of a target: mutates an input deterministically by `seed`; returns the new
 * size in bytes. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t room, unsigned seed);

/* An input of a head and changes of one size, each with a u16 place. */
struct fuzz_changes {
    size_t head_bytes, change_bytes, place_at;
};

size_t fuzz_mutate_changes(
    uint8_t *data, size_t bytes, size_t room, unsigned seed, const struct fuzz_changes *form);

/* An input of a head of that many bytes and a rest: mutates one of the two. */
size_t
fuzz_mutate_behind(uint8_t *data, size_t bytes, size_t room, unsigned seed, size_t head_bytes);

/* An input of pieces of up to `piece_bytes` (below 2^16), each preceded by its u16 length:
 * mutates one piece. */
size_t
fuzz_mutate_pieces(uint8_t *data, size_t bytes, size_t room, unsigned seed, size_t piece_bytes);

#endif
