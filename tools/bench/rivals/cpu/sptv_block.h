/*
 * The inner loops of SpTV from fibers in memory (sptv.h). As the kernels of kernels.h they do not
 * fuse multiply and add.
 */
#ifndef SLC_CPU_SPTV_BLOCK_H
#define SLC_CPU_SPTV_BLOCK_H

#include "tools/bench/rivals/cpu/sptv.h"

enum {
    SLC_SPTV_LANES = 8, /* fibers side by side: as many sums as registers hold */
    /* A fiber longer than this stands alone, its nonzeros dealt out to the lanes: side by side with
     * seven others, those would have to be padded to its length. */
    SLC_SPTV_SHORT_NNZ = 64
};

/* Fibers of about one length, `groups` times SLC_SPTV_LANES of them, or one that stands alone. */
struct slc_sptv_class {
    uint32_t length; /* steps of a group: nonzeros of each of its fibers, with padding */
    uint32_t groups;
};

/*
 * A block: classes of full groups, then, where last_lanes is not 0, a class of one group that has
 * no more lanes, then classes of one fiber each.
 */
struct slc_sptv_span {
    uint32_t class_count; /* of full groups */
    uint32_t last_lanes;
    uint32_t alone_count;
    const struct slc_sptv_class *classes; /* of all */
    const void *index;                    /* SLC_SPTV_LANES per step */
    const void *values;                   /* the same */
    const uint16_t *place;                /* per fiber: its sum in `sums` */
    const double *vector;
    double *sums;
};

/* Computes the block's sums; values of either type, indices of 2 or 4 bytes. */
void slc_sptv_block(enum slc_value_type value_type,
                    unsigned index_bytes,
                    const struct slc_sptv_span *span);

/*
 * SpTV of so few nonzeros that what a call does beside multiplying is most of it: a list of the
 * first nonzero of every fiber, then of the second of those that have one, and so on. Nothing is
 * cleared, there are no blocks, and neighbours of the list are added to different sums.
 * Order: as sptv.h.
 */
/* Whether the form is as fast as lanes. */
bool slc_sptv_few_pays(const struct slc_sptv_source *source);

/* Needs: slc_sptv_few_pays. Owns: slc_sptv_few_destroy, which takes an all-zero struct. Errors:
 * SLC_ERR_MEMORY. */
enum slc_status slc_sptv_few_create(struct slc_sptv_few *few,
                                    const struct slc_sptv_source *source,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_sptv_few_destroy(struct slc_sptv_few *few);

/* sums[f] for every fiber of the source. */
void slc_sptv_few_multiply(const struct slc_sptv_few *few, const double *vector, double *sums);

#endif
