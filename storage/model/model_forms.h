/* What the writers of models (model.h) share: rows of a factor, wherever it is, and their entries.
 */
#ifndef SLC_STORAGE_MODEL_FORMS_H
#define SLC_STORAGE_MODEL_FORMS_H

#include "storage/model/model.h"

/* Numbers of a factor that writers have in memory at a time, or one row where it has more. */
enum { SLC_MODEL_PIECE_NUMBERS = 32 * 1024 };

uint64_t slc_model_length(const struct slc_model_view *model, unsigned mode);
enum slc_value_type slc_model_type(const struct slc_model_view *model, unsigned mode);

/* Rows first .. first + count - 1 of a factor, one behind the other. Errors: those of reading. */
enum slc_status slc_model_rows(const struct slc_model_view *model,
                               unsigned mode,
                               uint64_t first,
                               uint64_t count,
                               double *values,
                               struct slc_error *err) SLC_NODISCARD;

/* SLC_MODEL_SPLATT, SLC_MODEL_KTENSOR or SLC_MODEL_CSV, whatever the locale. */
enum slc_status slc_model_write_text(const struct slc_files *files,
                                     enum slc_model_form form,
                                     const char *path,
                                     const struct slc_model_view *model,
                                     struct slc_error *err) SLC_NODISCARD;

enum slc_status slc_model_write_matlab(const struct slc_files *files,
                                       const char *path,
                                       const struct slc_model_view *model,
                                       struct slc_error *err) SLC_NODISCARD;

#endif
