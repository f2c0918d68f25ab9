/* Formats the rows of a prediction. */
#include "base/text/csv_text.h"
#include "engine/product/predict/predict_internal.h"
#include "storage/manifest/names.h"

#include <math.h>
#include <string.h>

/* Returns the indices of a mode in all rows of the batch. */
const uint64_t *slc_predict_column(const struct predict *predict, unsigned mode)
{
    return predict->last_is_value && mode + 1 == predict->model->order ? predict->last
                                                                       : predict->rows.coords[mode];
}

/* Returns true if the model has the row's index in `mode`. Only tables have indices that it
 * lacks. */
static bool is_known(const struct predict *predict, unsigned mode, uint32_t row)
{
    return predict->csv == NULL ||
           slc_predict_column(predict, mode)[row] < predict->model->factors[mode]->rows;
}

/* Returns the model value of a row; NaN if the model lacks an index. */
double slc_predict_row_value(const struct predict *predict, uint32_t row)
{
    uint64_t index[SLC_MAX_ORDER];

    for (unsigned n = 0; n < predict->model->order; n++) {
        if (!is_known(predict, n, row)) {
            return (double)NAN;
        }
        index[n] = slc_predict_column(predict, n)[row] - predict->report->index_base;
    }
    return slc_model_value(predict->model, index);
}

/* Formats a model value or a residual; a number that is unknown is empty in CSV and "-" in text. */
static size_t format_computed(const struct predict *predict, double number, char *text)
{
    if (predict->csv == NULL || !isnan(number)) {
        return slc_format_f64(text, number);
    }
    text[0] = '-';
    return predict->options->form == SLC_PREDICT_CSV ? 0 : 1;
}

/* Formats the index of a row, as in the input, or from 1 if the input has no indices. */
static size_t format_index(const struct predict *predict, unsigned mode, uint32_t row, char *text)
{
    const bool from_one = predict->options->store != NULL || predict->csv != NULL;

    if (is_known(predict, mode, row)) {
        return slc_format_u64(text, slc_predict_column(predict, mode)[row] + from_one);
    }
    return format_computed(predict, (double)NAN, text);
}

/* Formats the numbers of a row and the end of the line; returns their length. */
static size_t format_numbers(const struct predict *predict, uint32_t row, char *text)
{
    const char comma = predict->options->form == SLC_PREDICT_CSV ? ',' : ' ';
    const double value = predict->rows.values[row];
    const double predicted = slc_loss_mean(predict->model->loss, predict->predicted[row]);
    size_t used = 0;

    if (predict->report->has_values) {
        used += slc_format_f64(text, value);
        text[used++] = comma;
    }
    used += format_computed(predict, predicted, text + used);
    if (predict->report->has_values) {
        text[used++] = comma;
        used += format_computed(predict, value - predicted, text + used);
    }
    text[used++] = '\n';
    return used;
}

/* Returns the open names of a mode that are written, or NULL. */
struct slc_names *slc_predict_names(const struct predict *predict, unsigned mode)
{
    const struct slc_predict_options *options = predict->options;

    return options->names != NULL && options->form == SLC_PREDICT_CSV ? options->names[mode] : NULL;
}

/* Writes a row with the names of its indices. */
enum slc_status
slc_predict_write_named(struct predict *predict, uint32_t row, struct slc_error *err)
{
    char text[2 * SLC_NAME_BYTES_MAX + 2 + SLC_FORMAT_U64_BYTES + 2];

    for (unsigned n = 0; n < predict->model->order; n++) {
        struct slc_names *names = slc_predict_names(predict, n);
        size_t used = format_index(predict, n, row, text);

        text[used++] = ',';
        if (names != NULL) {
            const char *name = NULL;
            size_t bytes = 0;

            if (is_known(predict, n, row)) {
                SLC_TRY(
                    slc_names_get(names, slc_predict_column(predict, n)[row], &name, &bytes, err));
            }
            used += slc_csv_quote(text + used, name != NULL ? name : "", name != NULL ? bytes : 0);
            text[used++] = ',';
        }
        SLC_TRY(slc_text_output_write(&predict->output, text, used, err));
    }
    return slc_text_output_write(&predict->output, text, format_numbers(predict, row, text), err);
}

/* Formats a row as text; returns its length. */
size_t slc_predict_format_row(const struct predict *predict, uint32_t row, char *text)
{
    const char comma = predict->options->form == SLC_PREDICT_CSV ? ',' : ' ';
    size_t used = 0;

    for (unsigned n = 0; n < predict->model->order; n++) {
        used += format_index(predict, n, row, text + used);
        text[used++] = comma;
    }
    return used + format_numbers(predict, row, text + used);
}

/* Stores a row as numbers; returns its length. */
size_t slc_predict_store_row(const struct predict *predict, uint32_t row, char *bytes)
{
    const double value = predict->rows.values[row];
    const double predicted = slc_loss_mean(predict->model->loss, predict->predicted[row]);
    const double numbers[3] = {value, predicted, value - predicted};
    const size_t first = predict->report->has_values ? 0 : 1;
    const size_t count = predict->report->has_values ? 3 : 1;

    memcpy(bytes, numbers + first, count * sizeof numbers[0]);
    return count * sizeof numbers[0];
}
