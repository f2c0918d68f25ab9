/*
 * A device that multiplies tiles (base/device.h: product.open and the following): its memory and
 * its lanes. Private to gpu/.
 *
 * A lane has a stream, device memory and registered host memory, and shares with other lanes only
 * the matrices and the layout, which are read-only. A tile is sent in one copy, with description,
 * bytes and expanded bytes adjacent, and its fibers return in one copy. The size of the result is
 * part of it, so the host requests a little more than the previous tile needed, and requests the
 * rest, which costs a second wait, only if that was too little.
 */
#ifndef SLC_GPU_PRODUCT_H
#define SLC_GPU_PRODUCT_H

#include "gpu/device/state.h"
#include "gpu/product/product_kernels.h"

#include <pthread.h>

struct slc_gpu_lane {
    cudaStream_t stream;
    cudaEvent_t begun, copied, done; /* the tile's copy, then its kernels */

    struct slc_gpu_lane_memory memory;

    /* The last tile. */
    struct slc_product_job job; /* also points to the lane's memory that kernels use */
    uint32_t count, delivered;  /* fibers */
    uint64_t expected;          /* bytes of the next result */

    struct slc_device_stats stats;
};

struct slc_gpu_product : slc_gpu_product_memory {
    bool is_registered;
    struct slc_gpu_lane lanes[SLC_DEVICE_LANES];

    /*
     * Times that lanes were busy, as unions of spans. Durations are from the device's clock; spans
     * end when the host notices it, which is at once, because some thread always waits for a busy
     * lane.
     */
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
/* Undoes slc_gpu_product_open, even if it failed; accepts a device that is not open for tiles. */
void slc_gpu_product_close(struct slc_gpu *gpu);
/* Bytes of device memory. */
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
