/* Computing with a store: plans, MTTKRP, products with vectors and with a matrix. */
#ifndef SLUICE_COMPUTE_H
#define SLUICE_COMPUTE_H

#include "sluice/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How to compute: common to plan, MTTKRP and CPD. */
struct sluice_compute_options {
    uint64_t struct_bytes;
    uint64_t memory_bytes;           /* 0: 80 % of memory */
    uint32_t threads;                /* 0: all */
    enum sluice_precision precision; /* of factors and matrices; sums are f64 always */
    enum sluice_io io;
    enum sluice_schedule schedule;
    uint32_t deterministic;    /* non-zero: the same bits for any threads, I/O, codec and budget */
    uint32_t slots;            /* of the ring; 0: chosen */
    uint32_t no_cache;         /* non-zero: read every block in every pass, and hold no copies */
    enum sluice_copies copies; /* of CPD; a deterministic one has none */
    /*
     * A non-zero value stops the call: MTTKRP and products return SLC_ERR_INTERRUPTED, CPD a model
     * with SLUICE_STOP_SIGNAL. May be set by a signal handler or another thread. NULL: none.
     */
    volatile int *stop;
    enum sluice_pin pin; /* the calling thread runs where it did before when the call returns */
    enum sluice_layouts layouts;
    enum sluice_passes passes; /* of CPD */
    uint64_t io_limit;         /* bytes read a second at most; 0: no limit */
    enum sluice_device device;
    uint32_t streams;             /* of each GPU; 0: chosen */
    uint64_t device_memory_bytes; /* that may be used of each GPU's; 0: most of what is free */
    /*
     * "partitions" (of sorted layouts) or "nnz" (equal shares of blco): what several devices
     * divide; "static=F" (F from 0 to 1: the GPU's fraction of the nonzeros), "adaptive" or
     * "queue": how the CPU and one GPU share the work. NULL: partitions, and a GPU does all.
     * Products take the latter alone.
     */
    const char *split;
    /* Of MTTKRP and CPD: with SLUICE_DEVICE_GPU the GPUs in `devices` (0: the first), else how many
     * devices of the CPU, with `threads` threads each, divide the work; 0: none. */
    uint32_t device_count;
    uint32_t devices[SLUICE_MAX_DEVICES]; /* one may be named several times */
    uint32_t reserved;
    /* Of MTTKRP and products: called now and then from one thread at a time; NULL: no callback. */
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    /*
     * Plans with SLUICE_DEVICE_GPU only: plan for GPUs of this chip, which need not be in this
     * machine ("a100", "a100-80gb", "h100", "h200", "b200", "l40s"), with device_memory_bytes each;
     * 0: nine tenths of the chip's. NULL: the GPUs of this machine; if it has none and
     * device_memory_bytes is set, an h100. Any call that computes fails with SLC_ERR_USAGE.
     */
    const char *device_name;
};

SLC_API void sluice_compute_options_init(struct sluice_compute_options *options, uint64_t bytes);

/* What an operation will hold in memory and read from the drive. All in bytes. */
struct sluice_plan {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint64_t budget_bytes;
    uint64_t minimum_bytes; /* the smallest budget that works */
    uint64_t total_bytes;   /* the sum of the parts below */
    uint64_t process_bytes;
    uint64_t index_bytes;
    uint64_t factor_bytes;
    uint64_t output_bytes;
    uint64_t dense_bytes;
    uint64_t scratch_bytes;
    uint64_t decoder_bytes;
    uint64_t slot_bytes; /* of each of slot_count slots */
    uint64_t cache_bytes;
    uint64_t iteration_bytes;      /* of the blocks of all passes of an iteration */
    uint64_t iteration_read_bytes; /* what is read of them once the cache is filled */
    uint32_t slot_count;
    uint32_t threads;
    uint32_t passes; /* per iteration, rounded up */
    uint32_t reserved;
    uint64_t label_bytes;  /* while rows of a relabelled mode are moved */
    uint64_t copies_bytes; /* of copies per mode, 0: none */
    double mean_passes;    /* per iteration: halves where passes update two modes */
    /* Of a GPU's own memory, of each where there are several; zeros where the CPU computes. */
    uint64_t device_budget_bytes;
    uint64_t device_minimum_bytes; /* the smallest budget that works */
    uint64_t device_total_bytes;
    uint32_t device_streams;
    uint32_t device_count;           /* that divide the work between them; 0: nothing is divided */
    char device_name[128];           /* "": the CPU */
    uint64_t device_slot_bytes;      /* of each of device_streams slots that blocks are copied to */
    uint64_t device_resident_blocks; /* that stay in the memory of GPUs and are copied once */
    uint64_t device_resident_bytes;  /* what these take of each GPU's memory */
    /* Of other blocks, copied to GPUs in an iteration; at most, if the CPU shares the work. */
    uint64_t device_copied_bytes;
    uint64_t device_host_bytes; /* of the host's memory, for GPUs; part of the total */
    uint32_t device_described;  /* 1: device_name is a chip's, and no GPU has been opened */
    uint32_t device_multiprocessors;
};

/*
 * Plans sluice_cpd with this rank. `plan` is filled in after SLC_ERR_BUDGET, too; with
 * zeros where the indices of its layouts alone are more than the budget.
 * Cost: one look at the index. Errors: SLC_ERR_BUDGET naming the smallest budget, SLC_ERR_USAGE.
 */
SLC_API enum slc_status sluice_cpd_plan(const struct sluice_store *store,
                                        uint32_t rank,
                                        const struct sluice_compute_options *options,
                                        struct sluice_plan *plan,
                                        struct slc_error *err);

/* The same of sluice_mttkrp of a mode; an iteration is one. */
SLC_API enum slc_status sluice_mttkrp_plan(const struct sluice_store *store,
                                           uint32_t mode,
                                           uint32_t rank,
                                           const struct sluice_compute_options *options,
                                           struct sluice_plan *plan,
                                           struct slc_error *err);

/*
 * Matricized tensor times Khatri-Rao product.
 * Math: output(i, r) = sum over nonzeros x with index i in `mode` of x * product over m != mode of
 * factors[m](i_m, r) (Kolda and Bader, SIAM Review 2009, section 2.6).
 * Shapes: factors[m] is dims[m] x rank (factors[mode] may be NULL), output dims[mode] x rank.
 * Owns: all arrays are the caller's; they are copied in and out.
 * Order: as options->deterministic says; otherwise to rounding of reordered sums. A GPU has other
 * deterministic bits than the CPU.
 * Cost: one pass over the store, nnz * rank * order multiply-adds.
 * Errors: SLC_ERR_USAGE, SLC_ERR_INPUT (a number that is not finite), SLC_ERR_BUDGET, SLC_ERR_IO,
 * SLC_ERR_DAMAGED with file, block and offset, SLC_ERR_INTERRUPTED; `output` is unchanged then.
 */
SLC_API enum slc_status sluice_mttkrp(const struct sluice_store *store,
                                      uint32_t mode,
                                      uint32_t rank,
                                      const double *const *factors,
                                      double *output,
                                      const struct sluice_compute_options *options,
                                      struct slc_error *err);

struct sluice_ttv_options {
    uint64_t struct_bytes;
    enum sluice_codec codec; /* of the store that is written */
    uint32_t overwrite;      /* non-zero: replace an existing store, at the very end */
    uint64_t block_bytes;    /* target size of a block; 0: 4 MiB */
    const char *temp_folder; /* for what is sorted beyond memory; NULL: beside the output */
    uint64_t max_temp_bytes; /* of that; 0: no limit */
    uint32_t sort;           /* non-zero: sort sums that come in the order of the result, too */
    enum sluice_relabel relabel;
    /*
     * memory_bytes, threads, io, schedule, io_limit, stop, progress and what is of a GPU; NULL: the
     * defaults. Sums that come largest block first are sorted.
     */
    const struct sluice_compute_options *compute;
    /*
     * Whose fibers are kept together; of SLUICE_FIBERS_MODE the mode, and pieces of so many bits of
     * its indices (1 to 24; 0: 12).
     */
    enum sluice_fibers fibers;
    uint32_t fiber_mode;
    uint32_t fiber_bits;
    uint32_t reserved;
};

SLC_API void sluice_ttv_options_init(struct sluice_ttv_options *options, uint64_t bytes);

/* What a product with vectors came to. */
struct sluice_ttv_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t order;        /* of the result; 0: a number */
    uint32_t sorted;       /* sums were sorted, for want of a layout with whole fibers or memory */
    uint64_t dims[SLUICE_MAX_ORDER];
    double number;
    uint64_t nnz;         /* of the store that was written */
    uint64_t store_bytes; /* of its block file */
    uint64_t bytes_read;  /* from the drive */
    uint64_t fibers;      /* of the layout with whole fibers that was read, not empty; 0: another */
    uint64_t device_nnz;  /* nonzeros that a GPU multiplied */
};

/*
 * Tensor times vectors, in one mode or more.
 * Math: Y = X x_n v, y(f) = sum over the nonzeros x of mode-n fiber f of x * v(i_n) (Kolda and
 * Bader, SIAM Review 2009, section 2.5: the contracted product), for each mode that has a vector.
 * Shapes: vectors[n] is NULL, for a mode that is left, or has dims[n] finite numbers.
 * `output` is a store of the modes that are left, in their order and with their names; NULL where
 * every mode has a vector: the result is then report->number. Else `report` may be NULL. Needs:
 * `output` does not exist, unless options->overwrite. Owns: vectors are the caller's, and copied.
 * Order: sums in f64 in the order of the layout that is read: the same bits for any threads,
 * memory, I/O and schedule. That is the layout with whole fibers of the first mode with a vector
 * that has one (sluice layout --fiber), from which nothing has to be sorted.
 * Cost: one pass over the store, a multiply-add per nonzero and mode, writing the result.
 * Errors: SLC_ERR_USAGE (no vector at all; no output for a store, or one for a number),
 * SLC_ERR_INPUT (a number that is not finite, or a sum beyond f64), SLC_ERR_BUDGET naming the
 * smallest budget, SLC_ERR_IO, SLC_ERR_NOSPACE, SLC_ERR_DAMAGED with file, block and offset,
 * SLC_ERR_INTERRUPTED. Nothing is left on disk then.
 */
SLC_API enum slc_status sluice_ttv(const struct sluice_store *store,
                                   const double *const *vectors,
                                   const char *output,
                                   const struct sluice_ttv_options *options,
                                   struct sluice_ttv_report *report,
                                   struct slc_error *err);

struct sluice_ttm_options {
    uint64_t struct_bytes;
    const char *temp_folder; /* for what is sorted beyond memory; NULL: beside the output */
    uint32_t elements;       /* non-zero: add each nonzero to its row in memory */
    uint32_t reserved;
    /*
     * memory_bytes, threads, precision, io, pin, io_limit, stop, progress and what is of a GPU;
     * NULL: the defaults. Blocks are read in the order of the file.
     */
    const struct sluice_compute_options *compute;
};

SLC_API void sluice_ttm_options_init(struct sluice_ttm_options *options, uint64_t bytes);

/* What a product with a matrix came to. */
struct sluice_ttm_report {
    uint64_t struct_bytes;  /* set by the caller to sizeof of the struct before the call */
    uint64_t fibers;        /* that have nonzeros: rows of the result */
    uint64_t bytes_read;    /* from the drive */
    uint64_t bytes_written; /* of both files */
    uint32_t sorted;        /* a temporary store was made, for want of a layout with whole fibers */
    uint32_t reserved;
    uint64_t device_nnz; /* nonzeros that a GPU multiplied */
};

/*
 * Tensor times matrix, as files that may be larger than memory.
 * Math: y(f, r) = sum over the nonzeros x of mode-n fiber f of x * matrix(i_n, r), for the fibers
 * of `mode` that have nonzeros.
 * Shapes: matrix is dims[mode] x columns. The folder `output` gets coords.npy, int64, fibers x
 * (order - 1): the indices of each fiber in the other modes; and rows.npy, fibers x columns, of
 * the precision of the options. Files of an earlier result are replaced when both are complete.
 * Owns: the matrix is the caller's, and copied.
 * Order: fibers come in the order of the layout that is read, and the same layout gives the same
 * bytes for any threads, memory and I/O.
 * Cost: one pass over the store, nnz * columns multiply-adds, writing the result; where the store
 * has no layout with whole fibers of the mode (sluice layout --fiber), a sort of it into
 * OUTPUT.fibers.tmp, which is removed at the end.
 * Errors: SLC_ERR_USAGE, SLC_ERR_INPUT (a number that is not finite), SLC_ERR_BUDGET, SLC_ERR_IO,
 * SLC_ERR_NOSPACE, SLC_ERR_DAMAGED with file, block and offset, SLC_ERR_UNSUPPORTED (a mode too
 * long to be sorted for), SLC_ERR_INTERRUPTED; an earlier result is as it was then.
 */
SLC_API enum slc_status sluice_ttm(const struct sluice_store *store,
                                   uint32_t mode,
                                   uint32_t columns,
                                   const double *matrix,
                                   const char *output,
                                   const struct sluice_ttm_options *options,
                                   struct sluice_ttm_report *report,
                                   struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
