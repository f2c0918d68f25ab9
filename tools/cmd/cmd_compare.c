/* sluice compare: prints records and options of runs next to each other, and matches their
 * components (report/factors/runs_compare.h). */
#include "base/text/plain_text.h"
#include "report/factors/runs_compare.h"
#include "report/json_parts.h"
#include "storage/manifest/json_text.h"
#include "tools/progress/console.h"
#include "tools/progress/csv_out.h"
#include "tools/progress/json_out.h"
#include "tools/progress/signals.h"
#include "tools/session/commands.h"
#include "tools/session/common_options.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arguments {
    uint64_t rows;
    bool csv;
    bool json;
    uint64_t memory;
};

static const struct option options[] = {
    {"rows", OPTION_U64, offsetof(struct arguments, rows), .letter = 'n', .value = "N",
     .fallback = "3", .minimum = 1, .maximum = 1000,
     .help = "number of top rows to print per mode of a matched component"},
    {"csv", OPTION_FLAG, offsetof(struct arguments, csv),
     .help = "print CSV, one line per matched component"},
    {"json", OPTION_FLAG, offsetof(struct arguments, json), .help = "print one JSON object"},
    OPTION_ROW_MEMORY(arguments, memory),
    {.name = NULL}};

static void print_label(const char *label)
{
    printf("  %-16s", label);
}

/* Prints the options that differ. */
static void print_options(const struct slc_runs_comparison *comparison)
{
    json_t *names = slc_runs_options_that_differ(comparison);

    for (size_t k = 0; k < json_array_size(names); k++) {
        const char *name = json_string_value(json_array_get(names, k));
        char label[64];

        (void)snprintf(label, sizeof label, "--%s", name);
        slc_text_make_plain(label);
        print_label(label);
        for (unsigned i = 0; i < comparison->count; i++) {
            char *text = json_dumps(json_object_get(comparison->run[i]->options, name),
                                    JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));

            if (text != NULL) {
                slc_text_make_plain(text);
            }
            printf(" %12s", text != NULL ? text : "-");
            free(text);
        }
        printf("\n");
    }
    json_decref(names);
}

enum member { RUN, RANK, FIT, ITERATIONS, REASON, SCORE, MEMBERS };
static const char *const member_labels[] = {"run",        "rank",       "fit",
                                            "iterations", "stopped by", "score with 1"};

/* Formats a member of run i; "-" if it is unknown. */
static void format_member(const struct slc_runs_comparison *comparison,
                          enum member member,
                          unsigned i,
                          char *text,
                          size_t bytes)
{
    const struct slc_compared_run *compared = comparison->run[i];
    const struct slc_run_record *record = compared->run.recorded ? &compared->run.record : NULL;

    (void)snprintf(text, bytes, "-");
    if (member == RUN) {
        (void)snprintf(text, bytes, "%u", i + 1);
    } else if (member == RANK) {
        (void)snprintf(text, bytes, "%" PRIu32, compared->run.rank);
    } else if (member == FIT && record != NULL && isfinite(record->fit)) {
        (void)snprintf(text, bytes, "%.6f", record->fit);
    } else if (member == ITERATIONS && record != NULL) {
        (void)snprintf(text, bytes, "%" PRIu32, record->iterations);
    } else if (member == REASON && record != NULL && record->reason[0] != '\0') {
        (void)snprintf(text, bytes, "%s", record->reason);
        slc_text_make_plain(text);
    } else if (member == SCORE && compared->match != NULL) {
        (void)snprintf(text, bytes, "%.4f", compared->match->score);
    }
}

static void print_records(const struct slc_runs_comparison *comparison)
{
    printf("Runs\n");
    for (unsigned i = 0; i < comparison->count; i++) {
        printf("  %u  %s\n", i + 1, comparison->run[i]->folder);
    }
    printf("\n");
    for (enum member member = RUN; member < MEMBERS; member++) {
        print_label(member_labels[member]);
        for (unsigned i = 0; i < comparison->count; i++) {
            char text[32];

            format_member(comparison, member, i, text, sizeof text);
            printf(" %12s", text);
        }
        printf("\n");
    }
    print_options(comparison);
}

/* Prints the top rows of a component in one mode. */
static enum slc_status print_rows(struct slc_compared_run *compared,
                                  uint32_t component,
                                  unsigned mode,
                                  struct slc_error *err)
{
    char name[SLC_NAME_TEXT_BYTES];

    for (uint64_t k = 0; k < compared->top->counts[mode]; k++) {
        SLC_TRY(slc_compared_top_text(compared, component, mode, k, name, err));
        slc_text_make_plain(name);
        printf("%s%s", k > 0 ? ", " : "", name);
    }
    return SLC_OK;
}

static enum slc_status
print_pairs(struct slc_runs_comparison *comparison, unsigned number, struct slc_error *err)
{
    struct slc_compared_run *first = comparison->run[0], *other = comparison->run[number];

    printf("\nComponents of run %u matched with run 1, factor match score %.4f\n", number + 1,
           other->match->score);
    for (uint32_t p = 0; p < other->match->count; p++) {
        const uint32_t one = other->match->pair[p].one, two = other->match->pair[p].two;

        printf("  %" PRIu32 " = %" PRIu32 "  similarity %.4f, weights %.6g and %.6g\n", two + 1,
               one + 1, other->match->pair[p].similarity, other->run.lambda[two],
               first->run.lambda[one]);
        for (unsigned n = 0; n < first->run.order; n++) {
            char title[SLC_TITLE_BYTES];

            memcpy(title, slc_compared_names(other)->titles[n], sizeof title);
            slc_text_make_plain(title);
            printf("    mode %u%s%s%s: ", n + 1, *title != '\0' ? " (" : "", title,
                   *title != '\0' ? ")" : "");
            SLC_TRY(print_rows(other, two, n, err));
            printf(" | ");
            SLC_TRY(print_rows(first, one, n, err));
            printf("\n");
        }
    }
    return SLC_OK;
}

static enum slc_status print_text(struct slc_runs_comparison *comparison, struct slc_error *err)
{
    print_records(comparison);
    for (unsigned i = 1; i < comparison->count; i++) {
        SLC_TRY(print_pairs(comparison, i, err));
    }
    return SLC_OK;
}

static void print_csv(const struct slc_runs_comparison *comparison)
{
    const struct slc_compared_run *first = comparison->run[0];

    printf("run,component,weight,first_run,first_component,first_weight,similarity\n");
    for (unsigned i = 1; i < comparison->count; i++) {
        const struct slc_compared_run *other = comparison->run[i];

        for (uint32_t p = 0; p < other->match->count; p++) {
            const uint32_t one = other->match->pair[p].one, two = other->match->pair[p].two;

            csv_out_text(other->folder, strlen(other->folder));
            printf("%" PRIu32 ",%.17g,", two + 1, other->run.lambda[two]);
            csv_out_text(first->folder, strlen(first->folder));
            printf("%" PRIu32 ",%.17g,%.17g\n", one + 1, first->run.lambda[one],
                   other->match->pair[p].similarity);
        }
    }
}

static json_t *pairs_json(const struct slc_runs_comparison *comparison, unsigned number)
{
    const struct slc_compared_run *other = comparison->run[number];
    json_t *pairs = json_array();

    for (uint32_t p = 0; p < other->match->count; p++) {
        const uint32_t one = other->match->pair[p].one, two = other->match->pair[p].two;

        (void)json_array_append_new(
            pairs, json_pack("{s:I, s:I, s:f, s:f, s:f}", "component", (json_int_t)two + 1,
                             "first_component", (json_int_t)one + 1, "similarity",
                             other->match->pair[p].similarity, "weight", other->run.lambda[two],
                             "first_weight", comparison->run[0]->run.lambda[one]));
    }
    return pairs;
}

static enum slc_status print_json(const struct slc_runs_comparison *comparison,
                                  struct slc_error *err)
{
    json_t *runs = json_array(), *differ = slc_runs_options_that_differ(comparison);

    for (unsigned i = 0; i < comparison->count; i++) {
        const struct slc_compared_run *compared = comparison->run[i];
        const struct slc_run_record *record = &compared->run.record;
        const bool recorded = compared->run.recorded;
        json_t *object = json_pack("{s:I}", "rank", (json_int_t)compared->run.rank);
        json_t *shown = json_object();

        slc_json_set_path(object, "run", compared->folder);
        slc_json_set(object, "fit",
                     recorded && isfinite(record->fit) ? json_real(record->fit) : json_null());
        slc_json_set(object, "iterations",
                     recorded ? json_integer(record->iterations) : json_null());
        slc_json_set_text(object, "reason", recorded && *record->reason ? record->reason : NULL);
        for (size_t k = 0; k < json_array_size(differ); k++) {
            const char *name = json_string_value(json_array_get(differ, k));
            json_t *value = json_object_get(compared->options, name);

            slc_json_set(shown, name, value != NULL ? json_incref(value) : json_null());
        }
        slc_json_set(object, "options", shown);
        if (compared->match != NULL) {
            slc_json_set_real(object, "score", compared->match->score);
            slc_json_set(object, "matches", pairs_json(comparison, i));
            slc_json_set(object, "rows", slc_json_dims(compared->run.order, compared->match->rows));
        }
        (void)json_array_append_new(runs, object);
    }
    json_decref(differ);
    return json_out_print(json_pack("{s:s, s:o}", "schema", "sluice-compare-1", "runs", runs), err);
}

static enum slc_status
compare(const struct arguments *args, const struct operands *operands, struct slc_error *err)
{
    const struct slc_runs_compare_options request = {.count = operands->count,
                                                     .folders = operands->text,
                                                     .rows =
                                                         args->csv || args->json ? 0 : args->rows,
                                                     .memory_bytes = args->memory,
                                                     .stop = signals_stop()};
    struct slc_runs_comparison comparison = {.count = 0};

    if (args->csv && args->json) {
        return slc_fail(err, SLC_ERR_USAGE, "--csv and --json cannot be combined");
    }
    enum slc_status status = signals_start(NULL, NULL, err);
    SLC_THEN(status, slc_runs_compare(&request, &comparison, err));
    if (status == SLC_OK && args->csv) {
        print_csv(&comparison);
    } else if (status == SLC_OK) {
        status = args->json ? print_json(&comparison, err) : print_text(&comparison, err);
    }
    slc_runs_comparison_close(&comparison);
    return status;
}

static int run(const struct command *command, int argc, char **argv)
{
    struct arguments args = {.rows = 0};
    struct slc_error err = SLC_ERROR_INIT;
    struct operands operands;
    int code = 0;

    if (!command_begin(command, argc, argv, &args, &operands, &code)) {
        return code;
    }
    console_start(CONSOLE_NORMAL);
    const enum slc_status status = compare(&args, &operands, &err);
    if (status != SLC_OK) {
        code = console_error(&err);
        code = status == SLC_ERR_INTERRUPTED ? signals_exit_code() : code;
    }
    return code;
}

const struct command command_compare = {
    .name = "compare",
    .summary = "compare runs: fits, options and matched components",
    .example = "sluice compare flights-4d.r8 flights-4d.r16",
    .operands = "RUN RUN ..",
    .operands_min = 2,
    .operands_max = OPTIONS_MAX_OPERANDS,
    .operands_more = "compare the others with the first run in another command, or list all runs "
                     "of a folder with sluice report FOLDER",
    .options = options,
    .notes = "Each run is compared with the first. The factor match score is 1 if all components "
             "are equal except\nfor order and sign. Rows correspond by their names if the tensors "
             "differ and have names, and by\ntheir indices otherwise.",
    .run = run,
};
