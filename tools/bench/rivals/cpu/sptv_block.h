/*
 * The inner loops of SpTV from fibers in memory (sptv.h). Like the kernels of kernels.h they do not
 * fuse multiply and add.
 */
#ifndef SLC_CPU_SPTV_BLOCK_H
#define SLC_CPU_SPTV_BLOCK_H

#include "tools/bench/rivals/cpu/sptv.h"

enum {
    SLC_SPTV_LANES = 8, /* fibers in parallel: as many sums as registers hold */
    /* A longer fiber is processed alone, its nonzeros distributed over the lanes: otherwise seven
     * other fibers would have to be padded to its length. */
    SLC_SPTV_SHORT_NNZ = 64
};

/* Fibers of similar length: `groups` times SLC_SPTV_LANES, or one that is processed alone. */
struct slc_sptv_class {
    uint32_t length; /* steps of a group: nonzeros of each of its fibers, with padding */
    uint32_t groups;
};

/*
 * A block: classes of full groups, then, unless last_lanes is 0, a class of one group with the
 * remaining fibers, then classes of one fiber each.
 */
struct slc_sptv_span {
    uint32_t class_count; /* of full groups */
    uint32_t last_lanes;
    uint32_t alone_count;
    const struct slc_sptv_class *classes; /* all classes */
    const void *index;                    /* SLC_SPTV_LANES per step */
    const void *values;                   /* SLC_SPTV_LANES per step */
    const uint16_t *place;                /* per fiber: position of its sum in `sums` */
    const double *vector;
    double *sums;
};

/* Computes the block's sums, for values of either type and indices of 2 or 4 bytes. */
void slc_sptv_block(enum slc_value_type value_type,
                    unsigned index_bytes,
                    const struct slc_sptv_span *span);

/*
 * SpTV of so few nonzeros that the overhead of a call dominates: a list of the first nonzero of
 * every fiber, then of the second nonzeros, and so on. Nothing is cleared, there are no blocks, and
 * neighbours of the list are added to different sums.
 * Order: as sptv.h.
 */
/* Whether the form is as fast as lanes. */
bool slc_sptv_few_pays(const struct slc_sptv_source *source);

/* Needs: slc_sptv_few_pays. Owns: slc_sptv_few_destroy, which accepts an all-zero struct. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_sptv_few_create(struct slc_sptv_few *few,
                                    const struct slc_sptv_source *source,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_sptv_few_destroy(struct slc_sptv_few *few);

/* Computes sums[f] for every fiber of the source. */
void slc_sptv_few_multiply(const struct slc_sptv_few *few, const double *vector, double *sums);

#endif
