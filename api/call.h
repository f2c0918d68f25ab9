/*
 * What every public function does at its boundary: it reads versioned options, fills in versioned
 * reports, runs under sluice_run_options and sluice_output_options, and hands an internal fault to
 * the caller.
 */
#ifndef SLC_API_CALL_H
#define SLC_API_CALL_H

#include "base/error/error.h"
#include "base/error/stop.h"
#include "convert/build/builder.h"
#include "convert/build/sort/transform.h"
#include "engine/solve/cp_als.h"
#include "sluice/convert.h"
#include "sluice/model.h"
#include "sluice/types.h"
#include "storage/manifest/names.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"

#include <stddef.h>

/* Ends a public function: copies the fault, unless `ret_err` is NULL or has one already. */
enum sluice_status
api_return(enum slc_status status, const struct slc_error *err, struct sluice_error *ret_err);

/* The member of public options, argument or function that a field is; "" if it is none. */
const char *api_field_name(enum slc_error_field field);

/* The public form of a fault. */
struct sluice_error api_public_error(const struct slc_error *err);

/*
 * Copies the options that a program filled in over `known`, which is all zero. A shorter, older
 * struct leaves the newer members zero; a longer, newer one is accepted if the members that this
 * library does not know are zero. `given` NULL leaves all defaults. Errors: SLC_ERR_USAGE if
 * struct_bytes is not set, SLC_ERR_UNSUPPORTED.
 */
#define API_READ_OPTIONS(type, known, given, err)                                                  \
    api_read_options((struct type *){known}, sizeof(struct type), (const struct type *){given},    \
                     #type, err)
enum slc_status api_read_options(void *known,
                                 size_t known_bytes,
                                 const void *given,
                                 const char *name,
                                 struct slc_error *err) SLC_NODISCARD;

/* Checks struct_bytes of a report, before the work that it will describe. NULL: none is wanted. */
enum slc_status
api_check_report(const void *given, const char *name, struct slc_error *err) SLC_NODISCARD;

/* Copies `known` into the caller's report, as far as its struct_bytes reach. NULL: not wanted. */
#define API_FILL_REPORT(type, given, known, err)                                                   \
    api_fill_report((struct type *){given}, (const struct type *){known}, sizeof(struct type),     \
                    #type, err)
enum slc_status api_fill_report(void *given,
                                const void *known,
                                size_t known_bytes,
                                const char *name,
                                struct slc_error *err) SLC_NODISCARD;

/* A path that the caller has to give, called `name`. Errors: SLC_ERR_USAGE for NULL. */
enum slc_status
api_need_path(const char *path, const char *name, struct slc_error *err) SLC_NODISCARD;

/* A member of an enumeration, whose values run from 0 to `last`. */
struct api_choice {
    const char *name;
    int value, last;
};
/* Errors: SLC_ERR_USAGE naming the first value that is in no enumeration. */
#define API_CHECK_CHOICES(err, ...)                                                                \
    api_check_choices(                                                                             \
        (const struct api_choice[]){__VA_ARGS__},                                                  \
        sizeof((const struct api_choice[]){__VA_ARGS__}) / sizeof(struct api_choice), err)
enum slc_status api_check_choices(const struct api_choice *choices,
                                  size_t count,
                                  struct slc_error *err) SLC_NODISCARD;

/* A call under sluice_run_options. Internal code looks at `stop`; a callback that wants to end the
 * call sets the same flag. The struct keeps its address during the call. */
struct api_run {
    struct sluice_run_options options;
    struct slc_stop stop;
    sluice_atomic_int *flag; /* the caller's, or .. */
    sluice_atomic_int own;   /* .. this one */
    const char *phase;       /* of api_run_blocks */
};
void api_run_init(struct api_run *run, const struct sluice_run_options *options);
void api_run_stop(struct api_run *run);
/* The caller's budget, or 80 % of memory; the caller's threads, or all. */
uint64_t api_run_memory(const struct api_run *run);
unsigned api_run_threads(const struct api_run *run);
/* The `progress` of internal options whose context is the run; NULL if the caller has none. */
typedef void api_progress_fn(void *run, const char *phase, uint64_t done, uint64_t total);
api_progress_fn *api_run_progress(const struct api_run *run);
/* The same for passes, which count blocks; the phase is run->phase. */
typedef void api_blocks_fn(void *run, uint64_t done, uint64_t total, uint64_t bytes_read);
api_blocks_fn *api_run_blocks(const struct api_run *run);

/* Sets what internal options of any kind say of a run. */
#define API_SET_RUN(to, run)                                                                       \
    do {                                                                                           \
        (to)->memory_bytes = api_run_memory(run);                                                  \
        (to)->stop = &(run)->stop;                                                                 \
        (to)->progress = api_run_progress(run);                                                    \
        (to)->context = (run);                                                                     \
    } while (0)

/* Errors: SLC_ERR_USAGE for values that are in no enumeration, and for a mode or bits of fibers
 * that are out of range. */
enum slc_status api_check_output(const struct sluice_output_options *output,
                                 struct slc_error *err) SLC_NODISCARD;

/* The fibers that are kept together, of checked options. */
struct slc_fiber_run api_fiber_run(const struct sluice_output_options *output);

/* Sets what internal options of any kind say of a store that is written, of checked options. */
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

/* The set of modes that a builder has relabelled. */
uint32_t api_relabelled_modes(const struct slc_relabel_report *relabel, unsigned order);

/* Adds the steps of text like "abs,log1p"; NULL: none. Errors: SLC_ERR_USAGE. */
enum slc_status api_parse_transforms(const char *text,
                                     struct slc_transforms *transforms,
                                     struct slc_error *err) SLC_NODISCARD;

/* The opaque objects of the public interface: what is behind their handles. */
struct sluice_store {
    struct slc_store store;
    struct slc_names *names[SLC_MAX_ORDER]; /* opened when they are first asked for */
};

struct sluice_model {
    struct slc_cp_result result;
    uint64_t bytes_read;
    /* Of what the tensor was made from: the format, "" if unknown, and the first index. */
    char dialect[32];
    unsigned index_base;
    char *record; /* text of the run that it comes from, by malloc; NULL: there is none */
};

/* The model, whose factors and weights are borrowed. */
struct slc_model_view api_model_view(const struct sluice_model *model);

/* sluice_model_save. */
enum slc_status api_model_save(const struct sluice_model *model,
                               enum sluice_model_form form,
                               const char *path,
                               struct slc_error *err) SLC_NODISCARD;

#endif
