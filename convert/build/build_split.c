/* Splits buckets at splitters from a sample of their entries. The sample comes from the marked
 * chunks of each chain, which are evenly spaced, so that it also represents sorted input. Cost: the
 * entries are read, scattered and written once. */
#include "convert/build/build_split.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/sort/heap_sort.h"
#include "convert/build/sort/splitters.h"
#include "convert/build/spill/scatter.h"

#include <assert.h>
#include <pthread.h>

enum {
    SAMPLE_MAX = 1 << 16,
    /* About this number of chunks is read for the sample, and at least one chunk per chain. */
    SAMPLE_CHUNKS = 512,
    PARTS_MIN = 4,
    PARTS_MAX = 1024,
    /* Smallest scatter buffer per part. Smaller buffers would cause small writes. */
    PART_BUFFER_BYTES_MIN = 8 << 10
};

/* Position of an entry in the sort order. */
struct place {
    uint64_t lo, hi;
    uint64_t sequence;
    uint32_t ordinal;
};

struct split {
    const struct slc_split_options *options;
    const struct slc_bucket *buckets;
    uint32_t bucket_count;
    uint64_t entries;
    uint64_t entries_left; /* entries that are not yet scattered */

    uint32_t splitter_count;
    struct place *splitters;
    bool *shared; /* true if the splitter divides the entries of one coordinate */
    uint64_t *key_lo, *key_hi;

    struct slc_scatter scatter;
    struct slc_chain *chains;

    /* Protects the next chunk to be split: only one worker at a time follows the chains. */
    pthread_mutex_t mutex;
    uint32_t bucket;
    struct slc_chunk_link link;
    bool stopped;
    struct slc_error fault;
};

static int compare_places(const struct place *a, const struct place *b)
{
    if (a->hi != b->hi) {
        return a->hi < b->hi ? -1 : 1;
    }
    if (a->lo != b->lo) {
        return a->lo < b->lo ? -1 : 1;
    }
    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence ? -1 : 1;
    }
    return a->ordinal == b->ordinal ? 0 : a->ordinal < b->ordinal ? -1 : 1;
}

static bool place_less(const void *context, const void *a, const void *b)
{
    (void)context;
    return compare_places(a, b) < 0;
}

/* Reports wrong counts, which can occur only in buckets that another run left. */
static enum slc_status fail_counts(struct slc_error *err)
{
    return slc_fail(err, SLC_ERR_DAMAGED,
                    "the entries in the spill file do not match the counts of its buckets");
}

/* Samples `needed` evenly spread entries of a chunk, or all entries if the chunk has no more. */
static uint32_t sample_chunk(const struct slc_sort_plan *plan,
                             const struct slc_chunk *chunk,
                             uint32_t needed,
                             struct place *places)
{
    const uint8_t *cursor = chunk->runs;
    uint64_t sequence = 0;
    struct slc_run run = {0, 0, 0};
    uint32_t run_start = 0;
    uint32_t run_end = 0;
    uint32_t taken;

    needed = needed < chunk->count ? needed : chunk->count;
    for (taken = 0; taken < needed; taken++) {
        uint32_t at = (uint32_t)((uint64_t)taken * chunk->count / needed);
        struct place *place = &places[taken];

        while (at >= run_end) {
            run = slc_chunk_next_run(&cursor, &sequence);
            run_start = run_end;
            run_end += run.count;
        }
        place->hi = 0;
        slc_sort_entries(plan, chunk, at, 1, plan->tables.wide, &place->lo, &place->hi, NULL);
        place->sequence = run.sequence;
        place->ordinal = run.first + (at - run_start);
    }
    return taken;
}

static enum slc_status draw_sample(const struct split *split,
                                   struct place *places,
                                   uint32_t capacity,
                                   uint32_t *count,
                                   struct slc_error *err)
{
    const struct slc_sort_plan *plan = split->options->plan;

    *count = 0;
    for (uint32_t b = 0; b < split->bucket_count; b++) {
        const struct slc_chain *chain = &split->buckets[b].chain;
        double share = (double)chain->entries / (double)split->entries;
        uint32_t needed = (uint32_t)(share * (capacity - split->bucket_count)) + 1;
        unsigned chunks = (unsigned)(share * SAMPLE_CHUNKS) + 1;

        chunks = chunks < chain->mark_count ? chunks : chain->mark_count;
        for (unsigned i = 0; i < chunks; i++) {
            struct slc_chunk_link link = chain->marks[i * chain->mark_count / chunks];
            struct slc_chunk chunk;
            uint32_t space = capacity - *count;
            uint32_t each = needed / chunks + 1;

            SLC_TRY(slc_spill_fetch(plan->spill, link, false, split->options->chunk_data[0], &chunk,
                                    err));
            SLC_TRY(slc_sort_check_chunk(plan, &chunk, err));
            *count += sample_chunk(plan, &chunk, each < space ? each : space, places + *count);
        }
    }
    return SLC_OK;
}

/* Chooses splitters at regular intervals of the sorted sample. The first splitter with a new
 * coordinate cuts before all entries of that coordinate; further splitters with the same coordinate
 * cut between its entries. Each part except the first therefore contains the sampled entry of its
 * splitter, so every part is smaller than the whole. */
static void
choose_splitters(struct split *split, const struct place *places, uint32_t count, uint32_t parts)
{
    for (uint32_t i = 1; i < parts; i++) {
        struct place place = places[(uint64_t)i * count / parts];
        uint32_t n = split->splitter_count;
        bool shared = n > 0 && split->key_lo[n - 1] == place.lo && split->key_hi[n - 1] == place.hi;

        if (!shared) {
            place.sequence = 0;
            place.ordinal = 0;
        } else if (compare_places(&split->splitters[n - 1], &place) >= 0) {
            continue;
        }
        split->splitters[n] = place;
        split->shared[n] = shared;
        split->key_lo[n] = place.lo;
        split->key_hi[n] = place.hi;
        split->splitter_count++;
    }
}

static uint32_t find_part(const struct split *split, const struct place *place)
{
    uint32_t part =
        slc_keys_upper(split->key_lo, split->key_hi, split->splitter_count, place->lo, place->hi);
    uint32_t low = 0;
    uint32_t high = part;

    if (part == 0 || !split->shared[part - 1] || split->key_lo[part - 1] != place->lo ||
        split->key_hi[part - 1] != place->hi) {
        return part;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (compare_places(&split->splitters[middle], place) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Scatters entries begin .. begin + count - 1 of a chunk, all of one run. */
static enum slc_status scatter_batch(struct split *split,
                                     unsigned worker,
                                     const struct slc_chunk *chunk,
                                     uint32_t begin,
                                     uint32_t count,
                                     uint64_t sequence,
                                     uint32_t ordinal,
                                     struct slc_error *err)
{
    const struct slc_sort_plan *plan = split->options->plan;
    uint64_t lo[SLC_KEY_BATCH];
    uint64_t hi[SLC_KEY_BATCH];
    double values[SLC_KEY_BATCH];
    uint32_t parts[SLC_KEY_BATCH];
    const struct slc_scatter_batch batch = {.count = count,
                                            .ordinal = ordinal,
                                            .buckets = parts,
                                            .key_lo = lo,
                                            .key_hi = hi,
                                            .values = values};

    slc_sort_entries(plan, chunk, begin, count, plan->tables.wide, lo, hi, values);
    for (uint32_t i = 0; i < count; i++) {
        struct place place = {lo[i], plan->tables.wide ? hi[i] : 0, sequence, ordinal + i};

        parts[i] = find_part(split, &place);
    }
    return slc_scatter_add(&split->scatter, worker, &batch, err);
}

static enum slc_status scatter_chunk(struct split *split,
                                     unsigned worker,
                                     const struct slc_chunk *chunk,
                                     struct slc_error *err)
{
    const uint8_t *cursor = chunk->runs;
    uint64_t sequence = 0;
    uint32_t start = 0;

    for (uint32_t r = 0; r < chunk->run_count; r++) {
        struct slc_run run = slc_chunk_next_run(&cursor, &sequence);

        slc_scatter_piece(&split->scatter, worker, run.sequence);
        for (uint32_t done = 0; done < run.count; done += SLC_KEY_BATCH) {
            uint32_t count = (uint32_t)slc_min_u64(SLC_KEY_BATCH, run.count - done);

            SLC_TRY(scatter_batch(split, worker, chunk, start + done, count, run.sequence,
                                  run.first + done, err));
        }
        start += run.count;
    }
    return SLC_OK;
}

/* Sets the key bounds of a part. All keys here are final keys. */
static void part_keys(const struct split *split, uint32_t part, slc_u128 *first, slc_u128 *last)
{
    bool end = part == split->splitter_count;

    *first = part > 0 ? slc_key_join(split->key_lo[part - 1], split->key_hi[part - 1])
                      : split->buckets[0].first;
    *last = end ? split->buckets[split->bucket_count - 1].last
                : slc_key_join(split->key_lo[part], split->key_hi[part]);
}

/* Subtracts a chunk's entries from the number of remaining entries. Needs the lock. */
static enum slc_status count_chunk(struct split *split, const struct slc_chunk *chunk)
{
    if (chunk->count > split->entries_left) {
        return fail_counts(&split->fault);
    }
    split->entries_left -= chunk->count;
    return SLC_OK;
}

/* Fetches the next chunk of the current chain or, after its end, of the next chain. Returns false
 * after the last chain or a fault. Needs the lock. */
static bool next_chunk(struct split *split, unsigned worker, struct slc_chunk *chunk)
{
    const struct slc_sort_plan *plan = split->options->plan;

    while (!split->stopped && split->link.bytes == 0 && split->bucket < split->bucket_count) {
        split->link = split->buckets[split->bucket++].chain.last;
    }
    if (split->stopped || split->link.bytes == 0) {
        return false;
    }
    if (slc_stop_check(plan->stop, &split->fault) != SLC_OK ||
        slc_spill_fetch(plan->spill, split->link, true, split->options->chunk_data[worker], chunk,
                        &split->fault) != SLC_OK ||
        slc_sort_check_chunk(plan, chunk, &split->fault) != SLC_OK ||
        count_chunk(split, chunk) != SLC_OK) {
        split->stopped = true;
        return false;
    }
    split->link = chunk->previous;
    return true;
}

static void split_worker(void *context, unsigned worker, unsigned workers)
{
    struct split *split = context;
    bool more = true;

    (void)workers;
    while (more) {
        struct slc_error err = SLC_ERROR_INIT;
        struct slc_chunk chunk;

        pthread_mutex_lock(&split->mutex);
        more = next_chunk(split, worker, &chunk);
        pthread_mutex_unlock(&split->mutex);
        if (more && scatter_chunk(split, worker, &chunk, &err) != SLC_OK) {
            pthread_mutex_lock(&split->mutex);
            split->stopped = true;
            if (split->fault.status == SLC_OK) {
                split->fault = err;
            }
            pthread_mutex_unlock(&split->mutex);
            more = false;
        }
    }
}

/* Prepares the buffers of all workers for the final keys of the parts. */
static enum slc_status set_frame(struct split *split, struct slc_error *err)
{
    struct slc_key_range *ranges = slc_calloc(split->splitter_count + (size_t)1, sizeof *ranges);
    enum slc_status status = SLC_OK;

    SLC_TRY(slc_check_memory(ranges != NULL, err, "for %u buckets", split->splitter_count + 1));
    for (uint32_t part = 0; part <= split->splitter_count; part++) {
        slc_u128 first, last;

        part_keys(split, part, &first, &last);
        ranges[part] = slc_key_range_of(first, last);
    }
    for (unsigned worker = 0; worker < split->options->workers && status == SLC_OK; worker++) {
        status = slc_scatter_frame(&split->scatter, worker, SLC_FRAME_FINAL, ranges, err);
    }
    slc_free(ranges);
    return status;
}

static enum slc_status scatter_all(struct split *split, struct slc_error *err)
{
    SLC_TRY(set_frame(split, err));
    pthread_mutex_init(&split->mutex, NULL);
    enum slc_status status = slc_team_run(split->options->workers, split_worker, split, err);
    pthread_mutex_destroy(&split->mutex);
    if (status == SLC_OK && split->fault.status != SLC_OK) {
        status = split->fault.status;
        if (err != NULL) {
            *err = split->fault;
        }
    }
    SLC_TRY(status);
    return slc_scatter_flush_all(&split->scatter, err);
}

/* Returns how many parts are needed so that each fits an area, even if the sample is uneven. */
static uint32_t choose_part_count(const struct split *split, uint64_t runs)
{
    const struct slc_split_options *options = split->options;
    slc_u128 first = split->buckets[0].first;
    slc_u128 last = split->buckets[split->bucket_count - 1].last;
    const struct slc_bucket entry = {.chain = {.entries = 1}, .first = first, .last = last};
    const struct slc_bucket run = {.chain = {.runs = 1}, .first = first, .last = last};
    uint64_t bytes = slc_bucket_area_bytes(options->plan, &entry) * split->entries +
                     slc_bucket_area_bytes(options->plan, &run) * runs;
    uint64_t most =
        options->memory_bytes / ((uint64_t)options->workers * PART_BUFFER_BYTES_MIN * 2);
    uint64_t parts = bytes / (options->area_bytes / 2 + 1) + 1;

    parts = slc_min_u64(parts, slc_min_u64(most, PARTS_MAX));
    return (uint32_t)slc_max_u64(parts, PARTS_MIN);
}

static enum slc_status allocate_parts(struct split *split, uint32_t parts, struct slc_error *err)
{
    split->splitters = slc_calloc(parts, sizeof *split->splitters);
    split->shared = slc_calloc(parts, sizeof *split->shared);
    split->key_lo = slc_calloc(parts, sizeof *split->key_lo);
    split->key_hi = slc_calloc(parts, sizeof *split->key_hi);
    split->chains = slc_calloc(parts, sizeof *split->chains);
    SLC_TRY(slc_check_memory(split->splitters != NULL && split->shared != NULL &&
                                 split->key_lo != NULL && split->key_hi != NULL &&
                                 split->chains != NULL,
                             err, "for splitting a bucket into %u parts", parts));
    return SLC_OK;
}

static enum slc_status
collect_parts(const struct split *split, struct slc_bucket **parts, struct slc_error *err)
{
    uint32_t count = split->splitter_count + 1;
    struct slc_bucket *list = slc_calloc(count, sizeof *list);
    bool beginning = split->buckets[0].lower_shared;

    SLC_TRY(slc_check_memory(list != NULL, err, "for %u buckets", count));
    for (uint32_t i = 0; i < count; i++) {
        /* The sampled entries are in different parts, so a part with all entries is an error. */
        if (split->bucket_count == 1 && split->chains[i].entries == split->entries) {
            slc_free(list);
            return fail_counts(err);
        }
        list[i].chain = split->chains[i];
        part_keys(split, i, &list[i].first, &list[i].last);
        /* If all earlier parts are empty, this part begins the bucket. */
        list[i].lower_shared = (i > 0 && split->shared[i - 1]) || beginning;
        list[i].upper_shared =
            i + 1 < count ? split->shared[i] : split->buckets[split->bucket_count - 1].upper_shared;
        beginning = beginning && list[i].chain.entries == 0;
    }
    *parts = list;
    return SLC_OK;
}

enum slc_status slc_build_split(const struct slc_split_options *options,
                                const struct slc_bucket *buckets,
                                uint32_t count,
                                struct slc_bucket **parts,
                                uint32_t *part_count,
                                struct slc_error *err)
{
    struct split split = {
        .options = options, .buckets = buckets, .bucket_count = count, .fault = SLC_ERROR_INIT};
    uint64_t capacity = slc_min_u64(SAMPLE_MAX, options->memory_bytes / sizeof(struct place));
    struct place *places = options->memory;
    struct slc_scatter_shape shape;
    enum slc_status status;
    uint32_t sampled, needed_parts, i;
    uint64_t runs = 0;

    for (i = 0; i < count; i++) {
        split.entries += buckets[i].chain.entries;
        runs += buckets[i].chain.runs;
    }
    split.entries_left = split.entries;
    needed_parts = choose_part_count(&split, runs);
    status = allocate_parts(&split, needed_parts, err);
    SLC_THEN(status, draw_sample(&split, places, (uint32_t)capacity, &sampled, err));
    if (status == SLC_OK && sampled == 0) {
        status = fail_counts(err);
    }
    if (status != SLC_OK) {
        goto cleanup;
    }
    slc_heap_sort(places, sampled, sizeof *places, place_less, NULL);
    choose_splitters(&split, places, sampled, needed_parts);
    shape = slc_scatter_fit(options->workers, split.splitter_count + 1, options->memory_bytes);
    assert(shape.entries > 0);
    slc_scatter_init(&split.scatter, &shape, options->plan->spill, split.chains, options->memory);
    status = scatter_all(&split, err);
    if (status == SLC_OK && split.entries_left > 0) {
        status = fail_counts(err);
    }
    if (status == SLC_OK) {
        status = collect_parts(&split, parts, err);
        *part_count = split.splitter_count + 1;
    }

cleanup:
    slc_free(split.splitters);
    slc_free(split.shared);
    slc_free(split.key_lo);
    slc_free(split.key_hi);
    slc_free(split.chains);
    return status;
}
