/* Helpers that every public function uses: versioned options and reports, sluice_run_options,
 * sluice_output_options, and conversion of faults. */
#ifndef SLC_API_CALL_H
#define SLC_API_CALL_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "convert/build/builder.h"
#include "convert/build/sort/transform.h"
#include "engine/solve/cp.h"
#include "sluice/convert.h"
#include "sluice/model.h"
#include "sluice/types.h"
#include "storage/manifest/names.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"

#include <stddef.h>

/* Ends a public function: copies the fault, unless `ret_err` is NULL or already has a fault. */
enum sluice_status
api_return(enum slc_status status, const struct slc_error *err, struct sluice_error *ret_err);

/* Returns the public name of an error field (a member of options, an argument or a function), or
 * "". */
const char *api_field_name(enum slc_error_field field);

/* Returns the public record of a fault. */
struct sluice_error api_public_error(const struct slc_error *err);

/* Copies the options `given` by a program to `known`, which must be all zero. A shorter struct of
 * an older version leaves newer members zero. A longer struct of a newer version is accepted if all
 * members that this library does not know are zero. If `given` is NULL, `known` does not change.
 * Errors: SLC_ERR_USAGE if struct_bytes is not set, SLC_ERR_UNSUPPORTED if an
 * unknown member is not zero. */
#define API_READ_OPTIONS(type, known, given, err)                                                  \
    api_read_options((struct type *){known}, sizeof(struct type), (const struct type *){given},    \
                     #type, err)
enum slc_status api_read_options(void *known,
                                 size_t known_bytes,
                                 const void *given,
                                 const char *name,
                                 struct slc_error *err) SLC_NODISCARD;

/* Checks struct_bytes of a report. Called before the work that the report will describe. If `given`
 * is NULL, does nothing. */
enum slc_status
api_check_report(const void *given, const char *name, struct slc_error *err) SLC_NODISCARD;

/* Copies the first struct_bytes bytes of `known` to the caller's report `given`. If `given` is
 * NULL, does nothing. */
#define API_FILL_REPORT(type, given, known, err)                                                   \
    api_fill_report((struct type *){given}, (const struct type *){known}, sizeof(struct type),     \
                    #type, err)
enum slc_status api_fill_report(void *given,
                                const void *known,
                                size_t known_bytes,
                                const char *name,
                                struct slc_error *err) SLC_NODISCARD;

/* An argument that must not be NULL. */
struct api_pointer {
    const char *name;
    const void *pointer;
};
/* Ends a public function with SLC_ERR_USAGE if one of the pointers is NULL; the message names the
 * first such pointer. Needs: the function has not used any of the pointers yet. */
#define API_NEED(err, ret_err, ...)                                                                \
    do {                                                                                           \
        const struct api_pointer needed[] = {__VA_ARGS__};                                         \
                                                                                                   \
        if (api_need(needed, sizeof needed / sizeof needed[0], err) != SLC_OK) {                   \
            return api_return(SLC_ERR_USAGE, err, ret_err);                                        \
        }                                                                                          \
    } while (0)
/* An array of `count` elements, which may be NULL if it is empty. */
#define API_ARRAY(array, count) ((count) > 0 ? (const void *)(array) : "")
enum slc_status
api_need(const struct api_pointer *pointers, size_t count, struct slc_error *err) SLC_NODISCARD;

/* A value of the enumeration `name`, which has the values 0 to `last`. */
struct api_choice {
    const char *name;
    int value, last;
};
/* Checks values of enumerations. Errors: SLC_ERR_USAGE for the first value out of range. */
#define API_CHECK_CHOICES(err, ...)                                                                \
    api_check_choices(                                                                             \
        (const struct api_choice[]){__VA_ARGS__},                                                  \
        sizeof((const struct api_choice[]){__VA_ARGS__}) / sizeof(struct api_choice), err)
enum slc_status api_check_choices(const struct api_choice *choices,
                                  size_t count,
                                  struct slc_error *err) SLC_NODISCARD;

/* State of a call that has sluice_run_options. Internal code polls `stop`; if a callback stops the
 * call, the flag of `stop` is set. The struct must not move during the call. */
struct api_run {
    struct sluice_run_options options;
    struct slc_stop stop;
    sluice_atomic_int *flag; /* flag of the caller, or `own` */
    sluice_atomic_int own;
    const char *phase; /* phase that api_run_blocks reports */
};
/* Limits run->options.memory_bytes to the memory of the machine, and logs a warning if the caller's
 * budget is larger. */
void api_run_init(struct api_run *run, const struct sluice_run_options *options);
/* Logs a warning if a budget is larger than the memory of the machine. Returns the smaller of the
 * two. */
uint64_t api_limit_memory(uint64_t memory_bytes);
void api_run_stop(struct api_run *run);
/* Return the memory budget (default: 80 % of memory) and the number of threads (default: one per
 * processor). */
uint64_t api_run_memory(const struct api_run *run);
unsigned api_run_threads(const struct api_run *run);
/* Returns the callback `progress` of internal options, or NULL if the caller has no callback. The
 * context of this callback is the run. */
typedef void api_progress_fn(void *run, const char *phase, uint64_t done, uint64_t total);
api_progress_fn *api_run_progress(const struct api_run *run);
/* Returns the callback for passes, which report blocks without a phase; the callback adds
 * run->phase. */
typedef void api_blocks_fn(void *run, uint64_t done, uint64_t total, uint64_t bytes_read);
api_blocks_fn *api_run_blocks(const struct api_run *run);

/* Sets the members of internal options `to` that describe a run. */
#define API_SET_RUN(to, run)                                                                       \
    do {                                                                                           \
        (to)->memory_bytes = api_run_memory(run);                                                  \
        (to)->stop = &(run)->stop;                                                                 \
        (to)->progress = api_run_progress(run);                                                    \
        (to)->context = (run);                                                                     \
    } while (0)

/* Checks the options of an output store. Errors: SLC_ERR_USAGE for values outside their enumeration
 * and for fiber_mode or fiber_bits out of range. */
enum slc_status api_check_output(const struct sluice_output_options *output,
                                 struct slc_error *err) SLC_NODISCARD;

/* Returns the fiber run of checked options. */
struct slc_fiber_run api_fiber_run(const struct sluice_output_options *output);

/* Sets the members of internal options `to` that describe an output store, from checked options. */
#define API_SET_OUTPUT(to, output)                                                                 \
    do {                                                                                           \
        (to)->codec = (output)->codec == SLUICE_CODEC_DEFAULT ? SLC_CODEC_PACKED                   \
                                                              : (enum slc_codec)(output)->codec;   \
        (to)->relabel = (output)->relabel == SLUICE_RELABEL_FREQUENCY ? SLC_RELABEL_FREQUENCY      \
                                                                      : SLC_RELABEL_NONE;          \
        (to)->fibers = (enum slc_fibers)(output)->fibers;                                          \
        (to)->run = api_fiber_run(output);                                                         \
        (to)->block_bytes = (output)->block_bytes;                                                 \
        (to)->temp_folder = (output)->temp_folder;                                                 \
        (to)->max_temp = (output)->max_temp_bytes;                                                 \
        (to)->overwrite = (output)->overwrite != 0;                                                \
    } while (0)

/* Returns the set of modes that a builder relabelled; bit n is mode n. */
uint32_t api_relabelled_modes(const struct slc_relabel_report *relabel, unsigned order);

/* Adds the steps of a text such as "abs,log1p"; adds no steps if `text` is NULL. Errors:
 * SLC_ERR_USAGE. */
enum slc_status api_parse_transforms(const char *text,
                                     struct slc_transforms *transforms,
                                     struct slc_error *err) SLC_NODISCARD;

/* Definitions of the opaque public structs. */
struct sluice_store {
    struct slc_store store;
    struct slc_names *names[SLC_MAX_ORDER]; /* opened at first use */
};

struct sluice_model {
    struct slc_cp_result result;
    uint64_t bytes_read;
    /* Dialect of the tensor's input ("" if unknown) and the first index of this input. */
    char dialect[32];
    unsigned index_base;
    char *record; /* text of the run's record, allocated by malloc; NULL if there is no record */
};

/* Returns a view of a model; the view borrows factors and weights. */
struct slc_model_view api_model_view(const struct sluice_model *model);

/* Implements sluice_model_save. */
enum slc_status api_model_save(const struct sluice_model *model,
                               enum sluice_model_form form,
                               const char *path,
                               struct slc_error *err) SLC_NODISCARD;

#endif
