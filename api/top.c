/* Public functions that find the top rows of the components of a model. */
#include "report/factors/top.h"
#include "api/call.h"

/* Passes the top rows to the caller's callback until it returns a value other than 0. */
static enum slc_status pass_rows(struct slc_top *top,
                                 int (*pass_row)(void *context, const struct sluice_top_row *row),
                                 void *context,
                                 struct slc_error *err)
{
    char name[SLC_NAME_TEXT_BYTES];

    for (uint32_t c = 0; c < top->component_count; c++) {
        struct sluice_top_row row = {.component = top->components[c], .name = name};

        row.weight = top->run.lambda[row.component];
        for (unsigned m = 0; m < top->mode_count; m++) {
            const struct slc_top_row *found = slc_top_component_rows(top, c, m);

            row.mode = top->modes[m];
            row.title = top->names.titles[row.mode];
            for (row.place = 0; row.place < top->counts[m]; row.place++) {
                SLC_TRY(slc_run_names_text(&top->names, row.mode, found[row.place].row, name, err));
                row.index = found[row.place].row;
                row.value = found[row.place].value;
                if (pass_row(context, &row) != 0) {
                    return SLC_OK;
                }
            }
        }
    }
    return SLC_OK;
}

/* Finds the top rows of the folder or model that `query` names. */
static enum slc_status find_rows(struct slc_top_options *query,
                                 const struct sluice_top_options *options,
                                 int (*pass_row)(void *context, const struct sluice_top_row *row),
                                 struct slc_error *err)
{
    struct sluice_top_options known = {0};
    struct api_run run = {.phase = NULL};
    struct slc_top *top = NULL;
    unsigned modes[SLC_MAX_ORDER];

    SLC_TRY(API_READ_OPTIONS(sluice_top_options, &known, options, err));
    /* slc_top_find rejects a mode_count over SLC_MAX_ORDER without reading the modes. */
    for (uint32_t i = 0; known.mode_count <= SLC_MAX_ORDER && i < known.mode_count; i++) {
        modes[i] = known.modes[i];
    }
    api_run_init(&run, &known.run);
    query->components = known.components;
    query->component_count = known.component_count;
    query->by_weight = known.by_number == 0;
    query->modes = modes;
    query->mode_count = known.mode_count;
    query->rows = known.rows != 0 ? known.rows : 10;
    query->by_signed = known.by_signed != 0;
    query->store = known.store;
    query->memory_bytes = api_run_memory(&run);
    enum slc_status status = slc_top_find(query, &top, err);
    SLC_THEN(status, pass_rows(top, pass_row, known.run.context, err));
    slc_top_destroy(top);
    return status;
}

enum sluice_status sluice_run_top(const char *folder,
                                  const struct sluice_top_options *options,
                                  int (*row)(void *context, const struct sluice_top_row *row),
                                  struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"folder", folder}, {"row", row != NULL ? "" : NULL});
    struct slc_top_options query = {.folder = folder};

    return api_return(find_rows(&query, options, row, err), err, ret_err);
}

enum sluice_status sluice_model_top(const struct sluice_model *model,
                                    const struct sluice_top_options *options,
                                    int (*row)(void *context, const struct sluice_top_row *row),
                                    struct sluice_error *ret_err)
{
    struct slc_error fault = SLC_ERROR_INIT, *const err = &fault;

    API_NEED(err, ret_err, {"model", model}, {"row", row != NULL ? "" : NULL});
    const struct slc_model_view view = api_model_view(model);
    struct slc_top_options query = {.model = &view};

    return api_return(find_rows(&query, options, row, err), err, ret_err);
}
