/*
 * Zipf-distributed ids by rejection-inversion ([Hoermann1996]), without tables, for any length up
 * to 2^62, with about 1.1 trials per draw.
 */
#ifndef SLC_CONVERT_ZIPF_H
#define SLC_CONVERT_ZIPF_H

#include <stdint.h>

struct slc_zipf {
    uint64_t length;
    double exponent;
    double integral_first; /* H(3/2) - 1 */
    double integral_last;  /* H(length + 1/2) */
    double sure;           /* ids at most this far above the inverse are accepted without a test */
};

/* P(i) ~ 1 / (i + 1)^exponent for i = 0 .. length - 1; exponent >= 0. */
void slc_zipf_init(struct slc_zipf *zipf, uint64_t length, double exponent);

/*
 * The id of draw `index`: trial t uses random number `index` of stream `stream + t * stride`. Ids
 * above 2^53 are drawn with the resolution of a double.
 */
uint64_t slc_zipf_draw(
    const struct slc_zipf *zipf, uint64_t seed, uint64_t stream, uint64_t stride, uint64_t index);

#endif
