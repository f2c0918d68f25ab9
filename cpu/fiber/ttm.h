/*
 * Tensor times matrix, fiber by fiber, and with one column tensor times vector (SpTV):
 *
 *     y(f, r) = sum over the nonzeros x of mode-n fiber f of x * U(i_n, r)
 *
 * (KB section 2.5, its matrix transposed). The result is semi-sparse: the coordinates of the fibers
 * that have nonzeros, in the modes other than n, and a dense row of R sums for each. It may be
 * larger than memory, so it is delivered in pieces: a call takes a chunk of a tile and appends its
 * fibers to an output of fixed size, which the caller empties in between.
 *
 *     create -> (next until a tile ends, taking fibers away whenever there is no room for a chunk)
 *
 * Consecutive nonzeros of one fiber are one run, whether the tile's order keeps all of a fiber
 * together (then every fiber comes out once) or not (then once per run, and whoever takes the
 * fibers adds up those with equal coordinates). A run that goes on in the next chunk, or in the
 * next tile that the same output is given, is added to the fiber it began.
 *
 * Order: a fiber's sum depends on the tile alone, not on how often the output is emptied; all
 * instruction sets give the same bits. Products are formed in the matrix's type, sums in f64.
 */
#ifndef SLC_CPU_TTM_H
#define SLC_CPU_TTM_H

#include "base/block.h"
#include "base/memory/memory.h"
#include "cpu/kernel/kernels.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_ttm_form {
    /* Fiber-centric: a run is summed in registers, then added to its row once. */
    SLC_TTM_FIBERS,
    /* Element-centric, one of the forms that XPLAT compares: each nonzero is added to its row. */
    SLC_TTM_ELEMENTS,
    SLC_TTM_FORMS
};
const char *slc_ttm_form_name(enum slc_ttm_form form); /* "fibers", "nonzeros" */

struct slc_ttm_job {
    unsigned order;
    unsigned mode; /* n, 0-based */
    enum slc_ttm_form form;
    /* Tiles keep fibers of `mode` together and are asked for runs (next_fibers) where they can. */
    bool fiber_tiles;
    const struct slc_matrix *matrix; /* U: dims[n] x R; a vector is a matrix of one column */
};

/* What a chunk adds at most: a caller keeps room for as many. */
enum { SLC_TTM_CHUNK_FIBERS = SLC_CHUNK_NNZ };

/* Fibers in the order in which they were met, and what finding them takes. */
struct slc_ttm_output {
    uint64_t room;                   /* fibers */
    uint64_t count;                  /* fibers held; the last one may go on */
    uint32_t pitch;                  /* f64 from row to row: that of the matrix */
    double *rows;                    /* count rows; columns from R on are zero */
    uint64_t *coords[SLC_MAX_ORDER]; /* per fiber, of every mode but the job's: there NULL */

    const struct slc_kernel_set *kernels; /* those in use when it was created */
    bool prefetch;                        /* the matrix leaves no room for anything in the cache */
    struct slc_buffer buffer;             /* all of it */
    uint32_t *begin;                      /* of runs in a chunk; and one more */
    uint32_t *differs;                    /* per nonzero: whether it leaves its neighbour's fiber */
    uint32_t *row_of;                     /* per run or, for ELEMENTS, nonzero */
    uint32_t *run_offset[SLC_MAX_ORDER];  /* per run, of every mode but the job's */
};

/* Bytes that slc_ttm_output_create maps; UINT64_MAX where that cannot be counted. */
uint64_t slc_ttm_output_bytes(const struct slc_ttm_job *job, uint64_t room);

/*
 * An empty output with room for `room` fibers, at least SLC_TTM_CHUNK_FIBERS + 1, so that a chunk
 * fits behind a fiber that goes on. Owns: slc_ttm_output_destroy, which takes an all-zero struct.
 * Errors: SLC_ERR_MEMORY.
 */
enum slc_status slc_ttm_output_create(struct slc_ttm_output *output,
                                      const struct slc_ttm_job *job,
                                      uint64_t room,
                                      struct slc_error *err) SLC_NODISCARD;
void slc_ttm_output_destroy(struct slc_ttm_output *output);

/* Whether the next chunk is sure to fit. */
static inline bool slc_ttm_has_room(const struct slc_ttm_output *output)
{
    return output->room - output->count >= SLC_TTM_CHUNK_FIBERS;
}

/* Lets go of all fibers but the last, which may go on: after the caller has taken the others. */
void slc_ttm_keep_last(struct slc_ttm_output *output);

/*
 * Appends the fibers of the next chunk of the tile; *nnz: its nonzeros, 0 at the end of the tile.
 * Needs: slc_ttm_has_room. Cost: nnz * R multiplications and additions. Threads: an output and a
 * tile per thread; the matrix is only read.
 * Errors: SLC_ERR_USAGE for a tile of another order or value type than the job's, or with indices
 * beyond the matrix, or whose runs are of another mode; those of decoding. The output then holds
 * what it held before.
 */
enum slc_status slc_ttm_next(const struct slc_ttm_job *job,
                             struct slc_tile_view *tile,
                             struct slc_ttm_output *output,
                             uint32_t *nnz,
                             struct slc_error *err) SLC_NODISCARD;

#endif
