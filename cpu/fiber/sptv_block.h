/* Inner loops of SpTV from fibers in memory (sptv.h). Like the kernels of kernels.h, they do not
 * fuse multiplications and additions. */
#ifndef SLC_CPU_SPTV_BLOCK_H
#define SLC_CPU_SPTV_BLOCK_H

#include "cpu/fiber/sptv.h"

enum {
    SLC_SPTV_LANES = 8, /* fibers processed in parallel; their sums fit in registers */
    /* Maximum length of a fiber that is processed in parallel with other fibers. A longer fiber is
       processed alone, with its nonzeros distributed over SLC_SPTV_LANES sums; otherwise seven
       other fibers would be padded to its length. */
    SLC_SPTV_SHORT_NNZ = 64
};

/* A class: `groups` groups of SLC_SPTV_LANES fibers of similar length, or one fiber that is
 * processed alone. */
struct slc_sptv_class {
    uint32_t length; /* steps of a group: number of nonzeros per fiber, including padding */
    uint32_t groups;
};

/* The fibers of a block. First there are classes of full groups. Then, unless last_lanes is 0,
 * there is a class with one incomplete group of last_lanes fibers. Then there are classes of one
 * fiber each. */
struct slc_sptv_span {
    uint32_t class_count; /* number of classes of full groups */
    uint32_t last_lanes;
    uint32_t alone_count;
    const struct slc_sptv_class *classes; /* all classes of the block */
    const void *index;                    /* SLC_SPTV_LANES elements per step */
    const void *values;                   /* SLC_SPTV_LANES elements per step */
    const uint16_t *place;                /* per fiber: position of its sum in `sums` */
    const double *vector;
    double *sums;
};

/* Computes the sums of a block, for values in f32 or f64 and indices of 2 or 4 bytes. */
void slc_sptv_block(enum slc_value_type value_type,
                    unsigned index_bytes,
                    const struct slc_sptv_span *span);

/* SpTV for tensors with so few nonzeros that the overhead of a call dominates. The nonzeros are in
 * a list: the first nonzero of every fiber, then the second nonzero of every fiber, and so on. So
 * sums need not be cleared, and neighbours in the list are usually added to different sums. Order:
 * as in sptv.h. */
/* Returns true if the list is at least as fast as blocks. */
bool slc_sptv_few_pays(const struct slc_sptv_source *source);

/* Builds the list. Needs: slc_sptv_few_pays returns true. The caller must call
 * slc_sptv_few_destroy, which accepts an all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_sptv_few_create(struct slc_sptv_few *few,
                                    const struct slc_sptv_source *source,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_sptv_few_destroy(struct slc_sptv_few *few);

/* Computes sums[f] for every fiber f of the source. */
void slc_sptv_few_multiply(const struct slc_sptv_few *few, const double *vector, double *sums);

#endif
