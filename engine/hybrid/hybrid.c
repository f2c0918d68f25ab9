#include "engine/hybrid/hybrid.h"

#include <stdio.h>
#include <string.h>

static const char static_word[] = "static";

/* Maximum digits of a fraction: integers of up to 15 digits, and 10^15, are exact in f64. */
enum { DIGITS_MOST = 15 };

/* A side without work is tried again whenever the number of passes has grown by this factor. */
enum { TRIAL_FACTOR = 4 };

const char *slc_hybrid_kind_name(enum slc_hybrid_kind kind)
{
    switch (kind) {
    case SLC_HYBRID_NONE:
        return "none";
    case SLC_HYBRID_STATIC:
        return static_word;
    case SLC_HYBRID_ADAPTIVE:
        return "adaptive";
    case SLC_HYBRID_QUEUE:
        return "queue";
    }
    return "?";
}

/* Parses a decimal fraction from 0 to 1, independent of the locale's decimal point. The result is
 * the f64 nearest to the text, because it is the quotient of two exact numbers. */
static bool parse_fraction(const char *text, double *fraction)
{
    double digits = 0, unit = 1;
    unsigned count = 0;
    bool after_point = false;
    bool any = false;

    for (; *text != '\0'; text++) {
        if (*text == '.' && !after_point) {
            after_point = true;
        } else if (*text >= '0' && *text <= '9' && count < DIGITS_MOST) {
            digits = digits * 10 + (*text - '0');
            unit *= after_point ? 10 : 1;
            count += after_point || digits > 0;
            any = true;
        } else {
            return false;
        }
    }
    *fraction = digits / unit;
    return any && *fraction <= 1;
}

bool slc_hybrid_is_split(const char *text)
{
    const size_t length = strcspn(text, "=");

    for (enum slc_hybrid_kind kind = SLC_HYBRID_STATIC; kind <= SLC_HYBRID_QUEUE; kind++) {
        const char *name = slc_hybrid_kind_name(kind);

        if (strlen(name) == length && strncmp(text, name, length) == 0) {
            return true;
        }
    }
    return false;
}

enum slc_status
slc_hybrid_parse(const char *text, struct slc_hybrid_wish *wish, struct slc_error *err)
{
    const size_t length = sizeof static_word - 1;
    struct slc_hybrid_wish found = {SLC_HYBRID_STATIC, 0};

    if (strncmp(text, static_word, length) == 0 && (text[length] == '=' || text[length] == '\0')) {
        if (text[length] == '\0' || !parse_fraction(text + length + 1, &found.fraction)) {
            return slc_fail_field(
                err, SLC_ERR_USAGE, SLC_FIELD_SPLIT,
                "the split '%s' does not state the GPU's fraction of the nonzeros: use static=F, "
                "with F from 0 to 1 and at most %d digits, such as static=0.7",
                text, (int)DIGITS_MOST);
        }
    } else if (strcmp(text, slc_hybrid_kind_name(SLC_HYBRID_ADAPTIVE)) == 0) {
        found.kind = SLC_HYBRID_ADAPTIVE;
    } else if (strcmp(text, slc_hybrid_kind_name(SLC_HYBRID_QUEUE)) == 0) {
        found.kind = SLC_HYBRID_QUEUE;
    } else {
        return slc_fail_field(
            err, SLC_ERR_USAGE, SLC_FIELD_SPLIT,
            "the split '%s' does not share work between CPU and GPU: use static=F (F from 0 to 1, "
            "the GPU's fraction of the nonzeros), adaptive or queue",
            text);
    }
    *wish = found;
    return SLC_OK;
}

const char *slc_hybrid_name(const struct slc_hybrid_wish *wish, struct slc_hybrid_text *out)
{
    if (wish->kind == SLC_HYBRID_STATIC) {
        (void)snprintf(out->text, sizeof out->text, "%s=%.*g", static_word, (int)DIGITS_MOST,
                       wish->fraction);
    } else {
        (void)snprintf(out->text, sizeof out->text, "%s", slc_hybrid_kind_name(wish->kind));
    }
    return out->text;
}

void slc_hybrid_rates_record(struct slc_hybrid_rates *rates,
                             enum slc_hybrid_side side,
                             const struct slc_hybrid_part *part)
{
    if (part->nnz == 0 || !(part->seconds > 0)) {
        return;
    }
    if (rates->seconds[side] > 0) {
        /* Scales the earlier work to the duration of this measurement, so that both weigh the
         * same. */
        const double scale = part->seconds / rates->seconds[side];

        rates->nnz[side] *= scale;
        rates->seconds[side] = part->seconds;
    }
    rates->nnz[side] += (double)part->nnz;
    rates->seconds[side] += part->seconds;
}

double slc_hybrid_rate(const struct slc_hybrid_rates *rates, enum slc_hybrid_side side)
{
    return rates->seconds[side] > 0 ? rates->nnz[side] / rates->seconds[side] : 0;
}

double slc_hybrid_rates_fraction(const struct slc_hybrid_rates *rates)
{
    const double cpu = slc_hybrid_rate(rates, SLC_HYBRID_CPU);
    const double device = slc_hybrid_rate(rates, SLC_HYBRID_GPU);

    return cpu > 0 && device > 0 ? device / (cpu + device) : -1;
}

void slc_hybrid_record_cost(struct slc_hybrid *hybrid, double seconds)
{
    /* The cost of the first pass is too high, because this pass also touches the CPU's memory for
     * the first time. A lower cost therefore replaces the stored cost at once. */
    hybrid->cost_seconds = hybrid->cost_seconds > 0 && seconds > hybrid->cost_seconds
                               ? (hybrid->cost_seconds + seconds) / 2
                               : seconds;
}

bool slc_hybrid_tries_again(const struct slc_hybrid *hybrid)
{
    uint64_t turn = 1;

    while (turn < hybrid->passes) {
        turn *= TRIAL_FACTOR;
    }
    return turn == hybrid->passes;
}

bool slc_hybrid_without_cpu(const struct slc_hybrid *hybrid)
{
    const double cpu = slc_hybrid_rate(&hybrid->rates, SLC_HYBRID_CPU);
    const double device = slc_hybrid_rate(&hybrid->rates, SLC_HYBRID_GPU);
    const double nnz =
        (double)hybrid->last[SLC_HYBRID_CPU].nnz + (double)hybrid->last[SLC_HYBRID_GPU].nnz;

    if (hybrid->wish.kind != SLC_HYBRID_ADAPTIVE || !(cpu > 0) || !(device > 0) ||
        nnz / (cpu + device) + hybrid->cost_seconds < nnz / device) {
        return false;
    }
    return !slc_hybrid_tries_again(hybrid) ||
           hybrid->cost_seconds > SLC_HYBRID_TRIAL_COST * (nnz / device);
}

double slc_hybrid_planned(const struct slc_hybrid *hybrid)
{
    switch (hybrid->wish.kind) {
    case SLC_HYBRID_NONE:
        return 1;
    case SLC_HYBRID_STATIC:
        return hybrid->wish.fraction;
    case SLC_HYBRID_ADAPTIVE:
        return slc_hybrid_rates_fraction(&hybrid->rates);
    case SLC_HYBRID_QUEUE:
        break;
    }
    return -1;
}

double slc_hybrid_fraction(const struct slc_hybrid_part parts[SLC_HYBRID_PARTS])
{
    const double device = (double)parts[SLC_HYBRID_GPU].nnz;
    const double all = (double)parts[SLC_HYBRID_CPU].nnz + device;

    return all > 0 ? device / all : -1;
}

void slc_hybrid_record(struct slc_hybrid *hybrid,
                       const struct slc_hybrid_part parts[SLC_HYBRID_PARTS])
{
    for (enum slc_hybrid_side side = 0; side < SLC_HYBRID_PARTS; side++) {
        slc_hybrid_rates_record(&hybrid->rates, side, &parts[side]);
        hybrid->parts[side].nnz += parts[side].nnz;
        hybrid->parts[side].seconds += parts[side].seconds;
        hybrid->last[side] = parts[side];
    }
    hybrid->passes++;
    hybrid->passes_alone += parts[SLC_HYBRID_CPU].nnz == 0;
}
