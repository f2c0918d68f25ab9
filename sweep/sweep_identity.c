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
    char text[SLC_CP_TERMS_BYTES];
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

/* Adds the regularization: one number if all modes have the same, otherwise a list. */
static void add_regularization(json_t *identity, unsigned order, const struct slc_row_terms *terms)
{
    char text[SLC_MAX_ORDER * 32];
    size_t used = 0;
    bool same = true;

    for (unsigned n = 0; n < order; n++) {
        same = same && terms[n].ridge == terms[0].ridge;
    }
    for (unsigned n = 0; n < (same ? 1 : order); n++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.17g", n > 0 ? "," : "",
                                 terms[n].ridge);
    }
    add_member(identity, "regularization", "%s", text);
}

static void add_loss(json_t *identity, const struct slc_cp_options *solver)
{
    add_member(identity, SLC_SWEEP_LOSS, "%s (%.17g), unlisted %s, biases %s, inner %u, ridge %s",
               slc_loss_name(solver->loss), solver->huber, slc_unlisted_name(solver->unlisted),
               slc_biases_name(slc_cp_biases_in_effect(solver)), solver->inner,
               solver->ridge_chosen ? "chosen" : "given");
}

json_t *slc_sweep_identity(const struct slc_manifest *manifest,
                           const struct slc_sweep_method *method)
{
    /* Each call below adds one entry, except those for constraints. */
    size_t entries = 9;
    json_t *identity = json_object();
    char constraints[SLC_CP_TERMS_BYTES];

    add_member(identity, "tensor content", "%016" PRIx64, manifest->content_sum);
    add_dims(identity, manifest);
    add_member(identity, "tensor nonzeros", "%" PRIu64, manifest->nnz);
    add_member(identity, "iterations", "%" PRIu64, method->iterations);
    add_member(identity, "tolerance", "%.17g", method->tolerance);
    add_regularization(identity, manifest->order, method->solver->terms);
    add_member(identity, "precision", "%s", method->precision == SLC_F32 ? "f32" : "f64");
    add_member(identity, "deterministic", "%s", method->deterministic ? "yes" : "no");
    add_member(identity, "held out", "%.17g, seed %" PRIu64, method->holdout, method->holdout_seed);
    slc_cp_terms_text(method->solver->terms, manifest->order, constraints);
    if (method->solver->algorithm != SLC_CP_ALS) {
        add_member(identity, "method", "%s", slc_cp_algorithm_name(method->solver->algorithm));
        add_member(identity, "constraints", "%s", constraints);
        entries += 2;
    }
    if (slc_cp_needs_nonzeros(method->solver)) {
        add_loss(identity, method->solver);
        entries++;
    }
    if (json_object_size(identity) != entries) {
        json_decref(identity);
        return NULL;
    }
    return identity;
}
