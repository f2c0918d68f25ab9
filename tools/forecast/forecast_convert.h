/* The dry run of sluice convert, and of sluice append, which converts as well. */
#ifndef SLC_TOOLS_FORECAST_CONVERT_H
#define SLC_TOOLS_FORECAST_CONVERT_H

#include "convert/ingest/convert.h"
#include "tools/forecast/forecast_ahead.h"

/*
 * Tells what was learnt of the input and what the conversion would take. Errors: those of its
 * beginning; SLC_ERR_BUDGET where the disk has no room, when all has been told.
 */
enum slc_status forecast_convert(const struct forecast_options *options,
                                 const struct slc_convert_options *convert,
                                 struct slc_error *err) SLC_NODISCARD;

/* The same of a run that begins. Nothing is known of standard input. */
void forecast_convert_ahead(const struct slc_convert_options *convert,
                            bool quiet,
                            struct forecast_ahead *ahead);

#endif
