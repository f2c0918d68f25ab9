/* The opaque objects of the public interface: what is behind their handles. */
#ifndef SLC_API_OBJECTS_H
#define SLC_API_OBJECTS_H

#include "engine/solve/cp_als.h"
#include "sluice/model.h"
#include "storage/manifest/names.h"
#include "storage/manifest/store.h"
#include "storage/model/model.h"

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
