/* Calls the functions of a public row solver. */
#include "api/row_solver.h"

#include "api/call.h"

#include <math.h>
#include <string.h>

enum { NAME_BYTES = 63 };

static enum slc_status begin(void *context, const struct slc_row_mode *mode, struct slc_error *err)
{
    struct api_row_solver *wrapped = context;
    const struct sluice_row_mode known = {.order = mode->order,
                                          .mode = mode->mode,
                                          .rank = mode->rank,
                                          .workers = mode->workers,
                                          .iteration = mode->iteration,
                                          .rows = mode->rows};

    wrapped->rank = mode->rank;
    if (wrapped->given.begin != NULL && wrapped->given.begin(wrapped->given.context, &known) != 0) {
        return slc_fail(err, SLC_ERR_USAGE, "the row solver %s does not accept mode %u of rank %u",
                        wrapped->given.name, mode->mode, mode->rank);
    }
    return SLC_OK;
}

static uint64_t sums(void *context, uint32_t rank)
{
    const struct api_row_solver *wrapped = context;

    return wrapped->given.sums(wrapped->given.context, rank);
}

static uint64_t memory(void *context, uint32_t rank)
{
    const struct api_row_solver *wrapped = context;

    return wrapped->given.memory == NULL ? 0 : wrapped->given.memory(wrapped->given.context, rank);
}

static struct sluice_row public_row(const struct api_row_solver *wrapped, const struct slc_row *row)
{
    return (struct sluice_row){.index = row->index,
                               .nnz = row->nnz,
                               .rank = wrapped->rank,
                               .traversals = row->traversals,
                               .streamed = row->streamed,
                               .x = row->x,
                               .memory = row->memory};
}

static struct sluice_row_piece public_piece(const struct slc_row_piece *piece)
{
    return (struct sluice_row_piece){.nnz = piece->nnz,
                                     .pitch = piece->pitch,
                                     .values = piece->values,
                                     .products = piece->products};
}

static void start(void *context, unsigned worker, struct slc_row *row)
{
    const struct api_row_solver *wrapped = context;
    struct sluice_row known = public_row(wrapped, row);

    wrapped->given.start(wrapped->given.context, worker, &known);
}

static void add(void *context,
                unsigned worker,
                const struct slc_row *row,
                const struct slc_row_piece *piece,
                double *to)
{
    const struct api_row_solver *wrapped = context;
    const struct sluice_row known = public_row(wrapped, row);
    const struct sluice_row_piece part = public_piece(piece);

    wrapped->given.add(wrapped->given.context, worker, &known, &part, to);
}

static enum slc_row_next
step(void *context, unsigned worker, struct slc_row *row, const double *from)
{
    const struct api_row_solver *wrapped = context;
    struct sluice_row known = public_row(wrapped, row);

    return wrapped->given.step(wrapped->given.context, worker, &known, from) != 0 ? SLC_ROW_AGAIN
                                                                                  : SLC_ROW_DONE;
}

/* Adds the objective of the solver, and the magnitudes of residuals. */
static void measure(void *context,
                    unsigned worker,
                    const struct slc_row *row,
                    const struct slc_row_piece *piece,
                    double measures[SLC_ROW_MEASURES])
{
    const struct api_row_solver *wrapped = context;
    const struct sluice_row known = public_row(wrapped, row);

    if (piece == NULL) {
        return;
    }
    const struct sluice_row_piece part = public_piece(piece);

    measures[0] += wrapped->given.objective(wrapped->given.context, worker, &known, &part);
    for (uint32_t i = 0; i < piece->nnz; i++) {
        const double *product = piece->products + (uint64_t)i * piece->pitch;
        double residual = piece->values[i];

        for (uint32_t r = 0; r < wrapped->rank; r++) {
            residual -= product[r] * row->x[r];
        }
        measures[1] += fabs(residual);
    }
}

enum slc_status api_row_solver_wrap(struct api_row_solver *wrapped,
                                    const struct sluice_row_solver *given,
                                    struct slc_error *err)
{
    const struct api_row_solver empty = {0};

    *wrapped = empty;
    SLC_TRY(API_READ_OPTIONS(sluice_row_solver, &wrapped->given, given, err));
    const struct sluice_row_solver *known = &wrapped->given;

    if (known->name == NULL || known->name[0] == '\0' || strlen(known->name) > NAME_BYTES) {
        return slc_fail(err, SLC_ERR_USAGE, "a row solver needs a name of 1 to %d bytes",
                        NAME_BYTES);
    }
    if (known->sums == NULL || known->add == NULL || known->step == NULL) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the row solver %s needs the functions sums, add and step", known->name);
    }
    wrapped->solver = (struct slc_row_solver){.name = known->name,
                                              .input = SLC_ROW_NONZEROS,
                                              .context = wrapped,
                                              .begin = begin,
                                              .sums = sums,
                                              .memory = memory,
                                              .start = known->start != NULL ? start : NULL,
                                              .add = add,
                                              .step = step,
                                              .measure = known->objective != NULL ? measure : NULL};
    return SLC_OK;
}
