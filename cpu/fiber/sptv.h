/* Computes sparse tensor times vector from fibers in memory:
 *
 *     y(f) = sum of x * v(i_n) over the nonzeros x of the mode-n fiber f
 *
 * for a tensor, a mode and any number of vectors, as in [SPTV]. Only nonempty fibers are stored.
 * Indices that never occur can be dropped; the vector is then shortened to match (section 3.2).
 * Fibers are cut into independent blocks (section 4), and large blocks are processed first
 * (section 5.3).
 *
 * A block has consecutive fibers. In the order of keys, the fibers of a block form a box of the
 * other modes. The fibers of a block are sorted by length and processed eight at a time. Each of
 * the eight fibers has one element of a vector register, and is padded to the length of the
 * longest. Long fibers are processed alone. Sums are written in the order of the source. Indices
 * have 16 bits if the vector is short enough. Values have 32 bits if all values are exact in f32.
 *
 * If there are only a few hundred nonzeros, all in short fibers, the product is a plain loop over a
 * list (sptv_block.h), because blocks would have more overhead.
 *
 * Order: the sum of a fiber depends only on the fiber; it is the same for any number of threads and
 * any schedule. Memory: 6 to 12 bytes per nonzero, 2 bytes per fiber, and the used part of the
 * vector. */
#ifndef SLC_CPU_SPTV_H
#define SLC_CPU_SPTV_H

#include "base/error/error.h"
#include "base/matrix.h"
#include "base/memory/memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Largest length of a vector, because a gather reads signed indices of 32 bits. */
#define SLC_SPTV_LENGTH_MAX (UINT64_C(1) << 31)

/* The nonzeros of a tensor, fiber by fiber. The arrays are borrowed. */
struct slc_sptv_source {
    uint64_t length; /* length of the vector, at most SLC_SPTV_LENGTH_MAX */
    uint64_t fibers;
    /* fibers + 1 elements: the first nonzero of each fiber, then the number of nonzeros */
    const uint64_t *begin;
    const uint32_t *index; /* index of each nonzero, below `length` */
    const double *values;  /* value of each nonzero */
};

/* The list for few nonzeros (sptv_block.h). Read-only. */
struct slc_sptv_few {
    uint64_t fibers;
    uint64_t more;            /* number of nonzeros that are not the first of their fiber */
    struct slc_buffer memory; /* memory of the following arrays; empty if the list is not used */
    const double *values;
    const uint32_t *index;
    const uint32_t *row; /* fiber of each nonzero that is not the first of its fiber */
};

enum slc_sptv_unused {
    SLC_SPTV_UNUSED_AUTO, /* unused indices are dropped if that makes products faster */
    SLC_SPTV_UNUSED_KEEP,
    SLC_SPTV_UNUSED_DROP
};

/* The order in which threads process blocks. */
enum slc_sptv_schedule {
    /* blocks of over twice the mean size first, larger size classes before smaller ones; then all
     * other blocks in file order */
    SLC_SPTV_AUTO,
    SLC_SPTV_LARGEST, /* all blocks by descending size class */
    SLC_SPTV_FILE
};

struct slc_sptv_options {
    enum slc_sptv_unused unused;
    enum slc_sptv_schedule schedule;
};

struct slc_sptv_block;

/* The stored fibers of one mode. Read-only. */
struct slc_sptv {
    uint64_t fibers, nnz, length;
    /* if this list is used, there are no blocks: `steps` is 0, and the arrays below are empty */
    struct slc_sptv_few few;
    uint64_t steps; /* number of steps; a step has eight nonzeros, some of which may be padding */
    uint64_t block_count;
    enum slc_value_type value_type; /* type of stored values */
    unsigned index_bytes;           /* bytes of a stored index: 2 or 4 */
    bool shortened;
    uint64_t used;            /* number of indices that occur */
    struct slc_buffer index;  /* SLC_SPTV_LANES elements per step */
    struct slc_buffer values; /* SLC_SPTV_LANES elements per step */
    /* 16 bits per fiber in the order of processing: its position in its block */
    struct slc_buffer place;
    struct slc_buffer classes;  /* struct slc_sptv_class */
    struct slc_buffer used_map; /* 32 bits per element of the short vector: its original index */
    struct slc_buffer vector;   /* the short vector of the current product, in f64 */
    struct slc_sptv_block *blocks;
    uint32_t *schedule; /* blocks in the order of processing */
};

/* Builds the blocks, or the list, of the fibers of a source. The caller must call slc_sptv_destroy,
 * which accepts an all-zero struct. Errors: SLC_ERR_UNSUPPORTED for a vector longer than 2^31;
 * SLC_ERR_MEMORY. */
enum slc_status slc_sptv_create(struct slc_sptv *sptv,
                                const struct slc_sptv_source *source,
                                const struct slc_sptv_options *options,
                                struct slc_error *err) SLC_NODISCARD;
void slc_sptv_destroy(struct slc_sptv *sptv);

/* Computes sums[f] for every fiber f of the source, including empty fibers. `vector` has
 * source.length numbers. Sets *is_finite to false if a sum is not finite; a number that is not
 * finite may affect any sum, because padding multiplies numbers by 0. Uses at most one thread per
 * block. Threads: call it for one product at a time. Errors: SLC_ERR_SYSTEM. */
enum slc_status slc_sptv_multiply(struct slc_sptv *sptv,
                                  const double *vector,
                                  double *sums,
                                  unsigned workers,
                                  bool *is_finite,
                                  struct slc_error *err) SLC_NODISCARD;

/* Returns the bytes of memory that the stored fibers use. */
uint64_t slc_sptv_memory_bytes(const struct slc_sptv *sptv);

/* Returns the bytes that a product moves: the stored fibers, the sums and the vector. */
uint64_t slc_sptv_moved_bytes(const struct slc_sptv *sptv);

#endif
