#include "convert/build/sort/transform.h"

#include "base/hash.h"
#include "convert/number/number.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {[SLC_TRANSFORM_LOG1P] = "log1p",
                                    [SLC_TRANSFORM_BINARIZE] = "binarize",
                                    [SLC_TRANSFORM_ABS] = "abs"};

enum { NAMES = sizeof names / sizeof names[0] };

/* Parses the factor after "scale=". */
static enum slc_status parse_factor(const char *text, double *factor, struct slc_error *err)
{
    const char *end = text + strlen(text);

    return slc_parse_f64(text, end, factor) == end && isfinite(*factor) && *factor != 0
               ? SLC_OK
               : slc_fail_field(
                     err, SLC_ERR_USAGE, SLC_FIELD_TRANSFORM,
                     "transform scale=%s: the factor must be a finite number other than 0", text);
}

enum slc_status
slc_transforms_add(struct slc_transforms *transforms, const char *text, struct slc_error *err)
{
    const unsigned at = transforms->count;
    unsigned kind = 0;
    enum slc_status status = SLC_OK;

    if (at == SLC_TRANSFORMS_MAX) {
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_TRANSFORM,
                              "at most %d transforms are supported", SLC_TRANSFORMS_MAX);
    }
    while (kind < NAMES && strcmp(text, names[kind]) != 0) {
        kind++;
    }
    if (kind < NAMES) {
        transforms->steps[at].kind = (enum slc_transform_kind)kind;
    } else if (strncmp(text, "scale=", 6) == 0) {
        transforms->steps[at].kind = SLC_TRANSFORM_SCALE;
        status = parse_factor(text + 6, &transforms->steps[at].factor, err);
    } else {
        status =
            slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_TRANSFORM,
                           "transform '%s': must be log1p, binarize, abs or scale=FACTOR", text);
    }
    transforms->count += status == SLC_OK;
    return status;
}

double slc_transforms_apply(const struct slc_transforms *transforms, double value)
{
    for (unsigned i = 0; i < transforms->count && value != 0; i++) {
        switch (transforms->steps[i].kind) {
        case SLC_TRANSFORM_LOG1P:
            value = log1p(value);
            break;
        case SLC_TRANSFORM_BINARIZE:
            value = 1;
            break;
        case SLC_TRANSFORM_ABS:
            value = fabs(value);
            break;
        case SLC_TRANSFORM_SCALE:
            value *= transforms->steps[i].factor;
            break;
        }
        if (!isfinite(value)) {
            break;
        }
    }
    return value;
}

void slc_transforms_format(const struct slc_transforms *transforms, char *text, size_t text_bytes)
{
    for (unsigned i = 0; i < transforms->count; i++) {
        const size_t used = strlen(text);
        const char *comma = used > 0 ? "," : "";
        char step[48];

        if (transforms->steps[i].kind == SLC_TRANSFORM_SCALE) {
            (void)snprintf(step, sizeof step, "%sscale=%.17g", comma, transforms->steps[i].factor);
        } else {
            (void)snprintf(step, sizeof step, "%s%s", comma, names[transforms->steps[i].kind]);
        }
        if (used + strlen(step) + sizeof ",.." > text_bytes) {
            (void)snprintf(text + used, text_bytes - used, "%s..", comma);
            return;
        }
        memcpy(text + used, step, strlen(step) + 1);
    }
}

uint64_t slc_transforms_hash(const struct slc_transforms *transforms)
{
    uint64_t hash = transforms->count;

    for (unsigned i = 0; i < transforms->count; i++) {
        uint64_t numbers[3] = {hash, transforms->steps[i].kind, 0};

        memcpy(&numbers[2], &transforms->steps[i].factor, sizeof numbers[2]);
        hash = slc_hash64(numbers, sizeof numbers);
    }
    return hash;
}
