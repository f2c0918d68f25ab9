/*
 * Tensor times matrix over a stream, from a layout that keeps the fibers of the mode whole
 * (slc_key_layout_fibers) to a pair of .npy files that may be larger than memory:
 *
 *     y(f, r) = sum over the nonzeros x of mode-n fiber f of x * U(i_n, r)      (cpu/ttm.h)
 *
 * Workers multiply tiles at the same time, each into rows of its own. In the order of tiles they
 * learn which fibers of the result are theirs, which takes a moment, and then copy them to the
 * buffers of the result, again at the same time. A fiber that reaches over the end of a tile is
 * carried to the next one and added to its first row there.
 *
 * Order: fibers come in the order of the layout, each once; a fiber's nonzeros are added up tile by
 * tile, so the result has the same bits for any number of threads, block size, codec and budget.
 */
#ifndef SLC_ENGINE_TTM_H
#define SLC_ENGINE_TTM_H

#include "cpu/ttm.h"
#include "engine/npy_pair.h"
#include "engine/stream.h"

#include <stdbool.h>
#include <stdint.h>

/* How the memory of a product is divided, beside the matrix and the stream. */
struct slc_ttm_share {
    uint64_t room; /* fibers of each worker */
    uint32_t buffer_bytes;
    uint32_t coord_buffers;
    uint32_t row_buffers;
};

/* What a product takes at least, and what it takes with a share: what a plan has to count. */
uint64_t slc_ttm_memory_min(const struct slc_ttm_job *job, unsigned workers);
uint64_t slc_ttm_memory_bytes(const struct slc_ttm_job *job,
                              unsigned workers,
                              const struct slc_ttm_share *share);
/*
 * Divides `bytes` (slc_ttm_memory_min and more) between rows of the workers, up to those of a whole
 * tile, and buffers of the result. Takes no more than helps: the share may need less.
 */
void slc_ttm_divide(const struct slc_ttm_job *job,
                    unsigned workers,
                    uint64_t bytes,
                    struct slc_ttm_share *share);

/*
 * Plans a product over the only layout of `layouts`: the request's rank is the number of columns,
 * blocks are taken in file order and not kept. What the budget leaves goes to *share, and
 * plan->output_bytes and total_bytes count it. Errors: as slc_plan_make.
 */
enum slc_status slc_ttm_plan(const struct slc_layouts *layouts,
                             const struct slc_plan_request *request,
                             struct slc_plan *plan,
                             struct slc_ttm_share *share,
                             struct slc_error *err) SLC_NODISCARD;

struct slc_ttm_options {
    /* The matrix is of the stream's precision, its rows in the order of the store. */
    struct slc_ttm_job job;
    unsigned workers; /* of the stream */
    unsigned layout;  /* of the stream; read in file order */
    struct slc_ttm_share share;
    const uint32_t *index[SLC_MAX_ORDER]; /* of the input by that of the store; NULL: the same */
    const struct slc_files *files;        /* NULL: the operating system */
    const char *folder;                   /* of the result */
    const volatile int *stop;
    void (*progress)(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;
};

struct slc_ttm_report {
    uint64_t fibers;
    double turn_seconds; /* of workers that waited for the tiles before theirs; summed */
    struct slc_output_ring_stats output;
};

/*
 * Multiplies the layout and leaves the finished, synced pair beside its place, for
 * slc_npy_pair_publish and slc_npy_pair_destroy.
 * Needs: a stream in file order. Memory: slc_ttm_memory_bytes, all of it but the buffers of the
 * result given back before it returns.
 * Errors: those of the stream, of the result's files (SLC_ERR_NOSPACE, SLC_ERR_IO), and
 * SLC_ERR_INTERRUPTED; nothing is left then, and an earlier result is as it was.
 */
enum slc_status slc_ttm_stream(struct slc_stream *stream,
                               const struct slc_ttm_options *options,
                               struct slc_npy_pair **pair,
                               struct slc_ttm_report *report,
                               struct slc_error *err) SLC_NODISCARD;

#endif
