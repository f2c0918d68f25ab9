/*
 * A device that multiplies tiles (base/device.h: product.open and what follows): its memory and its
 * lanes. Private to gpu/.
 *
 * A lane has a stream, memory of the device and registered memory of the host, and nothing in
 * common with others but matrices and the layout, which nobody writes. A tile goes there by one
 * copy, description, bytes and expanded bytes behind one another, and its fibers come back by one:
 * how many bytes these are the host learns from them, so it asks for as many as the tile before had
 * and some more, and for the rest, which takes a second wait, only where that was too little.
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
    struct slc_product_job job; /* has what kernels use of the lane's memory, too */
    uint32_t count, delivered;  /* fibers */
    uint64_t expected;          /* bytes of the next result */

    struct slc_device_stats stats;
};

struct slc_gpu_product : slc_gpu_product_memory {
    bool is_registered;
    struct slc_gpu_lane lanes[SLC_DEVICE_LANES];

    /*
     * How long lanes were at work, as unions of spans. Their lengths are of the device's clock;
     * they end when the host has seen that they did: lanes are never without somebody who waits.
     */
    pthread_mutex_t times_mutex;
    uint64_t opened_ns;
    struct slc_spans copy, compute, busy;
};
static_assert(sizeof(struct slc_gpu_product) <= SLC_PRODUCT_RECORD_BYTES, "plans count as much");

/* ---- product.cu */

enum slc_status slc_gpu_product_open(struct slc_device *device,
                                     const struct slc_device_product *product,
                                     struct slc_error *err);
/* Ends that, also where it failed; takes a device that is not open for tiles. */
void slc_gpu_product_close(struct slc_gpu *gpu);
/* Of the device's memory; adds what lanes have counted. */
uint64_t slc_gpu_product_bytes(const struct slc_gpu *gpu);
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
