/* What reading a table takes, and what its names take in the store, by a sample of it. */
#ifndef SLC_CONVERT_CSV_FORECAST_H
#define SLC_CONVERT_CSV_FORECAST_H

#include "convert/ingest/csv/csv_sample.h"

#include <stdint.h>

struct slc_csv_forecast {
    /* Memory while it is read, beside the process; as expected, and of the most strings. */
    uint64_t memory_bytes, memory_most_bytes;
    uint64_t spool_bytes, spool_most_bytes; /* of temporary files */
    uint64_t read_bytes;                    /* of these, when all is read */
    uint64_t names_bytes, names_most_bytes; /* of the store */
    uint64_t memory_later;                  /* as struct slc_csv_report's memory_bytes */
    /* What the tables of dictionaries take at their last growth, and what there is for them. */
    uint64_t room_bytes, tables_bytes, tables_most_bytes;
    uint64_t enough_bytes; /* of request->memory_bytes, for the most strings */
    double seconds;        /* of all workers at once */
};

/* Of the table that `request` asks for; no errors. */
void slc_csv_forecast(const struct slc_csv_request *request,
                      const struct slc_csv_sample *sample,
                      struct slc_csv_forecast *forecast);

#endif
