/* Shared by the tests of replicas: replicas made of a problem's tiles, and an MTTKRP from them. */
#ifndef SLC_REPLICA_FIXTURE_H
#define SLC_REPLICA_FIXTURE_H

#include "cpu/replica/replica.h"
#include "mttkrp_fixture.h"

void replica_shape(const struct fake_tensor *tensor, struct slc_tensor_shape *shape);

/* Begins replicas and adds all tiles of a tensor in descending order, because their order must
 * not matter. Drops the replicas after an error, as the engine does. */
enum slc_status replica_fill(struct slc_backend *backend,
                             const struct fake_tensor *tensor,
                             enum slc_value_type type,
                             unsigned workers,
                             struct slc_error *err) SLC_NODISCARD;

/* Does the same as replica_fill and completes the replicas. */
enum slc_status replica_load(struct slc_backend *backend,
                             const struct fake_tensor *tensor,
                             enum slc_value_type type,
                             unsigned workers,
                             struct slc_error *err) SLC_NODISCARD;

/* Does the same as replica_load for a problem, and provides factors for trials of forms. */
enum slc_status replica_load_tried(struct slc_backend *backend,
                                   const struct problem *problem,
                                   unsigned workers,
                                   struct slc_error *err) SLC_NODISCARD;

/* The replicas inside a backend. */
struct slc_replica *replica_of(struct slc_backend *backend);

/* Asserts that no replicas are held, so that nothing leaks into the next ones. */
void replica_check_dropped(struct slc_backend *backend);

enum slc_status replica_multiply(struct slc_backend *backend,
                                 struct problem *problem,
                                 unsigned workers,
                                 struct slc_error *err) SLC_NODISCARD;

#endif
