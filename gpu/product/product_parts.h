/*
 * Memory of a device that multiplies tiles (base/device.h: product.open), divided into parts that
 * one walk lays out. The walk is C (product_parts.c) and is in every build, like that of
 * gpu/memory/memory.h. Private to gpu/.
 */
#ifndef SLC_GPU_PRODUCT_PARTS_H
#define SLC_GPU_PRODUCT_PARTS_H

#include "gpu/memory/memory.h"

#include <assert.h>

enum {
    SLC_PRODUCT_GROUPS = SLC_TILE_NNZ / SLC_GROUP_NNZ,
    SLC_PRODUCT_WORDS = SLC_TILE_NNZ / SLC_WARP
};

/* A decoded tile, in device memory. */
struct slc_product_list {
    uint32_t *offsets; /* of nonzero i in mode n at n * SLC_TILE_NNZ + i */
    void *values;      /* of the matrices' type; SLC_TILE_NNZ */
    /* Bit i % 32 of word i / 32: nonzero i begins a fiber. The bit is always 0 for the first
     * nonzero of a run: the one before it belongs to another warp. */
    uint32_t *heads;  /* SLC_PRODUCT_WORDS */
    uint32_t *counts; /* of these bits in each group; SLC_PRODUCT_GROUPS */
};

/* The beginning of a result. */
struct slc_product_header {
    uint32_t count; /* fibers of the tile */
    uint32_t unused;
    struct slc_gpu_fault fault;
};

/* A result: the header; offsets of the requested fibers, one for each fiber and kept mode, mode
 * after mode; their sums, a row of `cols` each. */
enum { SLC_PRODUCT_OFFSETS_AT = 64 };
static_assert(sizeof(struct slc_product_header) <= SLC_PRODUCT_OFFSETS_AT,
              "offsets begin after the header");

SLC_HOST_DEVICE static inline uint64_t slc_product_sums_at(uint64_t fibers, uint32_t kept)
{
    return (SLC_PRODUCT_OFFSETS_AT + fibers * kept * sizeof(uint32_t) + 15) / 16 * 16;
}

/* A tile's bytes follow it. */
struct slc_product_input {
    struct slc_gpu_tile tile;
    struct slc_gpu_fault fault; /* none yet; kernels write it */
};

enum {
    /* The offset of these bytes: at whole lines, like blocks (SLC_DEVICE_ALIGN). */
    SLC_PRODUCT_DATA_AT = (sizeof(struct slc_product_input) + SLC_DEVICE_ALIGN - 1) /
                          SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN
};

/* The offset of a tile's expanded bytes, after `bytes` of its own: all of these, at most. */
static inline uint64_t slc_product_expanded_at(uint64_t bytes)
{
    return SLC_PRODUCT_DATA_AT +
           (bytes + SLC_DEVICE_ALIGN - 1) / SLC_DEVICE_ALIGN * SLC_DEVICE_ALIGN;
}

/* Memory of a lane. */
struct slc_gpu_lane_memory {
    /* On the device. */
    uint8_t *input;
    struct slc_product_list list;
    uint32_t *carry_fiber;
    double *carries;
    uint8_t *result;
    /* On the host. */
    uint8_t *host_input, *host_result;
};

/* A product, values derived from it, and its memory. */
struct slc_gpu_product_memory {
    struct slc_device_product product; /* matrices and layout are cleared when it is open */
    uint32_t cols;
    uint32_t pitch; /* of the device's matrices, elements */
    uint32_t kept;  /* modes of a result */
    bool sums_over[SLC_MAX_ORDER];

    void *device; /* the only allocation */
    uint64_t device_bytes, registered_bytes;
    struct slc_buffer registered;
    void *matrix[SLC_MAX_ORDER];
    struct slc_encoded_layout *layout;
    struct slc_gpu_lane_memory lane_memory[SLC_DEVICE_LANES];
};

/* Upper bound of an open product's host bytes, in addition to its registered memory. */
enum { SLC_PRODUCT_RECORD_BYTES = 64 << 10 };

/* Bytes of a result with `fibers` fibers. */
static inline uint64_t slc_product_result_bytes(const struct slc_gpu_product_memory *memory,
                                                uint64_t fibers)
{
    return slc_product_sums_at(fibers, memory->kept) + fibers * memory->cols * sizeof(double);
}

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Fills in the values derived from the product, and the positions of its parts if the pieces began
 * at 0. Returns false for a product that no device can be opened for, and on overflow. Needs:
 * all-zero memory.
 */
bool slc_gpu_product_measure(const struct slc_device_product *product,
                             struct slc_gpu_product_memory *memory);

/* The same for the addresses of the pieces of measured memory. `gap`: as slc_gpu_memory_lay_out. */
bool slc_gpu_product_lay_out(struct slc_gpu_product_memory *memory, slc_gpu_gap gap);

/* memory_bytes and host_bytes of struct slc_device_product_ops. They ignore the device. */
uint64_t slc_gpu_product_memory_bytes(const struct slc_device *device,
                                      const struct slc_device_product *product);
uint64_t slc_gpu_product_host_bytes(const struct slc_device *device,
                                    const struct slc_device_product *product);

#ifdef __cplusplus
}
#endif

#endif
