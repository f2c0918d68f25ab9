#include "convert/ingest/input/dialect.h"

#include <stddef.h>
#include <string.h>

static const struct {
    enum slc_dialect dialect;
    const char *name;
} dialects[] = {
    {SLC_DIALECT_AUTO, "auto"},
    {SLC_DIALECT_TNS, "tns"},
    {SLC_DIALECT_PARTI, "parti"},
    {SLC_DIALECT_FROSTT_EXT, "frostt-ext"},
    {SLC_DIALECT_GENTEN, "genten"},
    {SLC_DIALECT_TENSORTOOLBOX, "tensortoolbox"},
    {SLC_DIALECT_TACO, "taco"},
    {SLC_DIALECT_MATRIXMARKET, "matrixmarket"},
    {SLC_DIALECT_SPLATT_BIN, "splatt-bin"},
    {SLC_DIALECT_GENTEN_BIN, "genten-bin"},
    {SLC_DIALECT_ALTO_BIN, "alto-bin"},
    {SLC_DIALECT_NPZ, "npz"},
    {SLC_DIALECT_NPY, "npy"},
    {SLC_DIALECT_NPY_ROWS, "npy-rows"},
    {SLC_DIALECT_NPY_COLUMNS, "npy-columns"},
    {SLC_DIALECT_NPY_DENSE, "npy-dense"},
    {SLC_DIALECT_TENSOR, "tensor"},
    {SLC_DIALECT_CSV, "csv"},
};

const char *slc_dialect_name(enum slc_dialect dialect)
{
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        if (dialects[i].dialect == dialect) {
            return dialects[i].name;
        }
    }
    return "unknown";
}

bool slc_dialect_parse(const char *name, enum slc_dialect *dialect)
{
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        if (strcmp(dialects[i].name, name) == 0) {
            *dialect = dialects[i].dialect;
            return true;
        }
    }
    return false;
}

bool slc_dialect_is_binary(enum slc_dialect dialect)
{
    return dialect >= SLC_DIALECT_SPLATT_BIN && dialect <= SLC_DIALECT_NPY_DENSE;
}

unsigned slc_dialect_base(enum slc_dialect dialect)
{
    return dialect == SLC_DIALECT_GENTEN || dialect == SLC_DIALECT_TENSOR ||
                   slc_dialect_is_binary(dialect)
               ? 0
               : 1;
}
