/* What CPU and device have each done of the work that they shared (engine/hybrid/hybrid.h), in
 * reports. */
#ifndef SLC_TOOLS_SHARE_H
#define SLC_TOOLS_SHARE_H

#include "engine/hybrid/hybrid.h"

/* A line of what a plan has them do; nothing where nothing is shared. */
void share_report_plan(const struct slc_hybrid_wish *wish);
/*
 * A line of what they did, for each of the modes that passes were made over; `shares` has one per
 * mode. Nothing where nothing was shared.
 */
void share_report(const struct slc_hybrid *shares, unsigned order);

#endif
