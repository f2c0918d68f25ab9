/* Row sources of predictions that are not text with indices: the nonzeros of a store, and the rows
 * of a table. */
#ifndef SLC_ENGINE_PREDICT_SOURCE_H
#define SLC_ENGINE_PREDICT_SOURCE_H

#include "convert/ingest/csv/csv.h"
#include "convert/ingest/input/row_source.h"
#include "storage/manifest/store.h"

/* Opens the nonzeros of a store as a row source, in the order of the `blco` layout, with indices of
 * the input from 0. Fills in the header. Memory: slc_store_source_bytes. Ownership: release with
 * slc_row_source_close, before the store is closed. Errors: those of slc_store_labels and of
 * opening the block file; SLC_ERR_MEMORY. */
enum slc_status slc_store_source_open(const struct slc_store *store,
                                      struct slc_text_header *header,
                                      struct slc_row_source **source,
                                      struct slc_error *err) SLC_NODISCARD;
uint64_t slc_store_source_bytes(const struct slc_store *store);

/* How the table of a prediction is read. */
struct slc_predict_table {
    struct slc_csv_spec spec;
    struct slc_csv_old old; /* the store whose names number the strings of the table */
    bool scaled;            /* the model is of transformed values, so values are not compared */
    uint64_t memory_bytes;  /* memory for dictionaries and for reading */
};

/* Prepares to read a table with the columns that the store of the model records. `columns` and
 * `value` replace the recorded names of columns, or are NULL; "" as `value`: the table has no
 * values. `store` and `manifest` are borrowed. Errors: SLC_ERR_INPUT if the store has no recorded
 * columns and `columns` is NULL; SLC_ERR_USAGE if the rules of `columns` differ from the recorded
 * ones; those of slc_csv_spec_parse. */
enum slc_status slc_predict_table_set(struct slc_predict_table *table,
                                      const char *store,
                                      const struct slc_manifest *manifest,
                                      const char *columns,
                                      const char *value,
                                      struct slc_error *err) SLC_NODISCARD;

#endif
