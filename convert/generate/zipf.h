/* Draws Zipf-distributed indices by rejection-inversion ([Hoermann1996]), without tables, for any
 * length (number of indices) up to 2^62. A draw needs about 1.1 trials. */
#ifndef SLC_CONVERT_ZIPF_H
#define SLC_CONVERT_ZIPF_H

#include <stdint.h>

struct slc_zipf {
    uint64_t length;
    double exponent;
    double integral_first; /* H(3/2) - 1 */
    double integral_last;  /* H(length + 1/2) */
    /* indices at most this far above the inverse of H are accepted without a test */
    double sure;
};

/* Prepares draws with P(i) ~ 1 / (i + 1)^exponent for i = 0 .. length - 1; exponent >= 0. */
void slc_zipf_init(struct slc_zipf *zipf, uint64_t length, double exponent);

/* Returns the Zipf-distributed index of draw `index`: trial t uses random number `index` of stream
 * `stream + t * stride`. Indices above 2^53 are drawn with the resolution of a double. */
uint64_t slc_zipf_draw(
    const struct slc_zipf *zipf, uint64_t seed, uint64_t stream, uint64_t stride, uint64_t index);

#endif
