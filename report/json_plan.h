/* A plan, and what has come of its choices and iterations, for records and logs. */
#ifndef SLC_REPORT_JSON_PLAN_H
#define SLC_REPORT_JSON_PLAN_H

#include "engine/plan/plan.h"
#include "engine/solve/cp_als.h"

#include <jansson.h>

json_t *slc_json_plan(const struct slc_plan *plan, unsigned order);
/* How a mode's strategy was chosen: candidates with ns per nonzero, measured where tried. */
json_t *slc_json_choice(unsigned mode, const struct slc_conflict_choice *choice);
json_t *slc_json_iteration(const struct slc_cp_iteration *iteration, unsigned order);

#endif
