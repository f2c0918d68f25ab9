/* libsluice: sparse tensors larger than memory, factorized while they stream from disk.
 *
 *     struct sluice_error err = SLUICE_ERROR_INIT;
 *     struct sluice_model_info info = {.struct_bytes = sizeof info};
 *     struct sluice_store *store = NULL;
 *     struct sluice_model *model = NULL;
 *
 *     if (sluice_convert("in.tns", "in.slc", NULL, NULL, &err) == SLUICE_OK &&
 *         sluice_store_open("in.slc", &store, &err) == SLUICE_OK &&
 *         sluice_cpd(store, 16, NULL, &model, &err) == SLUICE_OK &&
 *         sluice_model_get_info(model, &info, &err) == SLUICE_OK) {
 *         printf("fit %.6f\n", info.fit);
 *     }
 *     sluice_model_destroy(model);
 *     sluice_store_close(store);
 *
 * Conventions. sluice/status.h describes errors, sluice/types.h options and versions. A path that
 * is NULL causes SLUICE_ERR_USAGE, unless a comment allows NULL. Modes and indices count from 0.
 * Matrices are dense, row-major arrays of f64 without padding, rows x rank. Sizes of memory, files
 * and blocks are in bytes; a mode size is a number of indices. Times are in seconds. Functions do
 * not keep pointers to paths, texts and option structs. The library prints nothing and never ends
 * the process.
 *
 * The comment of a function has a summary and these parts, if they apply: "Math:", "Shapes:" of
 * arrays, "Ownership:" of arrays, objects and returned texts, "Order:" of sums, "Errors:" with the
 * state of outputs "On error," and "Cost:".
 *
 * Threads: different threads may use different objects at the same time; only one thread at a time
 * may use an object. A call distributes its work over run.threads threads. */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include "sluice/compute.h"
#include "sluice/convert.h"
#include "sluice/cpd.h"
#include "sluice/model.h"
#include "sluice/status.h"
#include "sluice/store.h"
#include "sluice/types.h"

#endif
