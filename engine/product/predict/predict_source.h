/* Row sources of predictions that are not text with indices: the nonzeros of a store, and the rows
 * of a table. */
#ifndef SLC_ENGINE_PREDICT_SOURCE_H
#define SLC_ENGINE_PREDICT_SOURCE_H

#include "convert/ingest/csv/csv.h"
#include "convert/ingest/input/row_source.h"
#include "engine/product/predict/predict.h"
#include "storage/manifest/store.h"
#include "storage/model/run_folder.h"
#include "storage/model/run_names.h"

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
    struct slc_csv_old old; /* the store whose names determine the indices of strings */
    /* true: the values of the table are not compared, because the model is of transformed values */
    bool scaled;
    uint64_t memory_bytes; /* memory for dictionaries and for reading */
};

/* Coordinates that are not text with indices: the nonzeros of a store, or a table with the columns
 * and names of a store. */
struct slc_predict_coords {
    struct slc_store store; /* open if the coordinates are a store */
    bool store_open;
    struct slc_manifest manifest; /* manifest of the store of the model, if there is a table */
    char *store_path;             /* path of the model's store */
    struct slc_predict_table table;
    struct slc_run_names names;
};

struct slc_predict_coords_options {
    const char *store; /* the store of the model; NULL: the store that run.json records */
    /* If the columns of the table have other names than the store of the model records: the names
     * in the table, with the same rules as in the store, and the name of the value column. NULL:
     * the names that the store records; "" as `value`: the table has no values. If one of them is
     * not NULL, the input is read as a table. */
    const char *columns, *value;
    /* words, separated by commas, that are read as empty fields of a table; NULL: the recorded
     * words */
    const char *null;
    uint64_t memory_bytes; /* memory to open a store */
};

/* Opens the input of a prediction if it is a store. If the input is a table, opens the names of the
 * model's store. The input is a table if its name ends like that of a table, or if the options name
 * columns. Sets the members store, table and names of `predict`; they stay NULL for text with
 * indices. The caller sets table.memory_bytes. Logs a note if the values of a table are not
 * compared. Needs: `coords` is all zero. Ownership: after slc_predict or an error, release with
 * slc_predict_coords_close. Errors: SLC_ERR_INPUT if the store of the model is unknown, if neither
 * this store nor the options name the columns, or if the modes of a store differ from those of the
 * run; SLC_ERR_USAGE if the rules of the columns differ from the recorded ones, and for null words
 * without a table; those of opening stores and of slc_csv_spec_parse. */
enum slc_status slc_predict_coords_open(struct slc_predict_coords *coords,
                                        const struct slc_predict_coords_options *options,
                                        const struct slc_run_folder *run,
                                        struct slc_predict_options *predict,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_predict_coords_close(struct slc_predict_coords *coords);

/* Least memory for reading a table. */
#define SLC_PREDICT_TABLE_BYTES (UINT64_C(16) << 20)
/* Returns the memory of the open names, for reading a store, and SLC_PREDICT_TABLE_BYTES for a
 * table. */
uint64_t slc_predict_coords_bytes(const struct slc_predict_coords *coords);

#endif
