/* Decompositions, shared by sluice_cpd and sweeps, and records of runs. */
#ifndef SLC_API_CPD_H
#define SLC_API_CPD_H

#include "api/call.h"
#include "engine/stream/stream.h"
#include "sluice/cpd.h"

#include <jansson.h>

/* Limits of a decomposition as the engine uses them, after defaults were applied. */
struct api_cpd_limits {
    uint32_t iterations; /* 0 means that only the initial factors are made */
    double tolerance;    /* 0 means that no change of the fit ends the run */
    double
        checkpoint_seconds; /* 0 means a checkpoint after every update; negative means automatic */
};
struct api_cpd_limits api_cpd_limits(const struct sluice_cpd_options *options);

/* Reads `options` into `known` and checks them. Errors: SLC_ERR_USAGE, SLC_ERR_UNSUPPORTED. */
enum slc_status api_cpd_read_options(struct sluice_cpd_options *known,
                                     const struct sluice_cpd_options *options,
                                     struct slc_error *err) SLC_NODISCARD;

/* Set algorithm and terms of the solver's options for a tensor of `order` modes. api_cpd_fill_terms
 * checks nothing. api_cpd_terms checks the terms, and chooses the algorithm if none was requested.
 * Errors: SLC_ERR_USAGE; those of slc_cp_choose_method. */
void api_cpd_fill_terms(const struct sluice_cpd_options *known,
                        unsigned order,
                        struct slc_cp_options *options);
enum slc_status api_cpd_terms(const struct sluice_cpd_options *known,
                              unsigned order,
                              struct slc_cp_options *options,
                              struct slc_error *err) SLC_NODISCARD;
/* Adds method, constraints and penalties to the options of a record. */
void api_cpd_terms_json(json_t *object, const struct sluice_cpd_options *known, unsigned order);

/* Implement sluice_cpd_plan and sluice_cpd with checked options. */
enum slc_status api_cpd_plan(const struct sluice_store *store,
                             uint32_t rank,
                             const struct sluice_cpd_options *known,
                             struct sluice_plan *plan,
                             struct slc_error *err) SLC_NODISCARD;
enum slc_status api_cpd(const struct sluice_store *store,
                        uint32_t rank,
                        const struct sluice_cpd_options *known,
                        struct sluice_model **ret_model,
                        struct slc_error *err) SLC_NODISCARD;

/* Iterations of a run, including iterations of the earlier runs that it resumed. Initially all
 * zero. */
struct api_history {
    struct slc_cp_iteration *iterations;
    uint64_t count, capacity;
    bool lost; /* memory did not suffice for all iterations, so no record can be made */
};

void api_history_add(struct api_history *history, const struct slc_cp_iteration *iteration);
void api_history_destroy(struct api_history *history);

/* Facts for the record of a finished run. All pointers are borrowed. */
struct api_record_facts {
    const struct sluice_store *store;
    uint32_t rank;
    const struct sluice_cpd_options *options;
    const struct slc_plan *plan;
    const struct slc_cp_result *result;
    const struct slc_stream_stats *stats;
    const struct api_history *history;
    double seconds_before;
};

/* Returns the text of the record, which the caller releases with free. If memory does not suffice,
 * logs a message and returns NULL, because the run itself succeeded. */
char *api_record_make(const struct api_record_facts *facts);

/* Loads the text of the record in a run folder to *ret_text; the caller releases the text with
 * free. Copies fit, iterations and stop reason from the record to *result. Leaves *ret_text and
 * *result unchanged if there is no record, or if the record is malformed or its mode sizes differ
 * from the factors. Errors: SLC_ERR_IO, SLC_ERR_MEMORY. */
enum slc_status api_record_load(const struct slc_files *files,
                                const char *folder,
                                struct slc_cp_result *result,
                                char **ret_text,
                                struct slc_error *err) SLC_NODISCARD;

/* Returns the path of the record of a model that is saved at `path` in form `form`, or NULL if
 * memory does not suffice. Ownership: release with slc_free. */
char *api_record_path(enum sluice_model_form form, const char *path);

#endif
