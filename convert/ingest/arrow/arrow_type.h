/* Types of Arrow columns. */
#ifndef SLC_CONVERT_ARROW_TYPE_H
#define SLC_CONVERT_ARROW_TYPE_H

#include "base/error/error.h"
#include "convert/ingest/arrow/arrow_zone.h"
#include "sluice/arrow.h"

#include <stdbool.h>
#include <stdint.h>

enum slc_arrow_kind {
    SLC_ARROW_NULL,
    SLC_ARROW_BOOL,
    SLC_ARROW_SIGNED,
    SLC_ARROW_UNSIGNED,
    SLC_ARROW_FLOAT,
    SLC_ARROW_DECIMAL,
    SLC_ARROW_DATE,      /* date in days or milliseconds */
    SLC_ARROW_TIME,      /* time of the day */
    SLC_ARROW_TIMESTAMP, /* time since 1970-01-01, in UTC if there is a zone */
    SLC_ARROW_STRING,    /* strings and binary, with offsets */
    SLC_ARROW_VIEW,      /* strings and binary, as views */
    SLC_ARROW_FIXED      /* binary of one length */
};

enum { SLC_ARROW_WIDTH_MAX = 1 << 20 };

struct slc_arrow_type {
    enum slc_arrow_kind kind;
    uint32_t width;   /* bytes per element, or per offset for strings; 0 for nulls and booleans */
    int32_t scale;    /* digits after the point: of decimals, and of seconds for times */
    bool has_zone;    /* TIMESTAMP: true if the type has a zone */
    const char *zone; /* TIMESTAMP: name of the zone; borrowed from the schema */
};

/* Parses the format of a column. Errors: SLC_ERR_INPUT for a type that a table cannot have, or an
 * invalid format. */
enum slc_status slc_arrow_type_parse(const char *format,
                                     struct slc_arrow_type *type,
                                     struct slc_error *err) SLC_NODISCARD;

/* Rejects extension types whose stored elements mean something else. `metadata` is that of the
 * column's schema, or NULL. Errors: SLC_ERR_INPUT. */
enum slc_status slc_arrow_type_check_extension(const char *metadata,
                                               struct slc_error *err) SLC_NODISCARD;

#endif
