/*
 * Sorts one bucket: loads its chunks, forms final keys, sorts them stably in input order, combines
 * duplicates in input order and drops zeros.
 *
 * The sort is a most-significant-digit radix sort with at most ten bits per level: after one pass
 * over the bucket, the groups of records with equal digits fit the cache. At the last level, most
 * groups hold about one record, so the final insertion sort moves few records. Bits on which all
 * keys of a group agree are skipped. The keys of a bucket share their upper bits, so they need only
 * two or three passes.
 *
 * If a single coordinate overflowed a bucket, a bucket may hold only some entries of its first or
 * last coordinate. The caller combines them with the entries of the neighbouring buckets.
 */
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
    uint64_t area_bytes; /* slc_bucket_area_bytes */
    bool lower_shared;   /* the previous bucket may end with the first coordinate of this bucket */
    bool upper_shared;   /* the next bucket may begin with the last coordinate of this bucket */
    uint32_t completes;  /* number of push buckets that are complete after this bucket; may be 0 */
    /* Bounds of all keys. Wide keys whose bounds differ by less than 2^64 are sorted as 64-bit
     * differences. */
    slc_u128 first, last;
};

/* Constant for all buckets of a tensor. */
struct slc_sort_plan {
    struct slc_spill *spill;
    struct slc_recoder *recoders; /* indexed by frame number; convert keys to `layout` */
    uint32_t frame_count;
    bool resumed; /* chunks may come from another run: keys are checked against the bounds of their
                     bucket */
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    uint64_t index_base;
    enum slc_duplicates duplicates;
    enum slc_value_choice value;
    const struct slc_transforms *transforms; /* applied to combined values; NULL: none. Borrowed */
    const struct slc_stop *stop;             /* checked between chunks while loading; may be NULL */
};

struct slc_sort_counts {
    uint64_t duplicates;
    uint64_t explicit_zeros;
    uint64_t rounded_values;
};

/* Result of a sort; points into the area passed to it. */
struct slc_sorted {
    /* Values of the first coordinate in input order, not combined (lower_shared only). */
    uint64_t raw_count;
    uint64_t raw_lo, raw_hi;
    const double *raw_values;
    /* Final nonzeros, strictly ascending. If key_hi is NULL, bits 64..127 are `upper` for the first
     * `carry` nonzeros and `upper` + 1 for the rest. */
    uint64_t count;
    const uint64_t *key_lo;
    const uint64_t *key_hi;
    uint64_t upper;
    uint64_t carry;
    const double *values;
    /* True if the last coordinate is still incomplete: its value combines only the entries of this
     * bucket (upper_shared only). */
    bool open;
    uint64_t open_lo, open_hi;
    double open_value;
    struct slc_sort_counts counts;
};

/* Source of a bucket's chunks. */
struct slc_bucket_source {
    uint8_t *chunk_data;          /* page-aligned; holds any chunk */
    struct slc_read_ahead *ahead; /* NULL: no reading ahead */
    /* Started by the caller with the bucket's chain; the sort ends it. */
    struct slc_read_request *request;
};

enum { SLC_NARROW_RECORD_BYTES = 16, SLC_WIDE_RECORD_BYTES = 24, SLC_RUN_SLOT_BYTES = 24 };

/* True if records hold whole keys of more than 64 bits. */
static inline bool slc_bucket_is_wide(const struct slc_sort_plan *plan,
                                      const struct slc_bucket *bucket)
{
    return plan->tables.wide && bucket->last - bucket->first > UINT64_MAX;
}

/* Bytes of the area for sorting the bucket; UINT64_MAX if it has too many entries. */
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

/*
 * Sorts `bucket` in `area` (slc_bucket_area_bytes, 8-byte aligned). Errors: SLC_ERR_INPUT naming
 * the 1-based coordinate (duplicates under SLC_DUPLICATES_ERROR, an overflowing sum), SLC_ERR_IO,
 * SLC_ERR_DAMAGED (the spill file).
 */
enum slc_status slc_bucket_sort(const struct slc_sort_plan *plan,
                                const struct slc_bucket *bucket,
                                void *area,
                                const struct slc_bucket_source *source,
                                struct slc_sorted *sorted,
                                struct slc_error *err) SLC_NODISCARD;

/* Combines a later duplicate into `value` by the plan's policy (SLC_DUPLICATES_ERROR fails). */
enum slc_status slc_sort_combine(const struct slc_sort_plan *plan,
                                 uint64_t key_lo,
                                 uint64_t key_hi,
                                 double later,
                                 double *value,
                                 struct slc_error *err) SLC_NODISCARD;

/* Finishes the combined value of a coordinate: rounds it if requested and updates the counts.
 * *keep is false for zeros. Errors: SLC_ERR_INPUT naming the coordinate if the value is
 * infinite. */
enum slc_status slc_sort_complete_value(const struct slc_sort_plan *plan,
                                        uint64_t key_lo,
                                        uint64_t key_hi,
                                        double *value,
                                        bool *keep,
                                        struct slc_sort_counts *counts,
                                        struct slc_error *err) SLC_NODISCARD;

/* Checks that the plan knows the frame of a fetched chunk. Errors: SLC_ERR_DAMAGED. */
enum slc_status slc_sort_check_chunk(const struct slc_sort_plan *plan,
                                     const struct slc_chunk *chunk,
                                     struct slc_error *err) SLC_NODISCARD;

/* Forms the final keys of entries begin .. begin + count - 1 (at most SLC_KEY_BATCH) of a checked
 * chunk and, unless `values` is NULL, copies their values. hi: `count` words, written only if
 * `want_hi`. */
void slc_sort_entries(const struct slc_sort_plan *plan,
                      const struct slc_chunk *chunk,
                      uint32_t begin,
                      uint32_t count,
                      bool want_hi,
                      uint64_t *lo,
                      uint64_t *hi,
                      double *values);

#endif
