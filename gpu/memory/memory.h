/*
 * What an open device holds: one piece of its own memory and two of the host's, each cut into parts
 * that one walk lays out, so that a plan counts exactly what is taken. The walk is C
 * (memory_parts.c) and is in every build: plans are made without CUDA and without a device, too.
 * Private to gpu/.
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
     * Bytes of the two pieces of registered memory through which matrices travel. One thread of the
     * host packs them: a piece should stay in its cache until the copy reads it, and be large
     * enough for a copy's start not to matter.
     */
    SLC_GPU_PIECE_BYTES = 1 << 20,
    /* Rows of another device, or of the host, arrive here before they are added: enough for a copy
     * to reach the rate of the link. */
    SLC_GPU_ARRIVAL_BYTES = 4 << 20
};

/* A block in the memory for residents. */
struct slc_gpu_resident_block {
    uint32_t first_tile, tile_count;
    uint64_t bytes, nnz;
    /* By which it came: until that batch has been computed, other streams have to wait for it. */
    unsigned slot;
    uint64_t batch;
    bool wanted;                             /* by the job, and not launched yet */
    const struct slc_encoded_layout *layout; /* that its tiles are of */
};

struct slc_gpu_slot_memory {
    uint8_t *data, *expanded;
    struct slc_gpu_tile *tiles;
    uint32_t *chunk_begin;
    /* Of the host; what the two tables are copied from is registered. */
    struct slc_gpu_tile *host_tiles;
    uint32_t *host_chunk_begin;
};

struct slc_gpu_memory {
    void *device; /* the one piece */
    uint64_t device_bytes, registered_bytes, plain_bytes;
    struct slc_buffer registered, plain;
    bool is_registered;

    /* The device's. */
    struct slc_gpu_matrix factor[SLC_MAX_ORDER], output; /* rows: of the longest mode */
    struct slc_exact_sum exact;
    double *largest; /* order x rank; with exact sums alone */
    struct slc_encoded_layout *layouts;
    struct slc_gpu_fault *fault;
    double *solver; /* packed */
    double *sums;  /* 2 * rank of columns, rank * rank of a Gram matrix; or one number per column */
    void *scratch; /* of gpu/dense/dense.h */
    uint8_t *resident;
    struct slc_gpu_tile *resident_tiles;
    uint32_t *resident_chunk_begin; /* resident_table entries */
    /* Of several devices; the place where rows arrive, of one that is given the host's, too. */
    struct slc_row_span *units;
    double *unit_columns;
    uint8_t *arrival;
    unsigned long long *refused; /* with exact sums: per column, what the others could not add */

    /* The host's. */
    uint8_t *piece[2];
    double *host_solver; /* for what solver and sums are copied from and to */
    struct slc_gpu_fault *host_fault;
    struct slc_gpu_resident_block *resident_blocks; /* at most one per tile */
    uint32_t *resident_nnz;                         /* of each tile */
    uint32_t *host_resident_chunk_begin;            /* registered */

    struct slc_gpu_slot_memory slot[SLC_DEVICE_STREAMS];
};

/* Entries of the tables of chunks for launches of resident blocks: one per tile and one more per
 * launch. */
static inline uint64_t slc_gpu_resident_table(const struct slc_device_problem *problem)
{
    return 2 * (uint64_t)problem->resident_tiles;
}

/*
 * What memory a problem takes, and where its parts would be if the pieces began at 0. False on
 * overflow.
 */
bool slc_gpu_memory_measure(const struct slc_device_problem *problem,
                            struct slc_gpu_memory *memory);

/* The same, where the pieces of `memory` are. `gap` is called for gaps in the device's memory. */
bool slc_gpu_memory_lay_out(const struct slc_device_problem *problem,
                            struct slc_gpu_memory *memory,
                            slc_gpu_gap gap);

/* Whether a device can be opened for that at all. */
bool slc_gpu_problem_sound(const struct slc_device_problem *problem);

/* memory_bytes and host_bytes of struct slc_device_memory_ops. They do not look at the device. */
uint64_t slc_gpu_memory_bytes(const struct slc_device *device,
                              const struct slc_device_problem *problem);
uint64_t slc_gpu_host_bytes(const struct slc_device *device,
                            const struct slc_device_problem *problem);

/* ---- memory.cu */

/* Memory of the device that is set, in one piece: cudaFree. Errors: as slc_gpu_memory_take. */
enum slc_status
slc_gpu_device_memory_take(uint64_t bytes, void **memory, struct slc_error *err) SLC_NODISCARD;

/*
 * Takes it, on the device that is set. Owns: slc_gpu_memory_release, which takes all-zero memory,
 * and memory that this function failed to take.
 * Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM.
 */
enum slc_status slc_gpu_memory_take(const struct slc_device_problem *problem,
                                    struct slc_gpu_memory *memory,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_gpu_memory_release(struct slc_gpu_memory *memory);

#ifdef __cplusplus
}
#endif

#endif
