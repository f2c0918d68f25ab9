/* sluice top: lists the top rows of every component of a run, mode by mode. Factors are streamed
 * from their files; only the listed rows are kept. */
#include "base/text/plain_text.h"
#include "report/factors/top.h"
#include "report/json_parts.h"
#include "storage/manifest/json_text.h"
#include "tools/progress/console.h"
#include "tools/progress/csv_out.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct arguments {
    struct option_counts components;
    struct option_modes modes;
    uint64_t rows;
    const char *by;
    const char *order;
    const char *store;
    uint64_t memory;
    bool csv;
    bool json;
};

static const char *const by_choices[] = {"absolute", "value", NULL};
static const char *const order_choices[] = {"weight", "number", NULL};

static const struct option options[] = {
    {"component", OPTION_COUNTS, offsetof(struct arguments, components), .letter = 'c',
     .value = "R,..", .minimum = 1, .maximum = SLC_MAX_RANK,
     .help = "components to list, counted from 1; all if not given"},
    {"mode", OPTION_MODES, offsetof(struct arguments, modes), .letter = 'm', .value = "K,..",
     .help = "modes to list, counted from 1; all if not given"},
    {"rows", OPTION_U64, offsetof(struct arguments, rows), .letter = 'n', .value = "N",
     .fallback = "10", .minimum = 1, .maximum = SLC_TOP_ROWS_MAX,
     .help = "number of rows per mode"},
    {"by", OPTION_CHOICE, offsetof(struct arguments, by), .value = "WHAT", .fallback = "absolute",
     .choices = by_choices,
     .help = "sort rows by absolute (absolute value) or value (signed value), largest first"},
    {"order", OPTION_CHOICE, offsetof(struct arguments, order), .value = "HOW",
     .fallback = "weight", .choices = order_choices,
     .help = "order of the components if all are listed: weight (largest first) or number"},
    OPTION_ROW_NAMES(arguments, store),
    {"csv", OPTION_FLAG, offsetof(struct arguments, csv),
     .help = "print CSV, one line per row of a factor"},
    {"json", OPTION_FLAG, offsetof(struct arguments, json), .help = "print one JSON object"},
    OPTION_ROW_MEMORY(arguments, memory),
    {.name = NULL}};

/* Data of the listing. */
struct listing {
    const struct arguments *args;
    const char *folder;
    struct slc_top *top;
    char name[SLC_NAME_TEXT_BYTES]; /* name of the current row */
};

static enum slc_status
print_mode(struct listing *listing, uint32_t component, unsigned i, struct slc_error *err)
{
    struct slc_top *top = listing->top;
    const struct slc_top_row *rows = slc_top_component_rows(top, component, i);
    const unsigned mode = top->modes[i];
    char title[SLC_TITLE_BYTES];
    struct format_text count;

    memcpy(title, top->names.titles[mode], sizeof title);
    slc_text_make_plain(title);
    printf("  mode %u%s%s%s, %s rows\n", mode + 1, *title != '\0' ? " (" : "", title,
           *title != '\0' ? ")" : "", format_count(&count, top->run.dims[mode]));
    printf("    %13s  index%s\n", "value", top->names.names[mode] != NULL ? "  name" : "");
    for (uint64_t k = 0; k < top->counts[i]; k++) {
        SLC_TRY(slc_run_names_text(&top->names, mode, rows[k].row, listing->name, err));
        slc_text_make_plain(listing->name);
        printf("    %13.6g  %" PRIu64 "%s%s\n", rows[k].value, rows[k].row + 1,
               *listing->name != '\0' ? "  " : "", listing->name);
    }
    return SLC_OK;
}

static enum slc_status print_csv(struct listing *listing, struct slc_error *err)
{
    struct slc_top *top = listing->top;

    printf("component,weight,mode,title,rank,index,name,value\n");
    for (uint32_t c = 0; c < top->component_count; c++) {
        const uint32_t component = top->components[c];

        for (unsigned i = 0; i < top->mode_count; i++) {
            const struct slc_top_row *rows = slc_top_component_rows(top, c, i);
            const unsigned mode = top->modes[i];

            for (uint64_t k = 0; k < top->counts[i]; k++) {
                printf("%" PRIu32 ",%.17g,%u,", component + 1, top->run.lambda[component],
                       mode + 1);
                csv_out_text(top->names.titles[mode], strlen(top->names.titles[mode]));
                printf("%" PRIu64 ",%" PRIu64 ",", k + 1, rows[k].row + 1);
                SLC_TRY(csv_out_name(top->names.names[mode], rows[k].row, err));
                printf("%.17g\n", rows[k].value);
            }
        }
    }
    return SLC_OK;
}

/* Prints which bias a component is, if it is one. */
static void print_bias(const struct slc_run_folder *run, uint32_t component)
{
    const unsigned biases = run->recorded ? run->record.biases : 0;

    if (biases == 0 || biases > run->rank || component < run->rank - biases) {
        return;
    }
    const unsigned mode = run->record.bias_of[component - (run->rank - biases)];
    if (mode > 0) {
        printf(", bias of mode %u", mode);
    } else {
        printf(", mean");
    }
}

static enum slc_status print_text(struct listing *listing, struct slc_error *err)
{
    struct slc_top *top = listing->top;

    printf("%s: rank %" PRIu32 ", %u modes, top rows by %s\n", listing->folder, top->run.rank,
           top->run.order, strcmp(listing->args->by, "value") == 0 ? "value" : "absolute value");
    for (uint32_t c = 0; c < top->component_count; c++) {
        const uint32_t component = top->components[c];

        if (top->run.weighted) {
            printf("\nComponent %" PRIu32 ", weight %.6g", component + 1,
                   top->run.lambda[component]);
        } else {
            printf("\nComponent %" PRIu32, component + 1);
        }
        print_bias(&top->run, component);
        printf("\n");
        for (unsigned i = 0; i < top->mode_count; i++) {
            SLC_TRY(print_mode(listing, c, i, err));
        }
    }
    return SLC_OK;
}

/* Prints the JSON object row by row. A JSON tree of all rows would take about 600 bytes per row,
 * which the budget does not include. */
static enum slc_status
print_mode_json(struct listing *listing, uint32_t component, unsigned i, struct slc_error *err)
{
    struct slc_top *top = listing->top;
    const unsigned mode = top->modes[i];
    const struct slc_top_row *rows = slc_top_component_rows(top, component, i);
    json_t *object = json_pack("{s:i}", "mode", (int)mode + 1);
    enum slc_status status = SLC_OK;

    if (*top->names.titles[mode] != '\0') {
        slc_json_set_text(object, "title", top->names.titles[mode]);
    }
    slc_json_set_count(object, "length", top->run.dims[mode]);
    status = json_out_open(object, "rows", err);
    for (uint64_t k = 0; k < top->counts[i] && status == SLC_OK; k++) {
        json_t *row = json_pack("{s:I}", "index", (json_int_t)rows[k].row + 1);

        if (top->names.names[mode] != NULL) {
            json_t *name = NULL;

            status = slc_run_names_json(&top->names, mode, rows[k].row, &name, err);
            slc_json_set(row, "name", name);
        }
        slc_json_set_real(row, "value", rows[k].value);
        if (status != SLC_OK) {
            json_decref(row);
            break;
        }
        printf(k > 0 ? ",\n" : "\n");
        status = json_out_value(row, err);
    }
    SLC_TRY(status);
    printf("]}");
    return SLC_OK;
}

static enum slc_status
print_component_json(struct listing *listing, uint32_t component, struct slc_error *err)
{
    struct slc_top *top = listing->top;
    const uint32_t number = top->components[component];

    SLC_TRY(json_out_open(
        json_pack("{s:i, s:f}", "component", (int)number + 1, "weight", top->run.lambda[number]),
        "modes", err));
    for (unsigned i = 0; i < top->mode_count; i++) {
        printf(i > 0 ? ",\n" : "\n");
        SLC_TRY(print_mode_json(listing, component, i, err));
    }
    printf("]}");
    return SLC_OK;
}

static enum slc_status print_json(struct listing *listing, struct slc_error *err)
{
    struct slc_top *top = listing->top;
    json_t *object = json_pack("{s:s}", "schema", "sluice-top-1");

    slc_json_set_path(object, "run", listing->folder);
    slc_json_set_path(object, "store", top->run.recorded ? top->run.record.store : NULL);
    slc_json_set(object, "rank", json_integer(top->run.rank));
    slc_json_set_text(object, "by", listing->args->by);
    SLC_TRY(json_out_open(object, "components", err));
    for (uint32_t c = 0; c < top->component_count; c++) {
        printf(c > 0 ? ",\n" : "\n");
        SLC_TRY(print_component_json(listing, c, err));
    }
    printf("]}\n");
    return SLC_OK;
}

static enum slc_status print_top(struct listing *listing, struct slc_error *err)
{
    const struct arguments *args = listing->args;
    uint32_t components[OPTION_COUNTS_MAX];
    const struct slc_top_options request = {.folder = listing->folder,
                                            .components = components,
                                            .component_count = args->components.count,
                                            .by_weight = strcmp(args->order, "weight") == 0,
                                            .modes = args->modes.mode,
                                            .mode_count = args->modes.count,
                                            .rows = args->rows,
                                            .by_signed = strcmp(args->by, "value") == 0,
                                            .store = args->store,
                                            .memory_bytes = args->memory};

    if (args->csv && args->json) {
        return slc_fail(err, SLC_ERR_USAGE, "--csv and --json cannot be combined");
    }
    for (unsigned i = 0; i < args->components.count; i++) {
        components[i] = (uint32_t)args->components.number[i] - 1;
    }
    enum slc_status status = slc_top_find(&request, &listing->top, err);
    SLC_THEN(status, args->json  ? print_json(listing, err)
                     : args->csv ? print_csv(listing, err)
                                 : print_text(listing, err));
    slc_top_destroy(listing->top);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rows = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct listing listing = {.args = &args};
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    listing.folder = operands.text[0];
    return print_top(&listing, &err) == SLC_OK ? 0 : console_error(&err);
}

const struct command command_top = {
    .name = "top",
    .summary = "list the top rows of each component of a run",
    .example = "sluice top flights-4d.r16 --component 3 --rows 10",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "RUN is a folder of factors written by sluice cpd, or any folder with mode-1.npy, .. "
             "Rows are\nindices of the input, counted from 1.",
    .run = run,
};
