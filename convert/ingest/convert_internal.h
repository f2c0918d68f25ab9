/* State of a conversion. It is shared by convert.c (control flow), convert_open.c (inputs),
 * convert_csv.c (tables), convert_append.c (the old store), convert_sample.c (estimates from a
 * sample) and convert_resume.c (state of an interrupted run). */
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
    struct slc_csv *csv; /* the table; NULL if the input is not a table */
    /* sample of the table, in a forecast of a table; otherwise NULL */
    struct slc_csv_sample *table;
    uint64_t csv_bytes; /* decompressed bytes of the table */
    /* for append of a table: the specification that the store records */
    struct slc_csv_spec recalled;
    struct slc_input *values; /* file of values for .npy coordinates, or NULL */
    struct slc_input_info info;
    struct slc_text_header header;
    struct slc_parse_job job;
    struct slc_builder_options build;
    uint64_t memory_bytes;   /* the budget */
    uint64_t resident_bytes; /* memory of the process without that of the conversion */
    uint64_t names_bytes;    /* memory to write the names of a table after the sort */
    uint64_t start_ns;
    struct slc_convert_forecast *forecast; /* NULL if this is a conversion */
    struct slc_appending *appending;       /* NULL if this is not an append */
    bool brief;                            /* true if a run makes the forecast before it starts */
    bool complete;                         /* true if the first piece is the whole input */
    char reason[sizeof((struct slc_convert_report *)NULL)->base_reason];
};

/* Opens the input and, if there is one, the separate file of values, and sets the members that are
 * known without reading. Errors: those of slc_input_open; inputs that were opened before an error
 * stay open. */
enum slc_status slc_conversion_open_inputs(struct slc_conversion *conversion,
                                           struct slc_error *err) SLC_NODISCARD;

/* Recognizes the format, and sets the header, the row source of the job and its first piece.
 * Errors: those of slc_text_sniff, slc_binary_open and slc_row_source_next. */
enum slc_status slc_conversion_open_rows(struct slc_conversion *conversion,
                                         struct slc_error *err) SLC_NODISCARD;

/* Copies the values of a dense text to a temporary file, and sets the row source of the job and its
 * first piece. Needs: the header and the first piece of the text. Errors: SLC_ERR_INPUT with line
 * and column; those of slc_input_next and slc_spool_append. */
enum slc_status slc_conversion_open_dense(struct slc_conversion *conversion,
                                          struct slc_error *err) SLC_NODISCARD;

/* Adds the name of the input to an error that concerns its content. Returns the status. */
static inline SLC_NODISCARD enum slc_status slc_conversion_locate_fault(
    const struct slc_conversion *c, enum slc_status status, struct slc_error *err)
{
    if (status == SLC_ERR_INPUT || status == SLC_ERR_UNSUPPORTED) {
        slc_error_locate_file(err, c->info.name);
    }
    return status;
}

/* Returns the least memory of the process while rows are sorted and names are written. Needs: the
 * order in the header. */
uint64_t slc_conversion_least_bytes(struct slc_conversion *conversion);

/* Fills in the request for reading a table; for append, also `old`. Errors: SLC_ERR_BUDGET;
 * SLC_ERR_INPUT if the old store was not made from a table. */
enum slc_status slc_conversion_request_csv(struct slc_conversion *conversion,
                                           struct slc_csv_request *request,
                                           struct slc_csv_old *old,
                                           struct slc_error *err) SLC_NODISCARD;

/* Reads a table. The job's row source then delivers the translated rows of the table. Errors: those
 * of slc_conversion_request_csv and slc_csv_open. */
enum slc_status slc_conversion_open_csv(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/* Samples the table and forecasts the cost of reading it. Used in the forecast of a table instead
 * of slc_conversion_open_rows. Errors: those of slc_conversion_request_csv and slc_csv_sample. */
enum slc_status slc_conversion_sample_table(struct slc_conversion *conversion,
                                            struct slc_error *err) SLC_NODISCARD;
void slc_conversion_drop_table(struct slc_conversion *conversion);

/* Rows sampled from positions spread over the input. The third piece holds their coordinates. */
struct slc_conversion_sample {
    struct slc_text_rows rows;
    struct slc_entries entries; /* the rows in the form in which they are pushed */
    uint32_t stretches;
    uint64_t text_bytes; /* bytes of the sampled rows */
    /* Bytes that are read twice; 0 if the sample is the beginning of the input. */
    uint64_t read_bytes;
    uint64_t expected; /* expected entries of the whole input; 0 means unknown */
};
/* Reads the sample, with the second piece as text buffer, and sets the assumed index base of the
 * sample. Called before the parsers start. Errors: those of slc_input_sample. */
enum slc_status slc_conversion_sample(struct slc_conversion *conversion,
                                      struct slc_conversion_sample *sample,
                                      struct slc_error *err) SLC_NODISCARD;

/* Stores the rows that slc_conversion_sample_table sampled. They are borrowed from the
 * conversion. */
void slc_conversion_table_rows(struct slc_conversion *conversion,
                               struct slc_conversion_sample *sample);

/* Completes the forecast (convert_forecast.c). Needs: the parsers exist. */
enum slc_status slc_conversion_forecast(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/* Reads the sample and creates the builder of the job from it. Until the parsers start, the second
 * piece holds the text of the sample and the third piece its coordinates. Errors: those of
 * slc_input_sample, slc_builder_create and slc_builder_sample; the builder may exist after an
 * error. */
enum slc_status slc_conversion_create_builder(struct slc_conversion *conversion,
                                              struct slc_error *err) SLC_NODISCARD;

/* Checks the options. Errors: SLC_ERR_USAGE. */
enum slc_status slc_conversion_check_options(const struct slc_convert_options *options,
                                             struct slc_error *err) SLC_NODISCARD;
/* Returns a hash of the options that determine the store or how it is built. */
uint64_t slc_conversion_options_hash(const struct slc_convert_options *options);

/* Sets the options of the builder that identify the input of the store. Errors: SLC_ERR_IO. */
enum slc_status slc_conversion_identify(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/* If the builder resumes from a commit, resumes the job from the same commit. *resumed becomes
 * false if there is no commit or the commit belongs to another text. Errors: those of
 * slc_input_next. */
enum slc_status slc_conversion_resume(struct slc_conversion *conversion,
                                      bool *resumed,
                                      struct slc_error *err) SLC_NODISCARD;

/* If an earlier run wrote the complete store, renames the store to its final name if necessary,
 * sets *complete to true, and restores the report of that run. Errors: those of slc_complete_find
 * and slc_complete_left_finish. */
enum slc_status slc_conversion_complete(struct slc_conversion *conversion,
                                        bool *complete,
                                        struct slc_error *err) SLC_NODISCARD;
/* Saves the members of the report that slc_conversion_complete restores. */
void slc_conversion_save_report(const struct slc_conversion *conversion, struct slc_state *note);

/* Commits after the whole input has been read and checked, if repeating this work would cost more
 * than the commit. Errors: those of slc_builder_commit. */
enum slc_status slc_conversion_commit_all(struct slc_conversion *conversion,
                                          struct slc_error *err) SLC_NODISCARD;

/* For append (convert_append.c): opens the old store at the output and uses its settings for the
 * new store. Ownership: release with slc_conversion_close_old, also after an error. Errors: those
 * of opening a store. */
enum slc_status slc_conversion_open_old(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_conversion_close_old(struct slc_conversion *conversion);
/* Checks the order and the declared mode sizes of the input against the old store, and sets the
 * mode sizes that indices of fixed modes must not exceed. Errors: SLC_ERR_INPUT if the orders
 * differ, or if the input declares a larger size for a fixed mode. */
enum slc_status slc_conversion_fit_old(struct slc_conversion *conversion,
                                       struct slc_error *err) SLC_NODISCARD;
/* Returns the index base of the input from which the old store was made; -1 if the new input has
 * another format. */
int slc_conversion_old_base(const struct slc_conversion *conversion);
/* Adds the old store to a forecast that is otherwise complete: the bytes of the store and of its
 * layouts (at their present bytes per nonzero), and the time to decode the store, estimated by a
 * trial. Errors: those of slc_store_trial. */
enum slc_status slc_conversion_forecast_old(struct slc_conversion *conversion,
                                            struct slc_error *err) SLC_NODISCARD;
/* Stores the specification for reading the appended table, and the names of the old store, with
 * which the dictionaries start. Errors: SLC_ERR_INPUT if the store was not made from a table. */
enum slc_status slc_conversion_old_table(struct slc_conversion *conversion,
                                         struct slc_csv_old *old,
                                         struct slc_error *err) SLC_NODISCARD;
/* Returns true if the old store was made from a table. */
bool slc_conversion_old_is_table(const struct slc_conversion *conversion);
/* Returns the memory for reading the old store; 0 if the run is not an append. */
uint64_t slc_conversion_old_bytes(const struct slc_conversion *conversion, unsigned workers);
/* Returns a hash that identifies the content of the old store; 0 if the run is not an append. */
uint64_t slc_conversion_old_content(const struct slc_conversion *conversion);
/* Returns true if the store already records this input and options->again is not set, and fills in
 * the report in that case. Before the input is read, its file is checked; afterwards, its
 * entries. */
bool slc_conversion_knows_input(struct slc_conversion *conversion);
bool slc_conversion_knows_content(struct slc_conversion *conversion);
/* Sets `origin` to the origin of the old store plus the appended input. */
void slc_conversion_add_origin(const struct slc_conversion *conversion,
                               struct slc_store_origin *origin);
/* Sets the number of additional layouts that the old store has and the new store does not have. If
 * `placed` is true, an earlier run has already replaced the old store, and the number is 0. */
void slc_conversion_count_layouts(const struct slc_conversion *conversion, bool placed);
/* Passes the nonzeros of the old store to the builder, and raises `dims` to at least the mode sizes
 * of that store. Called after the whole input is read. Errors: those of the scan; SLC_ERR_IO if the
 * store has been replaced since it was opened. */
enum slc_status slc_conversion_push_old(struct slc_conversion *conversion,
                                        uint64_t *dims,
                                        struct slc_error *err) SLC_NODISCARD;

#endif
