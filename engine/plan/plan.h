/*
 * From one memory budget to everything an operation holds: process and libraries, index, factors,
 * outputs, kernel scratch, decoders, the ring's slots, and a cache of blocks in what is left.
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
    SLC_SCHEDULE_LARGEST, /* most nonzeros first (SPTV section 5.3): short tail */
    SLC_SCHEDULE_FILE     /* file order: required by deterministic passes */
};
const char *slc_schedule_name(enum slc_schedule schedule); /* "auto", "largest", "file" */
bool slc_schedule_parse(const char *name, enum slc_schedule *schedule);

enum { SLC_MAX_DEVICES = 64 };

/* What is divided between devices. */
enum slc_split {
    /* Partitions of the layout sorted by a mode, largest first: every row has one owner (AMPED
     * sections 3.2.1 and 4.9). */
    SLC_SPLIT_PARTITIONS,
    /* Nonzeros of `blco`, equal runs of blocks: every device has a part of every row, which are
     * added up (the baseline of AMPED section 5.4). */
    SLC_SPLIT_NNZ
};
const char *slc_split_name(enum slc_split split); /* "partitions", "nnz" */
bool slc_split_parse(const char *name, enum slc_split *split);

enum slc_operation { SLC_OP_MTTKRP, SLC_OP_CPD, SLC_OP_TTM };

/*
 * Whether a decomposition holds a copy of the tensor per mode (replica_begin of base/backend.h)
 * beside the cached blocks, where the budget has room for all of them. They sum in another order
 * than the stream, so a deterministic run, which gives the same bits for any budget, has none.
 */
enum slc_copies {
    SLC_COPIES_AUTO, /* made after some iterations, when they will have paid (cp_als.h) */
    SLC_COPIES_NEVER,
    SLC_COPIES_ALWAYS /* made at once; SLC_ERR_BUDGET where there is no room */
};
const char *slc_copies_name(enum slc_copies copies); /* "auto", "never", "always" */
bool slc_copies_parse(const char *name, enum slc_copies *copies);

/*
 * Whether a pass of a decomposition may update two modes (DESIGN section 7): when all nonzeros of a
 * range of rows (engine/stream/row_ranges.h) have been computed, these rows are solved for, and the
 * same nonzeros are computed again for the mode that is updated next.
 */
enum slc_passes {
    SLC_PASSES_AUTO, /* where an iteration reads less by it */
    SLC_PASSES_PLAIN,
    SLC_PASSES_FUSED /* an error where no two modes can be updated in a pass */
};
const char *slc_passes_name(enum slc_passes passes); /* "auto", "plain", "fused" */
bool slc_passes_parse(const char *name, enum slc_passes *passes);

/* What the user asked for. */
struct slc_plan_request {
    enum slc_operation operation;
    unsigned mode;                 /* of MTTKRP and TTM; ignored for CPD, which does all */
    uint32_t rank;                 /* of TTM: columns of the matrix */
    enum slc_value_type precision; /* of factors, or of a product's matrix; sums are f64 */
    unsigned threads;              /* 0: all; of each device where there are several */
    unsigned cpu_groups;           /* engine/executor/cpu_groups.h; 0: none, the backend alone */
    enum slc_split split;          /* between them */
    bool deterministic;
    enum slc_io_kind io;
    enum slc_schedule schedule;
    uint64_t memory_bytes;          /* the budget; 0: 80 % of slc_memory_total() */
    uint64_t resident_bytes;        /* of the process, to compare plans by; 0: as it is now */
    uint64_t beside_bytes;          /* of CPD: what it holds beside all that a plan knows of */
    unsigned slots;                 /* 0: chosen; at least 2 */
    uint64_t read_limit;            /* bytes a second, engine/stream/read_limit.h; 0: none */
    bool cache;                     /* false: read every block in every pass, and hold no copies */
    enum slc_layout_choice layouts; /* slc_plan_choose */
    enum slc_copies copies;         /* of CPD; ignored for MTTKRP, which computes one mode once */
    enum slc_passes passes;         /* the same; slc_plan_choose */
    /* In which modes are updated, 0-based, where it is set; else 0, 1, .. or what reads least. */
    unsigned mode_order[SLC_MAX_ORDER];
    bool mode_order_set;
    enum slc_pin pin; /* whether threads are bound to processors */
    /*
     * A device with memory of its own, which computes in place of the backend; NULL: none. Whether
     * copies are held and passes update two modes, and layouts are chosen, is then not left open:
     * they are not, and `blco` is read unless sorted ones are asked for. Borrowed.
     */
    const struct slc_device *gpu;
    /*
     * Several such devices, of which that is the first; `split` says what is divided between them,
     * of the layouts that are read (engine/executor/gpu_group.h). 0: it computes alone.
     * Borrowed.
     */
    struct slc_device *const *gpus;
    unsigned gpu_count;
    unsigned streams; /* of each, 1 to SLC_DEVICE_STREAMS; 0: chosen */
    /* Whether it shares the work with the CPU, and how. Not with several of them, nor, but for TTM,
     * where the bits are to be the same every time. */
    struct slc_hybrid_wish hybrid;
    /*
     * Of TTM with lanes of a device, as slc_ttm_plan sets them for slc_plan_make: how many of the
     * threads wait for lanes, where that device computes, and what all lanes take of the host's
     * memory.
     */
    unsigned product_lanes;
    uint64_t product_bytes;
    /*
     * What an earlier run has found best in a mode, PRIVATE or LOCKED: then nothing is tried. AUTO:
     * chosen. Looked at where there is a choice: with several threads that need not be
     * deterministic.
     */
    enum slc_conflict conflict[SLC_MAX_ORDER];
};

/* What a plan does with one layout. */
struct slc_plan_layout {
    double passes;            /* over it per iteration, halves; 0: it is open, but not read */
    uint64_t store_bytes;     /* padded bytes of all its blocks */
    uint64_t resident_blocks; /* how many stay in the GPU's memory (slc_plan_keeps) */
    uint64_t resident_bytes;  /* padded bytes of these */
    uint64_t cached_blocks;   /* how many others are kept; slc_plan_caches says which */
    uint64_t cache_bytes;     /* of these, encoded */
};

/* What a GPU, or each of several, holds in its own memory. */
struct slc_plan_gpu {
    char name[128]; /* "": there is none */
    /* As struct slc_device_info has it, of the first. */
    bool described;
    unsigned multiprocessors, shared_bytes;
    uint64_t device_total_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes;  /* smallest budget that works */
    uint64_t total_bytes;    /* sum of what follows */
    uint64_t factor_bytes;   /* factors, output, dense algebra, streams with the smallest slots */
    uint64_t slots_bytes;    /* what more and larger slots take beyond those */
    uint64_t resident_bytes; /* blocks that stay, and what belongs to them */

    /* As the device is opened (base/device.h). */
    unsigned streams;
    uint64_t slot_bytes, expanded_bytes;
    uint32_t slot_tiles;
    uint64_t kept_bytes;
    uint64_t kept_expanded_bytes; /* for values of these that may expand, as far as there is room */
    uint32_t kept_tiles;
    uint64_t kept_blocks; /* of all devices */
    uint32_t unit_most;
    uint32_t fibers; /* of TTM: that a lane, which is what streams then are, hands out at a time */
};

/* Why passes update two modes, or do not. */
enum slc_fusion_reason {
    SLC_FUSION_TAKEN,
    SLC_FUSION_NOT_ASKED,  /* plain passes were asked for, or there is one mode to compute */
    SLC_FUSION_FIXED_BITS, /* deterministic: what the budget decides may not decide the bits */
    SLC_FUSION_COPIES,     /* copies per mode will serve */
    SLC_FUSION_CPU_GROUPS, /* devices update one mode at a time, together */
    SLC_FUSION_GPU,        /* whole blocks go to a device */
    SLC_FUSION_NO_RANGES,  /* no layout has ranges of rows that the ring could hold */
    SLC_FUSION_FEW_RANGES, /* those have fewer ranges than there are threads */
    SLC_FUSION_NO_MEMORY,  /* for the slots of a range and a second output */
    SLC_FUSION_NO_GAIN     /* as much would be read, or more */
};

/* Passes that update two modes. */
struct slc_plan_fusion {
    enum slc_fusion_reason reason;
    uint32_t modes;                 /* bit n: a pass for mode n updates the mode after it, too */
    uint32_t seconds;               /* bit n: mode n is updated by such passes */
    uint64_t ranges[SLC_MAX_ORDER]; /* of rows, of each of `modes` */
    uint64_t range_blocks[SLC_MAX_ORDER];              /* of the largest of these */
    uint64_t table_bytes[SLC_MAX_ORDER];               /* of the ranges themselves */
    struct slc_conflict_choice choices[SLC_MAX_ORDER]; /* of each of `seconds` */
    uint64_t output_bytes;                             /* for the MTTKRP of the second mode */
    uint64_t scratch_bytes;                            /* of its kernels, the largest */
    /* What an iteration of the best plan of the other kind reads; UINT64_MAX: there is none. */
    uint64_t other_read_bytes;
};

/* What it comes to. Every byte count is what will be mapped. */
struct slc_plan {
    struct slc_plan_request request; /* with defaults filled in; io may still be AUTO */
    unsigned threads;                /* of all devices */
    unsigned cpu_groups;             /* 0: none */
    unsigned group_threads;          /* of each; of the backend where there are none */
    struct slc_placement placement;  /* of the threads */
    enum slc_schedule schedule;      /* never AUTO */
    /* Per mode that will be computed: its strategy, and what is tried against it in a first pass.
     */
    struct slc_conflict_choice choices[SLC_MAX_ORDER];
    enum slc_conflict untried[SLC_MAX_ORDER]; /* what there is no memory to try; AUTO: nothing */
    uint64_t process_bytes; /* resident now (program, libraries), with a margin for stacks */
    uint64_t present_bytes; /* of these, without the margin */
    uint64_t index_bytes;   /* the reader */
    uint64_t factor_bytes;  /* all factor matrices, of every device */
    /* MTTKRP output, the largest, of every device; of TTM, rows and buffers (ttm.h) */
    uint64_t output_bytes;
    uint64_t dense_bytes; /* dense algebra, R x R matrices */
    /* Of several devices: the ring that rows travel, who owns what. Of a GPU: descriptions
     * of blocks, and what else it needs of the host's memory. */
    uint64_t device_bytes;
    uint64_t scratch_bytes; /* kernels, the largest over modes, of every device */
    uint64_t decoder_bytes; /* all workers */
    uint64_t label_bytes;   /* the longest permutation, while rows of a relabelled mode are moved;
                               of TTM, all permutations, to name fibers by */
    unsigned slot_count;
    uint64_t slot_bytes;
    unsigned layout_count;
    struct slc_plan_layout layouts[SLC_MAX_LAYOUTS];
    unsigned mode_layout[SLC_MAX_ORDER]; /* the layout that a mode which is computed is read from */
    uint64_t partitions[SLC_MAX_ORDER];  /* of that layout where it is sorted by the mode; else 0 */
    uint64_t cache_bytes;                /* of the encoded blocks that are kept, of all layouts */
    uint64_t cached_blocks;              /* how many these are */
    uint64_t copies_bytes; /* of copies per mode and of making them; 0: there are none */
    /* What those would take that might be had but do not fit, and what the budget leaves; 0: else.
     */
    uint64_t copies_wanted_bytes, copies_room_bytes;
    uint64_t total_bytes; /* sum of what is held */
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* smallest budget this request works with */
    struct slc_plan_gpu gpu;
    unsigned mode_order[SLC_MAX_ORDER]; /* of CP-ALS */
    struct slc_plan_fusion fusion;
    double passes; /* per iteration of CP-ALS: N, or down to N/2 by fusion; 1 for MTTKRP */
    uint64_t iteration_bytes;      /* padded bytes of the blocks of all passes of an iteration */
    uint64_t iteration_read_bytes; /* exactly what is read of them once the cache is filled */
    /* What a plan from the other choice of layouts would read of an iteration; UINT64_MAX: there is
     * no other, or it does not fit. */
    uint64_t other_read_bytes;
};

/* What passes that update two modes hold beside all else. */
static inline uint64_t slc_plan_fused_bytes(const struct slc_plan_fusion *fusion)
{
    uint64_t bytes = fusion->output_bytes + fusion->scratch_bytes;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        bytes += (fusion->modes >> n & 1U) != 0 ? fusion->table_bytes[n] : 0;
    }
    return bytes;
}

/* SLC_ERR_USAGE where that is not an order of modes 0 .. order - 1, saying why. */
enum slc_status slc_plan_check_order(unsigned order,
                                     const unsigned *mode_order,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Padded bytes of the blocks that a pass for `mode` copies to GPUs, once those that stay
 * there have come; and that all passes of an iteration copy. The most, if the CPU shares the work.
 */
uint64_t slc_plan_pass_copied(const struct slc_plan *plan, unsigned mode);
uint64_t slc_plan_iteration_copied(const struct slc_plan *plan);

/* Whether every MTTKRP is computed from copies per mode: `choices` are then not what serves. */
static inline bool slc_plan_starts_with_copies(const struct slc_plan *plan)
{
    return plan->copies_bytes > 0 && plan->request.copies == SLC_COPIES_ALWAYS;
}

/*
 * Whether `block` is one of the `kept` blocks that are cached, of `count`: the first and every so
 * many after it. In file order that keeps the drive busy all through a pass: between two cached
 * blocks there is always one to read ahead, while a cached head of the file would leave the drive
 * idle until the head has been computed. Needs: count * kept < 2^64; an index that long fits no
 * memory.
 */
static inline bool slc_plan_keeps(uint64_t kept, uint64_t count, uint64_t block)
{
    return kept > 0 && (block == 0 || block * kept / count != (block - 1) * kept / count);
}

/*
 * The same of what is cached beside the blocks that stay in a GPU's memory: among the
 * others, which are counted without them.
 */
static inline bool
slc_plan_caches(const struct slc_plan_layout *layout, uint64_t count, uint64_t block)
{
    const uint64_t resident = layout->resident_blocks;
    const uint64_t before = resident > 0 && block > 0 ? (block - 1) * resident / count + 1 : 0;

    return !slc_plan_keeps(resident, count, block) &&
           slc_plan_keeps(layout->cached_blocks, count - resident, block - before);
}

/*
 * Parses a size: "512MiB", "4G" (= GiB), "200MB" (decimal), "1.5GiB", "50%" (of
 * slc_memory_total()), plain bytes. SLC_ERR_USAGE says what is understood.
 */
enum slc_status
slc_parse_size(const char *text, uint64_t *bytes, struct slc_error *err) SLC_NODISCARD;

#endif
