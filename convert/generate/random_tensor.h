/* Computes the random tensor that `sluice generate` writes. The coordinate of entry j depends only
 * on the options and on j. The value depends only on the options and on the coordinate, so entries
 * with equal coordinates have equal values.
 *
 * Random streams of the seed (base/random.h), listed here so that tests can reproduce the numbers:
 *     n              factors: A(n)(i, r) is number i * rank + r, uniform in [0, 1)
 *     32             noise: standard normal, at index H(coordinate)
 *     33             key of H, at index 0
 *     64             permutation of the places of units (uniform; fibers and slices)
 *     65, 66         fibers that are not dense: permutation of the cells; first cell of fiber u, at
 *                    index u
 *     128 + n        permutation of the indices of mode n (shuffled Zipf; worst: of the index j)
 *     256 + n + 16 t trial t of entry j in mode n, at index j (Zipf; others: only t = 0, of unit j)
 * H applies slc_mix64 to the indices i_n, mode 0 first: h = key; h = slc_mix64(h + i_n + 1). */
#ifndef SLC_CONVERT_RANDOM_TENSOR_H
#define SLC_CONVERT_RANDOM_TENSOR_H

#include "base/memory/memory.h"
#include "convert/generate/feistel.h"
#include "convert/generate/generate.h"
#include "convert/generate/zipf.h"

#include <stdint.h>

struct slc_random_tensor {
    unsigned order;
    uint64_t dims[SLC_MAX_ORDER];
    /* Sizes that linear indices use: the sides of the box for SLC_DIST_BEST, otherwise dims. */
    uint64_t sides[SLC_MAX_ORDER];
    uint64_t seed;
    enum slc_distribution distribution;
    /* Modes in which all entries of a unit have the same index, which is the place of the unit; bit
     * n: mode n. Unused for Zipf and worst, which have no units. */
    uint32_t placed;
    uint64_t unit_nnz;         /* entries of a unit */
    uint64_t longer_units;     /* the first units, which have one more entry */
    bool independent;          /* there are more than 2^128 places */
    struct slc_feistel linear; /* of places */
    struct slc_feistel cells;  /* SLC_DIST_FIBERS: of the cells of a fiber */
    struct slc_feistel shuffles[SLC_MAX_ORDER];
    struct slc_zipf zipf[SLC_MAX_ORDER];
    uint32_t rank;
    double noise_scale; /* noise times the root mean square of the model */
    uint64_t hash_key;
    /* Factors of small modes; rows of other factors are computed when needed. */
    struct slc_buffer tables[SLC_MAX_ORDER];
};

/* Checks the options and prepares the tensor. `table_bytes`: memory for factor tables. Ownership:
 * release with slc_random_tensor_destroy, which accepts an all-zero struct. Errors: SLC_ERR_USAGE,
 * SLC_ERR_MEMORY. */
enum slc_status slc_random_tensor_init(struct slc_random_tensor *tensor,
                                       const struct slc_generate_options *options,
                                       uint64_t table_bytes,
                                       struct slc_error *err) SLC_NODISCARD;
void slc_random_tensor_destroy(struct slc_random_tensor *tensor);
uint64_t slc_random_tensor_memory_bytes(const struct slc_random_tensor *tensor);

/* Computes coordinates (from 0) of `count` entries begin, begin + stride, .., in one column per
 * mode. */
void slc_random_tensor_coords(const struct slc_random_tensor *tensor,
                              uint64_t begin,
                              uint64_t stride,
                              uint32_t count,
                              uint64_t *const *coords);

/* Computes the values at `count` coordinates. */
void slc_random_tensor_values(const struct slc_random_tensor *tensor,
                              const uint64_t *const *coords,
                              uint32_t count,
                              double *values);

#endif
