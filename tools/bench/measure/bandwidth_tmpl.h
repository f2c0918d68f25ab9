/* The loops of one instruction set. For each instruction set, the including file defines SET_NAME,
 * VECTOR_BYTES, SUMS, and the function attributes TARGET (for loops that transfer data) and
 * PEAK_TARGET (for loops that compute). The loops use the vector types of gcc and clang, so the
 * same source serves every architecture.
 *
 * SUMS is the number of independent vectors of a peak loop. A fused multiply-add lasts four cycles,
 * and up to four start in each cycle, so a loop needs up to 16 independent vectors. But all vectors
 * and the two constants must fit in registers. The vectors start with different numbers, so that no
 * compiler merges them. */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAMED(a)     PASTE(a, SET_NAME)
#define TEXT_(a)     #a
#define TEXT(a)      TEXT_(a)

typedef uint64_t NAMED(word_vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef double NAMED(real_vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));

/* Reads eight vectors at a time, so that independent loads hide the latency. */
TARGET static uint64_t NAMED(read_bytes)(const void *from, uint64_t bytes)
{
    const NAMED(word_vector) *at = from;
    NAMED(word_vector) sums[8] = {{0}};
    uint64_t mixed = 0;

    for (uint64_t i = 0; i < bytes / VECTOR_BYTES; i += 8) {
        for (unsigned k = 0; k < 8; k++) {
            sums[k] ^= at[i + k];
        }
    }
    for (unsigned k = 1; k < 8; k++) {
        sums[0] ^= sums[k];
    }
    for (unsigned k = 0; k < VECTOR_BYTES / 8; k++) {
        mixed ^= sums[0][k];
    }
    return mixed;
}

/* The barrier keeps compilers from replacing the loop with memcpy, whose large copies use other
 * instructions. */
TARGET static void NAMED(copy_bytes)(void *to, const void *from, uint64_t bytes)
{
    const NAMED(word_vector) *in = from;
    NAMED(word_vector) *out = to;

    for (uint64_t i = 0; i < bytes / VECTOR_BYTES; i += 4) {
        out[i] = in[i];
        out[i + 1] = in[i + 1];
        out[i + 2] = in[i + 2];
        out[i + 3] = in[i + 3];
        __asm__ volatile("" ::: "memory");
    }
}

TARGET static void NAMED(triad_bytes)(void *to, const void *a, const void *b, uint64_t bytes)
{
    const NAMED(real_vector) *left = a;
    const NAMED(real_vector) *right = b;
    NAMED(real_vector) *out = to;

    for (uint64_t i = 0; i < bytes / VECTOR_BYTES; i++) {
        out[i] = left[i] + 3.0 * right[i];
    }
}

TARGET static inline __attribute__((always_inline)) uint64_t NAMED(gather_vectors)(
    const char *rows, uint64_t row_bytes, const uint32_t *index, uint64_t count, bool prefetch)
{
    NAMED(word_vector) sums[2] = {{0}};
    uint64_t mixed = 0;

    for (uint64_t i = 0; i < count; i++) {
        const NAMED(word_vector) *row = (const void *)(rows + index[i] * row_bytes);

        if (prefetch) {
            const char *ahead = rows + index[i + BENCH_PREFETCH_ROWS] * row_bytes;

            for (uint64_t line = 0; line < row_bytes; line += 64) {
                __builtin_prefetch(ahead + line);
            }
        }
        for (uint64_t v = 0; v < row_bytes / VECTOR_BYTES; v++) {
            sums[v % 2] ^= row[v];
        }
    }
    sums[0] ^= sums[1];
    for (unsigned k = 0; k < VECTOR_BYTES / 8; k++) {
        mixed ^= sums[0][k];
    }
    return mixed;
}

/* Passes common row sizes as constants, so that the compiler unrolls the loop over a row. */
TARGET static uint64_t NAMED(gather_rows)(
    const void *rows, uint64_t row_bytes, const uint32_t *index, uint64_t count, bool prefetch)
{
    switch (row_bytes) {
    case 8:
    case 16:
    case 32:
        return gather_words(rows, row_bytes, index, count, prefetch);
    case 64:
        return prefetch ? NAMED(gather_vectors)(rows, 64, index, count, true)
                        : NAMED(gather_vectors)(rows, 64, index, count, false);
    case 128:
        return prefetch ? NAMED(gather_vectors)(rows, 128, index, count, true)
                        : NAMED(gather_vectors)(rows, 128, index, count, false);
    case 256:
        return prefetch ? NAMED(gather_vectors)(rows, 256, index, count, true)
                        : NAMED(gather_vectors)(rows, 256, index, count, false);
    default:
        return NAMED(gather_vectors)(rows, row_bytes, index, count, prefetch);
    }
}

typedef double NAMED(double_vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef float NAMED(float_vector) __attribute__((vector_size(VECTOR_BYTES)));

PEAK_TARGET static double NAMED(peak_f64)(uint64_t steps, double factor, double term)
{
    NAMED(double_vector) sums[SUMS] = {{0}};

    for (unsigned k = 1; k < SUMS; k++) {
        sums[k] = sums[k - 1] + term;
    }
    for (uint64_t i = 0; i < steps; i++) {
        UNROLL
        for (unsigned k = 0; k < SUMS; k++) {
            sums[k] = sums[k] * factor + term;
        }
    }
    for (unsigned k = 1; k < SUMS; k++) {
        sums[0] += sums[k];
    }
    return sums[0][0];
}

PEAK_TARGET static double NAMED(peak_f32)(uint64_t steps, double factor, double term)
{
    const float narrow_factor = (float)factor;
    const float narrow_term = (float)term;
    NAMED(float_vector) sums[SUMS] = {{0}};

    for (unsigned k = 1; k < SUMS; k++) {
        sums[k] = sums[k - 1] + narrow_term;
    }
    for (uint64_t i = 0; i < steps; i++) {
        UNROLL
        for (unsigned k = 0; k < SUMS; k++) {
            sums[k] = sums[k] * narrow_factor + narrow_term;
        }
    }
    for (unsigned k = 1; k < SUMS; k++) {
        sums[0] += sums[k];
    }
    return (double)sums[0][0];
}

static const struct bench_bandwidth_set NAMED(set) = {
    .name = TEXT(SET_NAME),
    .read = NAMED(read_bytes),
    .copy = NAMED(copy_bytes),
    .triad = NAMED(triad_bytes),
    .gather = NAMED(gather_rows),
    .peak_f64 = NAMED(peak_f64),
    .peak_f32 = NAMED(peak_f32),
    .f64_per_step = 2 * SUMS * VECTOR_BYTES / sizeof(double),
    .f32_per_step = 2 * SUMS * VECTOR_BYTES / sizeof(float),
};

#undef PASTE_
#undef PASTE
#undef NAMED
#undef TEXT_
#undef TEXT
#undef SET_NAME
#undef VECTOR_BYTES
#undef SUMS
#undef TARGET
#undef PEAK_TARGET
