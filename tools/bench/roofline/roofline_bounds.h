/*
 * Best and worst cases of a tensor (XPLAT, section 3): tensors of its order, its number of nonzeros
 * and its kind of values that use the rows of their matrices as often as possible, and only once
 * (convert/generate/generate.h). What a kernel attains on them bounds what it attains on the tensor
 * as far as using rows again goes.
 */
#ifndef SLC_TOOLS_BENCH_ROOFLINE_BOUNDS_H
#define SLC_TOOLS_BENCH_ROOFLINE_BOUNDS_H

#include "base/error/error.h"
#include "storage/manifest/store.h"

#include <stdint.h>

enum roofline_case { ROOFLINE_GIVEN, ROOFLINE_BEST, ROOFLINE_WORST };
enum { ROOFLINE_CASES = 3 };

struct roofline_bound {
    unsigned order;
    uint64_t nnz; /* of the tensor, or as many as fit */
    enum slc_value_type value_type;
    unsigned threads;
    uint64_t memory_bytes;
};

/*
 * The bounds of a tensor to be computed with at `rank`: fewer nonzeros than it has where factors
 * and copies of the worst case, whose modes are as long as there are nonzeros, would exceed half of
 * the budget, or where keys of 128 bits do not tell its coordinates.
 */
void roofline_bound_init(struct roofline_bound *bound,
                         const struct slc_manifest *manifest,
                         enum slc_value_type precision,
                         uint32_t rank,
                         unsigned threads,
                         uint64_t memory_bytes);

/* Writes the best or worst case as the store `path`. Errors: those of slc_generate. */
enum slc_status roofline_bound_make(const struct roofline_bound *bound,
                                    enum roofline_case which,
                                    const char *path,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
