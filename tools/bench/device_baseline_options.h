/* Options of the kernels of other programs (gpu/lists.h), for sluice bench device. */
#ifndef SLC_TOOLS_BENCH_DEVICE_BASELINE_OPTIONS_H
#define SLC_TOOLS_BENCH_DEVICE_BASELINE_OPTIONS_H

#include "gpu/lists.h"
#include "tools/options.h"

struct device_baseline_arguments {
    uint64_t coarsening, work_group, stash_rows, copies, index_bits, queues, block_nnz;
    struct option_counts devices;
};

/* Rows of an option table for the field `field` of struct `type`. */
#define DEVICE_BASELINE_OPTION_ROWS(type, field)                                                   \
    {.name = "coarsening",                                                                         \
     .kind = OPTION_U64,                                                                           \
     .value = "N",                                                                                 \
     .fallback = "0",                                                                              \
     .maximum = 1024,                                                                              \
     .help = "of BLCO: nonzeros of a thread; 0: 1, with a stash 2",                                \
     .offset = offsetof(struct type, field.coarsening)},                                           \
        {.name = "work-group",                                                                     \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .maximum = 512,                                                                           \
         .help = "of BLCO: threads of a thread block, a multiple of 32; 0: 256",                   \
         .offset = offsetof(struct type, field.work_group)},                                       \
        {.name = "stash-rows",                                                                     \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .maximum = 65536,                                                                         \
         .help = "of BLCO: rows in shared memory, at most those that fit; 0: all of the mode, of " \
                 "blco-code 4",                                                                    \
         .offset = offsetof(struct type, field.stash_rows)},                                       \
        {.name = "copies",                                                                         \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .maximum = 1024,                                                                          \
         .help = "of BLCO: copies of the output with a stash; 0: one for each graphics "           \
                 "processing cluster",                                                             \
         .offset = offsetof(struct type, field.copies)},                                           \
        {.name = "index-bits",                                                                     \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .maximum = 64,                                                                            \
         .help = "of BLCO: bits of an index, the others are those of blocks; 0: 64",               \
         .offset = offsetof(struct type, field.index_bits)},                                       \
        {.name = "queues",                                                                         \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .maximum = 8,                                                                             \
         .help = "of blco-queues: streams with memory for one block each, 2 to 8; 0: 8",           \
         .offset = offsetof(struct type, field.queues)},                                           \
        {.name = "block-nnz",                                                                      \
         .kind = OPTION_U64,                                                                       \
         .value = "N",                                                                             \
         .fallback = "0",                                                                          \
         .maximum = UINT64_C(1) << 32,                                                             \
         .help = "of BLCO: nonzeros of a block, at most; 0: 2^27, and what the device's memory "   \
                 "holds",                                                                          \
         .offset = offsetof(struct type, field.block_nnz)},                                        \
    {                                                                                              \
        .name = "devices", .kind = OPTION_COUNTS, .value = "N[,N..]", .maximum = 63,               \
        .help = "of amped: also divide the work between the GPUs with these numbers (one may be "  \
                "named several times)",                                                            \
        .offset = offsetof(struct type, field.devices)                                             \
    }

static inline struct slc_gpu_lists_options
device_baseline_options(const struct device_baseline_arguments *args)
{
    return (struct slc_gpu_lists_options){.coarsening = (uint32_t)args->coarsening,
                                          .work_group = (uint32_t)args->work_group,
                                          .stash_rows = (uint32_t)args->stash_rows,
                                          .copies = (uint32_t)args->copies,
                                          .index_bits = (uint32_t)args->index_bits,
                                          .queues = (uint32_t)args->queues,
                                          .block_nnz = args->block_nnz};
}

#endif
