/* Lists of coordinates (tools/bench/rivals/cpu/coo.h) of the tensors that tests make. */
#ifndef SLC_COO_FIXTURE_H
#define SLC_COO_FIXTURE_H

#include "mttkrp_fixture.h"
#include "tools/bench/rivals/cpu/coo.h"

void coo_shape(const struct fake_tensor *tensor, struct slc_tensor_shape *shape);

/* Allocates the list and adds all tiles, the last one first. `coo` must be zero-initialized. */
enum slc_status coo_load(struct slc_coo *coo,
                         const struct fake_tensor *tensor,
                         enum slc_value_type type,
                         struct slc_error *err) SLC_NODISCARD;

/* Does the same as coo_load, and builds a permutation of every mode. */
enum slc_status coo_load_permuted(struct slc_coo *coo,
                                  const struct fake_tensor *tensor,
                                  enum slc_value_type type,
                                  unsigned workers,
                                  struct slc_error *err) SLC_NODISCARD;

/* Computes the problem's MTTKRP with one kernel. */
enum slc_status coo_multiply(const struct slc_coo *coo,
                             enum slc_coo_kernel kernel,
                             struct problem *problem,
                             unsigned workers,
                             struct slc_error *err) SLC_NODISCARD;

#endif
