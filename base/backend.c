/* Returns the names of conflict strategies. */
#include "base/backend.h"

const char *slc_conflict_name(enum slc_conflict conflict)
{
    switch (conflict) {
    case SLC_CONFLICT_AUTO:
        return "auto";
    case SLC_CONFLICT_DIRECT:
        return "direct";
    case SLC_CONFLICT_PRIVATE:
        return "private";
    case SLC_CONFLICT_LOCKED:
        return "locked";
    case SLC_CONFLICT_ORDERED:
        return "ordered";
    case SLC_CONFLICT_COLUMNS:
        return "columns";
    case SLC_CONFLICT_ROWS:
        return "rows";
    case SLC_CONFLICT_REPLICA:
        return "owned";
    }
    return "?";
}
