/* The dry run of sluice convert and sluice append. */
#ifndef SLC_TOOLS_FORECAST_CONVERT_H
#define SLC_TOOLS_FORECAST_CONVERT_H

#include "convert/ingest/convert.h"
#include "tools/forecast/forecast_ahead.h"

/* Prints the properties of the input and the forecast of the conversion. Errors: those of the
 * input; SLC_ERR_BUDGET if the disk space does not suffice; the report has been printed in that
 * case. */
enum slc_status forecast_convert(const struct forecast_options *options,
                                 const struct slc_convert_options *convert,
                                 struct slc_error *err) SLC_NODISCARD;

/* Makes the forecast for a run that starts. Makes no forecast for standard input. */
void forecast_convert_ahead(const struct slc_convert_options *convert,
                            bool quiet,
                            struct forecast_ahead *ahead);

#endif
