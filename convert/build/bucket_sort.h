/*
 * Sorts one bucket: loads its chunks, puts their entries in input order, forms final keys, sorts
 * them stably, combines duplicates in input order and drops zeros.
 *
 * The sort is a most-significant-digit radix sort of at most ten bits a level: after one pass over
 * the bucket its pieces fit the cache. Digits leave about one record each, so that the insertion
 * sorts it ends in move little.
 * Bits that are equal in a piece cost nothing, so keys of a bucket, which share their upper bits,
 * take two or three passes.
 *
 * A bucket may hold only a part of the entries of its first or last coordinate, when that
 * coordinate alone overflowed a bucket. Those entries are left for the caller to combine with the
 * neighbours'.
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
    bool lower_shared;   /* the bucket before may end with this one's first coordinate */
    bool upper_shared;   /* the bucket after may begin with this one's last coordinate */
    uint32_t completes;  /* so many of the buckets that the push filled end with it; 0: none does */
    /* No key is outside of these: long ones that are near are sorted by 64-bit differences. */
    slc_u128 first, last;
};

/* What all buckets of a tensor have in common. */
struct slc_sort_plan {
    struct slc_spill *spill;
    struct slc_recoder *recoders; /* by the number of a frame; to `layout` */
    uint32_t frame_count;
    bool resumed; /* chunks may be those of another run: keys are checked against their bucket's */
    struct slc_key_layout layout;
    struct slc_key_tables tables;
    uint64_t index_base;
    enum slc_duplicates duplicates;
    enum slc_value_choice value;
    const struct slc_transforms *transforms; /* of complete values; NULL: none. Borrowed */
    const struct slc_stop *stop; /* looked at between chunks, which are loaded; may be NULL */
};

struct slc_sort_counts {
    uint64_t duplicates;
    uint64_t explicit_zeros;
    uint64_t rounded_values;
};

/* Result of a sort; points into the area it was given. */
struct slc_sorted {
    /* Values of the first coordinate in input order, not combined (lower_shared only). */
    uint64_t raw_count;
    uint64_t raw_lo, raw_hi;
    const double *raw_values;
    /*
     * Final nonzeros, strictly ascending. Where key_hi is NULL, bits 64..127 are `upper` of the
     * first `carry`, and one more of all others.
     */
    uint64_t count;
    const uint64_t *key_lo;
    const uint64_t *key_hi;
    uint64_t upper;
    uint64_t carry;
    const double *values;
    /* The last coordinate, combined as far as it is known (upper_shared only). */
    bool open;
    uint64_t open_lo, open_hi;
    double open_value;
    struct slc_sort_counts counts;
};

/* Where a bucket's chunks come from. */
struct slc_bucket_source {
    uint8_t *chunk_data;              /* in pages; holds any chunk */
    struct slc_read_ahead *ahead;     /* NULL: nothing is read ahead */
    struct slc_read_request *request; /* begun with the bucket's chain; ended here */
};

enum { SLC_NARROW_RECORD_BYTES = 16, SLC_WIDE_RECORD_BYTES = 24, SLC_RUN_SLOT_BYTES = 24 };

/* Whether records hold whole keys of more than 64 bits. */
static inline bool slc_bucket_is_wide(const struct slc_sort_plan *plan,
                                      const struct slc_bucket *bucket)
{
    return plan->tables.wide && bucket->last - bucket->first > UINT64_MAX;
}

/* Bytes of area that sorting the bucket takes; UINT64_MAX when it has too many entries. */
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
 * Sorts `bucket` within `area` (slc_bucket_area_bytes, 8-byte aligned). Errors: SLC_ERR_INPUT
 * naming the 1-based coordinate (duplicates under SLC_DUPLICATES_ERROR, a sum that overflows),
 * SLC_ERR_IO, SLC_ERR_DAMAGED (the spill file).
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

/*
 * A coordinate's value is complete: rounds it where asked and counts; *keep is false for zeros.
 * Errors: SLC_ERR_INPUT when it is infinite, naming the coordinate.
 */
enum slc_status slc_sort_settle(const struct slc_sort_plan *plan,
                                uint64_t key_lo,
                                uint64_t key_hi,
                                double *value,
                                bool *keep,
                                struct slc_sort_counts *counts,
                                struct slc_error *err) SLC_NODISCARD;

/* Whether the plan knows the frame of a chunk that was fetched. Errors: SLC_ERR_DAMAGED. */
enum slc_status slc_sort_check_chunk(const struct slc_sort_plan *plan,
                                     const struct slc_chunk *chunk,
                                     struct slc_error *err) SLC_NODISCARD;

/*
 * Final keys of entries begin .. begin + count - 1 (at most SLC_KEY_BATCH) of such a chunk, and
 * their values (not if NULL). hi: room for as many; written only where `want_hi`.
 */
void slc_sort_entries(const struct slc_sort_plan *plan,
                      const struct slc_chunk *chunk,
                      uint32_t begin,
                      uint32_t count,
                      bool want_hi,
                      uint64_t *lo,
                      uint64_t *hi,
                      double *values);

#endif
