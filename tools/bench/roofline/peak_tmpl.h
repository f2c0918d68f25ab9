/*
 * The loops of one instruction set: SET_NAME, VECTOR_BYTES, SUMS and TARGET (its function
 * attribute) are defined by the file that includes this, once per set. SUMS is the number of
 * independent vectors: a fused multiply and add takes four cycles and up to four start in each, and
 * with the two constants all of them have to fit the registers. They begin with different numbers,
 * so that no compiler finds them to be one.
 */
#define PASTE_(a, b) a##_##b
#define PASTE(a, b)  PASTE_(a, b)
#define NAMED(a)     PASTE(a, SET_NAME)
#define TEXT_(a)     #a
#define TEXT(a)      TEXT_(a)

typedef double NAMED(double_vector) __attribute__((vector_size(VECTOR_BYTES)));
typedef float NAMED(float_vector) __attribute__((vector_size(VECTOR_BYTES)));

TARGET static double NAMED(peak_f64)(uint64_t steps, double factor, double term)
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

TARGET static double NAMED(peak_f32)(uint64_t steps, double factor, double term)
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

static const struct bench_peak_set NAMED(set) = {
    .name = TEXT(SET_NAME),
    .f64 = NAMED(peak_f64),
    .f32 = NAMED(peak_f32),
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
