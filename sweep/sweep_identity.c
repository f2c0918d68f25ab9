/* Collects the options and the properties of the tensor that determine the results of a sweep. */
#include "storage/manifest/json_text.h"
#include "sweep/sweep.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static void add_member(json_t *identity, const char *name, const char *format, ...)
    SLC_PRINTF(3, 4);
static void add_member(json_t *identity, const char *name, const char *format, ...)
{
    char text[256];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)json_object_set_new(identity, name, slc_json_string(text));
}

static void add_dims(json_t *identity, const struct slc_manifest *manifest)
{
    char dims[SLC_MAX_ORDER * 24];
    size_t used = 0;

    for (unsigned n = 0; n < manifest->order; n++) {
        used += (size_t)snprintf(dims + used, sizeof dims - used, "%s%" PRIu64, n > 0 ? " x " : "",
                                 manifest->dims[n]);
    }
    (void)json_object_set_new(identity, "tensor dims", json_string(dims));
}

json_t *slc_sweep_identity(const struct slc_manifest *manifest,
                           const struct slc_sweep_method *method)
{
    /* Each call below adds one entry. */
    const size_t entries = 9;
    json_t *identity = json_object();

    add_member(identity, "tensor content", "%016" PRIx64, manifest->content_sum);
    add_dims(identity, manifest);
    add_member(identity, "tensor nonzeros", "%" PRIu64, manifest->nnz);
    add_member(identity, "iterations", "%" PRIu64, method->iterations);
    add_member(identity, "tolerance", "%.17g", method->tolerance);
    add_member(identity, "regularization", "%.17g", method->regularization);
    add_member(identity, "precision", "%s", method->precision == SLC_F32 ? "f32" : "f64");
    add_member(identity, "deterministic", "%s", method->deterministic ? "yes" : "no");
    add_member(identity, "held out", "%.17g, seed %" PRIu64, method->holdout, method->holdout_seed);
    if (json_object_size(identity) != entries) {
        json_decref(identity);
        return NULL;
    }
    return identity;
}
