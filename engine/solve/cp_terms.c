/* Checks constraints and penalties, chooses the algorithm that fits, and names them. */
#include "engine/solve/cp_terms.h"

#include "base/memory/limits.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *slc_cp_algorithm_name(enum slc_cp_algorithm algorithm)
{
    static const char *const names[] = {"auto", "als", "hals",   "admm", "mu",
                                        "pdnr", "ccd", "newton", "given"};

    return (unsigned)algorithm <= SLC_CP_GIVEN ? names[algorithm] : "?";
}

const char *slc_cp_algorithm_title(enum slc_cp_algorithm algorithm)
{
    switch (algorithm) {
    case SLC_CP_HALS:
        return "CP-HALS";
    case SLC_CP_ADMM:
        return "CP-AO-ADMM";
    case SLC_CP_MU:
        return "CP-APR by multiplicative updates";
    case SLC_CP_PDNR:
        return "CP-APR by Newton steps";
    case SLC_CP_AUTO:
    case SLC_CP_ALS:
    case SLC_CP_CCD:
    case SLC_CP_NEWTON:
    case SLC_CP_GIVEN:
        break;
    }
    return "CP-ALS";
}

bool slc_cp_algorithm_parse(const char *name, enum slc_cp_algorithm *algorithm)
{
    for (int i = SLC_CP_AUTO; i <= SLC_CP_NEWTON; i++) {
        if (strcmp(name, slc_cp_algorithm_name((enum slc_cp_algorithm)i)) == 0) {
            *algorithm = (enum slc_cp_algorithm)i;
            return true;
        }
    }
    return false;
}

static bool is_penalty(double number)
{
    return number >= 0.0 && isfinite(number); /* false for NaN */
}

static enum slc_status
check_terms(const struct slc_row_terms *terms, unsigned mode, struct slc_error *err)
{
    if (!is_penalty(terms->ridge)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the regularization of mode %u is %g, but must be finite and 0 or more",
                        mode + 1, terms->ridge);
    }
    if (!is_penalty(terms->l1)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the l1 penalty of mode %u is %g, but must be finite and 0 or more",
                        mode + 1, terms->l1);
    }
    if (!is_penalty(terms->smooth)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the smoothness penalty of mode %u is %g, but must be finite and 0 or more",
                        mode + 1, terms->smooth);
    }
    if (terms->bounded && !(terms->low <= terms->high)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the bounds of mode %u are %g and %g, but the first must be at most the "
                        "second",
                        mode + 1, terms->low, terms->high);
    }
    if (terms->bounded && (terms->low == INFINITY || terms->high == -INFINITY)) {
        return slc_fail(err, SLC_ERR_USAGE, "no finite number is between the bounds of mode %u",
                        mode + 1);
    }
    if (terms->bounded && terms->nonnegative && terms->high < 0.0) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "mode %u cannot be nonnegative and at most %g: no number is between its "
                        "bounds",
                        mode + 1, terms->high);
    }
    if (terms->simplex && terms->bounded && (terms->low > 0.0 || terms->high < 1.0)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the rows of mode %u cannot be on the simplex and between %g and %g: the "
                        "numbers of a row on the simplex are from 0 to 1, so remove the bounds",
                        mode + 1, terms->low, terms->high);
    }
    return SLC_OK;
}

enum slc_status slc_cp_choose(const struct slc_row_terms *terms,
                              unsigned order,
                              enum slc_cp_algorithm *algorithm,
                              struct slc_error *err)
{
    bool constrained = false, only_admm = false;

    for (unsigned n = 0; n < order; n++) {
        SLC_TRY(check_terms(&terms[n], n, err));
        only_admm = only_admm || terms[n].simplex || terms[n].smooth > 0.0;
        constrained = constrained || only_admm || terms[n].nonnegative || terms[n].bounded ||
                      terms[n].l1 > 0.0;
    }
    if (*algorithm == SLC_CP_AUTO) {
        *algorithm = only_admm ? SLC_CP_ADMM : constrained ? SLC_CP_HALS : SLC_CP_ALS;
    }
    if (*algorithm == SLC_CP_ALS && constrained) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the method 'als' allows only a regularization, no constraint and no other "
                        "penalty: use the method %s, or 'auto'",
                        only_admm ? "'admm'" : "'hals' or 'admm'");
    }
    if (*algorithm == SLC_CP_HALS && only_admm) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "the method 'hals' allows no rows on the simplex and no smoothness "
                        "penalty: use the method 'admm', or 'auto'");
    }
    return SLC_OK;
}

struct text {
    char *at;
    size_t used;
};

static void SLC_PRINTF(2, 3) append(struct text *text, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    const int length =
        vsnprintf(text->at + text->used, SLC_CP_TERMS_BYTES - text->used, format, arguments);
    va_end(arguments);
    text->used += length > 0 ? (size_t)length : 0;
    text->used = text->used < SLC_CP_TERMS_BYTES ? text->used : SLC_CP_TERMS_BYTES - 1;
}

/* Appends a number in its shortest form, with a decimal point in every locale. */
static void append_number(struct text *text, double number)
{
    char digits[40];

    (void)snprintf(digits, sizeof digits, "%.15g", number);
    if (strtod(digits, NULL) != number) {
        (void)snprintf(digits, sizeof digits, "%.17g", number);
    }
    for (char *at = digits; *at != '\0'; at++) {
        *at = strchr("0123456789+-einf", *at) != NULL ? *at : '.';
    }
    append(text, "%s", digits);
}

/* Returns "; " if the text has begun. */
static const char *comma(const struct text *text)
{
    return text->used > 0 ? "; " : "";
}

/* Appends the name of a constraint, and its modes unless it applies to all. */
static void append_modes(struct text *text,
                         const struct slc_row_terms *terms,
                         unsigned order,
                         const char *name,
                         size_t offset)
{
    unsigned count = 0, listed = 0;

    for (unsigned n = 0; n < order; n++) {
        count += *(const bool *)((const char *)&terms[n] + offset);
    }
    if (count > 0) {
        append(text, "%s%s%s", comma(text), name, count == order ? "" : " modes ");
    }
    for (unsigned n = 0; count < order && n < order; n++) {
        if (*(const bool *)((const char *)&terms[n] + offset)) {
            append(text, "%s%u", listed++ > 0 ? "," : "", n + 1);
        }
    }
}

/* Appends a penalty: its number, or the numbers of all modes if they differ. */
static void append_penalty(struct text *text,
                           const struct slc_row_terms *terms,
                           unsigned order,
                           const char *name,
                           size_t offset)
{
    double numbers[SLC_MAX_ORDER];
    bool some = false, same = true;

    for (unsigned n = 0; n < order; n++) {
        numbers[n] = *(const double *)(const void *)((const char *)&terms[n] + offset);
        some = some || numbers[n] > 0.0;
        same = same && numbers[n] == numbers[0];
    }
    if (some) {
        append(text, "%s%s ", comma(text), name);
    }
    for (unsigned n = 0; some && n < (same ? 1 : order); n++) {
        append(text, "%s", n > 0 ? "," : "");
        append_number(text, numbers[n]);
    }
}

void slc_cp_terms_text(const struct slc_row_terms *terms,
                       unsigned order,
                       char text[SLC_CP_TERMS_BYTES])
{
    struct text all = {text, 0};

    text[0] = '\0';
    append_modes(&all, terms, order, "nonnegative", offsetof(struct slc_row_terms, nonnegative));
    append_modes(&all, terms, order, "simplex", offsetof(struct slc_row_terms, simplex));
    append_penalty(&all, terms, order, "l1", offsetof(struct slc_row_terms, l1));
    append_penalty(&all, terms, order, "smooth", offsetof(struct slc_row_terms, smooth));
    for (unsigned n = 0; n < order; n++) {
        if (terms[n].bounded) {
            append(&all, "%sbounds of mode %u ", comma(&all), n + 1);
            append_number(&all, terms[n].low);
            append(&all, ",");
            append_number(&all, terms[n].high);
        }
    }
}
