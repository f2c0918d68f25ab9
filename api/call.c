/* Converts between public and internal structs: versioned options and reports, runs and faults.
 *
 * A new version of a struct only adds members at its end, so the shorter of two versions is a
 * prefix of the longer one. */
#include "api/call.h"

#include "base/error/log.h"
#include "base/memory/memory.h"
#include "base/text/format.h"
#include "base/thread/team.h"
#include "convert/build/sort/fibers.h"

#include <inttypes.h>
#include <string.h>

const char *api_field_name(enum slc_error_field field)
{
    static const char *const names[] = {
        [SLC_FIELD_MEMORY] = "memory_bytes",
        [SLC_FIELD_THREADS] = "threads",
        [SLC_FIELD_OVERWRITE] = "overwrite",
        [SLC_FIELD_RESTART] = "restart",
        [SLC_FIELD_MAX_TEMP] = "max_temp_bytes",
        [SLC_FIELD_DUPLICATES] = "duplicates",
        [SLC_FIELD_INDEX_BASE] = "index_base",
        [SLC_FIELD_DIMS] = "dims",
        [SLC_FIELD_NNZ] = "nnz",
        [SLC_FIELD_VALUE] = "value",
        [SLC_FIELD_VALUE_COLUMN] = "value_column",
        [SLC_FIELD_TRANSFORM] = "transform",
        [SLC_FIELD_COLUMNS] = "columns",
        [SLC_FIELD_DELIMITER] = "delimiter",
        [SLC_FIELD_MISSING] = "missing",
        [SLC_FIELD_NULL] = "null",
        [SLC_FIELD_DIALECT] = "dialect",
        [SLC_FIELD_FORM] = "form",
        [SLC_FIELD_FIXED_MODES] = "fixed_modes",
        [SLC_FIELD_IO] = "io",
        [SLC_FIELD_SLOTS] = "slots",
        [SLC_FIELD_LAYOUTS] = "layouts",
        [SLC_FIELD_COPIES] = "copies",
        [SLC_FIELD_PASSES] = "passes",
        [SLC_FIELD_DETERMINISTIC] = "deterministic",
        [SLC_FIELD_DEVICE] = "device",
        [SLC_FIELD_DEVICES] = "device->count",
        [SLC_FIELD_DEVICE_MEMORY] = "device->memory_bytes",
        [SLC_FIELD_DEVICE_NAME] = "device->chip",
        [SLC_FIELD_STREAMS] = "device->streams",
        [SLC_FIELD_SPLIT] = "device->split",
        [SLC_FIELD_CHECKPOINT] = "checkpoint_folder",
        [SLC_FIELD_HOLDOUT] = "holdout",
        [SLC_FIELD_HOLDOUT_SEED] = "holdout_seed",
        [SLC_FIELD_RANKS] = "ranks",
        [SLC_FIELD_SEED] = "seed",
        [SLC_FIELD_SWEEP_FOLDER] = "folder",
        [SLC_FIELD_SORTED_LAYOUT] = "sluice_layout_add",
        [SLC_FIELD_FIBER_LAYOUT] = "sluice_layout_add",
        [SLC_FIELD_GATHER_LAYOUT] = "sluice_layout_gather",
        [SLC_FIELD_VALUES_FILE] = "values",
    };

    return (unsigned)field < sizeof names / sizeof names[0] && names[field] != NULL ? names[field]
                                                                                    : "";
}

struct sluice_error api_public_error(const struct slc_error *err)
{
    struct sluice_error known = {.status = (enum sluice_status)err->status,
                                 .system_errno = err->system_errno,
                                 .line = err->line,
                                 .column = err->column,
                                 .block = err->block,
                                 .offset = err->offset,
                                 .field = api_field_name(err->field),
                                 .other_field = api_field_name(err->other_field)};

    memcpy(known.file, err->file, sizeof known.file);
    memcpy(known.message, err->message, sizeof known.message);
    return known;
}

enum sluice_status
api_return(enum slc_status status, const struct slc_error *err, struct sluice_error *ret_err)
{
    if (status != SLC_OK && ret_err != NULL && ret_err->status == SLUICE_OK) {
        *ret_err = api_public_error(err);
    }
    return (enum sluice_status)status;
}

/* Checks and stores struct_bytes, the first member of every versioned struct. */
static enum slc_status
read_size(const void *versioned, const char *name, uint64_t *bytes, struct slc_error *err)
{
    memcpy(bytes, versioned, sizeof *bytes);
    /* No struct will exceed a page, so a larger number means that the member was not set. */
    if (*bytes < sizeof *bytes || *bytes > 4096) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "struct_bytes of struct %s is %" PRIu64
                        ": set the struct to zero, and then struct_bytes to the size of the struct",
                        name, *bytes);
    }
    return SLC_OK;
}

enum slc_status api_read_options(
    void *known, size_t known_bytes, const void *given, const char *name, struct slc_error *err)
{
    uint64_t bytes;

    if (given == NULL) {
        return SLC_OK;
    }
    SLC_TRY(read_size(given, name, &bytes, err));
    for (size_t i = known_bytes; i < bytes; i++) {
        if (((const uint8_t *)given)[i] != 0) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED,
                            "struct %s has an option of a newer version, which this library (%s) "
                            "does not support",
                            name, SLC_VERSION);
        }
    }
    memcpy(known, given, bytes < known_bytes ? (size_t)bytes : known_bytes);
    return SLC_OK;
}

enum slc_status api_check_report(const void *given, const char *name, struct slc_error *err)
{
    uint64_t bytes;

    return given != NULL ? read_size(given, name, &bytes, err) : SLC_OK;
}

enum slc_status api_fill_report(
    void *given, const void *known, size_t known_bytes, const char *name, struct slc_error *err)
{
    uint64_t bytes;

    if (given == NULL) {
        return SLC_OK;
    }
    SLC_TRY(read_size(given, name, &bytes, err));
    memcpy((uint8_t *)given + sizeof bytes, (const uint8_t *)known + sizeof bytes,
           (bytes < known_bytes ? (size_t)bytes : known_bytes) - sizeof bytes);
    return SLC_OK;
}

enum slc_status api_need(const struct api_pointer *pointers, size_t count, struct slc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (pointers[i].pointer == NULL) {
            return slc_fail(err, SLC_ERR_USAGE, "%s is NULL", pointers[i].name);
        }
    }
    return SLC_OK;
}

enum slc_status
api_check_choices(const struct api_choice *choices, size_t count, struct slc_error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (choices[i].value < 0 || choices[i].value > choices[i].last) {
            return slc_fail(err, SLC_ERR_USAGE, "%s %d is not a value of its enumeration",
                            choices[i].name, choices[i].value);
        }
    }
    return SLC_OK;
}

uint64_t api_limit_memory(uint64_t memory_bytes)
{
    const uint64_t machine = memory_bytes > 0 ? slc_memory_machine() : 0;
    struct slc_format_text a, b;

    if (memory_bytes <= machine) {
        return memory_bytes;
    }
    slc_log(SLC_LOG_WARNING,
            "the memory budget of %s is more than the %s of this machine or its "
            "cgroup",
            slc_format_memory(&a, memory_bytes), slc_format_memory(&b, machine));
    return machine;
}

void api_run_init(struct api_run *run, const struct sluice_run_options *options)
{
    run->options = *options;
    run->options.memory_bytes = api_limit_memory(options->memory_bytes);
    run->flag = options->stop != NULL ? options->stop : &run->own;
    run->stop = (struct slc_stop){.flag = NULL};
    /* Internal code reads the flag with __atomic_load_n, so the pointer is copied without
     * _Atomic. */
    memcpy(&run->stop.flag, &run->flag, sizeof run->flag);
}

void api_run_stop(struct api_run *run)
{
    atomic_store(run->flag, 1);
}

uint64_t api_run_memory(const struct api_run *run)
{
    const uint64_t bytes = run->options.memory_bytes;

    return bytes != 0 ? bytes : slc_memory_total() / 5 * 4;
}

unsigned api_run_threads(const struct api_run *run)
{
    return run->options.threads != 0 ? run->options.threads : slc_team_default_workers();
}

static void report_progress(void *context, const char *phase, uint64_t done, uint64_t total)
{
    struct api_run *run = context;
    const struct sluice_progress progress = {.phase = phase, .done = done, .total = total};

    if (run->options.progress(run->options.context, &progress) != 0) {
        api_run_stop(run);
    }
}

static void report_blocks(void *context, uint64_t done, uint64_t total, uint64_t bytes_read)
{
    const struct api_run *run = context;

    (void)bytes_read;
    report_progress(context, run->phase, done, total);
}

api_progress_fn *api_run_progress(const struct api_run *run)
{
    return run->options.progress != NULL ? report_progress : NULL;
}

api_blocks_fn *api_run_blocks(const struct api_run *run)
{
    return run->options.progress != NULL ? report_blocks : NULL;
}

enum slc_status api_check_output(const struct sluice_output_options *output, struct slc_error *err)
{
    SLC_TRY(API_CHECK_CHOICES(err, {"codec", (int)output->codec, SLUICE_CODEC_BLCO},
                              {"relabel", (int)output->relabel, SLUICE_RELABEL_FREQUENCY},
                              {"fibers", (int)output->fibers, SLUICE_FIBERS_MODE}));
    if (output->fiber_bits > SLC_FIBER_BITS_MAX ||
        (output->fibers == SLUICE_FIBERS_MODE && output->fiber_mode >= SLC_MAX_ORDER)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "fiber_mode is %u and fiber_bits is %u: fiber_mode must be less than %d, "
                        "and fiber_bits at most %d",
                        output->fiber_mode, output->fiber_bits, SLC_MAX_ORDER, SLC_FIBER_BITS_MAX);
    }
    return SLC_OK;
}

struct slc_fiber_run api_fiber_run(const struct sluice_output_options *output)
{
    struct slc_fiber_run run = {0};

    if (output->fibers == SLUICE_FIBERS_MODE) {
        run.mode = output->fiber_mode;
        run.bits = output->fiber_bits != 0 ? output->fiber_bits : SLC_FIBER_BITS;
    }
    return run;
}

uint32_t api_relabelled_modes(const struct slc_relabel_report *relabel, unsigned order)
{
    uint32_t modes = 0;

    for (unsigned n = 0; n < order; n++) {
        modes |= relabel->verdict[n] == SLC_RELABELLED ? 1U << n : 0U;
    }
    return modes;
}

enum slc_status
api_parse_transforms(const char *text, struct slc_transforms *transforms, struct slc_error *err)
{
    enum slc_status status = SLC_OK;

    while (text != NULL && status == SLC_OK) {
        char step[64];
        const size_t length = strcspn(text, ",");

        if (length >= sizeof step) {
            return slc_fail(err, SLC_ERR_USAGE, "transform '%s': no step has such a long name",
                            text);
        }
        memcpy(step, text, length);
        step[length] = '\0';
        status = slc_transforms_add(transforms, step, err);
        text = text[length] == ',' ? text + length + 1 : NULL;
    }
    return status;
}
