/*
 * A device that multiplies tiles (base/device.h: product_open and what follows): its memory and its
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

#include "gpu/product_kernels.h"
#include "gpu/state.h"

#include <pthread.h>

/* What a tile's bytes come behind. */
struct slc_product_input {
    struct slc_gpu_tile tile;
    struct slc_gpu_fault fault; /* none yet; kernels write it */
};

enum {
    /* Where the bytes begin: at whole lines, as blocks do (SLC_DEVICE_ALIGN). */
    SLC_PRODUCT_DATA_AT = (sizeof(struct slc_product_input) + SLC_DEVICE_ALIGN - 1) /
                          SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN
};

/* Where a tile's expanded bytes begin, behind so many of its own: all of these, at most. */
static inline uint64_t slc_product_expanded_at(uint64_t bytes)
{
    return SLC_PRODUCT_DATA_AT +
           (bytes + SLC_DEVICE_ALIGN - 1) / SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN;
}

struct slc_gpu_lane {
    cudaStream_t stream;
    cudaEvent_t begun, copied, done; /* the tile's copy, then its kernels */

    /* The device's. What else kernels use stands in `job`. */
    uint8_t *input;
    /* The host's. */
    uint8_t *host_input, *host_result;

    /* The last tile. */
    struct slc_product_job job;
    uint32_t count, delivered; /* fibers */
    uint64_t expected;         /* bytes of the next result */

    struct slc_device_stats stats;
};

struct slc_gpu_product {
    struct slc_device_product product; /* its matrices and its layout are gone */
    uint32_t cols;
    uint32_t pitch; /* of the device's matrices, elements */
    uint32_t kept;  /* modes that stay */
    bool sums_over[SLC_MAX_ORDER];

    void *device; /* the one piece */
    uint64_t device_bytes, registered_bytes;
    struct slc_buffer registered;
    bool is_registered;
    void *matrix[SLC_MAX_ORDER];
    struct slc_encoded_layout *layout;
    struct slc_gpu_lane lanes[SLC_DEVICE_LANES];

    /*
     * How long lanes were at work, as unions of spans. Their lengths are of the device's clock;
     * they end when the host has seen that they did: lanes are never without somebody who waits.
     */
    pthread_mutex_t times_mutex;
    uint64_t opened_ns;
    struct slc_spans copy, compute, busy;
};

/* Bytes of a result with so many fibers. */
static inline uint64_t slc_product_result_bytes(const struct slc_gpu_product *product,
                                                uint64_t fibers)
{
    return slc_product_sums_at(fibers, product->kept) + fibers * product->cols * sizeof(double);
}

#endif
