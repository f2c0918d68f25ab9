/*
 * Tensor times matrix over a stream, on the CPU, a device that multiplies tiles
 * (engine/product/products.h), or both. Reads a layout that keeps the fibers of the mode whole
 * (slc_key_layout_fibers) and writes a pair of .npy files that may be larger than memory:
 *
 *     y(f, r) = sum over the nonzeros x of mode-n fiber f of x * U(i_n, r)      (cpu/fiber/ttm.h)
 *
 * Workers multiply tiles concurrently, each into separate rows. In the order of tiles they claim
 * the numbers of their fibers in the result, which is quick. Then they copy the fibers to the
 * buffers of the result, again concurrently. A fiber that reaches the end of a tile is carried to
 * the next tile and added to the first row of that tile. The results of a tile multiplied by a
 * device lane are handled by a worker in the same way, from the lane's memory.
 *
 * Order: fibers are in the order of the layout, each once; a fiber's nonzeros are added tile by
 * tile, so the result has the same bits for any number of threads, block size, codec and budget,
 * and on a device for any number of lanes. CPU and device may differ in the last bits of a row.
 * With both and a static split (engine/hybrid/hybrid_tiles.h), the division of tiles, and so the
 * result, depends only on the layout and the fraction.
 */
#ifndef SLC_ENGINE_TTM_H
#define SLC_ENGINE_TTM_H

#include "cpu/fiber/ttm.h"
#include "engine/product/npy_pair.h"
#include "engine/product/products.h"
#include "engine/stream/stream.h"

#include <stdbool.h>
#include <stdint.h>

/* Division of a product's memory, without the matrix, the stream and lanes of a device. */
struct slc_ttm_division {
    /* Tiles that the CPU multiplies at the same time; 0 if a device multiplies all tiles. */
    unsigned outputs;
    uint64_t room; /* fibers per output */
    uint32_t buffer_bytes;
    uint32_t coord_buffers;
    uint32_t row_buffers;
};

/* Return the smallest memory of a product, and the memory with a division, for plans. */
uint64_t slc_ttm_memory_min(const struct slc_ttm_job *job, unsigned workers, unsigned outputs);
uint64_t slc_ttm_memory_bytes(const struct slc_ttm_job *job,
                              unsigned workers,
                              const struct slc_ttm_division *division);
/* Divides `bytes` (slc_ttm_memory_min or more) between rows of the outputs, at most the rows of a
 * whole tile, and buffers of the result. Memory that would not help is not used, so the division
 * may need less. */
void slc_ttm_divide(const struct slc_ttm_job *job,
                    unsigned workers,
                    unsigned outputs,
                    uint64_t bytes,
                    struct slc_ttm_division *division);

struct slc_ttm_options {
    /* The matrix has the precision of the stream, and its rows are in the order of the store. */
    struct slc_ttm_job job;
    unsigned workers; /* workers of the stream */
    unsigned layout;  /* layout of the stream; read in file order */
    struct slc_ttm_division division;
    struct slc_device *device;   /* computes with or instead of the CPU; NULL: the CPU alone */
    const struct slc_plan *plan; /* with a device: the plan of slc_ttm_plan */
    /* Input index of each store index; NULL: both are equal. */
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
    bool device_refused;                 /* opening the device failed, so there is no result */
    struct slc_output_ring_stats output;
};

/*
 * Multiplies the layout and leaves the finished, synced pair under temporary names, for
 * slc_npy_pair_publish and slc_npy_pair_destroy. Needs: a stream in file order. Memory:
 * slc_ttm_memory_bytes, of which only the buffers of the result outlive the call. Errors: those of
 * the stream, of the device, of the result's files (SLC_ERR_NOSPACE, SLC_ERR_IO), and
 * SLC_ERR_INTERRUPTED. After an error no files are left, and an earlier result is unchanged.
 */
enum slc_status slc_ttm_stream(struct slc_stream *stream,
                               const struct slc_ttm_options *options,
                               struct slc_npy_pair **pair,
                               struct slc_ttm_report *report,
                               struct slc_error *err) SLC_NODISCARD;

#endif
