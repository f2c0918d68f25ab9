/* Compares two models as if they had the same rank and rows: the model of smaller rank gets
 * components of zeros, which match nothing, and each row of the second model gets the number of the
 * corresponding row of the first. */
#include "sweep/run_match.h"

#include "base/error/stop.h"
#include "base/matrix.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "cpu/dense/congruence.h"
#include "storage/manifest/name_index.h"
#include "storage/model/npy.h"
#include "storage/model/run_folder.h"

#include <inttypes.h>
#include <string.h>

enum { PIECE_ROWS = 1024 };

/* Comparison of one mode. */
struct mode_match {
    const struct slc_run_side *one, *two;
    unsigned mode;
    struct slc_name_index index; /* index of the first run's names; unused if rows match by index */
    bool by_name;
    uint8_t *matched; /* per row of the first run: 1 if matched; used only if by_name */
    uint64_t rows;
};

static uint32_t larger_rank(const struct slc_run_side *one, const struct slc_run_side *two)
{
    return one->rank > two->rank ? one->rank : two->rank;
}

static struct slc_names *names_of(const struct slc_run_side *side, unsigned mode)
{
    return side->names != NULL ? side->names[mode] : NULL;
}

uint64_t slc_run_match_bytes(const struct slc_run_side *one, const struct slc_run_side *two)
{
    const uint32_t rank = larger_rank(one, two);
    uint64_t most = 0;

    for (unsigned n = 0; n < one->order; n++) {
        uint64_t bytes =
            slc_min_u64(slc_matrix_footprint(SLC_F64, one->dims[n], rank), UINT64_MAX / 8) * 2;

        if (names_of(one, n) != NULL && names_of(two, n) != NULL) {
            bytes += slc_min_u64(slc_name_index_memory_bytes(one->dims[n]), UINT64_MAX / 8) +
                     one->dims[n];
        }
        most = slc_max_u64(most, bytes);
    }
    return most + slc_congruence_memory_bytes(rank) + (uint64_t)PIECE_ROWS * rank * sizeof(double);
}

/* Sets *row to the row of the first run that corresponds to row i of the second run, or to
 * UINT64_MAX if there is none. */
static enum slc_status
find_row(struct mode_match *match, uint64_t i, uint64_t *row, struct slc_error *err)
{
    struct slc_names *names = names_of(match->two, match->mode);
    const char *name;
    size_t bytes;

    *row = i;
    if (!match->by_name) {
        return SLC_OK;
    }
    *row = UINT64_MAX;
    if (i >= slc_names_count(names)) {
        return SLC_OK;
    }
    SLC_TRY(slc_names_get(names, i, &name, &bytes, err));
    SLC_TRY(slc_name_index_find(&match->index, name, bytes, row, err));
    if (*row != UINT64_MAX && match->matched[*row] != 0) {
        *row = UINT64_MAX; /* the name occurs twice */
    } else if (*row != UINT64_MAX) {
        match->matched[*row] = 1;
    }
    return SLC_OK;
}

/* Reads a factor of a run into a matrix of zeros with the rows of the first run. */
static enum slc_status read_factor(struct mode_match *match,
                                   const struct slc_run_side *side,
                                   struct slc_matrix *factor,
                                   struct slc_error *err)
{
    const uint64_t length = side->dims[match->mode];
    char *path = slc_run_folder_factor(side->folder, match->mode);
    double *values = slc_malloc((size_t)PIECE_ROWS * side->rank * sizeof *values);
    struct slc_npy_rows *rows = NULL;
    enum slc_status status =
        slc_check_memory(path != NULL && values != NULL, err, "for comparing runs");

    SLC_THEN(status, slc_npy_rows_open(side->files, path, length, side->rank, &rows, err));
    for (uint64_t first = 0, count; first < length && status == SLC_OK; first += count) {
        count = slc_min_u64(PIECE_ROWS, length - first);
        status = slc_npy_rows_read(rows, first, count, values, err);
        for (uint64_t i = 0; i < count && status == SLC_OK; i++) {
            uint64_t row = first + i;

            if (side == match->two) {
                status = find_row(match, first + i, &row, err);
                match->rows += row != UINT64_MAX;
            }
            if (row != UINT64_MAX) {
                memcpy(slc_matrix_row_f64(factor, row), values + i * side->rank,
                       side->rank * sizeof *values);
            }
        }
    }
    slc_npy_rows_close(rows);
    slc_free(values);
    slc_free(path);
    return status;
}

/* Reads the factors of both runs and adds them to the comparison. */
static enum slc_status
add_factors(struct mode_match *match, struct slc_congruence *congruence, struct slc_error *err)
{
    const uint64_t rows = match->one->dims[match->mode];
    struct slc_matrix one = {.rows = 0}, two = {.rows = 0};
    enum slc_status status = slc_matrix_create(&one, SLC_F64, rows, congruence->rank, err);

    SLC_THEN(status, slc_matrix_create(&two, SLC_F64, rows, congruence->rank, err));
    SLC_THEN(status, read_factor(match, match->one, &one, err));
    SLC_THEN(status, read_factor(match, match->two, &two, err));
    if (status == SLC_OK && match->rows == 0 && rows > 0) {
        status = slc_fail(err, SLC_ERR_INPUT,
                          "%s and %s have no name of mode %u in common: the runs are of different "
                          "tensors",
                          match->one->folder, match->two->folder, match->mode + 1);
    }
    for (uint64_t i = 0; i < rows && status == SLC_OK && match->by_name; i++) {
        if (match->matched[i] == 0) {
            memset(slc_matrix_row_f64(&one, i), 0, one.cols * sizeof(double));
        }
    }
    if (status == SLC_OK) {
        slc_congruence_add(congruence, &one, &two);
    }
    slc_matrix_destroy(&one);
    slc_matrix_destroy(&two);
    return status;
}

static enum slc_status
add_mode(struct mode_match *match, struct slc_congruence *congruence, struct slc_error *err)
{
    const uint64_t rows = match->one->dims[match->mode];
    struct slc_names *names = names_of(match->one, match->mode);
    enum slc_status status = SLC_OK;

    match->by_name = names != NULL && names_of(match->two, match->mode) != NULL;
    if (!match->by_name && rows != match->two->dims[match->mode]) {
        return slc_fail(err, SLC_ERR_INPUT,
                        "mode %u has %" PRIu64 " rows in %s and %" PRIu64
                        " in %s, and no names that show which rows correspond",
                        match->mode + 1, rows, match->one->folder, match->two->dims[match->mode],
                        match->two->folder);
    }
    if (match->by_name) {
        match->matched = slc_calloc(rows, 1);
        SLC_TRY(slc_check_memory(match->matched != NULL, err, "for comparing runs"));
        status = slc_name_index_create(&match->index, names, rows, err);
    }
    SLC_THEN(status, add_factors(match, congruence, err));
    slc_name_index_destroy(&match->index);
    slc_free(match->matched);
    return status;
}

/* Copies weights, with zeros for the added components. */
static void pad_weights(double *padded, const struct slc_run_side *side, uint32_t rank)
{
    memset(padded, 0, rank * sizeof *padded);
    memcpy(padded, side->lambda, side->rank * sizeof *padded);
}

/* Assigns the components and fills in the result. */
static enum slc_status match_components(const struct slc_run_side *one,
                                        const struct slc_run_side *two,
                                        struct slc_congruence *congruence,
                                        struct slc_run_match *match,
                                        struct slc_error *err)
{
    const uint32_t rank = congruence->rank;
    double *lambda = slc_malloc(2 * rank * sizeof *lambda);
    uint32_t *other = slc_malloc(rank * sizeof *other);
    enum slc_status status =
        slc_check_memory(lambda != NULL && other != NULL, err, "for matching components");

    if (status == SLC_OK) {
        pad_weights(lambda, one, rank);
        pad_weights(lambda + rank, two, rank);
        status = slc_congruence_score(congruence, lambda, lambda + rank, &match->score, other, err);
    }
    match->count = 0;
    for (uint32_t a = 0; a < rank && status == SLC_OK; a++) {
        if (a < one->rank && other[a] < two->rank) {
            match->pair[match->count].one = a;
            match->pair[match->count].two = other[a];
            match->pair[match->count++].similarity =
                congruence->products[(size_t)a * rank + other[a]];
        }
    }
    if (status == SLC_OK && match->count > 0) {
        match->score *= (double)rank / (one->rank < two->rank ? one->rank : two->rank);
    }
    slc_free(lambda);
    slc_free(other);
    return status;
}

enum slc_status slc_run_match_find(const struct slc_run_side *one,
                                   const struct slc_run_side *two,
                                   const volatile int *flag,
                                   struct slc_run_match *match,
                                   struct slc_error *err)
{
    const struct slc_stop stop = {.flag = flag};
    struct slc_congruence congruence = {.rank = 0};

    if (one->order != two->order) {
        return slc_fail(err, SLC_ERR_INPUT, "%s has %u modes, but %s has %u", one->folder,
                        one->order, two->folder, two->order);
    }
    enum slc_status status = slc_congruence_create(&congruence, larger_rank(one, two), err);
    for (unsigned n = 0; n < one->order && status == SLC_OK; n++) {
        struct mode_match mode = {.one = one, .two = two, .mode = n};

        status = slc_stop_check(&stop, err);
        SLC_THEN(status, add_mode(&mode, &congruence, err));
        match->rows[n] = mode.rows;
    }
    SLC_THEN(status, match_components(one, two, &congruence, match, err));
    slc_congruence_destroy(&congruence);
    return status;
}
