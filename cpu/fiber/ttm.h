/*
 * Tensor times matrix, fiber by fiber; with one column, tensor times vector (SpTV):
 *   y(f, r) = sum over the nonzeros x of mode-n fiber f of x * U(i_n, r)
 * ([Kolda2009] section 2.5, with its matrix transposed). The result is semi-sparse: the coordinates
 * of the nonempty fibers in the modes other than n, and a dense row of R sums for each. It may
 * exceed memory, so it is delivered in pieces: a call processes a chunk of a tile and appends its
 * fibers to an output of fixed capacity, which the caller empties in between.
 *   create -> (next until a tile ends, removing fibers whenever a chunk might not fit)
 * Consecutive nonzeros of one fiber form a run. If the tile's order keeps all of a fiber together,
 * every fiber is delivered once. Otherwise a fiber is delivered once per run, and the caller adds
 * up the fibers with equal coordinates. A run that continues in the next chunk, or in the next tile
 * passed with the same output, is added to the fiber it started.
 * Order: a fiber's sum depends on the tile alone, not on when the output is emptied; all
 * instruction sets return the same bits. Products are formed in the matrix's type, sums in f64.
 */
#ifndef SLC_CPU_TTM_H
#define SLC_CPU_TTM_H

#include "base/block.h"
#include "base/memory/memory.h"
#include "cpu/kernel/kernels.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_ttm_form {
    /* Fiber-centric: sums a run in registers, then adds it to its row once. */
    SLC_TTM_FIBERS,
    /* Element-centric: adds each nonzero to its row. XPLAT compares this form with others. */
    SLC_TTM_ELEMENTS,
    SLC_TTM_FORMS
};
const char *slc_ttm_form_name(enum slc_ttm_form form); /* "fibers", "nonzeros" */

struct slc_ttm_job {
    unsigned order;
    unsigned mode; /* n, 0-based */
    enum slc_ttm_form form;
    /* Tiles keep fibers of `mode` together; next_fibers is used if the tile has it. */
    bool fiber_tiles;
    const struct slc_matrix *matrix; /* U: dims[n] x R; a vector is a matrix of one column */
};

/*
 * Upper bound on the number of fibers that a chunk adds. The caller keeps capacity for this many
 * fibers free.
 */
enum { SLC_TTM_CHUNK_FIBERS = SLC_CHUNK_NNZ };

/* Fibers in the order in which they were found, and scratch for finding them. */
struct slc_ttm_output {
    uint64_t capacity; /* number of fibers that fit */
    uint64_t count;    /* fibers held; the last one may continue */
    uint32_t pitch;    /* f64 elements from row to row, the same as in the matrix */
    double *rows;      /* count rows; columns from R on are zero */
    /* Coordinate per fiber, for every mode except the job's, whose array is NULL. */
    uint64_t *coords[SLC_MAX_ORDER];

    const struct slc_kernel_set *kernels; /* the kernel set in use when the output was created */
    bool prefetch;                        /* the matrix exceeds the cache */
    struct slc_buffer buffer;             /* memory of all arrays */
    uint32_t *begin;                      /* starts of runs in a chunk, and the end */
    uint32_t *differs; /* per nonzero: true if its fiber differs from the previous nonzero's */
    uint32_t *row_of;  /* output row per run, or per nonzero for SLC_TTM_ELEMENTS */
    uint32_t *run_offset[SLC_MAX_ORDER]; /* offset per run, for every mode except the job's */
};

/* Bytes that slc_ttm_output_create maps; UINT64_MAX on overflow. */
uint64_t slc_ttm_output_bytes(const struct slc_ttm_job *job, uint64_t capacity);

/*
 * Creates an empty output for `capacity` fibers, at least SLC_TTM_CHUNK_FIBERS + 1, so that a chunk
 * fits after a fiber that continues. Owns: slc_ttm_output_destroy, which accepts an all-zero
 * struct. Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_ttm_output_create(struct slc_ttm_output *output,
                                      const struct slc_ttm_job *job,
                                      uint64_t capacity,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_ttm_output_destroy(struct slc_ttm_output *output);

/* True if the next chunk is guaranteed to fit. */
static inline bool slc_ttm_has_capacity(const struct slc_ttm_output *output)
{
    return output->capacity - output->count >= SLC_TTM_CHUNK_FIBERS;
}

/* Removes all fibers except the last, which may continue. Call it after reading the others. */
void slc_ttm_keep_last(struct slc_ttm_output *output);

/*
 * Appends the fibers of the next chunk of the tile, and sets *nnz to the chunk's number of
 * nonzeros, 0 at the end of the tile. Needs: slc_ttm_has_capacity. Cost: nnz * R multiplications
 * and additions. Threads: an output and a tile per thread; the matrix is only read.
 * Errors: SLC_ERR_USAGE for a tile whose order or value type differs from the job's, with indices
 * beyond the matrix, or with runs of another mode; those of decoding. The output is then unchanged.
 */
enum slc_status slc_ttm_next(const struct slc_ttm_job *job,
                             struct slc_tile_view *tile,
                             struct slc_ttm_output *output,
                             uint32_t *nnz,
                             struct slc_error *err) SLC_NODISCARD;

#endif
