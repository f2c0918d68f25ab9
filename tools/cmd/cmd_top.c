/*
 * sluice top: the strongest rows of every component of a run, mode by mode. Factors are streamed
 * from their files; what is kept of them are the rows that are told.
 */
#include "base/text/plain_text.h"
#include "report/factors/top.h"
#include "report/json_parts.h"
#include "storage/manifest/json_text.h"
#include "tools/progress/console.h"
#include "tools/progress/format.h"
#include "tools/progress/json_out.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    struct option_counts components;
    struct option_modes modes;
    uint64_t rows;
    const char *by;
    const char *order;
    const char *store;
    uint64_t memory;
    bool json;
};

static const char *const by_choices[] = {"absolute", "value", NULL};
static const char *const order_choices[] = {"weight", "number", NULL};

static const struct option options[] = {
    {"component", OPTION_COUNTS, offsetof(struct arguments, components), .letter = 'c',
     .value = "R,..", .minimum = 1, .maximum = SLC_MAX_RANK,
     .help = "components to tell of, counted from 1; all of them without it"},
    {"mode", OPTION_MODES, offsetof(struct arguments, modes), .letter = 'm', .value = "K,..",
     .help = "modes to tell of, counted from 1; all of them without it"},
    {"rows", OPTION_U64, offsetof(struct arguments, rows), .letter = 'n', .value = "N",
     .fallback = "10", .minimum = 1, .maximum = SLC_TOP_ROWS_MAX,
     .help = "rows of each mode, the strongest first"},
    {"by", OPTION_CHOICE, offsetof(struct arguments, by), .value = "WHAT", .fallback = "absolute",
     .choices = by_choices,
     .help = "what is strong: a large absolute value, or a large value (with its sign)"},
    {"order", OPTION_CHOICE, offsetof(struct arguments, order), .value = "HOW",
     .fallback = "weight", .choices = order_choices,
     .help = "all components: by falling weight, or by number"},
    OPTION_ROW_NAMES(arguments, store),
    {"json", OPTION_FLAG, offsetof(struct arguments, json), .help = "one JSON object"},
    OPTION_ROW_MEMORY(arguments, memory),
    {.name = NULL}};

/* What is told. */
struct told {
    const struct arguments *args;
    const char *folder;
    struct slc_top *top;
    char name[SLC_NAME_TEXT_BYTES]; /* the one that is told */
};

static enum slc_status
print_mode(struct told *told, uint32_t component, unsigned i, struct slc_error *err)
{
    struct slc_top *top = told->top;
    const struct slc_top_row *rows = slc_top_component_rows(top, component, i);
    const unsigned mode = top->modes[i];
    char title[SLC_TITLE_BYTES];
    struct format_text count;

    memcpy(title, top->names.titles[mode], sizeof title);
    slc_text_make_plain(title);
    printf("  mode %u%s%s%s, %s rows\n", mode + 1, *title != '\0' ? " (" : "", title,
           *title != '\0' ? ")" : "", format_count(&count, top->run.dims[mode]));
    for (uint64_t k = 0; k < top->counts[i]; k++) {
        SLC_TRY(slc_run_names_text(&top->names, mode, rows[k].row, told->name, err));
        printf("    %13.6g  %" PRIu64 "%s%s\n", rows[k].value, rows[k].row + 1,
               *told->name != '\0' ? "  " : "", told->name);
    }
    return SLC_OK;
}

static enum slc_status print_text(struct told *told, struct slc_error *err)
{
    struct slc_top *top = told->top;

    printf("%s: rank %" PRIu32 ", %u modes, the strongest by %s\n", told->folder, top->run.rank,
           top->run.order, strcmp(told->args->by, "value") == 0 ? "value" : "absolute value");
    for (uint32_t c = 0; c < top->component_count; c++) {
        const uint32_t component = top->components[c];

        if (top->run.weighted) {
            printf("\nComponent %" PRIu32 ", weight %.6g\n", component + 1,
                   top->run.lambda[component]);
        } else {
            printf("\nComponent %" PRIu32 "\n", component + 1);
        }
        for (unsigned i = 0; i < top->mode_count; i++) {
            SLC_TRY(print_mode(told, c, i, err));
        }
    }
    return SLC_OK;
}

/*
 * The JSON object is printed as it is made, a row at a time: all of it as a tree would take some
 * 600 bytes a row, which the budget knows nothing of.
 */
static enum slc_status print_value(json_t *value, struct slc_error *err)
{
    char *text = NULL;
    const enum slc_status status = json_out_text(value, true, &text, err);

    if (status == SLC_OK) {
        printf("%s", text);
    }
    free(text);
    return status;
}

/* The members of `object` and the beginning of one more, a list, which "]}" ends. */
static enum slc_status print_open(json_t *object, const char *list, struct slc_error *err)
{
    char *text = NULL;
    const enum slc_status status = json_out_text(object, true, &text, err);

    if (status == SLC_OK) {
        printf("%.*s,\"%s\":[", (int)strlen(text) - 1, text, list);
    }
    free(text);
    return status;
}

static enum slc_status
print_mode_json(struct told *told, uint32_t component, unsigned i, struct slc_error *err)
{
    struct slc_top *top = told->top;
    const unsigned mode = top->modes[i];
    const struct slc_top_row *rows = slc_top_component_rows(top, component, i);
    json_t *object = json_pack("{s:i}", "mode", (int)mode + 1);
    enum slc_status status = SLC_OK;

    if (*top->names.titles[mode] != '\0') {
        slc_json_set_text(object, "title", top->names.titles[mode]);
    }
    slc_json_set_count(object, "length", top->run.dims[mode]);
    status = print_open(object, "rows", err);
    for (uint64_t k = 0; k < top->counts[i] && status == SLC_OK; k++) {
        json_t *row = json_pack("{s:I}", "index", (json_int_t)rows[k].row + 1);

        if (top->names.names[mode] != NULL) {
            status = slc_run_names_text(&top->names, mode, rows[k].row, told->name, err);
            slc_json_set(row, "name", slc_json_string(told->name));
        }
        slc_json_set_real(row, "value", rows[k].value);
        if (status != SLC_OK) {
            json_decref(row);
            break;
        }
        printf(k > 0 ? ",\n" : "\n");
        status = print_value(row, err);
    }
    SLC_TRY(status);
    printf("]}");
    return SLC_OK;
}

static enum slc_status
print_component_json(struct told *told, uint32_t component, struct slc_error *err)
{
    struct slc_top *top = told->top;
    const uint32_t number = top->components[component];

    SLC_TRY(print_open(
        json_pack("{s:i, s:f}", "component", (int)number + 1, "weight", top->run.lambda[number]),
        "modes", err));
    for (unsigned i = 0; i < top->mode_count; i++) {
        printf(i > 0 ? ",\n" : "\n");
        SLC_TRY(print_mode_json(told, component, i, err));
    }
    printf("]}");
    return SLC_OK;
}

static enum slc_status print_json(struct told *told, struct slc_error *err)
{
    struct slc_top *top = told->top;
    json_t *object =
        json_pack("{s:s, s:o}", "schema", "sluice-top-1", "run", slc_json_string(told->folder));

    slc_json_set_text(object, "store", top->run.recorded ? top->run.record.store : NULL);
    slc_json_set(object, "rank", json_integer(top->run.rank));
    slc_json_set_text(object, "by", told->args->by);
    SLC_TRY(print_open(object, "components", err));
    for (uint32_t c = 0; c < top->component_count; c++) {
        printf(c > 0 ? ",\n" : "\n");
        SLC_TRY(print_component_json(told, c, err));
    }
    printf("]}\n");
    return SLC_OK;
}

static enum slc_status print_top(struct told *told, struct slc_error *err)
{
    const struct arguments *args = told->args;
    uint32_t components[OPTION_COUNTS_MAX];
    const struct slc_top_options wanted = {.folder = told->folder,
                                           .components = components,
                                           .component_count = args->components.count,
                                           .by_weight = strcmp(args->order, "weight") == 0,
                                           .modes = args->modes.mode,
                                           .mode_count = args->modes.count,
                                           .rows = args->rows,
                                           .by_signed = strcmp(args->by, "value") == 0,
                                           .store = args->store,
                                           .memory_bytes = args->memory};

    for (unsigned i = 0; i < args->components.count; i++) {
        components[i] = (uint32_t)args->components.number[i] - 1;
    }
    enum slc_status status = slc_top_find(&wanted, &told->top, err);
    SLC_THEN(status, args->json ? print_json(told, err) : print_text(told, err));
    slc_top_destroy(told->top);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rows = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    struct told told = {.args = &args};
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    told.folder = operands.text[0];
    return print_top(&told, &err) == SLC_OK ? 0 : console_error(&err);
}

const struct command command_top = {
    .name = "top",
    .summary = "list the strongest rows of each component of a run",
    .example = "sluice top flights-4d.r16 --component 3 --rows 10",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes = "RUN is the folder of factors that sluice cpd has written, or one that holds "
             "mode-1.npy, ..\n"
             "from elsewhere. Rows are the indices of the input, which count from 1.",
    .run = run,
};
