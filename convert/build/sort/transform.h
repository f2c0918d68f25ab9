/* Transforms values by functions that map zero to zero, so that only nonzeros change: log1p,
 * binarize, abs, scale. Transforms are applied after duplicates are combined. A count that is
 * spread over several lines is therefore transformed once, as a sum. */
#ifndef SLC_CONVERT_TRANSFORM_H
#define SLC_CONVERT_TRANSFORM_H

#include "base/error/error.h"

#include <stddef.h>
#include <stdint.h>

/* Largest number of steps in a chain of transforms. Longer chains have no known use. */
enum { SLC_TRANSFORMS_MAX = 8 };

enum slc_transform_kind {
    SLC_TRANSFORM_LOG1P,    /* log(1 + x); x must be above -1 */
    SLC_TRANSFORM_BINARIZE, /* 1 for every x except 0 */
    SLC_TRANSFORM_ABS,
    SLC_TRANSFORM_SCALE /* x times `factor`, which is finite and not 0 */
};

/* A chain of steps, applied in order. All zero: no steps. */
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

/* Returns a hash of the chain. */
uint64_t slc_transforms_hash(const struct slc_transforms *transforms);

#endif
