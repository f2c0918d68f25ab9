/*
 * Functions of a value that leave zero where it is, so that they need to be applied to nonzeros
 * alone: log1p, binarize, abs, scale. They are applied to final values, when duplicates have been
 * combined: a count that comes in several lines is one count.
 */
#ifndef SLC_CONVERT_TRANSFORM_H
#define SLC_CONVERT_TRANSFORM_H

#include "base/error/error.h"

#include <stddef.h>
#include <stdint.h>

/* More than anybody chains. */
enum { SLC_TRANSFORMS_MAX = 8 };

enum slc_transform_kind {
    SLC_TRANSFORM_LOG1P,    /* log(1 + x); x has to be above -1 */
    SLC_TRANSFORM_BINARIZE, /* 1 */
    SLC_TRANSFORM_ABS,
    SLC_TRANSFORM_SCALE /* times `factor`, finite and not 0 */
};

/* Steps, made one after the other. All zero: none. */
struct slc_transforms {
    unsigned count;
    struct {
        enum slc_transform_kind kind;
        double factor;
    } steps[SLC_TRANSFORMS_MAX];
};

/* Adds the step that `text` names: "log1p", "binarize", "abs" or "scale=F". Errors: SLC_ERR_USAGE.
 */
enum slc_status slc_transforms_add(struct slc_transforms *transforms,
                                   const char *text,
                                   struct slc_error *err) SLC_NODISCARD;

/* All steps of a finite value; not finite where one is not defined there, or out of range. */
double slc_transforms_apply(const struct slc_transforms *transforms, double value);

/* Adds the steps to `text`, as --transform has them, with commas between; what does not fit is left
 * out, as a whole step, and "..", in its place. */
void slc_transforms_tell(const struct slc_transforms *transforms, char *text, size_t text_bytes);

/* What tells two chains apart. */
uint64_t slc_transforms_hash(const struct slc_transforms *transforms);

#endif
