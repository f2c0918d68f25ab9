/* Checksums (xxh3-64) of bytes, at 10 (SSE2) to 22 (AVX-512) GB/s per core, and content sums. */
#ifndef SLC_BASE_HASH_H
#define SLC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns XXH3 64-bit with seed 0 of `bytes` bytes at `data`, which may be NULL if bytes is 0. */
uint64_t slc_hash64(const void *data, size_t bytes);

/* Computes the hash of slc_hash64 for bytes that arrive in pieces: begin, add each piece, end.
 * begin accepts uninitialized memory; a stream holds no resources. */
struct slc_hash_stream {
    _Alignas(64) uint8_t state[640];
};
void slc_hash_stream_begin(struct slc_hash_stream *stream);
void slc_hash_stream_add(struct slc_hash_stream *stream, const void *data, size_t bytes);
uint64_t slc_hash_stream_end(const struct slc_hash_stream *stream);

/*
 * Contribution of a nonzero to the content sum of a tensor: a mix of its key and the bits of its
 * f64 value. The sum modulo 2^64 over all nonzeros does not depend on their order, so all layouts
 * of a tensor have the same sum. The function is part of the file format (docs/FORMAT.md, section
 * "Content sum"): m(x) is the finalizer of splitmix64; contribution = m(m(m(key_lo) + key_hi) +
 * value_bits).
 */
static inline uint64_t slc_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x;
}

static inline uint64_t slc_content_term(uint64_t key_lo, uint64_t key_hi, uint64_t value_bits)
{
    return slc_mix64(slc_mix64(slc_mix64(key_lo) + key_hi) + value_bits);
}

#endif
