/* Writes a model as a .mat file: `model` is a struct of `lambda` and `U`, for ktensor(model.lambda,
 * model.U). The file is column-major, but memory and .npy files are row-major. Therefore the writer
 * reads a few rows at a time, and writes the elements of each column at their offset in the
 * file. */
#include "storage/model/model_forms.h"

#include "base/memory/bytes.h"
#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "storage/file/output.h"
#include "storage/model/mat5.h"

#include <inttypes.h>

/* The arrays of a model, outermost first. */
struct arrays {
    struct slc_mat5_array model, lambda, cell, factors[SLC_MAX_ORDER];
};

/* Computes the sizes of all arrays, from the innermost to the outermost array. Returns false if a
 * size exceeds the format's limit. */
static bool compute_sizes(struct arrays *arrays, const struct slc_model_view *model)
{
    uint64_t bytes = 0;
    bool fits = true;

    for (unsigned n = 0; n < model->order; n++) {
        arrays->factors[n] = (struct slc_mat5_array){
            .kind = slc_model_type(model, n) == SLC_F32 ? SLC_MAT5_F32 : SLC_MAT5_F64,
            .rows = slc_model_length(model, n),
            .cols = model->rank,
            .name = ""};
        fits = fits && slc_add_u64(bytes, slc_mat5_bytes(&arrays->factors[n]), &bytes);
    }
    arrays->cell = (struct slc_mat5_array){
        .kind = SLC_MAT5_CELL, .rows = model->order, .cols = 1, .name = "", .part_bytes = bytes};
    arrays->lambda =
        (struct slc_mat5_array){.kind = SLC_MAT5_F64, .rows = model->rank, .cols = 1, .name = ""};
    fits =
        fits && slc_add_u64(slc_mat5_bytes(&arrays->cell), slc_mat5_bytes(&arrays->lambda), &bytes);
    arrays->model = (struct slc_mat5_array){.kind = SLC_MAT5_STRUCT,
                                            .rows = 1,
                                            .cols = 1,
                                            .name = "model",
                                            .fields = "lambda U",
                                            .part_bytes = bytes};
    return fits && slc_mat5_bytes(&arrays->model) <= SLC_MAT5_VARIABLE_MAX;
}

static enum slc_status write_array_head(struct slc_output *output,
                                        const struct slc_mat5_array *array,
                                        struct slc_error *err)
{
    uint8_t *space;

    SLC_TRY(slc_output_reserve(output, SLC_MAT5_ARRAY_MAX, &space, err));
    output->used += slc_mat5_begin(array, space);
    return SLC_OK;
}

static enum slc_status
write_lambda(struct slc_output *output, const struct slc_model_view *model, struct slc_error *err)
{
    uint8_t *space;
    enum slc_status status = slc_output_reserve(output, model->rank * sizeof(double), &space, err);

    for (uint32_t r = 0; r < model->rank && status == SLC_OK; r++) {
        slc_store_f64(space + r * sizeof(double), model->lambda[r]);
    }
    output->used += status == SLC_OK ? model->rank * sizeof(double) : 0;
    return status;
}

/* Copies column `col` of `count` rows as bytes. */
static void gather_column(
    const double *values, uint64_t count, uint32_t cols, uint32_t col, bool single, uint8_t *bytes)
{
    for (uint64_t i = 0; i < count; i++) {
        const double value = values[i * cols + col];

        if (single) {
            slc_store_f32(bytes + i * sizeof(float), (float)value);
        } else {
            slc_store_f64(bytes + i * sizeof(double), value);
        }
    }
}

/* Writes the numbers of a factor. `values` and `bytes` have memory for a few rows each. */
static enum slc_status write_factor(struct slc_output *output,
                                    const struct slc_model_view *model,
                                    unsigned mode,
                                    double *values,
                                    uint8_t *bytes,
                                    struct slc_error *err)
{
    const bool single = slc_model_type(model, mode) == SLC_F32;
    const uint64_t item = single ? sizeof(float) : sizeof(double);
    const uint64_t rows = slc_model_length(model, mode);
    const uint64_t step = SLC_MODEL_PIECE_NUMBERS / model->rank;
    const uint64_t numbers = rows * model->rank;
    uint64_t offset;
    uint8_t *space;

    SLC_TRY(slc_output_skip(output, numbers * item, &offset, err));
    for (uint64_t first = 0, more; first < rows; first += more) {
        more = slc_min_u64(step, rows - first);
        SLC_TRY(slc_model_rows(model, mode, first, more, values, err));
        for (uint32_t c = 0; c < model->rank; c++) {
            gather_column(values, more, model->rank, c, single, bytes);
            SLC_TRY(slc_output_fill(output, offset + (c * rows + first) * item, bytes, more * item,
                                    err));
        }
    }
    if ((numbers * item) % 8 != 0) {
        SLC_TRY(slc_output_reserve(output, 4, &space, err));
        slc_store_u32(space, 0);
        output->used += 4;
    }
    return SLC_OK;
}

static enum slc_status write_model(struct slc_output *output,
                                   const struct slc_model_view *model,
                                   const struct arrays *arrays,
                                   double *values,
                                   uint8_t *bytes,
                                   struct slc_error *err)
{
    uint8_t *space;

    SLC_TRY(slc_output_reserve(output, SLC_MAT5_HEADER_BYTES, &space, err));
    slc_mat5_header(space);
    output->used += SLC_MAT5_HEADER_BYTES;
    SLC_TRY(write_array_head(output, &arrays->model, err));
    SLC_TRY(write_array_head(output, &arrays->lambda, err));
    SLC_TRY(write_lambda(output, model, err));
    SLC_TRY(write_array_head(output, &arrays->cell, err));
    for (unsigned n = 0; n < model->order; n++) {
        SLC_TRY(write_array_head(output, &arrays->factors[n], err));
        SLC_TRY(write_factor(output, model, n, values, bytes, err));
    }
    return SLC_OK;
}

enum slc_status slc_model_write_matlab(const struct slc_files *files,
                                       const char *path,
                                       const struct slc_model_view *model,
                                       struct slc_error *err)
{
    const size_t piece_bytes = SLC_MODEL_PIECE_NUMBERS * sizeof(double);
    struct arrays arrays;
    struct slc_output output;

    if (!compute_sizes(&arrays, model)) {
        return slc_fail_file(err, SLC_ERR_UNSUPPORTED, path,
                             "the factors exceed 2 GiB, the limit of a variable in a .mat file of "
                             "version 5: write another format, such as .npy");
    }
    double *values = slc_malloc(piece_bytes);
    uint8_t *bytes = slc_malloc(piece_bytes);
    enum slc_status status = values != NULL && bytes != NULL
                                 ? slc_output_open(&output, files, path, err)
                                 : slc_fail(err, SLC_ERR_MEMORY, "no memory for writing a model");
    if (status == SLC_OK) {
        status = write_model(&output, model, &arrays, values, bytes, err);
        if (status == SLC_OK) {
            status = slc_output_commit(&output, err);
        } else {
            slc_output_abandon(&output);
        }
    }
    slc_free(values);
    slc_free(bytes);
    return status;
}
