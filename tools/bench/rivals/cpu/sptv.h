/*
 * Sparse tensor times vector from fibers in memory:
 *
 *     y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n)
 *
 * for one tensor and mode and any number of vectors, after [SPTV]. Only nonempty fibers are held.
 * Indices that never occur may be dropped, and the vector shortened to match (section 3.2). Fibers
 * are cut into independent blocks (section 4), and large blocks are processed first (section 5.3).
 *
 * A block holds consecutive fibers; in the order of keys, these form a box of the other modes. The
 * fibers of a block are sorted by length and processed eight at a time, each in one element of a
 * vector register, padded to the longest of the eight. Long fibers are processed alone. Sums are
 * written to the positions of their fibers, in the order of the source. Indices have 16 bits if the
 * vector is short enough; values have 32 bits if that is exact for all of them.
 *
 * For a few hundred nonzeros in short fibers, a product is a plain loop over a list (sptv_block.h),
 * because setting up blocks would take longer.
 *
 * Order: the sum of a fiber depends only on the fiber, and is the same for any number of threads
 * and any schedule. Memory: 6 to 12 bytes per nonzero, 2 bytes per fiber, and the used part of the
 * vector.
 */
#ifndef SLC_CPU_SPTV_H
#define SLC_CPU_SPTV_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Nonzeros fiber by fiber. Borrowed. */
struct slc_sptv_source {
    uint64_t length; /* length of the vector: at most 2^31 */
    uint64_t fibers;
    /* fibers + 1 elements: the first nonzero of each fiber, then their number */
    const uint64_t *begin;
    const uint32_t *index; /* per nonzero, below `length` */
    const double *values;  /* per nonzero */
};

/* The form for few nonzeros (sptv_block.h). Read-only. */
struct slc_sptv_few {
    uint64_t fibers;
    uint64_t more;            /* number of nonzeros, not counting the first of each fiber */
    struct slc_buffer memory; /* memory of the following arrays; empty: this form is not used */
    const double *values;
    const uint32_t *index;
    const uint32_t *row; /* fiber of each nonzero in `more` */
};

enum slc_sptv_unused {
    SLC_SPTV_UNUSED_AUTO, /* dropped if that makes products faster */
    SLC_SPTV_UNUSED_KEEP,
    SLC_SPTV_UNUSED_DROP
};

/* The order in which threads process blocks. */
enum slc_sptv_schedule {
    /* first the blocks above twice the mean size, largest first, then the others in file order */
    SLC_SPTV_AUTO,
    SLC_SPTV_LARGEST,
    SLC_SPTV_FILE
};

struct slc_sptv_options {
    enum slc_sptv_unused unused;
    enum slc_sptv_schedule schedule;
};

struct slc_sptv_block;

/* Read-only. */
struct slc_sptv {
    uint64_t fibers, nnz, length;
    /* if it is used, the members below are unused, except those of indices */
    struct slc_sptv_few few;
    uint64_t steps; /* steps of eight nonzeros, including padding */
    uint64_t block_count;
    enum slc_value_type value_type; /* type of stored values */
    unsigned index_bytes;           /* 2 or 4 */
    bool shortened;
    uint64_t used;            /* number of indices that occur */
    struct slc_buffer index;  /* SLC_SPTV_LANES per step */
    struct slc_buffer values; /* the same */
    /* u16: position of each fiber in its block, in the order of computing */
    struct slc_buffer place;
    struct slc_buffer classes;  /* struct slc_sptv_class */
    struct slc_buffer used_map; /* u32: original index of each index of the short vector */
    struct slc_buffer vector;   /* f64: the short vector of the current product */
    struct slc_sptv_block *blocks;
    uint32_t *schedule; /* blocks in the order of processing */
};

/*
 * Builds the form of the fibers. Owns: release with slc_sptv_destroy, which accepts an all-zero
 * struct.
 * Errors: SLC_ERR_UNSUPPORTED for a vector longer than 2^31; SLC_ERR_MEMORY.
 */
enum slc_status slc_sptv_create(struct slc_sptv *sptv,
                                const struct slc_sptv_source *source,
                                const struct slc_sptv_options *options,
                                struct slc_error *err) SLC_NODISCARD;
void slc_sptv_destroy(struct slc_sptv *sptv);

/*
 * Computes sums[f] for every fiber f of the source, including empty fibers. Needs: `vector` has
 * `length` finite numbers. Uses at most one thread per block. Threads: one product at a time.
 * Errors: SLC_ERR_SYSTEM.
 */
enum slc_status slc_sptv_multiply(struct slc_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  unsigned workers,
                                  struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes that a product moves: the form, the sums and the vector, each counted once. */
uint64_t slc_sptv_moved_bytes(const struct slc_sptv *sptv);

#endif
