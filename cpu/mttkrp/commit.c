/* Adds tile-local sums to the output.
 *
 * With LOCKED, a worker locks a stripe of rows once for all consecutive rows of the stripe. With
 * ORDERED, tile t may add to a stripe once tile t-1 has passed this stripe, so tiles pass through
 * the stripes of the output one after another. The additions to any row then happen in tile order
 * for any number of workers. A tile passes stripes in ascending order and waits only for earlier
 * tiles. Earlier tiles have already started, so no deadlock is possible. */
#include "cpu/mttkrp/mttkrp.h"

static void add_rows(const struct slc_cpu_backend *cpu,
                     const struct slc_partial *partial,
                     uint64_t begin,
                     uint64_t end)
{
    const bool narrow = cpu->type == SLC_F32 && cpu->layout.wide_bytes == 0;
    void (*add)(void *, const void *, uint64_t) =
        narrow ? cpu->kernels->add_f32 : cpu->kernels->add_f64;
    const uint64_t from_stride = cpu->sum_stride;
    const uint64_t to_stride = narrow ? cpu->stride : cpu->sum_stride;
    const uint64_t row_elements = from_stride / sizeof(double);

    if (partial->rows == NULL) {
        add(cpu->sums + (partial->corner + begin) * to_stride, partial->sums + begin * from_stride,
            (end - begin) * row_elements);
        return;
    }
    for (uint64_t i = begin; i < end; i++) {
        add(cpu->sums + (partial->corner + partial->rows[i]) * to_stride,
            partial->sums + i * from_stride, row_elements);
    }
}

static uint64_t row_of(const struct slc_partial *partial, uint64_t i)
{
    return partial->corner + (partial->rows == NULL ? i : partial->rows[i]);
}

/* Returns the first i > begin whose row is at least `limit`. */
static uint64_t run_end(const struct slc_partial *partial, uint64_t begin, uint64_t limit)
{
    uint64_t end = begin + 1;

    if (partial->rows == NULL) {
        const uint64_t inside = limit - partial->corner;
        return inside < partial->count ? inside : partial->count;
    }
    while (end < partial->count && row_of(partial, end) < limit) {
        end++;
    }
    return end;
}

static void commit_locked(struct slc_cpu_backend *cpu, const struct slc_partial *partial)
{
    for (uint64_t begin = 0; begin < partial->count;) {
        const uint64_t stripe = row_of(partial, begin) / cpu->lock_rows;
        const uint64_t end = run_end(partial, begin, (stripe + 1) * cpu->lock_rows);
        pthread_mutex_t *lock = &cpu->locks[stripe % SLC_LOCK_STRIPES];

        (void)pthread_mutex_lock(lock);
        add_rows(cpu, partial, begin, end);
        (void)pthread_mutex_unlock(lock);
        begin = end;
    }
}

/* Passes stripes [from, to) to the next tile. Needs: the caller holds the mutex. */
static void pass_stripes(struct slc_cpu_backend *cpu, uint64_t ordinal, unsigned from, unsigned to)
{
    for (unsigned s = from; s < to; s++) {
        cpu->passed[s] = ordinal + 1;
    }
    if (from < to && cpu->waiters > 0) {
        (void)pthread_cond_broadcast(&cpu->order_changed);
    }
}

/* Passes all stripes before `stripe` to the next tile, and waits for the tile's turn in
 * `stripe`. */
static enum slc_status enter_stripe(struct slc_cpu_backend *cpu,
                                    unsigned worker,
                                    uint64_t ordinal,
                                    unsigned stripe,
                                    struct slc_error *err)
{
    struct slc_mttkrp_worker *state = &cpu->workers[worker];
    unsigned first = 0;

    if (state->holds_stripe && state->stripe == stripe) {
        return SLC_OK;
    }
    (void)pthread_mutex_lock(&cpu->order_mutex);
    if (state->holds_stripe) {
        first = state->stripe + 1;
        pass_stripes(cpu, ordinal, state->stripe, first);
    }
    while (cpu->passed[stripe] < ordinal && !cpu->aborted) {
        cpu->waiters++;
        (void)pthread_cond_wait(&cpu->order_changed, &cpu->order_mutex);
        cpu->waiters--;
    }
    bool aborted = cpu->aborted;
    if (!aborted) {
        /* The previous tile passes stripes in ascending order, so it has also passed the stripes
         * before `stripe`. */
        pass_stripes(cpu, ordinal, first, stripe);
        state->holds_stripe = true;
        state->stripe = stripe;
    }
    (void)pthread_mutex_unlock(&cpu->order_mutex);
    if (aborted) {
        return slc_fail(err, SLC_ERR_INTERRUPTED,
                        "the computation was stopped while tile %llu waited for its turn",
                        (unsigned long long)ordinal);
    }
    return SLC_OK;
}

static enum slc_status commit_ordered(struct slc_cpu_backend *cpu,
                                      unsigned worker,
                                      uint64_t ordinal,
                                      const struct slc_partial *partial,
                                      struct slc_error *err)
{
    for (uint64_t begin = 0; begin < partial->count;) {
        const uint64_t stripe = row_of(partial, begin) / cpu->order_rows;
        const uint64_t end = run_end(partial, begin, (stripe + 1) * cpu->order_rows);

        SLC_TRY(enter_stripe(cpu, worker, ordinal, (unsigned)stripe, err));
        add_rows(cpu, partial, begin, end);
        begin = end;
    }
    return SLC_OK;
}

enum slc_status slc_mttkrp_commit(struct slc_cpu_backend *cpu,
                                  unsigned worker,
                                  uint64_t ordinal,
                                  const struct slc_partial *partial,
                                  struct slc_error *err)
{
    if (cpu->conflict == SLC_CONFLICT_ORDERED) {
        return commit_ordered(cpu, worker, ordinal, partial, err);
    }
    commit_locked(cpu, partial);
    return SLC_OK;
}

enum slc_status slc_mttkrp_commit_end(struct slc_cpu_backend *cpu,
                                      unsigned worker,
                                      uint64_t ordinal,
                                      struct slc_error *err)
{
    if (cpu->conflict != SLC_CONFLICT_ORDERED) {
        return SLC_OK;
    }
    SLC_TRY(enter_stripe(cpu, worker, ordinal, SLC_ORDER_STRIPES - 1, err));
    (void)pthread_mutex_lock(&cpu->order_mutex);
    pass_stripes(cpu, ordinal, SLC_ORDER_STRIPES - 1, SLC_ORDER_STRIPES);
    cpu->workers[worker].holds_stripe = false;
    (void)pthread_mutex_unlock(&cpu->order_mutex);
    return SLC_OK;
}
