/*
 * The plan divides one memory budget among everything that an operation holds: process and
 * libraries, index, factors, outputs, kernel scratch, decoders, slots of the ring, and a cache of
 * blocks in the rest.
 */
#ifndef SLC_ENGINE_PLAN_H
#define SLC_ENGINE_PLAN_H

#include "base/backend.h"
#include "base/device.h"
#include "base/error/error.h"
#include "base/topology/placement.h"
#include "engine/hybrid/hybrid.h"
#include "engine/plan/layouts.h"
#include "storage/block/reader.h"
#include "storage/io/io.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_schedule {
    SLC_SCHEDULE_AUTO,
    /*
     * The blocks with the most nonzeros first, so that few workers are idle at the end ([SPTV]
     * section 5.3).
     */
    SLC_SCHEDULE_LARGEST,
    SLC_SCHEDULE_FILE /* file order: required by deterministic passes */
};
const char *slc_schedule_name(enum slc_schedule schedule); /* "auto", "largest", "file" */
bool slc_schedule_parse(const char *name, enum slc_schedule *schedule);

enum { SLC_MAX_DEVICES = 64 };

/* How work is divided between devices. */
enum slc_split {
    /* Partitions of the layout sorted by a mode, largest first: every row has one owner
     * ([Wijeratne2025] sections 3.2.1 and 4.9). */
    SLC_SPLIT_PARTITIONS,
    /* Nonzeros of `blco` in equal runs of blocks: every device has a part of every row, and the
     * parts are added (the baseline of [Wijeratne2025] section 5.4). */
    SLC_SPLIT_NNZ
};
const char *slc_split_name(enum slc_split split); /* "partitions", "nnz" */
bool slc_split_parse(const char *name, enum slc_split *split);

enum slc_operation { SLC_OP_MTTKRP, SLC_OP_CPD, SLC_OP_TTM };

/*
 * Determines whether a decomposition holds a copy of the tensor per mode (replica_begin of
 * base/backend.h) in addition to the cached blocks, if the budget allows for all of them. Copies
 * add in a different order than the stream, so a deterministic run, whose bits must not depend on
 * the budget, holds no copies.
 */
enum slc_copies {
    SLC_COPIES_AUTO, /* built after some iterations, if they are worthwhile (cp_als.h) */
    SLC_COPIES_NEVER,
    SLC_COPIES_ALWAYS /* built at once; SLC_ERR_BUDGET if they do not fit */
};
const char *slc_copies_name(enum slc_copies copies); /* "auto", "never", "always" */
bool slc_copies_parse(const char *name, enum slc_copies *copies);

/*
 * Determines whether a pass of a decomposition may update two modes: when all nonzeros of a range
 * of rows (engine/stream/row_ranges.h) have been computed, these rows are solved, and the same
 * nonzeros are computed again for the mode that is updated next.
 */
enum slc_passes {
    SLC_PASSES_AUTO, /* if an iteration then reads fewer bytes */
    SLC_PASSES_PLAIN,
    SLC_PASSES_FUSED /* an error if no two modes can be updated in a pass */
};
const char *slc_passes_name(enum slc_passes passes); /* "auto", "plain", "fused" */
bool slc_passes_parse(const char *name, enum slc_passes *passes);

/* The user's request. */
struct slc_plan_request {
    enum slc_operation operation;
    unsigned mode; /* mode of an MTTKRP or TTM; ignored for CPD, which computes all modes */
    uint32_t rank; /* columns of the matrix of a TTM */
    /* Value type of factors, or of a product's matrix; sums are f64. */
    enum slc_value_type precision;
    unsigned threads;    /* 0: all processors; if there are several devices, threads per device */
    unsigned cpu_groups; /* number of groups (engine/executor/cpu_groups.h); 0: the backend alone */
    enum slc_split split; /* how work is divided between groups */
    bool deterministic;
    enum slc_io_kind io;
    enum slc_schedule schedule;
    uint64_t memory_bytes; /* the budget; 0 means 80 % of slc_memory_total() */
    /* Resident bytes of the process, to compare plans; 0: the current value. */
    uint64_t resident_bytes;
    uint64_t beside_bytes;          /* only CPD: memory that the plan does not count itself */
    unsigned slots;                 /* number of slots, at least 2; 0: chosen by the plan */
    uint64_t read_limit;            /* bytes per second (engine/stream/read_limit.h); 0: no limit */
    bool cache;                     /* false: read every block in every pass, and hold no copies */
    enum slc_layout_choice layouts; /* see slc_plan_choose */
    enum slc_copies copies;         /* only CPD; ignored for MTTKRP, which computes one mode once */
    enum slc_passes passes;         /* only CPD; see slc_plan_choose */
    /* Order in which modes are updated, 0-based, if set; otherwise 0, 1, .. or the order that reads
     * the fewest bytes. */
    unsigned mode_order[SLC_MAX_ORDER];
    bool mode_order_set;
    enum slc_pin pin; /* whether threads are bound to processors */
    /*
     * A device with memory of its own, which computes instead of the backend, or NULL. With a
     * device no copies are held, passes update one mode, and `blco` is read unless sorted layouts
     * are requested. Borrowed.
     */
    const struct slc_device *gpu;
    /* Several such devices, of which the first is `gpu`; `split` selects how the layouts that are
     * read are divided between them (engine/executor/gpu_group.h). gpu_count 0: `gpu` computes
     * alone. Borrowed. */
    struct slc_device *const *gpus;
    unsigned gpu_count;
    unsigned streams; /* streams per device, 1 to SLC_DEVICE_STREAMS; 0: chosen by the plan */
    /* Whether and how the device shares the work with the CPU. Not allowed with several devices,
     * nor in deterministic runs, except for TTM. */
    struct slc_hybrid_wish hybrid;
    /* For TTM with lanes of a device, set by slc_ttm_plan for slc_plan_make: number of threads that
     * wait for lanes, and host memory of all lanes. */
    unsigned product_lanes;
    uint64_t product_bytes;
    /* The best strategy of each mode in an earlier run, PRIVATE or LOCKED, so that this run tries
     * no rival. AUTO: chosen by the plan. Used only if there is a choice: with several threads in a
     * run that is not deterministic. */
    enum slc_conflict conflict[SLC_MAX_ORDER];
};

/* Use of one layout. */
struct slc_plan_layout {
    /* Passes over the layout per iteration, may include half passes; 0: open but not read. */
    double passes;
    uint64_t store_bytes;     /* padded bytes of all blocks of the layout */
    uint64_t resident_blocks; /* blocks resident in GPU memory (slc_plan_keeps) */
    uint64_t resident_bytes;  /* padded bytes of the resident blocks */
    uint64_t cached_blocks;   /* other blocks cached in host memory (slc_plan_caches) */
    uint64_t cache_bytes;     /* encoded bytes of the cached blocks */
};

/* Memory of a GPU, or of each of several GPUs. */
struct slc_plan_gpu {
    char name[128]; /* "" if there is no GPU */
    /* These four members equal those of struct slc_device_info of the first device. */
    bool described;
    unsigned multiprocessors, shared_bytes;
    uint64_t device_total_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes;  /* smallest budget that is sufficient */
    uint64_t total_bytes;    /* sum of the following members */
    uint64_t factor_bytes;   /* factors, output, dense algebra, streams with the smallest slots */
    uint64_t slots_bytes;    /* additional bytes of more and larger slots */
    uint64_t resident_bytes; /* resident blocks, and the tables that describe them */

    /* Parameters for opening the device (base/device.h). */
    unsigned streams;
    uint64_t slot_bytes, expanded_bytes;
    uint32_t slot_tiles;
    uint64_t kept_bytes;
    /* For values of resident blocks that may expand, as far as memory allows. */
    uint64_t kept_expanded_bytes;
    uint32_t kept_tiles;
    uint64_t kept_blocks; /* resident blocks of all devices */
    uint32_t unit_most;
    /* only TTM: fibers that a lane delivers at a time; `streams` is then the number of lanes */
    uint32_t fibers;
};

/* Why passes update two modes, or do not. */
enum slc_fusion_reason {
    SLC_FUSION_TAKEN,
    SLC_FUSION_NOT_ASKED,  /* plain passes were requested, or there is only one mode to compute */
    SLC_FUSION_FIXED_BITS, /* deterministic: bits must not depend on the budget */
    SLC_FUSION_COPIES,     /* copies per mode will be used */
    SLC_FUSION_CPU_GROUPS, /* devices update one mode at a time, together */
    SLC_FUSION_GPU,        /* whole blocks go to a device */
    SLC_FUSION_NO_RANGES,  /* no layout has ranges of rows that fit in the ring */
    SLC_FUSION_FEW_RANGES, /* fewer ranges than threads */
    SLC_FUSION_NO_MEMORY,  /* not enough memory for the slots of a range and a second output */
    SLC_FUSION_NO_GAIN     /* fused passes would read as many bytes or more */
};

/* Passes that update two modes. */
struct slc_plan_fusion {
    enum slc_fusion_reason reason;
    uint32_t modes;                       /* bit n: a pass for mode n also updates the next mode */
    uint32_t seconds;                     /* bit n: mode n is updated by such passes */
    uint64_t ranges[SLC_MAX_ORDER];       /* number of ranges of rows, for each of `modes` */
    uint64_t range_blocks[SLC_MAX_ORDER]; /* blocks of the largest range */
    uint64_t table_bytes[SLC_MAX_ORDER];  /* bytes of the table of ranges */
    struct slc_conflict_choice choices[SLC_MAX_ORDER]; /* strategies for each of `seconds` */
    uint64_t output_bytes;                             /* output of the MTTKRP of the second mode */
    uint64_t scratch_bytes; /* scratch of the second mode's kernels, the largest */
    /*
     * Bytes that an iteration of the best plan of the other kind (plain or fused) reads; UINT64_MAX
     * if there is no such plan.
     */
    uint64_t other_read_bytes;
};

/* The plan. Every byte count is the size that will be mapped. */
struct slc_plan {
    struct slc_plan_request request; /* the request with defaults filled in; io may still be AUTO */
    unsigned threads;                /* threads of all devices together */
    unsigned cpu_groups;             /* 0: none */
    unsigned group_threads; /* threads per group; threads of the backend if there are no groups */
    struct slc_placement placement; /* placement of the threads */
    enum slc_schedule schedule;     /* never AUTO */
    /* Per mode that will be computed: its strategy, and the rival that the first pass tries. */
    struct slc_conflict_choice choices[SLC_MAX_ORDER];
    /* Rivals that do not fit in memory; AUTO if there are none. */
    enum slc_conflict untried[SLC_MAX_ORDER];
    uint64_t process_bytes; /* currently resident (program, libraries), with a margin for stacks */
    uint64_t present_bytes; /* the part of process_bytes without the margin */
    uint64_t index_bytes;   /* index of the reader */
    uint64_t factor_bytes;  /* all factor matrices, of every device */
    /* the largest MTTKRP output, of every device; for TTM, rows and buffers (ttm.h) */
    uint64_t output_bytes;
    uint64_t dense_bytes; /* dense algebra, R x R matrices */
    /* For several devices: the ring that exchanges rows, and the ownership tables. For a GPU: block
     * descriptions and other host memory. */
    uint64_t device_bytes;
    uint64_t scratch_bytes; /* scratch of kernels, the largest over modes, of every device */
    uint64_t decoder_bytes; /* decoders of all workers */
    /* The longest permutation, used to permute rows of a relabelled mode; for TTM, all
     * permutations, which number the fibers. */
    uint64_t label_bytes;
    unsigned slot_count;
    uint64_t slot_bytes;
    unsigned layout_count;
    struct slc_plan_layout layouts[SLC_MAX_LAYOUTS];
    unsigned mode_layout[SLC_MAX_ORDER]; /* layout from which a computed mode is read */
    /* partitions of that layout if it is sorted by the mode; otherwise 0 */
    uint64_t partitions[SLC_MAX_ORDER];
    uint64_t cache_bytes;   /* bytes of the cached encoded blocks of all layouts */
    uint64_t cached_blocks; /* number of cached encoded blocks */
    uint64_t copies_bytes;  /* bytes for building and holding copies per mode; 0: no copies */
    /* If copies would be possible but do not fit: the size of the copies and the bytes that the
     * budget leaves for them; otherwise 0. */
    uint64_t copies_wanted_bytes, copies_room_bytes;
    uint64_t total_bytes; /* sum of all parts */
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* smallest budget with which this request works */
    struct slc_plan_gpu gpu;
    unsigned mode_order[SLC_MAX_ORDER]; /* order in which CP-ALS updates the modes */
    struct slc_plan_fusion fusion;
    double passes; /* per iteration of CP-ALS: N, or down to N/2 by fusion; 1 for MTTKRP */
    uint64_t iteration_bytes; /* padded bytes of the blocks of all passes of an iteration */
    /* Exact bytes that an iteration reads once the cache is filled. */
    uint64_t iteration_read_bytes;
    /* Bytes that an iteration of a plan with the other choice of layouts would read; UINT64_MAX:
     * there is no other choice, or its plan does not fit in the budget. */
    uint64_t other_read_bytes;
};

/* Additional memory of passes that update two modes. */
static inline uint64_t slc_plan_fused_bytes(const struct slc_plan_fusion *fusion)
{
    uint64_t bytes = fusion->output_bytes + fusion->scratch_bytes;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        bytes += (fusion->modes >> n & 1U) != 0 ? fusion->table_bytes[n] : 0;
    }
    return bytes;
}

/*
 * Returns SLC_ERR_USAGE, naming the fault, if `mode_order` is not a permutation of the modes 0 ..
 * order - 1.
 */
enum slc_status slc_plan_check_order(unsigned order,
                                     const unsigned *mode_order,
                                     struct slc_error *err) SLC_NODISCARD;

/* Padded bytes of the blocks that a pass for `mode`, or all passes of an iteration, copy to GPUs
 * once the resident blocks are in GPU memory. An upper bound if the CPU shares the work. */
uint64_t slc_plan_pass_copied(const struct slc_plan *plan, unsigned mode);
uint64_t slc_plan_iteration_copied(const struct slc_plan *plan);

/* True if every MTTKRP uses copies per mode; `choices` are then unused. */
static inline bool slc_plan_starts_with_copies(const struct slc_plan *plan)
{
    return plan->copies_bytes > 0 && plan->request.copies == SLC_COPIES_ALWAYS;
}

/*
 * True if `block` is one of the `kept` blocks out of `count` that are cached: the first block, then
 * evenly spaced ones. In file order this keeps the drive busy throughout a pass: between two cached
 * blocks there is always one to read ahead, while a cached head of the file would leave the drive
 * idle until the head has been computed. Needs: count * kept < 2^64; a longer index does not fit in
 * memory.
 */
static inline bool slc_plan_keeps(uint64_t kept, uint64_t count, uint64_t block)
{
    return kept > 0 && (block == 0 || block * kept / count != (block - 1) * kept / count);
}

/* Like slc_plan_keeps, for blocks cached in host memory when other blocks are resident in GPU
 * memory: evenly spaced among the blocks that are not resident. */
static inline bool
slc_plan_caches(const struct slc_plan_layout *layout, uint64_t count, uint64_t block)
{
    const uint64_t resident = layout->resident_blocks;
    const uint64_t before = resident > 0 && block > 0 ? (block - 1) * resident / count + 1 : 0;

    return !slc_plan_keeps(resident, count, block) &&
           slc_plan_keeps(layout->cached_blocks, count - resident, block - before);
}

/* Parses a size: "512MiB", "4G" (= GiB), "200MB" (decimal), "1.5GiB", "50%" (of
 * slc_memory_total()), plain bytes. The message of SLC_ERR_USAGE lists the accepted forms. */
enum slc_status
slc_parse_size(const char *text, uint64_t *bytes, struct slc_error *err) SLC_NODISCARD;

#endif
