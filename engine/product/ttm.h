/*
 * Tensor times matrix over a stream, by the CPU, a device that takes tiles
 * (engine/product/products.h), or both, from a layout that keeps the fibers of the mode whole
 * (slc_key_layout_fibers) to a pair of .npy files that may be larger than memory:
 *
 *     y(f, r) = sum over the nonzeros x of mode-n fiber f of x * U(i_n, r)      (cpu/fiber/ttm.h)
 *
 * Workers multiply tiles at the same time, each into rows of its own. In the order of tiles they
 * learn which fibers of the result are theirs, which takes a moment, and then copy them to the
 * buffers of the result, again at the same time. A fiber that reaches over the end of a tile is
 * carried to the next one and added to its first row there. A tile that a lane of the device has
 * multiplied goes the same way, from the lane's memory; a worker sees to it.
 *
 * Order: fibers come in the order of the layout, each once; a fiber's nonzeros are added up tile by
 * tile, so the result has the same bits for any number of threads, block size, codec and budget,
 * and from a device for any number of lanes. The last bits of a row of the one and of the other may
 * differ. Of both together the bits follow from the share where that is static
 * (engine/hybrid/hybrid_tiles.h): which tiles a side has, and so the result, then depend on the
 * layout and the fraction alone.
 */
#ifndef SLC_ENGINE_TTM_H
#define SLC_ENGINE_TTM_H

#include "cpu/fiber/ttm.h"
#include "engine/product/npy_pair.h"
#include "engine/product/products.h"
#include "engine/stream/stream.h"

#include <stdbool.h>
#include <stdint.h>

/* How the memory of a product is divided, beside the matrix, the stream and lanes of a device. */
struct slc_ttm_division {
    unsigned outputs; /* tiles that the CPU multiplies at a time: 0 where a device has them all */
    uint64_t room;    /* fibers of each of these */
    uint32_t buffer_bytes;
    uint32_t coord_buffers;
    uint32_t row_buffers;
};

/* What a product takes at least, and what it takes with a share: what a plan has to count. */
uint64_t slc_ttm_memory_min(const struct slc_ttm_job *job, unsigned workers, unsigned outputs);
uint64_t slc_ttm_memory_bytes(const struct slc_ttm_job *job,
                              unsigned workers,
                              const struct slc_ttm_division *division);
/*
 * Divides `bytes` (slc_ttm_memory_min and more) between rows of the outputs, up to those of a whole
 * tile, and buffers of the result. Takes no more than helps: the share may need less.
 */
void slc_ttm_divide(const struct slc_ttm_job *job,
                    unsigned workers,
                    unsigned outputs,
                    uint64_t bytes,
                    struct slc_ttm_division *division);

struct slc_ttm_options {
    /* The matrix is of the stream's precision, its rows in the order of the store. */
    struct slc_ttm_job job;
    unsigned workers; /* of the stream */
    unsigned layout;  /* of the stream; read in file order */
    struct slc_ttm_division division;
    struct slc_device *device;            /* beside the CPU, or in its place; NULL: the CPU alone */
    const struct slc_plan *plan;          /* with a device: slc_ttm_plan's */
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
    struct slc_products_report products; /* with a device */
    bool device_refused;                 /* to be opened, which is why there is no result */
    struct slc_output_ring_stats output;
};

/*
 * Multiplies the layout and leaves the finished, synced pair beside its place, for
 * slc_npy_pair_publish and slc_npy_pair_destroy.
 * Needs: a stream in file order. Memory: slc_ttm_memory_bytes, all of it but the buffers of the
 * result given back before it returns.
 * Errors: those of the stream, of the device, of the result's files (SLC_ERR_NOSPACE, SLC_ERR_IO),
 * and SLC_ERR_INTERRUPTED; nothing is left then, and an earlier result is as it was.
 */
enum slc_status slc_ttm_stream(struct slc_stream *stream,
                               const struct slc_ttm_options *options,
                               struct slc_npy_pair **pair,
                               struct slc_ttm_report *report,
                               struct slc_error *err) SLC_NODISCARD;

#endif
