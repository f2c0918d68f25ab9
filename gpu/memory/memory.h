/* Memory of an open device: one piece of device memory and two pieces of host memory. The same
 * function divides the pieces into parts for plans and for open devices, so that a plan counts
 * exactly the bytes that are allocated. The function is C code (memory_parts.c) in every build,
 * because plans are also made without CUDA and without a device. Private to gpu/. */
#ifndef SLC_GPU_MEMORY_H
#define SLC_GPU_MEMORY_H

#include "base/device.h"
#include "base/memory/memory.h"
#include "gpu/cuda/records.h"
#include "gpu/decode/piece.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /* Bytes of each of the two pieces of registered memory through which matrices are copied. One
     * host thread packs the pieces. A piece should be small enough to stay in the cache until the
     * copy reads it, and large enough to hide the start of a copy. */
    SLC_GPU_PIECE_BYTES = 1 << 20,
    /* Bytes of the buffer in which rows of another device, or of the host, arrive before they are
     * added. The buffer is large enough for a copy to reach the rate of the link. */
    SLC_GPU_ARRIVAL_BYTES = 4 << 20
};

/* A block in the memory for resident blocks. */
struct slc_gpu_resident_block {
    uint32_t first_tile, tile_count;
    uint64_t bytes, nnz;
    /* The batch in which the block arrived. Other streams must wait for this batch before they read
     * the block. */
    unsigned slot;
    uint64_t batch;
    bool marked;                             /* the job needs the block, but has not launched it */
    const struct slc_encoded_layout *layout; /* layout of its tiles */
};

struct slc_gpu_slot_memory {
    uint8_t *data, *expanded;
    /* Tiles of the batch, followed by the first chunk of each tile and the number of chunks, so
     * that one copy suffices. `host_tiles` is the copy in registered host memory. */
    struct slc_gpu_tile *tiles;
    struct slc_gpu_tile *host_tiles;
};

struct slc_gpu_memory {
    void *device; /* the only allocation */
    uint64_t device_bytes, registered_bytes, plain_bytes;
    struct slc_buffer registered, plain;
    bool is_registered;

    /* In device memory. */
    /* output has as many rows as the largest mode */
    struct slc_gpu_matrix factor[SLC_MAX_ORDER], output;
    struct slc_exact_sum exact;
    double *largest; /* order x rank; used only with exact sums */
    struct slc_encoded_layout *layouts;
    struct slc_gpu_fault *fault;
    double *solver; /* packed row solver */
    /* 2 * rank column results and a rank x rank Gram matrix, or one number per column */
    double *sums;
    void *scratch; /* scratch of gpu/dense/dense.h */
    uint8_t *resident;
    struct slc_gpu_tile *resident_tiles;
    uint32_t *resident_chunk_begin; /* slc_gpu_resident_table elements */
    /* `units`, `unit_columns` and `arrival` are used with several devices. `arrival` is also used
     * with one device if sums that the host computed are added to the sums of the device. */
    struct slc_row_span *units;
    double *unit_columns;
    uint8_t *arrival;
    /* used with exact sums; one per column, not 0 if another device could not add an addend */
    unsigned long long *refused;

    /* In host memory. */
    uint8_t *piece[2];
    double *host_solver; /* host copy of solver and sums */
    struct slc_gpu_fault *host_fault;
    struct slc_gpu_resident_block *resident_blocks; /* at most one element per tile */
    uint32_t *resident_nnz;                         /* nonzeros of each resident tile */
    uint32_t *host_resident_chunk_begin;            /* registered */

    struct slc_gpu_slot_memory slot[SLC_DEVICE_STREAMS];
};

/* Returns the number of elements of the table of chunks for launches of resident blocks: one per
 * tile, plus one per launch. */
static inline uint64_t slc_gpu_resident_table(const struct slc_device_problem *problem)
{
    return 2 * (uint64_t)problem->resident_tiles;
}

/* Computes the bytes of each piece for a problem, and sets each part to its offset in the piece.
 * Returns false on overflow. */
bool slc_gpu_memory_measure(const struct slc_device_problem *problem,
                            struct slc_gpu_memory *memory);

/* Sets each part to its address in the pieces of `memory`. Calls `gap` for unused device memory
 * between parts. */
bool slc_gpu_memory_lay_out(const struct slc_device_problem *problem,
                            struct slc_gpu_memory *memory,
                            slc_gpu_gap gap);

/* Returns true if a device can be opened for a problem of this shape. */
bool slc_gpu_problem_sound(const struct slc_device_problem *problem);

/* Implement memory_bytes and host_bytes of struct slc_device_memory_ops. `device` is not used. */
uint64_t slc_gpu_memory_bytes(const struct slc_device *device,
                              const struct slc_device_problem *problem);
uint64_t slc_gpu_host_bytes(const struct slc_device *device,
                            const struct slc_device_problem *problem);

/* ---- memory.cu */

/* Allocates memory on the current device, in one piece; free it with cudaFree. Errors: those of
 * slc_gpu_memory_allocate. */
enum slc_status
slc_gpu_device_memory_allocate(uint64_t bytes, void **memory, struct slc_error *err) SLC_NODISCARD;

/* Allocates the memory for a problem on the current device. Ownership: release with
 * slc_gpu_memory_release, which accepts all-zero memory and memory for which this function has
 * failed. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM. */
enum slc_status slc_gpu_memory_allocate(const struct slc_device_problem *problem,
                                        struct slc_gpu_memory *memory,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_gpu_memory_release(struct slc_gpu_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
