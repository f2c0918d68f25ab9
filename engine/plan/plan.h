/* The plan divides one memory budget among everything that an operation holds: process and
 * libraries, index, factors, outputs, kernel scratch, decoders, and slots of the ring. The
 * remaining memory caches blocks. */
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
    /* Blocks with the most nonzeros come first, so that few workers are idle at the end of a pass
     * ([SPTV] section 5.3). */
    SLC_SCHEDULE_LARGEST,
    SLC_SCHEDULE_FILE /* file order: required by deterministic passes */
};
const char *slc_schedule_name(enum slc_schedule schedule); /* "auto", "largest", "file" */
bool slc_schedule_parse(const char *name, enum slc_schedule *schedule);

enum { SLC_MAX_DEVICES = 64 };

/* How work is divided between devices. */
enum slc_split {
    /* Partitions of the sorted layout of the mode are assigned largest first, so each row has one
     * owner ([Wijeratne2025] sections 3.2.1 and 4.9). */
    SLC_SPLIT_PARTITIONS,
    /* Each device gets a run of blocks of `blco` with about the same number of nonzeros. Every
     * device computes partial sums of all rows, which are added after the pass (the baseline of
     * [Wijeratne2025] section 5.4). */
    SLC_SPLIT_NNZ
};
const char *slc_split_name(enum slc_split split); /* "partitions", "nnz" */
bool slc_split_parse(const char *name, enum slc_split *split);

enum slc_operation { SLC_OP_MTTKRP, SLC_OP_CPD, SLC_OP_TTM };

/* When a decomposition makes one copy of the tensor per mode (replica_begin of base/backend.h),
 * which it holds in addition to the cached blocks. The budget must hold the copies and all blocks.
 * An MTTKRP from a copy adds nonzeros in a different order than an MTTKRP from the stream. A
 * deterministic run therefore holds no copies, because its bits must not depend on the budget. */
enum slc_copies {
    SLC_COPIES_AUTO, /* made after some iterations, if they save time (cp.h) */
    SLC_COPIES_NEVER,
    SLC_COPIES_ALWAYS /* made at the start; SLC_ERR_BUDGET if they do not fit */
};
const char *slc_copies_name(enum slc_copies copies); /* "auto", "never", "always" */
bool slc_copies_parse(const char *name, enum slc_copies *copies);

/* Whether a pass of a decomposition updates one mode (plain), or two modes if possible (fused). A
 * fused pass solves a range of rows (engine/stream/row_ranges.h) as soon as it has multiplied all
 * nonzeros of these rows. It then multiplies the same nonzeros again, for the mode that is updated
 * next. */
enum slc_passes {
    SLC_PASSES_AUTO, /* passes are fused if an iteration then reads fewer bytes */
    SLC_PASSES_PLAIN,
    SLC_PASSES_FUSED /* an error if no two modes can be updated in a pass */
};
const char *slc_passes_name(enum slc_passes passes); /* "auto", "plain", "fused" */
bool slc_passes_parse(const char *name, enum slc_passes *passes);

/* What the row solver of a decomposition needs (engine/stream/rows/row_pass.h). */
struct slc_plan_row_request {
    bool nonzeros;         /* false: no solver needs nonzeros of rows; other members are ignored */
    uint64_t sums, memory; /* numbers per row, as the solver declares them (base/row_solver.h) */
    /* Expected traversals of a row per update, and whether the update of the last mode ends with
     * one more traversal for measures. Used only to forecast the bytes that are read again for rows
     * that exceed the ring. */
    uint32_t traversals;
    bool measures;
};

/* The user's request for a plan. */
struct slc_plan_request {
    enum slc_operation operation;
    unsigned mode; /* mode of an MTTKRP or TTM; ignored for CPD, which computes all modes */
    uint32_t rank; /* columns of the factors, or of the matrix of a TTM */
    /* Value type of the factors, or of the matrix of a TTM. Sums are always f64. */
    enum slc_value_type precision;
    unsigned threads; /* threads, per device if there are several; 0: all processors */
    /* number of groups of CPU workers (engine/executor/cpu_groups.h); 0: no groups */
    unsigned cpu_groups;
    enum slc_split split; /* how work is divided between groups or devices */
    bool deterministic;
    enum slc_io_kind io;
    enum slc_schedule schedule;
    uint64_t memory_bytes; /* the budget; 0 means 80 % of slc_memory_total() */
    /* Resident bytes of the process; 0 means the current value. Set it if several plans must assume
     * the same value. */
    uint64_t resident_bytes;
    uint64_t beside_bytes; /* only CPD: bytes that the plan reserves for the caller */
    /* only CPD: rows are solved on the host, even if a GPU computes their MTTKRPs */
    bool host_rows;
    unsigned slots; /* number of slots, at least 2; 0: chosen by the plan */
    /* maximum bytes read per second (engine/stream/read_limit.h); 0: no limit */
    uint64_t read_limit;
    bool cache;                     /* false: read every block in every pass, and hold no copies */
    enum slc_layout_choice layouts; /* see slc_plan_choose */
    /* When to make copies per mode. Only CPD, because an MTTKRP computes one mode once. */
    enum slc_copies copies;
    enum slc_passes passes; /* only CPD; see slc_plan_choose */
    /* Only CPD. With rows.nonzeros, passes update one mode, no copies are held, and only the CPU
     * computes, without groups. */
    struct slc_plan_row_request rows;
    /* Order in which modes are updated, 0-based. Used only if mode_order_set; otherwise the order
     * is 0, 1, .. or the order with which an iteration reads the fewest bytes. */
    unsigned mode_order[SLC_MAX_ORDER];
    bool mode_order_set;
    enum slc_pin pin; /* whether threads are bound to processors */
    /* NULL, or a device with its own memory that computes instead of the CPU backend. With a
     * device, no copies of the tensor are held, passes update one mode, and `blco` is read unless
     * sorted layouts are requested. Borrowed. */
    const struct slc_device *gpu;
    /* Several devices with their own memory (engine/executor/gpu_group.h); the first is `gpu`.
     * `split` selects how blocks are divided between them. If gpu_count is 0, `gpu` computes alone.
     * Borrowed. */
    struct slc_device *const *gpus;
    unsigned gpu_count;
    bool encoded;     /* resident blocks of devices are not transcoded */
    unsigned streams; /* streams per device, 1 to SLC_DEVICE_STREAMS; 0: chosen by the plan */
    /* How work is divided between the device and the CPU. A split is not allowed with several
     * devices, and in deterministic runs it is allowed only for TTM. */
    struct slc_hybrid_wish hybrid;
    /* Set by slc_ttm_plan for a TTM with lanes of a device: number of threads that wait for lanes,
     * and host memory of all lanes. */
    unsigned product_lanes;
    uint64_t product_bytes;
    /* The fastest strategy of each mode in an earlier run, SLC_CONFLICT_PRIVATE or
     * SLC_CONFLICT_LOCKED, so that this run measures no rival. With SLC_CONFLICT_AUTO the plan
     * chooses. Ignored with one thread and in deterministic runs, which allow no choice. */
    enum slc_conflict conflict[SLC_MAX_ORDER];
};

/* How a run uses one layout. */
struct slc_plan_layout {
    /* Passes over the layout per iteration, the mean of two iterations; 0 if the layout is open but
     * not read. */
    double passes;
    uint64_t store_bytes;     /* padded bytes of all blocks of the layout */
    uint64_t resident_blocks; /* blocks resident in GPU memory (slc_plan_keeps) */
    uint64_t resident_bytes;  /* padded bytes of the resident blocks */
    uint64_t cached_blocks;   /* other blocks, cached in host memory (slc_plan_caches) */
    uint64_t cache_bytes;     /* encoded bytes of the cached blocks */
    const uint64_t *listed;   /* numbers of the blocks that may be cached, ascending; NULL: all */
    uint64_t listed_count;
};

/* Memory of a GPU, or of each GPU if there are several. */
struct slc_plan_gpu {
    char name[128]; /* "" if there is no GPU */
    /* `described` and the next three members are copied from the first device's slc_device_info. */
    bool described;
    unsigned multiprocessors, shared_bytes;
    uint64_t device_total_bytes;
    uint64_t budget_bytes;
    uint64_t minimum_bytes;  /* smallest budget that is sufficient */
    uint64_t total_bytes;    /* sum of the following members */
    uint64_t factor_bytes;   /* factors, output, dense algebra, streams with the smallest slots */
    uint64_t slots_bytes;    /* additional bytes for more and larger slots */
    uint64_t resident_bytes; /* resident blocks, and the tables that describe them */

    /* Parameters for opening the device (base/device.h). */
    unsigned streams;
    uint64_t slot_bytes, expanded_bytes;
    uint32_t slot_tiles;
    uint64_t kept_bytes;
    /* Bytes reserved for expanded values of resident blocks. If memory is short, the blocks may
     * need more. */
    uint64_t kept_expanded_bytes;
    uint32_t kept_tiles;
    uint64_t kept_blocks; /* resident blocks of all devices */
    /* remaining bytes of the budget, which transcoded copies of resident blocks may use */
    uint64_t transcoded_bytes;
    /* True if kept_bytes and kept_tiles also cover all blocks that are not in kept_blocks: CPU and
     * GPU share the work, and blocks that are cached for the CPU also become resident. */
    bool keeps_cached;
    uint32_t unit_most;
    /* only TTM: fibers that a lane delivers at once; `streams` is then the number of lanes */
    uint32_t fibers;
};

/* Why passes do not update two modes. */
enum slc_fusion_reason {
    SLC_FUSION_TAKEN,      /* no reason: passes update two modes */
    SLC_FUSION_NOT_ASKED,  /* plain passes were requested, or only one mode is computed */
    SLC_FUSION_FIXED_BITS, /* deterministic bits must not depend on the budget */
    SLC_FUSION_COPIES,     /* MTTKRPs use copies per mode */
    SLC_FUSION_CPU_GROUPS, /* groups of CPU workers update one mode at a time */
    SLC_FUSION_GPU,        /* a device processes whole blocks */
    SLC_FUSION_NO_RANGES,  /* no layout has ranges of rows that fit in the ring */
    SLC_FUSION_FEW_RANGES, /* fewer ranges than threads */
    SLC_FUSION_NO_MEMORY,  /* not enough memory for the slots of a range and a second output */
    SLC_FUSION_NO_GAIN     /* fused passes would read as many bytes or more */
};

/* Passes that update two modes. */
struct slc_plan_fusion {
    enum slc_fusion_reason reason;
    uint32_t modes;                       /* bit n: a pass for mode n also updates the next mode */
    uint32_t seconds;                     /* bit n: mode n is the next mode of such a pass */
    uint64_t ranges[SLC_MAX_ORDER];       /* number of ranges of rows, per mode of `modes` */
    uint64_t range_blocks[SLC_MAX_ORDER]; /* blocks of the largest range */
    uint64_t table_bytes[SLC_MAX_ORDER];  /* bytes of the table of ranges */
    struct slc_conflict_choice choices[SLC_MAX_ORDER]; /* conflict strategies of second modes */
    uint64_t output_bytes;                             /* output of the MTTKRP of the second mode */
    uint64_t scratch_bytes; /* largest scratch of kernels for the second mode */
    /* Bytes that an iteration would read with fused passes if this plan has plain passes, or with
     * plain passes if it has fused passes. UINT64_MAX if no such plan was made. */
    uint64_t other_read_bytes;
};

/* Updates of rows from their nonzeros (engine/stream/rows/row_pass.h). All zero if no solver needs
 * them. */
struct slc_plan_rows {
    uint32_t segment_nnz; /* nonzeros of a segment, SLC_ROW_SEGMENT_NNZ */
    uint32_t buffer_nnz;  /* nonzeros that a worker holds decoded; at least two segments or tiles */
    uint32_t product_nnz; /* nonzeros for which a worker holds products of factor rows */
    uint64_t worker_bytes; /* buffers of all workers */
    uint64_t table_bytes;  /* tables of all modes */
    uint64_t gather_nnz;   /* nonzeros that are gathered at once; 0: no mode is gathered */
    uint64_t gather_bytes; /* memory for gathered nonzeros */
    uint32_t gathered;     /* bit n: mode n has no sorted layout, so its rows are gathered */
    /* Bit n: mode n has its own memory, which keeps all its nonzeros between updates. The other
     * gathered modes share memory for gather_nnz nonzeros. */
    uint32_t gather_kept;
    /* Expected passes over the layout per update of a gathered mode; the exact number depends on
     * the nonzeros of the rows. */
    uint64_t gather_passes[SLC_MAX_ORDER];
    uint64_t range_blocks; /* blocks of the largest range with several rows: least slots */
    uint64_t range_nnz;    /* nonzeros of the largest range with several rows */
    /* Rows whose blocks exceed the ring, and the bytes that one more traversal of them reads. */
    uint64_t streamed_rows[SLC_MAX_ORDER];
    uint64_t streamed_bytes[SLC_MAX_ORDER];
    /* Part of iteration_read_bytes that is read for repeated traversals of streamed rows. An
     * estimate, because rows may need fewer or more traversals than request.rows.traversals. */
    uint64_t repeated_bytes;
    /* If modes are gathered: estimated bytes of the missing sorted layouts on the drive, and bytes
     * that an iteration would read with them; otherwise 0. */
    uint64_t missing_bytes, sorted_read_bytes;
};

/* The plan. Every byte count is the size of a memory mapping. */
struct slc_plan {
    struct slc_plan_request request; /* the request with defaults filled in; io may still be AUTO */
    unsigned threads;                /* total number of threads */
    unsigned cpu_groups;             /* 0: no groups */
    unsigned group_threads;          /* threads per group; all threads if there are no groups */
    struct slc_placement placement;  /* processors and memory nodes of the threads */
    enum slc_schedule schedule;      /* never AUTO */
    /* For each computed mode, the conflict strategy and the rival strategy that the first pass
     * tries. */
    struct slc_conflict_choice choices[SLC_MAX_ORDER];
    /* For each computed mode, the strategy that is not tried because its scratch does not fit in
     * memory; SLC_CONFLICT_AUTO if there is none. */
    enum slc_conflict untried[SLC_MAX_ORDER];
    /* resident bytes of program and libraries now, plus a margin for stacks and later growth */
    uint64_t process_bytes;
    uint64_t present_bytes; /* process_bytes without the margin */
    uint64_t index_bytes;   /* index of the block file, held by the reader */
    uint64_t factor_bytes;  /* all factor matrices, including every group's copies */
    /* the largest MTTKRP output, times the number of groups; for TTM, rows and buffers (ttm.h) */
    uint64_t output_bytes;
    uint64_t dense_bytes; /* dense algebra, R x R matrices */
    /* Host memory for devices: for several devices, the ring that exchanges rows, and the ownership
     * tables; for GPUs, also block descriptions and other memory. */
    uint64_t device_bytes;
    uint64_t scratch_bytes; /* largest kernel scratch of a mode, times the number of groups */
    uint64_t decoder_bytes; /* decoders of all workers */
    /* The longest permutation, with which the rows of a relabelled mode are permuted; for TTM all
     * permutations, with which the indices of fibers are restored. */
    uint64_t label_bytes;
    unsigned slot_count;
    uint64_t slot_bytes;
    unsigned layout_count;
    struct slc_plan_layout layouts[SLC_MAX_LAYOUTS];
    unsigned mode_layout[SLC_MAX_ORDER]; /* layout from which a computed mode is read */
    /* number of partitions if the layout of the mode is sorted by the mode; otherwise 0 */
    uint64_t partitions[SLC_MAX_ORDER];
    uint64_t cache_bytes;   /* bytes of the cached encoded blocks of all layouts */
    uint64_t cached_blocks; /* number of cached encoded blocks */
    uint64_t copies_bytes;  /* bytes to make and hold copies per mode; 0: no copies */
    /* If copies are possible but do not fit, the bytes of the copies and the bytes that the budget
     * leaves for them; otherwise 0. */
    uint64_t copies_wanted_bytes, copies_room_bytes;
    uint64_t total_bytes; /* sum of all memory that the plan uses */
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* smallest sufficient budget */
    struct slc_plan_gpu gpu;
    unsigned mode_order[SLC_MAX_ORDER]; /* order in which CP-ALS updates the modes */
    struct slc_plan_fusion fusion;
    struct slc_plan_rows rows;
    /* passes per iteration of CP-ALS: N for N modes, N/2 or more if fused; 1 for MTTKRP */
    double passes;
    uint64_t iteration_bytes; /* padded bytes of the blocks of all passes of an iteration */
    /* Exact bytes that an iteration reads once the cache is filled. */
    uint64_t iteration_read_bytes;
    /* Bytes that an iteration would read with `blco` alone if this plan reads sorted layouts, or
     * from sorted layouts if this plan reads `blco`. UINT64_MAX if there is no such plan, or if it
     * does not fit in the budget. */
    uint64_t other_read_bytes;
};

/* Returns the additional memory of passes that update two modes, compared with plain passes. */
static inline uint64_t slc_plan_fused_bytes(const struct slc_plan_fusion *fusion)
{
    uint64_t bytes = fusion->output_bytes + fusion->scratch_bytes;

    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        bytes += (fusion->modes >> n & 1U) != 0 ? fusion->table_bytes[n] : 0;
    }
    return bytes;
}

/* Returns the memory of updates of rows from their nonzeros. Saturates at UINT64_MAX. */
static inline uint64_t slc_plan_rows_bytes(const struct slc_plan_rows *rows)
{
    const uint64_t parts[] = {rows->worker_bytes, rows->table_bytes, rows->gather_bytes};
    uint64_t sum = 0;

    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        sum = parts[i] > UINT64_MAX - sum ? UINT64_MAX : sum + parts[i];
    }
    return sum;
}

/* Checks that `mode_order` is a permutation of the modes 0 .. order - 1. Errors: SLC_ERR_USAGE,
 * with the first wrong element. */
enum slc_status slc_plan_check_order(unsigned order,
                                     const unsigned *mode_order,
                                     struct slc_error *err) SLC_NODISCARD;

/* Return the padded bytes of the blocks that a pass for `mode`, or all passes of an iteration, copy
 * to GPUs once the resident blocks are in GPU memory. The result is an upper bound if the CPU
 * computes some blocks. */
uint64_t slc_plan_pass_copied(const struct slc_plan *plan, unsigned mode);
uint64_t slc_plan_iteration_copied(const struct slc_plan *plan);

/* Returns true if every MTTKRP uses copies per mode. The plan's `choices` are then unused. */
static inline bool slc_plan_starts_with_copies(const struct slc_plan *plan)
{
    return plan->copies_bytes > 0 && plan->request.copies == SLC_COPIES_ALWAYS;
}

/* Returns true if `block` is one of the `kept` blocks, of `count` in all, that stay in memory: the
 * first block, and further blocks at equal distances. Blocks at equal distances keep the drive busy
 * throughout a pass in file order. If the first `kept` blocks were kept instead, the drive could be
 * idle while these blocks are computed. Needs: count * kept < 2^64, which holds for every index
 * that fits in memory. */
static inline bool slc_plan_keeps(uint64_t kept, uint64_t count, uint64_t block)
{
    return kept > 0 && (block == 0 || block * kept / count != (block - 1) * kept / count);
}

/* Returns true if `block` is one of the blocks cached in host memory. The cached blocks are at
 * equal distances among the blocks that are not resident in GPU memory. */
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
