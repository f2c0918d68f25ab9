/*
 * State of a conversion, shared by convert.c (control flow), convert_open.c (inputs), convert_csv.c
 * (tables), convert_append.c (the old store), convert_sample.c (estimates from a sample) and
 * convert_resume.c (state of an interrupted run).
 */
#ifndef SLC_CONVERT_CONVERT_INTERNAL_H
#define SLC_CONVERT_CONVERT_INTERNAL_H

#include "convert/ingest/convert.h"
#include "convert/ingest/convert_parse.h"

struct slc_appending;
struct slc_csv;
struct slc_csv_old;
struct slc_csv_request;
struct slc_csv_sample;

struct slc_conversion {
    const struct slc_convert_options *options;
    struct slc_convert_report *report;
    struct slc_input *input;
    struct slc_csv *csv;          /* the table; NULL if the input is not a table */
    struct slc_csv_sample *table; /* forecast of a table only: its sample */
    uint64_t csv_bytes;           /* text bytes of the table, decompressed */
    struct slc_csv_spec recalled; /* append of a table: the specification recorded in the store */
    struct slc_input *values;     /* file of values for .npy coordinates, or NULL */
    struct slc_input_info info;
    struct slc_text_header header;
    struct slc_parse_job job;
    struct slc_builder_options build;
    uint64_t memory_bytes;   /* the budget */
    uint64_t resident_bytes; /* memory of the process before the conversion */
    uint64_t start_ns;
    struct slc_convert_forecast *forecast; /* NULL: this is a conversion */
    struct slc_appending *appending;       /* NULL: not an append */
    bool brief;    /* the forecast is made by a run that is about to start */
    bool complete; /* the first piece is the whole input */
    char reason[sizeof((struct slc_convert_report *)NULL)->base_reason];
};

/*
 * Opens the input and the separate file of values, if any, and sets the fields that are known
 * without reading. Errors: as slc_input_open; inputs opened before an error stay in the conversion.
 */
enum slc_status slc_conversion_open_inputs(struct slc_conversion *conversion,
                                           struct slc_error *err) SLC_NODISCARD;

/* Recognizes the format and sets the header, the job's row source and its first piece. Errors:
 * as slc_text_sniff, slc_binary_open and slc_row_source_next. */
enum slc_status slc_conversion_open_rows(struct slc_conversion *conversion,
                                         struct slc_error *err) SLC_NODISCARD;

/* Adds the input's name to an error in its content. Returns the status. */
static inline SLC_NODISCARD enum slc_status slc_conversion_locate_fault(
    const struct slc_conversion *c, enum slc_status status, struct slc_error *err)
{
    if (status == SLC_ERR_INPUT || status == SLC_ERR_UNSUPPORTED) {
        slc_error_locate_file(err, c->info.name);
    }
    return status;
}

/* Fills in the request for reading a table, except for the fields of an old store. Errors:
 * SLC_ERR_BUDGET; SLC_ERR_INPUT if the old store was not made from a table. */
enum slc_status slc_conversion_request_csv(struct slc_conversion *conversion,
                                           struct slc_csv_request *request,
                                           struct slc_csv_old *old,
                                           struct slc_error *err) SLC_NODISCARD;

/* Reads a table; its translated rows become the job's row source. Errors: those of
 * slc_conversion_request_csv and slc_csv_open. */
enum slc_status slc_conversion_open_csv(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * Replaces slc_conversion_open_rows in the forecast of a table (convert_forecast_table.c): samples
 * the table and forecasts the cost of reading it. Errors: those of slc_conversion_request_csv and
 * slc_csv_sample.
 */
enum slc_status slc_conversion_sample_table(struct slc_conversion *conversion,
                                            struct slc_error *err) SLC_NODISCARD;
void slc_conversion_drop_table(struct slc_conversion *conversion);

/* Rows sampled from positions spread over the input, held in the third piece. */
struct slc_conversion_sample {
    struct slc_text_rows rows;
    struct slc_entries entries; /* the same rows */
    uint32_t stretches;
    uint64_t text_bytes; /* of the sampled rows */
    /* Bytes that are read twice; 0: the sample is the beginning of the input. */
    uint64_t read_bytes;
    uint64_t expected; /* nonzeros of the whole input; 0: unknown */
};
/* Reads the sample through the second piece, before the parsers start, and sets its assumed index
 * base. Errors: as slc_input_sample. */
enum slc_status slc_conversion_sample(struct slc_conversion *conversion,
                                      struct slc_conversion_sample *sample,
                                      struct slc_error *err) SLC_NODISCARD;

/* The rows sampled by slc_conversion_sample_table. Borrowed from the conversion. */
void slc_conversion_table_rows(struct slc_conversion *conversion,
                               struct slc_conversion_sample *sample);

/* The part of slc_convert_forecast that needs the parsers (convert_forecast.c). */
enum slc_status slc_conversion_forecast(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * Reads the sample and creates the job's builder from the sample. Until the parsers start, the
 * second piece holds the text of the sample and the third piece its coordinates. Errors: as
 * slc_input_sample, slc_builder_create and slc_builder_sample; the builder may exist after an
 * error.
 */
enum slc_status slc_conversion_create_builder(struct slc_conversion *conversion,
                                              struct slc_error *err) SLC_NODISCARD;

/* Errors: SLC_ERR_USAGE. */
enum slc_status slc_conversion_check_options(const struct slc_convert_options *options,
                                             struct slc_error *err) SLC_NODISCARD;
/* Hash of the options that determine the store or how it is built. */
uint64_t slc_conversion_options_hash(const struct slc_convert_options *options);

/* Sets the builder options that identify the input of the store. Errors: SLC_ERR_IO. */
enum slc_status slc_conversion_identify(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * If the builder resumes from a commit, resumes the job from the same point. *resumed is false if
 * there is nothing to resume, or if the committed state belongs to another text. Errors: as
 * slc_input_next.
 */
enum slc_status slc_conversion_resume(struct slc_conversion *conversion,
                                      bool *resumed,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * If an earlier run wrote the complete store, renames the store to its final name if necessary,
 * sets *complete and restores the report of that run. Errors: as slc_complete_find and
 * slc_complete_left_finish.
 */
enum slc_status slc_conversion_complete(struct slc_conversion *conversion,
                                        bool *complete,
                                        struct slc_error *err) SLC_NODISCARD;
/* Saves the fields of the report that slc_conversion_complete restores. */
void slc_conversion_save_report(const struct slc_conversion *conversion, struct slc_state *note);

/* Commits the fully read and checked input if the commit is worth its cost. Errors: as
 * slc_builder_commit. */
enum slc_status slc_conversion_commit_all(struct slc_conversion *conversion,
                                          struct slc_error *err) SLC_NODISCARD;

/* Appends only (convert_append.c): opens the store at the output and copies its settings to the
 * new store. Owns: slc_conversion_close_old, also after an error. Errors: those of the store. */
enum slc_status slc_conversion_open_old(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_conversion_close_old(struct slc_conversion *conversion);
/*
 * Called once order and mode sizes of the input are known. Indices are then checked against the
 * sizes of fixed modes. Errors: SLC_ERR_INPUT if the orders differ, or if the input declares a
 * larger size for a fixed mode.
 */
enum slc_status slc_conversion_fit_old(struct slc_conversion *conversion,
                                       struct slc_error *err) SLC_NODISCARD;
/* The index base of the input from which the old store was made; -1 if that input had another
 * format. */
int slc_conversion_old_base(const struct slc_conversion *conversion);
/*
 * Adds the old store to an otherwise complete forecast: its mode sizes, the bytes of the store and
 * of its layouts (at their present bytes per nonzero), and the time to decode it, from a trial.
 * Errors: those of slc_store_trial.
 */
enum slc_status slc_conversion_forecast_old(struct slc_conversion *conversion,
                                            struct slc_error *err) SLC_NODISCARD;
/* Returns the specification for reading the appended table, and the store whose names the
 * dictionaries start from. Errors: SLC_ERR_INPUT if the store was not made from a table. */
enum slc_status slc_conversion_old_table(struct slc_conversion *conversion,
                                         struct slc_csv_old *old,
                                         struct slc_error *err) SLC_NODISCARD;
/* True if the old store was made from a table. */
bool slc_conversion_old_is_table(const struct slc_conversion *conversion);
/* Memory for reading the old store; 0 if the run is not an append. */
uint64_t slc_conversion_old_bytes(const struct slc_conversion *conversion, unsigned workers);
/* Content hash of the old store; 0 if the run is not an append. */
uint64_t slc_conversion_old_content(const struct slc_conversion *conversion);
/* True if the store already records the input file (checked before reading it) or its entries
 * (checked after reading) and options->again is not set. Fills in the report in that case. */
bool slc_conversion_knows_input(struct slc_conversion *conversion);
bool slc_conversion_knows_content(struct slc_conversion *conversion);
/* Makes `origin` the origin of the old store plus the appended input. */
void slc_conversion_add_origin(const struct slc_conversion *conversion,
                               struct slc_store_origin *origin);
/* Sets the number of additional layouts that the old store has and the new store lacks. `placed`:
 * the store is unchanged. */
void slc_conversion_count_layouts(const struct slc_conversion *conversion, bool placed);
/*
 * Called after the whole input is read: pushes the nonzeros of the old store and raises `dims` to
 * at least its mode sizes. Errors: those of the scan; SLC_ERR_IO if the store has been replaced
 * since it was opened.
 */
enum slc_status slc_conversion_push_old(struct slc_conversion *conversion,
                                        uint64_t *dims,
                                        struct slc_error *err) SLC_NODISCARD;

#endif
