/* Functions that run a team, each with its own kind of threads; slc_team_run chooses one. Needs:
 * workers <= SLC_MAX_THREADS. */
#ifndef SLC_BASE_TEAM_KINDS_H
#define SLC_BASE_TEAM_KINDS_H

#include "base/thread/team.h"

#include <stdbool.h>

enum slc_status slc_team_run_pool(unsigned workers,
                                  slc_team_fn *fn,
                                  void *context,
                                  struct slc_error *err) SLC_NODISCARD;

/* Runs a team outside the pool: creates its threads and joins them at the end. */
enum slc_status slc_team_run_apart(unsigned workers,
                                   slc_team_fn *fn,
                                   void *context,
                                   struct slc_error *err) SLC_NODISCARD;

/* Needs: workers >= 2, and slc_team_openmp_usable returns true. The function exists only if the
 * library was built with OpenMP. */
enum slc_status slc_team_run_openmp(unsigned workers,
                                    slc_team_fn *fn,
                                    void *context,
                                    struct slc_error *err) SLC_NODISCARD;

/* Returns false inside an OpenMP region and in a forked child. */
bool slc_team_openmp_usable(void);

#endif
