/* Cuts ranges of nonzeros into pieces by key. The target size of a piece is half of the limit. With
 * dozens of samples per piece, about one piece in thousands exceeds the limit and is cut again. */
#include "convert/layout/key_cuts.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SAMPLES_PER_PIECE = 64,
    /* With fewer samples per piece, the sizes of pieces would vary too much. A range with too few
     * samples is therefore cut into fewer pieces, which are cut again. */
    SAMPLES_PER_PIECE_MIN = 16,
    /* Most samples at a time. Their 1 MiB is less memory than gathering needs later. */
    SAMPLES_MAX = 16384
};

struct cuts {
    const struct slc_key_cuts_options *options;
    struct slc_gather_range *ranges;
    uint64_t count;
    struct slc_gather_range *large; /* ranges that are too large */
    uint64_t *large_at;             /* positions of the large ranges among all ranges */
    uint64_t large_count;
    struct slc_gather_sample *samples;
    uint64_t drawn;
};

static uint64_t pieces_of(const struct cuts *cuts, uint64_t nnz)
{
    return slc_div_up_u64(nnz, cuts->options->most_nnz / 2);
}

static int by_range_and_key(const void *a, const void *b)
{
    const struct slc_gather_sample *x = a;
    const struct slc_gather_sample *y = b;

    if (x->range != y->range) {
        return x->range < y->range ? -1 : 1;
    }
    return x->key < y->key ? -1 : x->key > y->key;
}

/* Lists the ranges that are too large. */
static enum slc_status find_large(struct cuts *cuts, struct slc_error *err)
{
    cuts->large_count = 0;
    cuts->large = slc_calloc(cuts->count, sizeof *cuts->large);
    cuts->large_at = slc_calloc(cuts->count, sizeof *cuts->large_at);
    SLC_TRY(slc_check_memory(cuts->large != NULL && cuts->large_at != NULL, err,
                             "to cut ranges of nonzeros"));
    for (uint64_t r = 0; r < cuts->count; r++) {
        if (cuts->ranges[r].nnz > cuts->options->most_nnz) {
            cuts->large_at[cuts->large_count] = r;
            cuts->large[cuts->large_count++] = cuts->ranges[r];
        }
    }
    return SLC_OK;
}

/* Samples keys of the large ranges, in proportion to their nonzeros, and sorts the samples. */
static enum slc_status draw_keys(struct cuts *cuts, struct slc_error *err)
{
    const uint64_t step = cuts->options->ranges_max;
    uint64_t nnz = 0, needed = 0, capacity;
    enum slc_status status = SLC_OK;

    for (uint64_t l = 0; l < cuts->large_count; l++) {
        nnz += cuts->large[l].nnz;
        needed += SAMPLES_PER_PIECE * pieces_of(cuts, cuts->large[l].nnz);
    }
    needed = slc_min_u64(needed, SAMPLES_MAX);
    double chance = (double)needed / (double)nnz;
    capacity = slc_min_u64(nnz, 2 * needed);
    cuts->drawn = 0;
    cuts->samples = slc_calloc(capacity, sizeof *cuts->samples);
    SLC_TRY(slc_check_memory(cuts->samples != NULL, err, "for a sample of %llu keys",
                             (unsigned long long)capacity));
    for (uint64_t l = 0; l < cuts->large_count && status == SLC_OK; l += step) {
        uint64_t drawn = 0;

        status = slc_gather_sample(
            cuts->options->gather, cuts->large + l, slc_min_u64(step, cuts->large_count - l),
            chance < 1 ? (uint64_t)(chance * 0x1p64) : UINT64_MAX, cuts->samples + cuts->drawn,
            capacity - cuts->drawn, &drawn, err);
        for (uint64_t s = 0; s < drawn; s++) {
            cuts->samples[cuts->drawn++].range += l;
        }
    }
    if (cuts->drawn > 0) {
        qsort(cuts->samples, cuts->drawn, sizeof *cuts->samples, by_range_and_key);
    }
    return status;
}

/* Appends the piece of `range` with the keys first .. last to *pieces, unless it is empty. */
static void append_piece(struct slc_gather_range *pieces,
                         uint64_t *count,
                         const struct slc_gather_range *range,
                         slc_u128 first,
                         slc_u128 last)
{
    if (first <= last) {
        pieces[*count] = *range;
        pieces[*count].first_key = first;
        pieces[(*count)++].last_key = last;
    }
}

/* Cuts large range number `l`, whose samples are [begin, end), into pieces of the target size. */
static void cut_range(const struct cuts *cuts,
                      uint64_t l,
                      uint64_t begin,
                      uint64_t end,
                      struct slc_gather_range *pieces,
                      uint64_t *count)
{
    const struct slc_gather_range *range = &cuts->large[l];
    const unsigned bits = cuts->options->key_bits;
    const slc_u128 top = bits < 128 ? ((slc_u128)1 << bits) - 1 : ~(slc_u128)0;
    const slc_u128 last = range->last_key < top ? range->last_key : top;
    const uint64_t needed =
        slc_min_u64(pieces_of(cuts, range->nnz), (end - begin) / SAMPLES_PER_PIECE_MIN);
    slc_u128 first = range->first_key;

    if (needed < 2) {
        /* The range has too few samples, by chance or because there are very many ranges. Cut it in
         * the middle of its keys. */
        const slc_u128 middle = first + (last - first) / 2;

        append_piece(pieces, count, range, first, middle);
        append_piece(pieces, count, range, middle + 1, range->last_key);
        return;
    }
    for (uint64_t p = 1; p < needed; p++) {
        const slc_u128 splitter = cuts->samples[begin + (end - begin) * p / needed].key;

        if (splitter > first) {
            append_piece(pieces, count, range, first, splitter - 1);
            first = splitter;
        }
    }
    append_piece(pieces, count, range, first, range->last_key);
}

/* Replaces the large ranges with their counted pieces, and drops empty pieces. */
static enum slc_status replace_ranges(struct cuts *cuts,
                                      const struct slc_gather_range *pieces,
                                      uint64_t count,
                                      struct slc_error *err)
{
    struct slc_gather_range *all = slc_calloc(cuts->count + count, sizeof *all);
    uint64_t at = 0, piece = 0, large = 0;

    SLC_TRY(slc_check_memory(all != NULL, err, "for ranges of nonzeros"));
    for (uint64_t r = 0; r < cuts->count; r++) {
        if (large == cuts->large_count || cuts->large_at[large] != r) {
            all[at++] = cuts->ranges[r];
            continue;
        }
        for (; piece < count && pieces[piece].first_key <= cuts->ranges[r].last_key &&
               pieces[piece].first_key >= cuts->ranges[r].first_key &&
               pieces[piece].first_row == cuts->ranges[r].first_row;
             piece++) {
            all[at] = pieces[piece];
            at += pieces[piece].nnz > 0;
        }
        large++;
    }
    assert(piece == count);
    for (uint64_t r = 0; r < at; r++) {
        const bool same = r > 0 && all[r].first_row == all[r - 1].first_row;

        all[r].sibling = same ? all[r - 1].sibling + 1 : 0;
    }
    slc_free(cuts->ranges);
    cuts->ranges = all;
    cuts->count = at;
    return SLC_OK;
}

/* Cuts every large range once. */
static enum slc_status cut_large(struct cuts *cuts, struct slc_error *err)
{
    const uint64_t step = cuts->options->ranges_max;
    uint64_t most = 0, count = 0, begin = 0;
    enum slc_status status = SLC_OK;

    for (uint64_t l = 0; l < cuts->large_count; l++) {
        most += pieces_of(cuts, cuts->large[l].nnz);
    }
    struct slc_gather_range *pieces = slc_calloc(most, sizeof *pieces);
    SLC_TRY(slc_check_memory(pieces != NULL, err, "for ranges of nonzeros"));
    for (uint64_t l = 0; l < cuts->large_count; l++) {
        uint64_t end = begin;

        while (end < cuts->drawn && cuts->samples[end].range == l) {
            end++;
        }
        cut_range(cuts, l, begin, end, pieces, &count);
        begin = end;
    }
    /* Set `sibling`, the number of preceding pieces with the same rows, for slc_gather_count. */
    for (uint64_t p = 0; p < count; p++) {
        const bool same = p > 0 && pieces[p].first_row == pieces[p - 1].first_row;

        pieces[p].sibling = same ? pieces[p - 1].sibling + 1 : 0;
    }
    for (uint64_t p = 0; p < count && status == SLC_OK; p += step) {
        status =
            slc_gather_count(cuts->options->gather, pieces + p, slc_min_u64(step, count - p), err);
    }
    SLC_THEN(status, replace_ranges(cuts, pieces, count, err));
    slc_free(pieces);
    return status;
}

static void release_memory(struct cuts *cuts)
{
    slc_free(cuts->large);
    slc_free(cuts->large_at);
    slc_free(cuts->samples);
    cuts->large = NULL;
    cuts->large_at = NULL;
    cuts->samples = NULL;
}

enum slc_status slc_key_cuts_make(const struct slc_key_cuts_options *options,
                                  struct slc_gather_range **ranges,
                                  uint64_t *count,
                                  unsigned *scans,
                                  struct slc_error *err)
{
    struct cuts cuts = {.options = options, .ranges = *ranges, .count = *count};
    enum slc_status status = SLC_OK;

    assert(options->most_nnz >= 2);
    while (status == SLC_OK) {
        status = find_large(&cuts, err);
        if (status != SLC_OK || cuts.large_count == 0) {
            break;
        }
        *scans += 2;
        status = draw_keys(&cuts, err);
        SLC_THEN(status, cut_large(&cuts, err));
        release_memory(&cuts);
    }
    release_memory(&cuts);
    *ranges = cuts.ranges;
    *count = cuts.count;
    return status;
}
