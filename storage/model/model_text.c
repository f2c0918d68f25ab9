/* Writes models as text: SPLATT's format, the Tensor Toolbox's ktensor, and CSV. Rows are formatted
 * directly into a bounded buffer; the locale of the process has no effect. */
#include "storage/model/model_forms.h"

#include "base/memory/checked.h"
#include "base/memory/memory.h"
#include "base/text/csv_text.h"
#include "storage/file/output.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

/* Space for a number such as "-1.2345678901234567e-300 ": a sign, 17 digits, a point, an exponent,
 * a space, and a reserve. */
enum { NUMBER_CHARACTERS = 32 };

/* Writes a number with 17 significant digits, and the character that follows it. */
static enum slc_status
write_number(struct slc_output *output, double value, char follows, struct slc_error *err)
{
    uint8_t *space;

    SLC_TRY(slc_output_reserve(output, NUMBER_CHARACTERS, &space, err));
    output->used += (size_t)snprintf((char *)space, NUMBER_CHARACTERS, "%.16e%c", value, follows);
    return SLC_OK;
}

static enum slc_status write_row(struct slc_output *output,
                                 const double *values,
                                 uint32_t count,
                                 char between,
                                 struct slc_error *err)
{
    for (uint32_t r = 0; r < count; r++) {
        SLC_TRY(write_number(output, values[r], r + 1 < count ? between : '\n', err));
    }
    return SLC_OK;
}

/* Writes a name in double quotes, and a comma. */
static enum slc_status write_name(struct slc_output *output,
                                  struct slc_names *names,
                                  uint64_t index,
                                  bool raw,
                                  struct slc_error *err)
{
    const char *name;
    size_t bytes;
    uint8_t *space;

    SLC_TRY(slc_names_get(names, index, &name, &bytes, err));
    SLC_TRY(slc_output_reserve(output, slc_csv_quoted_bytes(SLC_NAME_BYTES_MAX) + 1, &space, err));
    const size_t used = raw ? slc_csv_quote_raw((char *)space, name, bytes)
                            : slc_csv_quote((char *)space, name, bytes);
    space[used] = ',';
    output->used += used + 1;
    return SLC_OK;
}

/* Writes the rows of a factor, one per line; CSV rows start with the 1-based index and the name. */
static enum slc_status write_factor(struct slc_output *output,
                                    const struct slc_model_view *model,
                                    unsigned mode,
                                    bool csv,
                                    struct slc_error *err)
{
    const uint64_t rows = slc_model_length(model, mode);
    const uint64_t step = slc_max_u64(1, SLC_MODEL_PIECE_NUMBERS / model->rank);
    double *values = slc_malloc(step * model->rank * sizeof *values);
    enum slc_status status = slc_check_memory(values != NULL, err, "for writing a model");

    for (uint64_t first = 0, more; first < rows && status == SLC_OK; first += more) {
        more = slc_min_u64(step, rows - first);
        status = slc_model_rows(model, mode, first, more, values, err);
        for (uint64_t i = 0; i < more && status == SLC_OK; i++) {
            if (csv) {
                status = slc_output_print(output, err, "%" PRIu64 ",", first + i + 1);
            }
            if (csv && model->names[mode] != NULL && status == SLC_OK) {
                status = write_name(output, model->names[mode], first + i, model->raw_names, err);
            }
            if (status == SLC_OK) {
                status =
                    write_row(output, values + i * model->rank, model->rank, csv ? ',' : ' ', err);
            }
        }
    }
    slc_free(values);
    return status;
}

/* Writes the ktensor text of the Tensor Toolbox and pyttb (export_data). */
static enum slc_status
write_ktensor(struct slc_output *output, const struct slc_model_view *model, struct slc_error *err)
{
    SLC_TRY(slc_output_print(output, err, "ktensor\n%u\n", model->order));
    for (unsigned mode = 0; mode < model->order; mode++) {
        SLC_TRY(slc_output_print(output, err, "%" PRIu64 "%c", slc_model_length(model, mode),
                                 mode + 1 < model->order ? ' ' : '\n'));
    }
    SLC_TRY(slc_output_print(output, err, "%" PRIu32 "\n", model->rank));
    SLC_TRY(write_row(output, model->lambda, model->rank, ' ', err));
    for (unsigned mode = 0; mode < model->order; mode++) {
        SLC_TRY(slc_output_print(output, err, "matrix\n2\n%" PRIu64 " %" PRIu32 "\n",
                                 slc_model_length(model, mode), model->rank));
        SLC_TRY(write_factor(output, model, mode, false, err));
    }
    return SLC_OK;
}

/* Writes a factor in SPLATT's format, which only has numbers. Mode number `order` means lambda. */
static enum slc_status write_splatt(struct slc_output *output,
                                    const struct slc_model_view *model,
                                    unsigned mode,
                                    struct slc_error *err)
{
    return mode == model->order ? write_row(output, model->lambda, model->rank, '\n', err)
                                : write_factor(output, model, mode, false, err);
}

static enum slc_status write_csv(struct slc_output *output,
                                 const struct slc_model_view *model,
                                 unsigned mode,
                                 struct slc_error *err)
{
    enum slc_status status;

    if (mode == model->order) {
        status = slc_output_print(output, err, "component,weight\n");
        for (uint32_t r = 0; r < model->rank && status == SLC_OK; r++) {
            status = slc_output_print(output, err, "%" PRIu32 ",", r + 1);
            SLC_THEN(status, write_number(output, model->lambda[r], '\n', err));
        }
        return status;
    }
    SLC_TRY(slc_output_print(output, err, "index,%s", model->names[mode] != NULL ? "name," : ""));
    for (uint32_t r = 0; r < model->rank; r++) {
        SLC_TRY(slc_output_print(output, err, "component-%" PRIu32 "%c", r + 1,
                                 r + 1 < model->rank ? ',' : '\n'));
    }
    return write_factor(output, model, mode, true, err);
}

/* Writes one file: the file of mode `file`, lambda if `file` is the order, or the only file if the
 * format has one file. */
static enum slc_status write_file(const struct slc_files *files,
                                  enum slc_model_form form,
                                  const char *path,
                                  const struct slc_model_view *model,
                                  unsigned file,
                                  struct slc_error *err)
{
    char *own = slc_model_path(form, path, model->order, file);
    struct slc_output output;
    enum slc_status status = slc_check_memory(own != NULL, err, "for writing a model");

    SLC_THEN(status, slc_output_open(&output, files, own, err));
    slc_free(own);
    SLC_TRY(status);
    status = form == SLC_MODEL_KTENSOR  ? write_ktensor(&output, model, err)
             : form == SLC_MODEL_SPLATT ? write_splatt(&output, model, file, err)
                                        : write_csv(&output, model, file, err);
    if (status != SLC_OK) {
        slc_output_abandon(&output);
        return status;
    }
    return slc_output_commit(&output, err);
}

static enum slc_status write_files(const struct slc_files *files,
                                   enum slc_model_form form,
                                   const char *path,
                                   const struct slc_model_view *model,
                                   struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    if (form == SLC_MODEL_CSV) {
        const int rc = files->make_folder(files->self, path);

        status = rc < 0 && rc != -EEXIST ? slc_fail_errno(err, -rc, path, "creating the folder")
                                         : slc_name_sync(files, path, err);
    }
    for (unsigned f = 0; f < slc_model_files(form, model->order) && status == SLC_OK; f++) {
        status = write_file(files, form, path, model, f, err);
    }
    return status;
}

enum slc_status slc_model_write_text(const struct slc_files *files,
                                     enum slc_model_form form,
                                     const char *path,
                                     const struct slc_model_view *model,
                                     struct slc_error *err)
{
    /* Use the C locale in this thread, because a decimal comma would make the files unreadable. */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    locale_t before;

    if (plain == (locale_t)0) {
        return slc_fail(err, SLC_ERR_SYSTEM, "the C locale is not available");
    }
    before = uselocale(plain);
    enum slc_status status = write_files(files, form, path, model, err);
    uselocale(before);
    freelocale(plain);
    return status;
}
