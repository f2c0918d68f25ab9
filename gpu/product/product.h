/* A device that multiplies tiles: its memory and its lanes. base/device.h describes product.open
 * and the other operations. Private to gpu/.
 *
 * A lane has a stream, device memory and registered host memory. A lane shares only the matrices
 * and the layout with other lanes; matrices and layout are read-only. A tile is sent in one copy:
 * its description, bytes and expanded bytes are adjacent. The fibers of the tile usually return in
 * one copy, too. Their size is only known from the copy itself, so the host requests a little more
 * than the fibers of the previous tile needed. If the request was too small, the host requests the
 * rest, at the cost of a second wait. */
#ifndef SLC_GPU_PRODUCT_H
#define SLC_GPU_PRODUCT_H

#include "gpu/device/state.h"
#include "gpu/product/product_kernels.h"

#include <pthread.h>

struct slc_gpu_lane {
    cudaStream_t stream;
    /* recorded before the copy of the tile, after the copy, and after the kernels */
    cudaEvent_t begun, copied, done;

    struct slc_gpu_lane_memory memory;

    /* The members below describe the last tile. */
    /* arguments of the kernels, including pointers to the lane's device memory */
    struct slc_product_job job;
    uint32_t count, delivered; /* fibers of the tile, and fibers already delivered */
    uint64_t expected;         /* expected bytes of the next result */

    struct slc_device_stats stats;
};

struct slc_gpu_product : slc_gpu_product_memory {
    bool is_registered;
    struct slc_gpu_lane lanes[SLC_DEVICE_LANES];

    /* Times in which lanes were busy, as unions of spans. The device's clock measures the duration
     * of a span. The end of a span is the time at which the host notices that the work is complete.
     * The host notices this at once, because a thread always waits for each busy lane. */
    pthread_mutex_t times_mutex;
    uint64_t opened_ns;
    struct slc_spans copy, compute, busy;
};
static_assert(sizeof(struct slc_gpu_product) <= SLC_PRODUCT_RECORD_BYTES,
              "plans count this many bytes");

/* ---- product.cu */

enum slc_status slc_gpu_product_open(struct slc_device *device,
                                     const struct slc_device_product *product,
                                     struct slc_error *err);
/* Undoes slc_gpu_product_open, even if that call failed. Accepts a device that is not open for
 * tiles. */
void slc_gpu_product_close(struct slc_gpu *gpu);
/* Returns the bytes of device memory that the product uses. */
uint64_t slc_gpu_product_bytes(const struct slc_gpu *gpu);
/* Adds the counts of the lanes to *stats. */
void slc_gpu_product_stats(const struct slc_gpu *gpu, struct slc_device_stats *stats);

/* ---- product_lane.cu */

enum slc_status slc_gpu_product_tile(struct slc_device *device,
                                     unsigned lane,
                                     const struct slc_encoded_block *block,
                                     struct slc_device_fibers *fibers,
                                     struct slc_error *err);
enum slc_status slc_gpu_product_more(struct slc_device *device,
                                     unsigned lane,
                                     struct slc_device_fibers *fibers,
                                     struct slc_error *err);

#endif
