/*
 * A conversion's state, shared by convert.c (decisions), convert_open.c (the input),
 * convert_csv.c (a table), convert_append.c (the store that is appended to), convert_sample.c
 * (what is guessed) and convert_resume.c (what an interrupted run left).
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
    struct slc_csv *csv;          /* of a table, or NULL */
    struct slc_csv_sample *table; /* the same of a forecast, which reads no more of it */
    uint64_t csv_bytes;           /* of its text, decompressed */
    struct slc_csv_spec recalled; /* of a table that is appended: as the store remembers it */
    struct slc_input *values;     /* of .npy coordinates, or NULL */
    struct slc_input_info info;
    struct slc_text_header header;
    struct slc_parse_job job;
    struct slc_builder_options build;
    uint64_t memory_bytes;   /* the budget */
    uint64_t resident_bytes; /* of the process before */
    uint64_t start_ns;
    struct slc_convert_forecast *forecast; /* NULL: it is a conversion */
    struct slc_appending *appending;       /* NULL: a store of the input alone */
    bool brief;                            /* the forecast is of a run that begins */
    bool complete;                         /* the first piece is the whole input */
    char reason[sizeof((struct slc_convert_report *)NULL)->base_reason];
};

/* Opens the input, and the values that go with it, and learns what can be known without reading.
 * Errors: as slc_input_open; what is open after one stays with the conversion. */
enum slc_status slc_conversion_open_inputs(struct slc_conversion *conversion,
                                           struct slc_error *err) SLC_NODISCARD;

/*
 * Recognizes the format and fills in the header, the job's source of rows and its first piece.
 * Errors: as slc_text_sniff, slc_binary_open and slc_row_source_next.
 */
enum slc_status slc_conversion_open_rows(struct slc_conversion *conversion,
                                         struct slc_error *err) SLC_NODISCARD;

/* Adds the input's name to a fault of its content; returns the status. */
static inline SLC_NODISCARD enum slc_status
slc_conversion_blame(const struct slc_conversion *c, enum slc_status status, struct slc_error *err)
{
    if (status == SLC_ERR_INPUT || status == SLC_ERR_UNSUPPORTED) {
        slc_error_locate_file(err, c->info.name);
    }
    return status;
}

/*
 * How a table is read: fills the request, but for what old stores add. Errors: SLC_ERR_BUDGET;
 * SLC_ERR_INPUT where the store that is appended to was not made of a table.
 */
enum slc_status slc_conversion_ask_csv(struct slc_conversion *conversion,
                                       struct slc_csv_request *request,
                                       struct slc_csv_old *old,
                                       struct slc_error *err) SLC_NODISCARD;

/* Reads a table; the rows it was translated to are the source of rows. Errors: those of
 * slc_conversion_ask_csv and slc_csv_open. */
enum slc_status slc_conversion_open_csv(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * convert_forecast_table.c: of a forecast, takes a sample of a table in place of the rows of
 * slc_conversion_open_rows, and fills in what it says of reading the table. Errors: those of
 * slc_conversion_ask_csv and slc_csv_sample.
 */
enum slc_status slc_conversion_sample_table(struct slc_conversion *conversion,
                                            struct slc_error *err) SLC_NODISCARD;
void slc_conversion_drop_table(struct slc_conversion *conversion);

/* Rows from all over the input, in the third piece. */
struct slc_conversion_sample {
    struct slc_text_rows rows;
    struct slc_entries entries; /* the same */
    uint32_t stretches;
    uint64_t text_bytes; /* that they took */
    uint64_t read_bytes; /* that are read once more; 0: the beginning is the sample */
    uint64_t expected;   /* entries of all the input; 0: not known */
};
/*
 * Takes it, by way of the second piece, before the parsers start, and sets the base that is assumed
 * meanwhile. Errors: as slc_input_sample.
 */
enum slc_status slc_conversion_sample(struct slc_conversion *conversion,
                                      struct slc_conversion_sample *sample,
                                      struct slc_error *err) SLC_NODISCARD;

/* The rows of the sample that slc_conversion_sample_table took: borrowed from it. */
void slc_conversion_table_rows(struct slc_conversion *conversion,
                               struct slc_conversion_sample *sample);

/* convert_forecast.c: what slc_convert_forecast tells, once there are parsers. */
enum slc_status slc_conversion_forecast(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * Takes the sample and creates the builder, the job's, with it. The pieces lie idle until the
 * parsers start: the second holds the text of a sample, the third its coordinates. Errors: as
 * slc_input_sample, slc_builder_create and slc_builder_sample; the builder may be there after one.
 */
enum slc_status slc_conversion_create_builder(struct slc_conversion *conversion,
                                              struct slc_error *err) SLC_NODISCARD;

/* Errors: SLC_ERR_USAGE. */
enum slc_status slc_conversion_check_options(const struct slc_convert_options *options,
                                             struct slc_error *err) SLC_NODISCARD;
/* Of the options that the store, or the way to it, depends on. */
uint64_t slc_conversion_options_hash(const struct slc_convert_options *options);

/* Says to the builder's options what the store depends on. Errors: SLC_ERR_IO. */
enum slc_status slc_conversion_identify(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;

/*
 * Where the builder goes on with what an earlier run committed, lets the job do so, too; *resumed
 * is false where there is nothing, and, with a builder that resumes, where what there is says
 * something of another text. Errors: as slc_input_next.
 */
enum slc_status slc_conversion_resume(struct slc_conversion *conversion,
                                      bool *resumed,
                                      struct slc_error *err) SLC_NODISCARD;

/*
 * Where an earlier run had written all of the store, gives it its name if it has none: *complete,
 * and the report tells what that run would have told. Errors: as slc_complete_find and
 * slc_complete_left_finish.
 */
enum slc_status slc_conversion_complete(struct slc_conversion *conversion,
                                        bool *complete,
                                        struct slc_error *err) SLC_NODISCARD;
/* Writes down of the report what that takes. */
void slc_conversion_put_report(const struct slc_conversion *conversion, struct slc_state *note);

/* All is read and sound: commits it, if that is worth it. Errors: as slc_builder_commit. */
enum slc_status slc_conversion_commit_all(struct slc_conversion *conversion,
                                          struct slc_error *err) SLC_NODISCARD;

/*
 * convert_append.c, for options->append: opens the store at the output, and sets what the new one
 * has from it. Owns: slc_conversion_close_old, also after an error. Errors: those of the store.
 */
enum slc_status slc_conversion_open_old(struct slc_conversion *conversion,
                                        struct slc_error *err) SLC_NODISCARD;
void slc_conversion_close_old(struct slc_conversion *conversion);
/*
 * When modes and lengths of the input are known: has its indices checked against the lengths of
 * modes that are not to grow. Errors: SLC_ERR_INPUT where the input has another number of modes, or
 * declares a longer one of these.
 */
enum slc_status slc_conversion_fit_old(struct slc_conversion *conversion,
                                       struct slc_error *err) SLC_NODISCARD;
/* The index base of what the old store was made of; -1 where that was of another format. */
int slc_conversion_old_base(const struct slc_conversion *conversion);
/*
 * What it adds to the forecast of a conversion, once that has all else of the input: lengths, bytes
 * of the store and its layouts, which go on with as much a nonzero as they have, seconds of a
 * trial. Errors: those of slc_store_trial.
 */
enum slc_status slc_conversion_forecast_old(struct slc_conversion *conversion,
                                            struct slc_error *err) SLC_NODISCARD;
/*
 * How a table is read that is appended, and what its dictionaries begin with. Errors: SLC_ERR_INPUT
 * where the store was not made of a table.
 */
enum slc_status slc_conversion_old_table(struct slc_conversion *conversion,
                                         struct slc_csv_old *old,
                                         struct slc_error *err) SLC_NODISCARD;
/* Whether the store remembers how it was read. */
bool slc_conversion_old_is_table(const struct slc_conversion *conversion);
/* What reading it takes; 0 where nothing is appended to. */
uint64_t slc_conversion_old_bytes(const struct slc_conversion *conversion, unsigned workers);
/* What tells it from other stores; 0 where nothing is appended to. */
uint64_t slc_conversion_old_content(const struct slc_conversion *conversion);
/* Whether the store remembers the input, before it is read, or its entries, when they have been,
 * and is not to have them again: the report says so. */
bool slc_conversion_knows_input(struct slc_conversion *conversion);
bool slc_conversion_knows_content(struct slc_conversion *conversion);
/* Makes `origin` that of the old store, with what is appended. */
void slc_conversion_add_origin(const struct slc_conversion *conversion,
                               struct slc_store_origin *origin);
/* Tells how many further layouts the store does not have again; `placed`: it is as it was found. */
void slc_conversion_count_layouts(const struct slc_conversion *conversion, bool placed);
/*
 * When all input is read: pushes the nonzeros of the old store, and makes the lengths at least its.
 * Errors: those of the scan; SLC_ERR_IO where it is no longer the one that was opened.
 */
enum slc_status slc_conversion_push_old(struct slc_conversion *conversion,
                                        uint64_t *dims,
                                        struct slc_error *err) SLC_NODISCARD;

#endif
