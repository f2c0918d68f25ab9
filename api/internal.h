/*
 * What the files of the public API share: versioned structs, and the set-up of a computation.
 * Internal to api/.
 */
#ifndef SLC_API_INTERNAL_H
#define SLC_API_INTERNAL_H

#include "base/error/error.h"
#include "convert/build/builder.h"
#include "convert/build/sort/transform.h"
#include "convert/ingest/names/name_maps.h"
#include "engine/plan/plan.h"
#include "engine/session/session.h"
#include "engine/solve/cp_als.h"
#include "sluice/sluice.h"
#include "storage/manifest/names.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"

#include <stddef.h>

struct sluice_store {
    struct slc_store store;
    struct slc_names *names[SLC_MAX_ORDER]; /* that have been asked for */
};

struct sluice_cpd {
    struct slc_cp_result result;
    uint64_t bytes_read;
    /* Of what the tensor was made of: the format, "" where nobody knows, and the first index. */
    char dialect[32];
    unsigned index_base;
    char *record; /* text of the run that it comes from, by malloc; NULL: there is none */
};

/* The model, whose factors and weights are borrowed. */
struct slc_model_view api_model_view(const struct sluice_cpd *model);

/*
 * Copies the options a program filled in (its struct_bytes first) over `known`, which holds the
 * defaults. A shorter, older struct leaves the newer fields at their defaults; a longer, newer one
 * is taken when what this library does not know is zero. `given` NULL leaves all defaults.
 * Errors: SLC_ERR_USAGE when the struct was not initialized, SLC_ERR_UNSUPPORTED.
 */
enum slc_status api_take_options(void *known,
                                 size_t known_bytes,
                                 const void *given,
                                 const char *name,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Whether there will be a report of the caller to give: before anything is done that it would tell
 * of. NULL: none is wanted. Errors: SLC_ERR_USAGE.
 */
enum slc_status
api_check_report(const void *given, const char *name, struct slc_error *err) SLC_NODISCARD;

/* A path that a caller has to give, called `name`. Errors: SLC_ERR_USAGE for NULL. */
enum slc_status
api_need_path(const char *path, const char *name, struct slc_error *err) SLC_NODISCARD;

/* What options say of a store that is written. Errors: SLC_ERR_USAGE for what is in no enumeration.
 */
enum slc_status api_check_form(enum sluice_codec codec,
                               enum sluice_relabel relabel,
                               struct slc_error *err) SLC_NODISCARD;

/* Copies `known` into a report of the caller, as far as its struct_bytes go, which stay. */
enum slc_status api_give_report(void *given,
                                const void *known,
                                size_t known_bytes,
                                const char *name,
                                struct slc_error *err) SLC_NODISCARD;

/* Copies defaults into a fresh options struct of `bytes` bytes and records its size. */
void api_init_options(void *options, uint64_t bytes, const void *defaults, size_t default_bytes);

/* The defaults of sluice_compute_options with what the caller gave over them, checked. */
enum slc_status api_take_compute(struct sluice_compute_options *known,
                                 const struct sluice_compute_options *given,
                                 struct slc_error *err) SLC_NODISCARD;

/* Adds the steps of text like "abs,log1p"; NULL: none. Errors: SLC_ERR_USAGE. */
enum slc_status api_take_transforms(const char *text,
                                    struct slc_transforms *transforms,
                                    struct slc_error *err) SLC_NODISCARD;

/*
 * Whose fibers a store keeps together, as options say it. Errors: SLC_ERR_USAGE.
 */
enum slc_status api_take_fibers(enum sluice_fibers fibers,
                                uint32_t mode,
                                uint32_t bits,
                                enum slc_fibers *choice,
                                struct slc_fiber_run *run,
                                struct slc_error *err) SLC_NODISCARD;

/* A caller's callback, for what counts blocks of a pass: its `progress` and the phase it tells. */
struct api_blocks {
    void (*progress)(void *context, const char *phase, uint64_t done, uint64_t total);
    void *context;
    const char *phase;
};
/* Hands on to a struct api_blocks whose progress is not NULL. */
void api_tell_blocks(void *blocks, uint64_t done, uint64_t total, uint64_t bytes_read);

/*
 * What options name as labels: *names_of is `names`, all zero before, or NULL where there are none.
 * Owns: slc_name_maps_destroy, also after an error.
 */
enum slc_status api_take_labels(const char *const *labels,
                                uint32_t count,
                                struct slc_name_maps *names,
                                const struct slc_name_maps **names_of,
                                struct slc_error *err) SLC_NODISCARD;

/* A memory budget: `bytes`, or 80 % of memory for 0. */
uint64_t api_memory_bytes(uint64_t bytes);
/* Threads: `threads`, or all for 0. */
unsigned api_threads(uint32_t threads);

struct slc_plan_request api_plan_request(const struct sluice_compute_options *options,
                                         enum slc_operation operation,
                                         unsigned mode,
                                         uint32_t rank);

/* What the options ask for of devices, checked; borrowed from them. */
enum slc_status api_device_wish(const struct sluice_compute_options *options,
                                struct slc_device_wish *wish,
                                struct slc_error *err) SLC_NODISCARD;

/* Tells the log why SLUICE_DEVICE_AUTO took the CPU; nothing where it did not. */
void api_log_refused(const struct slc_error *refused);

/*
 * Plans and starts what the options ask for. The calling thread's teams are placed as planned until
 * slc_session_close, which the caller calls whatever came of it.
 */
enum slc_status api_session_open(struct slc_session *session,
                                 const struct sluice_store *store,
                                 const struct slc_plan_request *request,
                                 const struct sluice_compute_options *options,
                                 struct slc_error *err) SLC_NODISCARD;

/* Copies a padded matrix into rows * cols contiguous numbers. */
void api_copy_out(const struct slc_matrix *matrix, double *to);

#endif
