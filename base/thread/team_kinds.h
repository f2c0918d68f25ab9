/* Kinds of teams that slc_team_run chooses from. Needs: workers <= SLC_MAX_THREADS. */
#ifndef SLC_BASE_TEAM_KINDS_H
#define SLC_BASE_TEAM_KINDS_H

#include "base/thread/team.h"

#include <stdbool.h>

enum slc_status slc_team_run_pool(unsigned workers,
                                  slc_team_fn *fn,
                                  void *context,
                                  struct slc_error *err) SLC_NODISCARD;

/* Runs a team of threads that are created for the team and end with the team. */
enum slc_status slc_team_run_apart(unsigned workers,
                                   slc_team_fn *fn,
                                   void *context,
                                   struct slc_error *err) SLC_NODISCARD;

/* Needs: workers >= 2, slc_team_openmp_usable. Available only if the library was built with
 * OpenMP. */
enum slc_status slc_team_run_openmp(unsigned workers,
                                    slc_team_fn *fn,
                                    void *context,
                                    struct slc_error *err) SLC_NODISCARD;

/* Returns false inside an OpenMP region and in a forked child. */
bool slc_team_openmp_usable(void);

#endif
