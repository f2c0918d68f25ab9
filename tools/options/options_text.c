/* Prints an option table as the help of a command, and as JSON for the record of a run. */
#include "tools/options/options.h"

#include "storage/manifest/json_text.h"

#include <stdio.h>
#include <string.h>

/* Column of the descriptions, and maximum width of a line. */
enum { HELP_COLUMN = 28, HELP_WIDTH = 96 };

/* Prints `text` from column `at`, wrapped at HELP_WIDTH, with continuation lines indented to
 * `indent`. */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
    while (*text != '\0') {
        size_t word = strcspn(text, " ");

        if (at > indent && at + 1 + word > HELP_WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (at > indent) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)word, text);
        at += word;
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_option(const struct option *option)
{
    char left[96];
    char right[512];
    int used = option->letter != 0
                   ? snprintf(left, sizeof left, "  -%c, --%s", option->letter, option->name)
                   : snprintf(left, sizeof left, "      --%s", option->name);

    if (option->kind == OPTION_MODES_OR_ALL) {
        used += snprintf(left + used, sizeof left - (size_t)used, "[=%s]", option->value);
    } else if (option->kind != OPTION_FLAG) {
        used += snprintf(left + used, sizeof left - (size_t)used, " %s", option->value);
    }
    (void)snprintf(
        right, sizeof right, "%s%s%s%s%s%s%s", option->help,
        option->alias != NULL ? " (also --" : "", option->alias != NULL ? option->alias : "",
        option->alias != NULL ? ")" : "", option->fallback != NULL ? " [" : "",
        option->fallback != NULL ? option->fallback : "", option->fallback != NULL ? "]" : "");
    if (used + 2 > HELP_COLUMN) {
        printf("%s\n%*s", left, HELP_COLUMN, "");
    } else {
        printf("%-*s", HELP_COLUMN, left);
    }
    print_wrapped(right, HELP_COLUMN, HELP_COLUMN);
}

void options_print_help(const struct command *command)
{
    printf("Example: %s\n\n", command->example);
    printf("sluice %s [options]%s%s\n", command->name, command->operands_max > 0 ? " " : "",
           command->operands);
    printf("  %s\n\nOptions (defaults in brackets):\n", command->summary);
    for (const struct option *option = command->options; option->name != NULL; option++) {
        print_option(option);
    }
    printf("%-*s%s\n", HELP_COLUMN, "  -h, --help", "print this help and exit");
    if (command->notes != NULL) {
        printf("\n%s\n", command->notes);
    }
}

static json_t *dims_to_json(unsigned count, const uint64_t *numbers)
{
    json_t *list = json_array();

    for (unsigned i = 0; i < count; i++) {
        json_array_append_new(list, json_integer((json_int_t)numbers[i]));
    }
    return list;
}

static json_t *modes_to_json(const struct option_modes *modes)
{
    uint64_t numbers[SLC_MAX_ORDER];

    for (unsigned i = 0; i < modes->count; i++) {
        numbers[i] = modes->mode[i] + UINT64_C(1);
    }
    return modes->count > 0 ? dims_to_json(modes->count, numbers) : json_null();
}

/* Appends the text of one use of an option, such as "2=0,1" for mode 2; mode 0 means all modes. */
static void
append_numbers(json_t *array, const struct option *option, unsigned mode, const double *numbers)
{
    char text[96];
    int used = mode > 0 ? snprintf(text, sizeof text, "%u=", mode) : 0;

    used += snprintf(text + used, sizeof text - (size_t)used, "%.17g", numbers[0]);
    if (option->kind == OPTION_MODE_BOUNDS) {
        (void)snprintf(text + used, sizeof text - (size_t)used, ",%.17g", numbers[1]);
    }
    (void)json_array_append_new(array, json_string(text));
}

/* Returns a number if all modes have the same number, otherwise an array with the text of each use
 * of the option. */
static json_t *mode_numbers_to_json(const struct option *option,
                                    const struct option_mode_numbers *numbers)
{
    if (numbers->modes == 0 && option->kind == OPTION_MODE_NUMBERS) {
        return numbers->given ? json_real(numbers->all[0]) : json_null();
    }
    if (numbers->modes == 0 && !numbers->given) {
        return json_null();
    }
    json_t *array = json_array();
    if (numbers->given) {
        append_numbers(array, option, 0, numbers->all);
    }
    for (unsigned n = 0; n < SLC_MAX_ORDER; n++) {
        if ((numbers->modes >> n & 1U) != 0) {
            append_numbers(array, option, n + 1, numbers->mode[n]);
        }
    }
    return array;
}

static json_t *value_to_json(const struct option *option, const void *field)
{
    switch (option->kind) {
    case OPTION_FLAG:
        return json_boolean(*(const bool *)field);
    case OPTION_U64:
    case OPTION_SIZE:
        return json_integer((json_int_t) * (const uint64_t *)field);
    case OPTION_DOUBLE:
        return json_real(*(const double *)field);
    case OPTION_STRING:
    case OPTION_CHOICE: {
        const char *text = *(const char *const *)field;

        return text != NULL ? slc_json_string(text) : json_null();
    }
    case OPTION_MORE_STRINGS: {
        const struct option_strings *strings = field;
        json_t *array = strings->count > 0 ? json_array() : json_null();

        for (unsigned i = 0; i < strings->count; i++) {
            (void)json_array_append_new(array, slc_json_string(strings->text[i]));
        }
        return array;
    }
    case OPTION_MODE_NUMBERS:
    case OPTION_MODE_BOUNDS:
        return mode_numbers_to_json(option, field);
    case OPTION_MODES_OR_ALL:
        return ((const struct option_modes *)field)->count == SLC_MAX_ORDER ? json_true()
                                                                            : modes_to_json(field);
    case OPTION_MODES:
    case OPTION_MORE_MODES:
        return modes_to_json(field);
    case OPTION_DIMS: {
        const struct option_dims *dims = field;

        return dims->order > 0 ? dims_to_json(dims->order, dims->length) : json_null();
    }
    case OPTION_COUNTS: {
        const struct option_counts *counts = field;

        if (counts->count == 1) {
            return json_integer((json_int_t)counts->number[0]);
        }
        return counts->count > 0 ? dims_to_json(counts->count, counts->number) : json_null();
    }
    }
    return json_null();
}

json_t *options_to_json(const struct command *command, const void *values)
{
    json_t *object = json_object();

    for (const struct option *option = command->options; option->name != NULL; option++) {
        json_object_set_new(object, option->name,
                            value_to_json(option, (const char *)values + option->offset));
    }
    return object;
}
