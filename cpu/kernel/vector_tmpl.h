/* Vectors of f64 of the instruction set for which a file is compiled, and transposition. */
#ifndef SLC_CPU_VECTOR_TMPL_H
#define SLC_CPU_VECTOR_TMPL_H

#include "cpu/kernel/set_names.h"

#include <stdint.h>

enum { LANES = SET_VECTOR_BYTES / 8 };

typedef double vector __attribute__((vector_size(SET_VECTOR_BYTES), may_alias));
typedef int64_t bits __attribute__((vector_size(SET_VECTOR_BYTES), may_alias));

static inline __attribute__((always_inline)) vector load(const double *from)
{
    return *(const vector *)(const void *)from;
}

static inline __attribute__((always_inline)) void store(double *to, vector value)
{
    *(vector *)(void *)to = value;
}

/* Exchanges the off-diagonal blocks of d x d numbers in rows a and b = a + d of a square, where
 * `low` and `high` are LOW_d and HIGH_d. Exchanges for d = 1, 2, 4, .. transpose the square. */
#define EXCHANGE(a, b, low, high)                                                                  \
    do {                                                                                           \
        const vector kept = (a);                                                                   \
        (a) = __builtin_shufflevector(kept, (b), low);                                             \
        (b) = __builtin_shufflevector(kept, (b), high);                                            \
    } while (0)
#define LIST(...) __VA_ARGS__
/* Order in which each number of a vector is at the place d away from its own: SWAP_d. */

#if SET_VECTOR_BYTES == 64
#define LOW_1  LIST(0, 8, 2, 10, 4, 12, 6, 14)
#define HIGH_1 LIST(1, 9, 3, 11, 5, 13, 7, 15)
#define LOW_2  LIST(0, 1, 8, 9, 4, 5, 12, 13)
#define HIGH_2 LIST(2, 3, 10, 11, 6, 7, 14, 15)
#define LOW_4  LIST(0, 1, 2, 3, 8, 9, 10, 11)
#define HIGH_4 LIST(4, 5, 6, 7, 12, 13, 14, 15)
#define SWAP_1 LIST(1, 0, 3, 2, 5, 4, 7, 6)
#define SWAP_2 LIST(2, 3, 0, 1, 6, 7, 4, 5)
#define SWAP_4 LIST(4, 5, 6, 7, 0, 1, 2, 3)
#elif SET_VECTOR_BYTES == 32
#define LOW_1  LIST(0, 4, 2, 6)
#define HIGH_1 LIST(1, 5, 3, 7)
#define LOW_2  LIST(0, 1, 4, 5)
#define HIGH_2 LIST(2, 3, 6, 7)
#define SWAP_1 LIST(1, 0, 3, 2)
#define SWAP_2 LIST(2, 3, 0, 1)
#else
#define LOW_1  LIST(0, 2)
#define HIGH_1 LIST(1, 3)
#define SWAP_1 LIST(1, 0)
#endif

/* Transposes a square of LANES x LANES numbers. */
static inline __attribute__((always_inline)) void
transpose_square(const double *from, uint32_t from_pitch, double *to, uint32_t to_pitch)
{
    vector row[LANES];

    UNROLL
    for (uint32_t i = 0; i < LANES; i++) {
        row[i] = load(from + i * from_pitch);
    }
    UNROLL
    for (uint32_t i = 0; i < LANES; i += 2) {
        EXCHANGE(row[i], row[i + 1], LOW_1, HIGH_1);
    }
#if SET_VECTOR_BYTES >= 32
    UNROLL
    for (uint32_t i = 0; i < LANES; i++) {
        if ((i & 2) == 0) {
            EXCHANGE(row[i], row[i + 2], LOW_2, HIGH_2);
        }
    }
#endif
#if SET_VECTOR_BYTES >= 64
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        EXCHANGE(row[i], row[i + 4], LOW_4, HIGH_4);
    }
#endif
    UNROLL
    for (uint32_t i = 0; i < LANES; i++) {
        store(to + i * to_pitch, row[i]);
    }
}

/* Transposes `rows` x `cols` numbers. */
static inline __attribute__((always_inline)) void transpose(const double *from,
                                                            uint32_t rows,
                                                            uint32_t cols,
                                                            uint32_t from_pitch,
                                                            double *to,
                                                            uint32_t to_pitch)
{
    for (uint32_t i = 0; i < rows; i += LANES) {
        for (uint32_t j = 0; j < cols; j += LANES) {
            transpose_square(from + i * from_pitch + j, from_pitch, to + j * to_pitch + i,
                             to_pitch);
        }
    }
}

#endif
