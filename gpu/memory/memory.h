/*
 * Memory of an open device: one piece of its own memory and two of the host's, each divided into
 * parts that one walk lays out, so that a plan counts exactly the bytes allocated. The walk is C
 * (memory_parts.c) and is in every build, because plans are also made without CUDA and without a
 * device. Private to gpu/.
 */
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
    /*
     * Bytes of the two pieces of registered memory through which matrices are copied. One thread of
     * the host packs them: a piece should stay in its cache until the copy reads it, and be large
     * enough to hide the start of a copy.
     */
    SLC_GPU_PIECE_BYTES = 1 << 20,
    /* Rows of another device, or of the host, arrive here before they are added: enough for a copy
     * to reach the rate of the link. */
    SLC_GPU_ARRIVAL_BYTES = 4 << 20
};

/* A block in the memory for resident blocks. */
struct slc_gpu_resident_block {
    uint32_t first_tile, tile_count;
    uint64_t bytes, nnz;
    /* The batch it arrived in: until that has been computed, other streams must wait for it. */
    unsigned slot;
    uint64_t batch;
    bool marked;                             /* marked by the job, and not launched yet */
    const struct slc_encoded_layout *layout; /* of its tiles */
};

struct slc_gpu_slot_memory {
    uint8_t *data, *expanded;
    struct slc_gpu_tile *tiles;
    uint32_t *chunk_begin;
    /* On the host; the sources of the two tables are registered. */
    struct slc_gpu_tile *host_tiles;
    uint32_t *host_chunk_begin;
};

struct slc_gpu_memory {
    void *device; /* the only allocation */
    uint64_t device_bytes, registered_bytes, plain_bytes;
    struct slc_buffer registered, plain;
    bool is_registered;

    /* On the device. */
    struct slc_gpu_matrix factor[SLC_MAX_ORDER], output; /* rows: of the longest mode */
    struct slc_exact_sum exact;
    double *largest; /* order x rank; only with exact sums */
    struct slc_encoded_layout *layouts;
    struct slc_gpu_fault *fault;
    double *solver; /* packed */
    double *sums;  /* 2 * rank of columns, rank * rank of a Gram matrix; or one number per column */
    void *scratch; /* of gpu/dense/dense.h */
    uint8_t *resident;
    struct slc_gpu_tile *resident_tiles;
    uint32_t *resident_chunk_begin; /* slc_gpu_resident_table elements */
    /* For several devices; `arrival` also for a device that the host's sums are added to. */
    struct slc_row_span *units;
    double *unit_columns;
    uint8_t *arrival;
    unsigned long long *refused; /* with exact sums: per column, other devices' refused additions */

    /* On the host. */
    uint8_t *piece[2];
    double *host_solver; /* source and destination of solver and sums */
    struct slc_gpu_fault *host_fault;
    struct slc_gpu_resident_block *resident_blocks; /* at most one per tile */
    uint32_t *resident_nnz;                         /* of each tile */
    uint32_t *host_resident_chunk_begin;            /* registered */

    struct slc_gpu_slot_memory slot[SLC_DEVICE_STREAMS];
};

/* Elements of the tables of chunks for launches of resident blocks: one per tile and one more per
 * launch. */
static inline uint64_t slc_gpu_resident_table(const struct slc_device_problem *problem)
{
    return 2 * (uint64_t)problem->resident_tiles;
}

/* Measures the memory of a problem, and the positions of its parts if the pieces began at 0.
 * Returns false on overflow. */
bool slc_gpu_memory_measure(const struct slc_device_problem *problem,
                            struct slc_gpu_memory *memory);

/* The same for the addresses of the pieces of `memory`. `gap` is called for gaps in the device's
 * memory. */
bool slc_gpu_memory_lay_out(const struct slc_device_problem *problem,
                            struct slc_gpu_memory *memory,
                            slc_gpu_gap gap);

/* Whether a device can be opened for the problem at all. */
bool slc_gpu_problem_sound(const struct slc_device_problem *problem);

/* memory_bytes and host_bytes of struct slc_device_memory_ops. They ignore the device. */
uint64_t slc_gpu_memory_bytes(const struct slc_device *device,
                              const struct slc_device_problem *problem);
uint64_t slc_gpu_host_bytes(const struct slc_device *device,
                            const struct slc_device_problem *problem);

/* ---- memory.cu */

/* Allocates memory on the current device, in one piece; free it with cudaFree. Errors: as
 * slc_gpu_memory_allocate. */
enum slc_status
slc_gpu_device_memory_allocate(uint64_t bytes, void **memory, struct slc_error *err) SLC_NODISCARD;

/*
 * Allocates it on the current device. Owns: release with slc_gpu_memory_release, which accepts
 * all-zero memory, and memory after this function failed. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_memory_allocate(const struct slc_device_problem *problem,
                                        struct slc_gpu_memory *memory,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_gpu_memory_release(struct slc_gpu_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
