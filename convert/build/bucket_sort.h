/* Sorts one bucket: loads its chunks, forms the final keys, sorts the entries by key, combines
 * duplicates in input order and drops zeros unless they are kept.
 *
 * The sort is a stable radix sort that starts at the most significant digit. A digit has at most
 * ten bits. After the first distribution, each group of records with equal digits fits the cache.
 * After the last distribution, most groups hold about one record, so the final insertion sort moves
 * few records. Bits on which all keys of a group agree are skipped. The keys of a bucket share
 * their upper bits, so two or three distributions are enough.
 *
 * If a single coordinate has more entries than fit a bucket, its entries are in several buckets,
 * and a bucket may hold only some entries of its first or last coordinate. The caller combines the
 * entries of such a coordinate across buckets. */
#ifndef SLC_CONVERT_BUCKET_SORT_H
#define SLC_CONVERT_BUCKET_SORT_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "base/key.h"
#include "convert/build/sort/duplicates.h"
#include "convert/build/sort/key_tables.h"
#include "convert/build/sort/recode.h"
#include "convert/build/sort/transform.h"
#include "convert/build/spill/read_ahead.h"
#include "convert/build/spill/spill.h"

#include <stdbool.h>
#include <stdint.h>

struct slc_bucket {
    struct slc_chain chain;
    uint64_t area_bytes; /* as slc_bucket_area_bytes returns */
    bool lower_shared;   /* the previous bucket may end with the first coordinate of this bucket */
    bool upper_shared;   /* the next bucket may begin with the last coordinate of this bucket */
    /* number of the builder's first buckets whose nonzeros are all written once this bucket is
     * written; 0: unknown */
    uint32_t completes;
    /* Every key is in first .. last. Keys are sorted as 64-bit differences from `first`, unless the
     * bounds differ by 2^64 or more. */
    slc_u128 first, last;
};

/* Settings of the sort that are the same for all buckets of a tensor. */
struct slc_sort_plan {
    struct slc_spill *spill;
    struct slc_recoder *recoders; /* one per key frame; they convert keys to `layout` */
    uint32_t frame_count;
    bool resumed; /* chunks may come from another run: keys are checked against the bounds of their
                     bucket */
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    uint64_t index_base;
    enum slc_duplicates duplicates;
    enum slc_value_choice value;
    bool keep_zeros;
    const struct slc_transforms *transforms; /* applied to combined values; borrowed; NULL: none */
    const struct slc_stop *stop;             /* checked between chunks while loading; may be NULL */
};

struct slc_sort_counts {
    uint64_t duplicates;
    uint64_t explicit_zeros;
    uint64_t rounded_values;
};

/* Result of a sort. The pointers point into the area that was passed to slc_bucket_sort. */
struct slc_sorted {
    /* Only if `lower_shared`: the uncombined values of the first coordinate, in input order. */
    uint64_t raw_count;
    uint64_t raw_lo, raw_hi;
    const double *raw_values;
    /* Final nonzeros by strictly ascending key. If key_hi is NULL, bits 64 to 127 of a key are
     * `upper` for the first `carry` nonzeros and `upper` + 1 for the rest. */
    uint64_t count;
    const uint64_t *key_lo;
    const uint64_t *key_hi;
    uint64_t upper;
    uint64_t carry;
    const double *values;
    /* True if the next bucket may have more entries of the last coordinate (only if
     * `upper_shared`). `open_value` then combines only this bucket's entries of the coordinate. */
    bool open;
    uint64_t open_lo, open_hi;
    double open_value;
    uint64_t open_count; /* number of entries in open_value */
    struct slc_sort_counts counts;
};

/* Memory and read-ahead request for loading the chunks of a bucket. */
struct slc_bucket_source {
    uint8_t *chunk_data;          /* page-aligned; large enough for any chunk */
    struct slc_read_ahead *ahead; /* NULL: chunks are not read ahead */
    /* The caller starts the request for the bucket's chain; the sort ends the request. */
    struct slc_read_request *request;
};

enum { SLC_NARROW_RECORD_BYTES = 16, SLC_WIDE_RECORD_BYTES = 24, SLC_RUN_SLOT_BYTES = 24 };

/* Returns true if records hold whole keys of more than 64 bits, not 64-bit differences. */
static inline bool slc_bucket_is_wide(const struct slc_sort_plan *plan,
                                      const struct slc_bucket *bucket)
{
    return plan->tables.wide && bucket->last - bucket->first > UINT64_MAX;
}

/* Returns the bytes of the area for sorting the bucket; UINT64_MAX if it has more than UINT32_MAX
 * entries or runs (spill/chunk.h). */
static inline uint64_t slc_bucket_area_bytes(const struct slc_sort_plan *plan,
                                             const struct slc_bucket *bucket)
{
    uint64_t entries = bucket->chain.entries;
    uint64_t runs = bucket->chain.runs;
    uint64_t record_bytes =
        slc_bucket_is_wide(plan, bucket) ? SLC_WIDE_RECORD_BYTES : SLC_NARROW_RECORD_BYTES;

    return entries > UINT32_MAX || runs > UINT32_MAX
               ? UINT64_MAX
               : entries * 2 * record_bytes + runs * SLC_RUN_SLOT_BYTES;
}

/* Sorts `bucket` in `area` (slc_bucket_area_bytes bytes, 8-byte aligned). Errors: SLC_ERR_INPUT,
 * which names the 1-based coordinate, as for slc_sort_combine and slc_sort_complete_value;
 * SLC_ERR_IO; SLC_ERR_INTERRUPTED; SLC_ERR_DAMAGED if the spill file is damaged. */
enum slc_status slc_bucket_sort(const struct slc_sort_plan *plan,
                                const struct slc_bucket *bucket,
                                void *area,
                                const struct slc_bucket_source *source,
                                struct slc_sorted *sorted,
                                struct slc_error *err) SLC_NODISCARD;

/* Combines a later duplicate into `value` by the plan's policy for duplicates; for the mean,
 * `value` is a sum until slc_sort_divide. Errors: SLC_ERR_INPUT under SLC_DUPLICATES_ERROR. */
enum slc_status slc_sort_combine(const struct slc_sort_plan *plan,
                                 uint64_t key_lo,
                                 uint64_t key_hi,
                                 double later,
                                 double *value,
                                 struct slc_error *err) SLC_NODISCARD;

/* Divides the sum of `count` entries by their number if the policy for duplicates is the mean. */
static inline double slc_sort_divide(const struct slc_sort_plan *plan, double value, uint64_t count)
{
    return plan->duplicates == SLC_DUPLICATES_MEAN ? value / (double)count : value;
}

/* Completes the combined value of a coordinate: applies the transforms, rounds the value to f32 if
 * requested, and updates the counts. *keep is false if the value is 0 and zeros are not kept; a
 * kept zero is +0. Errors: SLC_ERR_INPUT naming the coordinate if the value is not finite, before
 * or after these steps. */
enum slc_status slc_sort_complete_value(const struct slc_sort_plan *plan,
                                        uint64_t key_lo,
                                        uint64_t key_hi,
                                        double *value,
                                        bool *keep,
                                        struct slc_sort_counts *counts,
                                        struct slc_error *err) SLC_NODISCARD;

/* Checks that the plan has a recoder for the key frame of a chunk. Errors: SLC_ERR_DAMAGED. */
enum slc_status slc_sort_check_chunk(const struct slc_sort_plan *plan,
                                     const struct slc_chunk *chunk,
                                     struct slc_error *err) SLC_NODISCARD;

/* Forms the final keys of entries begin .. begin + count - 1 (count at most SLC_KEY_BATCH) of a
 * chunk that slc_sort_check_chunk accepted. Also copies the values unless `values` is NULL. `hi`:
 * `count` words, needed and written only if `want_hi` or if the chunk's keys change. */
void slc_sort_entries(const struct slc_sort_plan *plan,
                      const struct slc_chunk *chunk,
                      uint32_t begin,
                      uint32_t count,
                      bool want_hi,
                      uint64_t *lo,
                      uint64_t *hi,
                      double *values);

#endif
