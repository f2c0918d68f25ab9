/* See column_bands.h. */
#include "report/factors/column_bands.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/model/npy.h"

#include <math.h>

/* Numbers read at a time, about: more than that makes reading no faster. */
enum { PIECE_NUMBERS = 64 * 1024 };

static uint64_t piece_rows(uint32_t rank)
{
    return slc_max_u64(1, PIECE_NUMBERS / rank);
}

uint64_t slc_column_bands_memory_bytes(uint32_t rank)
{
    return slc_buffer_footprint(piece_rows(rank) * rank * sizeof(double), SLC_PAGES_SMALL);
}

uint32_t slc_column_bands_count(const struct slc_column_bands *wanted)
{
    return (uint32_t)slc_min_u64(wanted->bands, wanted->length);
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
        state->end = band_begin(wanted->length, state->count, state->band + 1);
        first = true;
    }
    for (uint32_t c = 0; c < wanted->column_count; c++) {
        struct slc_band *band = &state->found[(uint64_t)c * state->count + state->band];
        const double value = values[wanted->columns[c]];

        band->low = first ? value : fmin(band->low, value);
        band->high = first ? value : fmax(band->high, value);
    }
}

enum slc_status slc_column_bands_find(const struct slc_column_bands *wanted,
                                      struct slc_band *found,
                                      struct slc_error *err)
{
    const uint64_t step = piece_rows(wanted->rank);
    struct bands_state state = {
        .wanted = wanted, .found = found, .count = slc_column_bands_count(wanted)};
    struct slc_npy_rows *rows = NULL;
    struct slc_buffer values = SLC_BUFFER_INIT;
    enum slc_status status = wanted->path == NULL
                                 ? SLC_OK
                                 : slc_npy_rows_open(wanted->files, wanted->path, wanted->length,
                                                     wanted->rank, &rows, err);

    if (status == SLC_OK) {
        status =
            slc_buffer_create(&values, step * wanted->rank * sizeof(double), SLC_PAGES_SMALL, err);
    }
    if (status == SLC_OK && wanted->length > 0) {
        state.end = band_begin(wanted->length, state.count, 1);
    }
    for (uint64_t first = 0, more; first < wanted->length && status == SLC_OK; first += more) {
        more = slc_min_u64(step, wanted->length - first);
        if (wanted->path == NULL) {
            slc_matrix_get_rows(wanted->matrix, first, more, values.data);
        } else {
            status = slc_npy_rows_read(rows, first, more, values.data, err);
        }
        for (uint64_t i = 0; i < more && status == SLC_OK; i++) {
            add_row(&state, first + i, (const double *)values.data + i * wanted->rank);
        }
    }
    slc_buffer_destroy(&values);
    slc_npy_rows_close(rows);
    return status;
}
