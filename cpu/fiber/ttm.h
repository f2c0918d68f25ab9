/* Computes tensor times matrix (TTM) fiber by fiber; with one column, tensor times vector (SpTV):
 *   y(f, r) = sum of (x * U(i_n, r)) over the nonzeros x of mode-n fiber f
 * ([Kolda2009] section 2.5, with its matrix transposed). The result is semi-sparse: for each
 * nonempty fiber, its coordinates in the modes other than n and a dense row of R sums. The result
 * may exceed memory, so it is delivered in parts: a call processes a chunk of a tile and appends
 * its fibers to an output of fixed capacity, which the caller empties between calls.
 * After slc_ttm_output_create, the caller calls slc_ttm_next for each tile until the tile ends.
 * Whenever slc_ttm_has_capacity returns false, it first takes the fibers and removes them
 * (slc_ttm_keep_last).
 * Consecutive nonzeros of one fiber form a run. If the order of the tile's nonzeros keeps whole
 * fibers together, every fiber is delivered once. Otherwise a fiber is delivered once per run, and
 * the caller adds up the fibers with equal coordinates. A run that continues in the next chunk, or
 * in the next tile passed with the same output, is added to the same fiber.
 * Order: a fiber's sum depends only on the tile, not on when the output is emptied; all instruction
 * sets return the same bits. Products are computed in the matrix's type, sums in f64. */
#ifndef SLC_CPU_TTM_H
#define SLC_CPU_TTM_H

#include "base/block.h"
#include "base/memory/memory.h"
#include "cpu/kernel/kernels.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_ttm_form {
    /* Sums a run in registers, and then adds the sum of the run to its row once. */
    SLC_TTM_FIBERS,
    /* Adds the product of each nonzero to its row. */
    SLC_TTM_NONZEROS,
    SLC_TTM_FORMS
};
const char *slc_ttm_form_name(enum slc_ttm_form form); /* "fibers", "nonzeros" */

struct slc_ttm_job {
    unsigned order;
    unsigned mode; /* n, from 0 */
    enum slc_ttm_form form;
    /* true if tiles keep fibers of `mode` together; then the tile's next_fibers, if not NULL, reads
     * the runs */
    bool fiber_tiles;
    const struct slc_matrix *matrix; /* U, dims[n] x R; a vector is a matrix of one column */
};

/* Upper limit for the number of fibers that a chunk adds. The caller keeps this much capacity
 * free. */
enum { SLC_TTM_CHUNK_FIBERS = SLC_CHUNK_NNZ };

/* Fibers in the order in which they were found, and scratch for finding them. */
struct slc_ttm_output {
    uint64_t capacity; /* maximum number of fibers */
    uint64_t count;    /* number of fibers; the last fiber may continue */
    uint32_t pitch;    /* f64 elements from one row to the next, the same number as in the matrix */
    double *rows;      /* `count` rows; columns after R are zero */
    /* Coordinates of the fibers in each mode. The array of the job's mode is NULL. */
    uint64_t *coords[SLC_MAX_ORDER];

    const struct slc_kernel_set *kernels; /* the kernel set in use when the output was created */
    bool prefetch;                        /* true if rows of the matrix are prefetched */
    struct slc_buffer buffer;             /* memory of all arrays */
    /* starts of the runs of a chunk, followed by the end of the last run */
    uint32_t *begin;
    /* one per nonzero of a chunk: not 0 if its fiber differs from the previous nonzero's fiber */
    uint32_t *differs;
    uint32_t *row_of; /* output row of each run, or of each nonzero with SLC_TTM_NONZEROS */
    uint32_t *run_offset[SLC_MAX_ORDER]; /* offsets of the runs, for every mode except the job's */
};

/* Returns the bytes that slc_ttm_output_create maps, or UINT64_MAX on overflow. */
uint64_t slc_ttm_output_bytes(const struct slc_ttm_job *job, uint64_t capacity);

/* Creates an empty output for `capacity` fibers, at least SLC_TTM_CHUNK_FIBERS + 1: the fibers of a
 * chunk, after an unfinished fiber of the previous chunk. Ownership: release with
 * slc_ttm_output_destroy, which accepts an all-zero struct. Errors: SLC_ERR_MEMORY. */
enum slc_status slc_ttm_output_create(struct slc_ttm_output *output,
                                      const struct slc_ttm_job *job,
                                      uint64_t capacity,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_ttm_output_destroy(struct slc_ttm_output *output);

/* Returns true if any next chunk would fit in the output. */
static inline bool slc_ttm_has_capacity(const struct slc_ttm_output *output)
{
    return output->capacity - output->count >= SLC_TTM_CHUNK_FIBERS;
}

/* Removes all fibers except the last, which may continue. The caller reads the other fibers
 * before. */
void slc_ttm_keep_last(struct slc_ttm_output *output);

/* Appends the fibers of the next chunk of the tile, and sets *nnz to the chunk's number of
 * nonzeros, which is 0 at the end of the tile. Needs: slc_ttm_has_capacity. Cost: nnz * R
 * multiplications and additions. Threads: each thread needs its own output and tile; the matrix is
 * only read.
 * Errors: SLC_ERR_USAGE for a tile whose order or value type differs from the job's, with indices
 * beyond the matrix, or with runs of another mode; those of decoding. The output is then
 * unchanged. */
enum slc_status slc_ttm_next(const struct slc_ttm_job *job,
                             struct slc_tile_view *tile,
                             struct slc_ttm_output *output,
                             uint32_t *nnz,
                             struct slc_error *err) SLC_NODISCARD;

#endif
