/* Maps the fields of errors to the options of the command. */
#include "tools/options/fields.h"

#include "base/text/plain_text.h"

#include <stddef.h>

/* Returns the option, such as "--memory", or the command that resolves the error; "" for
 * SLC_FIELD_NONE. */
static const char *option_of_field(enum slc_error_field field)
{
    static const char *const names[] = {
        [SLC_FIELD_MEMORY] = "--memory",
        [SLC_FIELD_THREADS] = "-t",
        [SLC_FIELD_OVERWRITE] = "--overwrite",
        [SLC_FIELD_RESTART] = "--restart",
        [SLC_FIELD_MAX_TEMP] = "--max-temp",
        [SLC_FIELD_DUPLICATES] = "--duplicates",
        [SLC_FIELD_INDEX_BASE] = "--index-base",
        [SLC_FIELD_DIMS] = "--dims",
        [SLC_FIELD_NNZ] = "--nnz",
        [SLC_FIELD_VALUE] = "--value",
        [SLC_FIELD_VALUE_COLUMN] = "--value",
        [SLC_FIELD_TRANSFORM] = "--transform",
        [SLC_FIELD_COLUMNS] = "--columns",
        [SLC_FIELD_DELIMITER] = "--delimiter",
        [SLC_FIELD_MISSING] = "--missing",
        [SLC_FIELD_NULL] = "--null",
        [SLC_FIELD_DIALECT] = "--format",
        [SLC_FIELD_FORM] = "--format",
        [SLC_FIELD_FIXED_MODES] = "--grow-modes",
        [SLC_FIELD_IO] = "--io",
        [SLC_FIELD_SLOTS] = "--slots",
        [SLC_FIELD_LAYOUTS] = "--layouts",
        [SLC_FIELD_COPIES] = "--copies",
        [SLC_FIELD_PASSES] = "--passes",
        [SLC_FIELD_DETERMINISTIC] = "--deterministic",
        [SLC_FIELD_DEVICE] = "--device",
        [SLC_FIELD_DEVICES] = "--devices",
        [SLC_FIELD_DEVICE_MEMORY] = "--device-memory",
        [SLC_FIELD_DEVICE_NAME] = "--device-name",
        [SLC_FIELD_STREAMS] = "--streams",
        [SLC_FIELD_SPLIT] = "--split",
        [SLC_FIELD_CHECKPOINT] = "--checkpoint DIR or none",
        [SLC_FIELD_HOLDOUT] = "--holdout",
        [SLC_FIELD_HOLDOUT_SEED] = "--holdout-seed",
        [SLC_FIELD_RANKS] = "--rank",
        [SLC_FIELD_SEED] = "--seed",
        [SLC_FIELD_SWEEP_FOLDER] = "-o",
        [SLC_FIELD_SORTED_LAYOUT] = "sluice layout --sorted",
        [SLC_FIELD_FIBER_LAYOUT] = "sluice layout --fiber",
        [SLC_FIELD_GATHER_LAYOUT] = "sluice layout --gather",
        [SLC_FIELD_VALUES_FILE] = "sluice convert COORDS.npy VALUES.npy OUT.slc",
    };

    return (unsigned)field < sizeof names / sizeof names[0] && names[field] != NULL ? names[field]
                                                                                    : "";
}

const char *fault_text(struct fault_text *text, const struct slc_error *fault)
{
    (void)slc_error_format(fault, option_of_field, text->text, sizeof text->text);
    slc_text_make_plain(text->text);
    return text->text;
}
