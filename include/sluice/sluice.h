/*
 * libsluice: sparse tensors larger than memory, factorized while they stream from disk.
 *
 *     struct slc_error err = SLC_ERROR_INIT;
 *     struct sluice_store *store = NULL;
 *     struct sluice_cpd *model = NULL;
 *
 *     if (sluice_convert("in.tns", "in.slc", NULL, NULL, &err) == SLC_OK &&
 *         sluice_store_open("in.slc", &store, &err) == SLC_OK &&
 *         sluice_cpd(store, 16, NULL, &model, &err) == SLC_OK) {
 *         printf("fit %.6f\n", sluice_cpd_fit(model));
 *     }
 *     sluice_cpd_destroy(model);
 *     sluice_store_close(store);
 *
 * Conventions. Every fallible function returns an enum slc_status and takes, last, a caller-owned
 * struct slc_error that may be NULL (sluice/status.h); on failure the objects it would have
 * returned are left as they were. A path that is NULL is SLC_ERR_USAGE. Modes and indices count
 * from 0. Matrices are dense, row-major, f64, without padding: rows x rank. Options may be NULL for
 * the defaults; otherwise fill the struct by its sluice_.._options_init(&options, sizeof options)
 * first and change what you need: the size recorded there keeps programs working with later
 * versions of the library, whose structs only grow at the end. Nothing is printed and the process
 * is never ended.
 *
 * Threads: different objects may be used by different threads at the same time; one object by one
 * thread at a time. Work inside a call is spread over `threads` of its options.
 *
 * Relabelling: a store may number the indices of a mode by frequency (sluice_convert_options). It
 * shows nowhere else: arrays, files and text, in and out, are in the numbering of the input.
 *
 * Memory: a `memory_bytes` option bounds the resident memory of the whole process, arrays of the
 * caller included, and 0 stands for 80 % of the smaller of physical memory and the cgroup limit.
 */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include "sluice/compute.h"
#include "sluice/cpd.h"
#include "sluice/model.h"
#include "sluice/report.h"
#include "sluice/results.h"
#include "sluice/store.h"
#include "sluice/sweep.h"
#include "sluice/types.h"

#endif
