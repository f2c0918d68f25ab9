/*
 * A store as a list of coordinates in the host's memory, decoded by the CPU: what kernels that know
 * no blocks are given, and what those on a device are compared with.
 */
#ifndef SLC_TOOLS_BENCH_DEVICE_LIST_H
#define SLC_TOOLS_BENCH_DEVICE_LIST_H

#include "tools/bench/rivals/cpu/coo.h"
#include "tools/session/session.h"

/*
 * `options` are the session's, but for the device. Needs: *coo all-zero. Owns: slc_coo_destroy,
 * also after an error. Errors: those of streaming a store, and of slc_coo_create.
 */
enum slc_status device_list_load(const char *path,
                                 const struct session_options *options,
                                 enum slc_value_type type,
                                 struct slc_coo *coo,
                                 struct slc_error *err) SLC_NODISCARD;

/*
 * Sorts a list fiber by fiber of a mode, by the coordinates of the others, mode 0 first, and within
 * a fiber by its own. Errors: SLC_ERR_MEMORY, SLC_ERR_SYSTEM; the list is of no use then.
 */
enum slc_status device_list_sort(struct slc_coo *coo,
                                 unsigned mode,
                                 unsigned workers,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
