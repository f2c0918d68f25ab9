/* Sorts the nonzeros of a piece of a mode's copy.
 *
 * A key has the coordinates in its upper 48 bits and the index in the piece in its lower 16 bits; a
 * radix sort of the keys moves nonzeros that share rows next to each other. The largest mode is the
 * most significant mode: its rows take most time to load, and are then reused as often as possible
 * in sequence. The modes that vary within a run are not sorted, so the nonzeros of a run keep the
 * order of the stream. */
#include "base/memory/checked.h"
#include "cpu/replica/replica_build.h"

enum {
    PLACE_BITS = 16, /* bits of the index of a nonzero in its piece */
    RADIX_BITS = 11,
    RADIX_BUCKETS = 1 << RADIX_BITS
};

_Static_assert(SLC_REPLICA_PIECE_NNZ <= 1 << PLACE_BITS,
               "an index in a piece fits the low bits of a key");

/* The modes in the keys of a piece, most significant first. */
struct packing {
    unsigned count;
    unsigned mode[SLC_MAX_ORDER];
    uint32_t low[SLC_MAX_ORDER]; /* smallest coordinate of each mode, in the order of `mode` */
    unsigned shift[SLC_MAX_ORDER];
    unsigned shared;    /* number of modes in which a run agrees; these modes come first */
    unsigned run_shift; /* keys that agree in this bit and all higher bits belong to one run */
    bool complete;      /* true if the keys have all coordinates that distinguish runs */
};

uint64_t slc_replica_sort_bytes(void)
{
    return 2 * SLC_REPLICA_PIECE_NNZ * sizeof(uint64_t) +
           (SLC_REPLICA_PIECE_NNZ + UINT64_C(16)) * sizeof(uint32_t) +
           2 * SLC_REPLICA_CHUNK_NNZ * sizeof(struct slc_replica_run);
}

struct slc_replica_scratch slc_replica_scratch_of(const struct slc_replica *replica,
                                                  unsigned worker)
{
    unsigned char *at = (unsigned char *)replica->scratch.data + worker * slc_replica_sort_bytes();
    struct slc_replica_scratch scratch;

    scratch.keys[0] = (uint64_t *)(void *)at;
    scratch.keys[1] = scratch.keys[0] + SLC_REPLICA_PIECE_NNZ;
    scratch.run_begin = (uint32_t *)(void *)(scratch.keys[1] + SLC_REPLICA_PIECE_NNZ);
    scratch.runs[0] =
        (struct slc_replica_run *)(void *)(scratch.run_begin + SLC_REPLICA_PIECE_NNZ + 16);
    scratch.runs[1] = scratch.runs[0] + SLC_REPLICA_CHUNK_NNZ;
    return scratch;
}

static const unsigned char *piece_records(const struct slc_replica *replica,
                                          const struct slc_replica_piece *piece)
{
    return (const unsigned char *)replica->sorted.data + piece->first_nnz * replica->record_bytes;
}

/* Returns the benefit of accessing the rows of a mode in order, which is larger for output rows
 * because they are also written. */
static uint64_t mode_weight(const struct slc_replica *replica, unsigned output, unsigned mode)
{
    return replica->shape.dims[mode] * (mode == output ? 2 : 1);
}

/* Adds the modes whose bits are set in `modes` to the keys, in descending order of mode_weight. */
static void add_modes(const struct slc_replica *replica,
                      unsigned output,
                      uint32_t modes,
                      struct packing *packing)
{
    const unsigned first = packing->count;

    for (unsigned m = 0; m < replica->shape.order; m++) {
        unsigned at = packing->count;

        if ((modes >> m & 1) == 0) {
            continue;
        }
        while (at > first && mode_weight(replica, output, m) >
                                 mode_weight(replica, output, packing->mode[at - 1])) {
            packing->mode[at] = packing->mode[at - 1];
            at--;
        }
        packing->mode[at] = m;
        packing->count++;
    }
}

/* Selects the modes of the keys: first the modes in which a run agrees, and then the varying modes,
 * if there are two or more. */
static void order_modes(const struct slc_replica *replica,
                        unsigned output,
                        uint32_t varying,
                        struct packing *packing)
{
    packing->count = 0;
    add_modes(replica, output, ~varying, packing);
    packing->shared = packing->count;
    if (__builtin_popcount(varying) > 1) {
        add_modes(replica, output, varying, packing);
    }
}

unsigned slc_replica_first_mode(const struct slc_replica *replica, unsigned mode, uint32_t varying)
{
    struct packing packing;

    order_modes(replica, mode, varying, &packing);
    return packing.mode[0];
}

/* Assigns bits of a piece's keys to the modes. Modes that do not fit in the keys are omitted. */
static void plan_packing(const struct slc_replica *replica,
                         unsigned output,
                         uint32_t varying,
                         const struct slc_replica_piece *piece,
                         struct packing *packing)
{
    const unsigned char *records = piece_records(replica, piece);
    uint32_t high[SLC_MAX_ORDER] = {0};
    unsigned at = 64;

    order_modes(replica, output, varying, packing);
    memset(packing->low, 0xff, sizeof packing->low);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const unsigned char *record = records + (uint64_t)i * replica->record_bytes;

        for (unsigned k = 0; k < packing->count; k++) {
            const uint32_t value = slc_replica_coordinate(record, packing->mode[k]);

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

static void make_keys(const struct slc_replica *replica,
                      const struct slc_replica_piece *piece,
                      const struct packing *packing,
                      uint64_t *keys)
{
    const unsigned char *records = piece_records(replica, piece);

    for (uint32_t i = 0; i < piece->nnz; i++) {
        const unsigned char *record = records + (uint64_t)i * replica->record_bytes;
        uint64_t key = i;

        for (unsigned k = 0; k < packing->count; k++) {
            /* A mode in which all coordinates are equal may have a shift of 64. */
            key |= (uint64_t)(slc_replica_coordinate(record, packing->mode[k]) - packing->low[k])
                   << (packing->shift[k] & 63);
        }
        keys[i] = key;
    }
}

/* Sorts keys stably by bit `shift` and all higher bits. Returns the array with the result. */
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

/* Writes the starts of the runs, followed by `count`, and returns the number of runs. */
static uint32_t find_runs(const uint64_t *keys, uint32_t count, unsigned shift, uint32_t *begin)
{
    uint32_t runs = 1;

    begin[0] = 0;
    if (shift >= 64) { /* the shared modes have no bits, so the piece is one run */
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

void slc_replica_sort(const struct slc_replica *replica,
                      unsigned mode,
                      uint32_t varying,
                      const struct slc_replica_piece *piece,
                      const struct slc_replica_scratch *scratch,
                      struct slc_replica_order *order)
{
    struct packing packing;

    plan_packing(replica, mode, varying, piece, &packing);
    unsigned lowest = packing.count > 0 ? packing.shift[packing.count - 1] : 64;
    make_keys(replica, piece, &packing, scratch->keys[0]);
    order->records = piece_records(replica, piece);
    order->nnz = piece->nnz;
    order->keys = sort_keys(scratch->keys[0], scratch->keys[1], piece->nnz, lowest);
    order->run_begin = scratch->run_begin;
    order->run_count = 0;
    if (varying != SLC_REPLICA_PLAIN && packing.complete) {
        order->run_count =
            find_runs(order->keys, piece->nnz, packing.run_shift, scratch->run_begin);
    }
}
