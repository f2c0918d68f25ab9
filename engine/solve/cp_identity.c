/* Writes the identity of a run: lines of text with everything that affects its result. A run
 * compares its identity with the identity in a checkpoint, to reject a checkpoint of a different
 * run.
 *
 * The identity of a deterministic run lists everything on which its bits depend. The identity of
 * any other run lists only the options that change the result by more than rounding; it omits
 * layouts, threads and passes. */
#include "base/hash.h"
#include "cpu/cpu.h"
#include "engine/solve/cp_checkpoint.h"
#include "engine/solve/cp_method.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Text that is being written. If it does not fit in the buffer, `used` exceeds the size of the
 * buffer. */
struct cp_identity {
    char *text;
    size_t used;
};

void cp_identity_append(struct cp_identity *identity, const char *format, ...)
{
    va_list arguments;
    int length;

    va_start(arguments, format);
    if (identity->used < SLC_CP_IDENTITY_BYTES) {
        length = vsnprintf(identity->text + identity->used, SLC_CP_IDENTITY_BYTES - identity->used,
                           format, arguments);
        identity->used += length > 0 ? (size_t)length : 0;
    }
    va_end(arguments);
}

static void append_tensor(struct cp_identity *identity, const struct cp_state *state)
{
    const struct slc_manifest *manifest = &state->store->manifest;
    struct slc_hash_stream labels;

    cp_identity_append(identity, "tensor dims=");
    for (unsigned n = 0; n < state->order; n++) {
        cp_identity_append(identity, "%s%" PRIu64, n > 0 ? "x" : "", state->dims[n]);
    }
    cp_identity_append(identity, "\ntensor nonzeros=%" PRIu64 "\ntensor content=%016" PRIx64,
                       manifest->nnz, manifest->content_sum);
    /* The permutations are included because rows of factors are in the order of the store. */
    slc_hash_stream_begin(&labels);
    for (unsigned i = 0; i < manifest->permutation_count; i++) {
        slc_hash_stream_add(&labels, &manifest->permutations[i].mode, sizeof(unsigned));
        slc_hash_stream_add(&labels, &manifest->permutations[i].hash, sizeof(uint64_t));
    }
    cp_identity_append(identity, "\ntensor labels=%016" PRIx64 "\n", slc_hash_stream_end(&labels));
}

static enum slc_status
append_start(struct cp_identity *identity, const struct cp_state *state, struct slc_error *err)
{
    const struct slc_cp_options *options = state->options;
    uint64_t hash;

    if (options->init_folder == NULL) {
        cp_identity_append(identity, "start=random, seed %" PRIu64 "\n", options->seed);
        return SLC_OK;
    }
    SLC_TRY(slc_model_hash(options->files, options->init_folder, state->order, state->init.rows,
                           state->rank, &hash, err));
    cp_identity_append(identity, "start=files with the checksum %016" PRIx64, hash);
    if (state->init.differs) {
        cp_identity_append(identity, ", new rows random, seed %" PRIu64, options->seed);
    }
    for (unsigned n = 0; n < state->order; n++) {
        if (state->init.names.names[n] != NULL) {
            cp_identity_append(identity, ", names of mode %u", n + 1);
        }
    }
    cp_identity_append(identity, "\n");
    return SLC_OK;
}

void cp_identity_number(struct cp_identity *identity, double number)
{
    char text[40];

    (void)snprintf(text, sizeof text, "%.17g", number);
    for (char *at = text; *at != '\0'; at++) {
        *at = strchr("0123456789+-einfa", *at) != NULL ? *at : '.';
    }
    cp_identity_append(identity, "%s", text);
}

/* Writes rank, regularization (one number if it is the same for all modes) and the 1-based order of
 * modes. */
static void append_method(struct cp_identity *identity, const struct cp_state *state)
{
    const struct slc_row_terms *terms = state->options->terms;
    unsigned different = 1;

    for (unsigned n = 1; n < state->order; n++) {
        different = terms[n].ridge != terms[0].ridge ? state->order : different;
    }
    cp_identity_append(identity, "rank=%" PRIu32 "\nregularization=", state->rank);
    for (unsigned n = 0; n < different; n++) {
        cp_identity_append(identity, n > 0 ? "," : "");
        cp_identity_number(identity, terms[n].ridge);
    }
    cp_identity_append(identity, "\nmode order=");
    for (unsigned n = 0; n < state->order; n++) {
        cp_identity_append(identity, "%s%u", n > 0 ? "," : "", state->mode_order[n] + 1);
    }
    cp_identity_append(identity, "\nprecision=%s\ndeterministic=%s\n",
                       state->plan->request.precision == SLC_F32 ? "f32" : "f64",
                       state->options->deterministic ? "yes" : "no");
}

static void append_holdout(struct cp_identity *identity, const struct slc_cp_options *options)
{
    cp_identity_append(identity, "held out=%" PRIu64 " of 2^64, seed %" PRIu64 "\n",
                       slc_holdout_choose(options->holdout, 0).threshold, options->holdout_seed);
}

/* Writes the further choices on which the bits of a deterministic run depend. */
static void append_bits(struct cp_identity *identity, const struct cp_state *state)
{
    const struct slc_plan *plan = state->plan;

    cp_identity_append(identity, "device=");
    if (plan->request.gpu != NULL) {
        cp_identity_append(identity, "%s", plan->request.gpu->ops->name);
    } else if (plan->cpu_groups > 0) {
        cp_identity_append(identity, "several of CPU (%s), dividing %s", slc_cpu_instruction_set(),
                           slc_split_name(plan->request.split));
    } else {
        cp_identity_append(identity, "CPU (%s)", slc_cpu_instruction_set());
    }
    cp_identity_append(identity, "\npasses=");
    for (unsigned n = 0; n < state->order; n++) {
        cp_identity_append(identity, "%s%s", n > 0 ? "," : "",
                           (plan->fusion.modes >> n & 1U) != 0 ? "fused" : "plain");
    }
    cp_identity_append(identity, "\nlayouts=");
    for (unsigned n = 0; n < state->order; n++) {
        const struct slc_layout_info *info =
            slc_reader_info(slc_stream_reader(state->stream, plan->mode_layout[n]));

        cp_identity_append(identity, "%s%s:%016" PRIx64, n > 0 ? "," : "",
                           slc_layout_name(info->layout), info->header_hash);
    }
    cp_identity_append(identity, "\n");
}

enum slc_status cp_identity(const struct cp_state *state, char *text, struct slc_error *err)
{
    struct cp_identity identity = {text, 0};

    cp_identity_append(&identity, "method=%s\n",
                       slc_cp_title(state->options, state->options->algorithm));
    append_method(&identity, state);
    if (state->method->identify != NULL) {
        state->method->identify(state, &identity);
    }
    append_tensor(&identity, state);
    enum slc_status status = append_start(&identity, state, err);
    if (state->options->holdout > 0.0) {
        append_holdout(&identity, state->options);
    }
    SLC_TRY(status);
    if (state->options->deterministic) {
        append_bits(&identity, state);
    }
    if (identity.used >= SLC_CP_IDENTITY_BYTES) {
        return slc_fail_field(err, SLC_ERR_UNSUPPORTED, SLC_FIELD_CHECKPOINT,
                              "the options that affect the result need more than the %d bytes that "
                              "a checkpoint reserves for them: run without a checkpoint",
                              SLC_CP_IDENTITY_BYTES);
    }
    return SLC_OK;
}

/* Returns the value of the line that begins with the first `length` bytes of `name`, or NULL if
 * there is no such line. */
static const char *value_of(const char *text, const char *name, size_t length)
{
    for (const char *line = text; *line != '\0';) {
        const char *end = strchr(line, '\n');

        if (strncmp(line, name, length) == 0 && line[length] == '=') {
            return line + length + 1;
        }
        line = end != NULL ? end + 1 : line + strlen(line);
    }
    return NULL;
}

enum slc_status cp_identity_compare(const char *ours, const char *theirs, struct slc_error *err)
{
    for (const char *line = ours; *line != '\0'; line = strchr(line, '\n') + 1) {
        const size_t name = strcspn(line, "=");
        const char *our_value = line + name + 1;
        const size_t our_length = strcspn(our_value, "\n");
        const char *value = value_of(theirs, line, name);
        const size_t length = value != NULL ? strcspn(value, "\n") : 0;

        if (value == NULL || length != our_length || memcmp(value, our_value, length) != 0) {
            return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_RESTART,
                                  "%.*s is %.*s, but the checkpoint has %.*s: resume with the "
                                  "value of the checkpoint, or start a new run",
                                  (int)name, line, (int)our_length, our_value,
                                  value != NULL ? (int)length : 4, value != NULL ? value : "none");
        }
    }
    /* The loop above does not find lines that only `theirs` has: options that only the run of the
     * checkpoint used. */
    for (const char *line = theirs; *line != '\0'; line += strcspn(line, "\n")) {
        line += *line == '\n';
        const size_t name = strcspn(line, "=\n");

        if (line[name] != '=' || value_of(ours, line, name) != NULL) {
            continue;
        }
        if (strncmp(line, "held out", name) == 0) {
            return slc_fail_fields(err, SLC_ERR_USAGE, SLC_FIELD_HOLDOUT, SLC_FIELD_RESTART,
                                   "no nonzeros are held out, but the run of the checkpoint holds "
                                   "some out: hold out the same part, or start a new run");
        }
        return slc_fail_field(err, SLC_ERR_USAGE, SLC_FIELD_RESTART,
                              "%.*s is not set, but the checkpoint has %.*s: resume with the value "
                              "of the checkpoint, or start a new run",
                              (int)name, line, (int)strcspn(line + name + 1, "\n"),
                              line + name + 1);
    }
    return SLC_OK;
}
