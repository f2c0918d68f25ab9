/* Sorts a bucket in a sort area, which holds two arrays of records and a table of the bucket's runs
 * (spill/chunk.h). The radix sort moves the records from one array to the other. Chunks are loaded
 * in the order of their chain (newest first). The first distribution reads the records run by run
 * in input order, and every distribution is stable, so entries with equal keys stay in input
 * order. */
#include "convert/build/bucket_sort.h"

#include "base/memory/bytes.h"
#include "convert/build/sort/heap_sort.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    /* Up to this number of records, an insertion sort is faster than a distribution. */
    INSERTION_SORT_MAX = 16,
    /* Most bits per digit. With more, the table of group ends would exceed the level-1 cache. */
    DIGIT_BITS = 10,
    /* Prefetch distance within a group, in records; prefetching helps if records exceed the
     * cache. */
    AHEAD_RECORDS = 8
};

struct narrow_record {
    uint64_t lo;
    double value;
};

struct wide_record {
    uint64_t lo, hi;
    double value;
};

/* A run, and the position of its first entry among the loaded records. */
struct run_slot {
    uint64_t sequence;
    uint32_t first;
    uint32_t count;
    uint64_t start;
};

_Static_assert(sizeof(struct narrow_record) == SLC_NARROW_RECORD_BYTES &&
                   sizeof(struct wide_record) == SLC_WIDE_RECORD_BYTES &&
                   sizeof(struct run_slot) == SLC_RUN_SLOT_BYTES,
               "must match slc_bucket_area_bytes");

/* Returns the number of bits of a digit that has about as many values as there are records
 * (sort_groups in bucket_sort_tmpl.h states the reason). */
static unsigned digit_width(uint32_t count)
{
    unsigned width = 31U - (unsigned)__builtin_clz(count | 4);

    return width < DIGIT_BITS ? width : DIGIT_BITS;
}

/* The digit of the first distribution: the highest bits in which a bucket's keys can differ. While
 * records are loaded, starts[v + 1] counts the records whose digit is v. */
struct first_digit {
    unsigned shift;
    unsigned mask;
    uint32_t starts[(1 << DIGIT_BITS) + 1];
};

/* Returns true if slc_sort_complete_value would keep the value unchanged: nothing is to be
 * transformed or rounded, and the value is finite and not 0. Without the sign bit, 0 has the
 * smallest bit pattern; infinity and NaN have the largest. */
static inline bool is_final(const struct slc_sort_plan *plan, double value)
{
    const uint64_t infinite = UINT64_C(0x7ff) << 52;

    return plan->value != SLC_VALUE_F32 && plan->transforms == NULL &&
           (slc_bits_f64(value) & ~(UINT64_C(1) << 63)) - 1 < infinite - 1;
}

#define RECORD      struct narrow_record
#define WIDE        0
#define NAME(name)  name##_narrow
#define KEY(record) (bucket->first + (record)->lo)
#include "convert/build/bucket_sort_tmpl.h"
#undef RECORD
#undef WIDE
#undef NAME
#undef KEY

#define RECORD      struct wide_record
#define WIDE        1
#define NAME(name)  name##_wide
#define KEY(record) ((slc_u128)(record)->hi << 64 | (record)->lo)
#include "convert/build/bucket_sort_tmpl.h"
#undef RECORD
#undef WIDE
#undef NAME
#undef KEY

/* Formats the 1-based coordinates of a key, "(3, 1, 7)", for messages. */
static void describe_key(const struct slc_sort_plan *plan, uint64_t lo, uint64_t hi, char text[420])
{
    uint64_t coords[SLC_MAX_ORDER];
    size_t used = 0;

    slc_key_decode(&plan->layout, (slc_u128)hi << 64 | lo, coords);
    for (unsigned mode = 0; mode < plan->layout.order; mode++) {
        used += (size_t)snprintf(text + used, 420 - used, "%s%llu", mode == 0 ? "(" : ", ",
                                 (unsigned long long)coords[mode] + 1);
    }
    snprintf(text + used, 420 - used, ")");
}

enum slc_status slc_sort_combine(const struct slc_sort_plan *plan,
                                 uint64_t key_lo,
                                 uint64_t key_hi,
                                 double later,
                                 double *value,
                                 struct slc_error *err)
{
    char text[420];

    switch (plan->duplicates) {
    case SLC_DUPLICATES_SUM:
    case SLC_DUPLICATES_MEAN:
        *value += later;
        return SLC_OK;
    case SLC_DUPLICATES_KEEP_FIRST:
        return SLC_OK;
    case SLC_DUPLICATES_KEEP_LAST:
        *value = later;
        return SLC_OK;
    case SLC_DUPLICATES_MIN:
        *value = later < *value ? later : *value;
        return SLC_OK;
    case SLC_DUPLICATES_MAX:
        *value = later > *value ? later : *value;
        return SLC_OK;
    case SLC_DUPLICATES_ERROR:
        break;
    }
    describe_key(plan, key_lo, key_hi, text);
    return slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_DUPLICATES,
                          "coordinate %s (indices start at 1) occurs more than once: choose sum, "
                          "mean, min, max, keep-first or keep-last to accept duplicates",
                          text);
}

enum slc_status slc_sort_complete_value(const struct slc_sort_plan *plan,
                                        uint64_t key_lo,
                                        uint64_t key_hi,
                                        double *value,
                                        bool *keep,
                                        struct slc_sort_counts *counts,
                                        struct slc_error *err)
{
    char text[420];

    if (!isfinite(*value)) {
        describe_key(plan, key_lo, key_hi, text);
        return slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_DUPLICATES,
                              "the duplicates of coordinate %s (indices start at 1) sum to %g, "
                              "which exceeds the range of f64: "
                              "scale the values, or choose another policy for duplicates",
                              text, *value);
    }
    if (plan->transforms != NULL) {
        const double before = *value;

        *value = slc_transforms_apply(plan->transforms, before);
        if (!isfinite(*value)) {
            describe_key(plan, key_lo, key_hi, text);
            return slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_TRANSFORM,
                                  "the transform yields %g for the value %.17g at coordinate %s "
                                  "(indices start at 1): "
                                  "log1p needs values above -1; for scale, choose a smaller factor",
                                  *value, before, text);
        }
    }
    if (plan->value == SLC_VALUE_F32) {
        /* The smallest value that does not round to a finite f32: halfway between the largest f32
         * and 2^128. */
        if (fabs(*value) >= 0x1.ffffffp127) {
            describe_key(plan, key_lo, key_hi, text);
            return slc_fail_field(err, SLC_ERR_INPUT, SLC_FIELD_VALUE,
                                  "the value %.17g at coordinate %s (indices start at 1) exceeds "
                                  "the range of f32: scale the values, or use f64",
                                  *value, text);
        }
        counts->rounded_values += (double)(float)*value != *value;
        *value = (double)(float)*value;
    }
    *keep = plan->keep_zeros || *value != 0;
    *value = *value == 0 ? 0 : *value; /* turns -0 into +0 */
    counts->explicit_zeros += !*keep;
    return SLC_OK;
}

enum slc_status slc_sort_check_chunk(const struct slc_sort_plan *plan,
                                     const struct slc_chunk *chunk,
                                     struct slc_error *err)
{
    return chunk->frame < plan->frame_count || chunk->frame == SLC_FRAME_FINAL
               ? SLC_OK
               : slc_fail(err, SLC_ERR_DAMAGED,
                          "a chunk of the spill file has an invalid key frame");
}

void slc_sort_entries(const struct slc_sort_plan *plan,
                      const struct slc_chunk *chunk,
                      uint32_t begin,
                      uint32_t count,
                      bool want_hi,
                      uint64_t *lo,
                      uint64_t *hi,
                      double *values)
{
    const bool same = chunk->frame == SLC_FRAME_FINAL || plan->recoders[chunk->frame].same;

    assert(count <= SLC_KEY_BATCH);
    slc_chunk_entries(chunk, begin, count, lo, want_hi || !same ? hi : NULL, values);
    if (!same) {
        slc_recode(&plan->recoders[chunk->frame], lo, hi, count);
    }
}

static struct first_digit choose_digit(const struct slc_sort_plan *plan,
                                       const struct slc_bucket *bucket)
{
    /* Whole keys of wide records agree above the highest bit in which the bounds differ. */
    slc_u128 differ = slc_bucket_is_wide(plan, bucket) ? bucket->first ^ bucket->last
                                                       : bucket->last - bucket->first;
    unsigned width = digit_width((uint32_t)bucket->chain.entries);
    unsigned bits = 0;

    while (bits < plan->layout.bits && differ >> bits != 0) {
        bits++;
    }

    return (struct first_digit){.shift = bits > width ? bits - width : 0,
                                .mask = (1U << width) - 1};
}

/* Returns true if all keys are within the bounds of the bucket. The sort examines only bits in
 * which keys within the bounds can differ. `hi`: NULL if keys have at most 64 bits. */
static bool
are_within(const struct slc_bucket *bucket, const uint64_t *lo, const uint64_t *hi, uint32_t count)
{
    bool within = true;

    for (uint32_t i = 0; i < count; i++) {
        const slc_u128 key = slc_key_join(lo[i], hi != NULL ? hi[i] : 0);

        within = within && key >= bucket->first && key <= bucket->last;
    }
    return within;
}

/* Loads the entries of a chunk into `records`, starting at record `at`, and counts their digits.
 * Returns false if the build was resumed and a key is outside the bucket. */
static bool load_records(const struct slc_sort_plan *plan,
                         const struct slc_bucket *bucket,
                         const struct slc_chunk *chunk,
                         void *records,
                         uint64_t at,
                         struct first_digit *first)
{
    bool wide = slc_bucket_is_wide(plan, bucket);
    struct narrow_record *narrow = records;
    struct wide_record *whole = records;
    const bool check = plan->resumed;
    uint64_t lo[SLC_KEY_BATCH];
    uint64_t hi[SLC_KEY_BATCH];
    double values[SLC_KEY_BATCH];

    for (uint32_t begin = 0; begin < chunk->count; begin += SLC_KEY_BATCH) {
        uint32_t count =
            chunk->count - begin < SLC_KEY_BATCH ? chunk->count - begin : SLC_KEY_BATCH;

        slc_sort_entries(plan, chunk, begin, count, wide || (check && plan->tables.wide), lo, hi,
                         values);
        if (check && !are_within(bucket, lo, plan->tables.wide ? hi : NULL, count)) {
            return false;
        }
        if (wide) {
            for (uint32_t i = 0; i < count; i++) {
                struct wide_record record = {lo[i], hi[i], values[i]};

                whole[at + begin + i] = record;
                first->starts[digit_wide(&record, first->shift, first->mask) + 1]++;
            }
        } else {
            /* The bounds differ by less than 2^64, so the lower words yield key - bucket->first. */
            for (uint32_t i = 0; i < count; i++) {
                struct narrow_record record = {lo[i] - (uint64_t)bucket->first, values[i]};

                narrow[at + begin + i] = record;
                first->starts[digit_narrow(&record, first->shift, first->mask) + 1]++;
            }
        }
    }
    return true;
}

/* Returns the chunk at `link` from the chunks that were read ahead, or else fetches it now. */
static enum slc_status next_chunk(const struct slc_sort_plan *plan,
                                  const struct slc_bucket_source *source,
                                  struct slc_chunk_link link,
                                  struct slc_chunk *chunk,
                                  struct slc_error *err)
{
    bool found = false;

    if (source->ahead != NULL) {
        enum slc_status status =
            slc_read_ahead_next(source->ahead, source->request, chunk, &found, err);

        if (status != SLC_OK || found) {
            return status;
        }
    }
    return slc_spill_fetch(plan->spill, link, true, source->chunk_data, chunk, err);
}

static enum slc_status fail_bucket(struct slc_error *err)
{
    return slc_fail(
        err, SLC_ERR_DAMAGED,
        "the chunks of a bucket in the spill file do not match its recorded number of entries");
}

/* Loads every chunk of the bucket, newest first, and lists its runs in `slots`. */
static enum slc_status load_chunks(const struct slc_sort_plan *plan,
                                   const struct slc_bucket *bucket,
                                   void *records,
                                   struct run_slot *slots,
                                   const struct slc_bucket_source *source,
                                   struct first_digit *first,
                                   struct slc_error *err)
{
    struct slc_chunk_link link = bucket->chain.last;
    uint64_t at = 0;
    uint64_t slot = 0;

    while (link.bytes > 0) {
        struct slc_chunk chunk;
        uint64_t sequence = 0;
        uint64_t start = at;

        SLC_TRY(slc_stop_check(plan->stop, err));
        SLC_TRY(next_chunk(plan, source, link, &chunk, err));
        SLC_TRY(slc_sort_check_chunk(plan, &chunk, err));
        if (chunk.count > bucket->chain.entries - at ||
            chunk.run_count > bucket->chain.runs - slot ||
            !load_records(plan, bucket, &chunk, records, at, first)) {
            return fail_bucket(err);
        }
        const uint8_t *cursor = chunk.runs;
        for (uint32_t i = 0; i < chunk.run_count; i++) {
            struct slc_run run = slc_chunk_next_run(&cursor, &sequence);

            slots[slot++] = (struct run_slot){run.sequence, run.first, run.count, start};
            start += run.count;
        }
        at += chunk.count;
        link = chunk.previous;
    }
    return at == bucket->chain.entries && slot == bucket->chain.runs ? SLC_OK : fail_bucket(err);
}

static bool slot_less(const void *context, const void *a, const void *b)
{
    const struct run_slot *left = a;
    const struct run_slot *right = b;

    (void)context;
    return left->sequence != right->sequence ? left->sequence < right->sequence
                                             : left->first < right->first;
}

enum slc_status slc_bucket_sort(const struct slc_sort_plan *plan,
                                const struct slc_bucket *bucket,
                                void *area,
                                const struct slc_bucket_source *source,
                                struct slc_sorted *sorted,
                                struct slc_error *err)
{
    uint32_t count = (uint32_t)bucket->chain.entries;
    const bool wide = slc_bucket_is_wide(plan, bucket);
    size_t width = wide ? sizeof(struct wide_record) : sizeof(struct narrow_record);
    void *scratch = area;
    void *records = (uint8_t *)area + count * width;
    void *slot_bytes = (uint8_t *)area + 2 * (count * width);
    struct run_slot *slots = slot_bytes;
    struct first_digit first = choose_digit(plan, bucket);
    enum slc_status status = load_chunks(plan, bucket, scratch, slots, source, &first, err);

    if (source->ahead != NULL) {
        slc_read_ahead_end(source->ahead, source->request);
    }
    SLC_TRY(status);
    /* Sort in place: a copy of the runs, which may be as many as the entries, would be too
     * large. */
    slc_heap_sort(slots, bucket->chain.runs, sizeof *slots, slot_less, NULL);
    if (wide) {
        sort_runs_wide(scratch, slots, bucket->chain.runs, records, &first);
        return combine_wide(plan, bucket, records, count, scratch, sorted, err);
    }
    sort_runs_narrow(scratch, slots, bucket->chain.runs, records, &first);
    return combine_narrow(plan, bucket, records, count, scratch, sorted, err);
}
