/* Checksums (xxh3-64) of bytes and content sums of tensors. Checksums run at 10 GB/s (SSE2) to 22
 * GB/s (AVX-512) per core. */
#ifndef SLC_BASE_HASH_H
#define SLC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns the 64-bit XXH3 hash (seed 0) of `bytes` bytes at `data`. `data` may be NULL if `bytes`
 * is 0. */
uint64_t slc_hash64(const void *data, size_t bytes);

/* Computes slc_hash64 of bytes that arrive in several parts. Call slc_hash_stream_begin, then
 * slc_hash_stream_add for each part, then slc_hash_stream_end. slc_hash_stream_begin accepts
 * uninitialized memory; a stream holds no resources. */
struct slc_hash_stream {
    _Alignas(64) uint8_t state[640];
};
void slc_hash_stream_begin(struct slc_hash_stream *stream);
void slc_hash_stream_add(struct slc_hash_stream *stream, const void *data, size_t bytes);
uint64_t slc_hash_stream_end(const struct slc_hash_stream *stream);

/* The content sum of a tensor is the sum, modulo 2^64, of one term per nonzero; slc_content_term
 * mixes the key and the bits of the f64 value of a nonzero. The sum does not depend on the order of
 * nonzeros, so all layouts of a tensor have the same content sum. The term is part of the file
 * format (docs/FORMAT.md, section "Content sum"): m(x) is the finalizer of splitmix64, and term =
 * m(m(m(key_lo) + key_hi) + value_bits). */
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
