/*
 * Sparse tensor times vector from fibers in memory:
 *
 *     y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n)
 *
 * for one tensor and mode and any number of vectors, as SPTV is Chen et al., multi-level parallel
 * sparse tensor-vector product on heterogeneous systems: only fibers that have nonzeros are held,
 * indices that never occur may be dropped and the vector shortened to match (3.2), and fibers are
 * cut into independent blocks (4), of which large ones are taken first (5.3).
 *
 * A block holds consecutive fibers, and so a box of the other modes in the order of keys. Within it
 * they are sorted by length and go eight side by side, each in a lane of a vector, padded to the
 * longest of the eight; long ones stand alone. Sums go to their fibers' places, so the caller sees
 * the order it gave. Indices have 16 bits where the vector allows, values 32 where none loses a
 * bit.
 *
 * Of a few hundred nonzeros in short fibers a product is a loop over fibers as they lie: setting
 * out blocks and lanes would take longer than that.
 *
 * Order: a fiber's sum depends on nothing but the fiber, and is the same for any number of threads
 * and schedule.
 * Memory: 6 to 12 bytes a nonzero, 2 a fiber, and the used part of the vector.
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
    uint64_t length; /* of the vector: 2^31 at most */
    uint64_t fibers;
    const uint64_t *begin; /* fibers + 1: first nonzero of each; equal ones are empty fibers */
    const uint32_t *index; /* per nonzero, below `length` */
    const double *values;  /* per nonzero */
};

/* The form for few nonzeros (sptv_block.h). Only to be read. */
struct slc_sptv_few {
    uint64_t fibers;
    uint64_t more;            /* nonzeros but the first of each fiber */
    struct slc_buffer memory; /* of what follows; empty: there is no such form */
    const double *values;
    const uint32_t *index;
    const uint32_t *row; /* of those in `more`: the fiber */
};

enum slc_sptv_unused {
    SLC_SPTV_UNUSED_AUTO, /* dropped where that pays */
    SLC_SPTV_UNUSED_KEEP,
    SLC_SPTV_UNUSED_DROP
};

/* The order in which threads take blocks. */
enum slc_sptv_schedule {
    SLC_SPTV_AUTO, /* those of more than twice the mean largest first, the others as they lie */
    SLC_SPTV_LARGEST,
    SLC_SPTV_FILE
};

struct slc_sptv_options {
    enum slc_sptv_unused unused;
    enum slc_sptv_schedule schedule;
};

struct slc_sptv_block;

/* Only to be read. */
struct slc_sptv {
    uint64_t fibers, nnz, length;
    struct slc_sptv_few few; /* where it is used there are no steps, blocks or what follows */
    uint64_t steps;          /* of eight nonzeros, padding among them */
    uint64_t block_count;
    enum slc_value_type value_type; /* of values as they are held */
    unsigned index_bytes;           /* 2 or 4 */
    bool shortened;
    uint64_t used;              /* indices that occur */
    struct slc_buffer index;    /* SLC_SPTV_LANES per step */
    struct slc_buffer values;   /* the same */
    struct slc_buffer place;    /* u16: within its block, of each fiber in the order of computing */
    struct slc_buffer classes;  /* struct slc_sptv_class */
    struct slc_buffer used_map; /* u32: of each index of the short vector the original one */
    struct slc_buffer vector;   /* f64: the short vector of the product at hand */
    struct slc_sptv_block *blocks;
    uint32_t *schedule; /* blocks in the order in which they are taken */
};

/*
 * Brings fibers into this form. Owns: slc_sptv_destroy, which takes an all-zero struct.
 * Errors: SLC_ERR_UNSUPPORTED for a vector longer than 2^31; SLC_ERR_MEMORY.
 */
enum slc_status slc_sptv_create(struct slc_sptv *sptv,
                                const struct slc_sptv_source *source,
                                const struct slc_sptv_options *options,
                                struct slc_error *err) SLC_NODISCARD;
void slc_sptv_destroy(struct slc_sptv *sptv);

/*
 * sums[f] for every fiber of the source, empty ones too; `vector` has `length` finite numbers. No
 * more threads than blocks run. Threads: one product at a time. Errors: SLC_ERR_SYSTEM.
 */
enum slc_status slc_sptv_multiply(struct slc_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  unsigned workers,
                                  struct slc_error *err) SLC_NODISCARD;

/* What a product moves: form, sums, and the vector once. */
uint64_t slc_sptv_moved_bytes(const struct slc_sptv *sptv);

#endif
