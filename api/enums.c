/* Checks that public and internal enumerations have equal values, because api/ converts between
 * public and internal values by casts. Internal enumerations exist because the layers below api/ do
 * not include include/sluice/. */
#include "api/call.h"
#include "base/error/log.h"
#include "convert/build/builder.h"
#include "convert/generate/generate.h"
#include "convert/ingest/convert.h"
#include "engine/product/predict/predict.h"
#include "engine/product/residuals.h"
#include "engine/session/device_choice.h"
#include "engine/solve/cp.h"
#include "sluice/experimental.h"
#include "storage/io/io.h"
#include "storage/model/model.h"
#include "sweep/sweep_compare.h"

#define EQUAL(public_name, internal_name)                                                          \
    _Static_assert((int)(public_name) == (int)(internal_name), #public_name)
#define SAME(name) EQUAL(SLUICE_##name, SLC_##name)
#define SAME2(a, b)                                                                                \
    SAME(a);                                                                                       \
    SAME(b)
#define SAME3(a, b, c)                                                                             \
    SAME(a);                                                                                       \
    SAME2(b, c)
#define SAME4(a, b, c, d)                                                                          \
    SAME2(a, b);                                                                                   \
    SAME2(c, d)

SAME4(OK, ERR_USAGE, ERR_INPUT, ERR_FORMAT);
SAME4(ERR_UNSUPPORTED, ERR_BUDGET, ERR_IO, ERR_NOSPACE);
SAME3(ERR_DAMAGED, ERR_MEMORY, ERR_SYSTEM);
SAME3(ERR_NUMERIC, ERR_INTERRUPTED, ERR_TIME_LIMIT);
SAME3(LOG_WARNING, LOG_NOTE, LOG_DETAIL);
SAME3(MAX_ORDER, F32, F64);
SAME3(CODEC_PACKED, CODEC_LZ4, CODEC_BLCO);
SAME3(VALUE_AUTO, VALUE_F32, VALUE_F64);
SAME4(DUPLICATES_SUM, DUPLICATES_ERROR, DUPLICATES_KEEP_FIRST, DUPLICATES_KEEP_LAST);
SAME3(DUPLICATES_MEAN, DUPLICATES_MIN, DUPLICATES_MAX);
SAME2(FIBERS_AUTO, FIBERS_NONE);
EQUAL(SLUICE_FIBERS_MODE, SLC_FIBERS_GIVEN);
SAME4(DIALECT_AUTO, DIALECT_TNS, DIALECT_PARTI, DIALECT_FROSTT_EXT);
SAME4(DIALECT_GENTEN, DIALECT_TENSORTOOLBOX, DIALECT_TACO, DIALECT_MATRIXMARKET);
SAME4(DIALECT_SPLATT_BIN, DIALECT_GENTEN_BIN, DIALECT_ALTO_BIN, DIALECT_NPZ);
SAME3(DIALECT_NPY, DIALECT_NPY_ROWS, DIALECT_NPY_COLUMNS);
SAME3(DIALECT_NPY_DENSE, DIALECT_TENSOR, DIALECT_CSV);
EQUAL(SLUICE_MISSING_ERROR, SLC_CSV_MISSING_ERROR);
EQUAL(SLUICE_MISSING_SKIP, SLC_CSV_MISSING_SKIP);
EQUAL(SLUICE_MISSING_NAME, SLC_CSV_MISSING_NAME);
SAME3(LAYOUT_BLCO, LAYOUT_SORTED, LAYOUT_FIBER);
SAME3(DIST_UNIFORM, DIST_ZIPF, DIST_ZIPF_SHUFFLED);
SAME2(DIST_BEST, DIST_WORST);
SAME3(DIST_DENSE_FIBERS, DIST_DENSE_SLICES, DIST_FIBERS);
SAME4(IO_AUTO, IO_URING, IO_PREAD, IO_MMAP);
SAME3(SCHEDULE_AUTO, SCHEDULE_LARGEST, SCHEDULE_FILE);
SAME3(PIN_AUTO, PIN_NEVER, PIN_ALWAYS);
SAME3(COPIES_AUTO, COPIES_NEVER, COPIES_ALWAYS);
SAME3(LAYOUTS_AUTO, LAYOUTS_BLCO, LAYOUTS_SORTED);
SAME3(PASSES_AUTO, PASSES_PLAIN, PASSES_FUSED);
SAME3(DEVICE_CPU, DEVICE_AUTO, DEVICE_GPU);
EQUAL(SLUICE_MAX_DEVICES, SLC_DEVICE_NUMBERS_MAX);
SAME4(RESIDUAL_ABSOLUTE, RESIDUAL_RELATIVE, RESIDUAL_ABOVE, RESIDUAL_BELOW);
EQUAL(SLUICE_MAX_QUANTILES, SLC_QUANTILES_MAX);
SAME3(STOP_TOLERANCE, STOP_ITERATIONS, STOP_TIME);
EQUAL(SLUICE_STOP_REQUEST, SLC_STOP_SIGNAL);
EQUAL(SLUICE_STOP_HOLDOUT, SLC_STOP_HOLDOUT);
EQUAL(SLUICE_METHOD_NEWTON, SLC_CP_NEWTON);
EQUAL(SLUICE_LOSS_HUBER, SLC_LOSS_HUBER);
EQUAL(SLUICE_UNLISTED_UNKNOWN, SLC_UNLISTED_UNKNOWN);
EQUAL(SLUICE_BIASES_ALL, SLC_BIASES_ALL);
SAME3(CONSISTENCY_AUTO, CONSISTENCY_ALWAYS, CONSISTENCY_NEVER);

/* Public values are one more than the internal values, because there is no internal
 * SLUICE_MODEL_AUTO. */
EQUAL(SLUICE_MODEL_NPY, SLC_MODEL_NPY + 1);
EQUAL(SLUICE_MODEL_SPLATT, SLC_MODEL_SPLATT + 1);
EQUAL(SLUICE_MODEL_KTENSOR, SLC_MODEL_KTENSOR + 1);
EQUAL(SLUICE_MODEL_CSV, SLC_MODEL_CSV + 1);
EQUAL(SLUICE_MODEL_MATLAB, SLC_MODEL_MATLAB + 1);
/* Public values are one less than the internal values, because there is no public
 * SLC_PREDICT_NONE. */
EQUAL(SLUICE_PREDICT_TEXT + 1, SLC_PREDICT_TEXT);
EQUAL(SLUICE_PREDICT_CSV + 1, SLC_PREDICT_CSV);
EQUAL(SLUICE_PREDICT_NPY + 1, SLC_PREDICT_NPY);
