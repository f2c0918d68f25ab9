/* CP decompositions, as sluice_cpd and sweeps run them. */
#ifndef SLC_API_CPD_H
#define SLC_API_CPD_H

#include "api/objects.h"
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

#endif
