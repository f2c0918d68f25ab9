/*
 * One mode's copy: the order of nonzeros within a piece, and which mode varies within runs.
 *
 * The mode that varies within runs is least significant, so that runs
 * stand together; of the others the longest is most significant, so that its rows, which cost most
 * to fetch, are used as often as they can be in a row. A piece's coordinates are packed into 64
 * bits for sorting; a piece that spreads further is left in key order, without runs. Which mode
 * varies within runs is found by sorting some pieces each way and counting runs.
 */
#include "base/checked.h"
#include "base/team.h"
#include "cpu/owned_build.h"

enum { RADIX_BITS = 11, RADIX_BUCKETS = 1 << RADIX_BITS, SAMPLE_PIECES = 4 };

/* How the coordinates of one piece are packed into a key; modes from the most significant. */
struct packing {
    unsigned mode[SLC_MAX_ORDER];
    uint32_t low[SLC_MAX_ORDER]; /* smallest coordinate, by place in `mode` */
    unsigned shift[SLC_MAX_ORDER];
    unsigned bits;
    unsigned run_bits; /* of the mode that varies within runs */
};

/* What workers share while candidates for the run mode are compared. */
struct trial {
    struct slc_owned *owned;
    const struct slc_owned_mode *copy;
    unsigned mode;
    uint64_t sample_nnz;
    uint64_t runs[SLC_MAX_ORDER]; /* of the sample, by candidate */
};

uint64_t slc_owned_sort_bytes(void)
{
    return 2 * SLC_OWNED_PIECE_NNZ * sizeof(struct slc_owned_key) +
           2 * SLC_OWNED_CHUNK_NNZ * sizeof(struct slc_owned_run);
}

struct slc_owned_scratch slc_owned_scratch_of(const struct slc_owned *owned, unsigned worker)
{
    unsigned char *at = (unsigned char *)owned->scratch.data + worker * slc_owned_sort_bytes();
    struct slc_owned_scratch scratch;

    scratch.keys[0] = (struct slc_owned_key *)(void *)at;
    scratch.keys[1] = scratch.keys[0] + SLC_OWNED_PIECE_NNZ;
    scratch.runs[0] = (struct slc_owned_run *)(void *)(scratch.keys[1] + SLC_OWNED_PIECE_NNZ);
    scratch.runs[1] = scratch.runs[0] + SLC_OWNED_CHUNK_NNZ;
    return scratch;
}

static const unsigned char *piece_records(const struct slc_owned *owned,
                                          const struct slc_owned_piece *piece)
{
    return (const unsigned char *)owned->sorted.data + piece->first_nnz * owned->record_bytes;
}

/* What a mode's rows cost to fetch: the output's are read and written. */
static uint64_t mode_weight(const struct slc_owned *owned, unsigned output, unsigned mode)
{
    return owned->shape.dims[mode] * (mode == output ? 2 : 1);
}

/* The modes by falling weight, the run mode last. */
static void
order_modes(const struct slc_owned *owned, unsigned output, unsigned run_mode, unsigned *modes)
{
    const unsigned order = owned->shape.order;
    unsigned count = 0;

    for (unsigned m = 0; m < order; m++) {
        unsigned at = count;

        if (m == run_mode) {
            continue;
        }
        while (at > 0 &&
               mode_weight(owned, output, m) > mode_weight(owned, output, modes[at - 1])) {
            modes[at] = modes[at - 1];
            at--;
        }
        modes[at] = m;
        count++;
    }
    if (run_mode < order) {
        modes[count] = run_mode;
    }
}

/* Packs the coordinates of a piece into keys. False where they need more than 64 bits. */
static bool plan_packing(const struct slc_owned *owned,
                         unsigned output,
                         unsigned run_mode,
                         const struct slc_owned_piece *piece,
                         struct packing *packing)
{
    const unsigned char *records = piece_records(owned, piece);
    const unsigned order = owned->shape.order;
    uint32_t high[SLC_MAX_ORDER] = {0};

    order_modes(owned, output, run_mode, packing->mode);
    memset(packing->low, 0xff, sizeof packing->low);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const unsigned char *record = records + (uint64_t)i * owned->record_bytes;

        for (unsigned k = 0; k < order; k++) {
            const uint32_t value = slc_owned_coordinate(record, packing->mode[k]);

            packing->low[k] = value < packing->low[k] ? value : packing->low[k];
            high[k] = value > high[k] ? value : high[k];
        }
    }
    packing->bits = 0;
    packing->run_bits = 0;
    for (unsigned k = order; k-- > 0;) {
        const uint32_t extent = high[k] - packing->low[k];
        const unsigned bits = extent == 0 ? 0 : 32U - (unsigned)__builtin_clz(extent);

        packing->shift[k] = packing->bits;
        packing->bits += bits;
        if (packing->mode[k] == run_mode) {
            packing->run_bits = bits;
        }
        if (packing->bits > 64) {
            return false;
        }
    }
    return true;
}

static void make_keys(const struct slc_owned *owned,
                      const struct slc_owned_piece *piece,
                      const struct packing *packing,
                      struct slc_owned_key *order)
{
    const unsigned char *records = piece_records(owned, piece);

    for (uint32_t i = 0; i < piece->nnz; i++) {
        const unsigned char *record = records + (uint64_t)i * owned->record_bytes;
        uint64_t key = 0;

        for (unsigned k = 0; k < owned->shape.order; k++) {
            /* A mode without extent may stand at a shift of 64. */
            key |= (uint64_t)(slc_owned_coordinate(record, packing->mode[k]) - packing->low[k])
                   << (packing->shift[k] & 63);
        }
        order[i] = (struct slc_owned_key){.key = key, .at = i};
    }
}

/* Sorts by the low `bits` bits of the keys, stably. Returns where the result lies. */
static const struct slc_owned_key *
sort_keys(struct slc_owned_key *from, struct slc_owned_key *to, uint32_t count, unsigned bits)
{
    const unsigned passes = (bits + RADIX_BITS - 1) / RADIX_BITS;
    const unsigned digit = passes == 0 ? 0 : (bits + passes - 1) / passes;
    const uint64_t mask = (UINT64_C(1) << digit) - 1;

    for (unsigned pass = 0; pass < passes; pass++) {
        const unsigned shift = pass * digit;
        uint32_t start[RADIX_BUCKETS] = {0};
        struct slc_owned_key *swap = from;
        uint32_t sum = 0;

        for (uint32_t i = 0; i < count; i++) {
            start[from[i].key >> shift & mask]++;
        }
        for (uint64_t b = 0; b <= mask; b++) {
            const uint32_t here = start[b];

            start[b] = sum;
            sum += here;
        }
        for (uint32_t i = 0; i < count; i++) {
            to[start[from[i].key >> shift & mask]++] = from[i];
        }
        from = to;
        to = swap;
    }
    return from;
}

void slc_owned_sort(const struct slc_owned *owned,
                    unsigned mode,
                    unsigned run_mode,
                    const struct slc_owned_piece *piece,
                    const struct slc_owned_scratch *scratch,
                    struct slc_owned_order *order)
{
    struct packing packing;

    order->records = piece_records(owned, piece);
    order->keys = scratch->keys[0];
    order->nnz = piece->nnz;
    order->run_bits = 0;
    order->runs = false;
    if (plan_packing(owned, mode, run_mode, piece, &packing)) {
        make_keys(owned, piece, &packing, scratch->keys[0]);
        order->keys = sort_keys(scratch->keys[0], scratch->keys[1], piece->nnz, packing.bits);
        order->run_bits = packing.run_bits;
        order->runs = run_mode < owned->shape.order;
        return;
    }
    for (uint32_t i = 0; i < piece->nnz; i++) {
        scratch->keys[0][i] = (struct slc_owned_key){.at = i};
    }
}

static uint64_t count_runs(const struct slc_owned_order *order)
{
    uint64_t runs = 1;

    if (!order->runs) {
        return order->nnz;
    }
    for (uint32_t i = 1; i < order->nnz; i++) {
        runs += !slc_owned_same_run(order, i, i - 1);
    }
    return runs;
}

/* Piece `s` of `count` that are spread over the copy. */
static const struct slc_owned_piece *
sample_piece(const struct slc_owned_mode *copy, uint64_t s, uint64_t count)
{
    return &copy->pieces[s * copy->piece_count / count];
}

/* Counts the runs that candidates [begin, end) give in the sample. */
static void try_run_modes(void *context, uint64_t begin, uint64_t end, unsigned worker)
{
    struct trial *trial = context;
    const struct slc_owned_scratch scratch = slc_owned_scratch_of(trial->owned, worker);
    const uint64_t sampled = slc_min_u64(trial->copy->piece_count, SAMPLE_PIECES);

    for (uint64_t m = begin; m < end; m++) {
        for (uint64_t s = 0; s < sampled; s++) {
            struct slc_owned_order order;

            slc_owned_sort(trial->owned, trial->mode, (unsigned)m,
                           sample_piece(trial->copy, s, sampled), &scratch, &order);
            trial->runs[m] += count_runs(&order);
        }
    }
}

/*
 * Cost of a nonzero in rows fetched, R = 16: without runs N - 1 rows read, the output's read and
 * written. In a run of another mode than the output's a nonzero costs one row and a run the others;
 * in one of the output's own mode a nonzero costs a row read and written. A run costs one more for
 * its ends.
 */
static double cost_of(const struct trial *trial, unsigned run_mode)
{
    const double order = trial->owned->shape.order;
    double nnz_per_run;

    if (run_mode >= trial->owned->shape.order) {
        return order + 1.5;
    }
    nnz_per_run = (double)trial->sample_nnz / (double)trial->runs[run_mode];
    return run_mode == trial->mode ? 2.2 + order / nnz_per_run : 1.2 + (order + 1) / nnz_per_run;
}

enum slc_status
slc_owned_choose_run_mode(struct slc_owned *owned, unsigned mode, struct slc_error *err)
{
    struct slc_owned_mode *copy = &owned->modes[mode];
    const uint64_t sampled = slc_min_u64(copy->piece_count, SAMPLE_PIECES);
    struct trial trial = {.owned = owned, .copy = copy, .mode = mode};
    enum slc_status status;

    copy->run_mode = SLC_MAX_ORDER;
    if (owned->shape.order == 1 || sampled == 0) {
        return SLC_OK;
    }
    for (uint64_t s = 0; s < sampled; s++) {
        trial.sample_nnz += sample_piece(copy, s, sampled)->nnz;
    }
    status = slc_team_for(owned->workers, owned->shape.order, 1, try_run_modes, &trial, err);
    for (unsigned m = 0; m < owned->shape.order && status == SLC_OK; m++) {
        if (cost_of(&trial, m) < cost_of(&trial, copy->run_mode)) {
            copy->run_mode = m;
        }
    }
    return status;
}
