/* Parses a command line according to the option table of a command. Cost: proportional to the
 * number of options times the number of arguments. */
#include "tools/options/options.h"

#include "convert/number/number.h"
#include "engine/plan/plan.h"
#include "tools/options/options_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Maximum length of the text that lists the choices of an option. */
enum { VALUE_BYTES_MAX = 512 };

static void *field_of(void *values, const struct option *option)
{
    return (char *)values + option->offset;
}

/* Reads decimal digits at *text and advances *text. Returns false if there are no digits or the
 * number exceeds 64 bits. */
static bool read_digits(const char **text, uint64_t *number)
{
    const char *at = *text;
    uint64_t sum = 0;

    if (*at < '0' || *at > '9') {
        return false;
    }
    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(sum, UINT64_C(10), &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(*at - '0'), &sum)) {
            return false;
        }
    }
    *text = at;
    *number = sum;
    return true;
}

/* Reads a count, such as 2000, 2K, 1.5M or 3G (decimal thousands, millions and billions), and
 * advances *text. Returns false if there is none, or if it is no whole number below 2^64. */
static bool read_count(const char **text, uint64_t *number)
{
    static const char suffixes[] = "kmg";
    enum { DIGITS_MAX = 9 };
    uint64_t part = 0, scale = 1, unit = 1;
    const char *at = *text;
    uint64_t count;

    if (!read_digits(&at, &count)) {
        return false;
    }
    if (*at == '.') {
        const char *first = ++at;

        for (; *at >= '0' && *at <= '9' && at - first < DIGITS_MAX; at++) {
            part = 10 * part + (uint64_t)(*at - '0');
            scale *= 10;
        }
        if (at == first) {
            return false;
        }
    }
    /* Setting bit 5 makes an ASCII letter lower case. */
    const char *suffix = *at != '\0' ? strchr(suffixes, *at | 0x20) : NULL;
    for (const char *each = suffixes; suffix != NULL && each <= suffix; each++) {
        unit *= 1000;
    }
    at += suffix != NULL;
    if (part * unit % scale != 0 || __builtin_mul_overflow(count, unit, &count) ||
        __builtin_add_overflow(count, part * unit / scale, &count) || (scale > 1 && unit == 1)) {
        return false;
    }
    *text = at;
    *number = count;
    return true;
}

static enum slc_status
parse_u64(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    const char *at = text;
    uint64_t maximum = option->maximum == 0 ? UINT64_MAX : option->maximum;
    uint64_t number;

    if (!read_count(&at, &number) || *at != '\0') {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--%s: '%s' is not a whole number such as 2000, 2K, 1.5M or 3G",
                        option->name, text);
    }
    if (number < option->minimum || number > maximum) {
        return option->maximum == 0
                   ? slc_fail(err, SLC_ERR_USAGE, "--%s: %s is below %llu", option->name, text,
                              (unsigned long long)option->minimum)
                   : slc_fail(err, SLC_ERR_USAGE, "--%s: %s is not between %llu and %llu",
                              option->name, text, (unsigned long long)option->minimum,
                              (unsigned long long)maximum);
    }
    *(uint64_t *)field = number;
    return SLC_OK;
}

static enum slc_status
parse_size(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    struct slc_error inner = SLC_ERROR_INIT;

    if (slc_parse_size(text, field, &inner) != SLC_OK) {
        return slc_fail(err, inner.status, "--%s: %s", option->name, inner.message);
    }
    return SLC_OK;
}

static enum slc_status
parse_double(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    const char *end = text + strlen(text);
    double number;

    if (slc_parse_f64(text, end, &number) != end || !(number >= 0)) {
        return slc_fail(err, SLC_ERR_USAGE, "--%s: '%s' is not a number of 0 or more", option->name,
                        text);
    }
    /* Keeps sums and products of values finite, and rejects what strtod reads as infinity. */
    if (number > 1e300) {
        return slc_fail(err, SLC_ERR_USAGE, "--%s: '%s' is out of range: the limit is 1e300",
                        option->name, text);
    }
    *(double *)field = number;
    return SLC_OK;
}

static enum slc_status
parse_choice(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    char list[VALUE_BYTES_MAX] = "";
    size_t used = 0;

    for (size_t i = 0; option->choices[i] != NULL; i++) {
        int wrote = snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ",
                             option->choices[i]);

        if (strcmp(option->choices[i], text) == 0) {
            *(const char **)field = option->choices[i];
            return SLC_OK;
        }
        used += (size_t)wrote < sizeof list - used ? (size_t)wrote : 0;
    }
    const char *near = options_nearest(text, option->choices);
    return near != NULL
               ? slc_fail(err, SLC_ERR_USAGE, "--%s: '%s' is not one of %s; did you mean %s?",
                          option->name, text, list, near)
               : slc_fail(err, SLC_ERR_USAGE, "--%s: '%s' is not one of %s", option->name, text,
                          list);
}

static enum slc_status
parse_modes(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    struct option_modes modes = {0};
    const char *at = text;
    for (;;) {
        uint64_t number;

        if (!read_digits(&at, &number) || number < 1 || number > SLC_MAX_ORDER ||
            modes.count == SLC_MAX_ORDER || (*at != ',' && *at != '\0')) {
            return slc_fail(
                err, SLC_ERR_USAGE,
                "--%s: '%s' is not a list of modes such as 2,3,1 (modes count from 1 to %d)",
                option->name, text, SLC_MAX_ORDER);
        }
        for (unsigned i = 0; i < modes.count; i++) {
            if (modes.mode[i] == number - 1) {
                return slc_fail(err, SLC_ERR_USAGE, "--%s: mode %llu is listed twice in '%s'",
                                option->name, (unsigned long long)number, text);
            }
        }
        modes.mode[modes.count++] = (unsigned)number - 1;
        if (*at++ == '\0') {
            break;
        }
    }
    *(struct option_modes *)field = modes;
    return SLC_OK;
}

/* Adds the modes to those of earlier uses of the option. */
static enum slc_status
parse_more_modes(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    struct option_modes *all = field;
    struct option_modes more = {0};

    SLC_TRY(parse_modes(option, text, &more, err));
    for (unsigned i = 0; i < more.count; i++) {
        for (unsigned k = 0; k < all->count; k++) {
            if (all->mode[k] == more.mode[i]) {
                return slc_fail(err, SLC_ERR_USAGE, "--%s: mode %u is listed twice", option->name,
                                more.mode[i] + 1);
            }
        }
        /* Modes are distinct and below SLC_MAX_ORDER, so they fit. */
        all->mode[all->count++] = more.mode[i];
    }
    return SLC_OK;
}

/* Parses a list of modes, or "all", which is also the value of an option without a value. */
static enum slc_status
parse_mode_set(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    struct option_modes *modes = field;

    if (strcmp(text, "all") != 0) {
        return parse_modes(option, text, field, err);
    }
    for (modes->count = 0; modes->count < SLC_MAX_ORDER; modes->count++) {
        modes->mode[modes->count] = modes->count;
    }
    return SLC_OK;
}

/* Reads a number, or -inf or inf, that ends at `end`. Returns false if there is none. */
static bool read_bound(const char *text, const char *end, double *number)
{
    const bool negative = *text == '-';

    if (end - (text + negative) == 3 && memcmp(text + negative, "inf", 3) == 0) {
        *number = negative ? -HUGE_VAL : HUGE_VAL;
        return true;
    }
    return slc_parse_f64(text, end, number) == end && isfinite(*number);
}

/* Parses [MODE=]X, or [MODE=]LOW,HIGH for OPTION_MODE_BOUNDS. */
static enum slc_status parse_mode_numbers(const struct option *option,
                                          const char *text,
                                          void *field,
                                          struct slc_error *err)
{
    struct option_mode_numbers *numbers = field;
    const bool bounds = option->kind == OPTION_MODE_BOUNDS;
    const char *equals = strchr(text, '=');
    const char *at = equals != NULL ? equals + 1 : text;
    const char *end = text + strlen(text);
    const char *comma = bounds ? strchr(at, ',') : NULL;
    double found[2] = {0, 0};
    uint64_t mode = 0;
    const char *digits = text;

    if (equals != NULL &&
        (!read_digits(&digits, &mode) || digits != equals || mode < 1 || mode > SLC_MAX_ORDER)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--%s: '%.*s' in '%s' is not a mode (modes count from 1 to %d)",
                        option->name, (int)(equals - text), text, text, SLC_MAX_ORDER);
    }
    if (bounds && (comma == NULL || !read_bound(at, comma, &found[0]) ||
                   !read_bound(comma + 1, end, &found[1]))) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "--%s: '%s' is not a pair of numbers such as 0,1 or 2=-inf,5", option->name,
                        text);
    }
    if (!bounds) {
        SLC_TRY(parse_double(option, at, &found[0], err));
    }
    memcpy(equals != NULL ? numbers->mode[mode - 1] : numbers->all, found, sizeof found);
    numbers->modes |= equals != NULL ? UINT32_C(1) << (mode - 1) : 0;
    numbers->given = numbers->given || equals == NULL;
    return SLC_OK;
}

static enum slc_status
add_string(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    struct option_strings *strings = field;

    if (strings->count == SLC_MAX_ORDER) {
        return slc_fail(err, SLC_ERR_USAGE, "--%s may be given at most %d times", option->name,
                        SLC_MAX_ORDER);
    }
    strings->text[strings->count++] = text;
    return SLC_OK;
}

static enum slc_status
parse_dims(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    struct option_dims dims = {0};
    const char *at = text;

    for (;;) {
        uint64_t number;

        if (dims.order == SLC_MAX_ORDER || !read_count(&at, &number) || number < 1 ||
            number > SLC_MAX_MODE_LENGTH || (*at != 'x' && *at != ',' && *at != '\0')) {
            return slc_fail(err, SLC_ERR_USAGE,
                            "--%s: '%s' is not a list of 1 to %d mode sizes such as 100x200x300",
                            option->name, text, SLC_MAX_ORDER);
        }
        dims.length[dims.order++] = number;
        if (*at++ == '\0') {
            break;
        }
    }
    *(struct option_dims *)field = dims;
    return SLC_OK;
}

static enum slc_status
parse_counts(const struct option *option, const char *text, void *field, struct slc_error *err)
{
    const unsigned most = option->count_max > 0 ? option->count_max : OPTION_COUNTS_MAX;
    struct option_counts counts = {0};
    const char *item = text;

    for (;;) {
        const char *at = item;
        int length = (int)strcspn(item, ",");
        bool several = item != text || item[length] != '\0';
        uint64_t number;

        if (counts.count == most) {
            return slc_fail(err, SLC_ERR_USAGE, "--%s: '%s' has more than %u numbers", option->name,
                            text, most);
        }
        if (!read_count(&at, &number) || at != item + length) {
            return slc_fail(err, SLC_ERR_USAGE, "--%s: '%.*s' is not a whole number%s%s%s",
                            option->name, length, item, several ? " (in '" : "",
                            several ? text : "", several ? "')" : "");
        }
        if (number < option->minimum || number > option->maximum) {
            return slc_fail(err, SLC_ERR_USAGE, "--%s: %.*s is not between %llu and %llu",
                            option->name, length, item, (unsigned long long)option->minimum,
                            (unsigned long long)option->maximum);
        }
        counts.number[counts.count++] = number;
        if (*at == '\0') {
            break;
        }
        item = at + 1;
    }
    *(struct option_counts *)field = counts;
    return SLC_OK;
}

/* Stores `text` as the value of `option`. */
static enum slc_status
store_value(const struct option *option, const char *text, void *values, struct slc_error *err)
{
    void *field = field_of(values, option);

    if (*text == '\0') {
        return slc_fail(err, SLC_ERR_USAGE, "--%s: the value is empty", option->name);
    }
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        return SLC_OK;
    case OPTION_U64:
        return parse_u64(option, text, field, err);
    case OPTION_SIZE:
        return parse_size(option, text, field, err);
    case OPTION_DOUBLE:
        *(double *)field = -1.0;
        return option->automatic && strcmp(text, "auto") == 0
                   ? SLC_OK
                   : parse_double(option, text, field, err);
    case OPTION_STRING:
        *(const char **)field = text;
        return option->not_stdout && strcmp(text, "-") == 0
                   ? slc_fail(err, SLC_ERR_USAGE,
                              "--%s - would mean standard output, which is not supported: name a "
                              "path",
                              option->name)
                   : SLC_OK;
    case OPTION_CHOICE:
        return parse_choice(option, text, field, err);
    case OPTION_MODES:
        return parse_modes(option, text, field, err);
    case OPTION_MORE_MODES:
        return parse_more_modes(option, text, field, err);
    case OPTION_MORE_STRINGS:
        return add_string(option, text, field, err);
    case OPTION_DIMS:
        return parse_dims(option, text, field, err);
    case OPTION_MODES_OR_ALL:
        return parse_mode_set(option, text, field, err);
    case OPTION_MODE_NUMBERS:
    case OPTION_MODE_BOUNDS:
        return parse_mode_numbers(option, text, field, err);
    case OPTION_COUNTS:
        return parse_counts(option, text, field, err);
    }
    return slc_fail(err, SLC_ERR_USAGE, "--%s: options of this kind cannot be parsed",
                    option->name);
}

static bool name_is(const char *name, const char *text, size_t bytes)
{
    return name != NULL && strlen(name) == bytes && memcmp(name, text, bytes) == 0;
}

static const struct option *find_long(const struct command *command, const char *text, size_t bytes)
{
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (name_is(option->name, text, bytes) || name_is(option->alias, text, bytes)) {
            return option;
        }
    }
    return NULL;
}

static const struct option *find_letter(const struct command *command, char letter)
{
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (option->letter == letter) {
            return option;
        }
    }
    return NULL;
}

static enum slc_status
fail_unknown(const struct command *command, const char *text, size_t bytes, struct slc_error *err)
{
    enum { NAMES_MAX = 64 };
    const char *names[2 * NAMES_MAX + 2];
    char word[64];
    size_t count = 0;

    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (count < 2 * NAMES_MAX) {
            names[count++] = option->name;
        }
        if (option->alias != NULL && count < 2 * NAMES_MAX) {
            names[count++] = option->alias;
        }
    }
    names[count++] = "help";
    names[count] = NULL;
    (void)snprintf(word, sizeof word, "%.*s", (int)(bytes < sizeof word ? bytes : sizeof word - 1),
                   text);
    const char *near = options_nearest(word, names);
    return near != NULL
               ? slc_fail(err, SLC_ERR_USAGE, "unknown option --%s; did you mean --%s?", word, near)
               : slc_fail(err, SLC_ERR_USAGE, "unknown option --%s; see sluice %s --help", word,
                          command->name);
}

/* State of the loop over the arguments. `given` has one bit per row of the table. */
struct parse_state {
    const struct command *command;
    int argc;
    char **argv;
    int next;
    void *values;
    uint64_t given;
};

static enum slc_status read_value(struct parse_state *state,
                                  const struct option *option,
                                  const char *inline_text,
                                  struct slc_error *err)
{
    const char *text = inline_text;

    if (text == NULL) {
        if (state->next >= state->argc) {
            return slc_fail(err, SLC_ERR_USAGE, "--%s needs a value (%s)", option->name,
                            option->value);
        }
        text = state->argv[state->next++];
    }
    state->given |= UINT64_C(1) << (option - state->command->options);
    return store_value(option, text, state->values, err);
}

static enum slc_status
parse_long(struct parse_state *state, const char *text, bool *help, struct slc_error *err)
{
    const char *equals = strchr(text, '=');
    size_t bytes = equals != NULL ? (size_t)(equals - text) : strlen(text);

    if (name_is("help", text, bytes)) {
        *help = true;
        return SLC_OK;
    }
    const struct option *option = find_long(state->command, text, bytes);
    if (option == NULL) {
        return fail_unknown(state->command, text, bytes, err);
    }
    if (option->kind == OPTION_FLAG) {
        if (equals != NULL) {
            return slc_fail(err, SLC_ERR_USAGE, "--%s does not accept a value", option->name);
        }
        return read_value(state, option, "true", err);
    }
    if (option->kind == OPTION_MODES_OR_ALL && equals == NULL) {
        return read_value(state, option, "all", err);
    }
    return read_value(state, option, equals != NULL ? equals + 1 : NULL, err);
}

static enum slc_status
parse_letters(struct parse_state *state, const char *text, bool *help, struct slc_error *err)
{
    const size_t bytes = strcspn(text, "=");

    /* Reject a long name after a single dash: otherwise -output would be parsed as -o with the
     * value "utput". */
    if (bytes > 1 && find_long(state->command, text, bytes) != NULL) {
        return slc_fail(err, SLC_ERR_USAGE, "unknown option -%s; did you mean --%.*s?", text,
                        (int)bytes, text);
    }
    for (; *text != '\0'; text++) {
        if (*text == 'h' && find_letter(state->command, 'h') == NULL) {
            *help = true;
            return SLC_OK;
        }
        const struct option *option = find_letter(state->command, *text);
        if (option == NULL) {
            return slc_fail(err, SLC_ERR_USAGE, "unknown option -%c; see sluice %s --help", *text,
                            state->command->name);
        }
        if (option->kind != OPTION_FLAG) {
            return read_value(state, option, text[1] != '\0' ? text + 1 : NULL, err);
        }

        SLC_TRY(read_value(state, option, "true", err));
    }
    return SLC_OK;
}

static enum slc_status
set_defaults(const struct command *command, void *values, struct slc_error *err)
{
    for (const struct option *option = command->options; option->name != NULL; option++) {
        if (option->fallback != NULL) {
            SLC_TRY(store_value(option, option->fallback, values, err));
        }
    }
    return SLC_OK;
}

enum slc_status options_parse(const struct command *command,
                              int argc,
                              char **argv,
                              void *values,
                              struct operands *operands,
                              bool *help,
                              struct slc_error *err)
{
    struct parse_state state = {command, argc, argv, 1, values, 0};
    bool only_operands = false;
    enum slc_status status = set_defaults(command, values, err);

    *help = false;
    operands->count = 0;
    SLC_TRY(status);
    while (state.next < argc && !*help) {
        const char *text = argv[state.next++];

        if (!only_operands && strcmp(text, "--") == 0) {
            only_operands = true;
        } else if (!only_operands && text[0] == '-' && text[1] == '-') {
            SLC_TRY(parse_long(&state, text + 2, help, err));
        } else if (!only_operands && text[0] == '-' && text[1] != '\0') {
            SLC_TRY(parse_letters(&state, text + 1, help, err));
        } else if (*text == '\0') {
            return slc_fail(err, SLC_ERR_USAGE,
                            "empty argument; %s accepts %s; is a shell variable not set?",
                            command->name, command->operands_max > 0 ? command->operands : "none");
        } else if (operands->count == command->operands_max) {
            return options_fail_operand(command, text, err);
        } else {
            operands->text[operands->count++] = text;
        }
    }
    if (!*help) {
        SLC_TRY(options_check_given(command, state.given, operands->count, err));
    }
    return SLC_OK;
}
