/* Stores: made from text or random numbers, opened, verified and written as text. */
#ifndef SLUICE_STORE_H
#define SLUICE_STORE_H

#include "sluice/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_convert_options {
    uint64_t struct_bytes; /* set by the init function */
    enum sluice_dialect dialect;
    int32_t index_base;  /* -1 found out, 0 or 1 */
    uint32_t dims_order; /* 0: dims from the header or the data */
    uint64_t dims[SLUICE_MAX_ORDER];
    enum sluice_duplicates duplicates;
    enum sluice_codec codec;
    enum sluice_value value; /* SLUICE_VALUE_F32 rounds */
    uint32_t threads;        /* 0: all */
    uint64_t block_bytes;    /* target size of a block; 0: 4 MiB */
    uint64_t memory_bytes;   /* 0: 80 % of memory */
    const char *temp_folder; /* for spilled data; NULL: beside the output */
    uint64_t max_temp_bytes; /* of spilled data; 0: no limit */
    uint32_t overwrite;      /* non-zero: replace an existing store, at the very end */
    enum sluice_relabel relabel;
};

/* What a conversion decided and counted. */
struct sluice_convert_report {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    enum sluice_dialect dialect;
    uint32_t order;
    uint64_t dims[SLUICE_MAX_ORDER];
    uint32_t index_base;
    uint32_t reserved;
    uint64_t entries;        /* rows read */
    uint64_t duplicates;     /* merged into an earlier entry */
    uint64_t explicit_zeros; /* dropped */
    uint64_t nnz;            /* stored */
    uint64_t text_bytes;     /* read, decompressed */
    uint64_t store_bytes;    /* of the block file */
    double seconds;
    uint32_t relabelled_modes; /* bit n: mode n is numbered by frequency in the store */
    uint32_t reserved2;
};

SLC_API void sluice_convert_options_init(struct sluice_convert_options *options, uint64_t bytes);

/*
 * Converts the tensor `input` (text or binary, plain or compressed; "-": standard input) to the
 * store `output`. Needs: `output` does not exist, unless options->overwrite. `report` may be NULL.
 * Order: the store depends on the entries and their order alone, not on threads or memory. Errors:
 * SLC_ERR_INPUT with file, line and column for bad text; SLC_ERR_BUDGET naming the smallest budget;
 * SLC_ERR_IO, SLC_ERR_NOSPACE. Nothing is left on disk after an error.
 */
SLC_API enum slc_status sluice_convert(const char *input,
                                       const char *output,
                                       const struct sluice_convert_options *options,
                                       struct sluice_convert_report *report,
                                       struct slc_error *err);

struct sluice_generate_options {
    uint64_t struct_bytes;
    enum sluice_distribution distribution;
    enum sluice_codec codec;
    double zipf_exponent;
    uint32_t rank; /* > 0: values of a planted low-rank model; 0: integers 1 to 9 */
    uint32_t threads;
    double noise; /* standard deviation relative to the root mean square of the model's values */
    uint64_t seed;
    uint64_t block_bytes;
    uint64_t memory_bytes;
    uint32_t overwrite;
    enum sluice_relabel relabel; /* of a store */
};

SLC_API void sluice_generate_options_init(struct sluice_generate_options *options, uint64_t bytes);

/*
 * Writes a random tensor of `order` modes with `nnz` entries: a store when `output` ends in ".slc",
 * text otherwise. Order: a function of options, shape and seed alone.
 * Errors: SLC_ERR_USAGE for shapes that cannot hold nnz entries, those of writing.
 */
SLC_API enum slc_status sluice_generate(const char *output,
                                        uint32_t order,
                                        const uint64_t *dims,
                                        uint64_t nnz,
                                        const struct sluice_generate_options *options,
                                        struct slc_error *err);

struct sluice_store;

struct sluice_store_info {
    uint64_t struct_bytes; /* set by the caller to sizeof of the struct before the call */
    uint32_t order;
    enum sluice_precision value_type; /* SLUICE_F32 when every value is exactly a float */
    uint64_t dims[SLUICE_MAX_ORDER];
    uint64_t nnz;
    double norm; /* 2-norm of all values */
    uint64_t block_count;
    uint64_t store_bytes; /* of the block file */
    uint64_t content_sum; /* identifies the nonzeros as the store numbers them, in any order */
    enum sluice_codec codec;
    uint32_t relabelled_modes; /* bit n: the store numbers the indices of mode n its own way */
};

/*
 * Opens a finished store and validates manifest, header and index.
 * Owns: the caller closes *ret_store with sluice_store_close, which takes NULL.
 * Errors: SLC_ERR_FORMAT (not a store), SLC_ERR_UNSUPPORTED, SLC_ERR_DAMAGED, SLC_ERR_IO.
 */
SLC_API enum slc_status
sluice_store_open(const char *path, struct sluice_store **ret_store, struct slc_error *err);
SLC_API void sluice_store_close(struct sluice_store *store);

SLC_API enum slc_status sluice_store_info(const struct sluice_store *store,
                                          struct sluice_store_info *info,
                                          struct slc_error *err);

struct sluice_check_options {
    uint64_t struct_bytes;
    uint32_t fast;    /* non-zero: checksums only, nothing is decoded */
    uint32_t threads; /* 0: all */
    uint64_t memory_bytes;
    uint32_t max_findings; /* stop after so many; 0: 64 */
    uint32_t reserved;
    /* Called for each fault found, from one thread at a time; NULL to count only. */
    void (*found)(void *context, const struct slc_error *fault);
    void *context;
};

SLC_API void sluice_check_options_init(struct sluice_check_options *options, uint64_t bytes);

/*
 * Verifies a store. *ret_findings (may be NULL): faults found.
 * Errors: the status of the first fault; SLC_OK when there is none.
 */
SLC_API enum slc_status sluice_check(const char *path,
                                     const struct sluice_check_options *options,
                                     uint64_t *ret_findings,
                                     struct slc_error *err);

struct sluice_export_options {
    uint64_t struct_bytes;
    uint32_t index_base; /* of the text, 0 or 1 */
    uint32_t threads;
    uint64_t memory_bytes;
    uint32_t overwrite;
    uint32_t reserved;
};

SLC_API void sluice_export_options_init(struct sluice_export_options *options, uint64_t bytes);

/*
 * Writes a store as FROSTT text (`output` "-": standard output), values with the fewest digits that
 * read back to the same bits. *ret_lines (may be NULL): rows written.
 */
SLC_API enum slc_status sluice_export(const char *path,
                                      const char *output,
                                      const struct sluice_export_options *options,
                                      uint64_t *ret_lines,
                                      struct slc_error *err);

#ifdef __cplusplus
}
#endif
#endif
