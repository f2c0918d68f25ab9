/* See column_bands.h. */
#include "report/factors/column_bands.h"

#include "base/memory/checked.h"

#include <math.h>

uint32_t slc_column_bands_count(const struct slc_column_bands *wanted)
{
    return (uint32_t)slc_min_u64(wanted->bands, wanted->factor.length);
}

/* The first row of band `k` of `count`: no product of a mode's length, which could wrap. */
static uint64_t band_begin(uint64_t length, uint32_t count, uint32_t k)
{
    const uint64_t whole = length / count;
    const uint64_t rest = length % count;

    return whole * k + (rest * k + count - 1) / count;
}

struct bands_state {
    const struct slc_column_bands *wanted;
    struct slc_band *found;
    uint32_t count;
    uint32_t band; /* that rows go to now */
    uint64_t end;  /* its rows end here */
};

static void add_row(struct bands_state *state, uint64_t row, const double *values)
{
    const struct slc_column_bands *wanted = state->wanted;
    bool first = row == 0;

    if (row == state->end) {
        state->band++;
        state->end = band_begin(wanted->factor.length, state->count, state->band + 1);
        first = true;
    }
    for (uint32_t c = 0; c < wanted->column_count; c++) {
        struct slc_band *band = &state->found[(uint64_t)c * state->count + state->band];
        const double value = values[wanted->columns[c]];

        band->low = first ? value : fmin(band->low, value);
        band->high = first ? value : fmax(band->high, value);
    }
}

static void add_rows(void *context, const double *values, uint64_t first, uint64_t rows)
{
    struct bands_state *state = context;

    for (uint64_t i = 0; i < rows; i++) {
        add_row(state, first + i, values + i * state->wanted->factor.rank);
    }
}

enum slc_status slc_column_bands_find(const struct slc_column_bands *wanted,
                                      struct slc_band *found,
                                      struct slc_error *err)
{
    struct bands_state state = {
        .wanted = wanted, .found = found, .count = slc_column_bands_count(wanted)};

    if (wanted->factor.length > 0) {
        state.end = band_begin(wanted->factor.length, state.count, 1);
    }
    return slc_factor_rows_each(&wanted->factor, add_rows, &state, err);
}
