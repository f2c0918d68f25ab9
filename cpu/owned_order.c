/*
 * One mode's copy: the order of nonzeros within a piece, and which form serves the mode best.
 *
 * Coordinates are packed into the upper 48 bits of a key, the place in the piece stands in the
 * lower 16, and a radix sort brings nonzeros that are to share rows together. The longest mode is
 * most significant: its rows, which cost most to fetch, are then used as often as they can be in a
 * row. What differs within a run takes no part, so that runs keep the order of the stream inside.
 *
 * The form is chosen by sorting some pieces each way, counting runs, and a model of the rows that a
 * nonzero fetches.
 */
#include "base/checked.h"
#include "base/team.h"
#include "cpu/owned_build.h"

#include <math.h>

enum {
    PLACE_BITS = 16, /* a place in a piece */
    RADIX_BITS = 11,
    RADIX_BUCKETS = 1 << RADIX_BITS,
    SAMPLE_SHARE = 16 /* one piece in so many is sorted each way */
};

_Static_assert(SLC_OWNED_PIECE_NNZ == 1 << PLACE_BITS, "a place fills the low bits of a key");

/* The modes that make up the keys of a piece, from the most significant. */
struct packing {
    unsigned count;
    unsigned mode[SLC_MAX_ORDER];
    uint32_t low[SLC_MAX_ORDER]; /* smallest coordinate, by place in `mode` */
    unsigned shift[SLC_MAX_ORDER];
    unsigned shared;    /* how many of them a run agrees in: they come first */
    unsigned run_shift; /* keys that agree from this bit on are of one run */
    bool complete;      /* the keys hold all that tells runs apart */
};

/* A form that may serve a mode. */
struct candidate {
    uint32_t varying;
    uint64_t runs; /* of the sample */
    double cost;   /* of a nonzero */
};

/* What workers share while forms are compared. */
struct trial {
    struct slc_owned *owned;
    const struct slc_owned_mode *copy;
    unsigned mode;
    uint64_t sampled;
    uint64_t nnz; /* of the sample */
    struct candidate candidates[SLC_MAX_ORDER + 1];
    unsigned candidate_count;
    struct candidate best;
};

uint64_t slc_owned_sort_bytes(void)
{
    return 2 * SLC_OWNED_PIECE_NNZ * sizeof(uint64_t) +
           (SLC_OWNED_PIECE_NNZ + UINT64_C(16)) * sizeof(uint32_t) +
           2 * SLC_OWNED_CHUNK_NNZ * sizeof(struct slc_owned_run);
}

struct slc_owned_scratch slc_owned_scratch_of(const struct slc_owned *owned, unsigned worker)
{
    unsigned char *at = (unsigned char *)owned->scratch.data + worker * slc_owned_sort_bytes();
    struct slc_owned_scratch scratch;

    scratch.keys[0] = (uint64_t *)(void *)at;
    scratch.keys[1] = scratch.keys[0] + SLC_OWNED_PIECE_NNZ;
    scratch.run_begin = (uint32_t *)(void *)(scratch.keys[1] + SLC_OWNED_PIECE_NNZ);
    scratch.runs[0] =
        (struct slc_owned_run *)(void *)(scratch.run_begin + SLC_OWNED_PIECE_NNZ + 16);
    scratch.runs[1] = scratch.runs[0] + SLC_OWNED_CHUNK_NNZ;
    return scratch;
}

static const unsigned char *piece_records(const struct slc_owned *owned,
                                          const struct slc_owned_piece *piece)
{
    return (const unsigned char *)owned->sorted.data + piece->first_nnz * owned->record_bytes;
}

/* What a mode's rows cost to fetch: the output's are read and written, and by row they are first.
 */
static uint64_t mode_weight(const struct slc_owned *owned, unsigned output, unsigned mode)
{
    return owned->shape.dims[mode] * (mode == output ? 2 : 1);
}

/* Adds the modes whose bits are set, by falling weight. */
static void
add_modes(const struct slc_owned *owned, unsigned output, uint32_t modes, struct packing *packing)
{
    const unsigned first = packing->count;

    for (unsigned m = 0; m < owned->shape.order; m++) {
        unsigned at = packing->count;

        if ((modes >> m & 1) == 0) {
            continue;
        }
        while (at > first &&
               mode_weight(owned, output, m) > mode_weight(owned, output, packing->mode[at - 1])) {
            packing->mode[at] = packing->mode[at - 1];
            at--;
        }
        packing->mode[at] = m;
        packing->count++;
    }
}

/* The modes of the keys: what runs agree in, then what varies, unless that is one mode alone. */
static void order_modes(const struct slc_owned *owned,
                        unsigned output,
                        uint32_t varying,
                        struct packing *packing)
{
    packing->count = 0;
    add_modes(owned, output, ~varying, packing);
    packing->shared = packing->count;
    if (__builtin_popcount(varying) > 1) {
        add_modes(owned, output, varying, packing);
    }
}

/* Finds the bits of every mode of a piece; modes that do not fit the keys take no part. */
static void plan_packing(const struct slc_owned *owned,
                         unsigned output,
                         uint32_t varying,
                         const struct slc_owned_piece *piece,
                         struct packing *packing)
{
    const unsigned char *records = piece_records(owned, piece);
    uint32_t high[SLC_MAX_ORDER] = {0};
    unsigned at = 64;

    order_modes(owned, output, varying, packing);
    memset(packing->low, 0xff, sizeof packing->low);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const unsigned char *record = records + (uint64_t)i * owned->record_bytes;

        for (unsigned k = 0; k < packing->count; k++) {
            const uint32_t value = slc_owned_coordinate(record, packing->mode[k]);

            packing->low[k] = value < packing->low[k] ? value : packing->low[k];
            high[k] = value > high[k] ? value : high[k];
        }
    }
    packing->complete = true;
    packing->run_shift = 64;
    for (unsigned k = 0; k < packing->count; k++) {
        const uint32_t extent = high[k] - packing->low[k];
        const unsigned bits = extent == 0 ? 0 : 32U - (unsigned)__builtin_clz(extent);

        if (at - PLACE_BITS < bits) {
            packing->complete = k >= packing->shared;
            packing->count = k;
            break;
        }
        at -= bits;
        packing->shift[k] = at;
        if (k < packing->shared) {
            packing->run_shift = at;
        }
    }
}

static void make_keys(const struct slc_owned *owned,
                      const struct slc_owned_piece *piece,
                      const struct packing *packing,
                      uint64_t *keys)
{
    const unsigned char *records = piece_records(owned, piece);

    for (uint32_t i = 0; i < piece->nnz; i++) {
        const unsigned char *record = records + (uint64_t)i * owned->record_bytes;
        uint64_t key = i;

        for (unsigned k = 0; k < packing->count; k++) {
            /* A mode without extent may stand at a shift of 64. */
            key |= (uint64_t)(slc_owned_coordinate(record, packing->mode[k]) - packing->low[k])
                   << (packing->shift[k] & 63);
        }
        keys[i] = key;
    }
}

/* Sorts by the bits from `shift` on, stably. Returns where the result lies. */
static const uint64_t *sort_keys(uint64_t *from, uint64_t *to, uint32_t count, unsigned shift)
{
    const unsigned bits = 64 - shift;
    const unsigned passes = (bits + RADIX_BITS - 1) / RADIX_BITS;
    const unsigned digit = passes == 0 ? 0 : (bits + passes - 1) / passes;

    for (unsigned pass = 0; pass < passes; pass++) {
        const unsigned low = shift + pass * digit;
        const uint64_t mask = (UINT64_C(1) << digit) - 1;
        uint32_t start[RADIX_BUCKETS] = {0};
        uint64_t *swap = from;
        uint32_t sum = 0;

        for (uint32_t i = 0; i < count; i++) {
            start[from[i] >> low & mask]++;
        }
        for (uint64_t b = 0; b <= mask; b++) {
            const uint32_t here = start[b];

            start[b] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < count; i++) {
            to[start[from[i] >> low & mask]++] = from[i];
        }
        from = to;
        to = swap;
    }
    return from;
}

/* Writes where runs begin, and the count; returns how many there are. */
static uint32_t find_runs(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin)
{
    uint32_t runs = 1;

    begin[0] = 0;
    if (shift >= 64) { /* no mode of the run varies in the piece */
        begin[1] = count;
        return 1;
    }
    for (uint32_t i = 1; i < count; i++) {
        begin[runs] = i;
        runs += keys[i] >> shift != keys[i - 1] >> shift;
    }
    begin[runs] = count;
    return runs;
}

void slc_owned_sort(const struct slc_owned *owned,
                    unsigned mode,
                    uint32_t varying,
                    const struct slc_owned_piece *piece,
                    const struct slc_owned_scratch *scratch,
                    struct slc_owned_order *order)
{
    struct packing packing;
    unsigned lowest;

    plan_packing(owned, mode, varying, piece, &packing);
    lowest = packing.count > 0 ? packing.shift[packing.count - 1] : 64;
    make_keys(owned, piece, &packing, scratch->keys[0]);
    order->records = piece_records(owned, piece);
    order->nnz = piece->nnz;
    order->keys = sort_keys(scratch->keys[0], scratch->keys[1], piece->nnz, lowest);
    order->run_begin = scratch->run_begin;
    order->run_count = 0;
    if (varying != SLC_OWNED_PLAIN && packing.complete) {
        order->run_count =
            find_runs(order->keys, piece->nnz, packing.run_shift, scratch->run_begin);
    }
}

/* Piece `s` of those that are sampled. */
static const struct slc_owned_piece *sample_piece(const struct trial *trial, uint64_t s)
{
    return &trial->copy->pieces[s * trial->copy->piece_count / trial->sampled];
}

/* Counts the runs that candidates [begin, end) give in the sample. */
static void count_runs(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct trial *trial = context;
    const struct slc_owned_scratch scratch = slc_owned_scratch_of(trial->owned, worker);

    for (uint64_t i = begin; i < end; i++) {
        struct candidate *candidate = &trial->candidates[i];

        candidate->runs = 0;
        for (uint64_t s = 0; s < trial->sampled; s++) {
            const struct slc_owned_piece *piece = sample_piece(trial, s);
            struct slc_owned_order order;

            slc_owned_sort(trial->owned, trial->mode, candidate->varying, piece, &scratch, &order);
            candidate->runs += order.run_count > 0 ? order.run_count : piece->nnz;
        }
    }
}

/*
 * Nanoseconds to read a row of a mode, and to read and write one of the output, at R = 16, by the
 * cache that holds all of them. Fitted to eight real tensors (AVX-512, 2 MiB second-level cache);
 * only the order of the forms matters.
 */
static double read_cost(const struct trial *trial, unsigned mode)
{
    const uint64_t rows = trial->owned->shape.dims[mode];

    return rows <= 256 ? 0.5 : rows <= 8192 ? 0.75 : rows <= 65536 ? 1.5 : 2.5;
}

static double update_cost(const struct trial *trial)
{
    return trial->copy->rows_max <= 256 ? 1.2 : 3.0;
}

/*
 * Cost of a nonzero: the rows of modes that vary, and its share of what a run costs: the rows of
 * the modes that it agrees in, that of the output, and its ends. The row of the most significant
 * mode is used again at once, from wherever it came.
 */
static double cost_of(const struct trial *trial, uint32_t varying, double length)
{
    const unsigned several = __builtin_popcount(varying) > 1;
    struct packing packing;
    double each = 0;
    double run = 0;

    order_modes(trial->owned, trial->mode, varying, &packing);
    for (unsigned m = 0; m < trial->owned->shape.order; m++) {
        const bool varies = slc_owned_varies(varying, m);
        const bool first = m == packing.mode[0];
        double cost;

        if (m == trial->mode) {
            cost = first ? 1.2 : update_cost(trial);
        } else {
            cost = first ? 0.5 : read_cost(trial, m);
        }
        *(varies ? &each : &run) += cost;
    }
    if (varying == SLC_OWNED_PLAIN) {
        return run + 0.5;
    }
    return each + (several ? 0.5 : 0.3) + (run + (several ? 1.5 : 2.5)) / length;
}

static void add_candidate(struct trial *trial, uint32_t varying)
{
    trial->candidates[trial->candidate_count++] = (struct candidate){.varying = varying};
}

/* Counts the runs of the candidates from `first` on; the best of them that may be extended. */
static enum slc_status
try_candidates(struct trial *trial, struct candidate *best, struct slc_error *err)
{
    const enum slc_status status =
        slc_team_for(trial->owned->workers, trial->candidate_count, 1, count_runs, trial, err);

    best->cost = HUGE_VAL;
    for (unsigned i = 0; i < trial->candidate_count && status == SLC_OK; i++) {
        struct candidate *candidate = &trial->candidates[i];

        candidate->cost =
            cost_of(trial, candidate->varying, (double)trial->nnz / (double)candidate->runs);
        if (candidate->cost < trial->best.cost) {
            trial->best = *candidate;
        }
        if (!slc_owned_varies(candidate->varying, trial->mode) && candidate->cost < best->cost) {
            *best = *candidate;
        }
    }
    trial->candidate_count = 0;
    return status;
}

/*
 * Tries fibers of each mode, then lets a further mode vary within runs, always the one that serves
 * best, up to all but the output's.
 */
static enum slc_status try_all(struct trial *trial, struct slc_error *err)
{
    const unsigned order = trial->owned->shape.order;
    const uint32_t all = (UINT32_C(1) << order) - 1;
    const uint32_t by_row = all & ~(UINT32_C(1) << trial->mode);
    struct candidate base = {.varying = 0};

    for (unsigned count = 1; count < order; count++) {
        enum slc_status status;

        for (unsigned m = 0; m < order; m++) {
            const uint32_t varying = base.varying | UINT32_C(1) << m;

            if (varying != base.varying && (count == 1 || slc_owned_varies(by_row, m))) {
                add_candidate(trial, varying);
            }
        }
        status = try_candidates(trial, &base, err);
        if (status != SLC_OK) {
            return status;
        }
    }
    return SLC_OK;
}

enum slc_status slc_owned_choose_form(struct slc_owned *owned, unsigned mode, struct slc_error *err)
{
    struct slc_owned_mode *copy = &owned->modes[mode];
    struct trial trial = {.owned = owned, .copy = copy, .mode = mode};
    enum slc_status status;

    copy->varying = SLC_OWNED_PLAIN;
    if (copy->piece_count == 0) {
        return SLC_OK;
    }
    trial.sampled = slc_div_up_u64(copy->piece_count, SAMPLE_SHARE);
    for (uint64_t s = 0; s < trial.sampled; s++) {
        trial.nnz += sample_piece(&trial, s)->nnz;
    }
    trial.best.cost = cost_of(&trial, SLC_OWNED_PLAIN, 1);
    status = try_all(&trial, err);
    copy->varying = trial.best.varying;
    return status;
}
