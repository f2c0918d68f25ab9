/* CP decompositions, as sluice_cpd and sweeps run them. */
#ifndef SLC_API_CPD_H
#define SLC_API_CPD_H

#include "api/call.h"
#include "engine/stream/stream.h"
#include "sluice/cpd.h"

/* Options of a decomposition with their defaults in place, in internal terms. */
struct api_cpd_limits {
    uint32_t iterations;       /* 0: only the start */
    double tolerance;          /* 0: none */
    double checkpoint_seconds; /* 0: after every update; negative: chosen */
};
struct api_cpd_limits api_cpd_limits(const struct sluice_cpd_options *options);

/* Reads and checks options. Errors: SLC_ERR_USAGE, SLC_ERR_UNSUPPORTED. */
enum slc_status api_cpd_read_options(struct sluice_cpd_options *known,
                                     const struct sluice_cpd_options *options,
                                     struct slc_error *err) SLC_NODISCARD;

/* sluice_cpd_plan and sluice_cpd, of options that have been read. */
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

/* Iterations, including those before the run resumed. Zero is none. */
struct api_history {
    struct slc_cp_iteration *iterations;
    uint64_t count, capacity;
    bool lost; /* there was no memory for them all: a record would be wrong */
};

void api_history_add(struct api_history *history, const struct slc_cp_iteration *iteration);
void api_history_destroy(struct api_history *history);

/* What is recorded of a run that has ended; all is borrowed. */
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

/* Returns the text, which the caller frees by free; NULL, with a message to the log, without memory
 * for it: a run is not lost for that. */
char *api_record_make(const struct api_record_facts *facts);

/*
 * The text of the record in the run folder `folder`, to be freed by free; NULL if there is none, or
 * it is unsound or of other mode sizes. Errors: SLC_ERR_IO, SLC_ERR_MEMORY.
 */
enum slc_status api_record_load(const char *folder,
                                const struct slc_cp_result *result,
                                char **ret_text,
                                struct slc_error *err) SLC_NODISCARD;

/* Where the record of a model is that is saved in this form at `path`, in fresh memory (slc_free);
 * NULL without memory. */
char *api_record_path(enum sluice_model_form form, const char *path);

#endif
