/*
 * Functions of a value that map zero to zero, so that only nonzeros need them: log1p, binarize,
 * abs, scale. They are applied after duplicates are combined, so that a count spread over several
 * lines is transformed once, as their sum.
 */
#ifndef SLC_CONVERT_TRANSFORM_H
#define SLC_CONVERT_TRANSFORM_H

#include "base/error/error.h"

#include <stddef.h>
#include <stdint.h>

/* Limit of steps per chain. Longer chains have no known use. */
enum { SLC_TRANSFORMS_MAX = 8 };

enum slc_transform_kind {
    SLC_TRANSFORM_LOG1P,    /* log(1 + x); x must be above -1 */
    SLC_TRANSFORM_BINARIZE, /* 1 */
    SLC_TRANSFORM_ABS,
    SLC_TRANSFORM_SCALE /* times `factor`, finite and not 0 */
};

/* Steps, applied in order. All zero: none. */
struct slc_transforms {
    unsigned count;
    struct {
        enum slc_transform_kind kind;
        double factor;
    } steps[SLC_TRANSFORMS_MAX];
};

/* Adds the step named by `text`: "log1p", "binarize", "abs" or "scale=F". Errors: SLC_ERR_USAGE. */
enum slc_status slc_transforms_add(struct slc_transforms *transforms,
                                   const char *text,
                                   struct slc_error *err) SLC_NODISCARD;

/* Applies all steps to a finite value; the result is not finite if a step is undefined or
 * overflows. */
double slc_transforms_apply(const struct slc_transforms *transforms, double value);

/* Appends the steps to `text` in the syntax of --transform, separated by commas; steps that do not
 * fit are replaced by "..". */
void slc_transforms_format(const struct slc_transforms *transforms, char *text, size_t text_bytes);

/* Hash of a chain. */
uint64_t slc_transforms_hash(const struct slc_transforms *transforms);

#endif
