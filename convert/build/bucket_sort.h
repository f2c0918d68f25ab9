/*
 * Sorts one bucket: loads its chunks, forms final keys, sorts them stably in input order, combines
 * duplicates in input order and drops zeros.
 *
 * The sort is a most-significant-digit radix sort with at most ten bits per level: after one pass
 * over the bucket its pieces fit the cache. Digits leave about one record each, so the final
 * insertion sorts move little. Bits that are equal in a piece cost nothing, so keys of a bucket,
 * which share their upper bits, need two or three passes.
 *
 * A bucket may hold only a part of the entries of its first or last coordinate, if that coordinate
 * alone overflowed a bucket. The caller combines those entries with the neighbours'.
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
    bool lower_shared;   /* the previous bucket may end with this one's first coordinate */
    bool upper_shared;   /* the next bucket may begin with this one's last coordinate */
    uint32_t completes;  /* push buckets done with this one; 0: none ends here */
    /* Bounds of all keys: wide keys in a short range are sorted by 64-bit differences. */
    slc_u128 first, last;
};

/* Constant for all buckets of a tensor. */
struct slc_sort_plan {
    struct slc_spill *spill;
    struct slc_recoder *recoders; /* by frame number; to `layout` */
    uint32_t frame_count;
    bool resumed; /* chunks may come from another run: keys are checked against the bounds of their
                     bucket */
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    uint64_t index_base;
    enum slc_duplicates duplicates;
    enum slc_value_choice value;
    const struct slc_transforms *transforms; /* of combined values; NULL: none. Borrowed */
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
    /* The last coordinate, combined with the entries seen so far (upper_shared only). */
    bool open;
    uint64_t open_lo, open_hi;
    double open_value;
    struct slc_sort_counts counts;
};

/* Source of a bucket's chunks. */
struct slc_bucket_source {
    uint8_t *chunk_data;              /* page-aligned; holds any chunk */
    struct slc_read_ahead *ahead;     /* NULL: no reading ahead */
    struct slc_read_request *request; /* started with the bucket's chain; ended here */
};

enum { SLC_NARROW_RECORD_BYTES = 16, SLC_WIDE_RECORD_BYTES = 24, SLC_RUN_SLOT_BYTES = 24 };

/* Whether records hold complete keys of more than 64 bits. */
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

/* Completes a coordinate's value: rounds it if requested and counts it; *keep is false for zeros.
 * Errors: SLC_ERR_INPUT naming the coordinate if the value is infinite. */
enum slc_status slc_sort_complete_value(const struct slc_sort_plan *plan,
                                        uint64_t key_lo,
                                        uint64_t key_hi,
                                        double *value,
                                        bool *keep,
                                        struct slc_sort_counts *counts,
                                        struct slc_error *err) SLC_NODISCARD;

/* Checks that the plan has the frame of a fetched chunk. Errors: SLC_ERR_DAMAGED. */
enum slc_status slc_sort_check_chunk(const struct slc_sort_plan *plan,
                                     const struct slc_chunk *chunk,
                                     struct slc_error *err) SLC_NODISCARD;

/* Final keys of entries begin .. begin + count - 1 (at most SLC_KEY_BATCH) of a checked chunk, and
 * their values unless NULL. hi: `count` words, written only if `want_hi`. */
void slc_sort_entries(const struct slc_sort_plan *plan,
                      const struct slc_chunk *chunk,
                      uint32_t begin,
                      uint32_t count,
                      bool want_hi,
                      uint64_t *lo,
                      uint64_t *hi,
                      double *values);

#endif
