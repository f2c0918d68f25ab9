/* Multiplies a tensor with a matrix over a stream, on the CPU, on a device that multiplies tiles
 * (engine/product/products.h), or on both. Reads a layout that keeps the fibers of the mode whole
 * (slc_key_layout_fibers). Writes a pair of .npy files that may be larger than memory:
 *
 *     y(f, r) = sum of x * U(i_n, r) over the nonzeros x of mode-n fiber f      (cpu/fiber/ttm.h)
 *
 * Workers multiply tiles concurrently, each into its own rows. Then, in the order of tiles, each
 * worker assigns row numbers of the result to the fibers of its tile, which takes little time.
 * Finally the workers copy rows to the buffers of the result, again concurrently. The last fiber of
 * a tile is carried to the next tile, and if that tile begins with the same fiber, the rows are
 * added. If a device lane multiplied a tile, its worker handles the results in the same way, from
 * the lane's memory.
 *
 * Order: the result has each fiber once, in the order of the layout. The nonzeros of a fiber are
 * added tile by tile, so the result has the same bits for any number of threads, block size, codec
 * and budget, and on a device for any number of lanes. CPU and device may differ in the last bits
 * of a row. If both compute with a static split (engine/hybrid/hybrid_tiles.h), the division of
 * tiles, and therefore the result, depends only on the layout and the fraction. */
#ifndef SLC_ENGINE_TTM_H
#define SLC_ENGINE_TTM_H

#include "cpu/fiber/ttm.h"
#include "engine/product/npy_pair.h"
#include "engine/product/products.h"
#include "engine/stream/part.h"
#include "engine/stream/stream.h"

#include <stdbool.h>
#include <stdint.h>

/* Division of the memory of a TTM, without the matrix, the stream and the lanes of a device. */
struct slc_ttm_division {
    /* Tiles that the CPU multiplies at the same time; 0 if a device multiplies all tiles. */
    unsigned outputs;
    uint64_t room; /* space for fibers in each output */
    uint32_t buffer_bytes;
    uint32_t coord_buffers;
    uint32_t row_buffers;
};

/* slc_ttm_memory_min returns the smallest sufficient number of bytes. slc_ttm_memory_bytes returns
 * the number of bytes that a given division needs. */
uint64_t slc_ttm_memory_min(const struct slc_ttm_job *job, unsigned workers, unsigned outputs);
uint64_t slc_ttm_memory_bytes(const struct slc_ttm_job *job,
                              unsigned workers,
                              const struct slc_ttm_division *division);
/* Divides `bytes` (at least slc_ttm_memory_min) between the outputs, each with space for at most a
 * whole tile, and buffers of the result. The division may use less than `bytes`, because memory
 * beyond these limits saves no time. */
void slc_ttm_divide(const struct slc_ttm_job *job,
                    unsigned workers,
                    unsigned outputs,
                    uint64_t bytes,
                    struct slc_ttm_division *division);

struct slc_ttm_options {
    /* The matrix has the precision of the stream, and its rows are in the order of the store. */
    struct slc_ttm_job job;
    unsigned workers; /* workers of the stream */
    unsigned layout; /* number of the layout among the stream's layouts; it is read in file order */
    struct slc_ttm_division division;
    struct slc_device *device;   /* computes instead of, or together with, the CPU; may be NULL */
    const struct slc_plan *plan; /* the plan of slc_ttm_plan; used only with a device */
    const struct slc_part *part; /* writes only fibers of this part, without a device; NULL: all */
    /* Per mode: store index -> input index, or NULL if they are equal. */
    const uint32_t *index[SLC_MAX_ORDER];
    const struct slc_files *files; /* NULL: the operating system */
    const char *folder;            /* folder of the result */
    const volatile int *stop;
    void (*progress)(void *context, uint64_t blocks_done, uint64_t blocks, uint64_t bytes_read);
    void *progress_context;
};

struct slc_ttm_report {
    uint64_t fibers;
    double turn_seconds; /* time in which workers waited for their turn, summed over workers */
    struct slc_products_report products; /* report of the device, if there is one */
    bool device_refused; /* true if opening the device failed, so that there is no result */
    struct slc_output_ring_stats output;
};

/* Multiplies the layout. Returns the finished and synced pair under temporary names. Ownership:
 * publish it with slc_npy_pair_publish and release it with slc_npy_pair_destroy. Needs: a stream in
 * file order. Memory: slc_ttm_memory_bytes; after the call only the buffers of the result remain.
 * Errors: those of the stream, of the device, of the result's files (SLC_ERR_NOSPACE, SLC_ERR_IO),
 * and SLC_ERR_INTERRUPTED. After an error no files are left, and an earlier result is unchanged. */
enum slc_status slc_ttm_stream(struct slc_stream *stream,
                               const struct slc_ttm_options *options,
                               struct slc_npy_pair **pair,
                               struct slc_ttm_report *report,
                               struct slc_error *err) SLC_NODISCARD;

#endif
