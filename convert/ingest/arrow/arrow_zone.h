/* Offsets of time zones from UTC, from the zone files of the system ([RFC8536]) or from a fixed
 * offset such as +05:30. */
#ifndef SLC_CONVERT_ARROW_ZONE_H
#define SLC_CONVERT_ARROW_ZONE_H

#include "base/error/error.h"

#include <stddef.h>
#include <stdint.h>

struct slc_arrow_zone;

/* Opens the zone `name`, such as "Europe/Berlin", "UTC" or "-08:00". Ownership: release with
 * slc_arrow_zone_close, which accepts NULL. Errors: SLC_ERR_INPUT if the system has no file of the
 * zone, or if the file is damaged; SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status slc_arrow_zone_open(const char *name,
                                    struct slc_arrow_zone **zone,
                                    struct slc_error *err) SLC_NODISCARD;
void slc_arrow_zone_close(struct slc_arrow_zone *zone);

/* Like slc_arrow_zone_open, but reads the content of a zone file from memory. */
enum slc_status slc_arrow_zone_parse(const void *data,
                                     size_t bytes,
                                     struct slc_arrow_zone **zone,
                                     struct slc_error *err) SLC_NODISCARD;

/* The times from `from` to before `to`, in seconds since 1970, during which `offset` applies. All
 * zero: no times. */
struct slc_arrow_offset {
    int64_t from, to;
    int32_t offset;
};

/* Sets *offset to the offset from UTC, in seconds, at the time `utc`, unless *offset already covers
 * this time. */
void slc_arrow_zone_find(const struct slc_arrow_zone *zone,
                         int64_t utc,
                         struct slc_arrow_offset *offset);

#endif
