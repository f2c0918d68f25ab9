/*
 * Versioned structs of the public API, and their defaults.
 *
 * Every options and report struct starts with its size as the program was compiled. Structs only
 * grow at the end, so the common part of two versions is the shorter one's bytes.
 */
#include "api/internal.h"
#include "base/error/log.h"
#include "base/memory/memory.h"
#include "base/thread/team.h"
#include "convert/build/builder.h"
#include "convert/build/sort/fibers.h"
#include "convert/generate/generate.h"
#include "convert/ingest/convert.h"
#include "engine/product/predict.h"
#include "engine/session/device_choice.h"
#include "engine/solve/cp_als.h"
#include "storage/io/io.h"
#include "storage/model/model.h"
#include "sweep/sweep_compare.h"

#include <inttypes.h>
#include <string.h>

/* The public enumerations are the internal ones under another name. */
#define SAME(public_name, internal_name)                                                           \
    _Static_assert((int)(public_name) == (int)(internal_name), #public_name)
SAME(SLUICE_MAX_ORDER, SLC_MAX_ORDER);
SAME(SLUICE_F32, SLC_F32);
SAME(SLUICE_F64, SLC_F64);
SAME(SLUICE_IO_AUTO, SLC_IO_AUTO);
SAME(SLUICE_IO_URING, SLC_IO_URING);
SAME(SLUICE_IO_PREAD, SLC_IO_PREAD);
SAME(SLUICE_IO_MMAP, SLC_IO_MMAP);
SAME(SLUICE_SCHEDULE_AUTO, SLC_SCHEDULE_AUTO);
SAME(SLUICE_SCHEDULE_LARGEST, SLC_SCHEDULE_LARGEST);
SAME(SLUICE_SCHEDULE_FILE, SLC_SCHEDULE_FILE);
SAME(SLUICE_CODEC_PACKED, SLC_CODEC_PACKED);
SAME(SLUICE_CODEC_LZ4, SLC_CODEC_LZ4);
SAME(SLUICE_CODEC_BLCO, SLC_CODEC_BLCO);
SAME(SLUICE_VALUE_AUTO, SLC_VALUE_AUTO);
SAME(SLUICE_VALUE_F32, SLC_VALUE_F32);
SAME(SLUICE_VALUE_F64, SLC_VALUE_F64);
SAME(SLUICE_DUPLICATES_SUM, SLC_DUPLICATES_SUM);
SAME(SLUICE_DUPLICATES_ERROR, SLC_DUPLICATES_ERROR);
SAME(SLUICE_DUPLICATES_KEEP_FIRST, SLC_DUPLICATES_KEEP_FIRST);
SAME(SLUICE_DUPLICATES_KEEP_LAST, SLC_DUPLICATES_KEEP_LAST);
SAME(SLUICE_RELABEL_NONE, SLC_RELABEL_NONE);
SAME(SLUICE_RELABEL_FREQUENCY, SLC_RELABEL_FREQUENCY);
SAME(SLUICE_DIALECT_AUTO, SLC_DIALECT_AUTO);
SAME(SLUICE_DIALECT_TNS, SLC_DIALECT_TNS);
SAME(SLUICE_DIALECT_PARTI, SLC_DIALECT_PARTI);
SAME(SLUICE_DIALECT_FROSTT_EXT, SLC_DIALECT_FROSTT_EXT);
SAME(SLUICE_DIALECT_GENTEN, SLC_DIALECT_GENTEN);
SAME(SLUICE_DIALECT_TENSORTOOLBOX, SLC_DIALECT_TENSORTOOLBOX);
SAME(SLUICE_DIALECT_TACO, SLC_DIALECT_TACO);
SAME(SLUICE_DIALECT_MATRIXMARKET, SLC_DIALECT_MATRIXMARKET);
SAME(SLUICE_DIALECT_SPLATT_BIN, SLC_DIALECT_SPLATT_BIN);
SAME(SLUICE_DIALECT_ALTO_BIN, SLC_DIALECT_ALTO_BIN);
SAME(SLUICE_DIALECT_NPZ, SLC_DIALECT_NPZ);
SAME(SLUICE_DIALECT_NPY, SLC_DIALECT_NPY);
SAME(SLUICE_DIALECT_NPY_COLUMNS, SLC_DIALECT_NPY_COLUMNS);
SAME(SLUICE_DIALECT_CSV, SLC_DIALECT_CSV);
SAME(SLUICE_MISSING_ERROR, SLC_CSV_MISSING_ERROR);
SAME(SLUICE_MISSING_SKIP, SLC_CSV_MISSING_SKIP);
SAME(SLUICE_MISSING_NAME, SLC_CSV_MISSING_NAME);
SAME(SLUICE_LAYOUT_BLCO, SLC_LAYOUT_BLCO);
SAME(SLUICE_LAYOUT_SORTED, SLC_LAYOUT_SORTED);
SAME(SLUICE_LAYOUT_FIBER, SLC_LAYOUT_FIBER);
SAME(SLUICE_LOG_WARNING, SLC_LOG_WARNING);
SAME(SLUICE_LOG_NOTE, SLC_LOG_NOTE);
SAME(SLUICE_LOG_DETAIL, SLC_LOG_DETAIL);
SAME(SLUICE_DIST_UNIFORM, SLC_DIST_UNIFORM);
SAME(SLUICE_DIST_ZIPF, SLC_DIST_ZIPF);
SAME(SLUICE_DIST_ZIPF_SHUFFLED, SLC_DIST_ZIPF_SHUFFLED);
SAME(SLUICE_MODEL_NPY, SLC_MODEL_NPY);
SAME(SLUICE_MODEL_SPLATT, SLC_MODEL_SPLATT);
SAME(SLUICE_MODEL_KTENSOR, SLC_MODEL_KTENSOR);
SAME(SLUICE_CONSISTENCY_AUTO, SLC_CONSISTENCY_AUTO);
SAME(SLUICE_CONSISTENCY_ALWAYS, SLC_CONSISTENCY_ALWAYS);
SAME(SLUICE_CONSISTENCY_NEVER, SLC_CONSISTENCY_NEVER);
SAME(SLUICE_PREDICT_NONE, SLC_PREDICT_NONE);
SAME(SLUICE_PREDICT_TEXT, SLC_PREDICT_TEXT);
SAME(SLUICE_PREDICT_CSV, SLC_PREDICT_CSV);
SAME(SLUICE_PREDICT_NPY, SLC_PREDICT_NPY);
SAME(SLUICE_COPIES_AUTO, SLC_COPIES_AUTO);
SAME(SLUICE_COPIES_NEVER, SLC_COPIES_NEVER);
SAME(SLUICE_COPIES_ALWAYS, SLC_COPIES_ALWAYS);
SAME(SLUICE_PASSES_AUTO, SLC_PASSES_AUTO);
SAME(SLUICE_PASSES_PLAIN, SLC_PASSES_PLAIN);
SAME(SLUICE_PASSES_FUSED, SLC_PASSES_FUSED);
SAME(SLUICE_PIN_AUTO, SLC_PIN_AUTO);
SAME(SLUICE_PIN_NEVER, SLC_PIN_NEVER);
SAME(SLUICE_PIN_ALWAYS, SLC_PIN_ALWAYS);
SAME(SLUICE_DEVICE_CPU, SLC_DEVICE_CPU);
SAME(SLUICE_DEVICE_AUTO, SLC_DEVICE_AUTO);
SAME(SLUICE_DEVICE_GPU, SLC_DEVICE_GPU);
SAME(SLUICE_MAX_DEVICES, SLC_DEVICE_NUMBERS_MAX);
SAME(SLUICE_STOP_TOLERANCE, SLC_STOP_TOLERANCE);
SAME(SLUICE_STOP_ITERATIONS, SLC_STOP_ITERATIONS);
SAME(SLUICE_STOP_TIME, SLC_STOP_TIME);
SAME(SLUICE_STOP_SIGNAL, SLC_STOP_SIGNAL);

/* struct_bytes, the first member of every versioned struct. */
static uint64_t struct_bytes(const void *versioned)
{
    uint64_t bytes;

    memcpy(&bytes, versioned, sizeof bytes);
    return bytes;
}

static enum slc_status check_size(uint64_t bytes, const char *name, struct slc_error *err)
{
    /* No struct will outgrow a page; what does was never initialized. */
    if (bytes < sizeof bytes || bytes > 4096) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "struct %s says that it has %" PRIu64
                        " bytes; set struct_bytes, by its init function where it has one",
                        name, bytes);
    }
    return SLC_OK;
}

enum slc_status api_take_options(
    void *known, size_t known_bytes, const void *given, const char *name, struct slc_error *err)
{
    enum slc_status status;
    uint64_t bytes;

    if (given == NULL) {
        return SLC_OK;
    }
    bytes = struct_bytes(given);
    status = check_size(bytes, name, err);
    if (status != SLC_OK) {
        return status;
    }
    for (size_t i = known_bytes; i < bytes; i++) {
        if (((const uint8_t *)given)[i] != 0) {
            return slc_fail(err, SLC_ERR_UNSUPPORTED,
                            "struct %s comes from a newer version and uses an option that this "
                            "library (%s) does not know",
                            name, SLC_VERSION);
        }
    }
    memcpy(known, given, bytes < known_bytes ? (size_t)bytes : known_bytes);
    return SLC_OK;
}

enum slc_status api_check_report(const void *given, const char *name, struct slc_error *err)
{
    return given != NULL ? check_size(struct_bytes(given), name, err) : SLC_OK;
}

enum slc_status api_need_path(const char *path, const char *name, struct slc_error *err)
{
    return path != NULL ? SLC_OK : slc_fail(err, SLC_ERR_USAGE, "%s is NULL: name a file", name);
}

enum slc_status
api_check_form(enum sluice_codec codec, enum sluice_relabel relabel, struct slc_error *err)
{
    if ((unsigned)codec < SLUICE_CODEC_PACKED || (unsigned)codec > SLUICE_CODEC_BLCO ||
        (unsigned)relabel > SLUICE_RELABEL_FREQUENCY) {
        return slc_fail(err, SLC_ERR_USAGE, "codec %d or relabel %d is not one of the enumerations",
                        (int)codec, (int)relabel);
    }
    return SLC_OK;
}

enum slc_status api_give_report(
    void *given, const void *known, size_t known_bytes, const char *name, struct slc_error *err)
{
    const uint64_t bytes = struct_bytes(given);
    const size_t common = bytes < known_bytes ? (size_t)bytes : known_bytes;
    enum slc_status status;

    status = check_size(bytes, name, err);
    if (status != SLC_OK) {
        return status;
    }
    memcpy((uint8_t *)given + sizeof bytes, (const uint8_t *)known + sizeof bytes,
           common - sizeof bytes);
    return SLC_OK;
}

void api_init_options(void *options, uint64_t bytes, const void *defaults, size_t default_bytes)
{
    memset(options, 0, (size_t)bytes);
    memcpy(options, defaults, bytes < default_bytes ? (size_t)bytes : default_bytes);
    if (bytes >= sizeof bytes) {
        memcpy(options, &bytes, sizeof bytes);
    }
}

enum slc_status api_take_fibers(enum sluice_fibers fibers,
                                uint32_t mode,
                                uint32_t bits,
                                enum slc_fibers *choice,
                                struct slc_fiber_run *run,
                                struct slc_error *err)
{
    if ((unsigned)fibers > SLUICE_FIBERS_MODE || bits > SLC_FIBER_BITS_MAX ||
        (fibers == SLUICE_FIBERS_MODE && mode >= SLC_MAX_ORDER)) {
        return slc_fail(err, SLC_ERR_USAGE,
                        "fibers %d of mode %u in pieces of 2^%u indices: one of the enumeration, a "
                        "mode below %d and at most %d bits are possible",
                        (int)fibers, mode, bits, SLC_MAX_ORDER, SLC_FIBER_BITS_MAX);
    }
    *choice = (enum slc_fibers)fibers;
    if (fibers == SLUICE_FIBERS_MODE) {
        *run = (struct slc_fiber_run){mode, bits != 0 ? bits : SLC_FIBER_BITS};
    }
    return SLC_OK;
}

void api_tell_blocks(void *blocks, uint64_t done, uint64_t total, uint64_t bytes_read)
{
    const struct api_blocks *to = blocks;

    (void)bytes_read;
    to->progress(to->context, to->phase, done, total);
}

const char *sluice_field_name(enum slc_error_field field)
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
        [SLC_FIELD_DEVICES] = "devices",
        [SLC_FIELD_DEVICE_MEMORY] = "device_memory_bytes",
        [SLC_FIELD_DEVICE_NAME] = "device_name",
        [SLC_FIELD_STREAMS] = "streams",
        [SLC_FIELD_SPLIT] = "split",
        [SLC_FIELD_CHECKPOINT] = "checkpoint_folder",
        [SLC_FIELD_HOLDOUT] = "holdout",
        [SLC_FIELD_HOLDOUT_SEED] = "holdout_seed",
        [SLC_FIELD_RANKS] = "ranks",
        [SLC_FIELD_SEED] = "seed",
        [SLC_FIELD_SWEEP_FOLDER] = "folder",
        [SLC_FIELD_SORTED_LAYOUT] = "sluice_layout_add",
        [SLC_FIELD_FIBER_LAYOUT] = "sluice_layout_add",
        [SLC_FIELD_GATHER_LAYOUT] = "sluice_layout_gather",
    };

    return (unsigned)field < sizeof names / sizeof names[0] && names[field] != NULL ? names[field]
                                                                                    : "";
}

uint64_t api_memory_bytes(uint64_t bytes)
{
    return bytes != 0 ? bytes : slc_memory_total() / 5 * 4;
}

unsigned api_threads(uint32_t threads)
{
    return threads != 0 ? threads : slc_team_default_workers();
}

void sluice_compute_options_init(struct sluice_compute_options *options, uint64_t bytes)
{
    static const struct sluice_compute_options defaults = {
        .struct_bytes = sizeof defaults, .precision = SLUICE_F64, .io = SLUICE_IO_AUTO};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_cpd_options_init(struct sluice_cpd_options *options, uint64_t bytes)
{
    static const struct sluice_cpd_options defaults = {.struct_bytes = sizeof defaults,
                                                       .iterations = 50,
                                                       .tolerance = 1e-5,
                                                       .checkpoint_seconds = -1};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_ttv_options_init(struct sluice_ttv_options *options, uint64_t bytes)
{
    static const struct sluice_ttv_options defaults = {.struct_bytes = sizeof defaults,
                                                       .codec = SLUICE_CODEC_PACKED};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_ttm_options_init(struct sluice_ttm_options *options, uint64_t bytes)
{
    static const struct sluice_ttm_options defaults = {.struct_bytes = sizeof defaults};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_convert_options_init(struct sluice_convert_options *options, uint64_t bytes)
{
    static const struct sluice_convert_options defaults = {
        .struct_bytes = sizeof defaults, .index_base = -1, .codec = SLUICE_CODEC_PACKED};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_generate_options_init(struct sluice_generate_options *options, uint64_t bytes)
{
    static const struct sluice_generate_options defaults = {
        .struct_bytes = sizeof defaults, .codec = SLUICE_CODEC_PACKED, .zipf_exponent = 1.0};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_check_options_init(struct sluice_check_options *options, uint64_t bytes)
{
    static const struct sluice_check_options defaults = {.struct_bytes = sizeof defaults};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_export_options_init(struct sluice_export_options *options, uint64_t bytes)
{
    static const struct sluice_export_options defaults = {.struct_bytes = sizeof defaults,
                                                          .index_base = 1};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_predict_options_init(struct sluice_predict_options *options, uint64_t bytes)
{
    static const struct sluice_predict_options defaults = {
        .struct_bytes = sizeof defaults, .index_base = -1, .form = SLUICE_PREDICT_TEXT};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_top_options_init(struct sluice_top_options *options, uint64_t bytes)
{
    static const struct sluice_top_options defaults = {.struct_bytes = sizeof defaults, .rows = 10};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_report_options_init(struct sluice_report_options *options, uint64_t bytes)
{
    static const struct sluice_report_options defaults = {
        .struct_bytes = sizeof defaults, .components = 64, .rows = 10};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}

void sluice_sweep_options_init(struct sluice_sweep_options *options, uint64_t bytes)
{
    static const struct sluice_sweep_options defaults = {.struct_bytes = sizeof defaults,
                                                         .runs = 1};

    api_init_options(options, bytes, &defaults, sizeof defaults);
}
