/* Sorts records stably and combines duplicates. bucket_sort.c includes this file once per key
 * width. It first defines WIDE (0 or 1) and RECORD (a struct with lo, value, and hi if WIDE). It
 * also defines NAME(x), the name of function x for this key width, and KEY(record), the whole key
 * of a record of `bucket`. */

static inline unsigned NAME(digit)(const RECORD *record, unsigned shift, unsigned mask)
{
#if WIDE
    if (shift >= 64) {
        return (unsigned)(record->hi >> (shift - 64)) & mask;
    }
    if (shift > 64 - DIGIT_BITS) {
        return (unsigned)(record->lo >> shift | record->hi << (64 - shift)) & mask;
    }
#endif
    return (unsigned)(record->lo >> shift) & mask;
}

static inline bool NAME(less)(const RECORD *a, const RECORD *b)
{
#if WIDE
    if (a->hi != b->hi) {
        return a->hi < b->hi;
    }
#endif
    return a->lo < b->lo;
}

static inline bool NAME(same)(const RECORD *a, const RECORD *b)
{
#if WIDE
    return a->lo == b->lo && a->hi == b->hi;
#else
    return a->lo == b->lo;
#endif
}

/* Sorts `records` and writes them to `sorted`, which may be the same array. */
static void NAME(insertion_sort)(const RECORD *records, RECORD *sorted, size_t count)
{
    size_t i, j;

    for (i = 0; i < count; i++) {
        RECORD record = records[i];

        for (j = i; j > 0 && NAME(less)(&record, &sorted[j - 1]); j--) {
            sorted[j] = sorted[j - 1];
        }
        sorted[j] = record;
    }
}

/* Returns the position of the highest bit in which keys differ, plus 1; 0 if all keys are equal. */
static unsigned NAME(differing_bits)(const RECORD *records, size_t count)
{
    uint64_t lo = 0;
    size_t i;
#if WIDE
    uint64_t hi = 0;

    for (i = 1; i < count; i++) {
        hi |= records[i].hi ^ records[0].hi;
    }
    if (hi != 0) {
        return 128U - (unsigned)__builtin_clzll(hi);
    }
#endif
    for (i = 1; i < count; i++) {
        lo |= records[i].lo ^ records[0].lo;
    }
    return lo == 0 ? 0 : 64U - (unsigned)__builtin_clzll(lo);
}

/* Sorts `from` with scratch `other` of the same size; the result is in `other` if `swap`, else in
 * `from`. */
static void NAME(sort)(RECORD *from, RECORD *other, uint32_t count, bool swap);

/* Sorts each group of records with equal digits in `to` after a distribution; starts[d] is the end
 * of the group with digit d. If all groups are small, most of them hold one record. A single
 * insertion sort over the whole array then moves few records and mispredicts few branches. */
static void NAME(sort_groups)(
    RECORD *to, RECORD *scratch, uint32_t count, const uint32_t *starts, unsigned mask, bool swap)
{
    uint32_t largest = 0;
    uint32_t i = 0;
    unsigned d;

    for (d = 0; d <= mask; d++) {
        largest = starts[d] - i > largest ? starts[d] - i : largest;
        i = starts[d];
    }
    if (largest <= INSERTION_SORT_MAX) {
        NAME(insertion_sort)(to, swap ? scratch : to, count);
        return;
    }
    for (d = 0, i = 0; d <= mask; d++) {
        if (starts[d] > i) {
            NAME(sort)(to + i, scratch + i, starts[d] - i, swap);
        }
        i = starts[d];
    }
}

static void NAME(sort)(RECORD *from, RECORD *other, uint32_t count, bool swap)
{
    uint32_t starts[(1 << DIGIT_BITS) + 1];
    unsigned bits = count > INSERTION_SORT_MAX ? NAME(differing_bits)(from, count) : 0;
    unsigned width = digit_width(count);
    unsigned shift = bits > width ? bits - width : 0;
    unsigned mask = (1U << width) - 1;
    unsigned d;
    uint32_t i;

    if (count <= INSERTION_SORT_MAX) {
        NAME(insertion_sort)(from, swap ? other : from, count);
        return;
    }
    if (bits == 0) {
        if (swap) {
            memcpy(other, from, count * sizeof *from);
        }
        return;
    }
    memset(starts, 0, (mask + 2) * sizeof *starts);
    for (i = 0; i < count; i++) {
        starts[NAME(digit)(&from[i], shift, mask) + 1]++;
    }
    for (d = 1; d <= mask; d++) {
        starts[d] += starts[d - 1];
    }
    for (i = 0; i < count; i++) {
        other[starts[NAME(digit)(&from[i], shift, mask)]++] = from[i];
    }
    /* starts[d] is now the end of the group with digit d. */
    NAME(sort_groups)(other, from, count, starts, mask, !swap);
}

/* Sorts a bucket whose records were loaded into `from` in any order, and whose digits were counted
 * in `first`. `slots` lists the runs in input order. The first distribution reads the records in
 * that order, so no extra copy is needed. The result is in `to`. After the first distribution, all
 * groups use the same scratch, and a group and the scratch fit the level-2 cache. */
static void NAME(sort_runs)(RECORD *from,
                            const struct run_slot *slots,
                            size_t slot_count,
                            RECORD *to,
                            struct first_digit *first)
{
    uint32_t *starts = first->starts;
    uint32_t i;
    size_t s;
    unsigned d;

    for (d = 1; d <= first->mask; d++) {
        starts[d] += starts[d - 1];
    }
    for (s = 0; s < slot_count; s++) {
        const RECORD *run = from + slots[s].start;

        for (i = 0; i < slots[s].count; i++) {
            RECORD *place = &to[starts[NAME(digit)(&run[i], first->shift, first->mask)]++];

            __builtin_prefetch(place + AHEAD_RECORDS, 1);
            *place = run[i];
        }
    }
    for (d = 0, i = 0; d <= first->mask; d++) {
        if (starts[d] > i) {
            NAME(sort)(to + i, from, starts[d] - i, false);
        }
        i = starts[d];
    }
}

/* Combines neighbouring records with equal keys and writes the columns of struct slc_sorted to
 * `columns`, which has the size of the records. */
static enum slc_status NAME(combine)(const struct slc_sort_plan *plan,
                                     const struct slc_bucket *bucket,
                                     const RECORD *records,
                                     size_t count,
                                     void *columns,
                                     struct slc_sorted *sorted,
                                     struct slc_error *err)
{
    uint64_t *lo = columns;
    uint64_t *hi = WIDE ? lo + count : NULL;
    void *value_bytes = lo + (WIDE ? 2 : 1) * count;
    double *values = value_bytes;
    size_t out = 0;
    size_t carry = 0;
    size_t i = 0;

    *sorted = (struct slc_sorted){.upper = WIDE ? 0 : (uint64_t)(bucket->first >> 64)};
    if (bucket->lower_shared && count > 0) {
        sorted->raw_lo = (uint64_t)KEY(&records[0]);
        sorted->raw_hi = (uint64_t)(KEY(&records[0]) >> 64);
        for (; i < count && NAME(same)(&records[i], &records[0]); i++) {
            values[i] = records[i].value;
        }
        sorted->raw_count = i;
    }
    sorted->raw_values = values;
    values += i;
    while (i < count) {
        const RECORD *first = &records[i];
        double value = first->value;
        const size_t begin = i;
        bool keep = true;

        for (i++; i < count && NAME(same)(&records[i], first); i++) {
            SLC_TRY(slc_sort_combine(plan, (uint64_t)KEY(first), (uint64_t)(KEY(first) >> 64),
                                     records[i].value, &value, err));
            sorted->counts.duplicates++;
        }
        if (i == count && bucket->upper_shared) {
            sorted->open = true;
            sorted->open_lo = (uint64_t)KEY(first);
            sorted->open_hi = (uint64_t)(KEY(first) >> 64);
            sorted->open_value = value;
            sorted->open_count = i - begin;
            break;
        }
        if (i - begin > 1) {
            value = slc_sort_divide(plan, value, i - begin);
        }
        if (!is_final(plan, value)) {
            SLC_TRY(slc_sort_complete_value(plan, (uint64_t)KEY(first),
                                            (uint64_t)(KEY(first) >> 64), &value, &keep,
                                            &sorted->counts, err));
        }
#if WIDE
        lo[out] = first->lo;
        hi[out] = first->hi;
#else
        lo[out] = (uint64_t)bucket->first + first->lo;
        carry += keep && lo[out] >= first->lo; /* else the sum wrapped around */
#endif
        values[out] = value;
        out += keep;
    }
    sorted->count = out;
    sorted->carry = carry;
    sorted->key_lo = lo;
    sorted->key_hi = hi;
    sorted->values = values;
    return SLC_OK;
}
