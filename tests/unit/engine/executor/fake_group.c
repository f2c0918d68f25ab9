/* Operations of fake devices in a group. */
#include "fake_impl.h"

#include "slc_test.h"

#include "base/backend.h"
#include "cpu/dense/dense.h"

#include <string.h>

/* Requirements of all operations: each span is one of rows, and the thread is idle. */
static void check(struct fake *fake,
                  const struct slc_row_span *rows,
                  uint64_t count,
                  uint64_t end,
                  const char *what)
{
    fake_require(fake, !fake->working && fake->problem.unit_most > 0, what);
    for (uint64_t i = 0; i < count; i++) {
        fake_require(fake, rows[i].first < rows[i].end && rows[i].end <= end, what);
    }
}

enum slc_status fake_factor_copy(struct slc_device *device,
                                 unsigned mode,
                                 const struct slc_device *from,
                                 const struct slc_row_span *rows,
                                 uint64_t count,
                                 struct slc_error *err)
{
    struct fake *fake = fake_of(device), *other = fake_of(from);
    const enum slc_status status = fake_call(fake, true, "factor_copy", err);
    const uint64_t row_bytes = slc_matrix_row_bytes(&fake->factors[mode]);

    if (status != SLC_OK) {
        return status;
    }
    check(fake, rows, count, fake->factors[mode].rows, "copying rows out of range");
    fake_require(fake, fake != other, "copying rows from itself");
    for (uint64_t i = 0; i < count; i++) {
        memcpy((char *)fake->factors[mode].buffer.data + rows[i].first * row_bytes,
               (const char *)other->factors[mode].buffer.data + rows[i].first * row_bytes,
               (rows[i].end - rows[i].first) * row_bytes);
        fake->stats.bytes_from_devices += (rows[i].end - rows[i].first) * row_bytes;
    }
    return SLC_OK;
}

enum slc_status fake_output_add(struct slc_device *device,
                                const struct slc_device *from,
                                const struct slc_row_span *rows,
                                uint64_t count,
                                struct slc_error *err)
{
    struct fake *fake = fake_of(device), *other = fake_of(from);
    const enum slc_status status = fake_call(fake, true, "output_add", err);

    if (status != SLC_OK) {
        return status;
    }
    check(fake, rows, count, fake->output.rows, "adding rows out of range");
    fake_require(fake,
                 fake != other && fake->job.mode == other->job.mode && fake->has_output &&
                     other->has_output,
                 "adding an output of another job, or its own");
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t row = rows[i].first; row < rows[i].end; row++) {
            for (uint32_t r = 0; r < fake->problem.rank; r++) {
                slc_matrix_row_f64(&fake->output, row)[r] +=
                    slc_matrix_row_f64(&other->output, row)[r];
            }
        }
    }
    return SLC_OK;
}

enum slc_status fake_output_rows(struct slc_device *device,
                                 const struct slc_row_span *rows,
                                 uint64_t count,
                                 struct slc_matrix *to,
                                 struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    const enum slc_status status = fake_call(fake, true, "output_rows", err);

    if (status != SLC_OK) {
        return status;
    }
    check(fake, rows, count, to->rows, "reading rows out of range");
    for (uint64_t i = 0; i < count; i++) {
        for (uint64_t row = rows[i].first; row < rows[i].end; row++) {
            for (uint32_t r = 0; r < to->cols; r++) {
                slc_matrix_set(to, row, r, slc_matrix_get(&fake->output, row, r));
            }
        }
    }
    return SLC_OK;
}

enum slc_status fake_update_units(struct slc_device *device,
                                  unsigned mode,
                                  const struct slc_solver *solver,
                                  const struct slc_device_units *units,
                                  double *columns,
                                  struct slc_error *err)
{
    struct fake *fake = fake_of(device);
    enum slc_status status = fake_call(fake, true, "update_units", err);
    const uint64_t elements = slc_dense_columns_elements(solver->rank);
    struct slc_buffer buffer = {0}; /* columns must begin at a cache line */
    struct slc_dense *dense;
    double *found;

    if (status != SLC_OK) {
        return status;
    }
    check(fake, units->rows, units->count, fake->output.rows, "units out of range");
    fake_require(
        fake, fake->has_output && mode == fake->job.mode && units->count <= fake->problem.unit_most,
        "units of another job, or too many");
    dense = fake_dense(fake);
    SLC_ASSERT_OK(slc_buffer_create(&buffer, elements * sizeof *found, SLC_PAGES_SMALL, err), err);
    found = buffer.data;
    for (uint32_t u = 0; u < units->count && status == SLC_OK; u++) {
        fake_require(fake, units->rows[u].end - units->rows[u].first <= units->rows_most,
                     "a unit that is too long");
        status = slc_dense_update_part(dense, solver, &fake->output, &fake->factors[mode],
                                       units->rows[u].first, units->rows[u].end, 0, found, err);
        memcpy(columns + u * 2 * (uint64_t)solver->rank, found, solver->rank * sizeof *found);
        memcpy(columns + (u * 2 + 1) * (uint64_t)solver->rank, found + elements / 2,
               solver->rank * sizeof *found);
    }
    slc_buffer_destroy(&buffer);
    slc_dense_destroy(dense);
    return status;
}
