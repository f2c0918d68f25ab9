/* The best cases and the worst case of a tensor ([XPLAT] section 5). They have its order, its type
 * of values and its number of nonzeros (or fewer, see roofline_bound_init). The best cases of a
 * mode are dense slices, for MTTKRP, and dense fibers, for TTM and TTV, so each kernel has its own
 * best case in each mode. The worst case uses each row once (convert/generate/generate.h). To the
 * extent that the reuse of rows determines the performance of a kernel, its performance on the two
 * cases bounds its performance on the tensor. */
#ifndef SLC_TOOLS_BENCH_ROOFLINE_BOUND_H
#define SLC_TOOLS_BENCH_ROOFLINE_BOUND_H

#include "base/error/error.h"
#include "convert/generate/generate.h"
#include "storage/manifest/store.h"

#include <stdint.h>

struct roofline_bound {
    unsigned order;
    uint64_t nnz; /* nonzeros of the tensor, or fewer if the worst case would not fit */
    enum slc_value_type value_type;
    unsigned threads;
    uint64_t memory_bytes;
};

/* A best case. */
struct roofline_best {
    enum slc_distribution distribution; /* SLC_DIST_DENSE_SLICES or SLC_DIST_DENSE_FIBERS */
    const char *name;                   /* as --dist of generate accepts it */
    unsigned mode;                      /* from 0 */
};

/* Chooses the size of the cases for MTTKRPs at `rank`. The mode sizes of the worst case equal its
 * number of nonzeros. All cases have fewer nonzeros than the tensor if the factors and replicas of
 * the worst case would otherwise exceed half of the budget, or its coordinates would need more than
 * 128 bits. */
void roofline_bound_init(struct roofline_bound *bound,
                         const struct slc_manifest *manifest,
                         enum slc_value_type precision,
                         uint32_t rank,
                         unsigned threads,
                         uint64_t memory_bytes);

/* Writes a best case, or the worst case if `best` is NULL, to the store `path`. Errors: those of
 * slc_generate. */
enum slc_status roofline_bound_make(const struct roofline_bound *bound,
                                    const struct roofline_best *best,
                                    const char *path,
                                    struct slc_error *err) SLC_NODISCARD;

#endif
